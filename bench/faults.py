"""Kill, cut, fill and reboot at every step of a change: a node ends in its old state or in the confirmed new one.

Changes of several kinds are made on a virtual cluster. A good run, one that is given up and one that is abandoned are
recorded first: what the guard notes and what the controller announces are the steps. Then every step meets faults:
the controller or the guard dies, the connection or the cable is cut, the disk is full, the node is switched off. After
each case all facts, settings and files of the node are compared with the two states it may be in, the journal must
say which of them it is, and nothing of the guard may be left at work.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import math
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty
from typing import Any

import msgspec

from bench.common import Figure, finish
from bench.faults_node import Site, faulty_program, inside, wait_for
from wulf import lab
from wulf.change import apply
from wulf.change.guard import BUSY, Guards
from wulf.change.steps import NOTHING, Step
from wulf.cluster import inventory
from wulf.cluster.transport import open_transport
from wulf.records import ChangeOutcome

NODES = 8
QUICK_NODES = 4
#: An unconfirmed change is undone so soon [s].
DEADLINE_S = 3
#: Where the node is switched off, it must not undo the change before that [s].
LONG_DEADLINE_S = 30
#: Beyond the deadline: the guard at work may hang for 5 s before it is ended, and the machine is busy [s].
SLACK_S = 20.0
#: How long a cable is cut: longer than the deadline [s].
CUT_S = 7.5
#: A run ends then, with the cases that came first in a random order [s].
LIMIT_S = 880.0
FIRST, SECOND = "first", "second"

Facts = Mapping[str, str]
#: The name of a change, which is another one in each case.
_CHANGE = re.compile(r"\d{8}T\d{6}-[0-9a-f]{6}")


def _step(kind: str, target: str, value: str, interface: str = NOTHING) -> Step:
    return Step(
        knob=f"{kind}.{target.rpartition('/')[2]}", kind=kind, interface=interface, target=target, value=value
    )


def _file(text: str) -> str:
    return "file:644:" + base64.b64encode(text.encode()).decode()


_SYSCTL = [
    _step("sysctl", "net.ipv4.tcp_slow_start_after_idle", "0"),
    _step("sysctl", "net.ipv4.tcp_rmem", "4096 262144 8388608"),
]
_ETHTOOL = [
    _step("ethtool", "channels", "rx 2 tx 2", "host0"),
    _step(
        "ethtool", "feature.tcp-segmentation-offload feature.generic-segmentation-offload", "off off", "host0"
    ),
]
_MTU = [_step("link", "mtu", "1400", "host0")]
_FIREWALL = [_step("firewall", "tracking", "notrack", "host0")]
_SERVICE = [_step("service", "planted.service", "off"), _step("service", "nftables.service", "off")]
_SYSFS = [
    _step("file", "/sys/class/net/host0/gro_flush_timeout", "20000"),
    _step("file", "/sys/class/net/host0/queues/rx-*/rps_cpus", "1"),
]
_STORED = [
    _step("stored", "/etc/planted.d/deep/new.conf", _file("x = 1")),
    _step("stored", "/etc/sysctl.d/98-planted.conf", _file("net.ipv4.tcp_fin_timeout = 33\n")),
]
_UNIT = [_step("unit", "planted.service", "disabled")]
_MPI = [_step("mpi_parameter", "btl_tcp_eager_limit", "131072")]
_ALL = [*_SERVICE[:1], *_ETHTOOL[1:], *_MTU, *_SYSCTL[:1], *_SYSFS[:1], *_FIREWALL, *_STORED, *_UNIT, *_MPI]
#: Name → steps. The last two cut the node off by themselves.
CHANGES: dict[str, list[Step]] = {
    "sysctl": _SYSCTL,
    "ethtool": _ETHTOOL,
    "mtu": _MTU,
    "firewall": _FIREWALL,
    "service": _SERVICE,
    "sysfs": _SYSFS,
    "stored": _STORED,
    "unit": _UNIT,
    "mpi": _MPI,
    "all": _ALL,
    "rollback": _ALL,
    "two nodes": [*_SYSCTL[:1], *_MTU, *_STORED[:1]],
    "mtu that cuts ssh": [_step("link", "mtu", "68", "host0")],
    "filter that cuts ssh": [_step("service", "planted-cut.service", "on")],
}
CUTTING = ("mtu that cuts ssh", "filter that cuts ssh")
#: What every node has before the cases: rules with connection tracking, services, a setting that is kept.
_PLANT = r"""
{
	echo '#!/usr/sbin/nft -f'
	echo 'flush ruleset'
	echo 'table inet planted {'
	echo 'set good { type ipv4_addr; elements = { 198.18.0.1, 198.18.0.10 }; }'
	echo 'chain input { type filter hook input priority filter; policy accept'
	echo 'ct state established,related counter accept'
	for n in $(seq 28); do echo "tcp dport $((20000 + n)) counter drop comment \"planted $n\""; done
	echo 'ip saddr @good accept'
	echo '}'
	echo 'chain output { type filter hook output priority filter; policy accept; ct state invalid drop'
	echo '}'
	echo '}'
} >/etc/nftables.conf
nft -c -f /etc/nftables.conf || exit
rm -rf /var/lib/wulf
unit() {
	{
		printf '[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\nRemainAfterExit=yes\n'
		printf '%s\n[Install]\nWantedBy=multi-user.target\n' "$2"
	} >"/etc/systemd/system/$1"
}
unit planted.service 'ExecStart=/bin/true'
unit planted-sys.service 'ExecStart=/bin/mount -o remount,rw /sys/devices'
echo 'table inet cut { chain input { type filter hook input priority filter; tcp dport 22 drop; }; }' \
	>/etc/planted-cut.nft
unit planted-cut.service "ExecStart=/usr/sbin/nft -f /etc/planted-cut.nft
ExecStop=/usr/sbin/nft delete table inet cut"
nft -c -f /etc/planted-cut.nft || exit
echo 'net.ipv4.tcp_fin_timeout = 44' >/etc/sysctl.d/98-planted.conf
systemctl daemon-reload
systemctl -q enable planted planted-sys nftables
"""


class Points(msgspec.Struct, frozen=True):
    """The steps of one change, and what it changes."""

    #: Way of running (see `WAYS`) → steps of the guard that are new in it: ``verb: what it notes``.
    guard: dict[str, list[str]]
    #: Way → what the controller announces.
    watch: dict[str, list[str]]
    #: Facts that the change sets, with their new values; None where one goes.
    new: dict[str, str | None]
    #: The same after a reboot.
    new_after_boot: dict[str, str | None]


#: How a change is run: to its end; given up when all is applied; left when all is applied.
WAYS = ("keep", "give up", "abandon")
#: At a step of the guard; those with a capital letter are done from outside while the guard waits.
GUARD_FAULTS = ("guard", "watcher", "both", "sshd", "hang", "full", "second", "Client", "Controller", "Link")
#: At an announcement of the controller.
WATCH_FAULTS = (
    "controller dies",
    "client dies",
    "watcher dies",
    "deadline passes",
    "lease passes",
    "second",
    "link",
)
BOOTS = ("Kill", "Reboot")


class Case(msgspec.Struct, frozen=True):
    """One run of a change with one fault."""

    change: str
    way: str
    #: Whether `at` is a step of the guard or an announcement of the controller.
    side: str
    at: str
    fault: str

    @property
    def boots(self) -> bool:
        """Whether the node is booted in it."""
        return self.fault in BOOTS

    @property
    def deadline_s(self) -> int:
        """How soon an unconfirmed change is undone [s]."""
        if self.boots or (self.side == "none" and self.way == "keep"):
            return LONG_DEADLINE_S
        return DEADLINE_S if len(CHANGES[self.change]) < 5 else 2 * DEADLINE_S


class Verdict(msgspec.Struct):
    """What became of a case."""

    case: Case
    #: State of each node: old, new or neither.
    states: list[str] = []
    #: What is wrong; empty when all is as it must be.
    wrong: list[str] = []
    hit: bool = False
    seconds: float = 0.0


class Team:
    """Some nodes and the controller that changes them."""

    def __init__(self, raised: lab.Lab, names: Sequence[str], scratch: Path) -> None:
        self.lab = raised
        self.sites = [Site(raised, name) for name in names]
        self.scratch = scratch
        self.scratch.mkdir(exist_ok=True)
        self.text = faulty_program()
        self.pristine: dict[str, Facts] = {}
        self.booted = False

    @property
    def victim(self) -> Site:
        """The node that the fault happens to."""
        return self.sites[-1]

    def prepare(self) -> None:
        """Look at the nodes as they are before all."""
        with ThreadPoolExecutor() as pool:
            facts = pool.map(Site.facts, self.sites)
            self.pristine = {site.name: found for site, found in zip(self.sites, facts, strict=True)}

    # --- one run -------------------------------------------------------------------------------------------

    def start(self, case: Case) -> int:
        """Start the controller; return its process."""
        self.booted = False
        (self.scratch / "outcome").unlink(missing_ok=True)
        (self.scratch / "seen").unlink(missing_ok=True)
        (self.scratch / "second").unlink(missing_ok=True)
        pid = os.fork()
        if pid:
            return pid
        try:
            os.setsid()
            self._control(case)
        except BaseException:
            (self.scratch / "outcome").write_text(json.dumps({"error": traceback.format_exc()}))
        os._exit(0)

    def _control(self, case: Case) -> None:
        tempfile.tempdir = str(self.scratch)
        transport = open_transport(inventory.parse(self.lab.cluster_toml(), "lab"))
        deadline = case.deadline_s
        apply.LEASE_S = (1 if case.fault == "lease passes" else 60) - deadline
        guards = Guards(transport, FIRST, text=self.text)
        nodes = [site.name for site in self.sites]

        def watch(event: str) -> None:
            with (self.scratch / "seen").open("a") as seen:
                seen.write(event + "\n")
            if case.way == "abandon" and event == "check the effect":
                os.kill(os.getpid(), signal.SIGKILL)
            if case.side == "watch" and event == case.at:
                self._at_announcement(case.fault, deadline)
            if case.way == "give up" and case.change == "rollback" and event == "confirm":
                raise KeyboardInterrupt

        with contextlib.suppress(KeyboardInterrupt):
            if case.change == "rollback":
                outcome = apply.rollback(guards, nodes, "original", deadline_s=deadline, watch=watch)
            else:
                plans = {node: CHANGES[case.change] for node in nodes}
                refused = {nodes[0]: "given up"} if case.way == "give up" else {}
                outcome = apply.change(guards, plans, deadline_s=deadline, live=lambda: refused, watch=watch)
            (self.scratch / "outcome").write_bytes(msgspec.json.encode(outcome))
        transport.close()

    def _at_announcement(self, fault: str, deadline_s: int) -> None:
        """Do what happens to the controller; runs in its process."""
        if fault == "controller dies":
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault == "client dies":
            self.end_clients()
        elif fault == "watcher dies":
            self.victim.run(["sh", "-c", 'kill -9 "$(cat /run/wulf/watcher)"'])
        elif fault == "deadline passes":
            time.sleep(deadline_s + 1.5)
        elif fault == "lease passes":
            time.sleep(1.5)
            self._second()
        elif fault == "second":
            self._second()
        elif fault == "link":
            self.victim.link("down")
            mend = f"sleep {CUT_S}; ip -n {self.lab.state.namespace} link set vb-{self.victim.name} up"
            subprocess.Popen(["sh", "-c", mend], start_new_session=True)
        else:  # Kill or Reboot, by the parent
            (self.scratch / "waits").touch()
            wait_for(lambda: not (self.scratch / "waits").exists(), 30)

    def _second(self) -> None:
        answer = Guards(inside(self.sites), SECOND, text=self.text).lock([self.victim.name], 1)
        (self.scratch / "second").write_text(str(answer[self.victim.name].code))

    def end_clients(self) -> None:
        """Kill the ssh clients of this team's controller."""
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                line = (entry / "cmdline").read_bytes() if entry.name.isdecimal() else b""
                if line.startswith(b"ssh") and os.fsencode(self.scratch) in line:
                    os.kill(int(entry.name), signal.SIGKILL)

    def run(self, case: Case) -> bool:
        """Run a case to its end, with what is done from outside; whether the fault happened."""
        if case.side == "guard":
            inner = case.fault if case.fault.islower() else "pause"
            self.victim.arm(case.at, inner)
        (self.scratch / "waits").unlink(missing_ok=True)
        pid = self.start(case)
        hit = False
        end = time.monotonic() + 150
        while True:
            done, _ = os.waitpid(pid, os.WNOHANG)
            if not hit and case.side == "guard" and self.victim.was_hit():
                hit = True
                self._from_outside(case.fault, pid)
            if not hit and (self.scratch / "waits").exists():
                hit = True
                self._from_outside(case.fault, pid)
                (self.scratch / "waits").unlink()
            if done:
                break
            if time.monotonic() > end:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                raise RuntimeError("the controller hangs")
            time.sleep(0.05)
        if case.side == "guard" and not hit:
            hit = wait_for(self.victim.was_hit, case.deadline_s + 8 if case.way == "abandon" else 0)
            if hit:
                self._from_outside(case.fault, None)
        return hit or (case.side == "watch" and case.at in self.seen())

    def _from_outside(self, fault: str, controller: int | None) -> None:
        if fault.islower():
            return
        if fault == "Controller" and controller:
            os.kill(controller, signal.SIGKILL)
        elif fault == "Client":
            self.end_clients()
        elif fault == "Link":
            self.victim.link("down")
        elif fault in BOOTS:
            self.boot(fault)
            return
        self.victim.go_on()
        if fault == "Link":
            time.sleep(CUT_S)
            self.victim.link("up")

    def boot(self, fault: str) -> None:
        """Pull the plug or shut down in order, and boot; several teams boot at once."""
        self.booted = True
        with _one_at_a_time(self.lab):
            if fault == "Reboot":
                self.lab.reboot(self.victim.name)
            else:
                self.lab.kill(self.victim.name)
        if fault == "Kill":
            time.sleep(0.3)
            with _one_at_a_time(self.lab):
                self.lab.start_all(lambda _: None)
        self.end_clients()

    def seen(self) -> list[str]:
        """Return what the controller announced."""
        with contextlib.suppress(FileNotFoundError):
            return (self.scratch / "seen").read_text().splitlines()
        return []

    def outcome(self) -> ChangeOutcome | None:
        """Return what the controller said; None when it did not live to say it."""
        try:
            text = (self.scratch / "outcome").read_bytes()
        except FileNotFoundError:
            return None
        if text.startswith(b'{"error"'):
            raise RuntimeError(json.loads(text)["error"])
        return msgspec.json.decode(text, type=ChangeOutcome)

    def settle(self, case: Case) -> list[str]:
        """Wait until all changes have come to an end; return the nodes where that is not so."""
        return [site.name for site in self.sites if not wait_for(site.is_settled, case.deadline_s + SLACK_S)]

    # --- before and after ----------------------------------------------------------------------------------

    def set_out(self, case: Case) -> None:
        """Bring the nodes to the state before the case."""
        guards = Guards(inside(self.sites), FIRST, text=self.text)
        nodes = [site.name for site in self.sites]
        if case.change == "rollback":
            plans = {node: CHANGES[case.change] for node in nodes}
            outcome = apply.change(guards, plans, deadline_s=60)
            if not outcome.kept:
                raise RuntimeError(f"cannot be prepared: {outcome.reason}")
            for site in self.sites:
                if not wait_for(site.is_settled, 15):
                    raise RuntimeError(f"{site.name}: the watcher does not retire")
        if case.fault == "full":
            journal = (
                "cp -a /var/lib/wulf /run/kept && mount -t tmpfs -o size=1m,mode=700 planted /var/lib/wulf"
            )
            self.victim.shell(
                f"mkdir -p /var/lib/wulf; {journal} && cp -a /run/kept/. /var/lib/wulf/ && rm -r /run/kept"
            )

    def clean_up(self, case: Case) -> list[str]:
        """Bring the nodes back to where they were before all cases; return what could not be."""
        left = []
        for site in self.sites:
            site.disarm()
        if case.fault == "full":
            self.victim.shell("rm -f /var/lib/wulf/fill")
        guards = Guards(inside(self.sites), FIRST, text=self.text)
        nodes = [site.name for site in self.sites]
        changed = [
            site for site in self.sites if any("confirmed" in state for state in site.journal().values())
        ]
        if changed:
            outcome = apply.rollback(guards, nodes, "original", deadline_s=60)
            if not outcome.kept:
                left.append(f"the rollback to the original failed: {outcome.reason}")
            for site in changed:
                wait_for(site.is_settled, 15)
        if case.fault == "full":
            self.victim.shell("umount /var/lib/wulf")
        for site in self.sites:
            site.wipe()
        if changed and self.booted:
            # What a file made of the kernel at boot is not what the rollback put back: the file.
            self.boot("Reboot")
        self._end_masters()
        return left

    def _end_masters(self) -> None:
        self.end_clients()
        for place in self.scratch.glob("wulf-ssh-*"):
            shutil.rmtree(place, ignore_errors=True)

    def log(self) -> list[str]:
        """Return the ends of the guards' logs."""
        lines = []
        for site in self.sites:
            with contextlib.suppress(FileNotFoundError):
                text = site.path("var/lib/wulf/log").read_text().splitlines()
                lines += [f"{site.name} log: {line[11:]}" for line in text[-30:]]
        return lines


@contextlib.contextmanager
def _one_at_a_time(raised: lab.Lab) -> Iterator[None]:
    with (raised.directory / "faults.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def changed(before: Facts, after: Facts) -> dict[str, str | None]:
    """Return what is different, with the values after."""
    return {name: after.get(name) for name in {*before, *after} if before.get(name) != after.get(name)}


def timeless(facts: Facts, files: set[str]) -> Facts:
    """Return the facts without the time of some files."""
    return {
        name: re.sub(r" \d{10,} ", " ", value) if name in files else value for name, value in facts.items()
    }


def with_change(facts: Facts, change: Mapping[str, str | None]) -> Facts:
    """Return the facts with a change made to them."""
    found = {**facts, **{name: value for name, value in change.items() if value is not None}}
    return {name: value for name, value in found.items() if change.get(name, "") is not None}


# --- recording ---------------------------------------------------------------------------------------------


def record(team: Team, change: str) -> Points:
    """Run a change in every way without faults; return its steps and what it changes."""
    guard: dict[str, list[str]] = {}
    watch: dict[str, list[str]] = {}
    new: dict[str, str | None] = {}
    after_boot: dict[str, str | None] = {}
    known: set[str] = set()
    for way in WAYS if change not in CUTTING else ("keep",):
        case = Case(change, way, "none", "", "")
        team.set_out(case)
        team.victim.record()
        team.run(case)
        late = team.settle(case)
        if late:
            raise SystemExit(f"bench: {change}, {way}: {late[0]} does not settle: {team.log()}")
        notes = (_CHANGE.sub("*", note) for note in team.victim.recorded() if "error:" not in note)
        steps = list(dict.fromkeys(notes))
        guard[way] = [step for step in steps if step not in known]
        known.update(steps)
        watch[way] = team.seen()
        if way == "keep":
            states = [state.split("\t")[0] for state in team.victim.journal().values()]
            if change not in CUTTING and set(states) != {"confirmed"}:
                said = (
                    (team.scratch / "outcome").read_text()
                    if (team.scratch / "outcome").exists()
                    else "nothing"
                )
                raise SystemExit(f"bench: {change}: the good run ends as {states}, {said}: {team.log()}")
            new = changed(team.pristine[team.victim.name], team.victim.facts())
            if change == "all":
                team.boot("Reboot")
                after_boot = changed(team.pristine[team.victim.name], team.victim.facts())
        left = team.clean_up(case)
        if left:
            raise SystemExit(f"bench: {change}, {way}: not clean afterwards: {left}")
    rest = changed(team.pristine[team.victim.name], team.victim.facts())
    if rest:
        raise SystemExit(f"bench: {change}: not clean afterwards: {rest}")
    return Points(guard, watch, new, after_boot)


# --- judging -----------------------------------------------------------------------------------------------


def judge(team: Team, case: Case, points: Mapping[str, Points], verdict: Verdict) -> None:
    """Compare every node with the states that it may be in."""
    outcome = team.outcome()
    for site in team.sites:
        booted = team.booted and site is team.victim
        pristine = team.pristine[site.name]
        change = points["all"] if case.change == "rollback" else points[case.change]
        new = with_change(pristine, change.new_after_boot if booted else change.new)
        old, new = (new, pristine) if case.change == "rollback" else (pristine, new)
        now = site.facts()
        # When a file was written is its own only where it was put back.
        written = {name for name in change.new if name.startswith("file ")}
        in_old = now == old or (
            case.change == "rollback" and timeless(now, written) == timeless(old, written)
        )
        in_new = timeless(now, written) == timeless(new, written)
        state = "old" if in_old else "new" if in_new else "neither"
        verdict.states.append(state)
        journal = [state.split("\t")[0] for _, state in sorted(site.journal().items())]
        own = journal[1:] if case.change == "rollback" else journal
        if state == "neither":
            verdict.wrong.append(f"{site.name} differs from the old state: {changed(old, now)}")
            verdict.wrong.append(f"{site.name} differs from the new state: {changed(new, now)}")
        # A second one that is confirmed is the rollback of the first.
        said = "new" if own.count("confirmed") == 1 else "old"
        if state in ("old", "new") and said != state and new != old:
            verdict.wrong.append(f"{site.name} is in the {state} state, and its journal says {journal}")
        if case.way != "keep" and state == "new":
            verdict.wrong.append(f"{site.name} has a change that was not kept")
        verdict.wrong += [f"{site.name}: {what} is left" for what in site.leftovers()]
        # A controller that lived to its end, and could reach the node, gives it back.
        if outcome is not None and case.fault.lower() not in (
            "link",
            "client",
            "client dies",
            "sshd",
            "kill",
            "reboot",
        ):
            owner = site.path("run/wulf/lock")
            if owner.exists() and owner.read_text().startswith(FIRST):
                verdict.wrong.append(f"{site.name}: the lock is left")
        if outcome is not None:
            told = {node.node: node.state for node in outcome.nodes}[site.name]
            if (told, state) in (
                ("confirmed", "old"),
                ("undone", "new"),
                ("untouched", "new"),
            ) and not booted:
                verdict.wrong.append(
                    f"the controller says of {site.name}: {told}; it is in the {state} state"
                )
    _judge_second(team, case, verdict)


def _judge_second(team: Team, case: Case, verdict: Verdict) -> None:
    with contextlib.suppress(FileNotFoundError):
        code = int((team.scratch / "second").read_text())
        held = case.fault == "second" and case.at not in ("install", "lock")
        if held != (code == BUSY):
            verdict.wrong.append(f"the second controller got {code}")


def attempt(team: Team, case: Case, points: Mapping[str, Points]) -> Verdict:
    """Run one case and judge it; afterwards the nodes are as before."""
    verdict = Verdict(case)
    begin = time.monotonic()
    try:
        team.set_out(case)
        verdict.hit = team.run(case)
        late = team.settle(case)
        verdict.wrong += [f"{name} does not settle" for name in late]
        judge(team, case, points, verdict)
    except Exception as error:
        verdict.wrong.append(f"{type(error).__name__}: {error}")
    if verdict.wrong:
        verdict.wrong += team.log()
        verdict.wrong += [f"{site.name} journal: {site.journal()}" for site in team.sites]
    try:
        left = team.clean_up(case)
        if "new" in verdict.states or verdict.wrong or case.change == "rollback":
            left += _restored(team)
        verdict.wrong += left
    except Exception as error:
        verdict.wrong.append(f"afterwards: {type(error).__name__}: {error}")
        with contextlib.suppress(Exception):
            _start_anew(team)
    verdict.seconds = time.monotonic() - begin
    return verdict


def _restored(team: Team) -> list[str]:
    """Return what differs after the rollback; the next case gets a clean node all the same."""
    rest = [(site, changed(team.pristine[site.name], site.facts())) for site in team.sites]
    if any(change for _, change in rest):
        _start_anew(team)
    return [f"after the rollback {site.name} differs: {change}" for site, change in rest if change]


def _start_anew(team: Team) -> None:
    """Boot nodes that a case has spoilt, with the files they had."""
    for site in team.sites:
        with _one_at_a_time(team.lab):
            if any(status.node == site.name and status.state != "off" for status in team.lab.status()):
                team.lab.kill(site.name)
            team.lab.start_all(lambda _: None)
        site.shell(
            "rm -rf /var/lib/wulf /etc/planted.d /etc/systemd/system/wulf-recover.service "
            "/etc/systemd/system/sysinit.target.wants/wulf-recover.service"
        )
        site.shell(_PLANT)
    with _one_at_a_time(team.lab):
        for site in team.sites:
            team.lab.reboot(site.name)
    team.prepare()


# --- all cases ---------------------------------------------------------------------------------------------


def cases(points: Mapping[str, Points], quick: bool) -> list[Case]:
    """Return all cases; with `quick` every fault, every change and every step at least once."""
    found: list[Case] = []
    for change, steps in points.items():
        found += _of_guard(change, steps)
        found += _of_watch(change, steps)
    if not quick:
        return found
    return _stratified(found)


def _of_guard(change: str, steps: Points) -> list[Case]:
    found = []
    for way, notes in steps.guard.items():
        for number, note in enumerate(notes):
            for fault in GUARD_FAULTS:
                if _is_taken(change, fault, number) and not (
                    way == "abandon" and fault in ("Controller", "Client")
                ):
                    found.append(Case(change, way, "guard", note, fault))
            if change in ("all", "rollback"):
                found += [Case(change, way, "guard", note, boot) for boot in _boots(change, number)]
    return found


def _is_taken(change: str, fault: str, number: int) -> bool:
    """Every change meets the death of the guard at every step, and the other faults at some; ``all`` more of them."""
    if change in CUTTING:
        return fault in ("guard", "watcher", "full") and (number + GUARD_FAULTS.index(fault)) % 3 == 0
    if change == "rollback" and fault == "guard":
        return number % 2 == 0
    if fault == "guard" or (change == "all" and (number + GUARD_FAULTS.index(fault)) % 5 == 0):
        return True
    share = GUARD_FAULTS.index(fault) + list(CHANGES).index(change)
    return (number + share) % 24 == 0


def _boots(change: str, number: int) -> tuple[str, ...]:
    """Which boots a step meets: they take long."""
    if change == "rollback":
        return ("Kill",) if number % 4 == 0 else ()
    return BOOTS if number % 6 == 0 else ("Kill",)


def _of_watch(change: str, steps: Points) -> list[Case]:
    found = []
    for way in ("keep", "give up"):
        for event in steps.watch.get(way, []):
            if way == "give up" and event != "undo":
                continue
            found += [
                Case(change, way, "watch", event, fault)
                for number, fault in enumerate(WATCH_FAULTS)
                if _makes_sense(event, fault)
                and (change in ("all", "two nodes") or (number + len(event) + len(change)) % 6 == 0)
            ]
            if change == "all":
                found.append(Case(change, way, "watch", event, "Kill"))
    return found


def _makes_sense(event: str, fault: str) -> bool:
    if event in ("install", "lock"):
        return fault not in ("watcher dies", "deadline passes", "lease passes")
    return event != "unlock" or fault not in ("lease passes",)


def _stratified(every: list[Case]) -> list[Case]:
    """Return few cases in which every step, fault and change, and every pair of change and fault, is met."""
    shuffled = list(every)
    random.Random(1).shuffle(shuffled)
    shuffled.sort(key=lambda case: case.boots)
    chosen: list[Case] = []
    met: set[tuple[str, ...]] = set()
    for case in shuffled:
        kind = case.at.split(":")[1].split()[0] if case.side == "guard" else case.at
        marks = {
            ("step", case.way, case.side, kind),
            ("fault", case.side, case.fault),
            ("change", case.change),
        }
        if not marks <= met:
            chosen.append(case)
            met |= marks
    return chosen


# --- running them ------------------------------------------------------------------------------------------


def _work(team: Team, queue: Any, results: Any, do: Callable[[Team, Any], object], end: float) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while time.monotonic() < end:
            task = queue.get_nowait()
            results.put((task, do(team, task)))
    except Empty:
        pass
    except BaseException:
        results.put((None, traceback.format_exc()))


def spread(
    teams: Sequence[Team],
    tasks: Sequence[Any],
    do: Callable[[Team, Any], object],
    each: Callable[[Any, Any], None],
    end: float = math.inf,
) -> None:
    """Let every team take tasks until there are none, or the time has come."""
    context = multiprocessing.get_context("fork")
    queue, results = context.Queue(), context.Queue()
    for task in tasks:
        queue.put(task)
    time.sleep(0.2)
    workers = [context.Process(target=_work, args=(team, queue, results, do, end)) for team in teams]
    for worker in workers:
        worker.start()
    left = len(tasks)
    while left:
        try:
            task, result = results.get(timeout=2)
        except Empty:
            if any(worker.is_alive() for worker in workers):
                continue
            break
        if task is None:
            for worker in workers:
                worker.kill()
            raise SystemExit(f"bench: {result}")
        left -= 1
        each(task, result)
    queue.cancel_join_thread()
    for worker in workers:
        worker.join()


def plant(raised: lab.Lab) -> None:
    """Give all nodes what the changes work on, and boot them with it."""
    for name in raised.layout.names():
        Site(raised, name).shell(_PLANT)
    for name in raised.layout.names():
        raised.kill(name)
    raised.start_all(lambda _: None)


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    quick = "--quick" in arguments
    if lab.current() is not None:
        raise SystemExit(
            "bench: this maltreats the nodes: take the virtual cluster down first (wulf lab down)"
        )
    raised, _ = lab.up(QUICK_NODES if quick else NODES)
    try:
        verdicts, seconds = run(raised, quick, _only(arguments))
    finally:
        raised.down()
    return report(verdicts, seconds)


def _only(arguments: list[str]) -> str:
    """Return the text that cases must have in them: for looking into one of them."""
    return next((word.removeprefix("--only=") for word in arguments if word.startswith("--only=")), "")


def run(
    raised: lab.Lab, quick: bool, only: str = "", limit_s: float = LIMIT_S
) -> tuple[list[Verdict], float]:
    """Run all cases on a lab, or as many as there is time for; return the verdicts and the time they took [s]."""
    # ssh's sockets are in it, whose names must be short.
    with tempfile.TemporaryDirectory(prefix="wf-", dir="/tmp") as scratch:
        return _run(raised, Path(scratch), quick, only, limit_s)


def _run(
    raised: lab.Lab, scratch: Path, quick: bool, only: str, limit_s: float
) -> tuple[list[Verdict], float]:
    begin = time.monotonic()
    plant(raised)
    names = raised.layout.names()
    single = [Team(raised, [name], scratch / name) for name in names]
    pairs = [Team(raised, names[n : n + 2], scratch / f"pair{n}") for n in range(0, len(names), 2)]
    whole = Team(raised, names, scratch / "all")
    whole.prepare()
    for team in (*single, *pairs):
        team.pristine = dict(whole.pristine)
    points: dict[str, Points] = {}
    spread(single, [change for change in CHANGES if change != "two nodes"], record, points.__setitem__)
    spread(pairs[:1], ["two nodes"], record, points.__setitem__)
    points = {change: points[change] for change in CHANGES}
    print(
        f"{sum(len(n) for p in points.values() for n in p.guard.values())} steps in {len(points)} changes "
        f"({time.monotonic() - begin:.0f} s)",
        flush=True,
    )
    every = [case for case in cases(points, quick) if only in str(case)]
    random.Random(2).shuffle(every)
    verdicts: list[Verdict] = []

    def take(_: Case, verdict: Verdict) -> None:
        verdicts.append(verdict)
        if verdict.wrong:
            print(
                "\n".join(["", f"FAILED {verdict.case}", *(f"  {line[:1500]}" for line in verdict.wrong)]),
                flush=True,
            )
        if len(verdicts) % 50 == 0:
            failed = sum(bool(one.wrong) for one in verdicts)
            print(
                f"{len(verdicts)}/{len(every)} {failed} failed {time.monotonic() - begin:.0f} s", flush=True
            )

    print(f"{len(every)} cases", flush=True)
    for teams, two, share in ((single, False, 0.88), (pairs, True, 1.0)):
        chosen = [case for case in every if (case.change == "two nodes") is two]
        spread(teams, chosen, lambda team, case: attempt(team, case, points), take, begin + share * limit_s)
    return verdicts, time.monotonic() - begin


def report(verdicts: Sequence[Verdict], seconds: float) -> int:
    """Print the table and the last line."""
    rows: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        rows.setdefault((verdict.case.change, f"{verdict.case.side}: {verdict.case.fault}"), []).append(
            verdict
        )
    print(
        "\n| change | fault | cases | old state | new state | both | not met | failed |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    for (change, fault), some in sorted(rows.items()):
        states = ["/".join(sorted(set(one.states))) for one in some]
        failed = sum(bool(one.wrong) for one in some)
        missed = sum(not one.hit for one in some)
        numbers = [
            len(some),
            states.count("old"),
            states.count("new"),
            states.count("new/old"),
            missed,
            failed,
        ]
        print(f"| {change} | {fault} | " + " | ".join(map(str, numbers)) + " |")
    failed = sum(bool(verdict.wrong) for verdict in verdicts)
    missed = sum(not verdict.hit for verdict in verdicts)
    print(f"\n{len(verdicts)} cases in {seconds:.0f} s; in {missed} of them the step was not come to")
    return finish(
        "faults", [Figure(name=f"failed-of-{len(verdicts)}-in-{seconds:.0f}-s", value=failed, goal=0)]
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

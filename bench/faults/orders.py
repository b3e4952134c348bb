"""Orders of events that once left a node changed without a word: each is gone through, and what comes of it judged.

They are driven on the node itself, without ssh. Where a journal was damaged, a node is either put back or the change is
shown as stuck until a person gives it up; it never says "undone", or nothing, while a value stays.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping

import msgspec

from bench.faults import adversary
from bench.faults.cases import SIDE, Case
from bench.faults.changes import CHANGES
from bench.faults.controller import FIRST
from bench.faults.node import Facts, Site, faulty_program, inside, wait_for
from wulf.base.records import NodeStatus
from wulf.node.change import answers
from wulf.node.change.guard import DONE, Answer, Guards
from wulf.node.change.steps import NOTHING, Step

#: The change of an order, and others beside it.
TX, OTHER, BACK = "20260101T000000-00000a", "20260101T000000-00000b", "20260101T000000-00000c"
#: An unconfirmed change is undone so soon where the order waits for that [s].
SOON_S = 3
#: Where somebody does something to the watcher before that [s].
WATCHED_S = 8
#: Where something else ends the change [s].
LONG_S = 300
#: The machine is busy, and a watcher that hangs is found out after a while [s].
PATIENCE_S = 90.0

JOURNAL = "/var/lib/wulf/tx"
_TX = f"{JOURNAL}/{TX}"
#: What happens to the journal → the shell command.
DAMAGES = {
    "empty about": f": >{_TX}/about",
    "missing about": f"rm {_TX}/about",
    "missing state": f"rm {_TX}/state",
    "empty state": f": >{_TX}/state",
    "truncated state": f"truncate -s 4 {_TX}/state",
    "empty saved": f": >{_TX}/saved.1",
    "truncated saved": f"truncate -s 1 {_TX}/saved.1",
    "missing saved": f"rm {_TX}/saved.1",
    "empty plan": f": >{_TX}/plan",
    "truncated plan": f"truncate -s 9 {_TX}/plan",
    "missing plan": f"rm {_TX}/plan",
    "truncated sums": f"truncate -s 30 {_TX}/sums",
    "missing sums": f"rm {_TX}/sums",
    "missing after": f"rm {_TX}/after.1",
    "emptied": f"rm {_TX}/*",
    "wiped": f"rm -r {JOURNAL}",
}
#: What comes next: nobody; somebody who looks in; who confirms; who wants it undone.
CONTACTS = ("nobody", "contact", "confirm", "undo")
DAMAGED = ("sysctl", "mtu", "stored", "all")
#: What is sent to whom, with systemd or without it.
SIGNALS = ("TERM", "STOP", "KILL")
ROLES = ("watcher", "keeper", "both", "all")
WATCHED = ("sysctl", "stored", "all")
SYSTEMD = ("systemd", "bare")
#: When /run has become full.
FULL_AT = ("begin", "apply", "extend", "confirm", "undo", "nobody")
#: What a guard says that cannot be read: lines of `status`.
_BOOT = r"boot\tb\n"
MALFORMED = {
    "nothing": "",
    "no boot": r"uptime\t5\n",
    "two boots": _BOOT + _BOOT,
    "short change": _BOOT + r"tx\tA\n",
    "no number": _BOOT + r"tx\tA\t-\t-\tb\t\t\tapplied\n",
    "absurd number": _BOOT + r"tx\tA\t-\t-\tb\t" + "9" * 4300 + r"\t\tapplied\n",
    "short setting": _BOOT + r"set\tk\tsysctl\t-\n",
    "neither same nor different": _BOOT + r"set\tk\tsysctl\t-\tt\tA\tmaybe\t1\t1\n",
    "lock without time": _BOOT + r"lock\tme\n",
    "stored that is none": _BOOT + r"set\tk\tstored\t-\tt\tA\tsame\t1\tfile:644:???\n",
}


class Foreign(msgspec.Struct, frozen=True):
    """What somebody else sets meanwhile."""

    #: The command; how it is seen; what takes it away again, with what was seen before as ``{before}``.
    edit: str
    look: str
    back: str
    #: What is changed, where it is not the change of this name in `CHANGES`, and what that needs.
    plan: tuple[Step, ...] = ()
    setup: str = "true"


_TUNED_FILE = "/usr/local/planted/active_profile"
_TURBO = "/run/planted-cpu/boost"
_IDLE = "/run/planted-cpu/cpu*/state*/disable"
FOREIGN = {
    "sysctl": Foreign(
        "sysctl -qw net.ipv4.tcp_rmem='4096 99999 6291456'",
        "sysctl -n net.ipv4.tcp_rmem",
        "sysctl -qw net.ipv4.tcp_rmem='{before}'",
    ),
    "ethtool": Foreign(
        "ethtool -K host0 gro on",
        "ethtool -k host0 | grep generic-receive",
        "ethtool -K host0 gro off",
    ),
    "mtu": Foreign(
        "ip link set host0 mtu 1390", "cat /sys/class/net/host0/mtu", "ip link set host0 mtu 1500"
    ),
    "firewall": Foreign(
        "nft add rule inet planted input tcp dport 29999 accept comment '\"foreign\"'",
        "nft list ruleset | grep foreign",
        "nft -a list chain inet planted input | sed -n 's/.*foreign.*handle //p' | "
        "xargs -n 1 nft delete rule inet planted input handle",
    ),
    "service": Foreign(
        "nft add table ip foreign", "nft list tables | grep foreign", "nft delete table ip foreign"
    ),
    "sysfs": Foreign(
        "echo 77000 >/sys/class/net/host0/gro_flush_timeout",
        "cat /sys/class/net/host0/gro_flush_timeout",
        "echo {before} >/sys/class/net/host0/gro_flush_timeout",
    ),
    "stored": Foreign(
        "echo 'net.ipv4.tcp_keepalive_probes = 8' >>/etc/sysctl.d/98-planted.conf",
        "grep keepalive /etc/sysctl.d/98-planted.conf",
        "sed -i /keepalive/d /etc/sysctl.d/98-planted.conf; touch -d 2026-01-01 /etc/sysctl.d/98-planted.conf",
    ),
    "mpi": Foreign(
        "echo 'orte_tmpdir_base = /scratch' >>{mpi}",
        "grep orte_tmpdir_base {mpi}",
        "cp -a /run/planted-file {mpi}",
    ),
    "unit": Foreign(
        "systemctl -q mask planted-foreign.service",
        "systemctl is-enabled planted-foreign.service | grep masked",
        "systemctl -q unmask planted-foreign.service; systemctl -q disable planted-foreign.service; "
        "rm -f /lib/systemd/system/planted-foreign.service; systemctl daemon-reload",
        (
            Step(
                knob="u",
                kind="unit",
                interface=NOTHING,
                target="planted-foreign.service",
                value="disabled",
            ),
        ),
        "cp /etc/systemd/system/planted.service /lib/systemd/system/planted-foreign.service; "
        "systemctl daemon-reload; systemctl -q enable planted-foreign.service",
    ),
    "file that is no list": Foreign(
        "echo 'echo foreign' >>/etc/planted-foreign.sh",
        "grep foreign /etc/planted-foreign.sh",
        "rm -f /etc/planted-foreign.sh",
        (
            Step(
                knob="f",
                kind="stored",
                interface=NOTHING,
                target="/etc/planted-foreign.sh",
                value="file:755:IyEvYmluL3NoCg==",
            ),
        ),
    ),
    "link to a file": Foreign(
        "ln -sfn /etc/shells /etc/planted-foreign",
        "readlink /etc/planted-foreign | grep shells",
        "rm -f /etc/planted-foreign",
        (
            Step(
                knob="f",
                kind="stored",
                interface=NOTHING,
                target="/etc/planted-foreign",
                value="link:/etc/hostname",
            ),
        ),
    ),
    "route": Foreign(
        "ip route replace 198.18.7.0/24 dev host0 scope link rto_min 77ms",
        "ip route show 198.18.7.0/24 | grep 77ms",
        "ip route del 198.18.7.0/24",
        (Step(knob="r", kind="route", interface="host0", target="rto_min", value="5ms"),),
    ),
    "host_route": Foreign(
        "ip route replace 198.18.9.9/32 dev host0 src $(ip -4 -o addr show dev host0 | sed 's/.*inet //; s,/.*,,')",
        "ip route show 198.18.9.9 | grep src",
        "ip route del 198.18.9.9",
        (
            Step(
                knob="h",
                kind="host_route",
                interface=NOTHING,
                target="198.18.9.9",
                value="dev host0",
            ),
        ),
    ),
    "tuned": Foreign(
        "tuned-adm profile powersave",
        f"grep powersave {_TUNED_FILE}",
        "true",
        (
            Step(
                knob="t",
                kind="tuned",
                interface=NOTHING,
                target=_TUNED_FILE,
                value="network-latency",
            ),
        ),
        "tuned-adm profile balanced",
    ),
    "turbo": Foreign(
        f"echo 7 >{_TURBO}",
        f"grep 7 {_TURBO}",
        "true",
        (Step(knob="b", kind="turbo", interface=NOTHING, target=_TURBO, value="0"),),
        f"mkdir -p /run/planted-cpu; echo 1 >{_TURBO}",
    ),
    "idle_states": Foreign(
        "echo 7 >/run/planted-cpu/cpu0/state1/disable",
        "grep 7 /run/planted-cpu/cpu0/state1/disable",
        "true",
        (
            Step(
                knob="i",
                kind="idle_states",
                interface=NOTHING,
                target=_IDLE,
                value="disabled: state2",
            ),
        ),
        "for s in 1 2; do mkdir -p /run/planted-cpu/cpu0/state$s; echo 0 >/run/planted-cpu/cpu0/state$s/disable; done",
    ),
}
#: Between which verbs that happens, and how the change ends.
BETWEEN = (
    "begin and apply",
    "begin and undo",
    "apply and undo",
    "apply and the deadline",
    "apply and swap",
    "apply and confirm",
    "confirm and rollback",
    "rollback and apply",
    "the rollback's apply and its confirm",
)
#: Tools that die → in which changes.
TOOLS = {
    "ip": ("mtu",),
    "ethtool": ("ethtool",),
    "nft": ("firewall", "service"),
    "systemctl": ("service", "unit"),
    "ompi_info": ("mpi",),
    "systemd-run": ("sysctl", "stored"),
}
#: How a tool ends at its n-th call → what it does instead.
ENDS = {
    "dies": "kill -9 $$",
    "fails": "exit 1",
    "is cut short": '{real} "$@" >/run/planted-said 2>&1; size=$(wc -c </run/planted-said); '
    "head -c $((size / 2)) /run/planted-said; kill -9 $$",
}
DIES_AT = range(1, 13)
_WRAPPER = """\
cat >/usr/local/sbin/{tool} <<'END'
#!/bin/sh
n=$(($(cat /run/planted-count 2>/dev/null || echo 0) + 1))
echo $n >/run/planted-count
if [ $n = {when} ]; then {end}; fi
exec {real} "$@"
END
chmod 755 /usr/local/sbin/{tool}; rm -f /run/planted-count
"""
_TUNED_ADM = """\
mkdir -p /usr/local/planted /usr/local/sbin
cat >/usr/local/sbin/tuned-adm <<'END'
#!/bin/sh
cd /usr/local/planted || exit
runs=/run/planted-tuned
case $1 in
active) if [ ! -e $runs ]; then echo "It seems that tuned daemon is not running, preset profile is not activated."
    elif [ -s active_profile ]; then echo "Current active profile: $(cat active_profile)"
    else echo "No current active profile."; fi ;;
profile) echo "$2" >active_profile; touch $runs ;;
off) [ -e $runs ] || { echo "Not supported in no_daemon mode."; exit 1; }; : >active_profile ;;
esac
END
chmod 755 /usr/local/sbin/tuned-adm
"""
_LIMIT = "/run/planted-latency"
_CPUS = "/run/planted-cpu"
#: Control of sibling threads, whose files come and go with them, as a service that is on or off.
_SMT = f"""\
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
RemainAfterExit=yes
WorkingDirectory={_CPUS}
ExecStart=/bin/sh -c 'echo on >control; [ -d cpu1 ] || {{ mkdir cpu1; echo kernel >cpu1/governor; }}'
ExecStop=/bin/sh -c 'echo off >control; rm -rf cpu1'
"""
_RULES = """\
table inet f {
	set ban { type ipv4_addr; flags timeout; elements = { 192.0.2.1 timeout 1h, 192.0.2.2 timeout 1s, 192.0.2.3 } }
	chain in { type filter hook input priority 0; policy accept; ip saddr @ban counter drop; }
}
"""


def _step(knob: str, kind: str, interface: str, target: str, value: str) -> Step:
    return Step(knob=knob, kind=kind, interface=interface, target=target, value=value)


class Wrong(Exception):  # noqa: N818 - it says what is wrong
    """Something is not as it must be."""


def _must(holds: object, what: str) -> None:
    if not holds:
        raise Wrong(what)


class Course:
    """The node of an order, and the guard on it."""

    def __init__(self, site: Site, pristine: Facts) -> None:
        self.site = site
        self._guards = Guards(inside([site]), FIRST, text=faulty_program())
        self._pristine = _settings(pristine)

    def begin(self) -> None:
        """Bring the guard, and take the node."""
        self._guards.install([self.site.name])
        self.guard("lock", FIRST, "600", good=True)

    def guard(self, *words: str, plan: list[Step] | None = None, good: bool = False) -> Answer:
        """Let the guard do something, which must be done where it is `good`."""
        text = "".join(step.line() + "\n" for step in plan or []).encode()
        answer = self._guards.call([self.site.name], *words, stdin=text)[self.site.name]
        _must(answer.done or not good, f"{words[0]}: {answer.reason}")
        return answer

    def make(self, plan: list[Step], tx: str = TX, *, soon: bool = False) -> None:
        """Make a change that is not confirmed; its deadline comes `soon`, or not in the order."""
        self.guard("begin", tx, FIRST, str(LONG_S), plan=plan, good=True)
        self.guard("apply", tx, good=True)
        if soon:  # on a busy machine making it takes longer than that
            self.guard("extend", tx, str(WATCHED_S), good=True)

    def keep(self, plan: list[Step], tx: str = TX) -> None:
        """Make a change, and confirm it."""
        self.make(plan, tx)
        self.guard("confirm", tx, good=True)

    def roll_back(self, tx: str = BACK, to: str = "original") -> None:
        """Go back."""
        self.guard("rollback", tx, FIRST, str(LONG_S), to, good=True)
        self.guard("apply", tx, good=True)
        self.guard("confirm", tx, good=True)

    def status(self) -> NodeStatus:
        """Return what the guard says of itself, which can always be read."""
        found = answers.status(self.guard("status"))
        _must(not found.error, f"status: {found.error}")
        return found

    def shown(self, tx: str = TX) -> str:
        """Return the state of a change as people see it; empty where it is not shown."""
        return next((entry.state for entry in self.status().journal if entry.change == tx), "")

    def must(self, holds: object, what: str) -> None:
        """End the order where something does not hold."""
        _must(holds, what)

    def is_pristine(self) -> bool:
        """Whether all is as before."""
        return self.settings() == self._pristine

    def settings(self) -> Facts:
        """Return what a node's settings are, without what is the guard's own."""
        return _settings(self.site.exact())

    def written(self, tx: str = TX) -> str:
        """Return the first word of a state in the journal."""
        return self.site.journal().get(tx, "").partition("\t")[0]

    def wait_undone(self, tx: str = TX) -> None:
        """Wait until a change was put back."""
        _must(wait_for(lambda: self.written(tx) == "undone", PATIENCE_S), f"{tx} is {self.written(tx)}")

    def wait_free(self) -> None:
        """Wait until nobody watches any more."""
        _must(wait_for(lambda: is_free(self.site), PATIENCE_S), "the watcher does not retire")

    def without_systemd(self, how: str) -> None:
        """Let the guard go without systemd where it is to."""
        if how == "bare":
            self.site.shell("mkdir -p /run/wulf-fault && touch /run/wulf-fault/bare")


def _settings(facts: Facts) -> dict[str, str]:
    return {
        name: value
        for name, value in facts.items()
        if name.startswith(("exact ", "file ", "directory ")) and not _is_of_guard(name)
    }


def _is_of_guard(name: str) -> bool:
    return name == "exact guards" or "wulf-recover" in name or name.endswith("/sysinit.target.wants")


def is_free(site: Site) -> bool:
    """Whether nothing of a guard is at work, or about to be started again."""
    at_work = site.path("run/wulf/watcher").exists() or any(
        site.path("run/systemd/transient").glob("wulf-guard-*")
    )
    return not at_work and not site.leftovers()


# --- which there are ---------------------------------------------------------------------------------------


def orders() -> list[Case]:
    """Return all orders as cases, of each kind some first."""
    kinds = [
        list(group)
        for group in (_damages(), _signals(), _single(), _foreign_ones(), _dying(), adversary.cases())
    ]
    found = []
    while any(kinds):
        for group in kinds:
            if group:
                found.append(group.pop(0))
    return found


def few() -> list[Case]:
    """Return some of every kind, for a short run."""
    chosen = {
        ("empty saved", "sysctl", "nobody"),
        ("missing state", "sysctl", "undo"),
        ("wiped", "sysctl", "confirm"),
        ("STOP to the watcher", "sysctl", "bare"),
        ("a recycled number", "sysctl", "systemd"),
        ("a stuck change and another", "sysctl", ""),
        ("/run is full", "sysctl", "apply"),
        ("a limit that the watcher restored", "pm_qos", "systemd"),
        ("siblings and their governor", "smt", "undo"),
        ("rules that time out", "nft", "undo"),
        ("malformed", "status", "absurd number"),
    }
    return [case for case in orders() if (case.fault, case.change, case.at) in chosen]


def _case(change: str, fault: str, at: str) -> Case:
    return Case(change, "order", SIDE, at, fault)


def _damages() -> Iterator[Case]:
    for change in DAMAGED:
        for contact in CONTACTS:
            for damage in DAMAGES:
                # What was not damaged for it is confirmed.
                if (damage, contact) != ("missing after", "confirm"):
                    yield _case(change, damage, contact)


def _signals() -> Iterator[Case]:
    for change in WATCHED:
        for systemd in SYSTEMD:
            for number in SIGNALS:
                for role in ROLES:
                    yield _case(change, f"{number} to the {role}", systemd)
            yield _case(change, "a recycled number", systemd)
            yield _case(change, "a number that looks alike", systemd)


def _single() -> Iterator[Case]:
    for before in ("balanced", "none", "not running"):
        for how in ("Kill", "Reboot"):
            yield _case("tuned", f"{how} after a profile", before)
    for systemd in SYSTEMD:
        yield _case("pm_qos", "a limit that the watcher restored", systemd)
        yield _case("pm_qos", "a limit whose holder ends", systemd)
    for change in WATCHED:
        yield _case(change, "a stuck change and another", "")
        for when in FULL_AT:
            yield _case(change, "/run is full", when)
    for end in ("undo", "nobody", "rollback"):
        yield _case("smt", "siblings and their governor", end)
        yield _case("smt", "a governor and its siblings", end)
        yield _case("nft", "rules that time out", end)
    for what in MALFORMED:
        yield _case("status", "malformed", what)


def _foreign_ones() -> Iterator[Case]:
    for change in FOREIGN:
        for between in BETWEEN:
            yield _case(change, "somebody else sets something", between)


def _dying() -> Iterator[Case]:
    for tool, changes in TOOLS.items():
        for change in changes:
            for when in DIES_AT:
                for end in ENDS:
                    yield _case(change, f"{tool} {end}", str(when))


def run(case: Case, site: Site, pristine: Facts, boot: Callable[[str], None]) -> list[str]:
    """Go through an order; return what is wrong. What it has planted is taken away again by `tidy`."""
    course = Course(site, pristine)
    try:
        course.begin()
        _way(case, boot)(course, case)
    except Wrong as wrong:
        return [str(wrong)]
    return []


def _way(case: Case, boot: Callable[[str], None]) -> Callable[[Course, Case], None]:
    if case.change == "tuned" and case.fault.endswith("after a profile"):
        return lambda course, case: _tuned(course, case, boot)
    if case.change == adversary.CHANGE:
        return adversary.attack
    ways: Mapping[str, Callable[[Course, Case], None]] = {
        "a recycled number": _recycled,
        "a number that looks alike": _recycled,
        "a limit that the watcher restored": _limit_restored,
        "a limit whose holder ends": _limit_ended,
        "a stuck change and another": _stuck_and_another,
        "/run is full": _full,
        "siblings and their governor": _siblings,
        "a governor and its siblings": _siblings,
        "rules that time out": _rules,
        "malformed": _malformed,
        "somebody else sets something": _foreign,
        **{f"{tool} {end}": _dies for tool in TOOLS for end in ENDS},
    }
    return ways.get(case.fault) or (_damaged if case.fault in DAMAGES else _signalled)


def tidy(site: Site) -> None:
    """Take away what an order has planted."""
    site.shell(
        "for pid in $(cat /run/planted-pids 2>/dev/null); do kill -9 $pid 2>/dev/null; done; "
        "if [ -s /var/lib/wulf/pm_qos ]; then read -r pid _ </var/lib/wulf/pm_qos && kill $pid 2>/dev/null; fi; "
        "nft delete table inet f 2>/dev/null; "
        "while mountpoint -q /run/wulf; do umount -l /run/wulf; done; "
        "systemctl stop planted-smt 2>/dev/null; "
        "rm -f /etc/systemd/system/planted-smt.service; systemctl daemon-reload; "
        "rm -rf /run/planted* /usr/local/planted /usr/local/sbin/* /run/wulf-fault/bare /run/wulf-kept; true"
    )


# --- a damaged journal ---------------------------------------------------------------------------------------


def _damaged(course: Course, case: Case) -> None:
    plan = CHANGES[case.change]
    course.make(plan, soon=case.at == "nobody")
    course.site.shell(
        f"rm -rf /run/wulf-kept && cp -a {JOURNAL} /run/wulf-kept && cd / && {DAMAGES[case.fault]}"
    )
    _come(course, case.at)
    state = _closed(course)
    if state == "put back":
        return
    before = course.settings()
    left = course.guard("abandon", TX, good=True)
    _must(answers.leaves(left), "what is left is not said")
    _must(course.settings() == before, "giving it up changed something")
    _must(course.shown().startswith("abandoned"), f"given up, and shown as {course.shown()!r}")
    course.wait_free()
    # With the journal as it was, it goes back.
    course.site.shell(f"rm -rf {JOURNAL} && cp -a /run/wulf-kept {JOURNAL}")
    course.guard("undo", TX)
    _must(course.written() == "undone", f"with its journal it is {course.written()!r}")


def _come(course: Course, contact: str) -> None:
    if contact == "nobody":
        _must(wait_for(lambda: _is_ended(course.site), PATIENCE_S), "nothing comes of the deadline")
    elif contact == "contact":
        course.guard("recover")
        course.guard("undo", TX)
    else:
        answer = course.guard(contact, TX)
        said = contact == "undo" or not answer.done
        _must(said, f"{contact} says that all is well")


def _is_ended(site: Site) -> bool:
    """Whether the watcher has done what it does about the change: it is over, or waits to be tried again."""
    return (
        site.journal().get(TX, "").partition("\t")[0] in ("undone", "stuck", "confirmed")
        or site.path(f"run/wulf/retry.{TX}").exists()
    )


def _closed(course: Course) -> str:
    """Judge a change whose journal was damaged: put back, or stuck and shown."""
    shown = course.shown()
    if course.is_pristine():
        return "put back" if course.written() == "undone" else "stuck"
    _must(shown.startswith(("stuck", "damaged")), f"values stay, and it is shown as {shown!r}")
    _must("--abandon" in shown, f"how to give it up is not said: {shown!r}")
    return "stuck"


def _stuck_and_another(course: Course, case: Case) -> None:
    plan = CHANGES[case.change]
    course.make(plan)
    course.site.shell(f"rm -rf /run/wulf-kept && cp -a {JOURNAL} /run/wulf-kept && : >{_TX}/plan")
    course.guard("undo", TX)
    _must(course.shown().startswith("stuck"), f"it is shown as {course.shown()!r}")
    refused = course.guard("begin", OTHER, FIRST, str(LONG_S), plan=plan[:1])
    _must(refused.code != DONE and TX in refused.reason, f"a change of the same: {refused.reason!r}")
    another = [_step("k", "sysctl", NOTHING, "net.ipv4.tcp_autocorking", "0")]
    course.keep(another, OTHER)
    _must(course.shown(OTHER).startswith("confirmed"), f"another one is {course.shown(OTHER)!r}")
    course.guard("abandon", TX, good=True)
    course.roll_back()
    course.site.shell(f"rm -rf {_TX} && cp -a /run/wulf-kept/{TX} {_TX}")
    course.guard("undo", TX)
    _must(course.written() == "undone", f"with its journal it is {course.written()!r}")


# --- somebody else ------------------------------------------------------------------------------------------


def _foreign(course: Course, case: Case) -> None:
    """What somebody else sets between two verbs stays, whatever becomes of the change."""
    site, foreign = course.site, FOREIGN[case.change]
    mpi = site.shell("ompi_info --path sysconfdir --parsable | sed -n 's/^path:sysconfdir://p'").strip()
    file = f"$(readlink -f {mpi}/openmpi-mca-params.conf)"
    site.shell(f"cp -a {file} /run/planted-file\n{_TUNED_ADM}\n{foreign.setup}")
    edit, look, back = (text.replace("{mpi}", file) for text in (foreign.edit, foreign.look, foreign.back))
    before = site.shell(f"{look} || true").strip()
    _edit_between(course, case.at, list(foreign.plan) or _without_foreign(case.change), edit)
    seen = site.shell(f"{look} || true").strip()
    site.shell(back.replace("{before}", before))
    _must(seen and seen != before, f"what somebody else has set is gone: {seen!r}")
    _must(course.written() in ("undone", "confirmed", ""), f"it is {course.written()!r}")


def _without_foreign(change: str) -> list[Step]:
    """Return the steps of a change but for what somebody else sets."""
    plan = [step for step in CHANGES[change] if (change, step.target) != ("sysctl", "net.ipv4.tcp_rmem")]
    return plan[1:] if change == "sysfs" else plan


def _edit_between(course: Course, at: str, plan: list[Step], edit: str) -> None:
    """Go through the verbs up to those two, with what somebody else sets between them, and to the end."""
    course.guard("begin", TX, FIRST, str(LONG_S), plan=plan, good=True)
    if at.startswith("begin and"):
        course.site.shell(edit)
    if at != "begin and undo":
        course.guard("apply", TX, good=True)
    if at.startswith("apply and"):
        course.site.shell(edit)
    if at == "apply and swap":
        another = [_step("k", "sysctl", NOTHING, "net.ipv4.tcp_autocorking", "0")]
        course.guard("swap", TX, OTHER, FIRST, str(LONG_S), plan=another, good=True)
        course.guard("undo", OTHER, good=True)
    elif at == "apply and the deadline":
        course.guard("extend", TX, str(SOON_S), good=True)
        course.wait_undone()
    elif at.endswith("undo") or at == "begin and apply":
        course.guard("undo", TX, good=True)
    else:
        course.guard("confirm", TX, good=True)
        _roll_back_and_edit(course, at, edit)


def _roll_back_and_edit(course: Course, at: str, edit: str) -> None:
    if at == "confirm and rollback":
        course.site.shell(edit)
    course.guard("rollback", BACK, FIRST, str(LONG_S), "original", good=True)
    if at == "rollback and apply":
        course.site.shell(edit)
    # What the rollback is of was set by somebody else meanwhile: there may be nothing to do.
    if course.written(BACK):
        course.guard("apply", BACK, good=True)
        if at.startswith("the rollback's"):
            course.site.shell(edit)
        course.guard("confirm", BACK, good=True)


def _dies(course: Course, case: Case) -> None:
    """A tool does not do its work at its n-th call: nothing is called done that is not, and the way back is there."""
    site, (tool, _, how) = course.site, case.fault.partition(" ")
    real = site.shell(f"command -v {tool}").strip()
    site.shell(_WRAPPER.format(tool=tool, when=case.at, real=real, end=ENDS[how].format(real=real)))
    words = (("begin", TX, FIRST, str(LONG_S)), ("apply", TX), ("undo", TX))
    for verb in words:
        answer = course.guard(*verb, plan=CHANGES[case.change] if verb[0] == "begin" else None)
        if not answer.done and verb[0] == "begin":
            break
    site.shell(f"rm -f /usr/local/sbin/{tool}")  # a look at the node takes it, too
    if answer.done and verb[0] == "undo":
        _must(course.is_pristine(), "it says that it is undone, and is not")
    course.guard("recover")
    course.guard("undo", TX)
    _must(course.is_pristine(), "without the fault it is not put back")
    _must(course.written() in ("undone", ""), f"it is {course.written()!r}")


# --- who watches ---------------------------------------------------------------------------------------------


def _signalled(course: Course, case: Case) -> None:
    number, role = case.fault.split(" to the ")
    course.without_systemd(case.at)
    course.make(CHANGES[case.change], soon=True)
    several = {"both": ("watcher", "keeper"), "all": ("watcher", "keeper", "spare")}
    files = " ".join(f'"$(cat /run/wulf/{name})"' for name in several.get(role, (role,)))
    course.site.shell(f"kill -{number} {files}")
    if role == "all":  # nobody is left: whoever says that it is still there starts them again
        course.guard("extend", TX, str(SOON_S), good=True)
    course.wait_undone()
    course.wait_free()


def _recycled(course: Course, case: Case) -> None:
    course.without_systemd(case.at)
    course.make(CHANGES[case.change], soon=True)
    alike = case.fault == "a number that looks alike"
    words = "bash -c 'trap : USR1; while :; do sleep 1; done' guard watch" if alike else "sleep 600"
    course.site.shell(
        f"setsid {words} </dev/null >/dev/null 2>&1 & echo $! >/run/planted-pids; "
        'old=$(cat /run/wulf/watcher); cp /run/planted-pids /run/wulf/watcher; kill -9 "$old"'
        + ('; kill -9 "$(cat /run/wulf/keeper)" "$(cat /run/wulf/spare)"' if alike else "")
    )
    if alike:
        course.guard("extend", TX, str(SOON_S), good=True)
    course.wait_undone()
    course.wait_free()


# --- a full /run ---------------------------------------------------------------------------------------------


def _full(course: Course, case: Case) -> None:
    course.guard("unlock", FIRST, good=True)
    course.wait_free()
    course.site.shell("mount -t tmpfs -o size=224k,mode=700 planted /run/wulf")
    course.guard("lock", FIRST, "600", good=True)
    plan = CHANGES[case.change]
    soon = "8" if case.at == "nobody" else str(LONG_S)
    for words in (("begin", TX, FIRST, soon), ("apply", TX), ("extend", TX, soon), ("confirm", TX)):
        if words[0] == case.at or (case.at in ("undo", "nobody") and words[0] == "extend"):
            course.site.shell("rm -f /run/wulf/reserve; cat /dev/zero >/run/wulf/fill 2>/dev/null || true")
        if case.at in ("undo", "nobody") and words[0] == "extend":
            break
        if not course.guard(*words, plan=plan if words[0] == "begin" else None).done:
            break
    if case.at == "nobody":
        course.wait_undone()
    if course.written() == "confirmed":
        course.site.shell("rm -f /run/wulf/fill")
        course.roll_back()
    else:
        course.guard("undo", TX)
        _must(course.written() in ("undone", ""), f"it is {course.written()!r}")
        course.site.shell("rm -f /run/wulf/fill")
    course.wait_free()


# --- TuneD over a boot ---------------------------------------------------------------------------------------


def _tuned(course: Course, case: Case, boot: Callable[[str], None]) -> None:
    before = "" if case.at == "none" else "balanced"
    runs = "" if case.at == "not running" else "touch /run/planted-tuned;"
    course.site.shell(f"{_TUNED_ADM}\n{runs} printf '%s' '{before}' | grep . >{_TUNED_FILE}; true")
    course.make([_step("svc.tuned", "tuned", NOTHING, _TUNED_FILE, "network-latency")])
    profile = f"cat {_TUNED_FILE}"
    _must(course.site.shell(profile).strip() == "network-latency", "the profile is not set")
    boot(case.fault.split(" ")[0])
    ended = wait_for(lambda: course.written() == "undone", PATIENCE_S)
    _must(
        course.site.shell(profile).strip() == before, f"after the boot it is {course.site.shell(profile)!r}"
    )
    _must(ended, f"after the boot it is {course.written()!r}")


# --- a limit that a process holds ----------------------------------------------------------------------------


def _limit(us: str) -> list[Step]:
    return [_step("cpu.cstates_pmqos", "pm_qos", NOTHING, _LIMIT, us)]


def _limit_restored(course: Course, case: Case) -> None:
    course.without_systemd(case.at)
    course.site.shell(f": >{_LIMIT}")
    course.keep(_limit("10"))
    course.make(_limit("0"), OTHER, soon=True)
    course.wait_undone(OTHER)
    course.wait_free()
    # All processes of the watcher's unit end with it.
    time.sleep(0.5)
    held = course.site.shell(
        "read -r pid us </var/lib/wulf/pm_qos && readlink /proc/$pid/fd/3 && echo $us"
    ).split()
    _must(held == [_LIMIT, "10"], f"nobody holds it: {held}")
    (setting,) = course.status().settings
    _must(setting.holds and setting.now == "10", f"status says {setting.now!r}")
    course.guard("lock", FIRST, "600", good=True)
    course.roll_back()
    _must(not course.site.path("var/lib/wulf/pm_qos").exists(), "somebody holds it still")


def _limit_ended(course: Course, case: Case) -> None:
    course.without_systemd(case.at)
    course.site.shell(f": >{_LIMIT}")
    course.keep(_limit("10"))
    course.site.shell(
        "read -r pid us </var/lib/wulf/pm_qos && kill -9 $pid && while [ -d /proc/$pid/cwd/ ]; do :; done"
    )
    (setting,) = course.status().settings
    _must(not setting.holds and setting.now == "unlimited", f"status says {setting.now!r}")
    course.roll_back()


# --- what hangs together -------------------------------------------------------------------------------------


def _siblings(course: Course, case: Case) -> None:
    course.site.shell(
        f"mkdir -p {_CPUS}/cpu0 {_CPUS}/cpu1; echo on >{_CPUS}/control; "
        f"echo powersave >{_CPUS}/cpu0/governor; echo schedutil >{_CPUS}/cpu1/governor"
    )
    look = f"grep -H . {_CPUS}/control {_CPUS}/cpu*/governor"
    before = course.site.shell(look)
    unit = f"cat >/etc/systemd/system/planted-smt.service <<'END'\n{_SMT}END\n"
    course.site.shell(f"{unit}systemctl daemon-reload; systemctl start planted-smt")
    plan = [
        _step("cpu.smt", "service", NOTHING, "planted-smt.service", "off"),
        _step("cpu.governor", "file", NOTHING, f"{_CPUS}/cpu*/governor", "performance"),
    ]
    course.make(
        plan[:: 1 if case.fault.startswith("siblings") else -1],
        soon=case.at == "nobody",
    )
    _must("cpu1" not in course.site.shell(look), "siblings are still there")
    _end(course, case.at)
    now = course.site.shell(look)
    _must(now == before, f"it is {now!r}")


def _rules(course: Course, case: Case) -> None:
    done = course.site.run(["nft", "-f", "-"], _RULES.encode())
    _must(done.returncode == 0, f"nft: {done.stderr!r}")
    plan = [_step("svc.nftables", "service", NOTHING, "nftables.service", "off")]
    course.make(plan, soon=case.at == "nobody")
    _must("192.0.2.1" not in course.site.shell("nft list ruleset"), "the rules are still there")
    time.sleep(1.5)
    _end(course, case.at)
    rules = course.site.shell("nft list ruleset")
    _must("192.0.2.1 timeout" in rules and "192.0.2.3" in rules, f"the rules are {rules!r}")
    _must("192.0.2.2" not in rules, "what would be over by now is back")


def _end(course: Course, how: str) -> None:
    if how == "rollback":
        course.guard("confirm", TX, good=True)
        course.roll_back()
        return
    if how == "undo":
        course.guard("undo", TX, good=True)
    course.wait_undone()


# --- a guard that says what cannot be read -------------------------------------------------------------------


def _malformed(course: Course, case: Case) -> None:
    course.site.shell("mv /var/lib/wulf/guard /run/planted-guard")
    text = "#!/bin/sh\nprintf '%b' '" + MALFORMED[case.at] + "'\n"
    course.site.run(["sh", "-c", "cat >/var/lib/wulf/guard && chmod 700 /var/lib/wulf/guard"], text.encode())
    try:
        found = answers.status(course.guard("status"))
    finally:
        with contextlib.suppress(RuntimeError):
            course.site.shell("mv /run/planted-guard /var/lib/wulf/guard")
    _must(found.error, f"it is taken for {msgspec.to_builtins(found)}")

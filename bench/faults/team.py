"""Some nodes and the controller that changes them: before, during and after a case."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.faults.cases import BOOTS, Case
from bench.faults.changes import CHANGES
from bench.faults.controller import CUT_S, FIRST, Controller
from bench.faults.node import Facts, Site, faulty_program, inside, wait_for
from wulf.node import lab
from wulf.node.change import apply
from wulf.node.change.guard import Guards

_HERE = Path(__file__).parent
PLANT = (_HERE / "plant.sh").read_text()
#: Beyond the deadline: the guard at work may hang for 5 s before it is ended, and the machine is busy [s].
SLACK_S = 20.0
#: A confirmed change has no more to do than to end its watcher [s].
RETIRE_S = 15.0
#: Where each node's journal is on a small disk that can be filled.
_SMALL_DISK = """
mkdir -p /var/lib/wulf && cp -a /var/lib/wulf /run/kept && mount -t tmpfs -o size=3m,mode=700 planted /var/lib/wulf &&
	cp -a /run/kept/. /var/lib/wulf/ && rm -r /run/kept
"""


class Team:
    """Some nodes and the controller that changes them."""

    def __init__(self, raised: lab.Lab, names: Sequence[str], scratch: Path) -> None:
        self._lab = raised
        self._scratch = scratch
        self.sites = [Site(raised, name) for name in names]
        self.controller = Controller(raised, self.sites, scratch)
        self._guards = Guards(inside(self.sites), FIRST, text=faulty_program())
        #: Node → its facts before all cases.
        self.pristine: dict[str, Facts] = {}
        #: Whether the node of the fault was booted in the present case.
        self.booted = False

    @property
    def victim(self) -> Site:
        """The node that the fault happens to."""
        return self.sites[-1]

    @property
    def names(self) -> list[str]:
        """The nodes."""
        return [site.name for site in self.sites]

    def look(self) -> None:
        """Look at the nodes as they are before all."""
        with ThreadPoolExecutor() as pool:
            facts = pool.map(Site.facts, self.sites)
            self.pristine = {site.name: found for site, found in zip(self.sites, facts, strict=True)}

    # --- the course of a case ------------------------------------------------------------------------------

    def set_out(self, case: Case) -> None:
        """Bring the nodes to the state before the case."""
        self.booted = False
        if case.change == "rollback":
            plans = {name: CHANGES[case.change] for name in self.names}
            outcome = apply.change(self._guards, plans, deadline_s=60)
            if not outcome.kept:
                raise RuntimeError(f"cannot be prepared: {outcome.reason}")
            for site in self.sites:
                if not wait_for(site.is_settled, RETIRE_S):
                    raise RuntimeError(f"{site.name}: the watcher does not retire")
        if case.fault == "full":
            self.victim.shell(_SMALL_DISK)

    def run(self, case: Case) -> bool:
        """Run a case to its end, with what is done from outside; whether the fault happened."""
        if case.side == "guard":
            self.victim.arm(case.at, "pause" if case.from_outside else case.fault)
        self.controller.start(case)
        hit = False
        while not self.controller.has_ended():
            if not hit and case.side == "guard" and self.victim.was_hit():
                hit = True
                self._from_outside(case)
            if not hit and self.controller.waits():
                hit = True
                self._from_outside(case)
                self.controller.go_on()
            time.sleep(0.1)
        if case.side == "guard" and not hit:
            # The watcher comes after the controller.
            hit = wait_for(self.victim.was_hit, case.deadline_s + 8 if case.way == "abandon" else 0)
            if hit:
                self._from_outside(case)
        return hit or (case.side == "watch" and case.at in self.controller.announced())

    def settle(self, case: Case) -> list[str]:
        """Wait until all changes have come to an end; return the nodes where that is not so."""
        if case.fault == "link" and not wait_for(self.victim.has_carrier, CUT_S + SLACK_S):
            return [self.victim.name]
        if self.booted and self.victim.states()[-1:] == ["preparing"]:
            # Nothing was changed yet, so nothing is done at boot: it ends at the next contact.
            self._guards.call([self.victim.name], "recover")
        return [site.name for site in self.sites if not wait_for(site.is_settled, case.deadline_s + SLACK_S)]

    def clean_up(self, case: Case) -> list[str]:
        """Bring the nodes back to where they were before all cases; return what could not be."""
        left = []
        for site in self.sites:
            site.disarm()
        if case.fault == "full":
            self.victim.shell("rm -f /var/lib/wulf/fill")
        changed = [site for site in self.sites if "confirmed" in site.states()]
        if changed:
            outcome = apply.rollback(self._guards, self.names, "original", deadline_s=60)
            if not outcome.kept:
                left.append(f"the rollback to the original failed: {outcome.reason}")
            for site in changed:
                wait_for(site.is_settled, RETIRE_S)
        if case.fault == "full":
            self.victim.shell("umount /var/lib/wulf")
        for site in self.sites:
            site.wipe()
        if changed and self.booted:
            # What a file made of the kernel at boot is not what the rollback put back: the file.
            self.boot("Reboot")
        self.controller.end_clients()
        for place in self._scratch.glob("wulf-ssh-*"):
            shutil.rmtree(place, ignore_errors=True)
        return left

    def start_anew(self) -> None:
        """Boot nodes that a case has spoilt, with the files they had."""
        for site in self.sites:
            with self._one_at_a_time():
                if any(status.node == site.name and status.state != "off" for status in self._lab.status()):
                    self._lab.kill(site.name)
                self._lab.start_all(lambda _: None)
            site.shell(
                "rm -rf /var/lib/wulf /etc/planted.d /etc/systemd/system/wulf-recover.service "
                "/etc/systemd/system/sysinit.target.wants/wulf-recover.service"
            )
            site.shell(PLANT)
        with self._one_at_a_time():
            for site in self.sites:
                self._lab.reboot(site.name)
        self.look()

    def log(self) -> list[str]:
        """Return the ends of the guards' logs."""
        lines = []
        for site in self.sites:
            with contextlib.suppress(FileNotFoundError):
                text = site.path("var/lib/wulf/log").read_text().splitlines()
                lines += [f"{site.name} log: {line[11:]}" for line in text[-30:]]
        return lines

    # --- faults from outside -------------------------------------------------------------------------------

    def _from_outside(self, case: Case) -> None:
        """Do what a guard or the controller waits for."""
        if case.fault in BOOTS:
            self.boot(case.fault)
            return
        if case.fault == "Controller":
            self.controller.kill()
        elif case.fault == "Client":
            self.controller.end_clients()
        elif case.fault == "Link":
            self.victim.link("down")
        if case.from_outside:
            self.victim.go_on()
        if case.fault == "Link":
            time.sleep(CUT_S)
            self.victim.link("up")

    def boot(self, how: str) -> None:
        """Pull the plug (``Kill``) or shut down in order (``Reboot``), and boot."""
        self.booted = True
        with self._one_at_a_time():
            if how == "Reboot":
                self._lab.reboot(self.victim.name)
            else:
                self._lab.kill(self.victim.name)
        if how == "Kill":
            time.sleep(0.3)
            with self._one_at_a_time():
                self._lab.start_all(lambda _: None)
        self.controller.end_clients()

    @contextlib.contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Hold the virtual cluster's own state, which several teams change."""
        with (self._lab.directory / "faults.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

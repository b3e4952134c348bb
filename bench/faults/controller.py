"""The process that makes a change, and what it leaves for those who watch it."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.faults.cases import Case
from bench.faults.changes import CHANGES
from bench.faults.node import Site, faulty_program, inside, wait_for
from wulf.base.records import ChangeOutcome
from wulf.node import lab
from wulf.node.change import apply
from wulf.node.change.guard import Guards
from wulf.node.cluster import inventory
from wulf.node.cluster.transport import open_transport

#: Owners of the lock.
FIRST, SECOND = "first", "second"
#: How long a cable is cut: longer than the deadline of a change [s].
CUT_S = 7.5
#: A controller that takes longer hangs [s].
LIMIT_S = 150.0
#: What is done to the watcher.
_SIGNALS = {"watcher dies": "KILL", "watcher is stopped": "STOP", "watcher is told to end": "TERM"}

#: For `prctl`: a signal when the parent ends.
_PR_SET_PDEATHSIG = 1


class Controller:
    """Changes nodes in a process of its own, which may be killed; the last node is the one that faults happen to."""

    def __init__(self, raised: lab.Lab, sites: Sequence[Site], scratch: Path) -> None:
        self._lab = raised
        self._sites = sites
        self._text = faulty_program()
        self._scratch = scratch
        self._scratch.mkdir(exist_ok=True)
        self._pid = 0
        self._begin = 0.0

    # --- from outside --------------------------------------------------------------------------------------

    def start(self, case: Case) -> None:
        """Begin with the change."""
        for name in ("outcome", "seen", "second", "waits"):
            (self._scratch / name).unlink(missing_ok=True)
        self._begin = time.monotonic()
        self._pid = os.fork()
        if self._pid:
            return
        try:
            os.setsid()
            _end_with_parent()
            self._control(case)
        except BaseException:
            (self._scratch / "outcome").write_text(json.dumps({"error": traceback.format_exc()}))
        os._exit(0)

    def has_ended(self) -> bool:
        """Whether it is gone, by itself or killed."""
        if self._pid and os.waitpid(self._pid, os.WNOHANG)[0]:
            self._pid = 0
        if self._pid and time.monotonic() - self._begin > LIMIT_S:
            self.kill()
            os.waitpid(self._pid, 0)
            self._pid = 0
            raise RuntimeError("the controller hangs")
        return not self._pid

    def kill(self) -> None:
        """Kill it, if it is still there."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)

    def waits(self) -> bool:
        """Whether it waits for something that is done from outside."""
        return (self._scratch / "waits").exists()

    def go_on(self) -> None:
        """Let it go on."""
        (self._scratch / "waits").unlink(missing_ok=True)

    def end_clients(self) -> None:
        """Kill its ssh clients."""
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                line = (entry / "cmdline").read_bytes() if entry.name.isdecimal() else b""
                if line.startswith(b"ssh") and os.fsencode(self._scratch) in line:
                    os.kill(int(entry.name), signal.SIGKILL)

    def announced(self) -> list[str]:
        """Return what it announced."""
        with contextlib.suppress(FileNotFoundError):
            return (self._scratch / "seen").read_text().splitlines()
        return []

    def outcome(self) -> ChangeOutcome | None:
        """Return what it said at its end; None when it did not live to say it."""
        try:
            text = (self._scratch / "outcome").read_bytes()
        except FileNotFoundError:
            return None
        if text.startswith(b'{"error"'):
            raise RuntimeError(json.loads(text)["error"])
        return msgspec.json.decode(text, type=ChangeOutcome)

    def answer_to_second(self) -> int | None:
        """Return the code with which a second controller was answered; None where there was none."""
        with contextlib.suppress(FileNotFoundError):
            return int((self._scratch / "second").read_text())
        return None

    # --- in its own process --------------------------------------------------------------------------------

    def _control(self, case: Case) -> None:
        tempfile.tempdir = str(self._scratch)
        transport = open_transport(inventory.parse(self._lab.cluster_toml(), "lab"))
        deadline = case.deadline_s
        apply.LEASE_S = (1 if case.fault == "lease passes" else 60) - deadline
        guards = Guards(transport, FIRST, text=self._text)
        nodes = [site.name for site in self._sites]

        def watch(event: str) -> None:
            with (self._scratch / "seen").open("a") as seen:
                seen.write(event + "\n")
            if case.way == "abandon" and event == "check the effect":
                os.kill(os.getpid(), signal.SIGKILL)
            if case.side == "watch" and event == case.at:
                self._meet(case.fault, deadline)
            if case.way == "give up" and case.change == "rollback" and event == "confirm":
                raise KeyboardInterrupt

        with contextlib.suppress(KeyboardInterrupt):
            if case.change == "rollback":
                outcome = apply.rollback(guards, nodes, "original", deadline_s=deadline, watch=watch)
            else:
                plans = {node: CHANGES[case.change] for node in nodes}
                refused = {nodes[0]: "given up"} if case.way == "give up" else {}
                outcome = apply.change(guards, plans, deadline_s=deadline, live=lambda: refused, watch=watch)
            (self._scratch / "outcome").write_bytes(msgspec.json.encode(outcome))
        transport.close()

    def _meet(self, fault: str, deadline_s: int) -> None:
        victim = self._sites[-1]
        if fault == "controller dies":
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault == "client dies":
            self.end_clients()
        elif fault in _SIGNALS:
            victim.run(["sh", "-c", f'kill -{_SIGNALS[fault]} "$(cat /run/wulf/watcher)"'])
        elif fault == "deadline passes":
            time.sleep(deadline_s + 1.5)
        elif fault == "lease passes":
            time.sleep(1.5)
            self._second()
        elif fault == "second":
            self._second()
        elif fault == "link":
            victim.link("down")
            mend = f"sleep {CUT_S}; ip -n {self._lab.state.namespace} link set vb-{victim.name} up"
            subprocess.Popen(["sh", "-c", mend], start_new_session=True)
        else:  # a boot, from outside
            (self._scratch / "waits").touch()
            wait_for(lambda: not self.waits(), 30)

    def _second(self) -> None:
        victim = self._sites[-1]
        answer = Guards(inside(self._sites), SECOND, text=self._text).lock([victim.name], 1)
        (self._scratch / "second").write_text(str(answer[victim.name].code))


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

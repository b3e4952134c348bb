"""The guard on one machine, without systemd: its journal, its watcher, and what a killed one leaves."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.guard_place import SYSCTL, Place, wait
from wulf.node.change.guard import BUSY, DONE, FAILED, LATE

pytestmark = pytest.mark.root


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.end()


def test_the_order_of_changes_is_not_that_of_their_names(place: Place) -> None:
    place.done("lock", "me", "60")
    place.set("Z", "0")
    place.done("confirm", "Z")
    assert "set\tk\tsysctl" in place.done("status")
    place.done("rollback", "A", "me", "30", "original")
    place.done("apply", "A")
    place.done("confirm", "A")
    assert place.value() == "1"
    assert "set\t" not in place.done("status")
    assert place.done("rollback", "B", "me", "30", "original") == "nothing\n"
    place.set("C", "0")
    place.done("confirm", "C")
    assert [line.split("\t")[1] for line in place.done("status").splitlines() if line.startswith("tx")] == [
        "Z",
        "A",
        "C",
    ]
    place.done("rollback", "0", "me", "30", "C")
    place.done("apply", "0")
    place.done("confirm", "0")
    assert place.value() == "1"


def test_what_nobody_confirms_is_undone_and_the_watcher_goes(place: Place) -> None:
    place.done("lock", "me", "60")
    place.set("A", "0", deadline_s=6)
    assert place.value() == "0"
    wait(lambda: place.journal("A") == "undone", seconds=40)
    assert place.value() == "1"
    wait(lambda: not (place.run / "watcher").exists())
    late = place.guard("confirm", "A")
    assert late.returncode == LATE
    assert "not confirmed in time" in late.stdout
    # Who did not come in time no longer has the node.
    step = f"k\tsysctl\t-\t{SYSCTL}\t0\n"
    assert place.guard("begin", "B", "me", "30", stdin=step).returncode == BUSY
    place.done("lock", "me", "60")
    # A good change does not keep its watcher until the next look at the clock.
    place.set("B", "0")
    place.done("confirm", "B")
    wait(lambda: not (place.run / "watcher").exists(), seconds=4)


def test_a_tool_of_a_killed_guard_does_not_set_anything_afterwards(place: Place) -> None:
    step, file = place.slowly(1.5)
    place.done("lock", "me", "60")
    place.done("begin", "A", "me", "30", stdin=step)
    guard = subprocess.Popen(place.argv("apply", "A"), stdout=subprocess.DEVNULL)
    wait(lambda: "put 1" in (place.state / "log").read_text())
    time.sleep(0.3)
    guard.kill()
    guard.wait()
    place.done("undo", "A")
    time.sleep(2)
    assert file.read_text() == "enabled\n"
    assert place.journal("A") == "undone"


def test_nothing_of_a_change_that_is_over_stays(place: Place) -> None:
    place.done("lock", "me", "60")
    place.set("A", "0")
    before = (place.run / "deadline.A").read_text()
    place.done("confirm", "A")
    # As if the guard had been killed right after its last word.
    (place.run / "deadline.A").write_text(before)
    place.done("recover")
    assert not (place.run / "deadline.A").exists()


def test_a_guard_that_hangs_is_ended_and_undone(place: Place) -> None:
    step, file = place.slowly(60)
    place.done("lock", "me", "60")
    place.done("begin", "A", "me", "8", stdin=step)
    hangs = subprocess.Popen(place.argv("apply", "A"), stdout=subprocess.DEVNULL)
    wait(lambda: place.journal("A") == "undone", seconds=40)
    assert hangs.wait(timeout=5) != 0
    assert file.read_text() == "enabled\n"
    assert "the guard at work hangs" in (place.state / "log").read_text()


def test_one_controller_at_a_time(place: Place) -> None:
    place.done("lock", "me", "6")
    refused = place.guard("lock", "you", "60")
    assert (refused.returncode, "me has this node" in refused.stdout) == (BUSY, True)
    place.set("A", "0")
    time.sleep(6.5)
    place.done("lock", "you", "60")
    assert place.value() == "1"
    assert place.journal("A") == "undone"
    assert place.guard("begin", "B", "me", "30", stdin=f"k\tsysctl\t-\t{SYSCTL}\t0\n").returncode == BUSY


def test_a_step_that_fails_undoes_those_before_it(place: Place) -> None:
    place.done("lock", "me", "60")
    plan = f"k\tsysctl\t-\t{SYSCTL}\t0\nc\tsysctl\t-\tnet.ipv4.tcp_congestion_control\tnonsense\n"
    place.done("begin", "A", "me", "30", stdin=plan)
    failed = place.guard("apply", "A")
    assert failed.returncode == FAILED
    assert "does not take 'nonsense'" in failed.stdout
    assert place.value() == "1"
    unknown = place.guard("begin", "B", "me", "30", stdin="x\tnokind\t-\tx\ty\n")
    assert unknown.returncode == FAILED
    assert not (place.state / "tx/B").exists()


def test_what_cannot_be_put_back_is_said_and_tried_again(place: Place) -> None:
    file = place.directory / "value"
    file.write_text("old\n")
    place.done("lock", "me", "60")
    place.done("begin", "A", "me", "30", stdin=f"f\tfile\t-\t{file}\tnew\n")
    place.done("apply", "A")
    file.unlink()
    file.mkdir()
    stuck = place.guard("undo", "A")
    assert "not put back" in stuck.stdout
    assert place.journal("A") == "stuck"
    file.rmdir()
    file.write_text("new\n")
    place.done("recover")
    assert place.journal("A") == "undone"
    assert file.read_text() == "old\n"


@pytest.mark.parametrize("number", [signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU])
def test_a_terminal_does_not_stop_who_has_the_lock(place: Place, number: signal.Signals) -> None:
    step, file = place.slowly(1.0)
    place.done("lock", "me", "60")
    place.done("begin", "A", "me", "30", stdin=step)
    guard = subprocess.Popen(place.argv("apply", "A"), stdout=subprocess.DEVNULL)
    wait(lambda: "put 1" in (place.state / "log").read_text())
    guard.send_signal(number)
    assert guard.wait(20) == DONE
    assert file.read_text() == "disabled\n"


def test_who_does_not_hear_why_it_cannot_go_on_does_not_keep_the_lock(place: Place) -> None:
    place.done("lock", "me", "60")
    place.set("A", "0")
    hidden = "/proc/sys/kernel/random/boot_id"
    place.enter("mount", "--bind", "/dev/null", hidden)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, bytes(4096))
    os.set_blocking(writing, True)
    guard = subprocess.Popen(place.argv("lock", "me", "60"), stdout=writing)
    time.sleep(1)
    assert guard.poll() is None, "it has said it: the pipe is not full"
    place.enter("umount", hidden)
    place.done("lock", "me", "60")
    os.close(writing)
    os.close(reading)
    assert guard.wait(10) != DONE

"""What nobody confirms is undone, whatever is done to the processes that see to it."""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.unit.guard_place import Place, wait
from wulf.node.change.guard import FAILED

pytestmark = pytest.mark.root

ROLES = ("watcher", "keeper", "spare")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.end()


def pid(place: Place, role: str) -> int:
    try:
        return int((place.run / role).read_text())
    except (FileNotFoundError, ValueError):
        return 0


def signal_all(place: Place, number: int, roles: Iterable[str]) -> None:
    for role in roles:
        os.kill(pid(place, role), number)


def endings() -> Iterator[object]:
    """Yield every one and two of them, and how they end; `make test` has every two killed and every one stopped."""
    signals = (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP)
    for count, number in itertools.product((1, 2), signals):
        usual = number is (signal.SIGSTOP if count == 1 else signal.SIGKILL)
        for roles in itertools.permutations(ROLES, count):
            name = f"{'-'.join(roles)}-{number.name}"
            yield pytest.param(roles, number, id=name, marks=[] if usual else pytest.mark.thorough)


@pytest.mark.parametrize(("roles", "number"), [*endings()])
def test_an_undo_comes_whichever_two_are_ended_or_stopped(
    place: Place, roles: Sequence[str], number: int
) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0", deadline_s=8)
    signal_all(place, number, roles)
    wait(lambda: place.journal("A") == "undone", seconds=90)
    assert place.value() == "1"
    wait(lambda: not any(pid(place, role) for role in ROLES), seconds=60)


def test_an_undo_comes_when_they_are_ended_one_after_the_other(place: Place) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0", deadline_s=15)
    for role in (*ROLES, *ROLES):
        before = pid(place, role)
        if before:  # on a busy machine the deadline comes before the last of them
            os.kill(before, signal.SIGKILL)
            wait(lambda role=role, before=before: pid(place, role) != before, seconds=60)  # type: ignore[misc]
    wait(lambda: place.journal("A") == "undone", seconds=90)
    assert place.value() == "1"


@pytest.mark.parametrize(
    "what", ["rm -rf /run/wulf", "rm -f /run/wulf/*", "rm -f /run/wulf/*.socket /run/wulf/*.lock"]
)
def test_an_undo_comes_although_run_is_wiped(place: Place, what: str) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0", deadline_s=6)
    place.enter("sh", "-c", what)
    wait(lambda: place.journal("A") == "undone", seconds=60)
    assert place.value() == "1"
    place.done("lock", "me", "600")
    place.set("B", "0", deadline_s=300)
    place.done("undo", "B")


@pytest.mark.parametrize("verb", ["undo", "lock"])
def test_a_look_whose_reader_has_gone_to_sleep_keeps_nobody_from_an_undo(place: Place, verb: str) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0", deadline_s=10 if verb == "undo" else 300)
    # More than a pipe takes: it waits for its reader, and has no lock.
    (place.state / "log").write_text("x" * 200000 + "\n")
    with subprocess.Popen(place.argv("status"), stdout=subprocess.PIPE) as looks:
        assert looks.stdout is not None
        looks.stdout.read(1)
        if verb == "lock":
            place.done("lock", "me", "600")
        else:
            wait(lambda: place.journal("A") == "undone", seconds=90)
            assert place.value() == "1"
        looks.kill()


def test_a_half_open_caller_keeps_nobody_waiting(place: Place) -> None:
    with subprocess.Popen(place.argv("begin", "A", "me", "30"), stdin=subprocess.PIPE) as half_open:
        place.done("lock", "you", "60")
        place.done("status")
        half_open.kill()


def test_what_is_left_of_a_change_that_is_over_goes_with_the_watchers(place: Place) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0", deadline_s=300)
    place.done("undo", "A")
    wait(lambda: not any(pid(place, role) for role in ROLES), seconds=60)
    # As where all of them are killed after their last word of it.
    marks = (place.run / "deadline.A", place.state / "open.A")
    for mark in marks:
        mark.write_text("1\n")
    with subprocess.Popen(place.argv("watch")):
        wait(lambda: not any(mark.exists() for mark in marks), seconds=60)
    assert place.journal("A") == "undone"


@pytest.mark.parametrize("role", ROLES)
def test_each_is_started_again(place: Place, role: str) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0", deadline_s=300)
    before = pid(place, role)
    os.kill(before, signal.SIGKILL)
    wait(lambda: pid(place, role) not in (0, before), seconds=90)


def test_one_that_somebody_has_stopped_goes_with_the_last_change(place: Place) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0", deadline_s=300)
    keeper = pid(place, "keeper")
    os.kill(keeper, signal.SIGSTOP)
    place.done("undo", "A")
    wait(lambda: not Path(f"/proc/{keeper}").exists(), seconds=60)


def test_one_that_is_stopped_when_nothing_is_open_any_more_goes_with_the_lock(place: Place) -> None:
    place.done("lock", "me", "600")
    with subprocess.Popen(place.argv("watch")) as watcher:
        wait(lambda: (place.run / "watch.socket").exists() and pid(place, "watcher") > 0)
        os.kill(pid(place, "watcher"), signal.SIGSTOP)
        place.done("unlock", "me")
        wait(lambda: watcher.poll() is not None, seconds=60)


@pytest.mark.parametrize("how", ["ended", "stopped", "another's number"])
def test_extending_and_confirming_take_a_watcher_that_answers(place: Place, how: str) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0", deadline_s=300)
    before = pid(place, "watcher")
    # All at once: none is left that would start the others.
    signal_all(place, signal.SIGSTOP, ROLES)
    if how != "stopped":
        signal_all(place, signal.SIGKILL, ROLES)
    # Its command line is as the watcher's, and it does nothing.
    other = subprocess.Popen(
        ["bash", "-c", "trap : USR1; while :; do sleep 1; done", "/var/lib/wulf/guard", "watch"]
    )
    try:
        if how == "another's number":
            (place.run / "watcher").write_text(f"{other.pid}\n")
            before = other.pid
        place.done("extend", "A", "8")
        assert pid(place, "watcher") not in (0, before)
    finally:
        other.kill()
        other.wait()
    wait(lambda: place.journal("A") == "undone", seconds=90)


def test_the_unit_at_boot_starts_without_var_and_says_so(place: Place) -> None:
    place.done("lock", "me", "600")
    file = place.directory / "x.conf"
    place.done("begin", "A", "me", "300", stdin=f"k\tstored\t-\t{file}\tfile:644:eA==\n")
    unit = place.run.parent.parent / "etc/systemd/system/wulf-recover.service"
    wanted = unit.parent / "sysinit.target.wants" / unit.name
    text = unit.read_text()
    assert wanted.is_symlink()
    assert "RequiresMountsFor" not in text
    assert "Requires=" not in text
    assert "After=var.mount var-lib.mount var-lib-wulf.mount local-fs.target" in text
    (start,) = [line.partition("=")[2] for line in text.splitlines() if line.startswith("ExecStart=")]
    without = "mkdir -p /var/lib/wulf && mount -t tmpfs none /var/lib/wulf && exec " + start
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", without], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0
    assert "/var/lib/wulf/guard is not there" in done.stderr
    assert shlex.split(start)[0] == "/bin/sh"
    # No half of it is left.
    unit.unlink()
    place.done("undo", "A")
    assert not wanted.is_symlink()
    assert not wanted.parent.exists()


def test_who_looks_again_and_again_keeps_nobody_from_a_change(place: Place) -> None:
    place.done("lock", "me", "600")
    place.program("ethtool", "#!/bin/sh\nsleep 0.2\nprintf 'rx-usecs:\\t8\\n'\n")
    for verb in (("begin", "A", "me", "600"), ("apply", "A"), ("confirm", "A")):
        place.done(*verb, stdin="nic.rx_usecs\tethtool\teth0\tcoalesce.rx-usecs\t8\n")
    again = ["sh", "-c", 'while "$@" >>/run/looked; do :; done', "look"]
    enter, words = place.argv()[:4], place.argv("status")[4:]
    looking = [subprocess.Popen([*enter, *again, *words]) for _ in range(4)]
    try:
        wait(lambda: place.enter("cat", "/run/looked").startswith("boot"))
        place.done("lock", "me", "600")
    finally:
        for looks in looking:
            looks.kill()
            looks.wait()


def test_what_is_set_after_run_was_wiped_and_others_undid_it_is_undone_too(place: Place) -> None:
    step, file = place.slowly(12)
    place.done("lock", "me", "600")
    place.done("begin", "A", "me", "2", stdin=step)
    with subprocess.Popen(place.argv("apply", "A"), stdout=subprocess.PIPE, text=True) as guard:
        wait(lambda: "put 1" in (place.state / "log").read_text())
        shutil.rmtree(place.run)
        (place.directory / "slow").write_text("0\n")
        wait(lambda: place.journal("A") == "undone", seconds=60)
        assert guard.wait(timeout=60) == FAILED
    assert (place.journal("A"), file.read_text()) == ("undone", "enabled\n")


def test_what_others_have_in_their_memory_is_not_read(place: Place) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed (apt install strace)")
    place.done("lock", "me", "600")
    other = subprocess.Popen(["setpriv", "--reuid=65534", "--clear-groups", "sleep", "60"])
    try:
        (place.run / "holder").write_text("1.1\n")  # as a guard leaves it that was ended
        (place.run / "holder").chmod(0o600)
        argv = place.argv("lock", "me", "600")
        argv[4:4] = ["strace", "-f", "-qq", "-e", "trace=openat"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    finally:
        other.kill()
        other.wait()
    assert f"/proc/{os.getpid()}/environ" in done.stderr
    assert f"/proc/{other.pid}/environ" not in done.stderr

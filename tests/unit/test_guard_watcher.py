"""What nobody confirms is undone, whatever is done to the processes that see to it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.guard_place import SHELLS, Place, wait
from wulf.node.change.guard import program

pytestmark = pytest.mark.root

ROLES = ("watcher", "keeper")


@pytest.fixture(params=SHELLS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    made = Place(request.param, tmp_path)
    yield made
    made.end()


def pid(place: Place, role: str) -> int:
    try:
        return int((place.run / role).read_text())
    except (FileNotFoundError, ValueError):
        return 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP])
def test_an_undo_comes_although_the_watcher_is_ended_or_stopped(place: Place, number: int) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0", deadline_s=10)
    before = pid(place, "watcher")
    os.kill(before, number)
    wait(lambda: pid(place, "watcher") not in (0, before), seconds=90)
    wait(lambda: place.journal("A") == "undone", seconds=90)
    assert place.value() == "1"
    wait(lambda: not any(pid(place, role) for role in ROLES), seconds=60)


@pytest.mark.parametrize("verb", ["undo", "lock"])
def test_a_look_whose_reader_has_gone_to_sleep_keeps_nobody_from_an_undo(place: Place, verb: str) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0", deadline_s=10 if verb == "undo" else 300)
    # More than a pipe takes: it waits for its reader, and has the lock.
    (place.state / "log").write_text("x" * 200000 + "\n")
    mutex = (place.run / "mutex").stat()
    another = {"WULF_GUARD": f"looks.{mutex.st_dev}.{mutex.st_ino + 1}.1.1."}
    at_another_node = subprocess.Popen(["sleep", "300"], env=os.environ | another)
    with subprocess.Popen(place.argv("status"), stdout=subprocess.PIPE) as looks:
        assert looks.stdout is not None
        looks.stdout.read(1)
        if verb == "lock":
            place.done("lock", "me", "600")
        else:
            wait(lambda: place.journal("A") == "undone", seconds=90)
            assert place.value() == "1"
        looks.kill()
    assert at_another_node.poll() is None
    at_another_node.kill()
    at_another_node.wait()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_who_keeps_the_watcher_is_kept_too(place: Place, number: int) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0", deadline_s=300)
    before = pid(place, "keeper")
    os.kill(before, number)
    wait(lambda: pid(place, "keeper") not in (0, before), seconds=90)


def test_one_that_somebody_has_stopped_goes_with_the_last_change(place: Place) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0", deadline_s=300)
    keeper = pid(place, "keeper")
    os.kill(keeper, signal.SIGSTOP)
    place.done("undo", "A")
    wait(lambda: not Path(f"/proc/{keeper}").exists(), seconds=60)


@pytest.mark.parametrize("keeper_lives", [True, False])
def test_one_that_is_stopped_while_it_retires_is_in_nobodys_way(place: Place, keeper_lives: bool) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0", deadline_s=300)
    watcher, keeper = (pid(place, role) for role in ROLES)
    os.kill(keeper, signal.SIGSTOP)
    os.kill(watcher, signal.SIGSTOP)
    for role in ROLES:
        (place.run / role).unlink()  # as it does, all but its end
    os.kill(keeper, signal.SIGCONT if keeper_lives else signal.SIGKILL)
    if not keeper_lives:
        place.done("extend", "A", "300")
    wait(lambda: not Path(f"/proc/{watcher}").exists(), seconds=30)
    wait(lambda: not Path(f"/proc/{keeper}").exists(), seconds=30)
    place.done("undo", "A")
    assert place.value() == "1"


@pytest.mark.parametrize("how", ["ended", "stopped", "another's number"])
def test_extending_and_confirming_take_a_watcher_that_answers(place: Place, how: str) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0", deadline_s=300)
    for role in ("keeper", "watcher"):
        os.kill(pid(place, role), signal.SIGSTOP if how == "stopped" else signal.SIGKILL)
    before = pid(place, "watcher")
    # Its command line is as the watcher's, and it does nothing.
    other = subprocess.Popen(["bash", "-c", "trap : USR1; while :; do sleep 1; done", "guard", "watch"])
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


BOOT = """
mkdir -p /var/lib/wulf
for place in /etc/systemd/system /run /var/lib/wulf; do mount -t tmpfs none "$place" || exit 1; done
recover_at_boot && cat /etc/systemd/system/wulf-recover.service
"""


def test_the_unit_at_boot_starts_without_var_and_says_so() -> None:
    text = program().removesuffix('main "$@"\n') + BOOT
    unit = subprocess.run(
        ["unshare", "--mount", "sh"], input=text, capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert "RequiresMountsFor" not in unit
    assert "Requires=" not in unit
    assert "After=var.mount var-lib.mount var-lib-wulf.mount local-fs.target" in unit
    (start,) = [line.partition("=")[2] for line in unit.splitlines() if line.startswith("ExecStart=")]
    without = "mkdir -p /var/lib/wulf && mount -t tmpfs none /var/lib/wulf && exec " + start
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", without], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0
    assert "/var/lib/wulf/guard is not there" in done.stderr
    assert shlex.split(start)[0] == "/bin/sh"


def test_no_half_of_the_unit_at_boot_is_left() -> None:
    ends = "for at in /etc/systemd/system /run /var/lib/wulf; do mount -t tmpfs none $at || exit 1; done"
    text = f"""{program().removesuffix('main "$@"' + chr(10))}
mkdir -p /var/lib/wulf
{ends}
recover_at_boot && rm "/etc/systemd/system/$UNIT" && no_recover_at_boot && find /etc/systemd/system -name "$UNIT"
"""
    done = subprocess.run(
        ["unshare", "--mount", "sh"], input=text, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

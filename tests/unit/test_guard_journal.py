"""A journal that is damaged fails closed, a stuck change blocks no other, and history stays small."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.unit.guard_place import SYSCTL, Place, wait
from wulf.base.contracts import NodeResult
from wulf.face.cli import rollback
from wulf.node.change.guard import BUSY, DONE, FAILED, LATE, STUCK, Guards
from wulf.node.fleet import abandonment

pytestmark = pytest.mark.root

OTHER = "net.ipv4.tcp_autocorking"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.end()


def truncate(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


DAMAGES: dict[str, Callable[[Path], None]] = {
    "empty about": lambda tx: truncate(tx / "about", 0),
    "missing state": lambda tx: (tx / "state").unlink(),
    "empty state": lambda tx: truncate(tx / "state", 0),
    "truncated state": lambda tx: truncate(tx / "state", 4),
    "empty saved": lambda tx: truncate(tx / "saved.1", 0),
    "truncated saved": lambda tx: truncate(tx / "saved.1", 12),
    "missing saved": lambda tx: (tx / "saved.1").unlink(),
    "empty plan": lambda tx: truncate(tx / "plan", 0),
    "truncated plan": lambda tx: truncate(tx / "plan", 9),
    "truncated sums": lambda tx: truncate(tx / "sums", 30),
    "missing sums": lambda tx: (tx / "sums").unlink(),
    "emptied": lambda tx: [path.unlink() for path in tx.iterdir()] and None,
    "wiped": lambda tx: shutil.rmtree(tx.parent),
}


def test_a_damaged_journal_is_stuck_and_released_by_name(place: Place) -> None:
    place.done("lock", "me", "600")
    for number, (what, damage) in enumerate(DAMAGES.items()):
        change = f"C{number}"
        place.set(change, "0", deadline_s=300)
        damage(place.state / "tx" / change)
        undone = place.guard("undo", change)
        assert (undone.returncode, "error\tnot put back" in undone.stdout) == (STUCK, True), what
        assert place.value() == "0", what
        assert place.shown(change).startswith("stuck: "), what
        assert "wulf rollback --abandon" in place.shown(change)
        left = place.done("abandon", change).splitlines()[-1]
        assert left.startswith(f"leaves\tk\tsysctl\t-\t{SYSCTL}\t0"), (what, left)
        assert place.value() == "0"
        assert place.journal(change) == "abandoned"
        assert place.shown(change).startswith("abandoned"), what
        # It keeps nobody from going on.
        place.enter("sh", "-c", f"echo 1 >/proc/sys/{SYSCTL.replace('.', '/')}")
    place.set("after", "0")
    place.done("confirm", "after")


def test_a_lost_state_is_put_back_at_the_next_attempt(place: Place) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0", deadline_s=300)
    (place.state / "tx/A/state").unlink()
    # A watcher that looked meanwhile has made the first attempt.
    assert place.guard("undo", "A").returncode in (STUCK, DONE)
    place.done("recover")
    assert (place.value(), place.journal("A")) == ("1", "undone")


def test_a_confirmed_change_that_lost_its_state_is_not_put_back(place: Place) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0")
    place.done("confirm", "A")
    (place.state / "tx/A/state").write_text("")
    for _ in range(2):
        place.done("recover")
    assert place.shown("A").startswith("stuck")
    assert place.value() == "0"


def test_what_is_whole_is_put_back_although_something_else_is_damaged(place: Place) -> None:
    place.done("lock", "me", "600")
    plan = f"k\tsysctl\t-\t{SYSCTL}\t0\nc\tsysctl\t-\t{OTHER}\t0\n"
    place.done("begin", "A", "me", "300", stdin=plan)
    place.done("apply", "A")
    (place.state / "tx/A/saved.2").write_text("")
    stuck = place.guard("undo", "A")
    assert (stuck.returncode, " c (what was before it is damaged" in stuck.stdout) == (STUCK, True)
    assert place.value() == "1"
    assert [line.split("\t")[1] for line in place.done("leaves", "A").splitlines()] == ["c"]


def test_a_confirmed_change_that_is_damaged_is_shown_and_not_rolled_back_by_halves(place: Place) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0")
    place.done("confirm", "A")
    (place.state / "tx/A/saved.1").write_text("")
    assert place.shown("A").startswith("damaged: ")
    refused = place.guard("rollback", "B", "me", "30", "original")
    assert (refused.returncode, "what was before k is damaged" in refused.stdout) == (1, True)
    assert place.value() == "0"
    place.done("abandon", "A")
    assert place.done("rollback", "B", "me", "30", "original") == "nothing\n"


def test_a_begin_that_never_came_to_its_journal_goes_in_silence(place: Place) -> None:
    early = place.state / "tx/early"
    early.mkdir(parents=True)
    (early / "plan").write_text(f"k\tsysctl\t-\t{SYSCTL}\t0\n")
    (early / "about").write_text("format\t3\nnumber\t1\n")
    assert place.done("recover") == ""
    assert not early.exists()
    assert place.rows("tx") == []


def test_a_journal_of_another_version_is_refused_and_not_interpreted(place: Place) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0", deadline_s=300)
    about = place.state / "tx/A/about"
    about.write_text(about.read_text().replace("format\t3", "format\t2"))
    refused = place.guard("begin", "B", "me", "30", stdin=f"c\tsysctl\t-\t{OTHER}\t0\n")
    assert (refused.returncode, "A, which another version of wulf has made" in refused.stdout) == (BUSY, True)
    assert place.guard("undo", "A").returncode == LATE
    assert place.shown("A").startswith("other: it was made by another version")
    assert place.value() == "0"
    place.done("abandon", "A")
    place.set("B", "0")


def test_a_stuck_change_blocks_its_own_and_is_tried_less_and_less(place: Place) -> None:
    file = place.directory / "value"
    file.write_text("old\n")
    place.done("lock", "me", "600")
    place.done("begin", "A", "me", "30", stdin=f"f\tfile\t-\t{file}\tnew\n")
    place.done("apply", "A")
    file.unlink()
    file.mkdir()
    waits = []
    for _ in range(8):
        assert place.guard("recover").returncode == 0
        if place.journal("A") != "stuck":
            place.guard("undo", "A")
        waits.append(int((place.run / "retry.A").read_text().split()[1]))
    assert waits[:3] == [60, 120, 240]
    assert waits[-1] == 3600
    # A change of something else goes on, one of the same does not.
    place.set("B", "0")
    place.done("confirm", "B")
    refused = place.guard("begin", "C", "me", "30", stdin=f"g\tfile\t-\t{file}\tnewer\n")
    assert (refused.returncode, "A is stuck, and it is of g, too" in refused.stdout) == (FAILED, True)
    assert "wulf rollback --abandon A" in refused.stdout
    # Nobody else's verb tries before it is time; who asks for a rollback has mended it.
    file.rmdir()
    file.write_text("new\n")
    place.done("lock", "me", "600")
    assert place.journal("A") == "stuck"
    place.done("rollback", "D", "me", "30", "original")
    assert (place.journal("A"), file.read_text()) == ("undone", "old\n")


class _Inside:
    """Runs what a controller asks for in the guard's place: as much of a transport as is needed here."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def run(self, argv: Sequence[str], nodes: Sequence[str], **options: Any) -> dict[str, NodeResult]:
        done = subprocess.run(
            [*self._place.argv()[:4], *argv],
            input=options.get("stdin") or b"",
            capture_output=True,
            check=False,
        )
        status = "ok" if done.returncode == 0 else "exit"
        return {
            node: NodeResult(
                node=node,
                status=status,
                exit_code=done.returncode,
                stdout=done.stdout,
                stderr=done.stderr,
                reason="",
            )
            for node in nodes
        }


def test_a_person_sees_what_a_stuck_change_leaves_before_it_is_given_up(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.done("lock", "me", "600")
    change = "20260101T000000-abcdef"
    place.set(change, "0", deadline_s=300)
    (place.state / "tx" / change / "plan").write_text("")
    assert place.guard("undo", change).returncode == STUCK
    place.done("unlock", "me")
    out = io.StringIO()
    monkeypatch.setattr(rollback, "console", lambda: Console(file=out, width=300))
    guards = Guards(_Inside(place), "somebody")
    found = abandonment.look(guards, ["node01"], None)
    rollback.show_releases(found, leave_as_is=False)
    assert f"node01: change {change}: stuck: its journal is damaged: plan" in out.getvalue()
    assert f"  k stays 0 (before: /proc/sys/{SYSCTL.replace('.', '/')} 1)" in out.getvalue()
    assert "nothing was done: 'wulf rollback --abandon --leave-as-is'" in out.getvalue()
    assert place.journal(change) == "stuck"
    assert abandonment.look(guards, ["node01"], "20260101T000000-000000") == []
    (given_up,) = abandonment.release(guards, found)
    assert (given_up.released, given_up.error, [value.now for value in given_up.left]) == (True, "", ["0"])
    assert place.journal(change) == "abandoned"
    assert abandonment.look(guards, ["node01"], None) == []
    assert not (place.run / "lock").exists()


def snapshot(*places: Path) -> dict[str, tuple[int, str]]:
    found = {}
    for top in places:
        for path in sorted(top.rglob("*")):
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            found[str(path)] = (path.lstat().st_mtime_ns, content)
    return found


@pytest.mark.parametrize("name", ["..", ".", "../tx/A", "A/", "A|B", ""])
def test_what_is_not_the_name_of_a_change_goes_nowhere(place: Place, name: str) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0")
    place.done("confirm", "A")
    for words in (
        ("rollback", "B", "me", "30", name),
        ("rollback", name, "me", "30", "original"),
        ("begin", name, "me", "30"),
        ("swap", "-", name, "me", "30"),
        ("undo", name),
        ("leaves", name),
        ("abandon", name),
    ):
        said = place.guard(*words, stdin=f"k\tsysctl\t-\t{SYSCTL}\t1\n")
        assert (said.returncode, "is not the name of a change" in said.stdout) == (1, True), said
    assert [row[0] for row in place.rows("tx")] == ["A"]


@pytest.mark.parametrize("field", range(5))
def test_a_field_of_blanks_alone_is_none(place: Place, field: int) -> None:
    """The guard looked for its first word, and died while it set something."""
    file = place.directory / "value"
    file.write_text("1\n")
    fields = ["k", "file", "-", f"{file} {file}", "1"]
    fields[field] = "  "
    place.done("lock", "me", "60")
    said = place.guard("begin", "A", "me", "60", stdin="\t".join(fields) + "\n")
    assert (said.returncode, said.stdout) == (1, "error\twhat is to be set is not a plan\n")


@pytest.mark.parametrize("path", ["x", "a/b", "file:644:YQ==", "../x", "nowhere/"])
def test_a_path_that_begins_nowhere_is_answered(place: Place, path: str) -> None:
    said = place.guard("where", stdin=f"k\tstored\t-\t{path}\tabsent\n")
    assert said.returncode == 0
    assert said.stdout.startswith(f"file\t1\t{path}\t")


@pytest.mark.parametrize("name", ["history", "original", "-"])
def test_no_change_has_the_name_of_something_else(place: Place, name: str) -> None:
    place.done("lock", "me", "600")
    for words in (("begin", name), ("swap", "-", name)):
        said = place.guard(*words, "me", "30", stdin=f"k\tsysctl\t-\t{SYSCTL}\t0\n")
        assert (said.returncode, f"no change can be called {name}" in said.stdout) == (1, True), said
    assert place.rows("tx") == []
    assert place.value() == "1"


def test_status_changes_nothing(place: Place) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0", deadline_s=300)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for name in ("watcher", "keeper", "spare"):
            os.kill(int((place.run / name).read_text()), number)
    (place.run / "deadline.A").write_text("0\n")
    before = snapshot(place.state, place.run)
    assert place.shown("A") == "applied: overdue: nobody confirmed it, and it is not put back yet"
    assert snapshot(place.state, place.run) == before
    about = place.state / "tx/A/about"
    assert about.read_text().count("boot\t") == 1
    place.done("recover")
    assert place.value() == "1"


def keep(place: Place, count: int) -> None:
    """Make changes, one after the other."""
    for number in range(1, count + 1):
        place.set(f"P{number}", str(number % 2 if number > 1 else 0))
        place.done("confirm", f"P{number}")


def test_history_is_condensed_and_the_way_back_is_exact(place: Place) -> None:
    place.done("lock", "me", "600")
    keep(place, 70)
    place.done("begin", "A", "me", "60", stdin=f"c\tsysctl\t-\t{OTHER}\t0\n")
    place.done("apply", "A")
    place.done("confirm", "A")
    assert 50 <= len(place.rows("tx")) < 60
    assert len(list((place.state / "tx").iterdir())) == len(place.rows("tx"))
    assert "== P1/plan" in (place.state / "archive").read_text()
    assert {row[0]: (row[4], row[5]) for row in place.rows("set")} == {
        "k": ("P70", "different"),
        "c": ("A", "different"),
    }
    refused = place.guard("rollback", "B", "me", "60", "P3")
    assert "older than the last 50" in refused.stdout
    for to, wanted in (("P70", "1"), ("original", "1")):
        place.done("rollback", f"to{to}", "me", "60", to)
        place.done("apply", f"to{to}")
        assert place.value() == wanted
        place.done("undo", f"to{to}")
        assert place.value() == "0"
    history = place.state / "history"
    history.write_text(history.read_text().replace("tcp_slow", "tcp_fast"))
    assert "damaged" in place.guard("rollback", "C", "me", "60", "original").stdout
    assert place.shown("history").startswith("damaged: ")
    place.done("abandon", "history")
    assert place.shown("history") == "not there"
    assert [row[0] for row in place.rows("set")] == ["k", "c"]


def test_what_a_driver_made_of_a_value_is_noted(place: Place) -> None:
    # The kernel writes numbers its own way.
    place.done("lock", "me", "600")
    place.done("begin", "A", "me", "60", stdin="f\tsysctl\t-\tnet.ipv4.tcp_rmem\t4096  5000   6291456\n")
    assert place.done("apply", "A") == "step\t1\tf\t4096 5000 6291456\n"
    place.done("confirm", "A")
    (row,) = place.rows("set")
    assert row[6:] == ["4096 5000 6291456", "4096  5000   6291456", "4096 5000 6291456"]


@pytest.mark.parametrize("when", ["begin", "apply", "extend", "confirm"])
def test_a_full_run_ends_in_a_state_that_is_known(place: Place, when: str) -> None:
    place.enter("mkdir", "-p", "/run/wulf")
    place.enter("mount", "-t", "tmpfs", "-o", "size=160k", "none", "/run/wulf")
    place.done("lock", "me", "600")
    plan = f"k\tsysctl\t-\t{SYSCTL}\t0\n"
    verbs = [("begin", "A", "me", "300"), ("apply", "A"), ("extend", "A", "300"), ("confirm", "A")]
    for verb in verbs:
        if verb[0] == when:
            place.enter("sh", "-c", "rm -f /run/wulf/reserve; cat /dev/zero >/run/wulf/fill || true")
        said = place.guard(*verb, stdin=plan)
        if said.returncode:
            break
    if place.shown("A").startswith("confirmed"):
        assert place.value() == "0"
        return
    place.guard("undo", "A")
    assert place.shown("A").split(":")[0] in ("undone", "not there"), said
    assert place.value() == "1"


FILLS = """\
#!/bin/sh
cd "$PLACE" || exit
case $1 in
is-enabled) cat "$2.enabled" ;;
--quiet) [ "$2" = enable ] || cat /dev/zero >/var/lib/wulf/fill 2>/dev/null; echo "$2d" >"$3.enabled" ;;
esac
"""


def test_a_disk_that_becomes_full_midway_leaves_no_halves_of_files(place: Place) -> None:
    step, file = place.slowly(0)
    place.program("systemctl", FILLS)
    place.done("lock", "me", "600")
    place.done("begin", "A", "me", "300", stdin=step)
    place.enter("mount", "-o", "remount,size=2m", "/var/lib/wulf")
    place.guard("apply", "A")
    assert (place.state / "fill").exists()
    assert [left.name for left in (place.state / "tx" / "A").iterdir() if left.name.endswith(".new")] == []
    (place.state / "fill").unlink()
    place.done("undo", "A")
    assert file.read_text() == "enabled\n"


def test_what_is_confirmed_is_on_the_disk(place: Place) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed (apt install strace)")
    place.done("lock", "me", "60")
    place.set("A", "0")
    argv = place.argv("confirm", "A")
    argv[4:4] = ["strace", "-qq", "-y", "-e", "trace=fsync"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    synced = {line.partition("/tx/A/")[2].partition(">")[0] for line in done.stderr.splitlines()}
    assert {"about", "plan", "saved.1", "after.1", "values", "state.new"} <= synced


#: What somebody has put in the place of a file of the guard's.
OTHERS: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a directory": lambda path: (path / "with/others").mkdir(parents=True),
    "a link": lambda path: path.symlink_to("/nowhere/at all"),
}


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize(
    "file",
    ["state/log", "state/archive", "run/turn", "run/mutex", "run/spare.lock", "run/holder", "run/reserve"],
)
def test_something_else_in_place_of_a_file_keeps_nobody_waiting(place: Place, file: str, what: str) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0", deadline_s=2)
    where = (place.state if file.startswith("state") else place.run) / file.partition("/")[2]
    where.unlink(missing_ok=True)
    OTHERS[what](where)
    wait(lambda: place.journal("A") == "undone")
    assert place.value() == "1"
    wait(lambda: not (place.run / "spare").exists())  # the next change starts all watchers anew
    place.done("lock", "me", "600")
    place.set("B", "0")
    place.done("status")
    place.done("confirm", "B")


@pytest.mark.parametrize("asked", [True, False], ids=["asked to", "at its deadline"])
def test_what_is_set_comes_back_where_run_cannot_be_written(place: Place, asked: bool) -> None:
    place.done("lock", "me", "600")
    place.set("A", "0", deadline_s=600 if asked else 3)
    place.enter("mount", "--bind", "/run", "/run")
    place.enter("mount", "-o", "remount,bind,ro", "/run")
    if asked:
        place.done("undo", "A")
    wait(lambda: place.journal("A") == "undone", seconds=60)
    assert place.value() == "1"

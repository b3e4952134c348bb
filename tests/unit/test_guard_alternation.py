"""The guard makes either of two parts of an open change, again and again, as a probe asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.guard_place import Place, wait

pytestmark = [pytest.mark.root]

SACK = "net.ipv4.tcp_sack"
IDLE = "net.ipv4.tcp_slow_start_after_idle"


@pytest.fixture
def place(tmp_path) -> Iterator[Place]:
    made = Place(tmp_path)
    try:
        yield made
    finally:
        made.end()


def begin(place: Place, deadline_s: int = 30) -> str:
    place.done("lock", "me", "60")
    plan = f"k\tsysctl\t-\t{IDLE}\t0\nl\tsysctl\t-\t{SACK}\t0\n"
    place.done("swap", "-", "A", "me", str(deadline_s), stdin=plan)
    said = place.done("alternate", "A", "1", "2")
    return said.split("\t")[1].strip()


def ask(place: Place, where: str, letter: str) -> str:
    return place.enter(
        "sh", "-c", f'echo {letter} >{where}.ask; read -r said <{where}.answer; echo "$said"'
    ).strip()


def values(place: Place) -> list[str]:
    return place.enter("cat", *(f"/proc/sys/{name.replace('.', '/')}" for name in (IDLE, SACK))).split()


def gone(place: Place, where: str) -> bool:
    return not Path(f"/proc/{place._keeper.pid}/root{where}.ask").exists()


def test_either_part_is_made_and_the_change_is_undone_as_any_other(place):
    where = begin(place)
    assert values(place) == ["0", "0"]
    for letter, expected in (("a", ["0", "1"]), ("b", ["1", "0"]), ("b", ["1", "0"]), ("a", ["0", "1"])):
        assert ask(place, where, letter) == "ok"
        assert values(place) == expected
    assert place.journal("A") == "applied"
    place.done("undo", "A")
    assert values(place) == ["1", "1"]
    wait(lambda: gone(place, where))


def test_a_launch_after_one_that_ended_under_another_part_begins_rightly(place):
    where = begin(place)
    assert ask(place, where, "a") == "ok"
    where = place.done("alternate", "A", "1", "2").split("\t")[1].strip()
    assert ask(place, where, "b") == "ok"
    assert values(place) == ["1", "0"]
    place.done("undo", "A")
    assert values(place) == ["1", "1"]


def test_what_nobody_confirms_is_undone_between_two_requests(place):
    where = begin(place, deadline_s=4)
    assert ask(place, where, "b") == "ok"
    wait(lambda: place.journal("A") == "undone", seconds=40)
    assert values(place) == ["1", "1"]
    wait(lambda: gone(place, where))


def test_a_part_that_is_refused_is_said(place):
    place.done("lock", "me", "60")
    file = place.directory / "value"
    file.write_text("old\n")
    place.done("swap", "-", "A", "me", "30", stdin=f"k\tfile\t-\t{file}\tnew\nl\tsysctl\t-\t{SACK}\t0\n")
    where = place.done("alternate", "A", "1", "2").split("\t")[1].strip()
    assert ask(place, where, "b") == "ok"
    assert file.read_text() == "old\n"
    file.unlink()
    file.mkdir()
    assert "k=new" in ask(place, where, "a")
    file.rmdir()
    file.write_text("old\n")
    place.done("undo", "A")
    assert values(place)[1] == "1"


def test_only_steps_that_there_are_and_only_while_it_is_open(place):
    begin(place)
    assert place.guard("alternate", "A", "1", "3").returncode == 1
    place.done("undo", "A")
    assert place.guard("alternate", "A", "1", "2").returncode == 12


def test_one_that_is_ended_leaves_everything_to_the_change(place):
    where = begin(place)
    assert ask(place, where, "a") == "ok"
    assert place.kill("guard alternating")
    place.done("undo", "A")
    assert values(place) == ["1", "1"]
    assert gone(place, where)


def test_a_part_is_made_from_one_trial_to_the_next(place):
    begin(place)
    for part, expected in (("0", ["1", "1"]), ("2", ["1", "0"]), ("1,2", ["0", "0"]), ("1", ["0", "1"])):
        place.done("part", "A", part)
        assert values(place) == expected
    # What the part has already is not set again.
    place.enter("sysctl", "-q", "-w", f"{IDLE}=1")
    place.done("part", "A", "1")
    assert values(place) == ["1", "1"]
    assert place.guard("part", "A", "3").returncode == 1
    place.done("undo", "A")
    assert values(place) == ["1", "1"]
    assert place.guard("part", "A", "1").returncode == 12


@pytest.mark.parametrize("trials", [["0", "1"], ["1"], ["1", "0", "1"]])
def test_what_a_part_has_made_anew_is_known_as_ours(place: Place, trials: list[str]) -> None:
    script = "/etc/network/if-up.d/wulf-settings"
    place.enter("sh", "-c", f"mount -t tmpfs none /etc/network && mkdir {Path(script).parent}")
    place.done("lock", "me", "60")
    place.done("swap", "-", "A", "me", "30", stdin=f"{script}\tstored\t-\t{script}\tmade:A:-\n")
    for steps in trials:
        place.done("part", "A", steps)
    assert "left" not in place.done("undo", "A")
    assert place.enter("sh", "-c", f"ls {script} 2>/dev/null || echo none").strip() == "none"


def test_after_an_alternation_a_part_is_made_whatever_was_made_before(place):
    where = begin(place)
    place.done("part", "A", "1")
    where = place.done("alternate", "A", "1", "2").split("\t")[1].strip()
    assert ask(place, where, "b") == "ok"
    place.done("part", "A", "1")
    assert values(place) == ["0", "1"]
    assert gone(place, where)


def test_of_a_damaged_journal_no_part_is_made(place: Place) -> None:
    place.done("lock", "me", "60")
    place.done("swap", "-", "A", "me", "30", stdin=f"k\tsysctl\t-\t{IDLE}\t0\n")
    place.done("part", "A", "0")
    plan = place.state / "tx/A/plan"
    plan.write_text(plan.read_text().replace(IDLE, SACK))
    assert "the journal of A is damaged: plan" in place.guard("part", "A", "1").stdout
    assert values(place) == ["1", "1"]

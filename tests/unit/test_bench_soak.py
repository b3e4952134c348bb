"""What a soak changes, and when it says that something grows; the soak itself is in `tests/lab/test_soak.py`."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from bench.soak import progress as progressing
from bench.soak.progress import Days, Look, Progress
from bench.soak.settings import NOT_COVERED, POOL, covered, draw
from wulf.base import access


def looks(session: int = 1, count: int = 40, **gauges: list[float]) -> list[Look]:
    """Return looks in which gauges have these values, the last of them from there on."""
    return [
        Look(
            cycles=number,
            operations=number,
            session=session,
            gauges={
                name.replace("_", "-"): values[min(number, len(values) - 1)]
                for name, values in gauges.items()
            },
        )
        for number in range(count)
    ]


def days(**fields: object) -> Days:
    told: dict[str, object] = {
        "days": 30,
        "measured": 30,
        "skipped": 0,
        "failed": 0,
        "alarms": [],
        "database_bytes": [1],
        "gauges": [],
        "installed": 30,
        "left": [],
        "seconds": 1.0,
    }
    return Days(**(told | fields))  # type: ignore[arg-type]


def test_every_kind_of_access_is_changed_or_said_not_to_be() -> None:
    settable = {name for name, kind in access.kinds().items() if kind.settable}
    assert set(covered()) | set(NOT_COVERED) == settable
    assert not set(covered()) & set(NOT_COVERED)


def test_changes_are_of_all_kinds_in_the_order_in_which_these_are_set() -> None:
    rng = random.Random(1)
    met: set[str] = set()
    order = covered()
    for _ in range(2000):
        steps = draw(rng)
        places = [order.index(step.kind) for step in steps]
        assert places == sorted(places)
        targets = [(step.kind, step.target) for step in steps]
        assert len(set(targets)) == len(targets)
        met |= {f"{step.kind} {step.target} {step.value}" for step in steps}
    assert met == {f"{one.kind} {one.target} {value}" for one in POOL for value in one.values}


def test_what_grows_is_found() -> None:
    steady = looks(journal_bytes=[50_000.0], descriptors_systemd=[30.0])
    assert progressing.worst(progressing.growth(steady))[1] == 1.0
    leak = looks(journal_bytes=[50_000.0], memory_systemd_KiB=[3000.0 + 20 * number for number in range(40)])
    name, ratio = progressing.worst(progressing.growth(leak))
    assert name == "memory-systemd-KiB"
    assert ratio > progressing.GROWTH_GOAL
    # While a journal has not yet all that it keeps, it grows.
    young = looks(journal_bytes=[1000.0, 20_000.0, 30_000.0, 40_000.0, 50_000.0])
    assert progressing.worst(progressing.growth(young))[1] == 1.0
    # A log may grow up to its limit, and no further.
    for size, grows in ((300_000.0, False), (900_000.0, True)):
        found = progressing.growth(looks(log_bytes=[size]))
        assert (progressing.worst(found)[1] > progressing.GROWTH_GOAL) is grows


def test_another_session_has_other_processes() -> None:
    two = looks(1, 20, memory_systemd_KiB=[3000.0]) + looks(2, 20, memory_systemd_KiB=[9000.0])
    assert progressing.growth(two) == {"memory-systemd-KiB": 1.0}


@pytest.mark.parametrize(
    ("operations", "wrong", "watch", "passes"),
    [
        (100_000, [], days(), True),
        (99_999, [], days(), False),
        (100_000, ["a difference"], days(), False),
        (100_000, [], None, False),
        (100_000, [], days(left=["a unit"]), False),
        (100_000, [], days(alarms=["a node"]), False),
        (100_000, [], days(failed=1), False),
    ],
)
def test_the_last_line_passes_only_with_all_of_it(
    operations: int, wrong: list[str], watch: Days | None, passes: bool
) -> None:
    progress = Progress(
        seed=1, done={"changes": operations}, looks=looks(journal_bytes=[50_000.0]), wrong=wrong
    )
    passed, line = progressing.line_of(progress, watch)
    assert passed is passes
    assert line.startswith(f"soak value={operations} ")
    assert line.endswith(" pass" if passes else " short")


def test_what_nodes_bring_side_by_side_is_counted_together_and_judged_apart() -> None:
    large, small = looks(journal_bytes=[90_000.0]), looks(journal_bytes=[50_000.0])
    leak = looks(memory_systemd_KiB=[3000.0 + 20 * number for number in range(40)])
    both = [
        Progress(seed=1, cycles=40, sessions=1, seconds=50.0, done={"changes": 60, "undos": 50}, looks=large),
        Progress(seed=2, cycles=40, sessions=1, seconds=70.0, done={"changes": 30}, looks=small, wrong=["x"]),
    ]
    found = progressing.together(both)
    assert (found.operations, found.cycles, found.seconds, found.wrong) == (140, 80, 70.0, ["x"])
    assert progressing.worst(progressing.growth(found.looks)) == ("journal-bytes", 1.0)
    grown = progressing.together([both[0], Progress(seed=3, sessions=1, looks=leak)])
    assert progressing.worst(progressing.growth(grown.looks))[1] > progressing.GROWTH_GOAL


def test_progress_is_kept_and_gone_on_from(tmp_path: Path) -> None:
    assert progressing.read(tmp_path, 7) == Progress(seed=7)
    assert progressing.read_days(tmp_path) is None
    progress = Progress(seed=7)
    look = Look(cycles=40, operations=120, session=1, gauges={"processes": 10.0})
    progress.credit(Counter({"changes": 60, "undos": 60}), look, 50.0)
    progressing.write(tmp_path, progress)
    progressing.write(tmp_path, days())
    again = progressing.read(tmp_path, 1)
    assert (again, again.seed, again.operations, again.cycles) == (progress, 7, 120, 40)
    assert progressing.read_days(tmp_path) == days()
    assert again.left_s(240) == pytest.approx(50.0)
    (tmp_path / "progress.json").write_text("{")
    with pytest.raises(SystemExit, match=r"progress\.json.*remove it, or choose another"):
        progressing.read(tmp_path, 7)

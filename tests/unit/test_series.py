"""A series over time, on a clock that only its blocks and its pauses move."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import msgspec
import pytest

from tests.unit.make_records import PAIR, manifest, operation, plan, result, sample
from wulf.base import store
from wulf.base.errors import UsageError
from wulf.base.records import LaunchResult, Series
from wulf.face.cli.measure_progress import what_fits
from wulf.node.measuring import fitting, loop, series
from wulf.node.measuring.session import MeasureRequest

BEGUN = "2026-11-27T09:00:00+00:00"
HOURLY = Series(every_s=3600.0, for_s=5 * 3600.0, begun_at=BEGUN, time_zone="CET (UTC+01:00)")
OTHER = ("node02", "node01")


class Clock:
    def __init__(self):
        self.begun = self.now = datetime.fromisoformat(BEGUN).timestamp()

    def time(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    @property
    def over_s(self):
        return self.now - self.begun


class Watcher:
    def __init__(self):
        self.stages, self.paused_s, self.said, self.states = [], [], [], []

    def stage(self, text):
        self.stages.append(text)

    def paused(self, until_next_s, spent_s, left_s):
        assert spent_s + left_s == pytest.approx(5 * 3600.0)
        self.paused_s.append(until_next_s)

    def fits(self, plan, fit, spent_s):
        self.said.append(fit)

    def launched(self, state):
        self.states.append(state)


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(series.time, "time", found.time)
    monkeypatch.setattr(series.time, "sleep", found.sleep)
    monkeypatch.setattr(series.time, "monotonic", found.time)
    monkeypatch.setattr(series, "SHOWN_EVERY_S", 60.0)
    return found


def blocks(clock, lasts_s, begun=False):
    """When blocks began [s] that take so long."""
    began, watcher = [], Watcher()

    def block():
        began.append(clock.over_s)
        clock.now += lasts_s

    series.measure(HOURLY, block, watcher, begun=begun)
    return began, watcher


def test_blocks_are_made_at_their_times_and_pauses_are_shown(clock):
    began, watcher = blocks(clock, 100.0)
    assert began == pytest.approx([0, 3600, 7200, 10800, 14400])
    assert watcher.paused_s[:2] == pytest.approx([3500, 3440])
    assert watcher.stages[0] == "block 1 of 5"
    assert "block 2 of 5 begins at" in watcher.stages[1] and watcher.stages[2] == "block 2 of 5"


def test_blocks_that_one_runs_into_are_left_out(clock):
    began, _ = blocks(clock, 4000.0)
    assert began == pytest.approx([0, 7200, 14400])


def test_what_an_interruption_has_missed_is_not_made_up_for(clock):
    clock.now += 2.5 * 3600
    began, watcher = blocks(clock, 10.0, begun=True)
    assert began == pytest.approx([10800, 14400])
    assert watcher.stages[-1] == "block 5 of 5"


def test_a_series_that_is_over_has_no_further_block(clock):
    clock.now += 5 * 3600
    assert blocks(clock, 10.0, begun=True)[0] == []


def wanted(**changes):
    values = dict(pairs=[PAIR, OTHER], sizes_bytes=[64], budget_s=HOURLY.for_s, series=HOURLY, max_launches=6)
    return plan(**values | changes)


def run(path, clock, fails=lambda what: False, interrupt_at=None, earlier=()):
    def launch(what):
        if interrupt_at is not None and what.index == interrupt_at:
            raise KeyboardInterrupt
        clock.now += 10
        status = "failed" if fails(what) else "ok"
        made = result(what.index, (64,), status, what.place, what.op, what.purpose)
        at = datetime.fromtimestamp(clock.now, UTC).isoformat()
        samples = [sample(what.index, 64, 10, what.place, what.op)] if status == "ok" else []
        return LaunchResult(launch=msgspec.structs.replace(made.launch, started_at=at), samples=samples)

    watcher = Watcher()
    writer = store.resume(path)[1] if earlier else store.create(path, manifest(plan=wanted()))
    with writer:
        found, analysis = loop.measure(writer, list(earlier), launch, watcher)
    return found, analysis, watcher


def test_every_block_has_one_launch_of_everything(tmp_path, clock):
    found, analysis, watcher = run(tmp_path / "r", clock)
    assert found.manifest.status == "complete"
    assert [launch.place for launch in found.launches].count(PAIR) == 5, "one in each block, and no more"
    assert len(found.launches) == 10
    assert {len({launch.place for launch in found.launches[n : n + 2]}) for n in range(0, 10, 2)} == {2}
    assert {one.period for one in analysis.periods} >= {"weekday"}
    assert [fit.expected_s for fit in watcher.said] and watcher.said[0].complete
    assert all(state.left.most_s == pytest.approx(HOURLY.for_s - state.spent_s) for state in watcher.states)


def test_a_pair_that_fails_is_tried_again_in_every_block(tmp_path, clock):
    found, _, _ = run(tmp_path / "r", clock, fails=lambda what: what.place == PAIR)
    failed = [launch for launch in found.launches if launch.status == "failed"]
    assert len(failed) == 5 and {launch.place for launch in failed} == {PAIR}


def test_a_series_is_interrupted_and_goes_on_at_its_times(tmp_path, clock):
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "r", clock, interrupt_at=3)
    before = store.load(tmp_path / "r")
    assert before.manifest.status == "interrupted" and len(before.results) == 3
    clock.now += 3600
    found, _, _ = run(tmp_path / "r", clock, earlier=before.results)
    assert found.manifest.status == "complete"
    began = [datetime.fromisoformat(launch.started_at).timestamp() - clock.begun for launch in found.launches]
    assert began == pytest.approx([10, 20, 3610, 10810, 10820, 14410, 14420])


def test_the_plan_of_a_series_says_what_it_will_do():
    fit = fitting.forecast(wanted(), [operation()], 0.1)
    (line,) = what_fits(wanted(), fit)
    assert line.startswith("5 blocks, one every 60 min until Fri 27 Nov")
    assert "CET (UTC+01:00): mpi_pingpong on 2 pairs, 1 size: one launch each" in line.replace(
        "size,", "size:"
    )
    tight = wanted(series=msgspec.structs.replace(HOURLY, every_s=1.0, for_s=10.0))
    lines = what_fits(tight, fitting.forecast(tight, [operation()], 5.0))
    assert "a block takes longer than that: some will be left out" in lines[1]


def test_the_time_zone_is_named_with_its_offset(monkeypatch):
    monkeypatch.setenv("TZ", "EST5")
    time.tzset()
    try:
        assert series.time_zone() == "EST (UTC-05:00)"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_series_is_no_shorter_than_from_one_block_to_the_next():
    words = dict(config=None, pairs=[PAIR], ladder="imb", sizes_bytes=[1])
    with pytest.raises(UsageError, match="--every 60s"):
        MeasureRequest(**words, every_s=60.0, budget_s=30.0)
    with pytest.raises(UsageError, match=r"--every 0\.1s: at least a second"):
        MeasureRequest(**words, every_s=0.1)
    assert MeasureRequest(**words, every_s=60.0, budget_s=60.0).every_s == 60

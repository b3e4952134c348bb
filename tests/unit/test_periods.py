"""A series by period: the weekend against weekdays, hours of the day."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
import numpy as np
import pytest

from tests.unit.make_records import PAIR, manifest, operation, plan, result, sample
from tests.unit.pages import operations, said, table
from wulf.base import store
from wulf.base.records import LaunchResult, Series
from wulf.node.measuring.analysis import analyze
from wulf.page.terminal import page_text
from wulf.tools.measure.page import view
from wulf.tools.measure.page.export import json

#: A Monday, 00:30 in the local time of a controller two hours east of Greenwich.
MONDAY = "2026-11-22T22:30:00+00:00"
EAST_S = 7200
SIZES = (64, 1024)


def measured(path, hours, slower=lambda local: 1.0, every_h=1, series=True, seed=0):
    """Analyse launches over so many hours that take so many times as long as usual at each time."""
    of = Series(every_s=3600.0 * every_h, for_s=3600.0 * hours, begun_at=MONDAY, time_zone="EET (UTC+02:00)")
    wanted = plan(pairs=[PAIR], sizes_bytes=SIZES, series=of if series else None, tested_launches=24)
    with store.create(path, manifest(plan=wanted, operations=[operation()])) as writer:
        for index in range(hours // every_h):
            began = datetime.fromisoformat(MONDAY) + timedelta(hours=index * every_h)
            factor = slower(began + timedelta(seconds=EAST_S))
            launch = msgspec.structs.replace(
                result(index).launch,
                started_at=began.isoformat(),
                utc_offset_s=EAST_S,
                sizes_bytes=list(SIZES),
            )
            samples = [sample(index, size, factor * (10 + size / 100), seed=seed) for size in SIZES]
            writer.append(LaunchResult(launch=launch, samples=samples))
        writer.update(status="complete")
    run = store.load(path)
    return run, analyze(run)


def slow_weekend(local):
    return 1.2 if local.weekday() >= 5 else 1.0


def slow_nine(local):
    return 1.5 if local.hour == 9 else 1.0


def test_the_weekend_is_held_against_weekdays(tmp_path):
    _, analysis = measured(tmp_path / "r", 7 * 24, slow_weekend)
    assert [one.cell.size_bytes for one in analysis.weekends] == list(SIZES)
    for one in analysis.weekends:
        assert one.ratio.value == pytest.approx(1.2, rel=0.02)
        assert one.ratio.low is None, "of two weekend days nobody knows how much the next ones differ"
        assert (one.weekdays, one.weekend_days) == (5, 2)
    week = {
        (one.cell.size_bytes, one.period): one for one in analysis.periods if one.period.startswith("week")
    }
    assert {key: one.time.n for key, one in week.items()} == {
        (size, period): n for size in SIZES for period, n in (("weekday", 120), ("weekend", 48))
    }
    assert week[64, "weekday"].time.low < 10.64e-6 < week[64, "weekday"].time.high


def test_hours_are_those_of_the_controller(tmp_path):
    _, analysis = measured(tmp_path / "r", 7 * 24, slow_nine)
    hours = {
        one.period: one for one in analysis.periods if one.cell.size_bytes == 64 and len(one.period) == 2
    }
    assert sorted(hours) == [f"{hour:02d}" for hour in range(24)]
    assert {one.time.n for one in hours.values()} == {7}
    assert max(hours, key=lambda hour: hours[hour].time.value) == "09"
    assert hours["09"].time.low > hours["08"].time.high


def test_too_few_launches_at_the_weekend_claim_nothing(tmp_path):
    """Until Saturday 04:30 there are five of them: an interval takes six."""
    _, analysis = measured(tmp_path / "r", 5 * 24 + 5, slow_weekend)
    assert {one.period for one in analysis.periods} >= {"weekday", "weekend"}
    assert analysis.weekends == []
    _, analysis = measured(tmp_path / "s", 5 * 24 + 6, slow_weekend)
    assert len(analysis.weekends) == 2


def test_days_that_differ_make_the_interval_wider(tmp_path):
    def of_days(spread):
        rng = np.random.default_rng(1)
        days = np.exp(spread * rng.standard_normal(40))
        return lambda local: slow_weekend(local) * float(days[local.toordinal() % 40])

    widths = []
    for spread in (0.0, 0.05):
        _, analysis = measured(tmp_path / f"r{spread}", 28 * 24, of_days(spread), every_h=4)
        ratio = analysis.weekends[0].ratio
        assert ratio.low < 1.2 < ratio.high
        widths.append(ratio.high - ratio.low)
    assert widths[1] > 2 * widths[0]


@pytest.mark.thorough
def test_no_difference_is_found_where_there_is_none(tmp_path):
    missed = 0
    for seed in range(20):
        days = np.exp(0.05 * np.random.default_rng(seed).standard_normal(28))
        _, analysis = measured(
            tmp_path / f"r{seed}",
            28 * 24,
            lambda local, days=days: float(days[local.toordinal() % 28]),
            8,
            seed=seed,
        )
        missed += not analysis.weekends[0].ratio.low <= 1 <= analysis.weekends[0].ratio.high
    assert missed <= 4, "of 20 intervals of 95 %"


def test_other_runs_have_no_periods(tmp_path):
    _, analysis = measured(tmp_path / "r", 48, series=False)
    assert analysis.periods == [] == analysis.weekends


def test_the_report_has_them(tmp_path):
    run, analysis = measured(tmp_path / "r", 7 * 24, slow_weekend)
    shown = view.build(run.manifest, run.nodes, run.launches, analysis)
    over_time = table(shown, "By day and hour")
    row = [item.text for item in over_time.rows[0]]
    assert row[:3] == ["mpi_pingpong", "node01 → node02", "64 B"]
    assert row[5].endswith("(no interval)") and row[5].startswith(("+19", "+20", "+21"))
    assert "2 weekend days against 5 weekdays" in over_time.note and "EET (UTC+02:00)" in over_time.note
    figures = {figure.id: figure for figure in operations(shown)[0].detail}
    week, hours = figures["op0-week"].variants[0], figures["op0-hours"].variants[0]
    assert list(week.datasets["main"]["period"]) == [
        "64 B weekday", "64 B weekend", "1 KiB weekday", "1 KiB weekend",
    ]  # fmt: skip
    assert len(hours.datasets["main"]["period"]) == 48
    assert "one block every 60 min for 168 h" in said(shown)[-1]
    text = page_text(view.build(run.manifest, run.nodes, run.launches, analysis))
    assert "Over time" in text and "weekend against weekdays" in text
    assert b'"periods"' in json(run.manifest, run.nodes, run.launches, analysis)


@pytest.mark.parametrize("hours", [5, 30])
def test_a_report_of_weekdays_alone_says_so(tmp_path, hours):
    run, analysis = measured(tmp_path / "r", hours)
    shown = view.build(run.manifest, run.nodes, run.launches, analysis)
    over_time = table(shown, "By day and hour")
    row = [item.text for item in over_time.rows[0]]
    assert row[4] == "unknown: no launch" and row[5] == "unknown: too few launches"

"""What a trial reads of a launch: statistics that move as the time of many messages does."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.unit.make_records import operation, result, workload
from wulf.base.records import Metric, ProbeFigure
from wulf.node.trials.bench import TrialRunner
from wulf.stats.estimate import sample_mean, sample_quantiles

SIZE = 64
FIGURES = [
    ProbeFigure(op="mpi_pingpong", size_bytes=SIZE, statistic=statistic)
    for statistic in ("median", "mean", "p99")
]


def launch_of(times_ns):
    """A launch whose round trips took these times."""
    values, counts = np.unique(np.asarray(times_ns).round().astype(int), return_counts=True)
    made = result(sizes=(SIZE,))
    histogram = list(zip(values.tolist(), counts.tolist(), strict=True))
    return msgspec.structs.replace(
        made, samples=[msgspec.structs.replace(made.samples[0], histogram=histogram)]
    )


def times(count=4000, seed=1):
    return 40_000 * np.exp(0.02 * np.random.default_rng(seed).standard_normal(count))


def read(launch, figures=FIGURES):
    """What a trial reads of this launch."""
    op = operation()
    runner = TrialRunner(None, None, None, lambda _: launch, [], {op.name: op})
    return runner.measure(workload(), figures, 1).values


def test_a_fifth_of_the_messages_at_twice_the_time_moves_the_mean_and_not_the_median():
    rng = np.random.default_rng(2)
    usual = times()
    slowed = np.where(rng.random(usual.size) < 0.2, 2 * usual, usual)
    before, after = read(launch_of(usual)), read(launch_of(slowed))
    ratios = {name: after[name] / before[name] for name in before}
    assert ratios["mpi_pingpong 64 B mean"] == pytest.approx(slowed.mean() / usual.mean(), rel=1e-3)
    assert ratios["mpi_pingpong 64 B mean"] == pytest.approx(1.2, abs=0.02)
    assert ratios["mpi_pingpong 64 B"] == pytest.approx(1.0, abs=0.01)
    assert ratios["mpi_pingpong 64 B p99"] > 1.9


def test_one_stall_among_thousands_moves_nothing():
    usual = times()
    stalled = np.append(usual[1:], 100 * usual[0])
    before, after = read(launch_of(usual)), read(launch_of(stalled))
    assert stalled.mean() / usual.mean() > 1.02
    assert after["mpi_pingpong 64 B mean"] / before["mpi_pingpong 64 B mean"] == pytest.approx(1.0, abs=0.01)


def test_two_modes_that_change_their_shares_move_the_mean():
    """Interrupt moderation that adapts: 40 or 136 µs, and a packet filter that makes the slow one more frequent."""
    few, many = ([40_000] * (1000 - slow) + [136_000] * slow for slow in (200, 300))
    before, after = read(launch_of(few)), read(launch_of(many))
    assert after["mpi_pingpong 64 B mean"] / before["mpi_pingpong 64 B mean"] == pytest.approx(
        np.mean(many) / np.mean(few)
    )
    assert after["mpi_pingpong 64 B"] == before["mpi_pingpong 64 B"]


def test_a_single_value_is_its_own_mean():
    (sample,) = launch_of([40_000]).samples
    assert sample_mean(sample) == sample_quantiles(sample, [0.5])[0] == pytest.approx(20e-6)


def test_what_is_wanted_is_read_and_nothing_else():
    assert list(read(launch_of(times()), FIGURES[:1])) == ["mpi_pingpong 64 B"]


def test_metrics_of_old_runs_are_medians():
    raw = {
        "name": "mpi_pingpong 64 B",
        "pattern": "ping-pong",
        "unit": "s",
        "better": "lower",
        "weight": 1.0,
        "figure": {"op": "mpi_pingpong", "size_bytes": SIZE},
    }
    figure = msgspec.convert(raw, Metric).figure
    assert list(read(launch_of(times()), [figure])) == [raw["name"]]

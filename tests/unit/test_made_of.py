"""What intervals are made of: parts of known size are found, and a source without any is not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.predict_fixture import calibrated_run, ring
from wulf.node.replay import asking, predicting
from wulf.stats.prediction import made_of, uncertainty
from wulf.stats.prediction.draws import Sample

BASE = made_of.Calibration(origin="my runs/cal 1", launches=6, time_s=600.0)
EXCHANGE = [f"my runs/cal 1 between mpi_exchange{size}" for size in ("", " 1", " 1024")]
NAMES = [
    *EXCHANGE,
    *(f"my runs/cal 1 between mpi_pingpong {size}" for size in (1, 64, 1024, 4096)),
    "my runs/cal 1 launch",
    "runs/other within mpi_recv_overhead 1",
    "10gbe latency",
    "10gbe send base",
    "compute",
    "making",
    "misfit",
]


def drawn(count=200, seed=3):
    draws = [Sample(seed, number) for number in range(count)]
    for draw in draws:
        for name in NAMES:
            draw.of(name)
    return draws


def numbers(draws, name):
    return np.array([draw.of(name) for draw in draws])


def found(times, draws):
    interval = uncertainty.estimate(float(np.median(times)), times, "s", "test")
    (parts,) = made_of.parts(draws, times[:, None], [interval], BASE)
    return interval, {one.what: one for one in parts}


@pytest.mark.parametrize("seed", range(5))
def test_parts_of_known_size_are_found(seed):
    draws = drawn(seed=seed)
    logs = 0.3 * (numbers(draws, EXCHANGE[0]) + numbers(draws, EXCHANGE[2])) / np.sqrt(2)
    logs += 0.15 * numbers(draws, "compute") + 0.1 * numbers(draws, "10gbe latency")
    interval, parts = found(np.exp(logs), draws)
    whole = 0.3**2 + 0.15**2 + 0.1**2
    exchange = parts["mpi_exchange of the calibration"]
    assert exchange.share == pytest.approx(0.3**2 / whole, abs=0.12)
    assert exchange.without == pytest.approx(interval.half_width_ratio * np.sqrt(1 - exchange.share))
    assert exchange.narrower == "6 launches tell it: --min-launches 18 --budget 30m"
    assert parts["what the program computes"].share == pytest.approx(0.15**2 / whole, abs=0.12)
    assert not {"mpi_pingpong of the calibration", "how the model fits the program"} & parts.keys()
    assert next(iter(parts)) == "mpi_exchange of the calibration"


def test_what_is_drawn_at_either_end_is_found_wholly():
    draws = drawn()
    _, parts = found(np.exp(0.2 * np.sign(numbers(draws, "making"))), draws)
    assert list(parts) == ["by which call communicators are made"]
    assert parts["by which call communicators are made"].share == pytest.approx(1.0, abs=0.01)


def test_each_source_says_what_it_is():
    draws = drawn()
    _, parts = found(
        np.exp(0.2 * numbers(draws, "10gbe latency") + 0.2 * numbers(draws, "10gbe send base")), draws
    )
    assert list(parts) == ["the parameters of 10gbe"] and "@RUN" in parts["the parameters of 10gbe"].narrower
    _, parts = found(np.exp(0.2 * numbers(draws, "runs/other within mpi_recv_overhead 1")), draws)
    assert list(parts) == ["mpi_recv_overhead of the calibration other"]


def test_a_narrow_interval_needs_no_reason_and_few_samples_tell_none():
    draws = drawn()
    assert found(np.exp(0.005 * numbers(draws, "compute")), draws)[1] == {}
    assert found(np.ones(200), draws)[1] == {}
    few = drawn(60)
    assert found(np.exp(0.3 * numbers(few, "compute")), few)[1] == {}


def test_a_prediction_says_what_its_intervals_are_made_of(tmp_path):
    """A named network whose parameters nobody has measured here: its own are what makes the interval wide."""
    request = asking.PredictRequest(
        source=ring(tmp_path / "r.wtrace", compute_ns=1000),
        run=calibrated_run(tmp_path / "cal"),
        what_if="10gbe",
        samples=200,
    )
    told = predicting.predict(request, lambda _: None)
    (faster,) = told.scenarios
    assert faster.made_of[0].what == "the parameters of 10gbe" and faster.made_of[0].share > 0.5
    assert told.base.made_of == [] or told.base.time.half_width_ratio > 0.02

"""What adjusted figures promise, by simulation: intervals hold, and nothing is adjusted by what it does not follow."""

import math

import msgspec
import numpy as np
import pytest

from tests.unit.make_cells import analysis, cell
from tests.unit.make_records import PAIR, plan, result
from wulf.base.records import Reference
from wulf.stats.core import adjusted
from wulf.stats.core.covariates import huber
from wulf.stats.estimate import adjust, reference_adjustment

SLOPE, SPREAD, MOVES = 0.7, 0.02, 0.06
ERRORS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "heavy tail (t, 2 degrees)": lambda rng, n: rng.standard_t(2, n),
    "skewed": lambda rng, n: np.exp(rng.standard_normal(n)) - 1,
    "one in ten far off": lambda rng, n: (
        rng.standard_normal(n) + 6 * (rng.random(n) < 0.1) * rng.choice([-1, 1], n)
    ),
}


def covers(errors, rng, n, cells, far):
    """Whether the interval of the first of some cells holds its median where the reference is `far` spreads away."""
    x = MOVES * rng.standard_normal((cells, n))
    y = SLOPE * x + SPREAD * errors(rng, cells * n).reshape(cells, n)
    design = np.column_stack([np.repeat(np.eye(cells), n, axis=0), x.ravel()])
    found = adjusted.median(y[0], x[0][:, None] - far * MOVES, huber(design, y.ravel()))
    return found.low <= SLOPE * far * MOVES <= found.high


@pytest.mark.thorough
@pytest.mark.parametrize("name", ERRORS)
def test_adjusted_intervals_cover_what_they_say(name):
    rng = np.random.default_rng(7)
    for n, cells, far in [(6, 1, 0), (6, 3, 1.5), (12, 1, 1.5), (12, 3, 0), (40, 1, 0), (40, 1, 1.5)]:
        share = np.mean([covers(ERRORS[name], rng, n, cells, far) for _ in range(500)])
        # 95 % ± 2 % of the method, and three standard errors of so few runs.
        assert 0.93 - 0.03 <= share <= 1 - 0.005, (name, n, cells, far, share)


def run(rng, n, slope, step=0.0, moved=0.0):
    """A run of one cell of median 10 µs × e^step, its references spread, its times on a slope of them."""
    references = moved + MOVES * rng.standard_normal(n)
    medians = 1e-5 * np.exp(step + slope * references + SPREAD * rng.standard_normal(n))
    cells = [cell(64, medians)]
    results = [with_reference(result(index), 2e-6 * math.exp(x)) for index, x in enumerate(references)]
    return adjust(cells, results, plan(min_launches=n), at_s=2e-6)


def with_reference(one, time_s):
    return msgspec.structs.replace(
        one, references=[Reference(place=PAIR, medians_ns=[[time_s * 1e9]] * 2, at_us=[100])]
    )


@pytest.mark.thorough
def test_what_does_not_follow_the_reference_is_hardly_ever_adjusted():
    rng = np.random.default_rng(8)
    found = [run(rng, 10, 0.0)[0].adjusted for _ in range(1000)]
    assert sum(one is not None for one in found) <= 15  # half of 1 %: only slopes upwards count


@pytest.mark.thorough
def test_what_is_adjusted_covers_the_truth_and_is_narrower():
    rng = np.random.default_rng(9)
    cells = [run(rng, 12, SLOPE)[0] for _ in range(600)]
    offered = [one for one in cells if one.adjusted]
    assert len(offered) > 0.9 * len(cells)
    held = np.mean([one.adjusted.time.low <= 1e-5 <= one.adjusted.time.high for one in offered])
    assert 0.92 <= held <= 0.985
    narrower = [one.time.half_width_ratio / one.adjusted.time.half_width_ratio for one in offered]
    assert np.median(narrower) > 1.5


def test_adjusted_changes_of_runs_cover_the_truth():
    rng = np.random.default_rng(10)
    held, offered, width = 0, 0, []
    for _ in range(400):
        base, candidate = (analysis(run(rng, 15, SLOPE, step)) for step in (0.0, 0.03))
        found = reference_adjustment.ratios(base, candidate, [])["mpi_pingpong"]
        if found.ratio is not None:
            offered += 1
            held += found.ratio.low <= math.exp(0.03) <= found.ratio.high
            width.append(found.ratio.high / found.ratio.low)
    assert offered > 0.85 * 400  # one in twenty has a reference that seems to have moved
    assert 0.92 <= held / offered <= 0.98
    assert np.median(width) < 1.05

"""What the tuner promises, by simulation; `bench/tune_sim.py` has the full table."""

import numpy as np
import pytest

from bench import tune_sim
from tests.unit.make_search import factors, knob, make_plan, tuned
from wulf.stats.core.paired import paired_shift

NOISES = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "heavy tail": lambda rng, n: rng.standard_t(2, n),
    "outliers": lambda rng, n: rng.standard_normal(n) + 30 * (rng.random(n) < 0.1),
    "two modes": lambda rng, n: rng.standard_normal(n) + 8 * (rng.random(n) < 0.3),
    "skewed": lambda rng, n: rng.exponential(size=n),
    "quantised": lambda rng, n: np.round(2 * rng.standard_normal(n)) / 2,
}


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("n", [6, 10, 20])
def test_paired_intervals_cover_what_they_say(name, n):
    rng = np.random.default_rng(9)
    runs, covered, false = 1500, 0, 0
    for _ in range(runs):
        base, tried = NOISES[name](rng, n), NOISES[name](rng, n)
        found = paired_shift(0.01 * (tried - base) + 0.05)
        covered += found.ratio.low <= np.exp(0.05) * (1 + 1e-12) and found.ratio.high >= np.exp(0.05) * (
            1 - 1e-12
        )
        false += paired_shift(tried - base).p_value <= 0.05
    # 95 %, and three standard errors of so few runs; exact intervals of few values cover more.
    assert covered / runs >= 0.95 - 0.017
    assert false / runs <= 0.05 + 0.017


@pytest.mark.thorough
def test_nothing_is_kept_by_chance():
    plan = [knob(f"k{i}") for i in range(8)]
    kept = [tuned(make_plan(*plan, seed=seed), factors(), spread=0.03, seed=seed).kept for seed in range(60)]
    assert sum(map(bool, kept)) <= 2


def test_the_right_settings_are_found():
    outcomes = tune_sim.simulate(30, seed=21)
    assert tune_sim.gain(outcomes) >= 0.8
    assert sum(outcome.false for outcome in outcomes) <= 2
    assert sum(outcome.harms for outcome in outcomes) <= 2


@pytest.mark.thorough
def test_the_bench_runs(capsys):
    tune_sim.main(["--quick"])
    assert capsys.readouterr().out.splitlines()[-1].startswith("tune-sim value=gain:")

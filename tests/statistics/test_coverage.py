"""What the intervals promise, by simulation; `bench/coverage.py` has the full table."""

import numpy as np
import pytest

from bench import coverage


@pytest.mark.parametrize("name", coverage.DISTRIBUTIONS)
def test_printed_intervals_cover_what_they_say(name):
    rng = np.random.default_rng(7)
    runs = 600
    for spread in (0.01, 0.03):
        share, _ = coverage.coverage(coverage.DISTRIBUTIONS[name](rng, runs, spread))
        # 95 % ± 2 % of the method, and three standard errors of so few runs.
        assert 0.93 - 0.027 <= share <= 0.97 + 0.02, (name, spread, share)


def test_without_the_correction_for_repeated_looks_the_coverage_is_too_low(monkeypatch):
    monkeypatch.setattr(coverage, "interim_confidence", lambda n, first: 0.95)
    rng = np.random.default_rng(7)
    share, _ = coverage.coverage(coverage.DISTRIBUTIONS["normal"](rng, 3000, 0.04))
    assert share < 0.93

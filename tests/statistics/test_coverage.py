"""What the intervals promise, by simulation; `bench/coverage.py` has the full table."""

import numpy as np
import pytest

from bench import coverage


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*coverage.DISTRIBUTIONS, *coverage.DEPENDENT])
def test_printed_intervals_cover_what_they_say(name):
    rng = np.random.default_rng(7)
    worlds = coverage.DISTRIBUTIONS | coverage.DEPENDENT
    runs = 600
    for spread in (0.01, 0.03):
        found = coverage.coverage(worlds[name](rng, runs, spread))
        # 95 % ± 2 % of the method, and three standard errors of so few runs.
        assert 0.93 - 0.027 <= found.covered <= 0.97 + 0.02, (name, spread, found)
        if name in coverage.DISTRIBUTIONS and name != "drift":
            assert found.warned <= 0.06 + 0.03


def test_without_the_correction_for_repeated_looks_the_coverage_is_lower(monkeypatch):
    launches = coverage.DISTRIBUTIONS["normal"](np.random.default_rng(7), 3000, 0.05)
    corrected = coverage.coverage(launches).covered
    monkeypatch.setattr(coverage, "interim_confidence", lambda n, first: 0.95)
    assert coverage.coverage(launches).covered < corrected


def test_without_widening_launches_that_depend_on_each_other_are_not_covered(monkeypatch):
    launches = coverage.DEPENDENT["AR(1) 0.5"](np.random.default_rng(7), 1000, 0.03)
    monkeypatch.setattr(coverage, "inflation", lambda values: np.ones(len(values)))
    assert coverage.coverage(launches).covered < 0.85


def test_regimes_are_found_more_often_than_not():
    found = coverage.coverage(coverage.HIDDEN["regimes of 4 to 12"](np.random.default_rng(7), 600, 0.03))
    assert found.warned >= 0.7
    assert found.covered < 0.93, "no interval of so few states holds: see the sentence that is always printed"

"""Which of several ways is fastest: seldom said where all are alike, found where one is."""

from __future__ import annotations

import numpy as np

from wulf.stats.estimate.ranking import rank, rounds_needed

WAYS = [f"way{number}" for number in range(5)]


def rates(rng, faster=0.0, scatter=0.03, nodes=("a", "b")):
    """Rounds whose level wanders, so that only pairs within a round tell the ways apart."""
    rounds = rounds_needed(len(WAYS))
    drift = np.cumsum(rng.normal(0, 0.05, rounds))
    return {
        way: [
            {
                node: float(50 * np.exp(level + (faster if way == "way3" else 0) + rng.normal(0, scatter)))
                for node in nodes
            }
            for level in drift
        ]
        for way in WAYS
    }


def test_what_is_alike_is_seldom_told_apart():
    rng = np.random.default_rng(5)
    tries = 400
    wrong = sum(any(one.verdict == "slower" for one in rank(rates(rng), 0.0)) for _ in range(tries))
    assert wrong <= 0.05 * tries + 2 * (0.05 * 0.95 * tries) ** 0.5


def test_the_fastest_is_found_and_its_interval_holds_the_truth():
    rng = np.random.default_rng(6)
    held = told = 0
    for _ in range(100):
        first, *others = rank(rates(rng, faster=0.1), 0.02)
        told += first.library == "way3" and all(one.verdict == "slower" for one in others)
        held += sum(one.ratio.low <= np.exp(-0.1) <= one.ratio.high for one in others)
    assert told >= 95
    assert held >= 0.92 * 400


def test_what_hardly_scatters_and_is_alike_is_no_difference():
    found = rank(rates(np.random.default_rng(7), scatter=0.002), 0.02)
    assert {one.verdict for one in found[1:]} == {"no difference"}

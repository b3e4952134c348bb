"""Evidence that may be looked at after every value (`wulf.stats.core.evalues`)."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wulf.stats.core.evalues import Positive, more, not_twice, rare

SIZES = st.lists(st.floats(0, 1e3), min_size=1, max_size=6)


def staked(values: list[float], beyond: float = 0.0) -> float:
    evidence = Positive(beyond)
    for value in values:
        evidence.take(value)
    return evidence.e_value


@given(SIZES)
def test_signs_that_say_nothing_gain_nothing_whatever_the_sizes(sizes: list[float]) -> None:
    """Exactly, over all signs that values of these sizes may have: no scatter has to be known."""
    signs = itertools.product((-1, 1), repeat=len(sizes))
    gains = [staked([sign * size for sign, size in zip(some, sizes, strict=True)]) for some in signs]
    assert math.fsum(gains) / len(gains) == pytest.approx(1.0)


@given(SIZES, st.floats(0, 10))
def test_what_is_lower_is_less_evidence(sizes: list[float], lower: float) -> None:
    assert staked([size - lower for size in sizes]) <= staked(sizes)
    assert staked(sizes, lower) == pytest.approx(staked([size - lower for size in sizes]))


def test_ten_clear_values_are_evidence_and_one_to_the_contrary_does_not_ruin_it() -> None:
    assert staked([0.05] * 10) > 200
    assert staked([0.05] * 10 + [-math.inf] + [0.05] * 10) > 200
    assert staked([math.inf] * 10) > 200
    with pytest.raises(ValueError, match="not a number"):
        staked([math.nan])


def binomial(k: int, n: int, share: float) -> float:
    return math.comb(n, k) * share**k * (1 - share) ** (n - k)


@pytest.mark.parametrize("n", [1, 5, 40])
@pytest.mark.parametrize("worse", [1.0, 1.5, 4.0])
def test_rare_losses_are_no_evidence_where_the_share_is_lost_or_more(n: int, worse: float) -> None:
    share = 0.05
    expected = math.fsum(binomial(k, n, worse * share) * rare(k, n, share) for k in range(n + 1))
    assert expected <= 1 + 1e-9
    assert rare(0, 10_000, 0.002) > 1000
    assert rare(40, 10_000, 0.002) < 1


@pytest.mark.parametrize("total", [0, 1, 7, 60])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5])
def test_as_many_or_fewer_losses_than_before_are_no_evidence_of_more(total: int, share: float) -> None:
    expected = math.fsum(binomial(k, total, share) * more(k, total - k) for k in range(total + 1))
    assert expected <= 1 + 1e-9
    assert more(30, 2) > 1000


@pytest.mark.parametrize("share", [2 / 3, 0.8, 1.0])
def test_twice_as_many_losses_are_no_evidence_that_it_is_not_so(share: float) -> None:
    for total in (0, 1, 9, 50):
        expected = math.fsum(binomial(k, total, share) * not_twice(k, total - k) for k in range(total + 1))
        assert expected <= 1 + 1e-9
    assert not_twice(100, 100) > 200


@pytest.mark.parametrize(
    "call", [lambda: rare(2, 1, 0.1), lambda: rare(-1, 1, 0.1), lambda: more(-1, 0), lambda: not_twice(0, -1)]
)
def test_counts_that_cannot_be(call) -> None:
    with pytest.raises(ValueError, match="lost"):
        call()

"""The ladders, and where sizes are added."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wulf.base.errors import UsageError
from wulf.node.probe import ladder


def refined(time_of, base, rounds=40, tolerance=0.02):
    """Refine with exact times until nothing is added; the ladder that results."""
    sizes = set(base)
    for _ in range(rounds):
        added = ladder.refine({s: time_of(s) for s in sizes}, {}, tolerance)
        if not added:
            return sorted(sizes)
        sizes |= set(added)
    pytest.fail("bisection does not end")


def test_adaptive_begins_with_powers_of_two_and_their_neighbours():
    assert ladder.base_sizes("adaptive", 16) == [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16]


def test_named_ladders_are_those_of_the_field():
    assert ladder.base_sizes("rfc2544") == [64, 128, 256, 512, 1024, 1280, 1518]
    assert ladder.base_sizes("imb")[:4] == [0, 1, 2, 4]
    assert ladder.base_sizes("imb")[-1] == 4 * ladder.MIB
    assert ladder.base_sizes("long")[1] - ladder.base_sizes("long")[0] == 32 * ladder.KIB


@pytest.mark.parametrize(("name", "largest"), [("adaptiv", None), ("rfc2544", 10)])
def test_what_cannot_be_is_refused(name, largest):
    with pytest.raises(UsageError, match="ladder"):
        ladder.base_sizes(name, largest)


@given(st.floats(1e-6, 1e-4), st.floats(1e6, 1e10))
def test_a_smooth_curve_needs_few_sizes(alpha, bandwidth):
    base = ladder.base_sizes("adaptive")
    sizes = refined(lambda size: alpha + size / bandwidth, base)
    assert len(sizes) <= len(base) + 24


@given(st.integers(3, ladder.MIB - 1), st.floats(1.1, 3.0))
def test_a_step_is_located_to_the_byte(step, factor):
    def time_of(size):
        return 1e-5 * (factor if size >= step else 1.0)

    sizes = refined(time_of, ladder.base_sizes("adaptive"))
    assert step in sizes
    assert step - 1 in sizes


def test_noise_adds_nothing():
    sizes = ladder.base_sizes("adaptive")
    times = {size: 1e-5 * (1.05 if index % 2 else 1.0) for index, size in enumerate(sizes)}
    assert ladder.refine(times, dict.fromkeys(sizes, 0.02)) == []
    assert ladder.refine(times, {}) != []


@given(st.dictionaries(st.integers(0, 10**7), st.floats(1e-7, 1.0), min_size=3))
def test_added_sizes_are_new_and_lie_between(times):
    added = ladder.refine(times, {})
    assert not set(added) & set(times)
    assert all(min(times) < size < max(times) for size in added)

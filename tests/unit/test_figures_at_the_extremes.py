"""Figures of any size with intervals of any shape: all are written, and none outside its own interval."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wulf.base import units
from wulf.base.records import Estimate

UNITS = ("s", "B/s", "B", "GFLOPS", "ratio", "1/s")
#: Powers of ten of what a unit's prefix says, for what is written in another one than the value.
SCALES = {
    "s": {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0},
    "B/s": {"B/s": 1.0, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9},
}
magnitudes = st.floats(-9, 9).map(lambda power: 10.0**power)
sides = st.one_of(st.just(0.0), st.floats(-6, 6).map(lambda power: 10.0**power))


def estimate(value, low, high, unit="s"):
    return Estimate(value=value, low=low, high=high, confidence=0.95, unit=unit, n=6, method="test")


@st.composite
def estimates(draw, names):
    value = draw(st.one_of(st.just(0.0), magnitudes))
    scale = value or 1.0
    low = max(value - draw(sides) * scale, 0.0)
    high = value + draw(sides) * scale
    return estimate(value, low, high, draw(names))


def numbers(text, unit):
    """Return value, low and high of ``8.2 µs (7.6 µs to 4.0 ms)``, in the unit without prefix."""
    found = re.fullmatch(r"(\S+) ?(\S*) \((\S+) ?(\S*) to (\S+) ?(\S*)\)", text)
    assert found, text
    first = found[2]
    return [float(found[number]) * SCALES[unit][found[number + 1] or first] for number in (1, 3, 5)]


@given(estimates(st.sampled_from(tuple(SCALES))))
def test_a_lopsided_interval_holds_its_value_as_written(one):
    text = units.format_estimate(one)
    sides = sorted((one.value - one.low, one.high - one.value))
    if "±" in text:
        assert sides[1] <= max(units.LOPSIDED * sides[0], units.WIDE * one.value)
        assert sides[1] <= one.value * (1 + 1e-9)
        assert not re.match(r"0 ± [1-9]", text), text
    else:
        assert sides[1] >= min(max(units.LOPSIDED * sides[0], units.WIDE * one.value), one.value) * (1 - 1e-9)
        value, low, high = numbers(text, one.unit)
        assert low <= value * (1 + 1e-9)
        assert value <= high * (1 + 1e-9)
        assert value == pytest.approx(one.value, rel=0.06, abs=1e-30) or value == 0


@given(estimates(st.sampled_from(tuple(SCALES))))
def test_a_spread_holds_its_value_as_written(one):
    value, low, high = numbers(units.format_spread(one), one.unit)
    assert low <= value * (1 + 1e-9)
    assert value <= high * (1 + 1e-9)


def ratio_of(text):
    """Return the ratio that a change says."""
    if text.endswith("×"):
        return float(text.removesuffix("×"))
    return 1 + float(text.removesuffix("%").replace("−", "-")) / 100


@given(estimates(st.just("ratio")))
def test_a_change_holds_its_value_as_written(one):
    text = units.format_change(one)
    found = re.fullmatch(r"(.+) \((.+) to (.+)\)", text)
    assert found, text
    value, low, high = (ratio_of(part.strip()) for part in found.groups())
    assert low - 1e-9 <= value <= high + 1e-9
    assert len(text) < 60


@given(
    st.sampled_from(UNITS),
    st.sampled_from([None, 0.0, 1e-9, 1.0, 1e9, math.inf]),
    st.sampled_from([0.0, 1e-9, 1.0, 1e9]),
    st.sampled_from([None, 0.0, 1e-9, 1.0, 1e9, math.inf]),
)
def test_nothing_raises(unit, low, value, high):
    one = estimate(value, low, high, unit)
    for write in (units.format_estimate, units.format_spread, units.format_change, units.format_portion):
        assert write(one)


@given(st.floats(-1, 1e9, allow_nan=False))
def test_what_may_go_unseen_is_always_said(share):
    assert units.format_unseen(share)


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (estimate(8.24e-6, 7.6e-6, 4.0e-3), "8.2 µs (7.6 µs to 4.00 ms)"),
        (estimate(0.0, 0.0, 700e-6), "0 ns (0 ns to 700 µs)"),
        (estimate(11.92e-6, 11.85e-6, 11.99e-6), "11.92 ± 0.07 µs"),
    ],
)
def test_examples(one, text):
    assert units.format_estimate(one) == text


def test_a_large_change_is_a_multiple():
    assert units.format_change(estimate(0.43, 0.001, 350.0, "ratio")).endswith("to 350 ×)")

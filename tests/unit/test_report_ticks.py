"""Marks of the axes that need not begin at zero."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wulf.page import ticks


def test_a_logarithmic_axis_of_changes_marks_none() -> None:
    marks = ("−30 %", "−20 %", "−10 %", "0 %", "+10 %", "+20 %", "+30 %", "+40 %")
    assert ticks.changes([0.7, 1.4], logarithmic=True).labels == marks
    assert "0 %" in ticks.changes([0.01, 0.05], logarithmic=True).labels
    assert "+100 %" in ticks.changes([0.4, 4], logarithmic=True).labels
    assert ticks.changes([], logarithmic=True).labels[0].endswith("%")


@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=6))
def test_its_marks_are_positive_and_hold_one(values: list[float]) -> None:
    marks = ticks.changes(values, logarithmic=True).values
    assert all(mark > 0 for mark in marks)
    assert any(math.isclose(mark, 1.0) for mark in marks)
    assert len(marks) < 40


def test_between_has_one_unit_and_enough_digits() -> None:
    found = ticks.between([22.1e-6, 47.9e-6], "s")
    assert found.labels == ("25 µs", "30 µs", "35 µs", "40 µs", "45 µs")
    assert ticks.between([131.2e-6, 131.8e-6], "s").labels[0] == "131.2 µs"
    assert ticks.between([11.2, 13.4], "GFLOPS").labels[-1] == "13.0 GFLOPS"


@pytest.mark.parametrize("values", [[5.0], [5.0, 5.0], [0.0, 0.0], []])
def test_between_of_one_value(values: list[float]) -> None:
    assert len(ticks.between(values, "s").values) <= 1


@given(st.lists(st.floats(1e-9, 1e12), min_size=2, max_size=6))
def test_marks_between_lie_within_the_values(values: list[float]) -> None:
    low, high = min(values), max(values)
    marks = ticks.between(values, "B/s").values
    assert all(low - 1e-8 * high <= mark <= high * (1 + 1e-8) for mark in marks)
    assert 1 <= len(marks) < 20


def test_a_narrow_logarithmic_axis_has_round_marks_within_it() -> None:
    labels = ticks.times([360e-9, 420e-9]).labels
    assert labels == tuple(f"{value} ns" for value in range(360, 430, 10))
    assert ticks.times([390e-9]).labels == ("390 ns",)
    assert ticks.times([]).values == ()
    assert "5 µs" in ticks.times([1e-6, 30e-6]).labels, "a longer one has decades as before"


@given(st.floats(1e-9, 1e3), st.floats(1.000001, 1e6))
def test_every_axis_of_times_has_labelled_marks_within_it(low: float, ratio: float) -> None:
    marks = ticks.times([low, low * ratio])
    within = [
        label
        for mark, label in zip(marks.values, marks.labels, strict=True)
        if low * (1 - 1e-8) <= mark <= low * ratio * (1 + 1e-8)
    ]
    assert len(within) >= 1 and all(within)
    assert len(set(within)) == len(within)

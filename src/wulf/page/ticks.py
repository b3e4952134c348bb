"""Where axes are marked, with labels from `wulf.base.units`, so that a chart never scales a number by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from wulf.base.units import format_bandwidth, format_bytes, format_column, format_time, format_value
from wulf.page.parts import Ticks

MANY_DECADES = 3.5
SIZE_TICKS = 12
#: Fewer marks than this do not tell how long an axis is.
FEWEST = 2
#: Error of a quotient of two numbers that should be whole.
_ROUNDING = 1e-9
#: Values closer together than this, relative, have one mark: labels have no digits to tell more apart.
_NARROWEST = 1e-4
#: Below it a fifth may have no power of ten that a number can have.
_SMALLEST = 1e-300


def sizes(values: Iterable[float]) -> Ticks:
    """Mark zero and powers of two, at most about a dozen."""
    known = sorted(values)
    if not known:
        return Ticks((), ())
    first = max(0, math.ceil(math.log2(max(known[0], 1))))
    last = max(first, math.floor(math.log2(max(known[-1], 1))))
    step = max(1, math.ceil((last - first + 1) / SIZE_TICKS))
    powers = [float(2**k) for k in range(last, first - 1, -step)]
    marks = ([0.0] if known[0] == 0 else []) + sorted(powers)
    return Ticks(tuple(marks), tuple(format_bytes(int(mark)) for mark in marks))


def times(values: Iterable[float], unit: str = "s") -> Ticks:
    """Mark a logarithmic axis of times [s], or of another unit: decades, or 1-2-5; round numbers where it is narrow."""
    known = [value for value in values if 0 < value < math.inf]
    marks = _logarithmic(known, lambda value: format_value(value, unit))
    if not known or sum(min(known) <= mark <= max(known) for mark in marks.values) >= FEWEST:
        return marks
    return between(known, unit)


def linear_times(values: Iterable[float]) -> Ticks:
    """Mark a linear axis of times [s] from zero."""
    return _linear(max(values, default=0.0), format_time)


def linear_sizes(values: Iterable[float]) -> Ticks:
    """Mark a linear axis of sizes [B] from zero."""
    marks = _linear(max(values, default=0.0), str).values
    return Ticks(marks, tuple(format_bytes(round(mark)) for mark in marks))


def bandwidths(values: Iterable[float]) -> Ticks:
    """Mark a linear axis of bandwidths [B/s] from zero."""
    return _linear(max(values, default=0.0), format_bandwidth)


def rates(values: Iterable[float]) -> Ticks:
    """Mark a logarithmic axis of rates [1/s]."""
    return _logarithmic([value for value in values if 0 < value < math.inf], lambda value: f"{value:g}")


def changes(ratios: Iterable[float], *, logarithmic: bool = False) -> Ticks:
    """Mark an axis of ratios as changes in percent: 1 → '0 %', which is among the marks of a logarithmic one."""
    if logarithmic:
        marks = _ratio_marks(ratios)
    else:
        values = sorted(100 * (ratio - 1) for ratio in ratios if math.isfinite(ratio))
        if not values:
            return Ticks((), ())
        step = _step(max(values[-1] - values[0], 1e-6) / 8)
        first, last = math.floor(values[0] / step), math.ceil(values[-1] / step)
        marks = [1 + step * k / 100 for k in range(first, last + 1)]
    return Ticks(tuple(marks), tuple(_change_label(mark) for mark in marks))


def _ratio_marks(ratios: Iterable[float]) -> list[float]:
    known = sorted(value for value in [1.0, *ratios] if 0 < value < math.inf)
    if known[-1] > 4 * known[0]:
        return list(_logarithmic(known, str).values)
    step = _step(max(known[-1] - known[0], 0.01) / 7)
    first, last = math.floor(known[0] / step + _ROUNDING), math.ceil(known[-1] / step - _ROUNDING)
    return [float(f"{step * k:.6g}") for k in range(max(first, 1), last + 1)]


def _change_label(ratio: float) -> str:
    value = float(f"{100 * (ratio - 1):.6g}")
    return f"{value:+g} %".replace("-", "−") if abs(value) > _ROUNDING else "0 %"


def between(values: Iterable[float], unit: str) -> Ticks:
    """Mark an axis that need not begin at zero, in any unit; no mark lies beyond the values."""
    known = sorted(filter(math.isfinite, values))
    if not known:
        return Ticks((), ())
    step = _step(max(known[-1] - known[0], _NARROWEST * abs(known[-1]), 1e-12) / 5)
    first, last = math.ceil(known[0] / step - _ROUNDING), math.floor(known[-1] / step + _ROUNDING)
    marks = [step * k for k in range(first, last + 1)] or [known[0]]
    # Twice the step needs no more digits than the marks have; a step of 1 would get one more.
    labels, name = format_column(marks, unit, 2 * step)
    whole = [f"{label} {name}".strip() for label in labels]
    # A mark alone is told from no other.
    return Ticks(tuple(marks), tuple(whole if len(whole) > 1 else map(_short, whole)))


def _logarithmic(values: list[float], label: Callable[[float], str]) -> Ticks:
    if not values:
        return Ticks((), ())
    low, high = math.log10(min(values)), math.log10(max(values))
    steps = (1,) if high - low > MANY_DECADES else (1, 2, 5)
    decades = range(math.floor(low), math.ceil(high) + 1)
    marks = [float(f"{step}e{decade}") for decade in decades for step in steps]
    # One mark beyond each end is harmless: the axis shows those inside its domain.
    return Ticks(tuple(marks), tuple(_short(label(mark)) for mark in marks))


def _linear(largest: float, label: Callable[[float], str]) -> Ticks:
    if largest < _SMALLEST or not math.isfinite(largest):
        return Ticks((0.0,), (label(0.0),))
    step = _step(largest / 5)
    marks = tuple(step * k for k in range(math.ceil(largest / step) + 1))
    return Ticks(marks, tuple(_short(label(mark)) for mark in marks))


def _step(rough: float) -> float:
    """Return the round number (1, 2 or 5 times a power of ten) nearest to `rough`."""
    decade = 10.0 ** math.floor(math.log10(rough))
    return min((factor * decade for factor in (1, 2, 5, 10)), key=lambda step: abs(step - rough))


def _short(label: str) -> str:
    """Cut the zeros that say nothing on an axis: '10.0 µs' → '10 µs'."""
    number, space, unit = label.partition(" ")
    return (number.rstrip("0").rstrip(".") if "." in number else number) + space + unit

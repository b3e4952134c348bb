"""Where axes are marked, with labels from `wulf.units`, so that a chart never scales a number by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from wulf.report.parts import Ticks
from wulf.units import format_bandwidth, format_bytes, format_time

MANY_DECADES = 2.5
SIZE_TICKS = 12


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


def times(values: Iterable[float]) -> Ticks:
    """Mark a logarithmic axis of times [s]: decades, and 1-2-5 where there are few."""
    return _logarithmic([value for value in values if value > 0], format_time)


def linear_times(values: Iterable[float]) -> Ticks:
    """Mark a linear axis of times [s] from zero."""
    return _linear(max(values, default=0.0), format_time)


def linear_sizes(values: Iterable[float]) -> Ticks:
    """Mark a linear axis of sizes [B] from zero."""
    marks = _linear(max(values, default=0.0), str).values
    return Ticks(marks, tuple(format_bytes(round(mark)) for mark in marks))


def bandwidths(values: Iterable[float]) -> Ticks:
    """Mark a linear axis of bandwidths [B/s] from zero, at round numbers of bits."""
    marks = tuple(mark / 8 for mark in _linear(8 * max(values, default=0.0), str).values)
    return Ticks(marks, tuple(format_bandwidth(mark) for mark in marks))


def _logarithmic(values: list[float], label: Callable[[float], str]) -> Ticks:
    if not values:
        return Ticks((), ())
    low, high = math.log10(min(values)), math.log10(max(values))
    steps = (1,) if high - low > MANY_DECADES else (1, 2, 5)
    decades = range(math.floor(low), math.ceil(high) + 1)
    marks = [float(f"{step}e{decade}") for decade in decades for step in steps]
    # One mark beyond each end is harmless: the axis shows those inside its domain.
    return Ticks(tuple(marks), tuple(label(mark) for mark in marks))


def _linear(largest: float, label: Callable[[float], str]) -> Ticks:
    if largest <= 0 or not math.isfinite(largest):
        return Ticks((0.0,), (label(0.0),))
    rough = largest / 5
    decade = 10.0 ** math.floor(math.log10(rough))
    step = min((s * decade for s in (1, 2, 5, 10)), key=lambda s: abs(s - rough))
    marks = tuple(step * k for k in range(math.ceil(largest / step) + 1))
    return Ticks(marks, tuple(label(mark) for mark in marks))

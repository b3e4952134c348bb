"""Parse and format quantities: the only place that scales numbers.

Times are seconds, sizes bytes, bandwidths bytes per second. Sizes are shown with binary prefixes and exactly
(64 KiB, 65537 B); bandwidths with decimal ones, as the field does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Protocol

from wulf.base.errors import UsageError
from wulf.base.text import count

#: Multiples of units, the largest first.
_LARGER = {
    "B/s": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")),
    "J": ((1e6, "MJ"), (1e3, "kJ")),
}
_TIMES = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
_DURATIONS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_SIZES = {
    "": 1,
    "b": 1,
    "k": 1 << 10,
    "kib": 1 << 10,
    "m": 1 << 20,
    "mib": 1 << 20,
    "g": 1 << 30,
    "gib": 1 << 30,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
}
_NUMBER = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_QUANTITY = re.compile(rf"\s*{_NUMBER}\s*([A-Za-zµ%]*)\s*")
#: One of several numbers with units, as in ``1h30m``.
_PIECE = re.compile(rf"{_NUMBER}\s*([A-Za-zµ]+)\s*")
#: So much of what a user wrote is shown again [characters].
_SHOWN = 60

#: Digits when there is no interval to say how many are meant.
_DIGITS = 3
#: However narrow an interval is, nobody reads more.
_MOST_DIGITS = 6
#: Nobody sees a change of less than 0.001 %.
_CHANGE_DECIMALS = 3
#: One side of an interval that is so many times the other has no ± in common with it.
LOPSIDED = 3.0
#: A side that is a smaller share of the value than this needs no other form: ± the wider side holds all of it.
WIDE = 0.1
#: A ratio from which on a change is no percentage.
TIMES = 100.0
#: Ranges of sizes that are named.
_RANGES = 3


class _Estimate(Protocol):
    """What `wulf.base.records.Estimate` has."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def unit(self) -> str: ...


def _split(text: str, what: str, examples: str) -> tuple[float, str]:
    found = _QUANTITY.fullmatch(text)
    # A number of hundreds of digits is endless for a computer.
    if found is None or not math.isfinite(float(found[1])):
        raise UsageError(f"{_quoted(text)} is not a {what}; write it like {examples}")
    return float(found[1]), found[2]


def _quoted(text: str) -> str:
    """Return what a user wrote for a message: not all of it, when it is long."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def parse_size(text: str) -> int:
    """Bytes of ``64KiB``, ``1M`` (binary), ``1500``, ``1MB`` (decimal).

    Raises
    ------
    UsageError
        Not a size, or not a whole number of bytes.
    """
    number, unit = _split(text, "size", "64KiB, 1MiB or 1500")
    if unit.lower() not in _SIZES:
        known = "B, KiB, MiB, GiB, KB, MB, GB"
        raise UsageError(f"{_quoted(text)}: unknown unit {_quoted(unit)} of a size; there are {known}")
    size = number * _SIZES[unit.lower()]
    if not math.isfinite(size) or size != int(size):
        raise UsageError(f"{_quoted(text)} is not a whole number of bytes")
    return int(size)


def parse_duration(text: str) -> float:
    """Seconds of ``5m``, ``90s``, ``2ms``, ``1h30m``, ``7d``; a bare number is seconds."""
    seconds = 0.0
    smallest = math.inf
    for number, unit in _pieces(text):
        if unit not in _DURATIONS:
            known = ", ".join(_DURATIONS)
            raise UsageError(
                f"{_quoted(text)}: unknown unit {_quoted(unit)} of a duration; there are {known}"
            )
        if _DURATIONS[unit] >= smallest:
            raise UsageError(f"{_quoted(text)}: write the larger unit first and each once, like 1h30m")
        smallest = _DURATIONS[unit]
        seconds += number * smallest
    if not 0 < seconds < math.inf:
        raise UsageError(f"{_quoted(text)}: a duration must be positive and finite")
    return seconds


def _pieces(text: str) -> list[tuple[float, str]]:
    pieces = [(float(number), unit) for number, unit in _PIECE.findall(text)]
    if len(pieces) > 1 and not _PIECE.sub("", text).strip():
        return pieces
    number, unit = _split(text, "duration", "90s, 2m30s, 1h or 2ms")
    return [(number, unit or "s")]


def parse_percent(text: str) -> float:
    """Fraction of ``2%``: 0.02. The sign is required, so that 2 and 0.02 are not mixed up."""
    number, unit = _split(text, "percentage", "2%")
    if unit != "%":
        raise UsageError(f"{_quoted(text)} is not a percentage; write it like 2%")
    if not 0 < number < 100:
        raise UsageError(f"{_quoted(text)}: a percentage here must be above 0% and below 100%")
    return number / 100


def format_time(seconds: float) -> str:
    """Time with three significant digits: ``11.9 µs``."""
    unit = _time_unit(seconds)
    return f"{_significant(seconds / _TIMES[unit])} {unit}"


def format_bytes(size: int) -> str:
    """Size, exactly: ``64 KiB``, ``65537 B``."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"


def format_sizes(sizes: Iterable[int], measured: Iterable[int]) -> str:
    """Sizes as ranges of those that were measured: ``0 B, 64 B to 1 KiB``; more than three are counted."""
    wanted = set(sizes)
    groups = groupby(sorted(set(measured) | wanted), key=wanted.__contains__)
    ranges = [list(group) for inside, group in groups if inside]
    ends = [dict.fromkeys((group[0], group[-1])) for group in ranges]
    rest = sum(map(len, ranges[_RANGES:]))
    more = f" and {count(rest, 'more size')}" if rest else ""
    return ", ".join(" to ".join(map(format_bytes, pair)) for pair in ends[:_RANGES]) + more


def format_bandwidth(bytes_per_s: float) -> str:
    """Bandwidth with three significant digits: ``117 MB/s``."""
    scale, unit = _larger(bytes_per_s, "B/s")
    return f"{_significant(bytes_per_s / scale)} {unit}"


def format_fact(name: str, value: str | int | float | bool | None) -> str:
    """Value of a fact, in the unit that the end of its name says."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    ending = _fact_ending(name)
    return _FACTS[ending](value) if ending else f"{value:.10g}" if isinstance(value, float) else str(value)


def fact_label(name: str) -> str:
    """Name of a fact without the unit, which is with the value: ``memory.total_bytes`` → ``memory.total``."""
    fact, at, member = name.partition("@")
    return f"{fact.removesuffix(_fact_ending(fact))}{at}{member}"


def _fact_ending(name: str) -> str:
    # Behind @ is the member of the interface that the fact is of.
    return next((ending for ending in _FACTS if name.partition("@")[0].endswith(ending)), "")


def _memory(size: float) -> str:
    return format_bytes(int(size)) if size < 1 << 20 else f"{size / (1 << 30):.3g} GiB"


def _rate(bits_per_s: float) -> str:
    return f"{bits_per_s / 1e9:g} Gbit/s" if bits_per_s >= 1e9 else f"{bits_per_s / 1e6:g} Mbit/s"


def _long_time(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}"
    return format_time(seconds)


#: Ending of a fact's name → how its value is written; an ending that ends another one stands behind it.
_FACTS: dict[str, Callable[[float], str]] = {
    "_gt_per_s": lambda value: f"{value:g} GT/s",
    "_bits_per_s": _rate,
    "_per_s": lambda value: f"{value:.3g} 1/s",
    "_ratio": lambda value: f"{value:.2%}",
    "_bytes": _memory,
    "_hz": lambda value: f"{value / 1e9:.3g} GHz",
    "_us": lambda value: f"{value:g} µs",
    "_s": _long_time,
}


def format_estimate(estimate: _Estimate) -> str:
    """Value ± half its interval, with the digits that the interval supports: ``11.92 ± 0.07 µs``.

    Where one side is wider than the value, or more than three times the other and a tenth of the value, both bounds are
    written: ``8.2 µs (7.6 µs to 4.0 ms)``. Without an interval that is said: ``11.9 µs (no interval)``.
    """
    scale, unit = _scale(estimate.value, estimate.unit)
    value = estimate.value / scale
    space = f" {unit}" if unit else ""
    if estimate.low is None or estimate.high is None or not math.isfinite(estimate.high - estimate.low):
        return f"{_minus(_significant(value))}{space} (no interval)"
    half = max(estimate.high - estimate.value, estimate.value - estimate.low) / scale
    if _is_lopsided(estimate.value, estimate.low, estimate.high) or half > abs(value):
        return _lopsided(estimate.value, estimate.low, estimate.high, estimate.unit)
    decimals = _decimals(half, value)
    # Half an interval that is smaller than the last digit shown is rounded up to it: it is never "± 0".
    half = max(half, 10.0**-decimals)
    return f"{_minus(_fixed(value, decimals))} ± {_fixed(half, decimals)}{space}"


def _known(value: float, low: float, high: float) -> float:
    """Return how well a value is known: half its interval, of a lopsided one the narrower side that there is."""
    sides = [side for side in (value - low, high - value) if side > 0]
    return min(sides) if len(sides) > 1 and _is_lopsided(value, low, high) else (high - low) / 2


def _is_lopsided(value: float, low: float, high: float) -> bool:
    """Whether one side of an interval is so much wider that no ± tells of both."""
    sides = sorted((abs(value - low), abs(high - value)))
    return sides[1] > max(LOPSIDED * sides[0], WIDE * abs(value))


def _lopsided(value: float, low: float, high: float, unit: str) -> str:
    """Return a value and its bounds, each in a unit that suits it; rounded alike, so that none passes another."""
    scale, name = _scale(value, unit)
    decimals = _decimals(_known(value, low, high) / scale, value / scale)
    if value:
        decimals = max(decimals, 1 - _magnitude(value / scale, 2))

    def said(bound: float) -> str:
        own, other = _scale(bound, unit)
        text = _fixed(bound / scale, decimals) if other == name else _significant(bound / own)
        return f"{_minus(text)} {other}".strip()

    return f"{said(value)} ({said(low)} to {said(high)})"


def format_spread(estimate: _Estimate) -> str:
    """Value and bounds, which need not lie evenly around it: ``0.21 % (0.19 to 0.25)``, ``12 1/s (8 to 17)``.

    A ratio is written as a percentage.
    """
    scale, unit = (0.01, "%") if estimate.unit == "ratio" else _scale(estimate.value, estimate.unit)
    if estimate.low is None or estimate.high is None or not math.isfinite(estimate.high - estimate.low):
        return f"{_minus(_significant(estimate.value / scale))} {unit} (no interval)"
    if estimate.low == estimate.high:
        value = _minus(_significant(estimate.value / scale))
        return f"{value} {unit} ({value} to {value})"
    if unit not in ("%", _scale(estimate.high, estimate.unit)[1]):
        return _lopsided(estimate.value, estimate.low, estimate.high, estimate.unit)
    decimals = _decimals(_known(estimate.value, estimate.low, estimate.high) / scale, estimate.value / scale)
    value, low, high = (
        _minus(_fixed(bound / scale, decimals)) for bound in (estimate.value, estimate.low, estimate.high)
    )
    return f"{value} {unit} ({low} to {high})"


def _minus(number: str) -> str:
    """Return a number with the sign that changes have."""
    return number.replace("-", "−", 1) if number.startswith("-") else number


def format_change(ratio: _Estimate) -> str:
    """Return an effect as the change of a quantity with its interval: ``−10.0 % (−10.8 to −9.2)``.

    The one way in which an effect is written; the convention is stated in docs/explanation/method.md. From a hundred
    times on it is written as that: ``−57 % (−100 to 350 ×)``.

    Parameters
    ----------
    ratio
        Of the quantity after ÷ before. Of a time negative is faster, of a rate positive is.
    """
    if ratio.low is None or ratio.high is None or not math.isfinite(ratio.high - ratio.low):
        return f"{_changed(ratio.value, _share_decimals(ratio.value - 1), ' %')} (no interval)"
    decimals = _change_decimals(100 * _known(ratio.value, ratio.low, ratio.high))
    low, high = (_changed(bound, decimals, "") for bound in (ratio.low, ratio.high))
    return f"{_changed(ratio.value, decimals, ' %')} ({low} to {high})"


def _changed(ratio: float, decimals: int, unit: str) -> str:
    """Return a ratio as a change; where that is of little use, as it is."""
    return f"{_significant(ratio)} ×" if ratio >= TIMES else f"{_signed(100 * (ratio - 1), decimals)}{unit}"


def format_changes(low: float, high: float) -> str:
    """Return the changes between two ratios: ``−10.9 to −9.2 %``."""
    decimals = _change_decimals(100 * (high - low) / 2)
    first, last = (_signed(100 * (ratio - 1), decimals) for ratio in (low, high))
    return f"{first} to {last} %" if first != last else format_share(low - 1)


def format_unseen(share: float) -> str:
    """Return the changes that may go unseen where a decrease by `share` is the smallest that is shown.

    ``between −20 % and +25 %``: as likely either way, so that the increase undoes the decrease. Where no decrease at
    all would be shown: ``of any size``.
    """
    increase = undoing(share)
    if not math.isfinite(increase):
        return "of any size"
    return f"between {format_share(-share)} and {format_share(increase)}"


def undoing(share: float) -> float:
    """Return the increase that undoes a decrease by `share`; without end where nothing is left to increase."""
    return 1 / (1 - share) - 1 if share < 1 else math.inf


def format_share(change: float) -> str:
    """Return a change as a signed percentage with two significant digits: ``−2.9 %``."""
    return f"{_signed(100 * change, _share_decimals(change))} %"


def _share_decimals(change: float) -> int:
    """Decimals of a change as a percentage of two significant digits."""
    return max(0, 1 - _magnitude(100 * change, 2)) if change and math.isfinite(change) else 0


def format_portion(portion: _Estimate) -> str:
    """Return a share of a whole with its interval: ``63 % (58 to 67 %)``; as measured, also below 0 and above 100 %."""
    if portion.low is None or portion.high is None or not math.isfinite(portion.high - portion.low):
        return f"{_portion(portion.value, 0)} % (no interval)"
    decimals = _change_decimals(100 * _known(portion.value, portion.low, portion.high))
    value, low, high = (_portion(bound, decimals) for bound in (portion.value, portion.low, portion.high))
    return f"{value} % ({low} to {high} %)"


def _portion(value: float, decimals: int) -> str:
    return _signed(100 * value, decimals).removeprefix("+")


def _change_decimals(half: float) -> int:
    """Decimals that show one digit of half an interval, two when that digit is 1."""
    if half <= 0:
        return 2
    if not math.isfinite(half):
        return 0
    digits = 1 if f"{half:.1e}".startswith("1") else 0
    return min(_CHANGE_DECIMALS, max(0, digits - _magnitude(half, digits + 1)))


def _signed(value: float, decimals: int) -> str:
    text = f"{value:+.{decimals}f}"
    return "0" if float(text) == 0 else text.replace("-", "−")


def format_value(value: float, unit: str) -> str:
    """Value of any unit with three significant digits: ``47.9 µs``, ``112 MB/s``, ``11.5 GFLOPS``."""
    scale, name = _scale(value, unit)
    return f"{_minus(_significant(value / scale))} {name}".strip()


def format_column(values: Sequence[float], unit: str, resolution: float) -> tuple[list[str], str]:
    """Numbers of one column in one unit, and that unit.

    Parameters
    ----------
    resolution
        What still matters, in `unit`: its first digit is shown, its second one too when the first is 1.
    """
    finite = sorted(abs(value) for value in values if math.isfinite(value))
    middle = finite[len(finite) // 2] if finite else 1.0
    scale, name = _scale(middle, unit)
    decimals = max(0, _decimals(resolution / scale, middle / scale))
    return [_fixed(value / scale, decimals) for value in values], name


def _scale(value: float, unit: str) -> tuple[float, str]:
    if unit == "s":
        name = _time_unit(value)
        return _TIMES[name], name
    if unit in _LARGER:
        return _larger(value, unit)
    if unit == "s/B":
        name = _time_unit(value * 1e3)
        return _TIMES[name] / 1e3, f"{name}/kB"
    if unit == "GFLOPS" and abs(value) >= 1e4:
        return 1e3, "TFLOPS"
    if unit == "B" and abs(value) >= 1024:
        return 1024.0, "KiB"
    return 1.0, "" if unit in ("ratio", "") else unit


def _time_unit(seconds: float) -> str:
    size = abs(seconds)
    return next((unit for unit, factor in _TIMES.items() if size >= factor), "ns")


def _larger(value: float, unit: str) -> tuple[float, str]:
    """Return the largest of a unit's multiples that a value reaches, else the unit."""
    return next(((scale, name) for scale, name in _LARGER[unit] if abs(value) >= scale), (1.0, unit))


def _significant(value: float) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    return _fixed(value, _DIGITS - 1 - _magnitude(value, _DIGITS))


def _magnitude(value: float, digits: int) -> int:
    """Power of ten of the value's first digit, once it is rounded to so many digits."""
    return int(f"{abs(value):.{digits - 1}e}".partition("e")[2])


def _decimals(half: float, value: float) -> int:
    """Decimals that show one digit of the half width, two when that digit is 1; `_MOST_DIGITS` at most."""
    most = _MOST_DIGITS - 1 - (_magnitude(value, _MOST_DIGITS) if value else 0)
    if half <= 0:
        return most
    digits = 1 if f"{half:.1e}".startswith("1") else 0
    return min(digits - _magnitude(half, digits + 1), most)


def _fixed(value: float, decimals: int) -> str:
    return f"{value:.{decimals}f}" if decimals >= 0 else f"{round(value, decimals):.0f}"

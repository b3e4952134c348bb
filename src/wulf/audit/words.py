"""Facts as people read them. Pure."""

from __future__ import annotations

from collections.abc import Callable

from wulf.records import FactValue
from wulf.units import format_bytes, format_time

#: Ending of a fact's name → how its value is written; the longest ending first.
_WORDS: list[tuple[str, Callable[[float], str]]] = [
    ("_gt_per_s", lambda value: f"{value:g} GT/s"),
    ("_bits_per_s", lambda value: f"{value / 1e6:g} Mbit/s" if value < 1e9 else f"{value / 1e9:g} Gbit/s"),
    ("_per_s", lambda value: f"{value:.3g} 1/s"),
    ("_ratio", lambda value: f"{value:.2%}"),
    ("_bytes", lambda value: format_bytes(int(value))),
    ("_hz", lambda value: f"{value / 1e9:.3g} GHz"),
    ("_us", lambda value: f"{value:g} µs"),
    ("_s", format_time),
]


def fact_words(name: str, value: FactValue) -> str:
    """Return a fact's value with its unit."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        for ending, words in _WORDS:
            if name.endswith(ending):
                return words(value)
        return f"{value:g}" if isinstance(value, float) else str(value)
    return str(value)

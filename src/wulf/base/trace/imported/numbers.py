"""Numbers of foreign traces, with bounds: what is beyond is a mistake of the file, and none of our fields holds it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NoReturn

from wulf.base.trace import layout

#: No file is longer [B]; all of it is held in memory, some twenty times over.
MOST_TEXT = 256 << 20
#: No trace has more ranks, no message is larger [B], no tag is higher.
MOST_RANKS = 1 << 17
MOST_BYTES = 1 << 50
MOST_TAG = (1 << 31) - 1
#: No computation of a line is longer [ns].
MOST_NS = layout.MOST_NS
#: Digits of the longest number that is looked at.
_DIGITS = 32

Fail = Callable[[str], NoReturn]


def whole(text: str, most: int, what: str, fail: Fail) -> int:
    """Return a whole number from 0 to `most`, which is written in digits alone."""
    if not (text.isascii() and text.isdecimal()):
        fail(f"{what} is not a whole number")
    if len(text) > _DIGITS or int(text) > most:
        fail(f"{what} is more than {most}")
    return int(text)


def amount(text: str, most: float, what: str, fail: Fail) -> float:
    """Return a number from 0 to `most`, which may have a point and an exponent."""
    try:
        value = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if math.isnan(value):
        fail(f"{what} is not a number")
    if not 0 <= value <= most:
        fail(f"{what} is out of range, 0 to {most:g}")
    return value

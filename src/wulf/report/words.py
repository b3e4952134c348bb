"""Records in words: names of pairs, operations and quantities, estimates with what is unknown about them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from wulf.nodeset import fold
from wulf.records import Estimate, Operation, Place
from wulf.report.parts import Flag, Item
from wulf.text import printable
from wulf.units import format_change, format_estimate

#: Verdict → how it is marked.
FLAGS: dict[str, Flag] = {
    "better": "good",
    "worse": "error",
    "mixed": "warning",
    "no decision": "unknown",
    "no difference": "",
}
UNKNOWN = "unknown"
NAME_LIMIT = 60


def name(raw: str) -> str:
    """Return a name that came from a node or a file, safe to show on one line."""
    return " ".join(printable(raw, NAME_LIMIT).split()) or "(empty)"


def pair_name(place: Place) -> str:
    """Return 'a → b' for a pair, and which nodes of so many ranks for a group."""
    if len(place) < 3:
        return " → ".join(map(name, place))
    return f"{fold(list(dict.fromkeys(map(name, place))))} ({count(len(place), 'rank')})"


def quantity(operation: Operation | None) -> str:
    """Return what one value of an operation is, as the field calls it."""
    return name(operation.quantity) if operation else "time"


def estimate_item(estimate: Estimate | None, reason: str = "") -> Item:
    """Return an estimate with its interval; `reason` says why there is none."""
    if estimate is None:
        return Item(f"{UNKNOWN}: {reason}" if reason else UNKNOWN, None, "unknown")
    return Item(format_estimate(estimate), estimate.value)


def percent(ratio: float) -> str:
    """Return a ratio as a percentage with two significant digits at most: 0.0712 → '7.1 %'."""
    value = 100 * ratio
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f} %"
    digits = max(0, 1 - math.floor(math.log10(abs(value))))
    shown = f"{value:.{digits}f}"
    return (shown.rstrip("0").rstrip(".") if "." in shown else shown) + " %"


def rest(total: int, limit: int, what: str, where: str = "wulf report --json") -> str:
    """Say how many rows a table leaves out; empty when it has them all."""
    return f"{total - limit} more {what} are in '{where}'." if total > limit else ""


def change_item(ratio: Estimate, flag: Flag = "") -> Item:
    """Return a ratio as a change with its interval: 0.9 → '−10.0 % (−10.8 to −9.2)'."""
    return Item(format_change(ratio), ratio.value, flag)


def duration(seconds: float) -> str:
    """Return a span as a person says it: 90 → '90 s', 1500 → '25 min'."""
    if seconds < 120:
        return f"{seconds:g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"


def count(number: int, noun: str, plural: str = "") -> str:
    """Return '1 launch', '2 launches'."""
    many = plural or (f"{noun}es" if noun.endswith(("ch", "s")) else f"{noun}s")
    return f"{number} {noun if number == 1 else many}"


def listed(names: Sequence[str], limit: int = 6) -> str:
    """Return names with commas; beyond `limit` the rest is counted."""
    shown = ", ".join(names[:limit])
    rest = len(names) - limit
    return f"{shown} and {rest} more" if rest > 0 else shown


def moment(iso: str) -> str:
    """Return '21 Nov 2026 08:00 UTC' for an ISO 8601 time; what cannot be read is returned as it is."""
    try:
        time = datetime.fromisoformat(iso)
    except ValueError:
        return name(iso)
    zone = time.strftime("%Z") or "local time"
    return f"{time.day} {time.strftime('%b %Y %H:%M')} {zone}"

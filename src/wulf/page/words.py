"""Records in words: names of pairs, operations and quantities, estimates with what is unknown about them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from wulf.base.nodeset import fold
from wulf.base.records import CellEstimate, Estimate, Finding, Operation, Place
from wulf.base.text import count, printable
from wulf.base.units import format_bytes, format_change, format_estimate
from wulf.page.parts import Flag, Item

#: Verdict → how it is marked.
FLAGS: dict[str, Flag] = {
    "better": "good",
    "worse": "error",
    "mixed": "warning",
    "different": "warning",
    "no decision": "unknown",
    "no difference": "",
}
#: Who sets a finding right, in words; see `wulf.base.records.Finding.remedy`.
REMEDIES = {
    "mend": "mendable: wulf mend",
    "try": "worth trying: wulf tune",
    "person": "manual",
}
UNKNOWN = "unknown"
NAME_LIMIT = 60


def name(raw: str) -> str:
    """Return a name that came from a node or a file, safe to show on one line."""
    return " ".join(printable(raw, NAME_LIMIT).split()) or "(empty)"


def noun(place: Place, operation: Operation | None = None) -> str:
    """Return what those who take part in an operation are called: a pair, a group, a node."""
    ranks = operation.ranks if operation else len(place)
    return {1: "node", 2: "pair"}.get(ranks, "group")


def place_name(place: Place, operation: Operation | None = None) -> str:
    """Return 'a → b' for a pair, 'a,b (2 ranks)' for a group, 'a' for a node.

    Two names alone do not tell a pair from a group: the operation does.
    """
    nodes = list(dict.fromkeys(map(name, place)))
    kind = noun(place, operation)
    if kind == "pair":
        return " → ".join(map(name, place))
    if kind == "node":
        return " beside ".join((nodes[0], fold(nodes[1:]))) if len(nodes) > 1 else nodes[0]
    # Two names are as short as their set.
    return f"{','.join(nodes) if len(nodes) == 2 else fold(nodes)} ({count(len(place), 'rank')})"


def heading(nouns: Iterable[str]) -> str:
    """Return the head of a column of places: 'pairs' where all are pairs."""
    kinds = set(nouns)
    return f"{kinds.pop()}s" if len(kinds) == 1 else "where" if kinds else "pairs"


def quantity(operation: Operation | None) -> str:
    """Return what one value of an operation is, as the field calls it."""
    return name(operation.quantity) if operation else "time"


@dataclass(frozen=True)
class Terms:
    """The words for one operation of a run."""

    operation: Operation | None
    #: What one value is: 'half round trip'.
    quantity: str
    #: What is varied from cell to cell: 'message size'.
    axis: str
    #: Who takes part: 'pair', 'group', 'node'.
    noun: str
    #: Smallest and largest size that was measured [B].
    ends: tuple[int, int]

    @classmethod
    def of(cls, operation: Operation | None, cells: Sequence[CellEstimate]) -> Terms:
        """Find the words for the cells of an operation; None is one that the run does not describe."""
        sizes = [cell.cell.size_bytes for cell in cells]
        return cls(
            operation=operation,
            quantity=quantity(operation),
            axis=axis(operation),
            noun=noun(cells[0].cell.place, operation),
            ends=(min(sizes), max(sizes)),
        )

    @property
    def unit(self) -> str:
        """Unit of a value."""
        return self.operation.unit if self.operation else "s"

    @property
    def varied(self) -> bool:
        """Whether there is a curve: figures at several sizes."""
        return self.ends[0] < self.ends[1]

    @property
    def sized(self) -> bool:
        """Whether its figures are those of sizes at all."""
        return sized(self.operation, self.ends)

    @property
    def value(self) -> str:
        """What one value is where none is varied: 'half round trip at 64 B', or without a size 'run time'."""
        return f"{self.quantity} at {format_bytes(self.ends[1])}" if self.sized else self.quantity

    def name(self, place: Place) -> str:
        """Return the name of who takes part."""
        return place_name(place, self.operation)

    def count(self, number: int) -> str:
        """Return '3 pairs'."""
        return count(number, self.noun)


def sized(operation: Operation | None, sizes: Iterable[int]) -> bool:
    """Whether an operation can have a size other than zero: of one that is not known, whether it had."""
    return operation.max_size_bytes > 0 if operation else any(sizes)


def axis(operation: Operation | None) -> str:
    """Return what an operation varies from cell to cell."""
    return name(operation.axis) if operation and operation.axis else "message size"


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


def lines_drawn(estimates: Iterable[Estimate]) -> str:
    """Return what a caption adds about the lines through points; empty where no estimate has an interval."""
    has_any = any(one.low is not None and one.low != one.high for one in estimates)
    return ", lines 95 % intervals" if has_any else ""


def duration(seconds: float) -> str:
    """Return a span as a person says it: 90 → '90 s', 1500 → '25 min'."""
    if seconds < 120:
        return f"{seconds:g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"


def sentence(text: str) -> str:
    """Return a text that begins with a capital; the rest stays as it is: 'time at 1 B' → 'Time at 1 B'."""
    return text[:1].upper() + text[1:]


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


def remedy(finding: Finding) -> str:
    """Say who sets a finding right, and by what."""
    settings = ", ".join(f"{knob}={value}" for knob, value in finding.settings.items())
    said = REMEDIES[finding.remedy] + (f" sets {settings}" if settings else "")
    return f"{said} ({finding.reason})" if finding.reason else said

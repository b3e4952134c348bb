"""Effect of the whole procedure, from as found to as left: in a sentence, and figure by figure.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

from wulf.base.records import Change, FigureChange, Whole
from wulf.base.text import count, printable
from wulf.base.units import format_change
from wulf.page.parts import Column, Flag, Item, Table
from wulf.page.words import FLAGS, listed, name, percent

_LIMIT = 300
#: Figures that a sentence names.
_NAMED = 3
_PROVEN = ("better", "worse")
AS_FOUND = "from as found to as left"
CANNOT_TELL = "cannot tell"
NOTHING_KEPT = "nothing kept"


def headline(found: Whole) -> tuple[str, Flag]:
    """Return what became of the figures that tell most, and how good that is."""
    shown = telling(found)
    if not shown:
        return f"Cannot tell what changed {AS_FOUND}: no figure was measured with and without it", "warning"
    what, names = _common([one.metric for one in shown])
    said = [f"{short} {change(one.whole)}" for short, one in zip(names, shown, strict=True)]
    alone = "; tuning kept nothing" if all(one.tuning is None for one in found.figures) else ""
    title = f"{what} {AS_FOUND}: {listed(said)}{alone}"
    verdicts = {one.whole.verdict for one in found.figures}
    worse = [name(one.metric) for one in found.figures if one.whole.verdict == "worse"]
    if worse:
        return f"{title}; worse: {listed(worse, _NAMED)}", "warning"
    return title, "good" if "better" in verdicts else "warning"


def telling(found: Whole) -> list[FigureChange]:
    """Return the figures in which mending, tuning and both brought most, in the order of the table."""
    known = [one for one in found.figures if one.whole.ratio is not None] or found.figures
    means = [one for one in known if not one.metric.endswith(" p99")] or known
    mended = min(means, key=lambda one: _rank(one.mending), default=None)
    # What the tuning brought where mending did not is told best by a figure that only the tuning made better.
    tuned = min(
        (one for one in means if one.tuning is not None),
        key=lambda one: (_rank(one.tuning)[0], one.mending.verdict == "better", _rank(one.tuning)[1]),
        default=None,
    )
    named = {one.metric for one in (mended, tuned) if one is not None}
    return [one for one in found.figures if one.metric in named]


def _rank(part: Change | None) -> tuple[int, float]:
    """Return a number by which what became better by most is first: what is proven to, then what its interval says."""
    ratio = part.ratio if part is not None else None
    if part is None or ratio is None or ratio.high is None or ratio.high >= 1:
        return 2, 0.0
    return int(part.verdict != "better"), ratio.value


def points(found: Whole, tuned: str) -> tuple[str, ...]:
    """Return what mending brought, and what tuning: what nobody can tell is said, too."""
    shown = telling(found)
    where = f" between {listed(['–'.join(map(name, pair)) for pair in found.pairs])}" if found.pairs else ""
    mending = listed([f"{name(one.metric)} {change(one.mending)}" for one in shown])
    tuning = [f"{name(one.metric)} {change(one.tuning)}" for one in shown if one.tuning is not None]
    return (
        f"Mending{where}: {mending}.",
        f"Tuning: {tuned}{f'. There: {listed(tuning)}' if tuning else ''}.",
    )


def change(found: Change) -> str:
    """Return a change with its interval, or that it cannot be told, and why."""
    if found.ratio is None:
        return f"{CANNOT_TELL}: {printable(found.reason, _LIMIT)}"
    said = format_change(found.ratio)
    if found.verdict in _PROVEN:
        return said
    return f"no difference: {said}" if found.verdict == "no difference" else f"{CANNOT_TELL}: {said}"


def table(found: Whole) -> Table:
    """Return one row for every figure: what mending, tuning and both brought."""
    tuned = any(one.tuning is not None for one in found.figures)
    return Table(
        title="Effect of the whole procedure",
        columns=(
            Column("figure"),
            Column("as found to as left", numeric=True),
            Column("verdict"),
            Column("by mending", numeric=True),
            Column("by tuning", numeric=True),
        ),
        rows=tuple(
            (
                Item(printable(one.metric, _LIMIT)),
                _item(one.whole),
                Item(one.whole.verdict, one.whole.verdict, FLAGS[one.whole.verdict]),
                _item(one.mending),
                _item(one.tuning) if one.tuning is not None else Item(NOTHING_KEPT),
            )
            for one in found.figures
        ),
        note=_note(found, tuned),
        empty="no figure was measured",
    )


def _item(found: Change) -> Item:
    if found.ratio is None:
        return Item(CANNOT_TELL, None, "unknown")
    return Item(change(found), found.ratio.value, FLAGS[found.verdict])


def _note(found: Whole, tuned: bool) -> str:
    pairs = f", between {listed(['–'.join(map(name, pair)) for pair in found.pairs])}" if found.pairs else ""
    confidence = next((one.whole.ratio.confidence for one in found.figures if one.whole.ratio), 0.95)
    both = (
        " Mending and tuning were each measured alternately with and without what they changed; their effects on the "
        "logarithm of a time are independent and add up (Zou and Donner 2008)."
        if tuned
        else ""
    )
    return (
        f"Change of the time{pairs}: negative is faster.{both} Each interval holds {percent(confidence)} by itself; a "
        f"verdict counts that there are {count(len(found.figures), 'figure')} (Bonferroni).{_reasons(found)}"
    )


def _reasons(found: Whole) -> str:
    """Say why some of it is not known."""
    parts = {
        "by mending": [one.mending for one in found.figures],
        "by tuning": [one.tuning for one in found.figures if one.tuning is not None],
    }
    whys = dict.fromkeys(
        f" Cannot tell what changed {part}: {printable(one.reason, _LIMIT)}."
        for part, several in parts.items()
        for one in several
        if one.reason
    )
    return "".join(whys)


def _common(metrics: Sequence[str]) -> tuple[str, list[str]]:
    """Return what all metrics are, and how each is called beside that: means of one operation by their size."""
    words = [name(metric).split() for metric in metrics]
    ops, ends = {one[0] for one in words}, {one[-1] for one in words}
    if len(ops) > 1 or ends != {"mean"} or any(len(one) < 3 for one in words):
        return "Time", [" ".join(one) for one in words]
    return f"{ops.pop()}, mean time", [" ".join(one[1:-1]) for one in words]

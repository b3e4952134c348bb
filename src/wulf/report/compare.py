"""From a comparison to what is shown of it.  Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from wulf.records import CellComparison, Comparison, Pair
from wulf.report import ticks
from wulf.report.parts import Column, Columns, CompareView, Figure, Flag, Item, Table, Variant, rounded
from wulf.report.words import change_item, count, name, pair_name, percent
from wulf.text import printable
from wulf.units import format_bytes

FLAGS: dict[str, Flag] = {
    "better": "good",
    "worse": "error",
    "mixed": "warning",
    "no decision": "unknown",
    "no difference": "",
}
SUMMARIES = {
    "better": "Better",
    "worse": "Worse",
    "mixed": "Better and worse: look at the sizes",
    "no difference": "No difference",
    "no decision": "No decision",
}
CHANGE = "change of time"

Groups = dict[tuple[str, Pair], list[CellComparison]]


def build(comparison: Comparison) -> CompareView:
    """Return all that is shown of a comparison."""
    groups = _groups(comparison.cells)
    base, candidate = name(comparison.base), name(comparison.candidate)
    return CompareView(
        title=f"{candidate} against {base}",
        lede=f"{count(len(comparison.cells), 'cell')} that both runs have. A change is that of the time: "
        f"candidate ÷ base − 1, below 0 is faster.",
        verdict=SUMMARIES[comparison.verdict],
        flag=FLAGS[comparison.verdict],
        reason=printable(comparison.reason, 400),
        limits=_limits(comparison),
        pooled=_pooled(comparison),
        figures=tuple(
            _forest(f"c{index}", op, pair, cells, comparison.margin)
            for index, ((op, pair), cells) in enumerate(groups.items())
        ),
        cells=tuple(_cells(op, pair, cells) for (op, pair), cells in groups.items()),
        facts=_facts(comparison),
    )


def _groups(cells: Sequence[CellComparison]) -> Groups:
    groups: Groups = defaultdict(list)
    for cell in sorted(cells, key=lambda cell: (cell.op, cell.pair, cell.size_bytes)):
        groups[cell.op, cell.pair].append(cell)
    return dict(groups)


def _limits(comparison: Comparison) -> tuple[str, ...]:
    within = f"Differences within ±{percent(comparison.margin)} count as none."
    if comparison.smallest_effect is None:
        return within, "The smallest effect that these runs could have shown is unknown."
    effect = percent(comparison.smallest_effect - 1)
    return within, f"These runs could have shown an effect of {effect} at best."


def _verdict(cell: CellComparison) -> Item:
    return Item(cell.verdict, cell.verdict, FLAGS[cell.verdict])


def _pooled(comparison: Comparison) -> Table:
    return Table(
        title="Over all sizes and pairs",
        columns=(Column("operation"), Column(CHANGE, numeric=True), Column("verdict")),
        rows=tuple(
            (Item(name(op)), change_item(cell.ratio), _verdict(cell))
            for op, cell in sorted(comparison.pooled.items())
        ),
        empty="no operation was measured between the same two nodes at the same size in both runs",
    )


def _cells(op: str, pair: Pair, cells: Sequence[CellComparison]) -> Table:
    return Table(
        title=f"{name(op)}, {pair_name(pair)}",
        columns=(
            Column("size", numeric=True),
            Column(CHANGE, numeric=True),
            Column("p", numeric=True, narrow=False),
            Column("adjusted p", numeric=True),
            Column("launches", numeric=True, narrow=False),
            Column("verdict"),
        ),
        rows=tuple(
            (
                Item(format_bytes(cell.size_bytes), cell.size_bytes),
                change_item(cell.ratio),
                _p_value(cell.p_value),
                _p_value(cell.p_adjusted),
                Item(str(cell.ratio.n), cell.ratio.n),
                _verdict(cell),
            )
            for cell in cells
        ),
        note="p: of no change; adjusted for the number of cells after Benjamini and Hochberg.",
    )


def _p_value(value: float) -> Item:
    return Item("< 0.001" if value < 0.001 else f"{value:.3f}", value)


def _facts(comparison: Comparison) -> Table:
    return Table(
        title="Facts that differ",
        columns=(Column("fact"), Column("base"), Column("candidate")),
        rows=tuple(
            (Item(name(fact)), Item(printable(base, 200)), Item(printable(candidate, 200)))
            for fact, (base, candidate) in sorted(comparison.differing_facts.items())
        ),
        empty="no recorded fact differs between the runs",
    )


def _forest(id_: str, op: str, pair: Pair, cells: Sequence[CellComparison], margin: float) -> Figure:
    main: Columns = {
        "size": [format_bytes(cell.size_bytes) for cell in cells],
        "size_bytes": [cell.size_bytes for cell in cells],
        "ratio": rounded([cell.ratio.value for cell in cells]),
        "low": rounded([cell.ratio.low for cell in cells]),
        "high": rounded([cell.ratio.high for cell in cells]),
        "verdict": [cell.verdict for cell in cells],
        "change": [change_item(cell.ratio).text for cell in cells],
        "p_adjusted": rounded([cell.p_adjusted for cell in cells]),
    }
    bounds = [
        bound for c in cells for bound in (c.ratio.low, c.ratio.value, c.ratio.high) if bound is not None
    ]
    low, high = 1 / (1 + margin), 1 + margin
    tally = [(verdict, sum(cell.verdict == verdict for cell in cells)) for verdict in FLAGS]
    verdicts = ", ".join(f"{number} {verdict}" for verdict, number in tally if number)
    return Figure(
        id=id_,
        kind="forest",
        title=f"{name(op)}, {pair_name(pair)}",
        x_title=CHANGE,
        y_title="message size",
        x=ticks.changes([*bounds, low, high]),
        variants=(
            Variant(
                label="",
                datasets={"main": main, "limits": {"low": [low], "high": [high], "one": [1.0]}},
                summary=f"Change of time per size of {name(op)} on {pair_name(pair)}: {verdicts}.",
                caption=f"Point: change of time; line: its interval; shaded: within ±{percent(margin)}, "
                f"which counts as no difference. {verdicts.capitalize()}.",
            ),
        ),
    )

"""From a comparison to what is shown of it.  Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wulf.base.must_see import must_see
from wulf.base.nodeset import fold
from wulf.base.records import CellComparison, Comparison, Operation, Place
from wulf.base.text import count, printable
from wulf.base.units import format_bytes, format_changes, format_sizes, format_unseen
from wulf.page import ticks
from wulf.page.blocks import Page, Paragraph, Section, Verdict, known
from wulf.page.parts import Column, Columns, Figure, Item, Table, Variant, rounded
from wulf.page.words import (
    FLAGS,
    UNKNOWN,
    axis,
    change_item,
    listed,
    name,
    noun,
    percent,
    place_name,
    rest,
    sentence,
    sized,
)
from wulf.tools.compare.page import charts

SUMMARIES = {
    "better": "Better",
    "worse": "Worse",
    "mixed": "Better and worse: look at the sizes",
    "no difference": "No difference",
    "no decision": "No decision",
    "different": "Different runs: it may be an offset between them, and no effect",
}
#: What is compared where nothing else is said.
TIME = "time"
#: Rows of a table that grows with the pairs; what is left out is counted.
ROWS = 200
#: Facts that are named in one row where they are known in one run only.
NAMED = 6

Groups = dict[tuple[str, Place], list[CellComparison]]
Operations = Mapping[str, Operation]


@dataclass(frozen=True)
class _Part:
    """Cells that are shown together: the sizes of one place or, of what varies nothing, the places."""

    op: str
    #: Empty where every row is a place.
    where: str
    #: Head of the rows.
    each: str
    #: Name and cell of each row.
    rows: tuple[tuple[str, CellComparison], ...]
    #: What changes: 'time', or the number that a command prints.
    quantity: str = TIME

    @property
    def title(self) -> str:
        return f"{name(self.op)}, {self.where}" if self.where else name(self.op)

    @property
    def change(self) -> str:
        return f"change of {self.quantity}"


def build(comparison: Comparison, operations: Sequence[Operation] = ()) -> Page:
    """Return all that is shown of a comparison; `operations` say who takes part in them."""
    known_ = {operation.name: operation for operation in operations}
    groups = _groups(comparison.cells)
    parts = _parts(groups, known_)
    pooled = _pooled(comparison, _over(groups, known_), _change(parts))
    pairs = _pairs(groups, known_) if not parts or any(part.where for part in parts) else None
    each = " or ".join(dict.fromkeys("size" if part.where else part.each for part in parts)) or "size"
    return Page(
        title=f"{_answer(comparison)}{_hidden(comparison, groups, known_)}: "
        f"{name(comparison.candidate)} against {name(comparison.base)}",
        lede=f"{count(len(comparison.cells), 'cell')} that both {_sides(comparison)} have. {_direction(parts)}",
        kind="Comparison",
        verb="compare",
        head=(Verdict(FLAGS[comparison.verdict], (printable(comparison.reason, 400), *_limits(comparison))),),
        sections=(
            Section("pooled", pooled.title, known(pooled, pairs)),
            Section(
                "sizes",
                f"Per {each}",
                tuple(
                    block
                    for index, part in enumerate(parts)
                    for block in (
                        _forest(f"c{index}", part, known_.get(part.op), comparison.margin),
                        _cells(part),
                    )
                )
                or (Paragraph("The runs have no cell in common."),),
            ),
            Section("facts", "Facts that differ", (_facts(comparison),)),
        ),
        run="comparison",
    )


def _direction(parts: Sequence[_Part]) -> str:
    if all(part.quantity == TIME for part in parts):
        return "A change is that of the time, from base to candidate: negative is faster."
    return "A change is from base to candidate: of a time negative is faster; the verdict says which way is better."


def _change(parts: Sequence[_Part]) -> str:
    """Return the head of a column of changes of several operations."""
    kinds = {part.change for part in parts} or {f"change of {TIME}"}
    return kinds.pop() if len(kinds) == 1 else "change"


def _quantity(operation: Operation | None) -> str:
    return TIME if operation is None or operation.unit == "s" else name(operation.quantity)


def _sides(comparison: Comparison) -> str:
    return "settings, measured interleaved," if comparison.design == "interleaved" else "runs"


def _groups(cells: Sequence[CellComparison]) -> Groups:
    groups: Groups = defaultdict(list)
    for cell in sorted(cells, key=lambda cell: (cell.op, cell.place, cell.size_bytes)):
        groups[cell.op, cell.place].append(cell)
    return dict(groups)


def _parts(groups: Groups, operations: Operations) -> list[_Part]:
    """Put the cells of a place together, or the places of an operation that varies nothing."""
    parts: dict[tuple[str, str], _Part] = {}
    for (op, place), cells in groups.items():
        shown = place_name(place, operations.get(op))
        if sized(operations.get(op), (cell.size_bytes for cell in cells)):
            rows = tuple((format_bytes(cell.size_bytes), cell) for cell in cells)
            parts[op, shown] = _Part(op, shown, "size", rows, _quantity(operations.get(op)))
        else:
            before = parts[op, ""].rows if (op, "") in parts else ()
            each = noun(place, operations.get(op))
            rows = (*before, *((shown, cell) for cell in cells))
            parts[op, ""] = _Part(op, "", each, rows, _quantity(operations.get(op)))
    return list(parts.values())


def _any_sized(groups: Groups, operations: Operations) -> bool:
    return any(sized(operations.get(op), (c.size_bytes for c in cells)) for (op, _), cells in groups.items())


def _over(groups: Groups, operations: Operations) -> str:
    """Say over what figures are pooled: 'sizes and pairs'."""
    nouns = dict.fromkeys(f"{noun(place, operations.get(op))}s" for op, place in groups) or {"pairs": None}
    sizes = ["sizes"] if not groups or _any_sized(groups, operations) else []
    words = [*sizes, *nouns]
    return " and ".join((", ".join(words[:-1]), words[-1]) if len(words) > 1 else words)


def _limits(comparison: Comparison) -> tuple[str, ...]:
    within = f"Differences within ±{percent(comparison.margin)} count as none."
    unseen = "The smallest change that could have been shown is unknown."
    if comparison.smallest_effect is not None:
        between = "" if comparison.design == "interleaved" else " between these runs"
        unseen = (
            f"Changes {format_unseen(comparison.smallest_effect)} may go unseen{between}{_where(comparison)}."
        )
    blind = (*_untold(comparison), *_unshared(comparison))
    if comparison.design == "interleaved":
        return *blind, within, unseen
    references = tuple(
        f"{name(op)}, adjusted: the change at the same speed of the nodes, by the reference beside every figure."
        if one.ratio
        else f"{name(op)} is not adjusted by the reference: {printable(one.reason, 200)}."
        for op, one in sorted(comparison.adjusted.items())
    )
    offset = (
        f"Two runs of the same thing may differ by up to {percent(comparison.offset)}, as each is off by a few percent "
        "on its day: only wulf compare --interleaved tells a smaller effect from that."
    )
    return *blind, within, *references, unseen, offset


def _untold(comparison: Comparison) -> Iterator[str]:
    """Say of which operations a change that matters would have gone unseen, and what would help."""
    ops = comparison.untold
    if ops:
        sizes = {cell.size_bytes for cell in comparison.cells if cell.op in ops}
        wanted = percent(min(map(must_see, sizes or {0})))
        helps = (
            "more --launches, or nodes that do nothing else"
            if comparison.design == "interleaved"
            else "longer runs on idle nodes, or wulf compare --interleaved"
        )
        whom = listed([name(op) for op in ops])
        yield f"Cannot tell of {whom}: even a change of {wanted} would go unseen; {helps} would help."


def _unshared(comparison: Comparison) -> Iterator[str]:
    """Say what only one run has: nothing is said of it."""
    compared = {cell.op for cell in comparison.cells}
    for run, only in zip((comparison.base, comparison.candidate), comparison.unshared, strict=True):
        said = [
            f"{name(op)} ({listed([place_name(place) for place in places], 3)})"
            if op in compared
            else name(op)
            for op, places in only.items()
        ]
        if said:
            yield f"Not compared, as only {name(run)} has figures of it: {listed(said)}."


def _where(comparison: Comparison) -> str:
    """Name the operation that shows least, where there are several."""
    effects = comparison.smallest_effects
    worst = [op for op, effect in effects.items() if effect == comparison.smallest_effect]
    return f", of {name(worst[0])} in all; other operations show more" if worst and len(effects) > 1 else ""


def _kind(groups: Groups, operations: Operations) -> str:
    """Say what the places of a comparison are called: 'pair', or 'place' where there are several kinds."""
    kinds = {noun(place, operations.get(op)) for op, place in groups} or {"pair"}
    return kinds.pop() if len(kinds) == 1 else "place"


def _answer(comparison: Comparison) -> str:
    """Return the verdict, of a mixed one what it says of the sizes; of a figure over all of them its change."""
    said = SUMMARIES[comparison.verdict]
    if comparison.verdict == "no decision" and comparison.untold:
        return "Cannot tell"
    if comparison.verdict == "mixed" and comparison.reason:
        return sentence(printable(comparison.reason, 200))
    if comparison.verdict in ("better", "worse") and len(comparison.pooled) == 1:
        (cell,) = comparison.pooled.values()
        return f"{said}: {change_item(cell.ratio).text}"
    return said


def _hidden(comparison: Comparison, groups: Groups, operations: Operations) -> str:
    """Say which way single pairs went where the runs as a whole went none: a mean may hide them."""
    if comparison.verdict not in ("no decision", "no difference"):
        return ""
    places = count(len({place for _, place in groups}), _kind(groups, operations))
    said = []
    for verdict, way in (("better", "faster"), ("worse", "slower")):
        went = {place for (_, place), cells in groups.items() if any(c.verdict == verdict for c in cells)}
        if went:
            said.append(f"{len(went)} of {places} {way}")
    at = " at some sizes" if _any_sized(groups, operations) else ""
    return f" over all {_over(groups, operations)}, but {' and '.join(said)}{at}" if said else ""


def _verdict(cell: CellComparison) -> Item:
    return Item(cell.verdict, cell.verdict, FLAGS[cell.verdict])


def _pooled(comparison: Comparison, over: str, change: str) -> Table:
    adjusted = any(one.ratio for one in comparison.adjusted.values())
    return Table(
        title=f"Over all {over}",
        columns=(
            Column("operation"),
            Column(change, numeric=True),
            *((Column("adjusted", numeric=True),) if adjusted else ()),
            Column("verdict"),
            Column("may go unseen", narrow=False),
        ),
        rows=tuple(
            (
                Item(name(op)),
                change_item(cell.ratio),
                *((_adjusted(comparison, op),) if adjusted else ()),
                _verdict(cell),
                _unseen(comparison, op),
            )
            for op, cell in sorted(comparison.pooled.items())
        ),
        empty="no operation was measured between the same nodes at the same size in both runs",
    )


def _adjusted(comparison: Comparison, op: str) -> Item:
    found = comparison.adjusted.get(op)
    return change_item(found.ratio) if found and found.ratio else Item("–", None)


def _unseen(comparison: Comparison, op: str) -> Item:
    effect = comparison.smallest_effects.get(op)
    return Item("unknown", None, "unknown") if effect is None else Item(format_unseen(effect), effect)


def _pairs(groups: Groups, operations: Operations) -> Table:
    """One row per operation, pair and what became of it: at which sizes, and between which changes."""
    rows = []
    kind = _kind(groups, operations)
    for (op, pair), cells in groups.items():
        if not sized(operations.get(op), (cell.size_bytes for cell in cells)):
            continue  # its cells have a row each, below
        found = {verdict: [cell for cell in cells if cell.verdict == verdict] for verdict in FLAGS}
        # What became neither better nor worse is shown of the pairs of which there is nothing else to say.
        decided = {verdict: own for verdict, own in found.items() if own and verdict in ("better", "worse")}
        where = place_name(pair, operations.get(op))
        rows += [_pair_row(op, where, cells, own) for own in (decided or found).values() if own]
    return Table(
        title=f"By {kind}",
        columns=(
            Column("operation"),
            Column(kind, whole=True),
            Column("verdict"),
            Column("sizes"),
            Column(f"change of {TIME}", numeric=True),
        ),
        rows=tuple(rows[:ROWS]),
        note=rest(len(rows), ROWS, "rows", "wulf compare --json"),
        empty="the runs have no cell in common",
    )


def _pair_row(
    op: str, pair: str, cells: Sequence[CellComparison], own: Sequence[CellComparison]
) -> tuple[Item, ...]:
    changes = [cell.ratio.value for cell in own]
    sizes = format_sizes([cell.size_bytes for cell in own], [cell.size_bytes for cell in cells])
    return (
        Item(name(op)),
        Item(pair),
        _verdict(own[0]),
        Item(f"{len(own)} of {len(cells)}: {sizes}", len(own)),
        Item(format_changes(min(changes), max(changes)), min(changes)),
    )


def _cells(part: _Part) -> Table:
    return Table(
        title=part.title,
        columns=(
            Column(part.each, numeric=bool(part.where), whole=True),
            Column(part.change, numeric=True),
            Column("p", numeric=True, narrow=False),
            Column("adjusted p", numeric=True),
            Column("launches", numeric=True, narrow=False),
            Column("verdict"),
        ),
        rows=tuple(
            (
                Item(label, cell.size_bytes if part.where else label),
                change_item(cell.ratio),
                _p_value(cell.p_value),
                _p_value(cell.p_adjusted),
                Item(str(cell.ratio.n), cell.ratio.n),
                _verdict(cell),
            )
            for label, cell in part.rows
        ),
        note="p: of no change; adjusted for the number of cells after Benjamini and Hochberg.",
        tall=True,
    )


def _p_value(value: float) -> Item:
    return Item("< 0.001" if value < 0.001 else f"{value:.3f}", value)


def _facts(comparison: Comparison) -> Table:
    """One row per change; nodes that changed alike share it, and so do facts that are known in one run only."""
    alike: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for key, (base, candidate) in comparison.differing_facts.items():
        node, _, fact = key.rpartition(": ")
        alike[fact, base, candidate].append(node)
    rows, one_sided = [], defaultdict(list)
    for (fact, base, candidate), nodes in sorted(alike.items()):
        if UNKNOWN in (base, candidate):
            one_sided[base == UNKNOWN, tuple(nodes)].append(fact)
        else:
            rows.append(_fact_row(fact, nodes, base, candidate))
    for (in_candidate, who), facts in one_sided.items():
        sides = (UNKNOWN, "known") if in_candidate else ("known", UNKNOWN)
        rows.append(_fact_row(listed(facts, NAMED), who, *sides))
    return Table(
        title="Facts that differ",
        columns=(Column("fact"), Column("nodes"), Column("base"), Column("candidate")),
        rows=tuple(rows),
        empty="no recorded fact differs between the runs",
    )


def _fact_row(fact: str, nodes: Sequence[str], base: str, candidate: str) -> tuple[Item, ...]:
    named = [node for node in nodes if node]
    return (
        Item(printable(fact, 400)),
        Item(printable(fold(named), 200) if named else "–"),
        Item(printable(base, 200)),
        Item(printable(candidate, 200)),
    )


def _forest(id_: str, part: _Part, operation: Operation | None, margin: float) -> Figure:
    cells = [cell for _, cell in part.rows]
    main: Columns = {
        "size" if part.where else "place": [label for label, _ in part.rows],
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
    low, high = 1 - margin, 1 + margin
    tally = [(verdict, sum(cell.verdict == verdict for cell in cells)) for verdict in FLAGS]
    verdicts = ", ".join(f"{number} {verdict}" for verdict, number in tally if number)
    return Figure(
        id=id_,
        chart=charts.FOREST,
        title=part.title,
        x_title=part.change,
        y_title=axis(operation) if part.where else part.each,
        x=ticks.changes([*bounds, low, high]),
        variants=(
            Variant(
                label="",
                datasets={"main": main, "limits": {"low": [low], "high": [high], "one": [1.0]}},
                summary=f"{sentence(part.change)} per {part.each} of {name(part.op)}"
                f"{f' on {part.where}' if part.where else ''}: {verdicts}.",
                caption=f"Point: {part.change}; line: its interval; shaded: within ±{percent(margin)}, "
                f"which counts as no difference. {verdicts.capitalize()}.",
            ),
        ),
    )

"""Results of HPC Challenge as people read them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from wulf.base.nodeset import fold
from wulf.base.records.base import Estimate
from wulf.base.text import count, printable
from wulf.base.units import format_change, format_value
from wulf.page.blocks import Page, Verdict
from wulf.page.parts import Column, Item, Table
from wulf.page.words import name, percent
from wulf.tools.hpcc.record import HpccFigure, HpccResult

#: How long the steps of a test took: in --json.
_TIMES = "s"
_ENDED = {
    "budget": "time ran out before all rounds were made: give it more with --budget",
    "interrupted": "interrupted: complete rounds are kept",
}


def build(found: HpccResult) -> Page:
    """Return whether all went well and which nodes differ, then all results."""
    first, *more = verdict(found)
    return Page(
        title=first,
        lede="",
        kind="HPC Challenge",
        verb="bench hpcc",
        head=(Verdict("error" if found.different or found.failures else "good", tuple(more)), _table(found)),
        sections=(),
        run=found.run_id,
    )


def verdict(found: HpccResult) -> Iterator[str]:
    """Yield the answer in one line, then what it rests on."""
    where = f"{count(len(found.nodes), 'node')}, {fold(map(printable, found.nodes))}"
    if found.different:
        odd = {printable(one.node) for one in found.different}
        first = found.different[0]
        verb = "differs" if len(odd) == 1 else "differ"
        yield f"{fold(odd)} {verb} from the others of {where}: {first.name} {format_change(first.ratio)} time"
    elif found.failures:
        yield f"on {where} {count(sum(found.failures.values()), 'run')} of HPCC failed"
    elif found.compared:
        yield f"of {where} none is shown to differ from the others by more than {percent(found.margin)}"
    else:
        yield f"HPC Challenge on {where}"
    for one in found.different:
        yield f"  {printable(one.node)}: {one.name}: {format_change(one.ratio)} time for the same work"
    for reason, times in found.failures.items():
        yield f"  {count(times, 'run')} failed: {printable(reason, 300)}"
    if found.status in _ENDED:
        yield _ENDED[found.status]
    sizes = ", ".join(f"N {size} {how}" for how, size in found.sizes.items() if size)
    yield (
        f"{count(found.launches_ok, 'run')} of HPCC passed all checks; {count(found.ranks_per_node, 'rank')} on each "
        f"node; {sizes}"
    )
    if found.compared:
        yield (
            f"nodes are compared in {', '.join(found.compared)}; where all are alike any is named in "
            f"{percent(found.false_alarm)} of cases"
        )


def _table(found: HpccResult) -> Table:
    columns = [Column("result", whole=True), Column("all together", numeric=True)]
    if found.by_node:
        columns += [
            Column("a node alone", numeric=True),
            Column("from", numeric=True),
            Column("to", numeric=True),
        ]
    alone = {node: {figure.name: figure for figure in figures} for node, figures in found.by_node.items()}
    shown = [figure for figure in found.figures if figure.value.unit != _TIMES]
    return Table(
        title="Results, medians over runs",
        columns=tuple(columns),
        rows=tuple(
            (Item(name(figure.name)), _spread(figure.value), *_of_nodes(figure, alone)) for figure in shown
        ),
        empty="no run on all nodes together succeeded",
        note="run times of the tests: --json",
    )


def _spread(value: Estimate) -> Item:
    """Return a result with its bounds, which a network test has often far to one side."""
    shown = format_value(value.value, value.unit)
    if value.low is None or value.high is None:
        return Item(f"{shown} (no interval)", value.value)
    return Item(f"{shown} ({value.low:.3g} to {value.high:.3g})", value.value)


def _of_nodes(figure: HpccFigure, alone: Mapping[str, Mapping[str, HpccFigure]]) -> Iterator[Item]:
    """Yield the middle node, and the ends, of what each does alone."""
    if not alone:
        return
    values = sorted(
        (figures[figure.name].value.value, node) for node, figures in alone.items() if figure.name in figures
    )
    if not values:
        yield from [Item("–")] * 3  # one rank alone has nobody to send to
        return
    for value, node in (values[len(values) // 2], values[0], values[-1]):
        text = format_value(value, figure.value.unit)
        yield Item(text if value == values[len(values) // 2][0] else f"{text} ({printable(node)})", value)

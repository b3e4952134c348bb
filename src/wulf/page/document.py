"""Blocks as what every document has: headings, paragraphs, lists, text as it is, and tables.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from wulf.page.blocks import (
    Block,
    Cards,
    Changes,
    Code,
    Command,
    KeyFigures,
    Keys,
    Links,
    Matrices,
    Notes,
    Operations,
    Page,
    PageOnly,
    Paragraph,
    Verdict,
    Warnings,
)
from wulf.page.parts import Column, Figure, Findings, Item, OperationResult, Table
from wulf.page.words import sentence


@dataclass(frozen=True)
class Heading:
    """Begins what is about one thing."""

    text: str
    #: 1 is the title of the document.
    level: int


Basic = Heading | Paragraph | Notes | Code | Table


def document(shown: Page) -> Iterator[Basic]:
    """Yield all that is on a page, charts as what they say in words."""
    yield Heading(shown.title, 1)
    if shown.lede:
        yield Paragraph(shown.lede)
    for block in shown.head:
        yield from lowered(block)
    for section in shown.sections:
        inner = [basic for block in section.blocks for basic in lowered(block)]
        if inner and section.title:
            yield Heading(section.title, 2)
        yield from inner


def lowered(block: Block) -> Iterator[Basic]:
    """Yield a block in basic forms."""
    yield from _LOWERED[type(block)](block)


def data(figure: Figure) -> Table:
    """Return the numbers of a chart, of its first variant, as a table."""
    datasets = figure.variants[0].datasets if figure.variants else {}
    columns = next(iter(datasets.values()), {})
    rows = zip(*columns.values(), strict=True)
    return Table(
        title=figure.title,
        columns=tuple(Column(name) for name in columns),
        rows=tuple(tuple(Item("" if raw is None else str(raw), raw) for raw in row) for row in rows),
    )


def _same(block: Paragraph | Table) -> Iterator[Basic]:
    yield block


def _nothing(_: KeyFigures) -> Iterator[Basic]:
    """Yield nothing: each operation has its own."""
    yield from ()


def _verdict(block: Verdict) -> Iterator[Basic]:
    if block.title:
        yield Paragraph(sentence(block.title))
    if block.lines:
        yield Notes(tuple(line.strip() for line in block.lines))


def _keys(block: Keys) -> Iterator[Basic]:
    rows = tuple((Item(key.name), Item(key.value), Item(key.where)) for key in block.keys)
    yield Table("Key figures", (Column("figure"), Column("value"), Column("of")), rows)


def _notes(block: Notes) -> Iterator[Basic]:
    if block.lines:
        yield block


def _code(block: Code) -> Iterator[Basic]:
    if block.summary:
        yield Paragraph(f"{sentence(block.summary)}:")
    yield replace(block, summary="")


def _command(block: Command) -> Iterator[Basic]:
    yield Paragraph(f"{sentence(block.label)}:")
    yield Code(block.text)


def _links(block: Links) -> Iterator[Basic]:
    yield Paragraph(f"{block.label}: {', '.join(f'{title} ({address})' for title, address in block.pages)}")


def _figure(block: Figure) -> Iterator[Basic]:
    if block.variants:
        yield Paragraph(f"Figure: {block.title}. {block.variants[0].summary}")


def _matrices(block: Matrices) -> Iterator[Basic]:
    for figure in block.figures:
        yield from _figure(figure)


def _changes(block: Changes) -> Iterator[Basic]:
    yield Table(
        "Changes",
        (Column("setting"), Column("original"), Column("kept"), Column("worth")),
        tuple(
            (Item(one.knob), Item(one.before), Item(one.after), Item(f"{one.worth} {one.note}".strip()))
            for one in block.changes
        ),
    )
    yield from _notes(
        Notes(tuple(f"{one.knob}: {label}: {text}" for one in block.changes for label, text, _ in one.lines))
    )


def _cards(block: Cards) -> Iterator[Basic]:
    lines = (f"{one.title} ({one.where}): {one.evidence} {one.why} Next: {one.next}" for one in block.cards)
    yield from _notes(Notes(tuple(lines)))


def _warnings(block: Warnings) -> Iterator[Basic]:
    for one in block.warnings:
        yield Notes(tuple(f"{one.severity}: {one.kind}: {case}" for case in one.cases))
        yield Paragraph(one.advice)


def _page_only(block: PageOnly) -> Iterator[Basic]:
    for inner in block.blocks:
        yield from lowered(inner)


def _operations(block: Operations) -> Iterator[Basic]:
    for result in block.results:
        yield from _operation(result, brief=block.brief)


def _operation(result: OperationResult, *, brief: bool) -> Iterator[Basic]:
    yield Heading(f"{result.name}: {result.title}", 3)
    yield Table(
        "Key figures",
        (Column("figure"), Column("worst"), Column(result.noun), Column("best"), Column(result.noun)),
        tuple(
            (
                Item(key.name),
                key.worst,
                Item(key.worst_pair),
                key.best or Item("–"),
                Item(key.best_pair or "–"),
            )
            for key in result.key_figures
        ),
        note=" ".join(key.note for key in result.key_figures if key.note),
    )
    if brief:
        return
    if result.left_out:
        yield Paragraph(result.left_out)
    yield result.pairs
    for detail in result.details:
        yield Heading(detail.pair, 4)
        yield from _notes(Notes(detail.notes))
        yield from (table for table in (detail.segments, detail.sizes) if table is not None)


def _findings(found: Findings) -> Iterator[Basic]:
    yield from _notes(Notes(tuple(f"no answer: {nodes}: {reason}" for nodes, reason in found.unreachable)))
    for one in found.findings:
        where = "all nodes" if one.everywhere else one.nodes
        yield Heading(f"{one.severity.upper()}: {one.title} ({where})", 2)
        yield Notes(tuple(f"{label}: {text}" for label, text in one.lines))
        for label, command in one.commands:
            yield from _command(Command(label, command))
    if found.alike.rows:
        yield Table(
            "How nodes differ",
            (Column("nodes"), Column("differ in"), Column("do not tell")),
            tuple(
                (Item(row.nodes), Item("; ".join(row.odd) or "–"), Item(", ".join(row.gaps) or "–"))
                for row in found.alike.rows
            ),
        )
    if found.alike.note:
        yield Paragraph(found.alike.note)
    if found.unknown:
        yield Heading("Not known", 2)
        yield Notes(tuple(f"{reason} ({nodes}): {titles}" for titles, reason, nodes in found.unknown))


_LOWERED: dict[type[Block], Callable[[Any], Iterator[Basic]]] = {
    Verdict: _verdict,
    Keys: _keys,
    Notes: _notes,
    Paragraph: _same,
    Code: _code,
    Command: _command,
    Links: _links,
    Table: _same,
    Figure: _figure,
    Matrices: _matrices,
    Changes: _changes,
    Cards: _cards,
    Operations: _operations,
    KeyFigures: _nothing,
    Findings: _findings,
    Warnings: _warnings,
    PageOnly: _page_only,
}

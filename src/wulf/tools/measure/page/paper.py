"""What a paper takes from a measured run: tables in LaTeX or Markdown.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from wulf.page import markup
from wulf.page.blocks import Operations, Page
from wulf.page.parts import Item, Table
from wulf.page.terminal import Grid


def latex(shown: Page) -> str:
    """Return all operations' tables as LaTeX: pairs, then the sizes of the worst pair."""
    return "\n".join(markup.latex(table) for table in _tables(shown))


def markdown(shown: Page) -> str:
    """Return the same as Markdown."""
    return "\n".join(markup.markdown(table) for table in _tables(shown))


def _tables(shown: Page) -> Iterator[Table]:
    for operation in (
        one for block in shown.blocks if isinstance(block, Operations) for one in block.results
    ):
        whole = [operation.pairs, *(detail.sizes for detail in operation.details[:1])]
        for table in whole:
            yield _printed(replace(table, title=f"{operation.name}: {table.title}"))


def _printed(table: Table) -> Table:
    """Return the table as it fits on paper: the narrow columns, and below them why something is not known."""
    grid = Grid.of(table, wide=False)
    notes: Sequence[str] = (*grid.reasons, table.note)
    rows = tuple(tuple(_plain(item) for item in row) for row in grid.rows)
    return replace(table, columns=grid.columns, rows=rows, note="\n".join(note for note in notes if note))


def _plain(item: Item) -> Item:
    return replace(item, text="–") if item.flag == "unknown" else item

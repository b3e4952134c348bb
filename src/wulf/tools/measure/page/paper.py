"""What a paper takes from a measured run: tables in LaTeX or Markdown, and an entry for its bibliography.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from wulf.page import gate, markup
from wulf.page.blocks import Operations, Page
from wulf.page.parts import Item, Table
from wulf.page.terminal import Grid

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TITLE = "wulf: measuring, auditing and tuning the network of commodity clusters"


@dataclass(frozen=True)
class Citation:
    """What is cited of a run, measured or tuned."""

    run_id: str
    #: '4 nodes, 3 pairs: mpi_pingpong'.
    title: str
    wulf_version: str
    #: ISO 8601.
    created_at: str
    seed: int


def latex(shown: Page) -> str:
    """Return all operations' tables as LaTeX: pairs, then the sizes of the worst pair."""
    return "\n".join(markup.latex(table) for table in _tables(shown))


def markdown(shown: Page) -> str:
    """Return the same as Markdown."""
    return "\n".join(markup.markdown(table) for table in _tables(shown))


def bibtex(cited: Citation) -> str:
    """Return BibTeX entries of the run and of the program."""
    when = datetime.fromisoformat(cited.created_at)
    key = re.sub(r"[^A-Za-z0-9.-]+", "-", cited.run_id)
    version = gate.latex(cited.wulf_version)
    return _entry(
        f"wulf-run-{key}",
        title=f"{{{gate.latex(cited.title)}}}",
        howpublished=f"{{Measured with wulf {version}, run {gate.latex(cited.run_id)}}}",
        note=f"{{Random seed {cited.seed}}}",
        year=str(when.year),
        month=_MONTHS[when.month - 1],
    ) + _entry(
        "wulf",
        author="{{The wulf developers}}",
        title=f"{{{_TITLE}}}",
        howpublished=f"{{Software, version {version}}}",
        year=str(when.year),
    )


def _entry(key: str, **fields: str) -> str:
    lines = "".join(f"  {name:<12} = {value},\n" for name, value in fields.items())
    return f"@misc{{{key},\n{lines}}}\n"


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

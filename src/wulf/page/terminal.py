"""Views on a terminal: the same numbers as on the page, readable at 80 columns."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from wulf.page import findings, operations
from wulf.page.blocks import (
    Block,
    Cards,
    Change,
    Changes,
    Code,
    Command,
    Key,
    KeyFigures,
    Keys,
    Links,
    Matrices,
    Notes,
    Operations,
    Page,
    PageOnly,
    Paragraph,
    Section,
    Verdict,
    Warnings,
)
from wulf.page.escaping import CleanConsole
from wulf.page.parts import Card, Column, Figure, Findings, Item, Table, Warning
from wulf.page.words import UNKNOWN, listed

STYLES = {
    "": "",
    "good": "green",
    "fair": "yellow",
    "poor": "red",
    "nothing": "yellow",
    "note": "",
    "warning": "yellow",
    "error": "red",
    "unknown": "dim",
}
#: Below this width columns that are not `narrow` are left out; the page and the CSV have them.
WIDE = 160
#: Cases of one warning that are printed; the rest is counted.
CASES = 3
#: Width of the text, not of the tables, in a file.
PLAIN_WIDTH = 100
#: Blanks between columns.
GAP = 2
#: A longer word may be broken in two to make room for other columns.
LONGEST_WORD = 20


def plain(show: Callable[[Console], None]) -> str:
    """Return what `show` prints as plain text."""
    out = io.StringIO()
    show(CleanConsole(file=out, width=PLAIN_WIDTH, highlight=False, force_terminal=False, color_system=None))
    # Tables are filled up with blanks to the width; a file needs none.
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def print_page(shown: Page, console: Console) -> None:
    """Print a page on a terminal."""
    Printer(console).page(shown)


def print_blocks(blocks: Iterable[Block], console: Console) -> None:
    """Print blocks that are on no page, such as what is about to be done."""
    printer = Printer(console)
    for block in blocks:
        printer.block(block)


def page_text(shown: Page) -> str:
    """Return a page as plain text, for a file."""
    return plain(lambda console: print_page(shown, console))


class Printer:
    """Puts a page on a console, block by block; everything is printed as text, never as markup."""

    #: Whether warnings are printed with all their cases and what to do about them; ``--explain`` of the program.
    explained: ClassVar[bool] = False

    def __init__(self, console: Console) -> None:
        self._console = console
        self._wide = console.width >= WIDE
        # The lines of a file or a pipe have no end: tables are neither wrapped nor cut there.
        self._boundless = not console.is_terminal
        #: Whether the last line is empty.
        self._blank = False
        #: Columns that were said to be left out: of many tables of one kind it is said once.
        self._said: set[str] = set()

    def page(self, shown: Page) -> None:
        """Print all that a terminal has room for: everything but charts."""
        self.head(shown.title, shown.lede)
        for block in shown.head:
            self.block(block)
        for section in shown.sections:
            if _has_heading(section):
                self.section(section.title)
            for block in section.blocks:
                self.block(block)

    def block(self, block: Block) -> None:
        """Print a block; charts, and what only a page has, are left out."""
        forms: dict[type[Block], Callable[[Any], None]] = {
            Table: self.table,
            Verdict: lambda one: self.verdict(one.title, one.flag, one.lines),
            Keys: lambda one: _each(self.line, map(_key, one.keys)),
            Notes: lambda one: _each(self.line, (f"- {line}" for line in one.lines)),
            Paragraph: lambda one: self.line(one.text),
            Command: lambda one: _each(self.line, ("", f"{one.label}: {one.text}")),
            Changes: lambda one: _each(self.change, one.changes),
            Code: lambda one: _each(self.line, () if one.summary else one.text.splitlines()),
            Operations: self._operations,
            Findings: lambda one: findings.show(one, self),
            Cards: lambda one: _each(self.card, one.cards),
            Warnings: lambda one: self.warnings(one.warnings),
        }
        if type(block) in forms:
            forms[type(block)](block)

    def _operations(self, block: Operations) -> None:
        for result in block.results:
            operations.key_figures(self, result)
            if not block.brief:
                operations.details(self, result)

    def change(self, change: Change) -> None:
        self.line("")
        self.line(f"{change.title}: {change.before} → {change.after}  [{change.knob}]", "bold")
        self.line(f"  worth   {change.worth} {change.note}")
        for label, text, _ in change.lines:
            self.line(f"  {label:<7} {text}")

    def card(self, card: Card) -> None:
        self.line("")
        self.line(f"{card.title}  ({card.where})", "bold yellow")
        for line in (card.evidence, card.why, f"next: {card.next}"):
            self.line(f"  {line}")

    def head(self, title: str, lede: str) -> None:
        self.line(title, "bold")
        if lede:
            self.line(lede)
            self.line("")

    def section(self, title: str) -> None:
        self.line("")
        self.line(title, "bold")
        self.line("─" * min(len(title), self._console.width), "dim")

    def verdict(self, title: str, flag: str, lines: Sequence[str]) -> None:
        if title:
            self.line(title, f"bold {STYLES[flag]}".strip())
        for line in lines:
            self.line(line)

    def warnings(self, warnings: Sequence[Warning]) -> None:
        """Print warnings: on a terminal a line each unless more was asked for, to a file all that is known."""
        if self.explained or self._boundless:
            _each(self.warning, warnings)
            return
        for warning in warnings:
            more = f" (and {len(warning.cases) - 1} more)" if len(warning.cases) > 1 else ""
            style = f"bold {STYLES[warning.severity]}".strip()
            head = Text.assemble((f"{warning.severity}: {warning.kind}: ", style), warning.cases[0])
            head.truncate(self._console.width - len(more), overflow="ellipsis")
            self._print(head + Text(more))
        if warnings:
            self.line("For advice on these: --explain (of a run: wulf report RUN --text --explain).", "dim")

    def warning(self, warning: Warning) -> None:
        style = f"bold {STYLES[warning.severity]}".strip()
        for case in warning.cases[:CASES]:
            self._print(Text.assemble((f"{warning.severity}: {warning.kind}: ", style), case))
        if len(warning.cases) > CASES:
            self.line(f"  and {len(warning.cases) - CASES} more")
        self._print(Padding(Text(warning.advice), (0, 0, 0, 2), expand=False))

    def text(self, text: Text) -> None:
        """Print a line of several styles."""
        self._print(text)

    def line(self, text: str, style: str = "") -> None:
        # What stands before and after a block may both ask for room.
        if text or not self._blank:
            self._print(Text(text, style=style))

    def table(self, table: Table) -> None:
        """Print a table so that every column and every value of it can be read."""
        self.line("")
        if not table.rows:
            self.line(f"{table.title}: {table.empty}.")
            return
        self.line(table.title, "bold")
        self.rows(table)

    def rows(self, table: Table, *, heads: bool = True) -> None:
        """Print the rows of a table, below the heads of its columns, without its title."""
        grid = Grid.of(table, wide=self._wide)
        widths = grid.natural if self._boundless else grid.fitted(self._console.width)
        if widths is None:
            self._entries(grid)
        else:
            self._grid(grid, widths, heads=heads)
        for note in (*grid.reasons, self._left_out(table, grid), table.note):
            if note:
                self.line(note, "dim")

    def _left_out(self, table: Table, grid: Grid) -> str:
        """Name the columns that are not printed; empty where that was said before."""
        names = ", ".join(
            column.name
            for index, column in enumerate(table.columns)
            if column not in grid.columns and any(row[index].text for row in table.rows)
        )
        if not names or names in self._said:
            return ""
        self._said.add(names)
        return f"not shown below {WIDE} columns: {names}"

    def _grid(self, grid: Grid, widths: Sequence[int], *, heads: bool) -> None:
        total = sum(widths) + GAP * (len(widths) - 1)
        drawn = RichTable(
            box=None,
            pad_edge=False,
            padding=(0, GAP, 0, 0),
            header_style="dim",
            show_header=heads,
            width=total,
        )
        for column, width in zip(grid.columns, widths, strict=True):
            drawn.add_column(
                Text(column.name),
                justify="right" if column.numeric else "left",
                overflow="fold",
                width=width,
            )
        for row in grid.rows:
            drawn.add_row(*map(_cell, row))
        self._console.print(drawn, soft_wrap=False, crop=False)
        self._blank = False

    def _entries(self, grid: Grid) -> None:
        """Print a table that is wider than the terminal: one paragraph per row, one line per value."""
        label = max(cell_len(column.name) for column in grid.columns)
        for row in grid.rows:
            self._print(_cell(row[0]))
            for column, item in zip(grid.columns[1:], row[1:], strict=True):
                self._print(
                    Padding(Text.assemble((f"{column.name:<{label}}  ", "dim"), _cell(item)), (0, 0, 0, 2))
                )

    def _print(self, what: Text | Padding) -> None:
        self._blank = isinstance(what, Text) and not what.plain
        self._console.print(what, soft_wrap=False, markup=False, emoji=False, highlight=False)


def _each(show: Callable[[Any], None], parts: Iterable[Any]) -> None:
    for part in parts:
        show(part)


def _key(key: Key) -> str:
    return f"{key.name}: {key.value}{f'  ({key.where})' if key.where else ''}"


def _is_printed(block: Block) -> bool:
    """Whether a terminal shows anything of a block."""
    if isinstance(block, Notes):
        return bool(block.lines)
    if isinstance(block, Code):
        return not block.summary
    return not isinstance(block, Figure | KeyFigures | Links | Matrices | PageOnly)


def _has_heading(section: Section) -> bool:
    """Whether anything of a section is printed that does not have the same title itself."""
    printed = [block for block in section.blocks if _is_printed(block)]
    titles = [block.title for block in printed if isinstance(block, Table)]
    return bool(section.title and printed) and section.title not in titles


def _cell(item: Item) -> Text:
    return Text(item.text, style=STYLES[item.flag])


@dataclass(frozen=True)
class Grid:
    """The columns of a table that are printed; why a number is unknown stands below it, not in the way of others."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Item, ...], ...]
    #: 'unknown: REASON (rows)', one for each reason.
    reasons: tuple[str, ...]

    @classmethod
    def of(cls, table: Table, *, wide: bool) -> Grid:
        """Choose the columns and shorten what is unknown among numbers."""
        kept = [index for index, column in enumerate(table.columns) if wide or column.narrow]
        columns = tuple(table.columns[index] for index in kept)
        reasons: dict[str, list[str]] = {}
        rows = []
        for row in table.rows:
            rows.append(tuple(_shortened(row[index], table.columns[index]) for index in kept))
            for index in kept:
                if _is_explained(row[index], table.columns[index]):
                    found = reasons.setdefault(row[index].text, [])
                    if row[0].text not in found:
                        found.append(row[0].text)
        said = (
            reason if len(names) == len(rows) > 1 else f"{reason} ({listed(names, 3)})"
            for reason, names in reasons.items()
        )
        return cls(columns, tuple(rows), tuple(said))

    @property
    def natural(self) -> list[int]:
        """Widths at which nothing is wrapped."""
        return [max(map(cell_len, self._texts(index))) for index in range(len(self.columns))]

    def fitted(self, width: int) -> list[int] | None:
        """Return widths that fill `width` at most; None where not even the longest words have room."""
        widths = self.natural
        room = width - GAP * (len(widths) - 1)
        whole, broken = (
            [self._least(index, longest) for index in range(len(widths))] for longest in (width, LONGEST_WORD)
        )
        least = whole if sum(whole) <= room else broken
        if sum(least) > room:
            return None
        while sum(widths) > room:
            shrinkable = [index for index in range(len(widths)) if widths[index] > least[index]]
            widths[max(shrinkable, key=widths.__getitem__)] -= 1
        return widths

    def _texts(self, index: int) -> list[str]:
        lines = [line for row in self.rows for line in row[index].text.splitlines()]
        return [self.columns[index].name, *lines]

    def _least(self, index: int, longest_word: int) -> int:
        """Width below which a number, a name, or a word that is not too long, would be broken."""
        head, *texts = self._texts(index)
        if self.columns[index].numeric or self.columns[index].whole:
            longest = max(map(cell_len, texts), default=1)
        else:
            words = [cell_len(word) for text in texts for word in text.split()]
            longest = min(max(words, default=1), longest_word)
        return max(longest, *map(cell_len, head.split()))


def _is_explained(item: Item, column: Column) -> bool:
    return column.numeric and item.flag == "unknown" and item.text.startswith(f"{UNKNOWN}: ")


def _shortened(item: Item, column: Column) -> Item:
    return Item(UNKNOWN, item.raw, item.flag) if _is_explained(item, column) else item

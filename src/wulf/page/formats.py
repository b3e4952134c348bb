"""A page as Markdown, LaTeX, and CSV.  Pure; the page itself is `wulf.page.page`, the terminal `wulf.page.terminal`."""

from __future__ import annotations

import csv as csv_module
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from wulf.base.errors import UsageError
from wulf.page import escaping, markup
from wulf.page.blocks import Code, Notes, Page, Paragraph
from wulf.page.document import Basic, Heading, data, document
from wulf.page.parts import Figure, Raw, Table

Form = Literal["html", "text", "json", "csv", "markdown", "latex", "bibtex", "svg", "pdf"]
#: Forms that are no page and no picture.
Data = Literal["json", "csv", "markdown", "latex", "bibtex"]
CSV_HEADER = ("table", "row", "column", "value", "text")
_LATEX_HEADINGS = {1: "section*", 2: "subsection*", 3: "subsubsection*", 4: "paragraph"}


class Report(NamedTuple):
    """In which forms a run of one kind is read; each takes the run."""

    page: Callable[[Any], Page]
    #: What is printed to a terminal, without what only a page shows.
    text: Callable[[Any], Page]
    #: The charts, each with the name of what it is about.
    figures: Callable[[Any], Sequence[tuple[str, Figure]]]
    data: Callable[[Any, Data], str]


def json(record: msgspec.Struct) -> str:
    """Return a record as JSON that can be read."""
    return msgspec.json.format(msgspec.json.encode(record), indent=1).decode() + "\n"


def markdown(shown: Page) -> str:
    """Return all of a page but its charts as Markdown."""
    return "\n".join(_markdown(basic) for basic in document(shown))


def latex(shown: Page) -> str:
    """Return the same as LaTeX, to be put into a document that loads booktabs."""
    return "\n".join(_latex(basic) for basic in document(shown))


def csv(shown: Page) -> str:
    """Return every cell of every table, and of the data of every chart, in a line of its own; unknown is empty.

    Of a chart with a variant for each pair it is the data of the first.
    """
    out = io.StringIO()
    writer = csv_module.writer(out, lineterminator="\n")
    writer.writerow(CSV_HEADER)
    tables = [basic for basic in document(shown) if isinstance(basic, Table)]
    for table in (*tables, *map(data, shown.figures)):
        writer.writerows(_cells(table))
    return out.getvalue()


def _cells(table: Table) -> Iterator[tuple[Raw, ...]]:
    for number, row in enumerate(table.rows, start=1):
        for column, item in zip(table.columns, row, strict=True):
            value = item.raw if isinstance(item.raw, int | float) else None
            yield tuple(escaping.csv([table.title, number, column.name, value, item.text]))


def _markdown(basic: Basic) -> str:
    if isinstance(basic, Heading):
        return f"{'#' * basic.level} {escaping.markdown(basic.text)}\n"
    if isinstance(basic, Notes):
        return "".join(f"* {escaping.markdown(line)}\n" for line in basic.lines)
    if isinstance(basic, Paragraph):
        return f"{'> ' if basic.quoted else ''}{escaping.markdown(basic.text)}\n"
    if isinstance(basic, Code):
        return "".join(f"    {escaping.line(line)}\n" for line in basic.text.splitlines())
    return markup.markdown(basic)


def _latex(basic: Basic) -> str:
    if isinstance(basic, Heading):
        return f"\\{_LATEX_HEADINGS[basic.level]}{{{escaping.latex(basic.text)}}}\n"
    if isinstance(basic, Notes):
        items = "".join(f"\\item {{{escaping.latex(line)}}}\n" for line in basic.lines)
        return f"\\begin{{itemize}}\n{items}\\end{{itemize}}\n"
    if isinstance(basic, Paragraph):
        return f"{escaping.latex(basic.text)}\n"
    if isinstance(basic, Code):
        return "".join(
            f"\\noindent\\texttt{{{escaping.latex(line)}}}\\\\\n" for line in basic.text.splitlines()
        )
    return markup.latex(basic)


#: What a page can be written as, beside HTML and the terminal.
_WRITTEN: dict[str, Callable[[Page], str]] = {"csv": csv, "markdown": markdown, "latex": latex}


def of_page(
    name: str, result: Callable[[Any], msgspec.Struct], page: Callable[[Any], Page], uncited: str
) -> Report:
    """Return the forms of runs whose page has all there is.

    Parameters
    ----------
    name
        What their charts are about.
    result
        What is shown of a run as JSON.
    page
        The page of a run.
    uncited
        Why there is no BibTeX entry.
    """

    def figures(run: Any) -> Sequence[tuple[str, Figure]]:
        return [(name, figure) for figure in page(run).figures]

    def written(run: Any, form: Data) -> str:
        if form == "bibtex":
            raise UsageError(f"--bibtex: {uncited}")
        return json(result(run)) if form == "json" else _WRITTEN[form](page(run))

    return Report(page=page, text=page, figures=figures, data=written)

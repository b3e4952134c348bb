"""Tables as LaTeX (booktabs) and as Markdown.  Pure."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from wulf.base.text import printable
from wulf.page.parts import Table

_MARKDOWN = {mark: f"\\{mark}" for mark in "\\`*_[]<>|#"}
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "µ": r"\textmu{}",
    "×": r"$\times$",
    "±": r"$\pm$",
    "→": r"$\rightarrow$",
    "½": r"$_{1/2}$",
    "≤": r"$\leq$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "²": r"$^2$",
    "−": "$-$",
    "–": "--",
    "…": r"\ldots{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}


def markdown(table: Table) -> str:
    """Return a table as Markdown."""
    if not table.rows:
        return escaped_markdown(f"{table.title}: {table.empty}.") + "\n"
    heads = [escaped_markdown(column.name) for column in table.columns]
    lines = [f"**{escaped_markdown(table.title)}**", "", f"| {' | '.join(heads)} |"]
    lines.append("|" + "|".join("---:" if column.numeric else "---" for column in table.columns) + "|")
    lines += [f"| {' | '.join(escaped_markdown(item.text) for item in row)} |" for row in table.rows]
    if table.note:
        lines += ["", escaped_markdown(table.note)]
    return "\n".join(lines) + "\n"


def latex(table: Table) -> str:
    """Return a table as a ``tabular`` of booktabs; its title and its note are comments."""
    if not table.rows:
        return escaped_latex(f"{table.title}: {table.empty}.") + "\n"
    alignment = "".join("r" if column.numeric else "l" for column in table.columns)
    lines = [
        f"% {' '.join(table.title.split())}",
        *(f"% {line}" for line in table.note.splitlines()),
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        " & ".join(escaped_latex(column.name) for column in table.columns) + r" \\",
        r"\midrule",
        *(" & ".join(escaped_latex(item.text) for item in row) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def escaped_markdown(text: str) -> str:
    """Return text that Markdown shows as it is, in one line."""
    return _escaped(text, _MARKDOWN)


def escaped_latex(text: str) -> str:
    """Return text that LaTeX prints as it is."""
    return _escaped(text, _LATEX)


def _escaped(text: str, marks: Mapping[str, str]) -> str:
    return "".join(marks.get(char, char) for char in " ".join(printable(text, sys.maxsize).split()))

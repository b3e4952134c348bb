"""Tables as LaTeX (booktabs) and as Markdown.  Pure."""

from __future__ import annotations

from collections.abc import Mapping

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
    heads = [column.name for column in table.columns]
    lines = [f"**{_escaped(table.title, _MARKDOWN)}**", "", f"| {' | '.join(heads)} |"]
    lines.append("|" + "|".join("---:" if column.numeric else "---" for column in table.columns) + "|")
    lines += [f"| {' | '.join(_escaped(item.text, _MARKDOWN) for item in row)} |" for row in table.rows]
    if table.note:
        lines += ["", _escaped(table.note, _MARKDOWN)]
    return "\n".join(lines) + "\n"


def latex(table: Table) -> str:
    """Return a table as a ``tabular`` of booktabs; its title and its note are comments."""
    alignment = "".join("r" if column.numeric else "l" for column in table.columns)
    lines = [
        f"% {table.title}",
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


def escaped_latex(text: str) -> str:
    """Return text that LaTeX prints as it is."""
    return _escaped(text, _LATEX)


def _escaped(text: str, marks: Mapping[str, str]) -> str:
    return "".join(marks.get(char, char) for char in text.replace("\n", " "))

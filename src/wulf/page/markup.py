"""Tables as LaTeX (booktabs) and as Markdown.  Pure."""

from __future__ import annotations

from wulf.page import escaping
from wulf.page.parts import Table


def markdown(table: Table) -> str:
    """Return a table as Markdown."""
    if not table.rows:
        return escaping.markdown(f"{table.title}: {table.empty}.") + "\n"
    heads = [escaping.markdown(column.name) for column in table.columns]
    lines = [f"**{escaping.markdown(table.title)}**", "", f"| {' | '.join(heads)} |"]
    lines.append("|" + "|".join("---:" if column.numeric else "---" for column in table.columns) + "|")
    lines += [f"| {' | '.join(escaping.markdown(item.text) for item in row)} |" for row in table.rows]
    if table.note:
        lines += ["", escaping.markdown(table.note)]
    return "\n".join(lines) + "\n"


def latex(table: Table) -> str:
    """Return a table as a ``tabular`` of booktabs; its title and its note are comments."""
    if not table.rows:
        return escaping.latex(f"{table.title}: {table.empty}.") + "\n"
    alignment = "".join("r" if column.numeric else "l" for column in table.columns)
    lines = [
        f"% {escaping.line(table.title)}",
        *(f"% {escaping.line(line)}" for line in table.note.splitlines()),
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        " & ".join(escaping.latex(column.name) for column in table.columns) + r" \\",
        r"\midrule",
        *(" & ".join(escaping.latex(item.text) for item in row) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"

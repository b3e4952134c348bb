"""Tables as LaTeX (booktabs) and as Markdown.  Pure."""

from __future__ import annotations

from wulf.page import gate
from wulf.page.parts import Table


def markdown(table: Table) -> str:
    """Return a table as Markdown."""
    if not table.rows:
        return gate.markdown(f"{table.title}: {table.empty}.") + "\n"
    heads = [gate.markdown(column.name) for column in table.columns]
    lines = [f"**{gate.markdown(table.title)}**", "", f"| {' | '.join(heads)} |"]
    lines.append("|" + "|".join("---:" if column.numeric else "---" for column in table.columns) + "|")
    lines += [f"| {' | '.join(gate.markdown(item.text) for item in row)} |" for row in table.rows]
    if table.note:
        lines += ["", gate.markdown(table.note)]
    return "\n".join(lines) + "\n"


def latex(table: Table) -> str:
    """Return a table as a ``tabular`` of booktabs; its title and its note are comments."""
    if not table.rows:
        return gate.latex(f"{table.title}: {table.empty}.") + "\n"
    alignment = "".join("r" if column.numeric else "l" for column in table.columns)
    lines = [
        f"% {gate.line(table.title)}",
        *(f"% {gate.line(line)}" for line in table.note.splitlines()),
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        " & ".join(gate.latex(column.name) for column in table.columns) + r" \\",
        r"\midrule",
        *(" & ".join(gate.latex(item.text) for item in row) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"

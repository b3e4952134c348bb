"""The one gate for text on its way out: what nodes, files and runs said is data in each form, never more than that.

Texts become safe where they are put into a form, not where they were read: a run keeps what it was told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from wulf.base.text import printable

#: Longest text that is put anywhere [characters].
_LONGEST = 1 << 20
#: What a spreadsheet takes as the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
_MARKDOWN = {mark: f"\\{mark}" for mark in "\\`*_[]|#"} | {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
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


def line(text: str) -> str:
    """Return text as one line that can be shown."""
    return " ".join(printable(text, _LONGEST).splitlines())


def markdown(text: str) -> str:
    """Return text that Markdown, and HTML made of it, show as it is."""
    return "".join(_MARKDOWN.get(char, char) for char in line(text))


def latex(text: str) -> str:
    """Return text that LaTeX prints as it is."""
    return "".join(_LATEX.get(char, char) for char in line(text))


def csv(cells: Sequence[Any]) -> list[Any]:
    """Return the cells of a line of CSV: a text that a spreadsheet would calculate begins with an apostrophe."""
    return [_cell(cell) for cell in cells]


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = printable(value, _LONGEST)
    return f"'{text}" if text.startswith(_FORMULA) else text


class CleanConsole(Console):
    """A terminal: no text moves its cursor, sets its title or changes its colours, but for what wulf does itself."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return the pieces of what is printed, without control characters in texts."""
        for segment in super().render(renderable, options):
            text = segment.text
            if segment.control or text == "\n" or text.isprintable():
                yield segment
            else:
                yield Segment(printable(text, _LONGEST), segment.style)

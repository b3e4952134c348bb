"""What a foreign output says, and how lines of it are read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

import msgspec

from wulf.base.errors import ImportFormatError
from wulf.base.text import printable

#: The usual statistic of the field.
MEAN = "mean over the iterations of one launch"
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """Times of one operation by size, of one launch."""

    #: What the tool calls it, with the tool's name: ``IMB PingPong``.
    name: str
    #: Who sends to whom, as in `wulf.base.records.Operation`.
    pattern: str
    #: What one value is: ``half round trip``.
    quantity: str
    #: Which statistic of which values.
    statistic: str
    #: Size → time [s].
    times_s: dict[int, float]
    ranks: int = 2
    #: Whether size ÷ time is a bandwidth.
    moves_bytes: bool = True


class Line(NamedTuple):
    """A line of a file, with its number from 1."""

    number: int
    text: str


class Source:
    """The text of a file; errors name the file and the line."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.lines = [Line(number, line.rstrip()) for number, line in enumerate(text.splitlines(), 1)]

    def fail(self, expected: str, line: Line | None = None) -> NoReturn:
        """Raise ImportFormatError: what was expected, and what is there."""
        if line is None:
            raise ImportFormatError(f"{self.name}: {expected}")
        raise ImportFormatError(
            f"{self.name}, line {line.number}: {expected}, got {printable(line.text, 80)!r}"
        )

    def numbers(self, line: Line, names: str) -> list[float]:
        """Return the numbers of a line that has nothing else.

        Parameters
        ----------
        names
            What they are, for the error.
        """
        words = line.text.split()
        if not words or any(re.fullmatch(NUMBER, word) is None for word in words):
            self.fail(f"expected numbers ({names})", line)
        return [float(word) for word in words]

    def found(self, pattern: str) -> Iterator[tuple[Line, re.Match[str]]]:
        """Yield the lines in which a pattern is found."""
        for line in self.lines:
            match = re.search(pattern, line.text)
            if match:
                yield line, match

    def positive(self, value: float, what: str, line: Line) -> float:
        """Return a number that must be more than zero."""
        if not 0 < value < float("inf"):
            self.fail(f"expected {what} above 0", line)
        return value


def size_of(source: Source, value: float, line: Line) -> int:
    """Return a size, which must be whole."""
    if value < 0 or value != int(value):
        source.fail("expected a size in whole bytes", line)
    return int(value)

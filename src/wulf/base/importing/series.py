"""What a foreign output says, and how lines and numbers of it are read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, NoReturn

import msgspec

from wulf.base.errors import ImportFormatError
from wulf.base.text import printable

#: The usual statistic of the field.
MEAN = "mean over the iterations of one launch"
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
#: No file is larger: what these programs print is kilobytes, and all of it is held in memory [B].
MOST_BYTES = 64 << 20
#: Longest line that is read [characters], so that no pattern is tried on more.
MOST_CHARACTERS = 20_000
#: No message is larger [B], and no run has more ranks: beyond that a number is a mistake.
MOST_SIZE = 1 << 50
MOST_RANKS = 1 << 17
#: No time is longer [s], and none shorter than the nanosecond that a run stores, but for its rounding.
MOST_SECONDS = 1e9
#: Escape sequences for colours and the like.
_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\x1b.")


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """Times of one operation by size, of one launch."""

    #: What the tool calls it, with the tool's name and all that distinguishes its table: ``OSU Latency, MPI_FLOAT``.
    name: str
    #: Who sends to whom, as in `wulf.base.records.Operation`.
    pattern: str
    #: What one value is: ``half round trip``.
    quantity: str
    #: Which statistic of which values.
    statistic: str
    #: Size → time [s].
    times_s: dict[int, float]
    #: None where the output does not say it.
    ranks: int | None = 2
    #: Whether size ÷ time is a bandwidth.
    moves_bytes: bool = True


class Line(NamedTuple):
    """A line of a file, with its number from 1."""

    number: int
    text: str


class Source:
    """The text of a file; errors name the file and the line."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.text = _ESCAPE.sub("", text)
        self.lines = [Line(number, line.rstrip()) for number, line in enumerate(self.text.split("\n"), 1)]
        #: What was left out, in words that name the file and the line.
        self.left_out: list[str] = []
        long = next((line for line in self.lines if len(line.text) > MOST_CHARACTERS), None)
        if long is not None and not self.text.lstrip().startswith("{"):
            self.fail(f"expected lines of at most {MOST_CHARACTERS} characters", long)

    def part(self, lines: Sequence[Line]) -> Source:
        """Return some lines of the file as a source of their own, with the numbers that they have in the file."""
        other = Source("", self.name)
        other.lines = list(lines)
        other.text = "\n".join(line.text for line in lines)
        return other

    def fail(self, expected: str, line: Line | None = None) -> NoReturn:
        """Raise ImportFormatError: what was expected, and what is there."""
        if line is None:
            raise ImportFormatError(f"{self.name}: {expected}")
        raise ImportFormatError(
            f"{self.name}, line {line.number}: {expected}, got {printable(line.text.strip(), 80)!r}"
        )

    def leave_out(self, line: Line, why: str) -> None:
        """Note that a result is not taken, and why."""
        self.left_out.append(
            f"{self.name}, line {line.number}: left out, {why}: {printable(line.text.strip(), 80)}"
        )

    def number(self, word: str, what: str, line: Line) -> float:
        """Return a number, which must be finite."""
        if re.fullmatch(NUMBER, word) is None or not math.isfinite(float(word)):
            self.fail(f"expected numbers ({what})", line)
        return float(word)

    def found(self, pattern: str) -> Iterator[tuple[Line, re.Match[str]]]:
        """Yield the lines in which a pattern is found."""
        for line in self.lines:
            match = re.search(pattern, line.text)
            if match:
                yield line, match

    def seconds(self, value: float, what: str, line: Line) -> float:
        """Return a time [s], which must be more than zero and within bounds."""
        if not 0 < value <= MOST_SECONDS:
            self.fail(f"expected {what} above 0", line)
        return value

    def size(self, value: float, line: Line) -> int:
        """Return a size, which must be whole and within bounds."""
        if not 0 <= value <= MOST_SIZE or value != int(value):
            self.fail(f"expected a size in whole bytes, at most {MOST_SIZE}", line)
        return int(value)

    def ranks(self, word: str, line: Line) -> int:
        """Return a number of ranks."""
        if not word.isdecimal() or len(word) > 9 or not 1 <= int(word) <= MOST_RANKS:
            self.fail(f"expected a number of ranks, 1 to {MOST_RANKS}", line)
        return int(word)

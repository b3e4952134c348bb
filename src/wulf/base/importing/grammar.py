"""How the output of a benchmark is described: titles, what qualifies a table, columns with unit and meaning.

A description has no code. `wulf.base.importing.engine` reads every one of them by the same rules:

* a number means what the heading above it, or the word beside it, says; a heading, unit or test that the description
  does not know is refused with its line;
* what qualifies a table is part of the name of its series, so that no two that differ become one figure; a remark that
  the description does not know qualifies, too;
* a row that the benchmark itself says is no result is left out by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from wulf.base.importing.series import MEAN

KB, MB, GB = 1e3, 1e6, 1e9
KIB, MIB, GIB = 2.0**10, 2.0**20, 2.0**30


class Means(Enum):
    """What a number is, in SI units once it is multiplied by the factor of its unit."""

    SIZE = "size [B]"
    TIME = "time [s]"
    BYTES_PER_S = "bandwidth [B/s]"
    PER_S = "rate [1/s]"
    #: The size of the answer [B], which qualifies where it is another than `SIZE`.
    ANSWER = "size of the answer [B]"
    #: What its unit says, which is in a column of its own, or stands in the heading.
    BY_UNIT = "number of a unit"
    UNIT = "unit"
    #: A word: the row counts where it is one of the description's ``passed``.
    CHECK = "verdict"
    #: A word that distinguishes rows: part of the name.
    QUALIFIES = "qualifier"
    #: Understood, and of no use here.
    NOTHING = "something else"


class Unit(NamedTuple):
    """What a unit makes of a number."""

    means: Means
    factor: float


SECONDS: Mapping[str, Unit] = {
    name: Unit(Means.TIME, factor)
    for names, factor in (
        ("s sec secs", 1.0),
        ("ms msec msecs", 1e-3),
        ("us usec usecs", 1e-6),
        ("ns nsec nsecs", 1e-9),
    )
    for name in names.split()
}


class Column(NamedTuple):
    """A column, or a number with a name.

    Where several columns could be a table's time or size, the one that stands first in the description is; a size of 0
    only where there is no other.
    """

    #: What stands above or beside it; its groups may be used in `label` and `statistic`.
    heading: str
    means: Means = Means.NOTHING
    #: What the number is multiplied by to be in SI units.
    factor: float = 1.0
    #: A series of its own, with this in its name: ``received``. Of `Means.QUALIFIES` how its word is put: ``group {}``.
    label: str = ""
    #: None: that of the description.
    statistic: str | None = None
    #: None: those of the test.
    quantity: str | None = None
    pattern: str | None = None
    #: Where this column is there at all, all series of the table have this in their names.
    tells: str = ""
    #: Of `Means.QUALIFIES`: the word that says nothing.
    usual: str = ""
    #: The pattern of the tests in which it counts; empty for all.
    only: str = ""


class Layout(NamedTuple):
    """A heading of several lines, which has to be known as a whole."""

    #: The lines without their outer spaces, joined by a line end, with single spaces. It may have the group ``unit``.
    heading: str
    columns: tuple[Column, ...]
    #: Of rows that follow the first one and go with it.
    more: tuple[tuple[Column, ...], ...] = ()


class Caption(NamedTuple):
    """A line that says what numbers are whose columns have only numbers above them."""

    pattern: str
    #: What the first column is, and what all others are; the number above one is the group ``n`` of its label.
    first: Column
    others: Column
    #: Whether it says again, with more digits, what the table before it says.
    again: bool = False


class Qualifier(NamedTuple):
    """A line that distinguishes one table from another."""

    #: Groups ``ranks``, ``pairs`` and ``rank`` say how many ranks take part, or that one does; ``size``: of all rows.
    pattern: str
    #: What the name has of it, with groups of the pattern; the next one with the same `say` replaces it. Or nothing.
    say: str = ""
    #: What every table had before the benchmark said it: not part of the name.
    usual: str = ""
    #: Holds for all tests of the file that follow, not only for the one that it stands in.
    lasting: bool = False
    #: Lines like this add up, instead of one replacing the other.
    adds: bool = False
    #: What values are from here on, instead of the test's.
    quantity: str = ""


class Test(NamedTuple):
    """What a benchmark measures; the first one whose pattern is found in a title counts."""

    title: str
    pattern: str
    quantity: str
    #: None where a title does not say it, 2 where it is a test of pairs.
    ranks: int | None = None
    moves_bytes: bool = True
    #: The name instead of the title's own words, with groups of the title.
    name: str = ""


class Grammar(NamedTuple):
    """All that is known of a benchmark's output."""

    #: Who made it, for messages; and what names of series begin with.
    title: str
    prefix: str
    #: Found in a text that is one of its outputs.
    recognises: str
    #: Lines with which a test begins; the group ``title`` says which. Without a pattern the whole file is one test.
    begins: str = ""
    tests: tuple[Test, ...] = ()
    #: Whether a test that is not among `tests` is refused.
    only_known: bool = False
    qualifiers: tuple[Qualifier, ...] = ()
    #: Those that are found in the group ``rest`` of a title.
    in_title: tuple[Qualifier, ...] = ()
    #: Lines that say nothing of the results that follow.
    remarks: tuple[str, ...] = ()
    #: Any other line like this, between a title and its table, qualifies with its own words.
    comment: str = ""
    #: Which line is a heading with the columns below.
    heading: str = ""
    columns: tuple[Column, ...] = ()
    layouts: tuple[Layout, ...] = ()
    #: Words above a number, line by line, are its name where no layout is the heading: how many lines that are.
    stacked: int = 0
    captions: tuple[Caption, ...] = ()
    #: Numbers with names: a line with the groups ``heading``, ``value`` and, perhaps, ``unit`` and ``exact`` [B].
    entry: str = ""
    #: Whole rows in a line: groups are headings of columns, ``NAME_unit`` their units.
    rows: tuple[str, ...] = ()
    #: What the first, second, … column of the same heading is of.
    repeats: tuple[str, ...] = ()
    #: What separates columns; None is any space.
    separator: str | None = None
    units: Mapping[str, Unit] = {}
    #: Rows without a result, and why that is so, with groups of the pattern.
    failed: tuple[tuple[str, str], ...] = ()
    #: Words of a verdict with which a row counts.
    passed: frozenset[str] = frozenset()
    statistic: str = MEAN
    #: What stands where a test has no such number.
    absent: str = ""
    #: What is missing when nothing has a size, as advice; empty where a size of 0 stands for none.
    sized_by: str = ""
    #: What to say where numbers stand without a heading.
    advice: str = ""
    #: Whether nothing is read after the rows of a layout until the next title.
    ends: bool = False


def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern that never matches where there is none."""
    return re.compile(pattern if pattern else r"(?!)")

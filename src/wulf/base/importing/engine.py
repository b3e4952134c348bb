"""Reads the output of a benchmark by its description, line by line."""

from __future__ import annotations

import csv
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from wulf.base.importing.grammar import Caption, Column, Grammar, Means, Qualifier, Test, Unit, compiled
from wulf.base.importing.series import NUMBER, Line, Series, Source
from wulf.base.text import count, printable

#: A remark that qualifies is cut here [characters], and a number of its whole text put behind it.
_LONGEST = 60
_TIMES = frozenset({Means.TIME, Means.BYTES_PER_S, Means.PER_S, Means.BY_UNIT})
_IS_NUMBER = re.compile(NUMBER)
_ONLY_NUMBERS = re.compile(r"^#?(\s*\d+)+\s*$")
#: What a rate may be off by because of the digits that it is printed with.
_ROUNDED = 0.1
_Groups = Mapping[str, str | None]


@dataclass(frozen=True)
class _Cell:
    """A number or word with its column, and the words that stand around it."""

    column: Column
    word: str
    unit: str = ""
    groups: _Groups = field(default_factory=dict)


@dataclass
class _Table:
    """Rows under one heading; the series that come of them by what distinguishes them."""

    columns: tuple[Column, ...] = ()
    #: Rows that go with the one before.
    more: list[tuple[Column, ...]] = field(default_factory=list)
    #: The heading's own text, and the unit that it says.
    heading: str = ""
    unit: str = ""
    #: (qualifiers of the row, its column) → size → seconds.
    times: dict[tuple[tuple[str, ...], Column], dict[int, float]] = field(default_factory=dict)
    #: Size of the row that others go with.
    size: int | None = None
    rows: int = 0
    #: What says the meaning of numbers below numbers.
    caption: Caption | None = None


def recognises(grammar: Grammar, text: str) -> bool:
    """Whether a text is an output of this benchmark."""
    return re.search(grammar.recognises, text, re.MULTILINE) is not None


def read(grammar: Grammar, source: Source) -> Iterator[Series]:
    """Yield a series for each time that each table has.

    Raises
    ------
    ImportFormatError
        A heading, a unit, a test or a row is not as described; names the line.
    """
    return _Reader(grammar, source).read()


class _Reader:
    """Goes through the lines."""

    def __init__(self, grammar: Grammar, source: Source) -> None:
        self._grammar, self._source = grammar, source
        self._begins = compiled(grammar.begins)
        self._failed = [(re.compile(pattern), why) for pattern, why in grammar.failed]
        self._comment, self._heading = compiled(grammar.comment), compiled(grammar.heading)
        self._entry = compiled(grammar.entry)
        self._rows = [re.compile(one) for one in grammar.rows]
        self._remarks = [re.compile(one) for one in grammar.remarks]
        self._qualifiers = [(re.compile(one.pattern), one) for one in grammar.qualifiers]
        self._in_title = [(re.compile(one.pattern), one) for one in grammar.in_title]
        #: None before the first test.
        self._test: Test | None = None if grammar.begins else (grammar.tests or (Test("", "", ""),))[0]
        self._name = ""
        #: Words of qualifiers by what they say; those that hold for all tests; those that stand before a title.
        self._said: dict[str, str] = {}
        self._lasting: dict[str, str] = {}
        self._ahead: dict[str, str] = {}
        self._ranks: int | None = None
        self._size: int | None = None
        self._quantity = ""
        self._table: _Table | None = None
        self._captions = [(re.compile(one.pattern), one) for one in grammar.captions]
        self._caption: Caption | None = None
        self._begun = False
        self._entries: list[tuple[Line, _Cell]] = []
        #: Lines of a heading that has several.
        self._above: list[Line] = []
        self._over = False

    def read(self) -> Iterator[Series]:
        for line in self._source.lines:
            if line.text.strip():
                yield from self._take(line)
        yield from self._end()

    def _take(self, line: Line) -> Iterator[Series]:
        text = line.text
        if (found := self._begins.match(text)) and self._is_new(found):
            yield from self._end()
            self._begin(line, found)
        elif any(remark.search(text) for remark in self._remarks):
            return
        elif caption := next((one for pattern, one in self._captions if pattern.search(text)), None):
            yield from self._introduce(caption)
        elif any(pattern.search(text) for pattern, _ in self._qualifiers):
            yield from self._end()
            self._note(line, self._qualifiers)
            if self._test is not None and any(row.match(text) for row in self._rows):
                yield from self._in_test(line)
        elif self._test is not None and not self._over:
            yield from self._in_test(line)

    def _in_test(self, line: Line) -> Iterator[Series]:
        text = line.text
        if found := next((one for row in self._rows if (one := row.match(text))), None):
            yield from self._whole_row(line, found)
        elif found := self._entry.match(text):
            self._add_entry(line, found)
        elif why := self._failure(text):
            self._source.leave_out(line, why)
        elif self._caption is not None and _ONLY_NUMBERS.match(text):
            self._open_matrix(line, self._caption)
        elif self._heading.match(text):
            yield from self._end()
            self._open(line)
        elif self._table is not None and self._table.columns:
            yield from self._row(line)
        elif self._grammar.layouts:
            yield from self._laid_out(line)
        else:
            yield from self._other(line)

    def _is_new(self, found: re.Match[str]) -> bool:
        """Whether a test begins: a line that does not say which one may come after one that does."""
        return found["title"] is not None or self._test is None or self._begun

    def _failure(self, text: str) -> str:
        """Return why a row has no result; empty where it is no such row."""
        known = ((pattern.match(text), why) for pattern, why in self._failed)
        return next((why.format(**found.groupdict()) for found, why in known if found), "")

    def _begin(self, line: Line, found: re.Match[str]) -> None:
        self._test, self._name = self._test_of(line, found)
        self._said = {**self._lasting, **self._ahead}
        self._ahead, self._above, self._over, self._begun = {}, [], False, False
        self._ranks = self._size = None
        self._quantity = ""
        if found.groupdict().get("rest"):
            self._note(Line(line.number, found["rest"]), self._in_title)

    def _test_of(self, line: Line, found: re.Match[str]) -> tuple[Test, str]:
        """Return the test of a title, and what names have of it."""
        title = " ".join((found["title"] or "").split())
        for test in self._grammar.tests:
            if known := re.search(test.title, title):
                return test, test.name.format(**known.groupdict()) if test.name else title
        if self._grammar.only_known:
            self._source.fail(f"expected a test of {self._grammar.title} that is known", line)
        return Test(title, title.lower(), ""), _short(title)

    def _note(self, line: Line, qualifiers: Sequence[tuple[re.Pattern[str], Qualifier]]) -> None:
        for pattern, qualifier in qualifiers:
            for place, found in enumerate(pattern.finditer(line.text)):
                self._count(line, found.groupdict())
                self._quantity = qualifier.quantity or self._quantity
                if qualifier.say:
                    self._put(f"{qualifier.say} {place}", qualifier, found.groupdict())

    def _count(self, line: Line, groups: _Groups) -> None:
        """Take the ranks and the size that a qualifier says."""
        if ranks := groups.get("ranks"):
            self._ranks = self._source.ranks(ranks, line)
        elif pairs := groups.get("pairs"):
            self._ranks = self._source.ranks(str(2 * self._source.ranks(pairs, line)), line)
        elif groups.get("rank"):
            self._ranks = self._source.ranks(str((self._ranks or 0) + 1), line)
        if size := groups.get("size"):
            self._size = self._source.size(self._source.number(size, "a size", line), line)

    def _put(self, key: str, qualifier: Qualifier, groups: _Groups) -> None:
        words = " ".join(qualifier.say.format(**{name: word or "" for name, word in groups.items()}).split())
        if qualifier.adds and self._said.get(key):
            words = f"{self._said[key]}; {words}"
        self._say(key, "" if words == qualifier.usual else words, lasting=qualifier.lasting)

    def _say(self, key: str, word: str, *, lasting: bool = False) -> None:
        self._said[key] = word
        if lasting:
            self._lasting[key] = word
        if self._test is None or self._begun:
            self._ahead[key] = word

    def _other(self, line: Line) -> Iterator[Series]:
        """Take what is neither title, heading nor row: a remark that is not known, or text around a table."""
        if self._comment.match(line.text):
            yield from self._end()
            word = " ".join(line.text.strip(" #\t.").split())
            if word:
                self._say(word, word)
        elif len(words := line.text.split()) > 1 and all(map(_IS_NUMBER.fullmatch, words)):
            self._source.fail(f"numbers without a heading{self._grammar.advice}", line)

    def _open(self, line: Line) -> None:
        columns = _columns(self._grammar, self._source, line)
        self._table = _Table(columns=columns, heading=" ".join(line.text.split()))
        if not any(column.means in _TIMES for column in columns):
            self._source.fail("a heading without a time or a rate", line)

    def _introduce(self, caption: Caption) -> Iterator[Series]:
        if not caption.again:
            yield from self._end()
        self._caption = caption

    def _open_matrix(self, line: Line, caption: Caption) -> None:
        """Take a heading of numbers; the table before goes on where this one says the same again."""
        if self._table is None or self._table.caption is None:
            self._table = _Table()
        numbers = line.text.lstrip("#").split()
        self._table.columns = (caption.first, *(_named(caption.others, {"n": one}) for one in numbers))
        self._table.heading = " ".join(line.text.split())
        self._table.caption, self._caption = caption, None

    def _row(self, line: Line) -> Iterator[Series]:
        table = self._table
        assert table is not None
        words = _split(line.text, self._grammar.separator)
        fits = self._grammar.separator is not None and len(words) == len(table.columns)
        if _IS_NUMBER.fullmatch(words[0]) is None and not fits:
            self._table = None
            yield from self._made(table)
            yield from self._other(line)
            return
        if len(words) != len(table.columns):
            self._source.fail(
                f"expected numbers: {count(len(table.columns), 'column')} ({table.heading})", line
            )
        cells = [_Cell(column, word) for column, word in zip(table.columns, words, strict=True)]
        yield from self._add(line, table, cells)

    def _laid_out(self, line: Line) -> Iterator[Series]:
        """Take a line of a heading, or of a row below one, where headings have several lines."""
        words = line.text.split()
        stacked = bool(self._above) and line.number == self._above[0].number + self._grammar.stacked
        if _IS_NUMBER.fullmatch(words[0]) is None and not stacked:
            self._above.append(line)
            if len(self._above) > 12:
                self._source.fail("expected a heading and results", self._above[0])
            return
        if self._table is None:
            self._table = self._layout()
        if self._table is None:
            self._take_stack(line)
            return
        columns = self._table.more.pop(0)
        if len(columns) != len(words):
            self._source.fail(f"expected {count(len(columns), 'number')}, as the heading says", line)
        unit = self._table.unit
        cells = [
            _Cell(column, word, unit if column.means is Means.BY_UNIT else "")
            for column, word in zip(columns, words, strict=True)
        ]
        yield from self._add(line, self._table, cells)
        self._over = not self._table.more and self._grammar.ends

    def _layout(self) -> _Table | None:
        """Return the table of a heading that is known as a whole."""
        heading = "\n".join(" ".join(one.text.split()) for one in self._above)
        known = ((one, re.fullmatch(one.heading, heading)) for one in self._grammar.layouts)
        layout, found = next(((one, match) for one, match in known if match), (None, None))
        if layout is None or found is None:
            return None
        return _Table(more=[layout.columns, *layout.more], unit=found.groupdict().get("unit") or "")

    def _take_stack(self, line: Line) -> None:
        """Take numbers whose names are the words that stand above them."""
        names = _stacked(self._above, line) if self._grammar.stacked else []
        if not names:
            where = self._above[-1] if self._above else line
            self._source.fail(f"expected a heading that is known{self._grammar.advice}", where)
        for name, word in names:
            self._enter(line, name, word)
        self._above = []

    def _whole_row(self, line: Line, found: re.Match[str]) -> Iterator[Series]:
        groups = found.groupdict()
        cells = []
        for column in self._grammar.columns:
            word = groups.get(column.heading)
            if word is not None:
                cells.append(_Cell(column, word, groups.get(f"{column.heading}_unit") or "", groups))
        if self._table is None:
            self._table = _Table()
        yield from self._add(line, self._table, cells)

    def _add_entry(self, line: Line, found: re.Match[str]) -> None:
        groups = found.groupdict()
        word, unit = groups["value"].strip(), groups.get("unit") or ""
        if groups.get("exact"):
            word, unit = groups["exact"], "bytes"
        self._enter(line, groups["heading"], word.replace(",", ""), unit)

    def _enter(self, line: Line, name: str, word: str, unit: str = "") -> None:
        known = ((one, re.fullmatch(one.heading, name)) for one in self._grammar.columns)
        column, named = next(((one, match) for one, match in known if match), (None, None))
        if column is None or named is None:
            self._source.fail(
                f"expected an entry that is known, not {printable(name, 40)!r}{self._grammar.advice}", line
            )
        self._entries.append((line, _Cell(column, word, unit, named.groupdict())))

    def _end(self) -> Iterator[Series]:
        """Make a table of its own of what was read until here."""
        if self._entries:
            cells = [cell for _, cell in self._entries]
            line, self._entries = self._entries[0][0], []
            yield from self._add(line, _Table(), cells, whole=True)
        if self._above and self._table is None and self._grammar.layouts and not self._over:
            self._source.fail("expected results below it", self._above[0])
        self._above = []
        if self._table is not None:
            table, self._table = self._table, None
            yield from self._made(table)

    def _add(
        self, line: Line, table: _Table, cells: Sequence[_Cell], *, whole: bool = False
    ) -> Iterator[Series]:
        """Add a row; where its size is there already, what was read until here is another launch."""
        row = _Row(self._grammar, self._source, line, cells)
        table.size = row.size(table.size if self._size is None else self._size)
        table.rows += 1
        self._begun = True
        self._ahead = {}
        if not row.counts():
            return
        words = row.words(table.size)
        for column, seconds in row.times(table.size):
            if column.only and self._test is not None and column.only != self._test.pattern:
                continue
            # Below numbers a column is what its number says, whatever the caption counts.
            key = column if table.caption is None else column._replace(means=Means.PER_S, factor=1.0)
            times = table.times.setdefault((words, key), {})
            again = table.caption is not None and table.caption.again
            if (table.size or 0) in times and not again:
                yield from self._made(table)
                table.times = {(words, key): {}}
                times = table.times[words, key]
            times[table.size or 0] = seconds
        if whole:
            yield from self._made(table)

    def _made(self, table: _Table) -> Iterator[Series]:
        for (words, column), times in table.times.items():
            if times:
                yield self._series(words, column, times)

    def _series(self, words: tuple[str, ...], column: Column, times: dict[int, float]) -> Series:
        test = self._test
        assert test is not None
        said = [_short(word) for word in self._said.values()]
        heads = [f"{self._grammar.prefix} {self._name}".strip(), *said, *words, column.label]
        usual = "time of a call" if column.means is Means.TIME else "time per message"
        return Series(
            name=", ".join(dict.fromkeys(head for head in heads if head)),
            pattern=column.pattern or test.pattern or "stream",
            quantity=column.quantity or self._quantity or test.quantity or usual,
            statistic=self._grammar.statistic if column.statistic is None else column.statistic,
            times_s=times,
            ranks=self._ranks or test.ranks,
            moves_bytes=test.moves_bytes and set(times) != {0},
        )


class _Row:
    """The cells of a row, and what they mean together."""

    def __init__(self, grammar: Grammar, source: Source, line: Line, cells: Iterable[_Cell]) -> None:
        self._grammar, self._source, self._line = grammar, source, line
        absent = compiled(grammar.absent)
        self._cells = [cell for cell in cells if not absent.fullmatch(cell.word)]
        unit = next((cell.word for cell in self._cells if cell.column.means is Means.UNIT), "")
        self._cells = [
            replace(cell, unit=cell.unit or unit) if cell.column.means is Means.BY_UNIT else cell
            for cell in self._cells
        ]

    def size(self, before: int | None) -> int | None:
        """Return the size [B]; that of the row before, or of the whole table, where this one has none."""
        cells = sorted((cell for cell in self._cells if cell.column.means is Means.SIZE), key=self._rank)
        cell = next((one for one in cells if self._number(one)), cells[0] if cells else None)
        if cell is None:
            if before is None and self._grammar.sized_by:
                self._source.fail(self._grammar.sized_by, self._line)
            return before
        unit = self._unit(cell) if cell.unit else Unit(Means.SIZE, cell.column.factor)
        return self._source.size(self._number(cell) * unit.factor, self._line)

    def counts(self) -> bool:
        """Whether it passed its checks; says so where not."""
        for cell in self._cells:
            if cell.column.means is Means.CHECK and cell.word not in self._grammar.passed:
                self._source.leave_out(self._line, "it did not pass its check")
                return False
        return True

    def words(self, size: int | None) -> tuple[str, ...]:
        """Return what distinguishes the row."""
        found = [cell.column.tells for cell in self._cells if cell.column.tells]
        for cell in self._cells:
            if cell.column.means is Means.QUALIFIES and cell.word != cell.column.usual:
                found.append(_short((cell.column.label or "{}").format(cell.word)))
            elif cell.column.means is Means.ANSWER:
                answer = self._source.size(self._number(cell), self._line)
                found += [f"answer {answer} B"] if answer != size else []
        return tuple(dict.fromkeys(found))

    def times(self, size: int | None) -> Iterator[tuple[Column, float]]:
        """Yield the time of the table, and those that are series of their own."""
        own = sorted((cell for cell in self._times() if not cell.column.label), key=self._rank)
        labelled = [cell for cell in self._times() if cell.column.label]
        main = next((one for cell in own if (one := self._time(cell, size)) is not None), None)
        if own and main is None:
            self._nothing(own[0])
        if main is not None:
            yield main
        for cell in labelled:
            if (one := self._time(cell, size)) is not None:
                yield one

    def _nothing(self, cell: _Cell) -> None:
        """Say that there is no time: a rate that is less than what is printed is left out, a time is refused."""
        unit = self._unit(cell)
        if unit.means is Means.TIME:
            self._source.fail(f"expected a time [{cell.unit or 's'}] above 0", self._line)
        self._source.leave_out(self._line, "its digits are too few to tell it")

    def _times(self) -> Iterator[_Cell]:
        return (cell for cell in self._cells if cell.column.means in _TIMES)

    def _rank(self, cell: _Cell) -> int:
        headings = [column.heading for column in self._grammar.columns]
        return headings.index(cell.column.heading) if cell.column.heading in headings else 0

    def _time(self, cell: _Cell, size: int | None) -> tuple[Column, float] | None:
        """Return the time [s] of a cell; None where less is printed than can be told from nothing."""
        unit = self._unit(cell)
        value = self._number(cell) * unit.factor
        if value < 0:
            self._source.fail(f"expected {unit.means.value} above 0", self._line)
        rate = unit.means is not Means.TIME
        if value == 0 or (unit.means is Means.BYTES_PER_S and not size) or (rate and _is_rough(cell.word)):
            return None
        seconds = value if unit.means is Means.TIME else 1 / value
        if unit.means is Means.BYTES_PER_S:
            seconds *= (size or 0) + self._answer()
        column = cell.column
        return _named(column._replace(means=unit.means), cell.groups), self._source.seconds(
            seconds, unit.means.value, self._line
        )

    def _unit(self, cell: _Cell) -> Unit:
        if cell.column.means is not Means.BY_UNIT and not cell.unit:
            return Unit(cell.column.means, cell.column.factor)
        unit = self._grammar.units.get(cell.unit)
        if unit is None or (cell.column.means not in (Means.BY_UNIT, unit.means)):
            known = ", ".join(self._grammar.units)
            self._source.fail(
                f"a unit that is not known, {printable(cell.unit, 40)!r} (known: {known})", self._line
            )
        return unit

    def _number(self, cell: _Cell) -> float:
        return self._source.number(cell.word, cell.column.means.value, self._line)

    def _answer(self) -> int:
        """Return the size of the answer [B], which a rate of bytes counts, too."""
        cell = next((cell for cell in self._cells if cell.column.means is Means.ANSWER), None)
        return 0 if cell is None else self._source.size(self._number(cell), self._line)


def _columns(grammar: Grammar, source: Source, line: Line) -> tuple[Column, ...]:
    """Return the columns of a heading; one that is not known is refused."""
    found: list[Column] = []
    times: dict[str, int] = {}
    text = line.text.rstrip()
    place = len(text) - len(text.lstrip())
    while place < len(text):
        column, end = _next_column(grammar, source, line, text, place)
        if grammar.repeats and column.means is not Means.SIZE:
            times[column.heading] = times.get(column.heading, 0) + 1
            column = _repeated(grammar, column, times[column.heading], source, line)
        found.append(column)
        place = end + len(text[end:]) - len(text[end:].lstrip(f" \t{grammar.separator or ''}"))
    return tuple(found)


def _next_column(grammar: Grammar, source: Source, line: Line, text: str, place: int) -> tuple[Column, int]:
    best: tuple[int, Column] | None = None
    after = re.escape(grammar.separator) if grammar.separator else r"\s"
    for column in grammar.columns:
        match = re.compile(rf"(?:{column.heading})(?={after}|$)").match(text, place)
        if match is not None and (best is None or match.end() > best[0]):
            best = (
                match.end(),
                column if column.means is Means.QUALIFIES else _named(column, match.groupdict()),
            )
    if best is None:
        word = re.split(r"\s{2,}|\t|,", text[place:])[0]
        source.fail(f"a column that is not known, {printable(word, 40)!r}", line)
    return best[1], best[0]


def _stacked(above: Sequence[Line], line: Line) -> list[tuple[str, str]]:
    """Return the words of a line with those that stand above them; nothing where these do not stand in columns."""
    found: list[tuple[str, str]] = []
    starts = [match.start() for match in re.finditer(r"\S+", line.text)]
    for start, end in zip(starts, [*starts[1:], None], strict=True):
        if start and any(one.text[start - 1 : start].strip() for one in above):
            return []
        name = " ".join(" ".join(one.text[start:end] for one in above).split())
        word = line.text[start:end].strip()
        if name:
            found.append((name, word))
        elif found:  # a word of several
            found[-1] = (found[-1][0], f"{found[-1][1]} {word}")
    return found


def _split(text: str, separator: str | None) -> list[str]:
    """Return the words of a row; those in quotes may have the separator within."""
    if separator is None:
        return text.split()
    return [word.strip().strip('"') for word in next(csv.reader([text], delimiter=separator))]


def _is_rough(word: str) -> bool:
    """Whether a number is printed with so few digits that it may be off by a tenth."""
    digits = re.sub(r"[eE].*", "", word.lstrip("+-"))
    decimals = len(digits.partition(".")[2])
    return decimals > 0 and float(digits) * _ROUNDED < 0.5 * 10.0**-decimals


def _named(column: Column, groups: _Groups) -> Column:
    """Return a column with what its own heading says put into its label and statistic."""
    if not groups:
        return column
    words = {
        name: f"{float(word):g}" if word and _IS_NUMBER.fullmatch(word) else word or ""
        for name, word in groups.items()
    }
    statistic = None if column.statistic is None else column.statistic.format(**words)
    return column._replace(label=column.label.format(**words), statistic=statistic)


def _repeated(grammar: Grammar, column: Column, time: int, source: Source, line: Line) -> Column:
    if time > len(grammar.repeats):
        source.fail(f"expected a column only {count(len(grammar.repeats), 'time')}", line)
    if column.means in _TIMES:
        return column._replace(label=", ".join(filter(None, [grammar.repeats[time - 1], column.label])))
    return column


def _short(word: str) -> str:
    """Return a word for a name, cut so that two that differ stay apart."""
    word = " ".join(word.split())
    clean = printable(word, _LONGEST)
    if clean == word:
        return clean
    return f"{clean.rstrip('…')}… {zlib.crc32(word.encode('utf-8', 'replace')):08x}"

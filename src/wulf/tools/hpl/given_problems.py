"""Problems that are run as they were asked for: an order, a block size and a grid, or all that an HPL.dat names."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from wulf.base.errors import ConfigError, UsageError
from wulf.base.text import WAS, count
from wulf.tools.hpl.record import HplAsked, HplSetting
from wulf.tools.hpl.request import HplRequest

#: HPL itself takes no more values of a parameter (HPL_MAX_PARAM).
VALUES_MOST = 20
#: Problems of one file, all values with each other.
PROBLEMS_MOST = 256
#: A file of HPL's is a kilobyte long [B].
_FILE_BYTES = 1 << 16
_ORDER_MOST = 1 << 24
_RANKS_MOST = 1 << 20
_GRID = re.compile(r"([1-9][0-9]{0,6})[x×]([1-9][0-9]{0,6})")


class _Values(NamedTuple):
    """A list of HPL.dat: how many there are stands in the line before."""

    key: str
    low: int
    high: int


class _Value(NamedTuple):
    """A single value of HPL.dat."""

    key: str
    low: int
    high: int


#: Lines 5 to 31, in their order.
_LINES: tuple[_Values | _Value | None, ...] = (
    _Values("n", 1, _ORDER_MOST),
    _Values("nb", 1, 1 << 14),
    _Value("pmap", 0, 1),
    _Values("grid", 1, _RANKS_MOST),
    None,  # the threshold, which is a real number
    _Values("pfact", 0, 2),
    _Values("nbmin", 1, 1 << 14),
    _Values("ndiv", 2, 1 << 10),
    _Values("rfact", 0, 2),
    _Values("bcast", 0, 5),
    _Values("depth", 0, 1 << 10),
    _Value("swap", 0, 2),
    _Value("swap_threshold", 0, _ORDER_MOST),
    _Value("l1", 0, 1),
    _Value("u", 0, 1),
    _Value("equil", 0, 1),
    _Value("align", 1, 1 << 16),
)
#: Lines before them: two of comment, the output's name and its device.
_HEAD = 4


class Given(NamedTuple):
    """What is asked for; nothing where that is to be searched."""

    problems: list[HplAsked]
    #: Of an HPL.dat: the scaled residual up to which a result is right; None without a file.
    threshold: float | None = None


def given(request: HplRequest, nodes: int, cpus: int) -> Given:
    """Return what is asked for; empty where that is to be searched.

    Parameters
    ----------
    nodes, cpus
        How many nodes there are, and cores of each.

    Raises
    ------
    UsageError
        A grid has more ranks than there are cores, or the words are none.
    ConfigError
        The file is none of HPL's; names its line.
    """
    threshold = None
    if request.dat is not None:
        found, threshold = read(Path(request.dat))
    elif request.n is not None and request.nb is not None:
        p, q = grid(request.grid)
        # What HPL's own file has, and its authors advise for a mixture of networks.
        chosen = HplSetting(nb=request.nb, p=p, q=q, threads=1, bcast=1, depth=1, swap=2)
        found = [HplAsked(n=request.n, setting=chosen)]
    else:
        return Given([])
    return Given([_with_threads(problem, nodes * cpus) for problem in found], threshold)


def grid(text: str) -> tuple[int, int]:
    """Return rows and columns of ``15x16``; raises UsageError where it is none."""
    found = _GRID.fullmatch(text)
    if found is None:
        raise UsageError(f"--grid {text!r}: rows and columns, such as 15x16")
    return int(found[1]), int(found[2])


def _with_threads(problem: HplAsked, cores: int) -> HplAsked:
    """Return it with as many threads in each rank as there are cores for."""
    chosen = problem.setting
    if chosen.ranks > cores:
        raise UsageError(
            f"a grid of {chosen.p}×{chosen.q} is {count(chosen.ranks, 'rank')}, and the nodes have "
            f"{count(cores, 'core')}: take more nodes, or a smaller grid"
        )
    values = {name: getattr(chosen, name) for name in chosen.__struct_fields__}
    return HplAsked(n=problem.n, setting=HplSetting(**values | {"threads": cores // chosen.ranks}))


def require_room(asked: Sequence[HplAsked], largest: int | None) -> None:
    """Raise UsageError where a matrix does not fit into the memory.

    Parameters
    ----------
    largest
        Order that fills the share of it that a matrix may take; None where the memory is unknown.
    """
    if largest is not None and (most := max((one.n for one in asked), default=0)) > largest:
        raise UsageError(f"N {most} does not fit into the nodes' memory: {largest} is the largest that does")


def read(path: Path) -> Given:
    """Return the problems of an HPL.dat, in HPL's own order, and its threshold.

    Raises
    ------
    ConfigError
        It cannot be read, or is none; names the line.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    if len(data) > _FILE_BYTES:
        raise ConfigError(f"{path}: larger than {_FILE_BYTES >> 10} KiB: this is no HPL.dat")
    return parse(data.decode("utf-8", errors="replace"), str(path))


def parse(text: str, source: str) -> Given:
    """Return what the text of an HPL.dat asks for; raises ConfigError that names its `source` and the line."""
    reader = _Reader(text.splitlines(), source)
    lists: dict[str, list[int]] = {}
    singles: dict[str, int] = {}
    rows: list[int] = []
    threshold = 0.0
    for line in _LINES:
        if line is None:
            threshold = reader.real("threshold")
        elif isinstance(line, _Value):
            singles[line.key] = reader.value(line)
        elif line.key == "grid":
            count = reader.count("grids")
            rows = reader.values(_Values("Ps", line.low, line.high), count)
            lists["grid"] = list(range(count))
            columns = reader.values(_Values("Qs", line.low, line.high), count)
        else:
            lists[line.key] = reader.values(line, reader.count(f"values of {line.key}"))
    total = 1
    for values in lists.values():
        total *= len(values)
    if total > PROBLEMS_MOST:
        raise ConfigError(f"{source}: {total} problems, all values with each other: at most {PROBLEMS_MOST}")
    return Given(list(_combined(lists, singles, list(zip(rows, columns, strict=True)))), threshold)


def _combined(
    lists: Mapping[str, Sequence[int]], singles: Mapping[str, int], grids: Sequence[tuple[int, int]]
) -> Iterator[HplAsked]:
    for combination in itertools.product(*lists.values()):
        values = dict(zip(lists, combination, strict=True))
        p, q = grids[values.pop("grid")]
        n = values.pop("n")
        yield HplAsked(n=n, setting=HplSetting(p=p, q=q, threads=1, **values, **singles))


class _Reader:
    """The lines of a file, one after the other: what stands before the comment is what counts."""

    def __init__(self, lines: Sequence[str], source: str) -> None:
        self._lines = lines
        self._source = source
        self._at = _HEAD

    def _next(self, what: str) -> list[str]:
        if self._at >= len(self._lines):
            raise ConfigError(f"{self._source}: it ends after line {len(self._lines)}, before its {what}")
        self._at += 1
        return self._lines[self._at - 1].split()

    def _bad(self, why: str) -> ConfigError:
        return ConfigError(f"{self._source}, line {self._at}: {why}")

    def _whole(self, word: str, what: str, low: int, high: int) -> int:
        # int() takes 1_000 and digits of other scripts, too.
        if not re.fullmatch(r"[0-9]{1,9}", word, re.ASCII) or not low <= int(word) <= high:
            raise self._bad(f"{what} {word[:20]!r}: a whole number from {low} to {high}")
        return int(word)

    def count(self, what: str) -> int:
        """Return how many values the next line has."""
        words = self._next(f"number of {what}")
        return self._whole(words[0] if words else "", f"number of {what}", 1, VALUES_MOST)

    def value(self, line: _Value) -> int:
        """Return the value of the next line."""
        words = self._next(line.key)
        return self._whole(words[0] if words else "", line.key, line.low, line.high)

    def values(self, line: _Values, announced: int) -> list[int]:
        """Return so many values of the next line."""
        words = self._next(line.key)
        if len(words) < announced:
            said = (
                f"{count(announced, 'value', verbs=WAS)} announced, the line has {count(len(words), 'word')}"
            )
            raise self._bad(f"{line.key}: {said}")
        return [self._whole(word, line.key, line.low, line.high) for word in words[:announced]]

    def real(self, what: str) -> float:
        """Return the number of the next line."""
        words = self._next(what)
        try:
            found = float(words[0])
        except (IndexError, ValueError):
            raise self._bad(f"{what}: a number") from None
        if not math.isfinite(found):
            raise self._bad(f"{what} {words[0][:20]}: a number")
        return found

"""Which combinations of levels a design has, and in which order they are run.  Pure."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wulf.base.errors import UsageError
from wulf.base.text import count
from wulf.tools.study.record import DesignKind, StudyFactor

#: Combinations beyond which a design is a mistake.
MOST_CELLS = 4096
#: Pairs of runs without which no test of signed ranks is below 1 %: 2 ÷ 2^n.
FEWEST = 8
#: Choices of generators that are looked at before the best so far is taken.
_MOST_TRIED = 20_000


class Design(NamedTuple):
    """The combinations, the base first, and what they cannot tell apart."""

    cells: list[list[str]]
    aliases: list[str]


class Turn(NamedTuple):
    """A run of a combination, with one of the base beside it where it is another."""

    replication: int
    cell: int
    #: Whether the base comes first.
    base_first: bool


def combinations(factors: Sequence[StudyFactor], kind: DesignKind, runs: int | None = None) -> Design:
    """Return the combinations of a design.

    Parameters
    ----------
    runs
        Of a fractional design: how many combinations it has at most; None for half of all.

    Raises
    ------
    UsageError
        There are too many, or the design is none for such factors.
    """
    base = [factor.levels[0].name for factor in factors]
    if kind == "one at a time":
        return Design([base, *_one_at_a_time(factors, base)], [])
    if kind == "fractional":
        return _fractional(factors, runs)
    total = 1
    for factor in factors:
        total *= len(factor.levels)
    if total > MOST_CELLS:
        raise UsageError(
            f"a full design of {count(total, 'combination')}: choose 'one at a time' or 'fractional'"
        )
    return Design([list(cell) for cell in itertools.product(*_levels(factors))], [])


def _levels(factors: Sequence[StudyFactor]) -> list[list[str]]:
    return [[level.name for level in factor.levels] for factor in factors]


def _one_at_a_time(factors: Sequence[StudyFactor], base: Sequence[str]) -> Iterator[list[str]]:
    for number, factor in enumerate(factors):
        for level in factor.levels[1:]:
            yield [*base[:number], level.name, *base[number + 1 :]]


def _fractional(factors: Sequence[StudyFactor], runs: int | None) -> Design:
    """Return a regular fraction of all combinations of two levels each, of the highest resolution that there is.

    Box, Hunter, Hunter: Statistics for Experimenters (2005), chapter 6. The first factors are a full design, each of
    the others is a product of some of them; the product of all signs of an effect and of a defining word is the same
    for all combinations, so that effects whose words differ by one cannot be told apart.
    """
    long = [factor.name for factor in factors if len(factor.levels) != 2]
    if long:
        raise UsageError(
            f"a fractional design takes two levels of every factor, and {', '.join(long)} has others"
        )
    many = len(factors)
    if many < 3:
        raise UsageError("a fractional design takes three factors or more")
    basic = (runs or 1 << (many - 1)).bit_length() - 1
    if 1 << basic <= many:
        raise UsageError(f"{count(1 << basic, 'combination')} cannot tell {count(many, 'factor')} apart")
    if basic >= many:
        return combinations(factors, "full")
    words = _generators(many, basic)
    cells = []
    for signs in itertools.product((0, 1), repeat=basic):
        whole = [*signs, *(_parity(signs, word) for word in words)]
        cells.append([factor.levels[sign].name for factor, sign in zip(factors, whole, strict=True)])
    return Design(cells, _aliases([factor.name for factor in factors], basic, words))


def _parity(signs: Sequence[int], word: int) -> int:
    """Return the level of a factor that is a product of others; all at the base gives the base."""
    return sum(sign for number, sign in enumerate(signs) if word >> number & 1) % 2


def _generators(count: int, basic: int) -> tuple[int, ...]:
    """Return of which of the first factors each of the others is a product, as bits, of the highest resolution."""
    products = sorted(
        (word for word in range(1, 1 << basic) if word.bit_count() > 1), key=int.bit_count, reverse=True
    )
    choices = itertools.islice(itertools.combinations(products, count - basic), _MOST_TRIED)
    return max(choices, key=lambda words: _lengths(words, basic))


def _lengths(words: Sequence[int], basic: int) -> tuple[int, int]:
    """Return the shortest defining word, and how few there are of that length: more of both is better."""
    lengths = [word.bit_count() for word in _defining(words, basic)]
    return min(lengths), -lengths.count(min(lengths))


def _defining(words: Sequence[int], basic: int) -> list[int]:
    """Return all products of factors that are the same for all combinations, as bits."""
    own = [word | 1 << (basic + number) for number, word in enumerate(words)]
    found = [0]
    for word in own:
        found += [word ^ other for other in found]
    return found[1:]


def _aliases(names: Sequence[str], basic: int, words: Sequence[int]) -> list[str]:
    """Return which effects of one or two factors are the same as others, in words."""
    defining = _defining(words, basic)
    effects = [1 << number for number in range(len(names))]
    effects += [first | second for first, second in itertools.combinations(effects, 2)]
    told: list[str] = []
    seen: set[int] = set()
    for effect in effects:
        same = [effect ^ word for word in defining if (effect ^ word).bit_count() <= 2]
        if same and effect not in seen:
            told.append(" = ".join(_named(one, names) for one in (effect, *same)))
        seen |= {effect, *same}
    return told


def _named(effect: int, names: Sequence[str]) -> str:
    return " × ".join(name for number, name in enumerate(names) if effect >> number & 1)


def turns(cells: int, replications: int, seed: int) -> Iterator[Turn]:
    """Yield the runs of a study: every combination once in each replication, in random order, beside the base.

    The base stands alone where there is nothing else.
    """
    order = random.Random(seed)  # noqa: S311 - reproducible, not secret
    for replication in range(replications):
        numbers = list(range(1, cells)) or [0]
        order.shuffle(numbers)
        for cell in numbers:
            yield Turn(replication, cell, order.random() < 0.5)


def runs_of(cells: int, replications: int) -> int:
    """Return how many runs a study has."""
    return replications * (2 * (cells - 1) if cells > 1 else 1)

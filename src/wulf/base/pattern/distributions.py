"""What is drawn: sizes of messages [B] and times of computing [ns], of the distributions that a pattern may name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal, NoReturn, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from wulf.base.errors import UsageError
from wulf.base.text import count
from wulf.base.units import parse_duration, parse_size

#: A size (``8192``, ``"8 KiB"``) or a time (``"1.5 ms"``).
Quantity = int | float | str


class _Distribution(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="distribution"):
    pass


class Uniform(_Distribution, frozen=True, tag="uniform"):
    """Between two bounds, each value as likely."""

    low: Quantity
    high: Quantity


class Normal(_Distribution, frozen=True, tag="normal"):
    """Normal; what would be below 0 is 0."""

    mean: Quantity
    sd: Quantity


class Exponential(_Distribution, frozen=True, tag="exponential"):
    """Exponential: the times between events that happen at random (Poisson)."""

    mean: Quantity


class Lognormal(_Distribution, frozen=True, tag="lognormal"):
    """Log-normal: its logarithm is normal with a standard deviation of `sigma`."""

    median: Quantity
    sigma: float


class Choice(_Distribution, frozen=True, tag="choice"):
    """One of some values; `weights` say how likely each is, all alike without."""

    values: list[Quantity]
    weights: list[float] | None = None


class Deck(_Distribution, frozen=True, tag="deck"):
    """Each value exactly so many times, in random order, as cards that are dealt; then all anew."""

    values: list[Quantity]
    counts: list[int]


class Empirical(_Distribution, frozen=True, tag="empirical"):
    """One of those that a trace has: times between calls of MPI, or sizes of messages."""

    trace: str


Amount = int | float | str | Uniform | Normal | Exponential | Lognormal | Choice | Deck | Empirical
#: Keys of tables with a distribution.
KEYS = ("low", "high", "mean", "sd", "median", "sigma", "values", "weights", "counts", "trace")
#: Keys of a step that hold amounts → whether they are times.
OF_STEP = {"compute": True, "think": True, "overlap": True, "size": False, "reply": False}
#: Of an `Empirical`: its trace and what of it → all values [B or ns].
Samples = Mapping[tuple[str, Literal["times", "sizes"]], NDArray[np.int64]]
Fail = Callable[[str, str], NoReturn]
#: No message and no time is longer: 1 TiB, 18 minutes.
LARGEST = 1 << 40
#: What MPI counts in one message [B].
LARGEST_MESSAGE = (1 << 31) - 1
#: A deck is kept in memory.
_MOST_CARDS = 50_000_000


def check(amount: Amount, fail: Fail, *, is_time: bool) -> None:
    """Refuse what cannot be drawn.

    Parameters
    ----------
    fail
        Takes the key within the amount, with its dot, or nothing for the amount itself, and what is wrong.
    """
    if not isinstance(amount, _Distribution):
        _checked(amount, "", fail, is_time=is_time)
        return
    for key in ("low", "high", "mean", "sd", "median"):
        if hasattr(amount, key):
            _checked(getattr(amount, key), f".{key}", fail, is_time=is_time)
    if isinstance(amount, Uniform) and quantity(amount.low, is_time=is_time) > quantity(
        amount.high, is_time=is_time
    ):
        fail(".low", f"{amount.low} is above high, {amount.high}")
    if isinstance(amount, Lognormal) and not 0 <= amount.sigma <= 10:
        fail(".sigma", f"{amount.sigma}: from 0 to 10")
    if isinstance(amount, Choice | Deck):
        _check_values(amount, fail, is_time=is_time)


def _check_values(amount: Choice | Deck, fail: Fail, *, is_time: bool) -> None:
    if not amount.values:
        fail(".values", "there is none")
    for number, value in enumerate(amount.values):
        _checked(value, f".values[{number}]", fail, is_time=is_time)
    key, shares = ("counts", amount.counts) if isinstance(amount, Deck) else ("weights", amount.weights)
    if shares is None:
        return
    if len(shares) != len(amount.values):
        fail(f".{key}", f"{len(shares)} for {count(len(amount.values), 'value')}")
    if any(not 0 <= share < math.inf for share in shares) or sum(shares) <= 0:
        fail(f".{key}", "numbers of 0 or more, one of them above 0")
    if isinstance(amount, Deck) and sum(amount.counts) > _MOST_CARDS:
        fail(".counts", f"more than {_MOST_CARDS} together")


def _checked(value: Quantity, key: str, fail: Fail, *, is_time: bool) -> None:
    try:
        number = quantity(value, is_time=is_time)
    except UsageError as error:
        fail(key, str(error))
    if number < 0:
        fail(key, f"{value}: 0 or more")
    if is_time and number > LARGEST:
        fail(key, f"{value}: more than anybody waits for")
    if not is_time and number > LARGEST_MESSAGE:
        fail(key, f"{value}: a message has less than 2 GiB")


def quantity(value: Quantity, *, is_time: bool) -> float:
    """Return a time [ns] or a size [B].

    Raises
    ------
    UsageError
        It is none; a time other than 0 needs its unit.
    """
    if is_time:
        if isinstance(value, str):
            return 0.0 if value.split()[:1] == ["0"] else parse_duration(value) * 1e9
        if value == 0:
            return 0.0
        raise UsageError(f'{value}: a time has a unit: "{value} us"')
    if isinstance(value, str):
        return float(parse_size(value))
    if not math.isfinite(value) or value != int(value):
        raise UsageError(f"{value} is not a whole number of bytes")
    return float(value)


def words(amount: Amount) -> str:  # noqa: PLR0911 - one for each distribution
    """Return an amount as a person says it, with the units that the pattern has."""
    match amount:
        case Uniform():
            return f"{_plain(amount.low)} to {_plain(amount.high)}"
        case Normal():
            return f"{_plain(amount.mean)} ± {_plain(amount.sd)}"
        case Exponential():
            return f"{_plain(amount.mean)} on average (exponential)"
        case Lognormal():
            return f"{_plain(amount.median)} in the middle (log-normal, σ = {amount.sigma:g})"
        case Choice():
            return f"one of {count(len(amount.values), 'value')}"
        case Deck():
            return f"a deck of {sum(amount.counts)}"
        case Empirical():
            return f"as in {amount.trace}"
        case _:
            return _plain(amount)


def _plain(value: Quantity) -> str:
    return f"{value} B" if isinstance(value, int) and value else str(value)


def draw(
    amount: Amount | None, count: int, generator: np.random.Generator, samples: Samples, *, is_time: bool
) -> NDArray[np.int64]:
    """Draw so many values; none of them is below 0 [ns or B].

    Parameters
    ----------
    amount
        As `check` accepts it; 0 when None.
    """
    if amount is None:
        return np.zeros(count, dtype=np.int64)
    if not isinstance(amount, _Distribution):
        return np.full(count, round(quantity(amount, is_time=is_time)), dtype=np.int64)
    drawn = _drawn(cast("Amount", amount), count, generator, samples, is_time=is_time)
    return np.clip(np.rint(drawn), 0, LARGEST if is_time else LARGEST_MESSAGE).astype(np.int64)


def _drawn(  # noqa: PLR0911 - one for each distribution
    amount: Amount, count: int, generator: np.random.Generator, samples: Samples, *, is_time: bool
) -> NDArray[np.float64]:
    def number(value: Quantity) -> float:
        return quantity(value, is_time=is_time)

    match amount:
        case Uniform():
            return generator.uniform(number(amount.low), number(amount.high), count)
        case Normal():
            return generator.normal(number(amount.mean), number(amount.sd), count)
        case Exponential():
            return generator.exponential(number(amount.mean), count)
        case Lognormal():
            return number(amount.median) * generator.lognormal(0.0, amount.sigma, count)
        case Choice():
            weights = np.asarray(amount.weights or [1.0] * len(amount.values))
            values = np.array([number(value) for value in amount.values])
            return cast("NDArray[np.float64]", generator.choice(values, count, p=weights / weights.sum()))
        case Deck():
            cards = np.repeat([number(value) for value in amount.values], amount.counts)
            decks = [generator.permutation(cards) for _ in range(-(-count // len(cards)))]
            return np.concatenate(decks)[:count] if decks else np.zeros(0)
        case Empirical():
            known = samples[amount.trace, "times" if is_time else "sizes"]
            return generator.choice(known, count).astype(np.float64)
    raise TypeError(f"{amount!r} is not a distribution")

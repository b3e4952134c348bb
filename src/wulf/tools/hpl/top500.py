"""Where a result would have stood in the Top500, as far as the lists are known."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from itertools import takewhile

import msgspec

from wulf.tools.hpl.record import Standing


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rank that a publication gives to a result that was never submitted."""

    gflops: float
    rank: int
    source: str


class Ranking(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of a list."""

    name: str
    #: First and last rank of systems in a row that are equally fast, and how fast [GFLOPS]; the fastest first.
    ranks: list[tuple[int, int, float]]
    published: list[Published] = []


class LastList(msgspec.Struct, frozen=True, kw_only=True):
    """The last list that a result is fast enough for, of those that are known."""

    name: str
    #: Its slowest system [GFLOPS].
    entry_gflops: float
    #: The lists between it and the next that is known, in time order: the result may be fast enough for them, too.
    unknown: list[str]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    #: Lists whose slowest system is not known; the last of them stands for all that follow.
    unknown: list[str]
    #: List → its slowest system [GFLOPS], in time order.
    entry: dict[str, float]
    ranking: list[Ranking]


@cache
def _table() -> _Table:
    text = resources.files("wulf").joinpath("data", "top500.toml").read_bytes()
    return msgspec.toml.decode(text, type=_Table)


def standings(gflops: float) -> list[Standing]:
    """Return the rank in each list that knows both neighbours of a result."""
    return list(_standings(gflops))


def _standings(gflops: float) -> Iterator[Standing]:
    table = _table()
    for ranking in table.ranking:
        rank, source = _rank(ranking, gflops), table.source
        for published in ranking.published:
            if f"{published.gflops:.4g}" == f"{gflops:.4g}":
                rank, source = published.rank, published.source
        if rank is not None:
            yield Standing(edition=ranking.name, rank=rank, source=source)


def _rank(ranking: Ranking, gflops: float) -> int | None:
    """Return the place behind all that are faster; None where a neighbour is not known."""
    faster = 0
    for first, last, known in ranking.ranks:
        if known <= gflops:
            return first if first == faster + 1 else None
        faster = last
    return None


def last_list(gflops: float) -> LastList | None:
    """Return the last list that a result is fast enough for; None for none."""
    table = _table()
    found = [name for name, entry in table.entry.items() if gflops >= entry]
    if not found:
        return None
    lists = sorted([*table.entry, *table.unknown], key=_when)
    after = lists[lists.index(found[-1]) + 1 :]
    unknown = list(takewhile(table.unknown.__contains__, after))
    return LastList(name=found[-1], entry_gflops=table.entry[found[-1]], unknown=unknown)


def _when(name: str) -> tuple[int, bool]:
    """Return a list's place in time: there are two in a year."""
    month, year, *_ = name.split()
    return int(year), month == "November"

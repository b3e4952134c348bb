"""Rules that choose algorithms, as all formats of files have them.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from wulf.base.errors import WulfError
from wulf.base.text import count

#: The library's own decision.
BUILT_IN = 0


class RuleFileError(WulfError):
    """A file of rules that cannot be read or written; says where, and why."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What is taken from a size on."""

    #: As the library counts it for this collective, which is not always the size of one message: see `Counted`.
    from_bytes: int
    #: Number of the algorithm; `BUILT_IN` leaves it to the library.
    algorithm: int
    #: Children of a node of a tree, chains that leave the root.
    fanout: int = 0
    #: A message is sent in parts of this size; 0 in one [B].
    segment_bytes: int = 0
    #: Requests that are open at a time; 0 for as many as there are.
    max_requests: int = 0


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """Rules of communicators from so many ranks on."""

    ranks: int
    #: By `from_bytes`, ascending; the first one from 0.
    rules: tuple[Rule, ...]


#: Collective → blocks by `ranks`, ascending.
Rules = Mapping[str, tuple[Block, ...]]

#: What a library compares with the sizes of rules: one message, those of all ranks together, or nothing by which
#: sizes can be told apart.
Counted = Literal["message", "all ranks", "no size"]


def counted_bytes(counted: Counted, size_bytes: int, ranks: int) -> int:
    """Return what a library compares with `from_bytes` where one message has `size_bytes`."""
    return {"message": size_bytes, "all ranks": size_bytes * ranks, "no size": 0}[counted]


def chosen(rules: Rules, collective: str, ranks: int, counted: int) -> Rule | None:
    """Return the rule that Open MPI 4.1 and 5.0 take; None where there is none for this collective.

    The first block serves communicators that are smaller, too (tried on 4.1.4).
    """
    blocks = rules.get(collective, ())
    block = next((one for one in reversed(blocks) if one.ranks <= ranks), blocks[0] if blocks else None)
    if block is None:
        return None
    return next((rule for rule in reversed(block.rules) if rule.from_bytes <= counted), None)


def require_ordered(rules: Rules) -> None:
    """Raise RuleFileError where blocks or rules are not in order, or the first rule is not from 0 bytes."""
    for collective, blocks in rules.items():
        sizes = [block.ranks for block in blocks]
        if sizes != sorted(set(sizes)):
            raise RuleFileError(f"{collective}: communicator sizes are not in ascending order: {sizes}")
        for block in blocks:
            begins = [rule.from_bytes for rule in block.rules]
            if begins[:1] != [0] or begins != sorted(set(begins)):
                raise RuleFileError(
                    f"{collective}, {count(block.ranks, 'rank')}: message sizes must begin with 0 and ascend: {begins}"
                )

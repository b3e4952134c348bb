"""From what was found at each size to rules that say nothing of what was not measured.  Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import msgspec

from wulf.tools.collectives.rules.halving import Candidate
from wulf.tools.collectives.rules.rules import BUILT_IN, Block, Counted, Rule, Rules, counted_bytes


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What is best at one size; None is the library's own decision."""

    size_bytes: int
    choice: Candidate | None
    #: Sizes at which the choice was not slower than the default when all were tried [B].
    holds_at: frozenset[int] = frozenset()


#: Collective → ranks → by size.
Findings = Mapping[str, Mapping[int, Sequence[Found]]]


def decide(found: Findings, fanout: Mapping[str, int], counted: Mapping[str, Counted]) -> Rules:
    """Return the rules of all that was found to help; collectives without any are left out.

    A choice reaches to halfway (in the logarithm) to a neighbouring size where it was not slower than the default
    there, else it is for its own size alone. Sizes beyond those that were measured, and other numbers of ranks but
    those between two that were measured, are left to the library. Where the library cannot tell sizes apart a choice
    must not be slower at any.

    Parameters
    ----------
    fanout
        Collective → what a rule says of it.
    counted
        Collective → what the library compares with the sizes of its rules; of those that are missing one message.
    """
    rules = {}
    for collective, by_ranks in found.items():
        way = counted.get(collective, "message")
        blocks = _blocks(by_ranks, fanout.get(collective, 0), way)
        if any(rule.algorithm != BUILT_IN for block in blocks for rule in block.rules):
            rules[collective] = blocks
    return rules


def for_all_sizes(found: Findings) -> dict[str, Candidate]:
    """Return collective → the choice that helps at some size and nowhere hurts, where no file can tell sizes apart.

    Nor can it tell numbers of ranks apart: of a collective that was measured at several nothing is said.
    """
    chosen = {}
    for collective, by_ranks in found.items():
        choice = _for_every_size(next(iter(by_ranks.values()))) if len(by_ranks) == 1 else None
        if choice is not None:
            chosen[collective] = choice
    return chosen


def _for_every_size(found: Sequence[Found]) -> Candidate | None:
    """Return the choice at the smallest size that is not slower at any other one."""
    sizes = {one.size_bytes for one in found}
    fits = (one.choice for one in found if one.choice and sizes - {one.size_bytes} <= one.holds_at)
    return next(fits, None)


def _blocks(by_ranks: Mapping[int, Sequence[Found]], fanout: int, counted: Counted) -> tuple[Block, ...]:
    own = (Rule(from_bytes=0, algorithm=BUILT_IN),)
    blocks = []
    if min(by_ranks) > 1:
        # Else the first block would serve smaller communicators, too.
        blocks.append(Block(ranks=1, rules=own))
    for ranks, found in sorted(by_ranks.items()):
        blocks.append(Block(ranks=ranks, rules=_rules(ranks, found, fanout, counted)))
    blocks.append(Block(ranks=max(by_ranks) + 1, rules=own))
    return tuple(blocks)


def _rules(ranks: int, found: Sequence[Found], fanout: int, counted: Counted) -> tuple[Rule, ...]:
    begins = (
        {0: _for_every_size(found)} if counted == "no size" else {0: None, **dict(sorted(_begins(found)))}
    )
    rules: list[Rule] = []
    for size, choice in begins.items():
        rule = Rule(
            from_bytes=counted_bytes(counted, size, ranks),
            algorithm=choice.number if choice else BUILT_IN,
            fanout=fanout if choice else 0,
            segment_bytes=choice.segment_bytes if choice else 0,
        )
        if not rules or msgspec.structs.replace(rules[-1], from_bytes=rule.from_bytes) != rule:
            rules.append(rule)
    return tuple(rules)


def _begins(found: Sequence[Found]) -> list[tuple[int, Candidate | None]]:
    """Return from which size on which choice is taken."""
    ordered = sorted(found, key=lambda one: one.size_bytes)
    begins: list[tuple[int, Candidate | None]] = [(ordered[0].size_bytes, ordered[0].choice)]
    for low, high in itertools.pairwise(ordered):
        if low.choice != high.choice:
            middle = max(math.isqrt(low.size_bytes * high.size_bytes), low.size_bytes + 1)
            if high.size_bytes not in low.holds_at:
                begins.append((low.size_bytes + 1, None))
            begins.append((middle, high.choice if low.size_bytes in high.holds_at else None))
            begins.append((high.size_bytes, high.choice))
    return [*begins, (ordered[-1].size_bytes + 1, None)]

"""From what was found at each size to rules that say nothing of what was not measured.  Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import msgspec

from wulf.collectives.halving import Candidate
from wulf.collectives.rules import BUILT_IN, SIZELESS, Block, Rule, Rules, counted_bytes


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What is best at one size; None is the library's own decision."""

    size_bytes: int
    choice: Candidate | None
    #: Sizes at which the choice was not slower than the default when all were tried [B].
    holds_at: frozenset[int] = frozenset()


#: Collective → ranks → by size.
Findings = Mapping[str, Mapping[int, Sequence[Found]]]


def decide(found: Findings, fanout: Mapping[str, int], counted: bool) -> Rules:
    """Return the rules of all that was found to help; collectives without any are left out.

    A choice reaches to halfway (in the logarithm) to a neighbouring size where it was not slower than the default
    there, else it is for its own size alone. Sizes beyond those that were measured, and other numbers of ranks but
    those between two that were measured, are left to the library.

    Parameters
    ----------
    fanout
        Collective → what a rule says of it.
    counted
        Whether sizes are as Open MPI counts them, or of one message.
    """
    rules = {}
    for collective, by_ranks in found.items():
        if any(one.choice is not None for ways in by_ranks.values() for one in ways):
            rules[collective] = _blocks(collective, by_ranks, fanout.get(collective, 0), counted)
    return rules


def for_all_sizes(found: Findings) -> dict[str, Candidate]:
    """Return collective → the choice that helps at some size and nowhere hurts, where no file can tell sizes apart."""
    chosen: dict[str, Candidate] = {}
    for collective, by_ranks in found.items():
        cells = [one for ways in by_ranks.values() for one in ways]
        sizes = {one.size_bytes for one in cells}
        for one in cells:
            others = sizes - {one.size_bytes}
            if one.choice is not None and others <= one.holds_at and len(by_ranks) == 1:
                chosen.setdefault(collective, one.choice)
    return chosen


def _blocks(
    collective: str, by_ranks: Mapping[int, Sequence[Found]], fanout: int, counted: bool
) -> tuple[Block, ...]:
    own = (Rule(from_bytes=0, algorithm=BUILT_IN),)
    blocks = []
    if min(by_ranks) > 1:
        # Else the first block would serve smaller communicators, too.
        blocks.append(Block(ranks=1, rules=own))
    for ranks, found in sorted(by_ranks.items()):
        blocks.append(Block(ranks=ranks, rules=_rules(collective, ranks, found, fanout, counted)))
    blocks.append(Block(ranks=max(by_ranks) + 1, rules=own))
    return tuple(blocks)


def _rules(
    collective: str, ranks: int, found: Sequence[Found], fanout: int, counted: bool
) -> tuple[Rule, ...]:
    begins = dict(sorted(_begins(found)))
    if collective == "barrier" or (collective in SIZELESS and counted):
        begins = {0: found[0].choice}
    rules: list[Rule] = []
    for size, choice in {0: None, **begins}.items():
        rule = Rule(
            from_bytes=counted_bytes(collective, size, ranks) if counted else size,
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

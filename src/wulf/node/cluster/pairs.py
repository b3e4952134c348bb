"""Which pairs of nodes are measured."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from wulf.base.errors import UsageError
from wulf.base.records import Pair
from wulf.base.text import count, nearest, printable

#: Beyond this a full matrix is days of measuring; a ring or named pairs say more in less time.
MAX_PAIRS = 20_000


def pairs(spec: str, nodes: Sequence[str]) -> list[Pair]:
    """Return the pairs that `spec` means: ``all``, ``ring``, or ``n1:n2,n3:n4``. Pure.

    The first node of a pair holds rank 0 and measures. ``all`` has every two nodes once; ``ring`` has each
    node with the next one and the last with the first.

    Raises
    ------
    UsageError
        For fewer than two nodes, unknown nodes, a node with itself, or a pair named twice.
    """
    if len(nodes) < 2:
        raise UsageError(
            f"a pair needs two nodes; there {'is one' if nodes else 'are none'}: {', '.join(nodes)}"
        )
    if spec == "all":
        every = len(nodes) * (len(nodes) - 1) // 2
        if every > MAX_PAIRS:
            raise UsageError(
                f"--pairs all: {count(len(nodes), 'node')} make {count(every, 'pair')}; use ring or name the pairs"
            )
        return list(combinations(nodes, 2))
    if spec == "ring":
        return list(zip(nodes, [*nodes[1:], nodes[0]], strict=True))[: len(nodes) if len(nodes) > 2 else 1]
    return _named(spec, nodes)


def _named(spec: str, nodes: Sequence[str]) -> list[Pair]:
    known = frozenset(nodes)
    result: dict[Pair, None] = {}
    for item in spec.split(","):
        first, colon, second = (part.strip() for part in item.partition(":"))
        shown = printable(item.strip(), 80)
        if not (first and colon and second):
            raise UsageError(
                f"--pairs: '{shown}' is not a pair; allowed: all, ring, or pairs like {nodes[0]}:{nodes[1]}"
                + nearest(shown, ["all", "ring"])
            )
        for name in (first, second):
            if name not in known:
                raise UsageError(
                    f"--pairs: {printable(name, 80)} is not one of the nodes{nearest(name, known)}"
                )
        if first == second:
            raise UsageError(f"--pairs: '{shown}' is a node with itself")
        if (first, second) in result:
            raise UsageError(f"--pairs: '{shown}' is named twice")
        result[(first, second)] = None
    return list(result)

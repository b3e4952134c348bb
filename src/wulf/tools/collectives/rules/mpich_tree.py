"""MPICH's decision tree as JSON: found in the library itself, and changed for what was tuned.  Pure.

Keys are conditions, siblings are tried in order. A file that is not whole, has an unknown key or is missing ends the
job, so a tree is only made from the full one that the library of the same version has inside.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from wulf.tools.collectives.rules.rules import (
    BUILT_IN,
    Block,
    Counted,
    Rule,
    RuleFileError,
    Rules,
    require_ordered,
)

Tree = dict[str, Any]
#: A tree of a whole library knows this collective and what is not blocking.
_WHOLE = ("collective=bcast", "collective=alltoallw", "collective=ibcast")
_KEY = re.compile(r"algorithm=MPIR_([A-Z][A-Za-z_]*?)_(intra|allcomm)_([a-z0-9_]+)")
#: What holds of the programs that a tree is judged for.
_OURS = frozenset(
    {
        "comm_type=intra",
        "comm_hierarchy=parent",
        "is_commutative=yes",
        "is_op_built_in=yes",
        "is_sendbuf_inplace=no",
        "is_block_regular=yes",
        "is_node_consecutive=yes",
    }
)
_DOUBLE_BYTES = 8
#: Collectives for which the library knows the condition on the size of one message (csel.c, get_avg_msgsize); asked of
#: any other it ends the job.
_AVERAGE = frozenset(
    {"allreduce", "alltoall", "bcast", "iallreduce", "ialltoall", "ibcast", "ireduce", "reduce"}
)
#: Those for which it knows the sum over all ranks (get_total_msgsize), and that is the same on every rank, whatever
#: the type: of a gather and a scatter it counts elements, of an alltoallv what the rank itself sends.
_TOTAL = frozenset(
    {
        *("allgather", "allgatherv", "reduce_scatter", "reduce_scatter_block"),
        *("iallgather", "iallgatherv", "ireduce_scatter", "ireduce_scatter_block"),
    }
)
#: The largest number in a condition.
_MOST_BYTES = 2**31 - 1


def counted(collective: str) -> Counted:
    """Return what a condition of the tree can compare."""
    if collective in _AVERAGE:
        return "message"
    return "all ranks" if collective in _TOTAL else "no size"


def algorithms(texts: list[str]) -> dict[str, dict[str, str]]:
    """Return collective → name of an algorithm → its key in a tree, from the texts that a library has inside."""
    found: dict[str, dict[str, str]] = {}
    for text in texts:
        match = _KEY.fullmatch(text)
        if match:
            found.setdefault(match[1].lower(), {})[match[3]] = text
    return found


def whole_tree(texts: list[str]) -> Tree | None:
    """Return the full tree among the texts that a library has inside; None where there is none."""
    for text in texts:
        if text.startswith('{"collective=') and all(f'"{key}"' in text for key in _WHOLE):
            tree = json.loads(text)
            return tree if isinstance(tree, dict) else None
    return None


def write(tree: Tree, rules: Rules, keys: dict[str, dict[int, str]]) -> str:
    """Return the text of a tree that has these rules before its own.

    Parameters
    ----------
    tree
        The full tree of the library.
    keys
        Collective → number of an algorithm → its key.

    Raises
    ------
    RuleFileError
        The tree does not know a collective, an algorithm, or a size as large.
    """
    require_ordered(rules)
    changed = dict(tree)
    for collective, blocks in rules.items():
        name = f"collective={collective}"
        if name not in tree:
            raise RuleFileError(f"the library's tree does not know {collective}")
        own = tree[name]
        if "comm_type=intra" in own:
            inner = _in_front(own["comm_type=intra"], blocks, keys.get(collective, {}), collective)
            changed[name] = {**own, "comm_type=intra": inner}
        else:
            inner = _in_front(own, blocks, keys.get(collective, {}), collective)
            changed[name] = {"comm_type=intra": inner, "comm_type=inter": own}
    return json.dumps(changed, indent=1) + "\n"


def decide(text: str, collective: str, ranks: int, size_bytes: int) -> str | None:
    """Return the key of the algorithm that a tree takes for a sum of doubles or bytes between nodes of one rank each.

    None where it takes none, or asks for what is not known here.

    Raises
    ------
    RuleFileError
        It is no JSON, or asks for what ends the job.
    """
    try:
        tree = json.loads(text)
    except ValueError as error:
        raise RuleFileError(f"no tree: {error}") from error
    return walk(tree, collective, ranks, size_bytes)


def walk(tree: Tree, collective: str, ranks: int, size_bytes: int) -> str | None:
    """Return what `decide` does, of a tree."""
    return _walk(tree.get(f"collective={collective}", {}), collective, ranks, size_bytes)


def leaves(tree: Tree) -> Iterator[str]:
    """Yield the keys of the algorithms of a part of a tree that take no words of their own."""
    for key, inner in tree.items():
        if not key.startswith("algorithm="):
            yield from leaves(inner)
        elif not inner:
            yield key


def _walk(tree: Tree, collective: str, ranks: int, size_bytes: int) -> str | None:
    for condition, inner in tree.items():
        if condition.startswith("algorithm="):
            return condition
        if condition.startswith("avg_msg_size<") and collective not in _AVERAGE:
            raise RuleFileError(f"{collective}: the library ends a job that asks for its avg_msg_size")
        if _holds(condition, ranks, size_bytes):
            return _walk(inner, collective, ranks, size_bytes)
    return None


def _holds(condition: str, ranks: int, size_bytes: int) -> bool:
    if condition.endswith("=any") or condition in _OURS:
        return True
    if condition == "comm_size=pow2":
        return ranks & (ranks - 1) == 0
    numbers = {
        "comm_size": ranks,
        "avg_msg_size": size_bytes,
        "total_msg_size": size_bytes * ranks,
        "count": size_bytes // _DOUBLE_BYTES,
    }
    name, relation, limit = re.split(r"(<=|<|=)", condition, maxsplit=1)
    if name not in numbers or relation == "=":
        return False
    most = 1 << (ranks.bit_length() - 1) if limit == "pow2" else int(limit)
    return numbers[name] < most + (relation == "<=")


def _in_front(own: Tree, blocks: tuple[Block, ...], keys: dict[int, str], collective: str) -> Tree:
    """Return a tree in which each block has its ranks, up to those of the next one; the rest is as it was."""
    result: Tree = {}
    if blocks[0].ranks > 0:
        result[f"comm_size<={blocks[0].ranks - 1}"] = own
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        condition = "comm_size=any" if after is None else f"comm_size<={after.ranks - 1}"
        result[condition] = _sizes(own, block.rules, keys, collective)
    return result


def _sizes(own: Tree, rules: tuple[Rule, ...], keys: dict[int, str], collective: str) -> Tree:
    if len(rules) == 1 and rules[0].algorithm == BUILT_IN:
        return own
    if len(rules) == 1 and rules[0].algorithm in keys:
        return {keys[rules[0].algorithm]: {}}  # nothing has to be asked for
    result: Tree = {}
    for rule, after in zip(rules, [*rules[1:], None], strict=True):
        condition = _before(after, collective)
        if rule.algorithm != BUILT_IN and rule.algorithm not in keys:
            raise RuleFileError(f"{collective}: the library has no algorithm {rule.algorithm}")
        result[condition] = own if rule.algorithm == BUILT_IN else {keys[rule.algorithm]: {}}
    return result


def _before(after: Rule | None, collective: str) -> str:
    """Return the condition of a rule that ends where the next one begins."""
    names: dict[Counted, str] = {"message": "avg_msg_size", "all ranks": "total_msg_size"}
    name = names.get(counted(collective))
    if name is None:
        raise RuleFileError(f"{collective}: the library's tree cannot tell its sizes apart")
    if after is None:
        return f"{name}=any"
    if after.from_bytes - 1 > _MOST_BYTES:
        raise RuleFileError(f"{collective}: the library's tree cannot say a size of {after.from_bytes} B")
    return f"{name}<={after.from_bytes - 1}"

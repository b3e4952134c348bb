"""Rules of Open MPI 6: JSON, the first that matches wins.  Pure.

Names of fields are those that the code reads (``seg_size``, ``reduce_scatter``), where schema and converter say others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from wulf.tools.collectives.rules.rules import Block, Rule, RuleFileError, Rules, require_ordered

#: Collective → name of an algorithm → number.
Numbers = Mapping[str, Mapping[str, int]]
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Bound = _Count | Literal["inf"]


class _JsonRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    msg_size_min: _Count = 0
    msg_size_max: _Bound = "inf"
    alg: int | str
    faninout: _Count = 0
    seg_size: _Count = 0
    reqs: _Count = 0


class _JsonBlock(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    comm_size_min: _Count = 0
    comm_size_max: _Bound = "inf"
    comm_rank_distribution: Literal["any", "one-per-node", "single-node"] = "any"
    rules: list[_JsonRule]


class _Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    rule_file_version: Literal[3]
    module: Literal["tuned"] = "tuned"
    collectives: dict[str, list[_JsonBlock]]


def read(text: str, numbers: Numbers) -> Rules:
    """Return the rules of a text; gaps between them are left to the library.

    Parameters
    ----------
    numbers
        What the library calls its algorithms.

    Raises
    ------
    RuleFileError
        It is none, says what our rules cannot, or names an algorithm that the library does not have.
    """
    try:
        document = msgspec.json.decode(text, type=_Document)
    except msgspec.DecodeError as error:
        raise RuleFileError(f"no rules of version 3: {error}") from error
    found = {
        collective: _blocks(collective, blocks, numbers.get(collective, {}))
        for collective, blocks in document.collectives.items()
    }
    require_ordered(found)
    return found


def write(rules: Rules) -> str:
    """Return the text of rules."""
    require_ordered(rules)
    document = _Document(
        rule_file_version=3,
        collectives={collective: _json_blocks(blocks) for collective, blocks in rules.items()},
    )
    # ``module`` and the version must be there, though they can be nothing else.
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _json_blocks(blocks: tuple[Block, ...]) -> list[_JsonBlock]:
    ends: list[int | Literal["inf"]] = [*(block.ranks - 1 for block in blocks[1:]), "inf"]
    return [
        _JsonBlock(comm_size_min=block.ranks, comm_size_max=end, rules=_json_rules(block.rules))
        for block, end in zip(blocks, ends, strict=True)
    ]


def _json_rules(rules: tuple[Rule, ...]) -> list[_JsonRule]:
    ends: list[int | Literal["inf"]] = [*(rule.from_bytes - 1 for rule in rules[1:]), "inf"]
    return [
        _JsonRule(
            msg_size_min=rule.from_bytes,
            msg_size_max=end,
            alg=rule.algorithm,
            faninout=rule.fanout,
            seg_size=rule.segment_bytes,
            reqs=rule.max_requests,
        )
        for rule, end in zip(rules, ends, strict=True)
    ]


def _blocks(collective: str, blocks: list[_JsonBlock], numbers: Mapping[str, int]) -> tuple[Block, ...]:
    found: list[Block] = []
    free_from = 0
    for block in blocks:
        if block.comm_rank_distribution != "any":
            raise RuleFileError(f"{collective}: only rules for any distribution of ranks are understood")
        if block.comm_size_min < free_from:
            raise RuleFileError(f"{collective}: blocks overlap or are not in order")
        if block.comm_size_min > free_from and found:
            found.append(Block(ranks=free_from, rules=(Rule(from_bytes=0, algorithm=0),)))
        found.append(Block(ranks=block.comm_size_min, rules=_rules(collective, block.rules, numbers)))
        if block.comm_size_max == "inf":
            return tuple(found)
        free_from = block.comm_size_max + 1
    return (*found, Block(ranks=free_from, rules=(Rule(from_bytes=0, algorithm=0),)))


def _rules(collective: str, rules: list[_JsonRule], numbers: Mapping[str, int]) -> tuple[Rule, ...]:
    found: list[Rule] = []
    free_from = 0
    for rule in rules:
        if rule.msg_size_min < free_from:
            raise RuleFileError(f"{collective}: rules overlap or are not in order")
        if rule.msg_size_min > free_from:
            found.append(Rule(from_bytes=free_from, algorithm=0))
        if isinstance(rule.alg, str) and rule.alg not in numbers:
            raise RuleFileError(f"{collective}: this library has no algorithm {rule.alg!r}")
        found.append(
            Rule(
                from_bytes=rule.msg_size_min,
                algorithm=rule.alg if isinstance(rule.alg, int) else numbers[rule.alg],
                fanout=rule.faninout,
                segment_bytes=rule.seg_size,
                max_requests=rule.reqs,
            )
        )
        if rule.msg_size_max == "inf":
            return tuple(found)
        free_from = rule.msg_size_max + 1
    return (*found, Rule(from_bytes=free_from, algorithm=0))

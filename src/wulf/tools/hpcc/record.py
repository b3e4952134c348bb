"""HPC Challenge on the nodes of a cluster."""

from __future__ import annotations

from typing import Literal

from wulf.base.records.base import Estimate, Record


class HpccFigure(Record, frozen=True, kw_only=True):
    """One result of HPCC over the launches of a run."""

    #: As HPCC calls it.
    name: str
    #: Median over launches, in HPCC's own unit.
    value: Estimate
    better: Literal["lower", "higher"]


class HpccDifference(Record, frozen=True, kw_only=True):
    """A node that is proven to differ from the others in one result."""

    node: str
    name: str
    #: Time of the node ÷ that of the others: above 1 is slower, whatever the result's own unit is.
    ratio: Estimate


class HpccResult(Record, frozen=True, kw_only=True):
    """What a run of HPCC says of a cluster and of each of its nodes."""

    schema_version: int
    #: Name of the run.
    run_id: str
    #: ``budget``: the time ended it before all rounds were made.
    status: Literal["running", "complete", "budget", "interrupted", "failed"]
    nodes: list[str]
    #: Ranks on each node.
    ranks_per_node: int
    #: N of HPL on all nodes together, and on a single one.
    sizes: dict[str, int]
    #: Of all nodes together.
    figures: list[HpccFigure]
    #: Node → of it alone; empty where there is one node.
    by_node: dict[str, list[HpccFigure]] = {}
    #: Nodes that differ, the slowest first.
    different: list[HpccDifference] = []
    #: Results in which nodes were compared.
    compared: list[str] = []
    #: A node that differs by less, as a share, is like the others.
    margin: float
    #: Chance that any node is named where all are alike.
    false_alarm: float
    #: Runs of HPCC that ended well.
    launches_ok: int
    #: Why others did not: reason → how many.
    failures: dict[str, int] = {}

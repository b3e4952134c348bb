"""How a program's run time goes with the number of its ranks."""

from __future__ import annotations

from typing import Literal

from wulf.base.records.base import Estimate, Record


class ScalingPoint(Record, frozen=True, kw_only=True):
    """A number of ranks."""

    ranks: int
    nodes: int
    #: Null where every launch failed.
    time: Estimate | None
    #: Against the fewest ranks, of launches of the same round; null for these.
    speed_up: Estimate | None = None
    #: Speed-up ÷ how many times the ranks; of a work that grows with them the time of the fewest ÷ its own.
    efficiency: Estimate | None = None
    #: Reason → launches that failed for it.
    failures: dict[str, int] = {}


class ScalingLaw(Record, frozen=True, kw_only=True):
    """A law, as far as the launches tell."""

    name: Literal["Amdahl", "universal scalability"]
    #: ``serial share``, or ``contention`` and ``coherency`` → what it is; null where it is not identified.
    parameters: dict[str, Estimate | None]
    #: Why it is not fitted, or what of it is not identified; empty when all is.
    reason: str = ""


class ScalingForecast(Record, frozen=True, kw_only=True):
    """What more ranks would bring."""

    ranks: int
    #: Time with so many ÷ time with the most that were measured.
    ratio: Estimate


class Scaling(Record, frozen=True, kw_only=True):
    """Run time, speed-up and efficiency by ranks, the laws, and what more ranks would bring."""

    schema_version: int
    command: str
    nodes: list[str]
    #: Ranks of each node, where nodes are added with the ranks; 0 where all nodes have some.
    per_node: int = 0
    #: The work grows with the ranks.
    weak: bool
    points: list[ScalingPoint]
    laws: list[ScalingLaw]
    #: By the simpler law, unless the other has a coherency that is not nothing; empty where neither is identified.
    forecasts: list[ScalingForecast] = []
    #: Of which law they are.
    by: str = ""
    #: Rounds of one launch of each number.
    rounds: int
    #: Of the random orders.
    seed: int
    interrupted: bool = False

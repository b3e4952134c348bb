"""How a program's run time goes with the number of its ranks."""

from __future__ import annotations

from typing import Literal

from wulf.base.records.base import Estimate, Record
from wulf.base.records.measured import RunHead


class ScalingPlan(Record, frozen=True, kw_only=True):
    """What is launched."""

    command: str
    #: Numbers of them, ascending.
    ranks: list[int]
    nodes: list[str]
    #: Ranks of each node, where nodes are added with the ranks; 0 where all nodes have some.
    per_node: int = 0
    #: The work grows with the ranks.
    weak: bool = False
    #: Rounds of one launch of each number.
    rounds: int
    #: Time in which the last round is to end; the first is always made [s].
    budget_s: float
    #: Of the random orders.
    seed: int


class ScalingLoss(Record, frozen=True, kw_only=True):
    """Where the time of all ranks went in one launch with the tracer [s]; they add up to the ranks × its run time."""

    ranks: int
    run_s: float
    #: Between calls of MPI.
    computing_s: float
    #: In calls on files.
    files_s: float = 0.0
    #: For other ranks, on a network on which messages take no time.
    waiting_s: float
    #: What messages took beyond that.
    transfer_s: float


class ScalingManifest(RunHead, frozen=True, kw_only=True):
    """Head of a run of several numbers of ranks."""

    plan: ScalingPlan
    #: Of launches with the tracer.
    losses: list[ScalingLoss] = []
    #: Why there are none of a number of ranks.
    untraced: dict[int, str] = {}


class ScalingLaunch(Record, frozen=True, kw_only=True):
    """A launch."""

    ranks: int
    #: From 0.
    round: int
    #: Null where it failed.
    time_s: float | None
    #: Why it failed.
    reason: str = ""


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
    #: Of launches with the tracer.
    losses: list[ScalingLoss] = []
    #: Number of ranks → why its trace tells nothing.
    untraced: dict[int, str] = {}
    #: Rounds of one launch of each number.
    rounds: int
    #: Of the random orders.
    seed: int
    interrupted: bool = False
    #: Directory of the run.
    run: str = ""

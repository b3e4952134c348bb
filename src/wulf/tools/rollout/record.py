"""A change that goes to some nodes first, and then in steps to all: ``wulf settings rollout``."""

from __future__ import annotations

from typing import Literal

from wulf.base.records.base import Estimate, Pair, Record
from wulf.base.records.measured import RunHead
from wulf.base.records.tuned import Values

#: ``kept``: shown to do no harm there, and set. ``had it``: it was as wanted before. ``harmed``, ``cannot tell``:
#: measured with it, and put back. ``refused``: it may not be set there, or the node did not take it. ``silent``: it did
#: not answer. ``other hardware``, ``busy``, ``not reached``: never touched.
NodeState = Literal[
    "kept", "had it", "harmed", "cannot tell", "refused", "silent", "other hardware", "busy", "not reached"
]

RolloutStatus = Literal["complete", "waiting", "halted", "interrupted"]


class RolledFigure(Record, frozen=True, kw_only=True):
    """What a change did to one figure of a node, or of all nodes of a kind."""

    #: Such as ``mpi_pingpong 1 B mean``.
    metric: str
    #: With it ÷ without, of a time: below 1 is faster.
    ratio: Estimate
    #: Evidence (e-value) that it does no harm, and that it does; none of both where only the figure is told.
    harmless: float | None = None
    harmful: float | None = None


class RolledNode(Record, frozen=True, kw_only=True):
    """What became of one node."""

    node: str
    state: NodeState
    #: Why.
    reason: str = ""
    #: Name of the hardware, as `Hardware.name` has it.
    hardware: str = ""
    #: The last step in which it was measured; None where it never was.
    step: int | None = None
    #: The change that set it, as the node's journal names it.
    change: str = ""
    figures: list[RolledFigure] = []
    #: Datagrams that were lost with it and without it, of how many each.
    lost: tuple[int, int, int] | None = None


class Hardware(Record, frozen=True, kw_only=True):
    """Nodes of equal hardware."""

    name: str
    nodes: list[str]
    #: Fact → value, of those in which the kinds of this cluster differ.
    facts: dict[str, str] = {}
    #: Whether the change is tried on it: it was tested on such nodes, or the user wants it.
    tried: bool
    #: Why nothing (more) is set on it; empty where nothing ended it.
    ended: str = ""
    #: What it brought there, over the nodes that were measured.
    figures: list[RolledFigure] = []


class CheckRun(Record, frozen=True, kw_only=True):
    """One run of the site's own command."""

    #: Whether the nodes of the step had the change.
    changed: bool
    #: None where it could not be run.
    passed: bool | None
    #: None where it did not end, or could not be timed.
    run_time_s: float | None
    reason: str = ""


class RolloutStep(Record, frozen=True, kw_only=True):
    """One step: nodes that were given the change together, measured with and without it, and kept or put back."""

    number: int
    nodes: list[str]
    pairs: list[Pair] = []
    #: Rounds in which the four settings of every pair were measured.
    rounds: int = 0
    started_at: str
    duration_s: float = 0.0
    #: ``proven``: what is kept is known, and is about to be set; ``done``: it is set.
    state: Literal["proven", "done", "halted", "interrupted"]
    #: Why the roll-out stopped here; empty where it did not.
    halted: str = ""
    outcomes: list[RolledNode] = []
    checks: list[CheckRun] = []
    notes: list[str] = []


class RolloutPlan(Record, frozen=True, kw_only=True):
    """What is rolled out, and by which rules."""

    #: Knob → value.
    settings: Values
    #: The tuning run that found them; empty where they were given.
    source: str = ""
    #: Nodes of each kind of hardware in the first step; and how many times as many each later step has.
    canary: int
    growth: float
    #: A figure that gets worse by this share counts as harm.
    margin: float
    #: Share of the nodes of one hardware that may have to be put back before nothing more is set on it.
    tolerate: float
    #: Rounds of a step at most.
    rounds: int
    #: Chance at which harm by the margin is kept, and at which a node without harm is called harmed.
    missed: float
    false_alarm: float
    #: Share of datagrams lost that is harm.
    loss: float
    #: The site's own command; empty for none. And the time after which it counts as dead [s].
    check: str = ""
    check_within_s: float = 600.0
    #: Whether nodes of untested hardware have canaries of their own.
    other_hardware: bool = False
    #: What was allowed: to set what another service manages, and to relax the packet filter of an interface that
    #: faces outside.
    take_over: bool = False
    relax: bool = False
    seed: int


class RolloutManifest(RunHead, frozen=True, kw_only=True):
    """Head of a roll-out."""

    plan: RolloutPlan
    nodes: list[str]
    hardware: list[Hardware]
    #: What was settled before the first step: nodes that had it, or may not have it.
    settled: list[RolledNode] = []
    #: Whether Slurm gives the nodes away.
    slurm: bool = False


class Rollout(Record, frozen=True, kw_only=True):
    """The result of ``wulf settings rollout``."""

    schema_version: int
    run_id: str
    #: ``waiting``: some nodes are busy, or there is nobody to measure them with.
    status: RolloutStatus
    #: Why it was halted; empty where it was not.
    reason: str = ""
    plan: RolloutPlan
    hardware: list[Hardware]
    nodes: list[RolledNode]
    steps: list[RolloutStep]
    #: Fact → value of what all harmed nodes have, and none that kept the change; as found before the first step.
    in_common: dict[str, str] = {}
    #: Names of the changes, oldest first: what ``wulf rollback --to`` takes.
    changes: list[str] = []

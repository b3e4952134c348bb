"""A pattern that was performed on a cluster: what it is, and how long it took."""

from __future__ import annotations

from typing import Literal

from wulf.base.records.base import Estimate, Record

#: How the ranks of a program are best drawn.
Layout = Literal["circle", "line", "grid", "star", "servers", "tree", "hypercube"]


class ProgramTimes(Record, frozen=True, kw_only=True):
    """How the ranks of one program spent one launch: of each the median over passes."""

    #: Of the program, from 0 on.
    number: int
    #: Those that follow are of each of these ranks, in this order.
    ranks: list[int]
    #: Within the program's iterations.
    time_ns: list[int]
    #: Of it computing.
    compute_ns: list[int]
    #: Computing that the pattern asks for.
    asked_ns: list[int]

    @property
    def mpi_share(self) -> float:
        """Part of the time in MPI, sending and waiting, as the mean of the ranks."""
        shares = [
            1 - compute / time if time else 0.0
            for time, compute in zip(self.time_ns, self.compute_ns, strict=True)
        ]
        return sum(shares) / len(shares) if shares else 0.0


class EmulatedProgram(Record, frozen=True, kw_only=True):
    """A program of a pattern."""

    name: str
    #: Operation of the run that is its time; empty where that is the time of the whole.
    op: str
    #: Operation of the run that is the time of an iteration.
    iteration_op: str
    ranks: list[int]
    iterations: int
    layout: Layout
    #: Ranks in each direction of a grid.
    dims: list[int] = []
    #: Servers among its ranks, which are the first ones.
    servers: int = 0
    #: Children of a rank of a tree.
    fan_out: int = 0
    #: Its steps in words.
    steps: list[str]


class EmulatedEdge(Record, frozen=True, kw_only=True):
    """What a rank sends to another in one pass."""

    #: Number of the program, from 0 on.
    program: int
    source: int
    destination: int
    messages: int
    bytes: int
    #: A collective carries it: the messages that a library makes of it are others.
    collective: bool


class EmulatedPattern(Record, frozen=True, kw_only=True):
    """A pattern as it is performed; RUN/emulation.json."""

    schema_version: int
    title: str
    what: str
    #: File, or name in the gallery.
    source: str
    #: Text of the pattern.
    text: str
    ranks: int
    #: Passes that do not count, and that count, in each launch.
    warm_ups: int
    passes: int
    #: How computing is done: `work`, `clock` or `none`.
    compute: str
    #: How messages of two ranks go: `messages` of MPI, `memory` that ranks of a node share, or a `file`.
    method: str = "messages"
    #: Where that file is; empty for the other methods.
    directory: str = ""
    #: What arrives is checked in the first pass.
    checked: bool
    #: Of a pass on a network without delay [s].
    least_s: float
    #: In one pass, those of collectives not among them.
    messages: int
    bytes: int
    programs: list[EmulatedProgram]
    #: None where there are too many to be drawn.
    edges: list[EmulatedEdge] | None


class RankTime(Record, frozen=True, kw_only=True):
    """How one rank spends a pass, medians over launches."""

    rank: int
    #: Within the program's iterations [s], and of it computing [s].
    time_s: float
    compute_s: float


class EmulatedTimes(Record, frozen=True, kw_only=True):
    """What was measured of one program."""

    name: str
    ranks: int
    iterations: int
    #: From the common begin to its end on the last rank [s].
    time: Estimate
    #: Of an iteration, from the end of the last one to its own, each on the last rank [s].
    iteration: Estimate
    #: Part of the time in MPI, sending and waiting, as the mean of its ranks.
    mpi_share: Estimate
    by_rank: list[RankTime]
    #: Computing as it took ÷ as it was asked for; null where nothing was computed.
    compute_ratio: float | None


class PredictedBeside(Record, frozen=True, kw_only=True):
    """What the model says of the same pattern on the same nodes."""

    #: Run that the network was calibrated with.
    run: str
    #: Null where the pattern cannot be predicted.
    time: Estimate | None
    #: Whether the measured interval and the predicted one have something in common.
    inside: bool | None
    #: Measured ÷ predicted.
    ratio: float | None
    #: Why it cannot be predicted; empty where it can.
    reason: str = ""


class Emulated(Record, frozen=True, kw_only=True):
    """What performing a pattern gave."""

    schema_version: int
    run: str
    title: str
    ranks: int
    nodes: int
    #: From the common begin to the end of the last rank [s].
    time: Estimate
    programs: list[EmulatedTimes]
    #: Messages that were not what was sent, of all launches.
    wrong: int
    predicted: PredictedBeside | None = None

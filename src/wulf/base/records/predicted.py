"""What a traced program would take on other networks, and what that is worth."""

from __future__ import annotations

from typing import Literal

from wulf.base.must_see import MUST_SEE
from wulf.base.records.base import Estimate, Record
from wulf.base.records.contended import Contention

#: Where the model is off by more than so many times it explains little of the program.
NEAR = 1.5


class PathShares(Record, frozen=True, kw_only=True):
    """What the longest path of a program goes through; the parts add up to the whole time."""

    #: Computing, adding up included [s].
    compute_s: float
    #: Messages on their way [s].
    latency_s: float
    #: Messages that take the network interface [s].
    bandwidth_s: float
    #: The CPU's time to send and to receive [s].
    overhead_s: float
    #: How many latencies between nodes follow each other: λ, by so much the run time grows with the latency.
    hops: float


class IntervalPart(Record, frozen=True, kw_only=True):
    """What an interval is made of: what comes from one source."""

    #: In words.
    what: str
    #: Of the variance of the logarithm of the run time; 0.4 for 40 %.
    share: float
    #: Half the interval's width ÷ its value, if this were known exactly.
    without: float
    #: What would narrow it, in words.
    narrower: str


class Predicted(Record, frozen=True, kw_only=True):
    """The program on one network."""

    #: As it was asked for; ``as it is`` for the calibrated network.
    name: str
    #: In a few words.
    title: str
    #: Run time of a usual launch: the median of many [s].
    time: Estimate
    #: What the interval of a usual launch is made of, most first; nothing where it is narrow, of few samples, or event
    #: by event. What it leaves is less than a tenth each, or of several together.
    made_of: list[IntervalPart] = []
    #: The same, with an interval in which one launch lies; null where one trace does not say how launches differ. Of
    #: the calibrated network, launches differ as those of its calibration did [s].
    launch: Estimate | None = None
    #: Run time ÷ that of the program as it was traced.
    change: Estimate
    #: Energy of a launch, with the watts of a node that were given: those times nodes and run time [J]; null without.
    energy: Estimate | None = None
    #: What the model alone says, with the likely value of every parameter [s].
    model_s: float
    path: PathShares
    #: Where the network's parameters are from; empty for changes of the calibrated one.
    source: str = ""
    #: What it means, in words.
    verdict: str


class CurveLine(Record, frozen=True, kw_only=True):
    """A straight piece of run time against latency between nodes: from its place on to the next one's."""

    #: Where it begins [s].
    latency_s: float
    #: The model's time there [s].
    time_s: float
    #: How the time grows with the latency.
    hops: float


class Tolerance(Record, frozen=True, kw_only=True):
    """Up to which latency the program takes no more than a given part longer than as it is."""

    #: 0.01 for 1 %.
    slower: float
    #: Latency between nodes [s]; null where it is more than `beyond_s`.
    latency: Estimate | None
    #: Largest latency that was looked at [s].
    beyond_s: float


class BandwidthPoint(Record, frozen=True, kw_only=True):
    """The program on the calibrated network with another bandwidth, all else as it is."""

    #: Bandwidth ÷ that of the calibrated network.
    factor: float
    #: Of large messages [B/s].
    bandwidth: float
    #: The model's time [s].
    time_s: float


class BandwidthNeed(Record, frozen=True, kw_only=True):
    """Down to which bandwidth the program takes no more than a given part longer than as it is."""

    #: 0.01 for 1 %.
    slower: float
    #: Of large messages [B/s]; null where it is less than `below`.
    bandwidth: Estimate | None
    #: Smallest bandwidth that was looked at [B/s].
    below: float


class HopSource(Record, frozen=True, kw_only=True):
    """Latencies of the longest path that are alike."""

    #: The call, as in MPI without its prefix.
    call: str
    #: Ranks that the messages come from: those with most.
    ranks: list[int]
    size_bytes: int
    #: How many of the path's latencies.
    hops: int
    #: Between two nodes; else within one, where no network is.
    between: bool = True


class TimelineRow(Record, frozen=True, kw_only=True):
    """Ranks that follow each other, cell by cell of a timeline; shares of a cell, the mean of the ranks.

    A rank that has ended has no share.
    """

    first_rank: int
    last_rank: int
    #: Computing.
    computing: list[float]
    #: The CPU's work for messages.
    messages: list[float]
    waiting: list[float]


class Timeline(Record, frozen=True, kw_only=True):
    """Where the time of the ranks goes on one network, by the model."""

    #: Name of the network.
    network: str
    #: `whole` run, or from the `middle` of rank 0's calls on.
    part: Literal["whole", "middle"]
    #: Where it begins [s].
    from_s: float
    #: Its length, of all cells together [s].
    for_s: float
    rows: list[TimelineRow]


class Floor(Record, frozen=True, kw_only=True):
    """What no program with these messages and computations takes less than on one network, by the model's rules."""

    #: Name of the network.
    network: str
    #: Messages that take their size at the bandwidth, and nothing else any time [s].
    bandwidth_s: float
    #: Computing, with messages that take no time anywhere [s].
    computing_s: float
    #: The greater of both, in times of the program's own where that was shorter, with the interval that bandwidth and
    #: computing give it [s]; the interval of no run time (but of a single launch) begins below its lower end.
    least: Estimate | None = None


class Checked(Record, frozen=True, kw_only=True):
    """The program once more, on the network as it is now."""

    command: str
    #: Prediction that it is held against.
    network: str
    #: Median run time of these launches [s].
    time: Estimate
    #: Whether it lies within the interval of the prediction.
    inside: bool
    #: Measured ÷ predicted.
    ratio: float
    #: A prediction that is off by so much would lie inside, too, as a share; null in predictions of before.
    visible: float | None = None

    @property
    def untold(self) -> bool:
        """Whether it is inside, and a prediction that is off by what matters would be, too."""
        return self.inside and self.visible is not None and not self.visible <= MUST_SEE[0]


class Prediction(Record, frozen=True, kw_only=True):
    """A traced program on its own network and on others."""

    schema_version: int
    #: File of the trace.
    trace: str
    #: What was run; empty where the trace does not say.
    command: str
    ranks: int
    #: Nodes that the ranks are on.
    nodes: int
    #: Run that the network was calibrated with.
    run: str
    #: Of that network, as is likely: latency between nodes [s], and bandwidth of large messages [B/s], null where more
    #: bytes take no more time.
    latency_s: float
    bandwidth: float | None
    samples: int
    seed: int
    #: Operations, collectives as their messages.
    operations: int
    #: The program's own run time, the median of its traces [s]; null where they do not say.
    own_s: float | None
    #: Traces of the program, each of a launch.
    traces: int = 1
    #: What the model says of the same network ÷ the program's own run time; null where that is not known.
    gap: Estimate | None
    base: Predicted
    scenarios: list[Predicted]
    #: Messages between nodes that take no time at all: no network brings more than that.
    bound: Predicted
    #: What each network cannot take less than, the one as it is first; no prediction is below. None of old files.
    floors: list[Floor] = []
    #: Question that is not answered → why.
    refused: dict[str, str] = {}
    #: ``latency`` or ``bandwidth`` that the calibration does not tell → why: its likely value is no finding.
    not_told: dict[str, str] = {}
    curve: list[CurveLine]
    tolerance: list[Tolerance]
    #: The run time by the bandwidth, ascending.
    bandwidth_curve: list[BandwidthPoint]
    bandwidth_need: list[BandwidthNeed]
    #: Where the λ hops of the calibrated network come from, most first.
    hops: list[HopSource]
    #: Largest messages that only a buffer lets through, how many: on a network with a smaller eager limit the
    #: program would wait for ever.
    buffered: int = 0
    largest_buffered_bytes: int = 0
    #: Receives from anybody: their order is kept as it was traced.
    wildcards: int = 0
    #: Time in calls on files, the mean of the ranks [s]: it is kept as it was traced.
    files_s: float = 0.0
    #: Of the network as it is and of another one; none where no page was asked for.
    timelines: list[Timeline] = []
    checked: Checked | None = None
    #: What run times are by: ``static``, messages in their recorded order; ``events``, event by event.
    engine: str = "static"
    #: What event by event comes of it; null where that was not looked at.
    contention: Contention | None = None
    #: In plain words, most important first.
    conclusion: list[str]
    #: What must be known.
    notes: list[str]

    @property
    def explains(self) -> bool:
        """Whether the model's time on the network as it is is near that of the program, where that is known."""
        return self.gap is None or 1 / NEAR < self.gap.value < NEAR

    @property
    def untold(self) -> bool:
        """Whether of a network that was asked about, or of the program as it is, nothing can be told."""
        return not self.explains or any(one.verdict == "cannot be told" for one in self.scenarios)

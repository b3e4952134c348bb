"""What a traced program would take on other networks, and what that is worth."""

from __future__ import annotations

from wulf.records.base import Estimate, Record


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


class Predicted(Record, frozen=True, kw_only=True):
    """The program on one network."""

    #: As it was asked for; ``as it is`` for the calibrated network.
    name: str
    #: In a few words.
    title: str
    #: Run time [s].
    time: Estimate
    #: Run time ÷ that of the program as it was traced.
    change: Estimate
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


class HopSource(Record, frozen=True, kw_only=True):
    """Latencies of the longest path that are alike."""

    #: The call, as in MPI without its prefix.
    call: str
    #: Ranks that the messages come from: those with most.
    ranks: list[int]
    size_bytes: int
    #: How many of the path's latencies.
    hops: int


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
    samples: int
    seed: int
    #: Operations, collectives as their messages.
    operations: int
    #: The program's own run time [s]; null where the trace does not say.
    own_s: float | None
    #: What the model says of the same network ÷ the program's own run time; null where that is not known.
    gap: Estimate | None
    base: Predicted
    scenarios: list[Predicted]
    curve: list[CurveLine]
    tolerance: list[Tolerance]
    #: Where the λ hops of the calibrated network come from, most first.
    hops: list[HopSource]
    #: Largest messages that only a buffer lets through, how many: on a network with a smaller eager limit the
    #: program would wait for ever.
    buffered: int = 0
    largest_buffered_bytes: int = 0
    checked: Checked | None = None
    #: In plain words, most important first.
    conclusion: list[str]
    #: What must be known.
    notes: list[str]

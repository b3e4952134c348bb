"""What is asked of a program, and all that is known of it before its trace is replayed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from wulf.base.errors import UsageError
from wulf.base.store import Run
from wulf.base.text import count
from wulf.base.trace.layout import Flag, Kind
from wulf.base.trace.messages import Members, sent
from wulf.base.trace.reader import Trace, read_verified
from wulf.base.trace.summary import file_calls, overlaps
from wulf.base.units import format_bytes
from wulf.node.replay import contending, program_traces, sharing
from wulf.node.replay.calibrated import Calibrated, OtherRuns, finder
from wulf.node.replay.fields import Engine
from wulf.node.replay.replaying import Work
from wulf.stats.prediction import (
    curves,
    judge,
    made_of,
    operation_times,
    scenario,
    setup_costs,
    uncertainty,
)
from wulf.stats.prediction.draws import Sample
from wulf.stats.prediction.launches import Launches
from wulf.stats.prediction.network import Network
from wulf.stats.prediction.scenario import Scenario

#: The curve goes up to so many times the latency now, and this at least [s].
FAR, FAR_S = 50.0, 1e-3
#: Messages beyond the calibrated sizes are worth a word from this part of the bytes on.
LARGER_SHARE = 0.1
#: Of a timeline: rows and cells at most, and calls of a rank that are looked at closely.
ROWS, CELLS, CLOSE_CALLS = 16, 200, 40

_NOT_STATIC = (
    "what programs share, and what is lost in buffers, is not known with --engine static: leave it out"
)


def _no_run(name: str) -> Run:
    raise UsageError(f"@{name}: runs are not looked for here")


class PredictRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of which program."""

    #: A trace, or a pattern (``.toml``).
    source: Path
    #: More traces of the same program, each of a launch; that of the median run time is replayed.
    again: list[Path] = []
    run: Run
    #: None: nothing but the network as it is.
    what_if: str | None
    #: Files or directories with networks of the user's own.
    own: list[Path] = []
    #: Ranks of a pattern that leaves their number open; 0: as it says.
    ranks: int = 0
    #: In blocks; 0: where the trace says that they were.
    ranks_per_node: int = 0
    #: On which node each rank is; empty: as `ranks_per_node` says.
    placement: list[int] = []
    rules: Path | None = None
    #: Finds a run that ``@RUN`` names.
    find_run: Callable[[str], Run] = _no_run
    samples: int = 200
    seed: int = 1
    #: One of `Engine`: what the run times are by. With ``both`` they are by messages in their order, and what event by
    #: event comes of it stands beside it; with ``auto`` that is looked at where it may matter and does not take long,
    #: and is what the run times are by where it does matter.
    engine: Engine = "static"
    #: Traces or patterns of programs that run at the same time on the same nodes.
    beside: list[Path] = []
    #: File with the uplinks of switches, as Slurm has it.
    topology: Path | None = None
    #: Whether a page shows where the time of the ranks goes, and on which network beside that as it is.
    timelines: bool = False
    timeline: str = ""
    #: Where the trace of a pattern is made; None where the system makes such files.
    scratch: Path | None = None

    @property
    def is_shared(self) -> bool:
        """Whether something is asked for that only a replay event by event knows."""
        return bool(self.beside or self.topology)


@dataclass(frozen=True)
class Question:
    """All that is known of a trace before it is replayed."""

    request: PredictRequest
    trace: Trace
    nodes: list[int]
    #: The last one is the bound.
    scenarios: list[Scenario]
    base: Network
    sampled: list[Network]
    draws: list[Sample]
    asked: judge.Asked
    spread: float
    own: Launches | None
    wildcards: int
    known: list[str]
    #: Calls on files with the time of each, the mean of the ranks [s].
    files: dict[str, float]
    #: Ranks of which threads called MPI at the same time → part of the run that such calls took, all together.
    overlaps: dict[int, float]
    #: Question that is not answered → why.
    refused: dict[str, str]
    #: Why what is shared, or who comes first, may matter; nothing where neither can.
    may_matter: list[str]
    #: Where it is, and what runs beside it.
    shared: contending.Shared
    #: What the run took that the network as it is is of.
    calibration: made_of.Calibration
    #: Networks with buffers that may be full: 0 is the one as it is, then scenarios.
    buffered: list[int]

    @property
    def is_shared(self) -> bool:
        """Whether something is asked for that only a replay event by event knows."""
        return self.request.is_shared or bool(self.buffered)

    @property
    def by_events(self) -> bool:
        """Whether the run times are by a replay event by event."""
        return self.request.engine == "events" or (self.request.engine == "auto" and self.is_shared)

    @property
    def far_ns(self) -> float:
        """Up to which latency the curve goes [ns]."""
        return max(FAR * self.base.between.latency_ns, FAR_S * 1e9)

    def work(self) -> Work:
        """Return what is to be replayed."""
        timelines = ""
        if self.request.timelines:
            # Not of the bound, which is no network.
            timelines = f"{self.asked.columns - 1}:{ROWS}:{CELLS}:{_closely_ns(self.trace):.0f}"
        return Work(
            trace=self.trace.path,
            networks=self.asked.networks,
            nodes=self.nodes,
            rules=self.request.rules,
            curve_ns=self.far_ns,
            timelines=timelines,
            together=self.asked.columns,
        )


def asked_of(request: PredictRequest, path: Path, own: Launches | None, others: Sequence[Path]) -> Question:
    """Return all that is known of a trace before it is replayed.

    Parameters
    ----------
    path
        The trace, also where the request has a pattern.
    own
        How launches of the program differ, where several traces tell it.
    others
        Traces of what runs beside it.

    Raises
    ------
    TraceError, UsageError
        As `predicting.predict`.
    """
    if request.engine == "static" and request.is_shared:
        raise UsageError(_NOT_STATIC)
    trace, *beside = (read_verified(one) for one in (path, *others))
    (nodes, *nodes_beside), names = placed([trace, *beside], request.ranks_per_node, request.placement)
    everywhere = [node for one in (nodes, *nodes_beside) for node in one]
    shares_nodes = any(len(set(one)) < len(one) for one in (nodes, *nodes_beside))
    calibrated = Calibrated(request.run, shares_nodes=shares_nodes)
    base = calibrated.network()
    runs = OtherRuns(request.find_run, shares_nodes=calibrated.within is not None)
    told, refused = answerable(_scenarios(request, runs), base)
    scenarios = [*told, scenario.bound()]
    buffered = contending.buffered([base, *(one.network(base) for one in told)])
    if request.engine == "static" and buffered:
        raise UsageError(_NOT_STATIC)
    records = [stream.slots[stream.starts()] for stream in trace.streams]
    spread = uncertainty.compute_spread(records)
    draws = [Sample(request.seed, number) for number in range(request.samples)]
    sampled, launches = calibrated.sampled(draws, spread)
    return Question(
        request=request,
        trace=trace,
        nodes=nodes,
        scenarios=scenarios,
        base=base,
        sampled=sampled,
        draws=draws,
        asked=judge.asked(base, sampled, scenarios, draws, curves.with_bandwidths(base), launches),
        spread=spread,
        own=own or program_traces.alone(trace),
        wildcards=sum(int(np.count_nonzero(_from_anybody(one))) for one in records),
        known=[
            *_known(request, calibrated, base, trace, records),
            *runs.notes,
            *_longer_ways(base, told),
        ],
        files=file_calls(trace),
        overlaps=overlaps(trace),
        refused=refused,
        may_matter=sharing.reasons(trace, nodes) if request.engine == "auto" else [],
        shared=_shared(request, path, others, everywhere, trace.ranks, names),
        calibration=calibrated.cost,
        buffered=buffered,
    )


def _shared(
    request: PredictRequest,
    path: Path,
    others: Sequence[Path],
    nodes: Sequence[int],
    ranks: int,
    names: Sequence[str],
) -> contending.Shared:
    """Return what runs on which nodes at the same time."""
    return contending.Shared(
        trace=path,
        nodes=nodes,
        ranks=ranks,
        names=names,
        rules=request.rules,
        topology=request.topology,
        beside=others,
        others=[source.name for source in request.beside],
    )


def _known(
    request: PredictRequest,
    calibrated: Calibrated,
    base: Network,
    trace: Trace,
    records: Sequence[NDArray[np.void]],
) -> list[str]:
    """Return what must be known of the calibration and of where the ranks are, in words."""
    return [
        *calibrated.notes,
        *base.between.not_told.values(),
        *_not_measured(calibrated.between, records),
        *_larger_than_measured(calibrated.between, trace, records),
        *_of_nodes(request),
    ]


def _longer_ways(base: Network, told: Sequence[Scenario]) -> list[str]:
    """Say what a longer latency is taken for."""
    longer = [
        one.name
        for one in told
        if "latency=" in one.name
        and not one.of
        and one.network(base).between.latency_ns > base.between.latency_ns
    ]
    if not longer:
        return []
    return [
        f"{', '.join(longer)}: only the way is longer, as through more cable or another switch; where software "
        "holds messages back it takes CPU time, too, so calibrate such a network and ask with @RUN"
    ]


def _not_measured(between: operation_times.Way, records: Sequence[NDArray[np.void]]) -> list[str]:
    """Say what a calibration that was made before there were operations for it does not tell of this program."""

    def has(kinds: Sequence[Kind]) -> bool:
        return any(np.any(np.isin(one["kind"], kinds)) for one in records)

    known = between.points.keys()
    none, usual = "it is counted as no time", "it is counted as another message"
    lacking = [
        (
            f"what making a communicator takes each rank beside its messages ({setup_costs.DUPLICATE}): {none}",
            has([Kind.MAKE_COMMUNICATOR]) and not {setup_costs.DUPLICATE, setup_costs.SPLIT} & known,
        ),
        (
            f"what the acknowledgement of a synchronous send takes ({operation_times.ANSWERED}): {usual}",
            has([Kind.SSEND, Kind.ISSEND, Kind.SSEND_INIT])
            and not {operation_times.ANSWERED, operation_times.ANSWERED_CALL} <= known,
        ),
        (
            f"for how long a rank's first message waits for its connection ({setup_costs.CONNECT}): {none}",
            not between.first_messages,
        ),
    ]
    return [
        f"{between.origin} does not tell {what}; {operation_times.MEASURE}"
        for what, lacks in lacking
        if lacks
    ]


def _larger_than_measured(
    between: operation_times.Way, trace: Trace, records: Sequence[NDArray[np.void]]
) -> list[str]:
    """Say how much of what is sent is in messages larger than any that was measured."""
    largest = max(between.points[operation_times.ROUND_TRIP].sizes)
    # To whom they go does not matter, so communicators need not be read.
    anybody: Members = defaultdict(lambda: np.arange(trace.ranks))
    sizes = [messages.bytes.astype(float) for one in records for messages in sent(one, anybody)]
    share = sum(one[one > largest].sum() for one in sizes) / max(sum(one.sum() for one in sizes), 1.0)
    if share < LARGER_SHARE:
        return []
    return [
        f"{100 * share:.0f} % of the bytes of its sends are in messages larger than {format_bytes(largest)}, the "
        f"largest that {between.origin} measured: they are taken to go on as smaller ones do, and how far two that "
        "meet get in each other's way is not known; measure them, too (wulf measure --plan)"
    ]


def _of_nodes(request: PredictRequest) -> list[str]:
    """Say where the ranks of a pattern are, which says nothing of nodes."""
    if not program_traces.is_pattern(request.source) or request.placement or request.ranks_per_node:
        return []
    return ["A pattern does not say which ranks share a node: each has one of its own (--ranks-per-node)."]


def _from_anybody(records: NDArray[np.void]) -> NDArray[np.bool_]:
    wild: NDArray[np.bool_] = ((records["flags"] & Flag.WILD) != 0) & (records["kind"] != Kind.PROBE)
    return wild


def _closely_ns(trace: Trace) -> float:
    """Return how long a rank takes for so many calls that a picture shows each, a round number [ns]."""
    calls = sum(len(stream.starts()) for stream in trace.streams) / trace.ranks
    longest = (program_traces.own_time(trace) or 0.0) * 1e9
    if longest == 0:
        longest = float(max(_recorded_ns(stream.slots[stream.starts()]) for stream in trace.streams))
    rough = max(CLOSE_CALLS * longest / max(calls, 1.0), 1e3)
    decade = 10.0 ** math.floor(math.log10(rough))
    return min((factor * decade for factor in (1, 2, 5, 10)), key=lambda value: abs(value - rough))


def _recorded_ns(records: NDArray[np.void]) -> int:
    return int(records["compute_ns"].sum(dtype=np.uint64) + records["call_ns"].sum(dtype=np.uint64))


def _scenarios(request: PredictRequest, others: OtherRuns) -> list[Scenario]:
    if request.what_if is None:
        return []
    return scenario.parse(request.what_if, finder(request.own), others)


def answerable(asked: Sequence[Scenario], base: Network) -> tuple[list[Scenario], dict[str, str]]:
    """Return what the calibration tells enough for, and of the rest why it does not.

    Raises
    ------
    UsageError
        Nothing that was asked can be answered.
    """
    told, refused = [], {}
    for one in asked:
        try:
            one.network(base)
        except scenario.NotToldError as reason:
            refused[one.name] = str(reason)
        else:
            told.append(one)
    if refused and not told:
        raise UsageError(next(iter(refused.values())))
    return told, refused


def placed(
    traces: Sequence[Trace], ranks_per_node: int, placement: Sequence[int]
) -> tuple[list[list[int]], list[str]]:
    """Return on which node each rank of each program is, and the names of the nodes.

    By the traces, where nothing is said: ranks that were on the same host share a node. A node that is only counted is
    called by its number.

    Raises
    ------
    UsageError
        The placement is that of another number of ranks.
    """
    ranks = [one.ranks for one in traces]
    if placement and len(placement) != sum(ranks):
        whose = "the trace" if len(traces) == 1 else "the traces have"
        raise UsageError(f"the placement has {count(len(placement), 'rank')}, {whose} {sum(ranks)}")
    if placement or ranks_per_node:
        numbers = iter(placement)
        nodes = [
            [next(numbers) if placement else rank // ranks_per_node for rank in range(count)]
            for count in ranks
        ]
        return nodes, [str(node) for node in range(1 + max(max(one) for one in nodes))]
    hosts = [[stream.host or f"\0{stream.rank}" for stream in one.streams] for one in traces]
    known = {host: number for number, host in enumerate(dict.fromkeys(host for one in hosts for host in one))}
    return [[known[host] for host in one] for one in hosts], [host.strip("\0") for host in known]

"""From a trace, a calibrated run and networks to a prediction."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from wulf.base import networks
from wulf.base.contracts import Say
from wulf.base.errors import UsageError
from wulf.base.records import (
    SCHEMA_VERSION,
    Analysis,
    CellEstimate,
    Estimate,
    Floor,
    Predicted,
    Prediction,
    Timeline,
)
from wulf.base.records.contended import Contended, Contention
from wulf.base.store import Run
from wulf.base.trace.layout import Flag, Kind
from wulf.base.trace.reader import Trace, read_verified
from wulf.base.trace.summary import command_of, file_calls
from wulf.node.measuring.analysis import analyze, measuring
from wulf.node.replay import contending, program_traces, replaying, sharing
from wulf.node.replay.fields import Engine
from wulf.node.replay.replaying import Replayer, Work
from wulf.stats import estimate
from wulf.stats.prediction import (
    calibrate,
    contended,
    curves,
    judge,
    network,
    replayed,
    scenario,
    setup_costs,
    uncertainty,
    words,
)
from wulf.stats.prediction.contended import Compared
from wulf.stats.prediction.draws import Draw, Sample
from wulf.stats.prediction.launches import Launches
from wulf.stats.prediction.network import Network
from wulf.stats.prediction.replayed import Replayed
from wulf.stats.prediction.scenario import Scenario

#: The curve goes up to so many times the latency now, and this at least [s].
FAR, FAR_S = 50.0, 1e-3
#: Of a timeline: rows and cells at most, and calls of a rank that are looked at closely.
ROWS, CELLS, CLOSE_CALLS = 16, 200, 40


def _no_run(name: str) -> Run:
    raise UsageError(f"@{name}: runs are not looked for here")


#: What has a verdict.
_Told = TypeVar("_Told", Predicted, Contended)


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


class Calibrated:
    """The network that a run measured.

    Parameters
    ----------
    shares_nodes
        Whether ranks share a node, so that what is within nodes must be known.

    Raises
    ------
    UsageError
        The run lacks what is needed; says how it is measured.
    """

    def __init__(self, run: Run, *, shares_nodes: bool) -> None:
        found: Analysis = run.analysis() or analyze(run)
        known = (_with_means(found.cells, run), run.manifest.operations, found.parameters, str(run.path))
        self.between = calibrate.between_nodes(*known)
        self.within = calibrate.within_node(*known) if shares_nodes else None

    @property
    def notes(self) -> list[str]:
        """What of it is not known."""
        return [note for way in (self.between, self.within) if way is not None for note in way.notes]

    @property
    def tells_launches(self) -> bool:
        """Whether it says how its launches differ."""
        return all(way.tells_launches for way in (self.between, self.within) if way is not None)

    def network(self, draw: Draw | None = None, compute: float = 1.0, *, one_launch: bool = False) -> Network:
        """Return what was measured, or with a draw what it may have been, or what one launch finds."""
        return calibrate.network(self.between, self.within, draw, compute=compute, one_launch=one_launch)


def _with_means(cells: Sequence[CellEstimate], run: Run) -> list[CellEstimate]:
    """Return cells with their mean times: a program waits for all of its messages, not for the usual one.

    Trains keep their medians: what they tell is a link's rate, of which a rank that was held up is no part. So does a
    run without its samples.
    """
    trains = {one.name for one in run.manifest.operations if (one.asked or one.name).startswith("mpi_burst")}
    evidence = measuring(run.results)
    samples = [sample for result in evidence for sample in result.samples]
    launches = [result.launch for result in evidence]
    means = estimate.means(samples, launches, run.manifest.plan, run.manifest.operations)
    return [
        one if one.cell.op in trains else msgspec.structs.replace(one, time=means.get(one.cell, one.time))
        for one in cells
    ]


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
    #: Question that is not answered → why.
    refused: dict[str, str]
    #: Why what is shared, or who comes first, may matter; nothing where neither can.
    may_matter: list[str]
    #: Where it is, and what runs beside it.
    shared: contending.Shared
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


@dataclass(frozen=True)
class Evaluated:
    """A trace on the calibrated network and on others, with all samples."""

    question: Question
    figures: judge.Figures
    found: Replayed
    #: What event by event comes of it; None where that was not looked at.
    compared: Compared | None = None

    def likely(self, scenario: int) -> float:
        """Run time on a scenario's network ÷ that on the network as it is, with likely parameters."""
        return self.figures.likely(scenario + 1)

    def changes(self, scenario: int) -> NDArray[np.float64]:
        """Return the same of every sample."""
        return self.figures.changes(scenario + 1)

    def notes(self) -> list[str]:
        """Return what must be known of the figures."""
        plan, question = self.found.plan, self.question
        fit = self.figures.fit if self.figures.own_s else None
        buffered = (plan.buffered, plan.largest_buffered_bytes)
        unseen = question.request.engine == "auto" and self.compared is None
        doubt = _UNSEEN.format("; ".join(question.may_matter)) if question.may_matter else _ALONE
        return [
            *words.notes(fit, question.spread, question.own, buffered, question.wildcards),
            *([doubt] if unseen else []),
            *question.known,
            *words.files(question.files, self.figures.own_s),
            "Adding up in reductions is counted as taking no time: the calibration does not measure it.",
        ]


_UNSEEN = (
    "Messages are in their recorded order, and it may matter what is shared and who comes first ({}): this trace is so "
    "large that a replay event by event takes minutes; --engine both makes it."
)
_NOT_STATIC = (
    "what programs share, and what is lost in buffers, is not known with --engine static: leave it out"
)
_ALONE = (
    "No two ranks share an interface, no node gets messages of several, and nobody takes whoever comes first: messages "
    "in their recorded order are all there is to know."
)


def evaluate(
    requests: Sequence[PredictRequest], say: Say, replays: Replayer = replaying.here
) -> list[Evaluated]:
    """Replay traces on all networks that are asked about, likely ones and samples.

    Parameters
    ----------
    replays
        Who does it, and where.

    Raises
    ------
    TraceError, UsageError
        As `predict`.
    """
    with ExitStack() as stack:

        def opened(source: Path, request: PredictRequest, ranks: int = 0) -> Path:
            return stack.enter_context(program_traces.opened(source, ranks, request.scratch))

        questions = []
        for one in requests:
            source, own = program_traces.usual(one.source, one.again)
            beside = [opened(other, one) for other in one.beside]
            questions.append(_question(one, opened(source, one, one.ranks), own, beside))
        found = replays([one.work() for one in questions], say)
        return [_evaluated(question, one, say) for question, one in zip(questions, found, strict=True)]


def _evaluated(question: Question, found: Replayed, say: Say) -> Evaluated:
    figures = judge.figures(found, question.asked, question.own, question.draws)
    return Evaluated(question, figures, found, _compared(question, figures, found.plan.operations, say))


def _question(request: PredictRequest, path: Path, own: Launches | None, others: Sequence[Path]) -> Question:
    if request.engine == "static" and request.is_shared:
        raise UsageError(_NOT_STATIC)
    trace, *beside = (read_verified(one) for one in (path, *others))
    (nodes, *nodes_beside), names = placed([trace, *beside], request.ranks_per_node, request.placement)
    shares_nodes = any(len(set(one)) < len(one) for one in (nodes, *nodes_beside))
    calibrated = Calibrated(request.run, shares_nodes=shares_nodes)
    base = calibrated.network()
    told, refused = answerable(_scenarios(request, calibrated), base)
    scenarios = [*told, scenario.bound()]
    buffered = contending.buffered([base, *(one.network(base) for one in told)])
    if request.engine == "static" and buffered:
        raise UsageError(_NOT_STATIC)
    records = [stream.slots[stream.starts()] for stream in trace.streams]
    spread = uncertainty.compute_spread(records)
    draws = [Sample(request.seed, number) for number in range(request.samples)]
    computes = [max(0.0, 1 + spread * draw.of("compute")) for draw in draws]
    sampled = [calibrated.network(draw, compute) for draw, compute in zip(draws, computes, strict=True)]
    launches = [
        calibrated.network(draw, compute, one_launch=True)
        for draw, compute in zip(draws, computes, strict=True)
        if calibrated.tells_launches
    ]
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
            *calibrated.notes,
            *base.between.not_told.values(),
            *_not_measured(calibrated.between, records),
            *_of_nodes(request),
        ],
        files=file_calls(trace),
        refused=refused,
        may_matter=sharing.reasons(trace, nodes) if request.engine == "auto" else [],
        shared=contending.Shared(
            trace=path,
            nodes=[node for one in (nodes, *nodes_beside) for node in one],
            ranks=trace.ranks,
            names=names,
            rules=request.rules,
            topology=request.topology,
            beside=others,
            others=[source.name for source in request.beside],
        ),
        buffered=buffered,
    )


def _not_measured(between: calibrate.Way, records: Sequence[NDArray[np.void]]) -> list[str]:
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
            f"what the acknowledgement of a synchronous send takes ({calibrate.ANSWERED}): {usual}",
            has([Kind.SSEND, Kind.ISSEND, Kind.SSEND_INIT])
            and not {calibrate.ANSWERED, calibrate.ANSWERED_CALL} <= known,
        ),
        (
            f"for how long a rank's first message waits for its connection ({setup_costs.CONNECT}): {none}",
            not between.first_messages,
        ),
    ]
    return [f"{between.origin} does not tell {what}; {calibrate.MEASURE}" for what, lacks in lacking if lacks]


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


def _compared(question: Question, figures: judge.Figures, operations: int, say: Say) -> Compared | None:
    """Replay event by event, where that is asked for or does not take long."""
    request, asked = question.request, question.asked
    wanted = request.engine in ("events", "both") or (
        request.engine == "auto"
        and (
            question.is_shared
            or (bool(question.may_matter) and contended.is_affordable(operations, asked.columns))
        )
    )
    if not wanted:
        return None
    samples = contended.samples_for(operations, asked.columns, request.samples)
    alone, beside = contending.contend(question.shared, asked, samples, request.seed, say)
    # Not of the bound, which is no network.
    names = [judge.AS_IT_IS, *(one.name for one in question.scenarios[:-1])]
    return Compared(figures, alone, beside, names, question.shared.others, question.buffered)


def _scenarios(request: PredictRequest, calibrated: Calibrated) -> list[Scenario]:
    if request.what_if is None:
        return []
    others = other_runs(request.find_run, shares_nodes=calibrated.within is not None)
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


def as_it_is(request: PredictRequest, say: Say) -> Estimate:
    """Return what the model says of a program on the network as it is [s]; raises as `predict`."""
    (of,) = evaluate([request], say)
    return judge.as_it_is(of.figures, "").time


def predict(request: PredictRequest, say: Say) -> Prediction:
    """Return what a program takes on the network of a run, and on others.

    Raises
    ------
    TraceError
        The trace cannot be replayed soundly; says why.
    UsageError
        The run lacks measurements, a network is not known, or ranks and nodes do not fit.
    """
    return predict_all([request], say)[0]


def predict_all(
    requests: Sequence[PredictRequest], say: Say, replays: Replayer = replaying.here
) -> list[Prediction]:
    """Return the same of several traces; raises as `predict`."""
    return [_prediction(one) for one in evaluate(requests, say, replays)]


def _prediction(of: Evaluated) -> Prediction:
    question, figures, plan = of.question, of.figures, of.found.plan
    request, base = question.request, question.base
    run = request.run.manifest.id
    as_it_is = judge.as_it_is(figures, f"measured: {run}")
    *predicted, bound = [judge.on(one, place, figures) for place, one in enumerate(question.scenarios, 1)]
    contention = (
        contended.contention(of.compared, str(request.topology or "")) if of.compared is not None else None
    )
    by_events = _leads(question, contention)
    if of.compared is not None and contention is not None and by_events:
        as_it_is, predicted = contended.leading(of.compared, contention, as_it_is, predicted)
    calibrated_s = figures.times[:, 0]
    by_bandwidth = curves.by_bandwidth(base, figures.grid)
    told = Prediction(
        schema_version=SCHEMA_VERSION,
        trace=str(request.source),
        command=command_of(question.trace),
        ranks=question.trace.ranks,
        nodes=len(set(question.nodes)),
        run=run,
        latency_s=base.between.latency_ns * 1e-9,
        bandwidth=network.bandwidth(base.between),
        samples=request.samples,
        seed=request.seed,
        operations=plan.operations,
        own_s=figures.own_s,
        traces=1 + len(request.again),
        gap=_gap(as_it_is.change) if figures.own_s else None,
        base=as_it_is,
        scenarios=predicted,
        bound=bound,
        floors=[
            Floor(network=name, bandwidth_s=float(by_bandwidth_s), computing_s=float(by_computing_s))
            for name, (by_bandwidth_s, by_computing_s) in zip(
                [judge.AS_IT_IS, *(one.name for one in question.scenarios)], figures.floors, strict=True
            )
        ],
        refused=question.refused,
        curve=of.found.curve,
        tolerance=curves.tolerances(
            of.found.curve, question.far_ns * 1e-9, base, question.sampled, calibrated_s
        ),
        bandwidth_curve=by_bandwidth,
        bandwidth_need=curves.needs(by_bandwidth, base, question.sampled, calibrated_s),
        hops=judge.hop_sources(of.found.hops),
        buffered=plan.buffered,
        largest_buffered_bytes=plan.largest_buffered_bytes,
        wildcards=question.wildcards,
        files_s=sum(question.files.values()),
        timelines=_timelines(of.found, predicted, request.timeline),
        conclusion=[],
        notes=of.notes(),
        engine="events" if by_events else "static",
        contention=contention,
    )
    if not told.explains:
        return _nothing_firm(told)
    # Of a model that explains little it is no news that contention matters little, too.
    meaning = contention.meaning[:1] if contention is not None else []
    return msgspec.structs.replace(told, conclusion=[*words.conclusion(told), *meaning])


def _leads(question: Question, contention: Contention | None) -> bool:
    """Whether figures event by event are the ones that are shown."""
    matters = contention is not None and contended.matters(contention)
    return question.by_events or (question.request.engine == "auto" and matters)


def _nothing_firm(told: Prediction) -> Prediction:
    """Return what is said where the model explains little of the program."""
    scenarios = [_untold(one) for one in told.scenarios]
    contention = told.contention
    if contention is not None:
        contention = msgspec.structs.replace(
            contention, scenarios=[_untold(one) for one in contention.scenarios]
        )
    told = msgspec.structs.replace(
        told, scenarios=scenarios, bound=_untold(told.bound), contention=contention
    )
    return msgspec.structs.replace(told, conclusion=list(words.conclusion(told)))


def _untold(one: _Told) -> _Told:
    """Return what a model that explains little of the program says of it: nothing firm."""
    return msgspec.structs.replace(one, verdict=judge.UNTOLD)


def _timelines(found: Replayed, predicted: Sequence[Predicted], chosen: str) -> list[Timeline]:
    """Return those of the network as it is, and of the one that is chosen: the fastest where none is named."""
    if not found.rank_times:
        return []
    names = [one.name for one in predicted]
    if chosen and chosen not in names:
        raise UsageError(f"--timeline {chosen}: is not among the networks asked about: {', '.join(names)}")
    fastest = min(predicted, key=lambda one: one.change.value).name
    place = names.index(chosen or fastest)
    return [
        *replayed.timelines(found, 0, judge.AS_IT_IS),
        *replayed.timelines(found, place + 1, names[place]),
    ]


def _gap(change: Estimate) -> Estimate:
    return msgspec.structs.replace(change, method="model ÷ program's own time, on the network as it is")


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
        raise UsageError(f"the placement has {len(placement)} ranks, {whose} {sum(ranks)}")
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


def finder(own: Sequence[Path]) -> scenario.Find:
    """Return what finds a network by its name: those of these files first, then those that the user keeps.

    Raises
    ------
    ConfigError
        A file cannot be read or does not say all.
    """
    mine = {one.id: one for path in own for one in networks.read(path)}
    return lambda name: networks.named(name, mine)


def other_runs(find_run: Callable[[str], Run], *, shares_nodes: bool) -> scenario.Calibrated:
    """Return what makes a change of the name of a calibrated run: to its network, with the CPUs as they are."""

    def to_run(name: str) -> scenario.Change:
        other = Calibrated(find_run(name), shares_nodes=shares_nodes)
        return lambda network, draw: replace(other.network(draw), compute=network.compute)

    return to_run

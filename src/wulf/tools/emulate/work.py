"""Patterns performed on a cluster: from the file of one to its run, and what that says."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from wulf.base.contracts import Say
from wulf.base.errors import BuildError, StoreError, TraceError, UsageError
from wulf.base.pattern.language import Document
from wulf.base.pattern.operations import Operations
from wulf.base.pattern.shape import shape
from wulf.base.records import SCHEMA_VERSION, Analysis, Estimate, LaunchResult, Place, Plan
from wulf.base.records.emulated import (
    Emulated,
    EmulatedEdge,
    EmulatedPattern,
    EmulatedProgram,
    EmulatedTimes,
    PredictedBeside,
    ProgramTimes,
    RankTime,
)
from wulf.base.store import Run, write_atomically
from wulf.base.store.files import decode_file, has
from wulf.base.text import count
from wulf.base.trace.reader import read
from wulf.base.trace.traffic import traffic
from wulf.node.fleet.clusters import config_of
from wulf.node.fleet.new_run import new_seed, place_of
from wulf.node.fleet.placement import spread
from wulf.node.measuring import emulation, session
from wulf.node.measuring.analysis import measuring
from wulf.node.measuring.emulation import Emulation
from wulf.node.probe import budget
from wulf.node.replay import patterns, predicting
from wulf.node.replay.asking import PredictRequest
from wulf.node.replay.calibrated import Calibrated
from wulf.stats.core import intervals
from wulf.tools.emulate.request import BUDGET_S, EmulateRequest

#: Of a run: what the model says of its pattern.
PREDICTED = "predicted.json"
#: More cannot be drawn.
_MOST_EDGES = 20_000


def start(request: EmulateRequest, watcher: session.Watcher) -> session.Outcome:
    """Perform a pattern again and again, as a new run.

    Raises
    ------
    ConfigError, UsageError
        The pattern cannot be performed on these nodes.
    KeyboardInterrupt
        After the run has been marked as interrupted; what was measured is kept.
    """
    path = place_of(request.path, request.runs)
    with _prepared(request) as (measured, _):
        return session.start(measured, path, watcher)


def foretell(request: EmulateRequest, watcher: session.Watcher) -> tuple[EmulatedPattern, Plan, budget.Fit]:
    """Return what would be performed, and what of it fits into the budget; start nothing on the nodes."""
    with _prepared(request) as (measured, pattern):
        plan, fit = session.foretell(measured, watcher)
        return pattern, plan, fit


@contextmanager
def _prepared(request: EmulateRequest) -> Iterator[tuple[session.MeasureRequest, EmulatedPattern]]:
    """Write down what the ranks do; it is taken away again when the context ends."""
    document = patterns.read(str(request.pattern))
    config = config_of(request.cluster)
    nodes = config.select(request.nodes)
    # Without --ranks there may be so many on every node; else as many as the pattern says.
    ranks = request.ranks or request.ranks_per_node * len(nodes) or None
    with tempfile.TemporaryDirectory(prefix="wulf-pattern-") as directory:
        trace = Path(directory) / emulation.TRACE
        made = patterns.written(document, ranks, trace)
        pattern = _pattern(request, document, made, trace)
        measured = session.MeasureRequest(
            config=config,
            pairs=[(node, node) for node in nodes],
            ladder="none",
            sizes_bytes=[0],
            emulation=Emulation(pattern=pattern, trace=trace, place=_place(request, nodes, pattern.ranks)),
            mpi=request.mpi or config.mpi.compiler,
            precision=request.precision,
            budget_s=request.budget_s or BUDGET_S,
            min_launches=6 if request.launches is None else request.launches,
            max_launches=40 if request.launches is None else request.launches,
            reference=False,
            seed=new_seed(request.seed),
        )
        yield measured, pattern


def _place(request: EmulateRequest, nodes: Sequence[str], ranks: int) -> Place:
    """Return the node of every rank."""
    if not request.ranks_per_node:
        return spread(nodes, ranks)
    room = request.ranks_per_node * len(nodes)
    if ranks > room:
        raise UsageError(
            f"--ranks-per-node {request.ranks_per_node} on {count(len(nodes), 'node')}: {count(room, 'rank')}, "
            f"and the pattern has {ranks}"
        )
    return tuple(node for node in nodes for _ in range(request.ranks_per_node))[:ranks]


def _pattern(request: EmulateRequest, document: Document, made: Operations, trace: Path) -> EmulatedPattern:
    sent = traffic(read(trace))
    between = [load for way, load in sent.items() if not way.is_together]
    edges = [
        EmulatedEdge(
            program=way.program,
            source=way.source,
            destination=way.destination,
            messages=load.messages,
            bytes=load.bytes,
            collective=way.is_together,
        )
        for way, load in sent.items()
    ]
    pattern = document.pattern
    return EmulatedPattern(
        schema_version=SCHEMA_VERSION,
        title=pattern.title,
        what=pattern.what,
        source=str(request.pattern),
        text=document.text,
        ranks=len(made.streams),
        warm_ups=pattern.warm_up,
        passes=request.passes,
        compute=request.compute,
        method=request.method,
        directory=request.directory,
        checked=request.check,
        least_s=made.least_ns * 1e-9,
        messages=sum(load.messages for load in between),
        bytes=sum(load.bytes for load in between),
        programs=list(_programs(document, made)),
        edges=edges if len(edges) <= _MOST_EDGES else None,
    )


def _programs(document: Document, made: Operations) -> Iterator[EmulatedProgram]:
    several = len(made.programs) > 1
    for number, (name, ranks) in enumerate(made.programs.items()):
        looks = shape(document, number, len(ranks))
        yield EmulatedProgram(
            name=name,
            op=f"program {name}" if several else "",
            iteration_op=f"iteration of {name}",
            ranks=ranks,
            iterations=document.pattern.program[number].iterations,
            layout=looks.layout,
            dims=list(looks.dims),
            servers=looks.servers,
            fan_out=looks.fan_out,
            steps=list(looks.words),
        )


def result(run: Run, analysis: Analysis) -> Emulated | None:
    """Return what a run says of its pattern; None where it is not a run of one, or no launch of it succeeded."""
    performed = kept(run.path)
    if performed is None:
        return None
    times = {cell.cell.op: cell.time for cell in analysis.cells}
    if emulation.WHOLE not in times:
        return None
    launches = _counting(run)
    return Emulated(
        schema_version=SCHEMA_VERSION,
        run=run.manifest.id,
        title=performed.title,
        ranks=performed.ranks,
        nodes=len({node for place in run.manifest.plan.workload.places for node in place}),
        time=times[emulation.WHOLE],
        programs=[
            _times(program, number, times, launches, run.manifest.plan.confidence)
            for number, program in enumerate(performed.programs)
            if program.iteration_op in times
        ],
        wrong=sum(sample.corrupt for sample in run.samples),
        predicted=_predicted(run.path),
    )


def shown(run: Run, analysis: Analysis) -> tuple[EmulatedPattern, Emulated] | None:
    """Return what a report shows of a run's pattern; None where there is nothing to show."""
    pattern, found = kept(run.path), result(run, analysis)
    return (pattern, found) if pattern is not None and found is not None else None


def kept(path: Path) -> EmulatedPattern | None:
    """Return what a run has performed; None where it is not a run of a pattern."""
    return decode_file(path / emulation.HEAD, EmulatedPattern) if has(path, emulation.HEAD) else None


def _counting(run: Run) -> list[LaunchResult]:
    """Return the launches that figures are made of: clean ones, where there are enough of those."""
    good = [one for one in measuring(run.results) if one.launch.status == "ok" and one.programs]
    clean = [one for one in good if not one.launch.contamination]
    return clean if len(clean) >= run.manifest.plan.min_launches else good


def _times(
    program: EmulatedProgram,
    number: int,
    times: dict[str, Estimate],
    launches: Sequence[LaunchResult],
    confidence: float,
) -> EmulatedTimes:
    own = [one for launch in launches for one in launch.programs if one.number == number]
    asked_ns = sum(sum(one.asked_ns) for one in own)
    return EmulatedTimes(
        name=program.name,
        ranks=len(program.ranks),
        iterations=program.iterations,
        time=times[program.op or emulation.WHOLE],
        iteration=times[program.iteration_op],
        mpi_share=_share([one.mpi_share for one in own], confidence),
        by_rank=list(_by_rank(own)),
        compute_ratio=sum(sum(one.compute_ns) for one in own) / asked_ns if asked_ns else None,
    )


def _by_rank(of: Sequence[ProgramTimes]) -> Iterator[RankTime]:
    for place, rank in enumerate(of[0].ranks if of else ()):
        yield RankTime(
            rank=rank,
            time_s=statistics.median(one.time_ns[place] for one in of) * 1e-9,
            compute_s=statistics.median(one.compute_ns[place] for one in of) * 1e-9,
        )


def _share(values: Sequence[float], confidence: float) -> Estimate:
    median = intervals.median(values, confidence)
    return Estimate(
        value=median.value,
        low=median.low,
        high=median.high,
        confidence=median.confidence,
        unit="ratio",
        n=median.n,
        method=median.method,
    )


def require_calibrated(run: Run) -> None:
    """Refuse before anything is measured a run that nothing could be predicted by.

    Raises
    ------
    UsageError
        It lacks measurements.
    """
    Calibrated(run, shares_nodes=False)


def predict(run: Run, analysis: Analysis, calibrated: Run, say: Say) -> PredictedBeside:
    """Return what the model says of a run's pattern on the same nodes, and keep it with the run.

    Raises
    ------
    UsageError
        The calibrated run lacks measurements.
    StoreError
        The run has no pattern, or nothing was measured.
    """
    found = result(run, analysis)
    if found is None:
        raise StoreError(f"{run.path} has no pattern that was measured")
    (place,) = run.manifest.plan.workload.places
    numbers = {node: number for number, node in enumerate(dict.fromkeys(place))}
    request = PredictRequest(
        source=run.path / emulation.TRACE,
        run=calibrated,
        what_if=None,
        placement=[numbers[node] for node in place],
    )
    try:
        time = predicting.as_it_is(request, say)
    except (TraceError, BuildError) as error:
        beside = PredictedBeside(
            run=calibrated.manifest.id, time=None, inside=None, ratio=None, reason=str(error)
        )
    else:
        low, high = time.low or time.value, time.high or time.value
        beside = PredictedBeside(
            run=calibrated.manifest.id,
            time=time,
            inside=low <= found.time.value <= high,
            ratio=found.time.value / time.value,
        )
    write_atomically(run.path / PREDICTED, msgspec.json.format(msgspec.json.encode(beside), indent=1))
    return beside


def _predicted(path: Path) -> PredictedBeside | None:
    return decode_file(path / PREDICTED, PredictedBeside) if has(path, PREDICTED) else None

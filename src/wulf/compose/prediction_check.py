"""A prediction held against the program itself, on the network as it is now."""

from __future__ import annotations

import math
import shlex
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from wulf.base.contracts import Say
from wulf.base.errors import ProbeError, UsageError
from wulf.base.records import Checked, Estimate, Predicted, Prediction
from wulf.base.text import count
from wulf.base.trace.reader import read
from wulf.node.probe import command
from wulf.node.replay import program_traces
from wulf.node.replay.asking import PredictRequest
from wulf.stats.core import intervals
from wulf.tools.application import work
from wulf.tools.trace import work as tracing
from wulf.tools.trace.request import TraceRequest
from wulf.tools.trace.work import Traced

#: Fewer launches have no interval.
FEWEST = 6


def verify(
    found: Prediction, request: PredictRequest, launches: int, mpi: str | None, say: Say
) -> Prediction:
    """Return a prediction with the run time of its program now, on the nodes of the calibrated run.

    It is held against the only network that was asked about, which the cluster is to have now; where several were, or
    none, against the network as it is. What is timed is what the trace is of: from the return of MPI_Init to the call
    of MPI_Finalize, on the slowest rank.

    Raises
    ------
    UsageError
        The trace does not say what was run, or there are too few launches for an interval.
    ProbeError
        The program does not run any more.
    """
    if launches < FEWEST:
        raise UsageError(f"--launches {launches}: an interval needs {FEWEST}")
    program = _program(request)
    against = found.scenarios[0] if len(found.scenarios) == 1 else found.base
    times = list(_times(request, program, launches, mpi, say))
    median = intervals.median(times)
    time = Estimate(
        value=median.value,
        low=median.low,
        high=median.high,
        confidence=median.confidence,
        unit="s",
        n=median.n,
        method=f"{median.method}; between MPI_Init and MPI_Finalize",
    )
    return msgspec.structs.replace(found, checked=_checked(program.line, against, time))


def _checked(line: str, against: Predicted, time: Estimate) -> Checked:
    predicted = against.time
    low, high = predicted.low or predicted.value, predicted.high or predicted.value
    return Checked(
        command=line,
        network=against.name,
        time=time,
        inside=low <= time.value <= high,
        ratio=time.value / predicted.value,
        visible=max(high / predicted.value, predicted.value / low if low > 0 else math.inf) - 1,
    )


@dataclass(frozen=True)
class _Program:
    """What a trace is of."""

    #: For a shell.
    line: str
    #: How many it had.
    ranks: int
    #: How many of the command have to be started; 0 where it does that itself.
    started: int


def _program(request: PredictRequest) -> _Program:
    trace = read(request.source) if not program_traces.is_pattern(request.source) else None
    said = trace.note.get("command") if trace is not None else None
    if trace is None or not said:
        raise UsageError(f"--verify: {request.source} does not say what was run")
    line = said if isinstance(said, str) else shlex.join(map(str, said))
    return _Program(line, trace.ranks, int(trace.note.get("ranks", 0)))


def _times(
    request: PredictRequest, program: _Program, launches: int, mpi: str | None, say: Say
) -> Iterator[float]:
    run, line = request.run, program.line
    with tempfile.TemporaryDirectory(prefix="wulf-verify-") as directory:
        # Next to nothing of it is recorded: the run time is what is asked for.
        launch = TraceRequest(
            [line],
            Path(directory) / "launch.wtrace",
            ranks=program.started,
            mpi=mpi,
            limit_bytes=tracing.LEAST_BYTES,
        )
        where = tracing.Where(config=work.cluster_of(run), nodes=work.nodes_of(run), shown=False)
        for number in range(launches):
            say(f"launch {number + 1} of {launches}: {line}")
            traced = tracing.traced(launch, where, lambda _: None)
            yield _time_of(traced, program)


def _time_of(traced: Traced, program: _Program) -> float:
    """Return how long a launch took [s]; raises ProbeError where it is not one of the program."""
    named, ranks = command.named(program.line), traced.trace.ranks
    if traced.exit_code:
        raise ProbeError(f"--verify: {named} ended with exit code {traced.exit_code}")
    if ranks != program.ranks:
        raise ProbeError(
            f"--verify: {named} ran with {count(ranks, 'rank')}, and the trace has {program.ranks}"
        )
    time_s = program_traces.own_time(traced.trace)
    if time_s is None:
        raise ProbeError(f"--verify: {named} did not reach MPI_Finalize")
    return time_s

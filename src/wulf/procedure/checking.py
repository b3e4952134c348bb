"""A prediction held against the program itself, on the network as it is now."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from wulf.apps import profile
from wulf.cluster.transport import open_transport
from wulf.errors import ProbeError, UsageError
from wulf.probe import command
from wulf.procedure import characterising, site
from wulf.procedure.measuring.participants import spread
from wulf.procedure.predicting import PredictRequest
from wulf.procedure.replaying import Say
from wulf.records import Checked, Estimate, Predicted, Prediction
from wulf.stats import intervals
from wulf.wtrace.reader import read

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
        raise UsageError(f"--launches {launches}: an interval takes {FEWEST}")
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
    trace = read(request.source) if request.source.suffix != ".toml" else None
    said = trace.note.get("command") if trace is not None else None
    if trace is None or not said:
        raise UsageError(f"--verify: {request.source} does not say what was run")
    line = said if isinstance(said, str) else shlex.join(map(str, said))
    return _Program(line, trace.ranks, int(trace.note.get("ranks", 0)))


def _times(
    request: PredictRequest, program: _Program, launches: int, mpi: str | None, say: Say
) -> Iterator[float]:
    run = request.run
    config = characterising.cluster_of(run)
    transport = open_transport(config)
    line = program.line
    try:
        if program.started:
            place = spread(characterising.nodes_of(run), program.started)
            line = site.mpi_command(config, transport, run.nodes, mpi, place, line, say)
        for number in range(launches):
            say(f"launch {number + 1} of {launches}: {line}")
            text = characterising.launched(
                config, transport, characterising.nodes_of(run), line, mpi, command.LIMIT_S, lambda _: None
            )
            # Of several jobs in one command the longest is what it is about.
            jobs = profile.read(text, line)
            if program.ranks not in [len(one.ranks) for one in jobs]:
                most = max(len(one.ranks) for one in jobs)
                raise ProbeError(
                    f"--verify: {command.named(line)} ran with {most} rank{'s' if most > 1 else ''}, and the "
                    f"trace has {program.ranks}"
                )
            yield 1e-9 * max(rank.run_ns for one in jobs for rank in one.ranks)
    finally:
        transport.close()

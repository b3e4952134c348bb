"""A prediction held against the program itself, on the network as it is now."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import msgspec

from wulf.apps import profile
from wulf.cluster.transport import open_transport
from wulf.errors import UsageError
from wulf.probe import command
from wulf.procedure import characterising
from wulf.procedure.predicting import PredictRequest, Say
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
    line = _line(request)
    against = found.scenarios[0] if len(found.scenarios) == 1 else found.base
    times = list(_times(request, line, launches, mpi, say))
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
    return msgspec.structs.replace(found, checked=_checked(line, against, time))


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


def _line(request: PredictRequest) -> str:
    """Return the command of a trace, for a shell."""
    said = read(request.source).note.get("command") if request.source.suffix != ".toml" else None
    if not said:
        raise UsageError(f"--verify: {request.source} does not say what was run")
    return said if isinstance(said, str) else shlex.join(map(str, said))


def _times(request: PredictRequest, line: str, launches: int, mpi: str | None, say: Say) -> Iterator[float]:
    run = request.run
    config = characterising.cluster_of(run)
    transport = open_transport(config)
    try:
        for number in range(launches):
            say(f"launch {number + 1} of {launches}: {line}")
            text = characterising.launched(
                config, transport, characterising.nodes_of(run), line, mpi, command.LIMIT_S, lambda _: None
            )
            # Of several jobs in one command the longest is what it is about.
            yield 1e-9 * max(rank.run_ns for one in profile.read(text, line) for rank in one.ranks)
    finally:
        transport.close()

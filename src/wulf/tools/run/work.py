"""From a command to its measured run, or to how it differs from another."""

from __future__ import annotations

from pathlib import Path

from wulf.base.errors import ConfigError, UsageError
from wulf.base.text import printable
from wulf.node.fleet import change
from wulf.node.fleet.clusters import config_of
from wulf.node.fleet.new_run import new_seed, place_of
from wulf.node.measuring import session
from wulf.node.probe import command
from wulf.node.programs import batch
from wulf.node.trials import interleaving
from wulf.node.trials.printed_numbers import printed
from wulf.tools.run.command_text import text_of
from wulf.tools.run.request import AgainstRequest, RunRequest


def run(request: RunRequest, watcher: session.Watcher) -> session.Outcome:
    """Launch a command until its figures are precise, as a new run.

    Raises
    ------
    ConfigError
        The batch script cannot be read.
    KeyboardInterrupt
        After the run has been marked as interrupted; what was measured is kept.
    """
    measured = _measurement(request)
    return session.start(measured, place_of(request.path, request.runs), watcher)


def _measurement(request: RunRequest) -> session.MeasureRequest:
    if not isinstance(request.ranks, int):
        raise UsageError("ranks: a run is of one number of them; wulf.scaling takes several")
    config = config_of(request.cluster)
    exactly = request.launches
    return session.MeasureRequest(
        config=config,
        pairs=[(node, node) for node in config.select(request.nodes)],
        ladder="none",
        sizes_bytes=[0],
        command=_command(request),
        command_directory=request.directory or "",
        command_name=interleaving.RUN_TIME,
        prints=printed(request.match, request.names),
        command_ranks=request.ranks,
        mpi=request.mpi or config.mpi.compiler,
        precision=request.precision,
        budget_s=request.budget_s,
        min_launches=6 if exactly is None else exactly,
        max_launches=40 if exactly is None else exactly,
        reference=False,
        seed=new_seed(request.seed),
    )


def _command(request: RunRequest) -> str:
    text = text_of(request.command)
    if request.batch is None:
        return text
    script = _read(Path(request.batch))
    return batch.job(script, str(request.batch), text, request.submit or batch.SUBMIT, command.JOB_TIME)


def in_turn(request: AgainstRequest) -> interleaving.InterleaveRequest:
    """Return what measures two commands on the first node in turn."""
    config = config_of(request.cluster)
    texts = (text_of(request.command), text_of(request.other))
    first, second = (_side(text, config.transport, request.directory or "") for text in texts)
    return interleaving.InterleaveRequest(
        config=config,
        nodes=config.select(request.nodes),
        sides=(first, second),
        ops=None,
        sizes_bytes=[0],
        pairs="ring",
        command=first.command,
        prints=printed(request.match, request.names),
        launches=request.launches,
        budget_s=request.budget_s,
        margin=request.margin,
        permissions=change.Permissions(),
        mpi=None,
        seed=new_seed(request.seed),
    )


def _side(text: str, transport: str, directory: str) -> interleaving.Side:
    return interleaving.Side(name=printable(text, 60), command=command.placed(text, transport, directory))


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(f"cannot read {path}: {reason}") from None

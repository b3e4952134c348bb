"""Programs and patterns: run, traced, performed, predicted; and the benchmarks that are programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wulf.base import store
from wulf.base.errors import StoreError, UsageError
from wulf.base.records import Comparison, Prediction
from wulf.base.records.collectives import CollectiveTuning
from wulf.base.records.emulated import Emulated
from wulf.base.records.traced import TraceSummary
from wulf.base.store import Run
from wulf.base.store.hpl import HplRun
from wulf.base.tool import Progress
from wulf.base.trace.summary import summary
from wulf.face.api.arguments import checked
from wulf.face.api.common import RUNS, AnyRun, Cluster, note, run_of, stage
from wulf.face.api.declared import function
from wulf.face.api.measured import in_turn
from wulf.face.logged import Logged, LoggedHpl
from wulf.node.fleet import allocation
from wulf.node.fleet.begin import new_seed, place_of
from wulf.node.fleet.clusters import config_of
from wulf.node.measuring import session as measuring
from wulf.node.replay import predicting
from wulf.node.trials import commands, interleaving
from wulf.node.trials.printed import printed
from wulf.tools.application import work
from wulf.tools.application.request import CharacteriseRequest
from wulf.tools.blas import work as blas
from wulf.tools.blas.request import BlasRequest
from wulf.tools.collectives import session as collectives
from wulf.tools.collectives.request import CollectivesRequest
from wulf.tools.emulate import work as emulating
from wulf.tools.hpcc import work as hpcc
from wulf.tools.hpcc.request import HpccRequest
from wulf.tools.hpl import session as linpack
from wulf.tools.hpl.request import HplRequest
from wulf.tools.trace import work as tracing
from wulf.tools.worth import work as valuing
from wulf.tools.worth.request import WorthRequest


@checked
def app(
    command: str | Sequence[str],
    cluster: Cluster = None,
    path: Path | str | None = None,
    *,
    nodes: str | None = None,
    ranks: int = 0,
    directory: str = "",
    match: Sequence[str] = (),
    names: Sequence[str] = (),
    repeat: int | None = None,
    precision: float = 0.02,
    budget_s: float = 1800.0,
    mpi: str | None = None,
    seed: int | None = None,
) -> Run:
    """Launch a command again and again until its run time is precise, as ``wulf program run`` does.

    Parameters
    ----------
    command
        Text for a shell on the first node, or the words of a command.
    cluster, path, nodes
        As for `measure`.
    ranks
        So many ranks of it are started on the nodes as an MPI program; 0 for a command that starts its own.
    directory
        Where it runs on the node; empty for where this process runs, where the node has that directory.
    match, names
        Regular expressions with one group around a number in the output, and what these are:
        ``performance [GFLOPS] higher``.
    repeat
        Exactly so many launches; None for as many as `precision` takes within `budget_s`.

    Returns
    -------
    Run
        Its cells are ``run time`` and each number; what launches have printed is in ``output`` of its path.
    """
    config = config_of(cluster)
    request = measuring.MeasureRequest(
        config=config,
        pairs=[(node, node) for node in config.select(nodes)],
        ladder="none",
        sizes_bytes=[0],
        command=_text(command),
        command_directory=directory,
        command_name=interleaving.RUN_TIME,
        prints=printed(match, names),
        command_ranks=ranks,
        mpi=mpi or config.mpi.compiler,
        precision=precision,
        budget_s=budget_s,
        min_launches=repeat if repeat is not None else 6,
        max_launches=repeat if repeat is not None else 40,
        reference=False,
        seed=new_seed(seed),
    )
    return measuring.start(request, place_of(path, RUNS), Logged())[0]


@checked
def app_against(
    command: str | Sequence[str],
    other: str | Sequence[str],
    cluster: Cluster = None,
    *,
    nodes: str | None = None,
    directory: str = "",
    match: Sequence[str] = (),
    names: Sequence[str] = (),
    launches: int = 20,
    budget_s: float = 1800.0,
    margin: float = 0.02,
    seed: int | None = None,
) -> Comparison:
    """Launch two commands in turn and say which is faster, by how much, as ``wulf program run --against`` does.

    Parameters
    ----------
    command, other
        The base, and what is compared with it; as for `app`.
    launches
        Pairs of launches at most.
    """
    config = config_of(cluster)
    request = commands.against(
        config,
        config.select(nodes),
        (_text(command), _text(other)),
        directory=directory,
        prints=printed(match, names),
        launches=launches,
        budget_s=budget_s,
        margin=margin,
        seed=new_seed(seed),
    )
    return in_turn(request)


@checked
def trace(
    command: str | Sequence[str],
    path: Path | str,
    cluster: Cluster = "local",
    *,
    nodes: str | None = None,
    ranks: int = 0,
    mpi: str | None = None,
    limit_bytes: int = 1 << 30,
) -> TraceSummary:
    """Run a program, record every call of MPI, and write the trace, as ``wulf program trace`` does.

    Parameters
    ----------
    path
        Where the trace goes (``.wtrace``).
    ranks
        As for `app`.
    limit_bytes
        Largest file of each rank [B].

    """
    config = config_of(cluster)
    request = tracing.TraceRequest(
        config=config,
        nodes=config.select(nodes),
        words=[command] if isinstance(command, str) else list(command),
        output=Path(path),
        ranks=ranks,
        mpi=mpi or config.mpi.compiler,
        limit_bytes=limit_bytes,
    )
    found = tracing.trace(request, stage)
    if found.exit_code:
        note(f"the command ended with exit code {found.exit_code}; {path} has what it did until then")
    return summary(found.trace)


@checked
def emulate(
    pattern: Path | str,
    cluster: Cluster = None,
    path: Path | str | None = None,
    *,
    nodes: str | None = None,
    ranks: int = 0,
    ranks_per_node: int = 0,
    mpi: str | None = None,
    passes: int = 5,
    compute: str = "work",
    check: bool = True,
    repeat: int | None = None,
    precision: float = 0.02,
    budget_s: float = 1800.0,
    seed: int | None = None,
    predict_on: AnyRun | None = None,
) -> Emulated:
    """Perform a pattern of messages on the cluster and say how long it takes, as ``wulf program emulate`` does.

    Parameters
    ----------
    pattern
        A file (``.toml``), or a name of ``wulf program emulate --list``.
    cluster, path, nodes
        As for `measure`.
    ranks, ranks_per_node
        0: as the pattern says, spread evenly over the nodes.
    compute
        ``work``, ``clock`` or ``none``.
    repeat
        As for `app`.
    predict_on
        A calibrated run of these nodes: ``emulated.predicted`` is what the model says beside it.

    Raises
    ------
    StoreError
        No launch succeeded; the run says why.
    """
    calibrated = run_of(predict_on) if predict_on is not None else None
    config = config_of(cluster)
    request = emulating.EmulateRequest(
        config=config,
        nodes=config.select(nodes),
        source=str(pattern),
        ranks=ranks,
        ranks_per_node=ranks_per_node,
        mpi=mpi,
        passes=passes,
        compute=compute,
        check=check,
        precision=precision,
        budget_s=allocation.capped(budget_s, note),
        min_launches=repeat if repeat is not None else 6,
        max_launches=repeat if repeat is not None else 40,
        seed=new_seed(seed),
    )
    run, analysis = emulating.start(request, place_of(path, RUNS), Logged())
    if calibrated is not None:
        emulating.predict(run, analysis, calibrated, stage)
    found = emulating.result(run, analysis)
    if found is None:
        raise StoreError(
            f"{run.path}: no launch of {pattern} succeeded; 'wulf report {run.path} --text' says why"
        )
    return found


@checked
def predict(
    source: Path | str,
    on: AnyRun,
    *,
    what_if: str = predicting.USUAL,
    again: Sequence[Path | str] = (),
    own: Sequence[Path | str] = (),
    ranks: int = 0,
    ranks_per_node: int = 0,
    placement: Sequence[int] = (),
    rules: Path | str | None = None,
    engine: predicting.Engine = "auto",
    beside: Sequence[Path | str] = (),
    topology: Path | str | None = None,
    samples: int = 200,
    seed: int = 1,
) -> Prediction:
    """Say what a traced program would take on other networks, as ``wulf program predict`` does.

    Parameters
    ----------
    source
        A trace (``.wtrace``), or a pattern (a ``.toml`` file).
    on
        A run of `calibrate` on the nodes of the trace.
    what_if
        Networks by name, or changes: ``25gbe,latency=x0.5``; ``@RUN`` for the network of another calibrated run.
    again
        More traces of the same program.
    own
        Files of networks, or directories of them.
    ranks
        Of a pattern that leaves the number open.
    placement
        The number of a node for each rank; empty for as the trace says.
    engine
        ``static``, ``events``, ``both`` or ``auto``.
    samples
        Behind every interval, at least 20.

    Raises
    ------
    UsageError
        The run lacks what is needed; says how it is measured.
    TraceError
        The trace cannot be replayed soundly; says why.
    """
    request = predicting.PredictRequest(
        source=Path(source),
        again=[Path(one) for one in again],
        run=run_of(on),
        what_if=what_if,
        own=[Path(one) for one in own],
        ranks=ranks,
        ranks_per_node=ranks_per_node,
        placement=list(placement),
        rules=Path(rules) if rules is not None else None,
        find_run=lambda name: store.load(store.find_run(name, RUNS)),
        samples=_samples(samples),
        seed=seed,
        engine=engine,
        beside=[Path(one) for one in beside],
        topology=Path(topology) if topology is not None else None,
    )
    return predicting.predict(request, stage)


def _hpl(request: HplRequest, progress: Progress) -> HplRun:  # noqa: ARG001 - HPL has its own
    return linpack.start(request, LoggedHpl())


def _tune_collectives(request: CollectivesRequest, progress: Progress) -> CollectiveTuning:
    task = collectives.task_of(request, progress.note)
    return collectives.save(collectives.tune(task, progress), task.out)


tune_collectives = function(CollectivesRequest, _tune_collectives, name="tune_collectives")


def _text(command: str | Sequence[str]) -> str:
    return command if isinstance(command, str) else commands.as_text(command)


def _samples(samples: int) -> int:
    if samples < 20:
        raise UsageError(f"samples {samples}: 20 or more")
    return samples


characterise = function(CharacteriseRequest, work.characterise)
hpl = function(HplRequest, _hpl)
run_hpcc = function(HpccRequest, hpcc.measure)
compare_blas = function(BlasRequest, blas.compare)
worth = function(WorthRequest, valuing.value)

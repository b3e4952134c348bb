"""``wulf measure``: one measured run, from the nodes to the run directory."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from wulf import __version__, store
from wulf.cli import complete
from wulf.cli.begin import end_gently, new_run, new_seed
from wulf.cli.measure_progress import MeasureProgress, what_fits
from wulf.cli.options import RUNS, ClusterOption, RunsOption, cluster, console
from wulf.cluster import inventory
from wulf.errors import EXIT_FINDINGS, EXIT_INTERRUPTED, TransportError, UsageError
from wulf.measure import ladder, schedule
from wulf.nodeset import fold, fold_reasons, reasons_text
from wulf.ports import Transport
from wulf.procedure import site
from wulf.procedure.measure import forecast, measure
from wulf.records import (
    SCHEMA_VERSION,
    Analysis,
    FactValue,
    LaunchResult,
    LeftOut,
    Manifest,
    NodeRecord,
    Operation,
    Pair,
    Plan,
)
from wulf.report import text
from wulf.text import printable
from wulf.units import parse_duration, parse_percent, parse_size

BUDGET = "5m"
Outcome = tuple[store.Run, Analysis]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a new run, checked as far as they can be without looking at the nodes."""

    config: inventory.ClusterConfig
    ops: list[str] | None
    mpi: str | None
    pairs: list[Pair]
    ladder: str
    sizes_bytes: list[int]
    precision: float
    budget_s: float
    min_launches: int
    max_launches: int
    sweeps: int
    visit_us: int
    seed: int


def command(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="Name of the new run; with --resume, the run to go on with.",
            autocompletion=complete.runs,
        ),
    ] = None,
    cluster_name: ClusterOption = None,
    nodes: Annotated[
        str | None, typer.Option(help="Only these nodes of the cluster, such as 'node[01-04]'.")
    ] = None,
    ops: Annotated[
        str | None,
        typer.Option(
            help=f"Operations, separated by commas. Default: {','.join(site.DEFAULT_OPS)}.",
            autocompletion=complete.several_of((*site.DEFAULT_OPS, "empty")),
        ),
    ] = None,
    ladder_name: Annotated[
        str,
        typer.Option(
            "--ladder",
            help=f"Message sizes: {', '.join(ladder.NAMES)}.",
            autocompletion=complete.one_of(ladder.NAMES),
        ),
    ] = "adaptive",
    max_size: Annotated[
        str | None, typer.Option(help="Largest message, such as 64KiB. Default: the ladder's own end.")
    ] = None,
    pairs: Annotated[
        str,
        typer.Option(
            help="all, ring (each node with the next), or pairs: n1:n2,n3:n4.",
            autocompletion=complete.one_of(("all", "ring")),
        ),
    ] = "ring",
    precision: Annotated[
        str, typer.Option(help="Launches are added until the 95 % interval is ± this wide.")
    ] = "2%",
    budget: Annotated[
        str | None,
        typer.Option(
            help=f"Time after which no launch is started (10m, 1h30m); --resume has it anew. Default: {BUDGET}."
        ),
    ] = None,
    min_launches: Annotated[
        int, typer.Option(help="At least so many launches of each operation and pair; an interval takes 6.")
    ] = 6,
    max_launches: Annotated[int, typer.Option(help="At most so many.")] = 40,
    sweeps: Annotated[int, typer.Option(help="Visits of every size within a launch.")] = 5,
    visit: Annotated[str, typer.Option(help="Length of a visit.")] = "1ms",
    seed: Annotated[
        int | None, typer.Option(help="Seed of all random orders. Default: a new one, stored.")
    ] = None,
    mpi: Annotated[
        str | None, typer.Option(help="MPI library: openmpi, mpich, or the path of an mpicc.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only say what fits into the budget; look at the nodes, start nothing."
        ),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was interrupted.")] = False,
    runs: RunsOption = RUNS,
) -> None:
    """Measure the interconnect between pairs of nodes.

    Every figure is the median of many launches with its 95 % interval; launches are added until the interval
    is narrow enough or the budget is spent. When the budget is short, fewer operations and sizes get the launches
    that an interval takes, in the order of --ops; what does not fit is said before. Ctrl-C keeps what was measured;
    --resume goes on, as the run was begun: of the other options only --budget and --runs count then.

    Exit code 3 when something could not be measured or the precision was not reached.
    """
    end_gently()
    if resume and dry_run:
        raise UsageError("--dry-run is about a new run: it takes no --resume")
    if resume:
        _show(_resume(run or "latest", runs, parse_duration(budget) if budget else None))
        return
    path = None if dry_run else new_run(run, runs)
    config = cluster(cluster_name)
    chosen = config.select(nodes)
    _require_counts(min_launches, max_launches, sweeps, seed)
    request = Request(
        config=config,
        ops=_names(ops),
        mpi=mpi or config.mpi.compiler,
        pairs=inventory.pairs(pairs, chosen),
        ladder=ladder_name,
        sizes_bytes=ladder.base_sizes(ladder_name, parse_size(max_size) if max_size else None),
        precision=parse_percent(precision),
        budget_s=parse_duration(budget or BUDGET),
        min_launches=min_launches,
        max_launches=max_launches,
        sweeps=sweeps,
        visit_us=_visit_us(visit),
        seed=new_seed(seed),
    )
    if path is None:
        _foretell(request)
        return
    _show(start(request, path))


def _names(ops: str | None) -> list[str] | None:
    names = [name.strip() for name in ops.split(",")] if ops is not None else None
    if names is not None and ("" in names or len(set(names)) < len(names)):
        raise UsageError(f"--ops {ops!r}: names separated by commas, each once")
    return names


def _visit_us(text: str) -> int:
    visit_s = parse_duration(text)
    if not 10e-6 <= visit_s <= 1:
        raise UsageError(f"--visit {text}: a visit lasts between 10us and 1s")
    return round(visit_s * 1e6)


def _require_counts(min_launches: int, max_launches: int, sweeps: int, seed: int | None) -> None:
    if not 1 <= min_launches <= max_launches:
        raise UsageError("--min-launches must be at least 1 and not above --max-launches")
    if not 3 <= sweeps <= 1000:
        raise UsageError("--sweeps must be between 3 and 1000")
    if seed is not None and seed < 0:
        raise UsageError("--seed must not be negative")


def start(request: Request, path: Path) -> Outcome:
    """Measure a new run in a directory, from the look at the nodes to the analysis."""
    with MeasureProgress() as progress, _looked(request, progress) as (tools, transport, records, pairs):
        ready = site.ready(request.config, transport, records, tools, progress.stage)
        plan = _plan(request, tools.operations, pairs, ready.left_out)
        _require_some(plan, progress)
        with store.create(path, _manifest(request, path.name, plan, tools.operations, ready)) as writer:
            progress.note(f"run: {path}")
            for record in records:
                writer.append(record)
            return _measure(writer, [], ready, progress)


def _foretell(request: Request) -> None:
    """Print what would fit into the budget."""
    with MeasureProgress() as progress, _looked(request, progress) as (tools, transport, _, pairs):
        plan = _plan(request, tools.operations, pairs, [])
        look_s = site.look_s(request.config, transport, pairs[0])
    for line in what_fits(plan, forecast(plan, tools.operations, look_s)):
        sys.stdout.write(f"{line}\n")


@contextmanager
def _looked(
    request: Request, progress: MeasureProgress
) -> Iterator[tuple[site.Toolbox, Transport, list[NodeRecord], list[Pair]]]:
    """Build the probes and look at the nodes; yields the pairs that answer, too."""
    tools = site.toolbox(request.ops, request.mpi, progress.stage)
    members = sorted({node for pair in request.pairs for node in pair})
    with site.look(request.config, members, progress.stage) as (transport, records):
        pairs, lost = site.measurable(request.pairs, records)
        _say_lost(lost, records, progress)
        yield tools, transport, records, pairs


def _say_lost(lost: Sequence[Pair], records: Sequence[NodeRecord], progress: MeasureProgress) -> None:
    """Say how many pairs have a node that does not answer, and why those nodes do not."""
    if not lost:
        return
    progress.note(f"not measured: {len(lost)} pair{'s' * (len(lost) > 1)} with a node that does not answer")
    down = {record.node: record.error or "does not answer" for record in records if not record.reachable}
    for nodes, reason in fold_reasons(down):
        progress.note(f"  {fold(nodes)}: {printable(reason, 300)}")


def _require_some(plan: Plan, progress: MeasureProgress) -> None:
    """Name the nodes that cannot take part; refuse when nothing is left."""
    for ops in dict.fromkeys(tuple(absent.ops) for absent in plan.left_out):
        reasons = {absent.node: absent.reason for absent in plan.left_out if tuple(absent.ops) == ops}
        progress.note(f"left out of {', '.join(ops)}: {printable(reasons_text(reasons), 1000)}")
    if not schedule.streams(plan):
        absent_for = {absent.node: absent.reason for absent in plan.left_out}
        raise TransportError(f"no pair of nodes can be measured: {reasons_text(absent_for)}")


def _resume(name: str, runs: Path, budget_s: float | None) -> Outcome:
    path = store.find_run(name, runs)
    manifest = store.load(path).manifest
    if manifest.status == "complete":
        raise UsageError(f"{path} is complete; there is nothing to go on with")
    config = inventory.parse(manifest.cluster, str(path / store.MANIFEST))
    mpi = manifest.software.get("mpi_compiler")
    with MeasureProgress() as progress:
        tools = site.toolbox(manifest.plan.ops, str(mpi) if mpi else None, progress.stage)
        members = sorted({node for pair in manifest.plan.pairs for node in pair})
        with site.look(config, members, progress.stage) as (transport, records):
            site.measurable(manifest.plan.pairs, records)
            ready = site.ready(config, transport, records, tools, progress.stage)
            _require_same(manifest, ready.software, path)
            earlier, writer = store.resume(path)
            with writer:
                resumed = [*manifest.resumed_at, _now()]
                plan = msgspec.structs.replace(manifest.plan, budget_s=budget_s or manifest.plan.budget_s)
                plan = msgspec.structs.replace(plan, left_out=ready.left_out)
                _require_some(plan, progress)
                changed = {"status": "running", "resumed_at": resumed, "plan": plan, "message": None}
                writer.update(msgspec.structs.replace(manifest, **changed))
                progress.note(f"run: {path}, going on after {len(earlier.results)} launches")
                return _measure(writer, earlier.results, ready, progress)


def _require_same(manifest: Manifest, now: Mapping[str, FactValue], path: Path) -> None:
    """Refuse to go on with another probe: its launches would look like noise, or hide a difference."""
    for fact in ("probe_net_sha256", "probe_mpi_sha256", "mpi"):
        if manifest.software.get(fact) != now.get(fact):
            raise UsageError(
                f"{path} was begun with {fact} {manifest.software.get(fact)}, here it is {now.get(fact)}: "
                "measure a new run and compare the two"
            )


def _plan(
    request: Request, operations: Sequence[Operation], pairs: list[Pair], left_out: list[LeftOut]
) -> Plan:
    return Plan(
        ops=[operation.name for operation in operations],
        pairs=pairs,
        ladder=request.ladder,
        sizes_bytes=request.sizes_bytes,
        max_size_bytes=max(request.sizes_bytes),
        precision=request.precision,
        confidence=0.95,
        budget_s=request.budget_s,
        min_launches=request.min_launches,
        max_launches=request.max_launches,
        sweeps=request.sweeps,
        visit_us=request.visit_us,
        seed=request.seed,
        left_out=left_out,
    )


def _manifest(
    request: Request, name: str, plan: Plan, operations: Sequence[Operation], ready: site.Ready
) -> Manifest:
    now = _now()
    return Manifest(
        schema_version=SCHEMA_VERSION,
        id=name,
        created_at=now,
        updated_at=now,
        status="running",
        wulf_version=__version__,
        command_line=sys.argv,
        plan=plan,
        operations=list(operations),
        cluster=inventory.render(request.config),
        software=ready.software,
    )


def _measure(
    writer: store.Writer, earlier: list[LaunchResult], ready: site.Ready, progress: MeasureProgress
) -> Outcome:
    try:
        return measure(writer, earlier, ready.launch, progress, ready.look_s)
    except KeyboardInterrupt:
        progress.note(f"interrupted; what was measured is kept: wulf measure --resume {writer.path}")
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _show(outcome: Outcome) -> None:
    run, analysis = outcome
    text.render(run.manifest, run.nodes, run.launches, analysis, console(), brief=True)
    sys.stdout.write(f"\nrun: {run.path}\nnext: wulf report {run.path} --html (or --text, --csv, --json)\n")
    if _findings(run, analysis):
        raise typer.Exit(EXIT_FINDINGS)


def _findings(run: store.Run, analysis: Analysis) -> bool:
    return (
        run.manifest.status != "complete"
        or analysis.launches_failed > 0
        or bool(run.manifest.plan.left_out)
        or any(not record.reachable for record in run.nodes)
        or any(not cell.reached or cell.corrupt for cell in analysis.cells)
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

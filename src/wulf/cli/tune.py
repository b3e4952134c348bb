"""``wulf tune``: change, measure, keep or undo, until nothing helps any more."""

from __future__ import annotations

import random
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from wulf import __version__, catalogue
from wulf.change import steps
from wulf.cli.facts import NodesOption
from wulf.cli.measure import require_name
from wulf.cli.options import RUNS, ClusterOption, RunsOption, cluster, console
from wulf.cli.progress import TuneProgress, staging
from wulf.cli.set_values import RelaxOption, TakeOverOption
from wulf.cluster import inventory
from wulf.errors import EXIT_ERROR, EXIT_FINDINGS, EXIT_INTERRUPTED, UsageError
from wulf.nodeset import fold
from wulf.ports import Transport
from wulf.procedure import change, site
from wulf.procedure.tuning import keep, loop, prepare
from wulf.procedure.tuning.bench import Bench, job_line, open_bench
from wulf.records import (
    SCHEMA_VERSION,
    Candidate,
    NodeRecord,
    Operation,
    Trial,
    TuneManifest,
    TunePlan,
    Tuning,
)
from wulf.report import tuning as report
from wulf.store import find_run
from wulf.store.tuning import HEAD, TuningRun, TuningWriter, create_tuning, load_tuning, resume_tuning
from wulf.text import printable
from wulf.tune import objective
from wulf.units import parse_duration, parse_percent

BUDGET = "30m"
CONFIDENCE = 0.95
FALSE_DISCOVERY = 0.05
#: Blocks of a comparison: with fewer a rank test cannot be sure, with more the time is better spent elsewhere.
MIN_BLOCKS, MAX_BLOCKS = 6, 20
CONFIRM_WITHIN_S = 60


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a new tuning run."""

    config: inventory.ClusterConfig
    nodes: list[str]
    goal: objective.Goal
    patterns: list[str]
    mpi: str | None
    budget_s: float
    margin: float
    seed: int
    permissions: change.Permissions


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """What a search needs of the outside world."""

    transport: Transport
    bench: Bench
    operations: list[Operation]
    software: dict[str, str | int | float | bool | None]


def command(
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN]", help="Name of the new run; with --resume, the run to go on with."),
    ] = None,
    cluster_name: ClusterOption = None,
    nodes: NodesOption = None,
    objective_name: Annotated[
        str,
        typer.Option(
            "--objective", help="latency, bandwidth, 'app: COMMAND' (run on the first node), or a .toml file."
        ),
    ] = "latency",
    match: Annotated[
        str,
        typer.Option(help="With 'app:': regular expression with a group around the number in its output."),
    ] = "",
    better: Annotated[
        str, typer.Option(help="With --match: whether a lower or a higher number is better.")
    ] = "lower",
    unit: Annotated[str, typer.Option(help="With --match: unit of the number.")] = "",
    knobs: Annotated[
        str | None,
        typer.Option(
            help="Only these, separated by spaces; * matches; with values: \"nic.mtu=1500,9000 nic.tso_gso='on on'\"."
        ),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help=f"Time for the search; --resume has it anew. Default: {BUDGET}.")
    ] = None,
    margin: Annotated[str, typer.Option(help="Change of the objective that does not matter.")] = "2%",
    mpi: Annotated[
        str | None, typer.Option(help="MPI library: openmpi, mpich, or the path of an mpicc.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of all random orders. Default: a new one, stored.")
    ] = None,
    take_over: TakeOverOption = False,
    relax: RelaxOption = False,
    only_search: Annotated[
        bool, typer.Option("--only-search", help="Put everything back at the end, also what helps.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print what would be tried, with every command, and change nothing."),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was interrupted.")] = False,
    runs: RunsOption = RUNS,
) -> None:
    """Find the settings that help, by experiment, and set them.

    Each candidate is switched on and off in random blocks while complete cycles are measured. What is proven to help
    is kept and the rest is tested again on top of it; at the end the whole set is confirmed against the original
    settings. A setting under which another figure gets worse (large messages, the slowest percent) is not kept.

    While it runs, the nodes put a setting back by themselves when they hear nothing for two minutes. Ctrl-C puts
    everything back and keeps the results; --resume goes on. What was kept is set until the next boot: 'wulf persist'
    keeps it, 'wulf rollback' takes it back.

    Exit code 3 when the search did not come to its end, 1 when what helps could not be set.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    if resume:
        finished = go_on(
            run or "latest", runs, parse_duration(budget) if budget else None, set_kept=not only_search
        )
    else:
        require_name(run)
        config = cluster(cluster_name)
        request = Request(
            config=config,
            nodes=list(config.nodes) if nodes is None else config.select(nodes),
            goal=prepare.goal(objective_name, mpi or config.mpi.compiler, match, _way(better), unit),
            patterns=patterns_of(knobs),
            mpi=mpi or config.mpi.compiler,
            budget_s=parse_duration(budget or BUDGET),
            margin=parse_percent(margin),
            seed=random.SystemRandom().getrandbits(32) if seed is None else seed,
            permissions=change.Permissions(take_over=take_over, relax=relax),
        )
        if dry_run:
            _explain(request)
            return
        finished = start(request, run, runs, set_kept=not only_search)
    show(finished)
    leave(finished)


def leave(run: TuningRun) -> None:
    """End the program as the run ended: an error when what helps could not be set, findings when it was cut short."""
    if run.manifest.message is not None:
        raise typer.Exit(EXIT_ERROR)
    if run.result is None or run.result.status != "complete":
        raise typer.Exit(EXIT_FINDINGS)


def start(request: Request, name: str | None, runs: Path, *, set_kept: bool) -> TuningRun:
    """Make a new tuning run, from the look at the nodes to the kept settings."""
    with TuneProgress() as progress:
        tools = prepare.tools_for(request.goal, request.mpi, progress.stage)
        with site.look(request.config, request.nodes, progress.stage) as (transport, records):
            choice = _choose(request, records, tools)
            ready = trial_bench(request.config, transport, records, tools, progress.stage)
            cycle = request.goal.cycle(objective.pairs_for(request.nodes))
            with open_bench(ready.bench):
                progress.stage("measuring the original settings")
                trial_s = loop.pilot(ready.bench, cycle, request.seed)
                manifest = _manifest(request, choice, ready, records, cycle_s=trial_s)
                path = runs / (name or manifest.id)
                with create_tuning(path, msgspec.structs.replace(manifest, id=path.name)) as writer:
                    progress.note(f"run: {path}")
                    _say_plan(manifest, progress)
                    result = _search(writer, [], ready.bench, progress)
            if set_kept:
                _keep(path, result, request.config, transport, records, progress)
    return load_tuning(path)


def go_on(name: str, runs: Path, budget_s: float | None, *, set_kept: bool) -> TuningRun:
    """Go on with a tuning run that was interrupted."""
    path = find_run(name, runs, HEAD)
    manifest = load_tuning(path).manifest
    if manifest.status == "complete":
        raise UsageError(f"{path} is complete; there is nothing to go on with")
    with TuneProgress() as progress:
        config, tools = tools_of(manifest, str(path / HEAD), progress.stage)
        with site.look(config, manifest.nodes, progress.stage) as (transport, records):
            _require_original(manifest, records, path)
            ready = trial_bench(config, transport, records, tools, progress.stage)
            with open_bench(ready.bench):
                progress.stage("measuring the original settings")
                loop.pilot(ready.bench, manifest.cycle, manifest.plan.seed)
                earlier, writer = resume_tuning(path)
                with writer:
                    plan = msgspec.structs.replace(manifest.plan, budget_s=budget_s or manifest.plan.budget_s)
                    resumed = [*manifest.resumed_at, _now()]
                    writer.update(
                        msgspec.structs.replace(
                            manifest, status="running", plan=plan, resumed_at=resumed, message=None
                        )
                    )
                    progress.note(f"run: {path}, going on after {len(earlier.trials)} trials")
                    result = _search(writer, earlier.trials, ready.bench, progress)
            if set_kept:
                _keep(path, result, config, transport, records, progress)
    return load_tuning(path)


def tools_of(
    manifest: TuneManifest, origin: str, say: prepare.Say
) -> tuple[inventory.ClusterConfig, site.Toolbox | None]:
    """Return the cluster of a stored run, and the probes that its cycle needs."""
    config = inventory.parse(manifest.cluster, origin)
    mpi = manifest.software.get("mpi_compiler")
    ops = [part.op for part in manifest.cycle.probes]
    return config, site.toolbox(ops, str(mpi) if mpi else None, say) if ops else None


def show(run: TuningRun) -> None:
    """Print the conclusion and what to do next."""
    if run.result is not None:
        report.render_text(keep.report(run), console())
    sys.stdout.write(f"\nrun: {run.path}\nnext: wulf report {run.path}")
    sys.stdout.write(", wulf persist, wulf rollback\n" if run.manifest.change else "\n")


def _search(writer: TuningWriter, earlier: Sequence[Trial], bench: Bench, progress: TuneProgress) -> Tuning:
    try:
        return loop.search(writer, earlier, bench, progress)
    except KeyboardInterrupt:
        progress.note(
            f"interrupted; the nodes are put back, the results kept: wulf tune --resume {writer.path}"
        )
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _keep(
    path: Path,
    result: Tuning,
    config: inventory.ClusterConfig,
    transport: Transport,
    records: Sequence[NodeRecord],
    progress: TuneProgress,
) -> None:
    """Set what the search kept, and write down under which change."""
    if not result.kept:
        return
    progress.stage("setting what helps")
    guards = change.guards(transport)
    outcome = keep.keep(
        transport, guards, config, records, result.kept, deadline_s=CONFIRM_WITHIN_S, watch=progress.stage
    )
    for note in outcome.notes:
        progress.note(note)
    if not outcome.kept:
        progress.note(f"what helps could not be set: {outcome.reason}")
    _, writer = resume_tuning(path)
    with writer:
        message = None if outcome.kept else outcome.reason
        changed = (outcome.change or None) if outcome.kept else None
        writer.update(msgspec.structs.replace(writer.manifest, change=changed, message=message))


def _choose(request: Request, records: Sequence[NodeRecord], tools: site.Toolbox | None) -> prepare.Choice:
    family = tools.mpi.family if tools is not None and tools.mpi is not None else None
    choice = prepare.choose(records, request.goal, request.patterns, family, request.permissions)
    if not choice.candidates:
        why = "\n".join(f"  {name}: {reason}" for name, reason in list(choice.left_out.items())[:20])
        raise UsageError(f"there is nothing to try:\n{why}")
    return choice


def trial_bench(
    config: inventory.ClusterConfig,
    transport: Transport,
    records: list[NodeRecord],
    tools: site.Toolbox | None,
    say: prepare.Say,
) -> Ready:
    """Put the probes on the nodes; return the bench on which trials are made, and what it consists of."""
    measuring = site.ready(config, transport, records, tools, say) if tools is not None else None
    operations = tools.operations if tools is not None else []
    bench = Bench(
        config,
        transport,
        change.guards(transport),
        measuring.launch if measuring is not None else None,
        records,
        {operation.name: operation for operation in operations},
    )
    return Ready(
        transport=transport,
        bench=bench,
        operations=operations,
        software=measuring.software if measuring is not None else {"wulf": __version__},
    )


def _manifest(
    request: Request, choice: prepare.Choice, ready: Ready, records: list[NodeRecord], *, cycle_s: float
) -> TuneManifest:
    return TuneManifest(
        schema_version=SCHEMA_VERSION,
        id=datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S"),
        created_at=_now(),
        updated_at=_now(),
        status="running",
        wulf_version=__version__,
        command_line=sys.argv,
        plan=TunePlan(
            objective=request.goal.name,
            metrics=request.goal.metrics,
            candidates=choice.candidates,
            budget_s=request.budget_s,
            trial_s=cycle_s,
            margin=request.margin,
            false_discovery=FALSE_DISCOVERY,
            confidence=CONFIDENCE,
            min_blocks=MIN_BLOCKS,
            max_blocks=MAX_BLOCKS,
            seed=request.seed,
        ),
        cycle=request.goal.cycle(objective.pairs_for(request.nodes)),
        profile=request.goal.profile,
        cluster=inventory.render(request.config),
        nodes=request.nodes,
        records=records,
        operations=ready.operations,
        software=ready.software,
        left_out=choice.left_out,
    )


def _require_original(manifest: TuneManifest, now: Sequence[NodeRecord], path: Path) -> None:
    """Refuse to go on from another state: its trials would be compared with those of the first one."""
    before = {record.node: record for record in manifest.records}
    for record in now:
        for candidate in manifest.plan.candidates:
            old, new = before[record.node].facts.get(candidate.knob), record.facts.get(candidate.knob)
            if old != new:
                raise UsageError(
                    f"{path} was begun with {candidate.knob} {old} on {record.node}, now it is {new}: "
                    "set it back (wulf status, wulf rollback), or start a new run"
                )


def _say_plan(manifest: TuneManifest, progress: TuneProgress) -> None:
    plan = manifest.plan
    for candidate in plan.candidates:
        progress.note(f"  {candidate.knob}: {candidate.original} → {', '.join(candidate.values)}")
    progress.note(
        f"{len(plan.candidates)} candidates, {plan.trial_s:.1f} s a trial, {plan.budget_s / 60:.0f} min at most"
    )


def _explain(request: Request) -> None:
    """Print what would be tried on which nodes, command by command."""
    with staging() as say:
        tools = prepare.tools_for(request.goal, request.mpi, say)
        with site.look(request.config, request.nodes, say) as (transport, records):
            choice = _choose(request, records, tools)
            commands = {
                (candidate.knob, value): _commands(request, transport, records, candidate, value)
                for candidate in choice.candidates
                for value in candidate.values
            }
    for candidate in choice.candidates:
        sys.stdout.write(
            f"{candidate.knob}: {printable(candidate.original, 200)}  (risk: {candidate.risk})\n"
        )
        for value in candidate.values:
            sys.stdout.write(f"  → {value}\n")
            for lines, who in commands[candidate.knob, value].items():
                sys.stdout.writelines(f"      {fold(who)}: {printable(line, 300)}\n" for line in lines)
    cycle = request.goal.cycle(objective.pairs_for(request.nodes))
    sys.stdout.write(f"\nmeasured in every trial: {_cycle_words(request.goal, len(cycle.pairs))}\n")
    sys.stdout.write(f"not tried: {len(choice.left_out)} knobs\n")
    sys.stdout.writelines(f"  {name}: {printable(why, 200)}\n" for name, why in choice.left_out.items())
    sys.stdout.write("\nnothing was changed (--dry-run)\n")


def _commands(
    request: Request, transport: Transport, records: Sequence[NodeRecord], candidate: Candidate, value: str
) -> Mapping[tuple[str, ...], list[str]]:
    knob = catalogue.knob(candidate.knob)
    variables = job_line({knob.id: value})
    if variables:
        return {(f"{variables} in the environment of the job",): list(request.nodes)}
    intention = change.plan(
        records,
        request.config.interface,
        [steps.check(knob, value)],
        change.Permissions(take_over=True, relax=True),
    )
    return change.explain(transport, intention.plans)


def _cycle_words(goal: objective.Goal, pairs: int) -> str:
    words = [f"{part.op} at {len(part.sizes_bytes)} sizes between {pairs} pairs" for part in goal.probes]
    return ", ".join(words + [part.command for part in goal.commands])


def patterns_of(knobs: str | None) -> list[str]:
    """Return the words of ``--knobs``; a value with blanks in it is quoted as for a shell."""
    try:
        return shlex.split(knobs or "")
    except ValueError as error:
        raise UsageError(f"--knobs {knobs!r}: {error}") from None


def _way(better: str) -> Literal["lower", "higher"]:
    if better == "lower":
        return "lower"
    if better == "higher":
        return "higher"
    raise UsageError(f"--better {better!r}: lower or higher")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

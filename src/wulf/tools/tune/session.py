"""A tuning run from the look at the nodes to the kept settings; new, or one that was interrupted."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from wulf.base import catalogue
from wulf.base.contracts import Say, Transport
from wulf.base.errors import UsageError
from wulf.base.records import (
    Candidate,
    ChangeOutcome,
    NodeRecord,
    Pair,
    Trial,
    TuneManifest,
    TunePlan,
    Tuning,
    Workload,
)
from wulf.base.store import find_run
from wulf.base.store.tuning import HEAD, TuningRun, TuningWriter, load_tuning
from wulf.base.text import count
from wulf.node.change import apply, steps
from wulf.node.change.guard import Guards
from wulf.node.cluster import inventory
from wulf.node.fleet import allocation, change, preparation
from wulf.node.fleet.new_run import head, new_seed
from wulf.node.trials import loop, prepare
from wulf.node.trials.bench import TrialRunner, job_line, open_runner
from wulf.node.trials.experiment import concurrency, objective
from wulf.node.trials.open_bench import CONFIRM_WITHIN_S, TuningSite, runner_for
from wulf.tools.tune import apply_result
from wulf.tools.tune.request import BUDGET_S, TuneRequest, WholeRequest

CONFIDENCE = 0.95
#: Chance that a run keeps anything useless, either way; shared by all values that are tried.
FALSE_DISCOVERY = 0.02
#: How often one of two settings is made that are measured in turn within one launch.
DWELLS = 8


class TuneTask(msgspec.Struct, frozen=True, kw_only=True):
    """What a new tuning run is to find out."""

    config: inventory.ClusterConfig
    nodes: list[str]
    goal: objective.Objective
    #: Knobs that are tried, as ``--knobs`` names them; empty for the goal's own.
    patterns: list[str]
    #: MPI library: a family or the path of a compiler; None for the one that is found.
    mpi: str | None
    budget_s: float
    #: Change of the objective that does not matter, as a share.
    margin: float
    seed: int
    permissions: change.Permissions
    #: Pairs that every trial measures; where they leave nodes out, those that show what is tried come with them.
    pairs: list[Pair] = []


def task_of(
    request: TuneRequest | WholeRequest,
    config: inventory.ClusterConfig,
    nodes: Sequence[str],
    say: Say,
    *,
    dry_run: bool = False,
) -> TuneTask:
    """Return what a request comes to on the nodes of a cluster that answer.

    Parameters
    ----------
    dry_run
        Whether nothing will be changed, which needs no right to.

    Raises
    ------
    ConfigError, UsageError
        The objective cannot be read, or a number is out of its range.
    TransportError
        This user cannot change settings of the nodes, which is asked before anything is built.
    """
    if not dry_run:
        change.require_right(config, nodes)
    mpi = request.mpi or config.mpi.compiler
    printed = (request.match, request.better, request.unit) if isinstance(request, TuneRequest) else ()
    return TuneTask(
        config=config,
        nodes=list(nodes),
        goal=prepare.goal(request.objective, mpi, say, *printed),
        patterns=list(request.knobs),
        mpi=mpi,
        budget_s=request.budget_s or BUDGET_S,
        margin=request.margin,
        seed=new_seed(request.seed),
        permissions=change.Permissions(take_over=request.take_over, relax=request.relax),
    )


class Watcher(loop.Watcher, Protocol):
    """Shows a person what is being done."""

    def note(self, text: str) -> None:
        """Say something that stays."""

    def begun(self, path: Path, manifest: TuneManifest) -> None:
        """Report a new run and its plan."""

    def interrupted(self, path: Path) -> None:
        """Report that the search was interrupted, with the nodes put back and the results kept."""


def start(task: TuneTask, path: Path, watcher: Watcher, *, set_kept: bool) -> TuningRun:
    """Make a new tuning run in a directory.

    Parameters
    ----------
    set_kept
        Whether what helps stays set at the end.

    Raises
    ------
    UsageError
        There is nothing to try; says why.
    KeyboardInterrupt
        With the nodes put back and the results kept.
    """
    begin = time.monotonic()
    task = msgspec.structs.replace(task, goal=prepare.placed(task.goal, task.config.transport))
    tools = prepare.tools_for(task.goal, task.mpi, watcher.stage)
    with (
        preparation.connect(task.config, task.nodes, watcher.stage) as (transport, records),
        change.guarded(task.config, transport) as guards,
    ):
        choice = _choose(task, records, tools, watcher.stage)
        ready = runner_for(task.config, transport, guards, records, tools, task.goal.commands, watcher.stage)
        workload = prepare.workload(task.goal, task.nodes, choice, task.pairs)
        with open_runner(ready.bench):
            watcher.stage("measuring the original settings")
            trial_s = loop.pilot(ready.bench, workload, task.goal.figures, task.seed)
            if task.budget_s >= concurrency.WORTH * trial_s:
                workload = loop.settle_company(
                    ready.bench, workload, task.goal.metrics, task.margin, task.seed, watcher.note
                )
            if workload.at_once:
                trial_s = loop.pilot(ready.bench, workload, task.goal.figures, task.seed)
            passed_s = time.monotonic() - begin
            left_s = allocation.left_of(task.budget_s, passed_s, "the search", watcher.note)
            task = msgspec.structs.replace(task, budget_s=allocation.capped(left_s, watcher.note))
            manifest = _manifest(task, path.name, choice, ready, records, workload, trial_s=trial_s)
            with TuningWriter.create(path, manifest, may_be_there=True) as writer:
                watcher.begun(path, manifest)
                result = _search(writer, [], ready.bench, watcher)
        if set_kept:
            _keep(path, result, task.config, guards, records, watcher)
    return load_tuning(path)


def go_on(name: str, runs: Path, budget_s: float | None, watcher: Watcher, *, set_kept: bool) -> TuningRun:
    """Go on with a tuning run that was interrupted.

    Parameters
    ----------
    budget_s
        Time for the rest [s]; None for as much as the run had at first.

    Raises
    ------
    UsageError
        It is complete, or the nodes are not as it found them.
    """
    path = find_run(name, runs, HEAD)
    manifest = load_tuning(path).manifest
    if manifest.status == "complete":
        raise UsageError(f"{path} is complete; there is nothing to go on with")
    config, tools = tools_of(manifest, str(path / HEAD), watcher.stage)
    with (
        preparation.connect(config, manifest.nodes, watcher.stage) as (transport, records),
        change.guarded(config, transport) as guards,
    ):
        _require_original(manifest, records, path)
        commands = [operation for operation in manifest.operations if operation.command]
        ready = runner_for(config, transport, guards, records, tools, commands, watcher.stage)
        with open_runner(ready.bench):
            watcher.stage("measuring the original settings")
            figures = objective.figures_of(manifest.plan.metrics)
            loop.pilot(ready.bench, manifest.workload, figures, manifest.plan.seed)
            earlier = load_tuning(path)
            with TuningWriter(path, earlier.manifest) as writer:
                rest_s = allocation.capped(budget_s or manifest.plan.budget_s, watcher.note)
                plan = msgspec.structs.replace(manifest.plan, budget_s=rest_s)
                writer.resumed(plan)
                watcher.note(f"run: {path}, going on after {count(len(earlier.trials), 'trial')}")
                result = _search(writer, earlier.trials, ready.bench, watcher)
        if set_kept:
            _keep(path, result, config, guards, records, watcher)
    return load_tuning(path)


def explain(
    task: TuneTask, say: Say
) -> tuple[prepare.Choice, dict[tuple[str, str], Mapping[tuple[str, ...], list[str]]]]:
    """Return what would be tried: the choice, and knob and value → the commands on which nodes; change nothing."""
    tools = prepare.tools_for(task.goal, task.mpi, say)
    with preparation.connect(task.config, task.nodes, say) as (transport, records):
        choice = _choose(task, records, tools, say)
        commands = {
            (candidate.knob, value): _commands(task, transport, records, candidate, value)
            for candidate in choice.candidates
            for value in candidate.values
        }
    return choice, commands


def tools_of(
    manifest: TuneManifest, origin: str, say: Say
) -> tuple[inventory.ClusterConfig, preparation.Toolbox | None]:
    """Return the cluster of a stored run, whose settings this user may change, and the probes that its trials need.

    Raises
    ------
    TransportError
        This user cannot change settings of the nodes, which is asked before anything is built.
    """
    config = inventory.parse(manifest.cluster, origin)
    change.require_right(config, manifest.nodes)
    mpi = manifest.software.get("mpi_compiler")
    ops = [operation.name for operation in manifest.operations if not operation.command]
    return config, preparation.toolbox(ops, str(mpi) if mpi else None, say) if ops else None


def _search(writer: TuningWriter, earlier: Sequence[Trial], bench: TrialRunner, watcher: Watcher) -> Tuning:
    try:
        return loop.search(writer, earlier, bench, watcher)
    except KeyboardInterrupt:
        watcher.interrupted(writer.path)
        raise


def _keep(
    path: Path,
    result: Tuning,
    config: inventory.ClusterConfig,
    guards: Guards,
    records: Sequence[NodeRecord],
    watcher: Watcher,
) -> None:
    """Set what the search kept, and write down under which change."""
    if not result.kept:
        return
    watcher.stage("setting what helps")
    try:
        outcome = apply_result.keep(
            guards,
            config,
            records,
            result.kept,
            deadline_s=CONFIRM_WITHIN_S,
            watch=watcher.stage,
        )
    except apply.Interrupted as stop:
        _note_kept(path, stop.outcome, watcher)
        raise
    _note_kept(path, outcome, watcher)


def _note_kept(path: Path, outcome: ChangeOutcome, watcher: Watcher) -> None:
    for note in outcome.notes:
        watcher.note(note)
    if not outcome.kept:
        watcher.note(f"what helps could not be set: {outcome.reason}")
    with TuningWriter(path, load_tuning(path).manifest) as writer:
        message = None if outcome.kept else outcome.reason
        changed = (outcome.change or None) if outcome.kept else None
        writer.update(change=changed, message=message)


def _choose(
    task: TuneTask, records: Sequence[NodeRecord], tools: preparation.Toolbox | None, say: Say
) -> prepare.Choice:
    library = prepare.library_of(tools, task.mpi, task.config, records, say)
    choice = prepare.choose(records, task.goal, task.patterns, library, task.permissions)
    if not choice.candidates:
        why = "\n".join(f"  {name}: {reason}" for name, reason in list(choice.left_out.items())[:20])
        raise UsageError(f"there is nothing to try:\n{why}")
    return choice


def _manifest(
    task: TuneTask,
    name: str,
    choice: prepare.Choice,
    ready: TuningSite,
    records: list[NodeRecord],
    workload: Workload,
    *,
    trial_s: float,
) -> TuneManifest:
    return TuneManifest(
        **head(name, task.config, ready.operations, ready.software),
        plan=TunePlan(
            objective=task.goal.name,
            metrics=task.goal.metrics,
            candidates=choice.candidates,
            budget_s=task.budget_s,
            trial_s=trial_s,
            margin=task.margin,
            false_discovery=FALSE_DISCOVERY,
            confidence=CONFIDENCE,
            seed=task.seed,
            # A command is begun anew under each setting.
            dwells=DWELLS if all(metric.figure is not None for metric in task.goal.metrics) else 0,
        ),
        workload=workload,
        profile=task.goal.profile,
        nodes=task.nodes,
        records=records,
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
                    "set it back (wulf settings status, wulf rollback), or start a new run"
                )


def _commands(
    task: TuneTask,
    transport: Transport,
    records: Sequence[NodeRecord],
    candidate: Candidate,
    value: str,
) -> Mapping[tuple[str, ...], list[str]]:
    knob = catalogue.knob(candidate.knob)
    variables = job_line({knob.id: value})
    if variables:
        return {(f"{variables} in the environment of the job",): list(task.nodes)}
    intention = change.plan(
        records,
        task.config.interface,
        {record.node: [steps.check(knob, value)] for record in records},
        change.VETTED,
    )
    return change.explain(transport, intention.plans)

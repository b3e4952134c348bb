"""A measured run from the look at the nodes to the analysis; new, or one that was interrupted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Protocol

import msgspec

from wulf.base import store
from wulf.base.contracts import Transport
from wulf.base.errors import TransportError, UsageError
from wulf.base.nodeset import fold, fold_reasons, reasons_text
from wulf.base.output_values import Unknown, cpu_list
from wulf.base.records import (
    REFERENCE_US,
    Analysis,
    FactValue,
    LaunchResult,
    LeftOut,
    Manifest,
    NodeRecord,
    Operation,
    Pair,
    Part,
    Place,
    Plan,
    Printed,
    Series,
    Workload,
    command_operation,
    printed_operation,
)
from wulf.base.store.files import timestamp
from wulf.base.text import count, printable
from wulf.node.cluster import inventory
from wulf.node.fleet import allocation, preparation
from wulf.node.fleet.new_run import head, new_seed
from wulf.node.measuring import emulation, fitting, loop, series
from wulf.node.measuring.emulation import Emulation
from wulf.node.measuring.participants import Task, absent, places
from wulf.node.probe import budget, command, ladder, schedule, suites
from wulf.node.probe.start import Measurer
from wulf.node.probe.suites import Experiment
from wulf.stats.core.trend import TESTABLE

CONFIDENCE = 0.95
#: What an operation that is made on one given CPU calls its number.
CPU = "CPU"
Outcome = tuple[store.Run, Analysis]


class MeasureRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a new run is to measure; its defaults are those of ``wulf measure``."""

    config: inventory.ClusterConfig
    pairs: list[Pair]
    #: See `wulf.node.probe.ladder.base_sizes`, which gives its sizes.
    ladder: str
    sizes_bytes: list[int]
    #: Names of operations; None for the usual ones.
    ops: list[str] | None = None
    #: Instead of `ops`: each with its own sizes and ranks; `ladder` then names where they come from.
    experiments: tuple[Experiment, ...] = ()
    #: A command for a shell on the first node, whose run time is measured, too; and how that is called.
    command: str = ""
    command_name: str = "command"
    #: Numbers that it prints.
    prints: tuple[Printed, ...] = ()
    #: So many ranks of it are started on the nodes, as an MPI program; 0 for a command that starts its own.
    command_ranks: int = 0
    #: Where it runs on the node; empty for where a login there begins.
    command_directory: str = ""
    #: MPI library: a family or the path of a compiler; None for the one that is found.
    mpi: str | None = None
    #: Launches are added until the interval is ± this wide, as a share.
    precision: float = 0.02
    budget_s: float = 300.0
    min_launches: int = 6
    max_launches: int = 40
    sweeps: int = 5
    visit_us: int = 1000
    #: Make visits of the node-local reference beside those of the operations.
    reference: bool = True
    seed: int = msgspec.field(default_factory=new_seed)
    #: A pattern that is performed, and nothing else.
    emulation: Emulation | None = None
    #: Pairs that have no node in common are measured at the same time, in one job.
    at_once: bool = False
    #: Of an operation in which all nodes take part.
    ranks_per_node: int = 1
    #: Where operations on files have them, and how far threads may call the MPI library; see `Workload`.
    directory: str = ""
    thread_level: str = ""
    #: No operation says anything without the others: each gets fewer launches before any gets none.
    all_needed: bool = False
    #: From one block of launches to the next [s]: `budget_s` is then how long blocks are made; None for one after the
    #: other, until all is precise or the budget is spent.
    every_s: float | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be measured.

        Raises
        ------
        UsageError
            A number is outside its range.
        """
        if not 1 <= self.min_launches <= self.max_launches:
            raise UsageError("--min-launches must be at least 1 and not above --max-launches")
        if not 3 <= self.sweeps <= 1000:
            raise UsageError("--sweeps must be between 3 and 1000")
        if not 10 <= self.visit_us <= 1_000_000:
            raise UsageError(f"--visit {self.visit_us}us: a visit lasts between 10us and 1s")
        if self.ranks_per_node < 1 or self.ranks_per_node != int(self.ranks_per_node):
            raise UsageError(f"--ranks-per-node {self.ranks_per_node}: a whole number, 1 or more")
        if self.command_ranks < 0:
            raise UsageError(f"--ranks {self.command_ranks}: 1 or more")
        if self.seed < 0:
            raise UsageError("--seed must not be negative")
        if self.every_s is not None and not 1 <= self.every_s <= self.budget_s:
            raise UsageError(f"--every {self.every_s:g}s: at least a second, and no more than --for")


class Watcher(loop.Watcher, Protocol):
    """Shows a person what is being done."""

    def note(self, text: str) -> None:
        """Say something that stays."""

    def interrupted(self, path: Path) -> None:
        """Report that the run was interrupted, with the results kept."""


def start(request: MeasureRequest, path: Path, watcher: Watcher) -> Outcome:
    """Measure a new run in a directory.

    Raises
    ------
    KeyboardInterrupt
        After the run has been marked as interrupted; what was measured is kept.
    """
    with ExitStack() as stack:
        tools, tasks, transport, records, pairs = stack.enter_context(_looked(request, watcher))
        measurer = stack.enter_context(
            _installed(request.emulation, request.config, transport, tasks[0].place)
        )
        ready = preparation.ready(request.config, transport, records, tools, watcher.stage, measurer)
        request = _within_allocation(request, watcher)
        plan = _plan(request, tasks, pairs, ready.left_out)
        _require_some(plan, watcher)
        with store.create(path, _manifest(request, path.name, plan, tools.operations, ready)) as writer:
            watcher.note(f"run: {path}")
            if request.emulation is not None:
                request.emulation.keep(path)
            for record in records:
                writer.append(record)
            return _measure(writer, [], ready, watcher)


def go_on(name: str, runs: Path, budget_s: float | None, watcher: Watcher) -> Outcome:
    """Go on with a measured run that was interrupted, as it was begun.

    Parameters
    ----------
    budget_s
        Time for the rest [s]; None for as much as the run had at first.

    Raises
    ------
    UsageError
        It is complete, or it was begun with another probe.
    """
    path = store.find_run(name, runs)
    manifest = store.load(path).manifest
    if manifest.status == "complete":
        raise UsageError(f"{path} is complete; there is nothing to go on with")
    if manifest.plan.series is not None and budget_s is not None:
        raise UsageError(f"{path} is a series and goes on until its own end: it takes no --budget")
    config = inventory.parse(manifest.cluster, str(path / store.MANIFEST))
    performed = emulation.kept(path)
    tools = _tools_again(manifest, performed, watcher)
    places = manifest.plan.workload.places
    members = _members(config, places)
    with ExitStack() as stack:
        transport, records = stack.enter_context(preparation.connect(config, members, watcher.stage))
        preparation.measurable(places, records)
        measurer = stack.enter_context(_installed(performed, config, transport, places[0]))
        ready = preparation.ready(config, transport, records, tools, watcher.stage, measurer)
        _require_same(manifest, ready.software, path)
        earlier, writer = store.resume(path)
        with writer:
            plan = msgspec.structs.replace(
                manifest.plan,
                budget_s=_rest_s(manifest.plan, budget_s, watcher),
                left_out=absent(manifest.plan.workload, manifest.operations, ready.left_out),
            )
            _require_some(plan, watcher)
            writer.resumed(plan)
            watcher.note(f"run: {path}, going on after {count(len(earlier.results), 'launch')}")
            return _measure(writer, earlier.results, ready, watcher)


def _tools_again(manifest: Manifest, performed: Emulation | None, watcher: Watcher) -> preparation.Toolbox:
    """Build what a run was begun with."""
    mpi = manifest.software.get("mpi_compiler")
    compiler = str(mpi) if mpi else None
    if performed is not None:
        tools = performed.toolbox(compiler, watcher.stage)
    else:
        asked = [
            operation.asked or operation.name
            for operation in manifest.operations
            if operation.transport != "command"
        ]
        directory = manifest.plan.workload.directory
        tools = preparation.toolbox(list(dict.fromkeys(asked)), compiler, watcher.stage, directory)
    return msgspec.structs.replace(tools, operations=manifest.operations)


def _installed(
    performed: Emulation | None, config: inventory.ClusterConfig, transport: Transport, place: Place
) -> AbstractContextManager[Measurer | None]:
    """Have ready on the first node what a launch performs, where that is a pattern."""
    return performed.installed(config, transport, place[0]) if performed is not None else nullcontext()


def foretell(request: MeasureRequest, watcher: Watcher) -> tuple[Plan, budget.Fit]:
    """Return what would be measured, and what of it fits into the budget; start nothing on the nodes."""
    with _looked(request, watcher) as (tools, tasks, transport, _, pairs):
        plan = _plan(_within_allocation(request, watcher), tasks, pairs, [])
        _require_some(plan, watcher)
        look_s = preparation.look_s(request.config, transport, pairs[0])
    return plan, fitting.forecast(plan, tools.operations, look_s)


def _within_allocation(request: MeasureRequest, watcher: Watcher) -> MeasureRequest:
    return msgspec.structs.replace(request, budget_s=allocation.capped(request.budget_s, watcher.note))


def _rest_s(plan: Plan, budget_s: float | None, watcher: Watcher) -> float:
    """Return the time for the rest of a run [s]; a series has its own end."""
    if plan.series is not None:
        return plan.budget_s
    return allocation.capped(budget_s or plan.budget_s, watcher.note)


def _tools(request: MeasureRequest, watcher: Watcher) -> tuple[preparation.Toolbox, list[Task]]:
    """Build the probes, and say what is measured with them; a command is one operation more."""
    if request.emulation is not None:
        tools = request.emulation.toolbox(request.mpi, watcher.stage)
        tasks = [Task(tools.operations[0], [0], place=request.emulation.place)]
    elif request.experiments:
        names = list(dict.fromkeys(experiment.op for experiment in request.experiments))
        tools = preparation.toolbox(names, request.mpi, watcher.stage, request.directory)
        tasks = list(_experiments(request, dict(zip(names, tools.operations, strict=True))))
        suites.require_different([task.operation.name for task in tasks], request.ladder)
    else:
        ops = [] if request.command and request.ops is None else request.ops
        tools = preparation.toolbox(ops, request.mpi, watcher.stage, request.directory)
        tasks = [
            Task(operation, request.sizes_bytes, ranks_per_node=request.ranks_per_node)
            for operation in tools.operations
        ]
    if request.command:
        asked = command_operation(request.command, name=request.command_name)
        tasks.append(Task(asked, request.sizes_bytes, request.command_ranks))
    return msgspec.structs.replace(tools, operations=[task.operation for task in tasks]), tasks


def _experiments(request: MeasureRequest, operations: Mapping[str, Operation]) -> Iterator[Task]:
    """Yield what a plan's experiments are, with the names that they have in the run."""
    nodes = {node for pair in request.pairs for node in pair}
    for number, experiment in enumerate(request.experiments, 1):
        operation = operations[experiment.op]
        sizes = [size for size in experiment.sizes_bytes() if size <= max(request.sizes_bytes)]
        try:
            if not sizes:
                raise UsageError("--max-size leaves nothing of its sizes")
            if operation.ranks and (experiment.ranks != "all" or experiment.per_node):
                raise UsageError(f"ranks: {experiment.op} does not depend on their number")
            if experiment.inside and not operation.between_pairs:
                raise UsageError(f"inside: {experiment.op} is not measured between two ranks")
            if experiment.each_cpu and (operation.parameter is None or operation.parameter.name != CPU):
                raise UsageError(f"each_cpu: {experiment.op} is not performed on a given CPU")
            each_cpu = experiment if experiment.each_cpu else None
            for name, ranks, per_node in experiment.companies(len(nodes), request.ranks_per_node):
                if not operation.ranks and 0 < ranks <= per_node:
                    raise UsageError(
                        f"ranks: {ranks} with {per_node} of each node are on one node: it needs two"
                    )
                called = _called(operation, name, experiment.foreign)
                yield Task(
                    called,
                    sizes,
                    ranks,
                    per_node,
                    inside=experiment.inside,
                    each_cpu=each_cpu,
                    most_places=experiment.places,
                )
        except UsageError as error:
            raise UsageError(f"{request.ladder}: experiment {number} ({experiment.op}): {error}") from error


def _called(operation: Operation, name: str | None, foreign: suites.Foreign) -> Operation:
    """Return an operation as an experiment has it, with its name in the run."""
    wanted = name or (operation.name + suites.beside(foreign) if foreign else operation.name)
    asked = operation.name if wanted != operation.name else operation.asked
    return msgspec.structs.replace(
        operation,
        name=wanted,
        asked=asked,
        beside_traffic=bool(foreign),
        beside_pattern=foreign if isinstance(foreign, str) else "",
    )


@contextmanager
def _looked(
    request: MeasureRequest, watcher: Watcher
) -> Iterator[tuple[preparation.Toolbox, list[Task], Transport, list[NodeRecord], list[Pair]]]:
    """Build the probes and look at the nodes; yields the pairs that answer, too."""
    tools, tasks = _tools(request, watcher)
    _require_possible(request, tools.operations)
    members = _members(request.config, request.pairs)
    with preparation.connect(request.config, members, watcher.stage) as (transport, records):
        pairs, lost = preparation.measurable(request.pairs, records)
        _say_lost(lost, records, watcher)
        measured = {node for pair in pairs for node in pair}
        tasks = list(_on_each_cpu(tasks, [one for one in records if one.node in measured], watcher))
        if (request.command_ranks or request.emulation is not None) and lost:
            raise TransportError("every node must take part in an MPI job of so many ranks: see --nodes")
        tasks = [_as_started(request, task, pairs, transport, records, watcher) for task in tasks]
        tools = msgspec.structs.replace(tools, operations=[task.operation for task in tasks])
        yield tools, tasks, transport, records, pairs


def _members(config: inventory.ClusterConfig, places: Sequence[Place]) -> list[str]:
    """Return who takes part, in the order of the cluster."""
    taking_part = {node for place in places for node in place}
    return [node for node in config.nodes if node in taking_part]


def _as_started(
    request: MeasureRequest,
    task: Task,
    pairs: Sequence[Pair],
    transport: Transport,
    records: Sequence[NodeRecord],
    watcher: Watcher,
) -> Task:
    """Return a task whose command is started where it is to run, as an MPI job if it is to have ranks."""
    operation = task.operation
    if not operation.command:
        return task
    whole = operation.command
    if request.command_ranks:
        (place,) = places(task, pairs, [])
        whole = preparation.mpi_command(
            request.config, transport, records, request.mpi, place, whole, watcher.stage
        )
    whole = command.placed(whole, request.config.transport, request.command_directory)
    return task._replace(operation=msgspec.structs.replace(operation, command=whole))


def _on_each_cpu(tasks: Sequence[Task], records: Sequence[NodeRecord], watcher: Watcher) -> Iterator[Task]:
    """Yield all tasks, one for each CPU in place of one that is made on every CPU; not every node has every CPU."""
    cpus = {record.node: _cpus(record) for record in records if record.reachable}
    strange = [node for node, known in cpus.items() if not known]
    for task in tasks:
        if task.each_cpu is None:
            yield task
            continue
        if strange:
            watcher.note(f"{task.operation.name} is not measured on {fold(strange)}: no CPUs are known there")
        for cpu in suites.chosen_cpus(cpus.values()):
            name, asked = task.each_cpu.on_cpu(cpu)
            yield Task(
                msgspec.structs.replace(task.operation, name=name, asked=asked),
                task.sizes_bytes,
                nodes=frozenset(node for node, known in cpus.items() if cpu in known),
            )


def _cpus(record: NodeRecord) -> list[int]:
    """Return the CPUs that processes may run on there; none where the node does not say."""
    try:
        return cpu_list(str(record.facts.get("cpu.allowed")))
    except Unknown:
        return []


def _say_lost(lost: Sequence[Pair], records: Sequence[NodeRecord], watcher: Watcher) -> None:
    """Say how many pairs have a node that does not answer, and why those nodes do not."""
    if not lost:
        return
    watcher.note(f"not measured: {len(lost)} pair{'s' * (len(lost) > 1)} with a node that does not answer")
    down = {record.node: record.error or "does not answer" for record in records if not record.reachable}
    for nodes, reason in fold_reasons(down):
        watcher.note(f"  {fold(nodes)}: {printable(reason, 300)}")


def _require_some(plan: Plan, watcher: Watcher) -> None:
    """Name the nodes that cannot take part; refuse when nothing is left."""
    for ops in dict.fromkeys(tuple(lack.ops) for lack in plan.left_out):
        reasons = {lack.node: lack.reason for lack in plan.left_out if tuple(lack.ops) == ops}
        watcher.note(f"left out of {', '.join(ops)}: {printable(reasons_text(reasons), 1000)}")
    if not schedule.streams(plan):
        absent_for = {lack.node: lack.reason for lack in plan.left_out}
        raise TransportError(f"no pair of nodes can be measured: {reasons_text(absent_for)}")


def _require_same(manifest: Manifest, now: Mapping[str, FactValue], path: Path) -> None:
    """Refuse to go on with another probe: its launches would look like noise, or hide a difference."""
    for fact in ("probe_net_sha256", "probe_mpi_sha256", "mpi"):
        if manifest.software.get(fact) != now.get(fact):
            raise UsageError(
                f"{path} was begun with {fact} {manifest.software.get(fact)}, here it is {now.get(fact)}: "
                "measure a new run and compare the two"
            )


def _plan(request: MeasureRequest, tasks: Sequence[Task], pairs: list[Pair], left_out: list[LeftOut]) -> Plan:
    if request.at_once:
        _require_company(pairs)  # of those that answer
    performed = request.emulation
    workload = Workload(
        parts=[
            Part(
                op=task.operation.name,
                sizes_bytes=ladder.sizes_of(task.operation, task.sizes_bytes),
                places=places(task, pairs, left_out),
                group=task.inside or not task.operation.between_pairs,
            )
            for task in tasks
        ],
        sweeps=request.sweeps if performed is None else performed.pattern.passes,
        visit_us=request.visit_us if performed is None else max(1, round(performed.pattern.least_s * 1e6)),
        at_once=request.at_once,
        accompanied=[
            task.operation.name for task in tasks if request.at_once and task.operation.transport == "net"
        ],
        reference_us=REFERENCE_US if request.reference else 0,
        directory=request.directory,
        thread_level=request.thread_level,
    )
    return Plan(
        workload=workload,
        ladder=request.ladder,
        max_size_bytes=max(size for task in tasks for size in task.sizes_bytes),
        precision=request.precision,
        confidence=CONFIDENCE,
        budget_s=request.budget_s,
        min_launches=request.min_launches,
        max_launches=request.max_launches,
        tested_launches=TESTABLE,
        seed=request.seed,
        left_out=absent(workload, [task.operation for task in tasks], left_out),
        all_needed=request.all_needed,
        series=_series(request),
    )


def _series(request: MeasureRequest) -> Series | None:
    if request.every_s is None:
        return None
    return Series(
        every_s=request.every_s,
        for_s=request.budget_s,
        begun_at=timestamp("milliseconds"),
        time_zone=series.time_zone(),
    )


def _require_possible(request: MeasureRequest, operations: Sequence[Operation]) -> None:
    """Refuse who cannot take part as was asked, before anything is done on the nodes."""
    if not operations:
        raise UsageError("no operation is named (--ops)")
    if request.ranks_per_node > 1 and not any(op.ranks == 0 and not op.command for op in operations):
        raise UsageError("--ranks-per-node is for operations of all nodes (mpi_bcast): name one with --ops")
    if not request.at_once:
        return
    for operation in operations:
        if operation.beside_traffic:
            raise UsageError(f"--at-once: {operation.name} takes the other nodes for its own traffic")
        if operation.transport not in ("mpi", "net") or not operation.between_pairs:
            raise UsageError(
                f"--at-once: {operation.name} is not measured between two nodes: name operations that are with --ops"
            )
    _require_company(request.pairs)


def _require_company(pairs: Sequence[Pair]) -> None:
    deserted = schedule.alone([("", pair) for pair in pairs])
    if deserted:
        names = ", ".join(":".join(pair) for _, pair in deserted[:4])
        raise UsageError(
            f"--at-once: {names} and all other pairs have a node in common: nothing could be measured "
            "at the same time (see --pairs)"
        )


def _manifest(
    request: MeasureRequest,
    name: str,
    plan: Plan,
    operations: Sequence[Operation],
    ready: preparation.MeasuringSite,
) -> Manifest:
    if request.emulation is not None:
        printed = request.emulation.operations[1:]
    else:
        printed = [
            printed_operation(one, operation)
            for operation in operations
            if operation.command
            for one in request.prints
        ]
    return Manifest(**head(name, request.config, [*operations, *printed], ready.software), plan=plan)


def _measure(
    writer: store.Writer, earlier: list[LaunchResult], ready: preparation.MeasuringSite, watcher: Watcher
) -> Outcome:
    try:
        return loop.measure(writer, earlier, ready.launch, watcher, ready.look_s)
    except KeyboardInterrupt:
        watcher.interrupted(writer.path)
        raise

"""Runs of a study on the nodes: what the levels make different is made so, and every metric is measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from wulf.base import catalogue
from wulf.base.contracts import Say, Transport
from wulf.base.errors import ConfigError, TransportError, UsageError, WulfError
from wulf.base.nodeset import reasons_text
from wulf.base.output_values import Unknown
from wulf.base.records import NodeRecord, Operation, Pair, Part, Place, Values, Workload
from wulf.base.text import nearest
from wulf.node.change import steps
from wulf.node.change.transaction import NotRestoredError, StepError
from wulf.node.cluster import inventory
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.fleet import change, interfaces, power, preparation
from wulf.node.fleet.clusters import cluster
from wulf.node.fleet.placement import spread
from wulf.node.probe import command, ladder
from wulf.node.probe.execute import RunLaunch
from wulf.node.programs import blas_libraries, blas_runs
from wulf.node.trials.bench import TrialError, TrialRunner, job_environment, on_nodes
from wulf.stats import estimate
from wulf.tools.study import mix
from wulf.tools.study.factors import CABLED, SWITCHED
from wulf.tools.study.metrics import filled
from wulf.tools.study.mix import Mix
from wulf.tools.study.record import StudyFactor, StudyLevel, StudyMetric, StudyPlan, StudyProblem

#: A command that makes something may take so long [s].
BUILD_S = 3600.0


class HplPlace(NamedTuple):
    """Where a problem of HPL is solved."""

    config: ClusterConfig
    transport: Transport
    records: Sequence[NodeRecord]
    #: MPI library that starts it; None for that of the program.
    mpi: str | None
    ranks_per_node: int
    environment: Mapping[str, str]


class Hpl(Protocol):
    """What knows of HPL: a tool of its own."""

    def solve(self, place: HplPlace, problem: StudyProblem, program: str) -> float:
        """Solve a problem once; return the rate [GFLOPS]. Raises TrialError where that failed."""

    def require(self, place: HplPlace, problem: StudyProblem, program: str) -> None:
        """Raise WulfError where the nodes have no HPL, or too few CPUs for the grid."""


class Conditions(NamedTuple):
    """What the levels of a combination make together."""

    set: Values
    environment: dict[str, str]
    mpi: str
    blas: str
    interface: str
    cluster: str
    pairs: str
    ranks: int
    ranks_per_node: int
    #: Factor → its level, which commands may name.
    levels: dict[str, StudyLevel]


class Measured(NamedTuple):
    """What one run of all metrics gave."""

    values: dict[str, float]
    failures: dict[str, str]
    contamination: list[str]


def conditions(factors: Sequence[StudyFactor], levels: Mapping[str, str]) -> Conditions:
    """Return what a combination of levels makes different."""
    chosen = {
        factor.name: next(level for level in factor.levels if level.name == levels[factor.name])
        for factor in factors
    }
    every = list(chosen.values())

    def one(key: str) -> str:
        return next((getattr(level, key) for level in every if getattr(level, key)), "")

    return Conditions(
        set={name: value for level in every for name, value in level.set.items()},
        environment={name: value for level in every for name, value in level.environment.items()},
        mpi=one("mpi"),
        blas=one("blas"),
        interface=one("interface"),
        cluster=one("cluster"),
        pairs=one("pairs"),
        ranks=int(one("ranks") or 0),
        ranks_per_node=int(one("ranks_per_node") or 0),
        levels=chosen,
    )


class Where(NamedTuple):
    """A cluster and an interface of it."""

    cluster: str
    interface: str


class Asked(NamedTuple):
    """What all runs have in common."""

    config: ClusterConfig
    nodes: str | None
    mpi: str | None
    permissions: change.Permissions
    hpl: Hpl
    #: Where scripts and output of Slurm's jobs go; all nodes see it.
    jobs: Path


class Stand:
    """Nodes of one cluster behind one interface, ready to be measured."""

    def __init__(
        self,
        asked: Asked,
        config: ClusterConfig,
        transport: Transport,
        records: list[NodeRecord],
        bench: TrialRunner,
        say: Say,
    ) -> None:
        self.asked, self.config, self.transport, self.records, self.bench = (
            asked,
            config,
            transport,
            records,
            bench,
        )
        self.nodes = [record.node for record in records]
        self._say = say
        self._ready: dict[tuple[str, str | None], tuple[RunLaunch, Operation]] = {}

    def probe(self, op: str, mpi: str | None) -> tuple[RunLaunch, Operation]:
        """Return how an operation is launched with an MPI library; raises WulfError where that cannot be had."""
        key = op, mpi
        if key not in self._ready:
            tools = preparation.toolbox([op], mpi, self._say)
            ready = preparation.ready(self.config, self.transport, self.records, tools, self._say)
            if ready.left_out:
                raise UsageError("; ".join(lack.reason for lack in ready.left_out))
            self._ready[key] = ready.launch, tools.operations[0]
        return self._ready[key]

    def blas(self, name: str) -> dict[str, str]:
        """Return the variables with which programs use a BLAS library; raises UsageError where a node has it not."""
        if name.startswith("/"):
            return blas_libraries.environment(name)
        found, lacking = blas_runs.installed(self.transport, self.nodes)
        paths = {library.name: library.path for library in found}
        if name not in paths:
            raise UsageError(
                lacking.get(name)
                or f"no BLAS library is called {name!r}{nearest(name, paths)} ('wulf bench blas' names them)"
            )
        return blas_libraries.environment(paths[name])


class Performer:
    """Makes the runs of a study; use it through `opened`."""

    def __init__(self, asked: Asked, stack: ExitStack, say: Say) -> None:
        self._asked, self._stack, self._say = asked, stack, say
        self._stands: dict[Where, Stand] = {}
        #: The one whose nodes are taken: the same nodes may be behind several.
        self._taken: Stand | None = None
        self._settings: set[Where] = set()
        self._blas: dict[tuple[Where, str], dict[str, str]] = {}

    def stand(self, where: Where) -> Stand:
        """Return the nodes of a cluster behind an interface, looked at."""
        if where not in self._stands:
            self._stands[where] = self._opened(where)
        return self._stands[where]

    def _opened(self, where: Where) -> Stand:
        asked = self._asked
        config = cluster(where.cluster) if where.cluster else asked.config
        if where.interface:
            config = msgspec.structs.replace(config, interface=where.interface, addresses={})
        nodes = nodes_of(config, None if where.cluster else asked.nodes)
        transport, records = self._stack.enter_context(preparation.connect(config, nodes, self._say))
        down = {record.node: record.error or "does not answer" for record in records if not record.reachable}
        if down:
            raise TransportError(f"every node must take part: {reasons_text(down)}")
        if where.interface:
            config = msgspec.structs.replace(config, addresses=_addresses(records, where.interface))
        guards = self._stack.enter_context(change.guarded(config, transport))
        bench = TrialRunner(config, transport, guards, None, records, {})
        return Stand(asked, config, transport, records, bench, self._say)

    def where(self, wanted: Conditions) -> Where:
        """Return where a combination is measured."""
        return Where(wanted.cluster, wanted.interface)

    def release(self) -> None:
        """Put everything back and let the nodes go."""
        taken, self._taken = self._taken, None
        if taken is not None:
            taken.bench.release()

    def _set(self, stand: Stand, setting: Values) -> None:
        """Make the nodes have a setting, and no other."""
        if self._taken is not None and self._taken is not stand:
            self.release()
        if self._taken is None and not on_nodes(setting):
            stand.bench.set(setting)
            return
        if self._taken is None:
            self._taken = stand
            stand.bench.take()
        stand.bench.set(setting)

    def run(self, plan: StudyPlan, wanted: Conditions, seed: int) -> Measured:
        """Measure all metrics once under a combination; a failure is part of the result.

        Raises
        ------
        NotRestoredError
            A node could not be put back.
        """
        gathered = Measured({}, {}, [])
        stand = self.stand(self.where(wanted))
        try:
            self._set(stand, wanted.set)
        except NotRestoredError:
            raise
        except StepError as failure:
            gathered.failures.update(_without(plan.metrics, failure))
            return gathered
        for metric in plan.metrics:
            try:
                self._metric(plan, metric, stand, wanted, seed, gathered)
            except NotRestoredError:
                raise
            except WulfError as failure:
                gathered.failures.update(_without([metric], failure))
        return gathered

    def _metric(
        self,
        plan: StudyPlan,
        metric: StudyMetric,
        stand: Stand,
        wanted: Conditions,
        seed: int,
        gathered: Measured,
    ) -> None:
        variables = {**wanted.environment, **(stand.blas(wanted.blas) if wanted.blas else {})}
        if metric.kind == "hpl":
            assert metric.hpl is not None
            everything = {**stand.config.mpi.env, **job_environment(wanted.set), **variables}
            place = HplPlace(
                stand.config,
                stand.transport,
                stand.records,
                wanted.mpi or self._asked.mpi,
                wanted.ranks_per_node,
                everything,
            )
            with stand.bench.held():
                gathered.values[metric.name] = self._asked.hpl.solve(place, metric.hpl, metric.program)
        elif metric.kind == "jobs":
            self._jobs(metric, stand, wanted, variables, seed, gathered)
        elif metric.kind == "command":
            self._command(metric, stand, wanted, variables, gathered)
        else:
            self._operation(plan, metric, stand, wanted, (seed, variables), gathered)

    def _jobs(
        self,
        metric: StudyMetric,
        stand: Stand,
        wanted: Conditions,
        variables: Mapping[str, str],
        seed: int,
        gathered: Measured,
    ) -> None:
        jobs = [
            msgspec.structs.replace(
                job,
                command=filled(job.command, wanted.levels),
                options=filled(job.options, wanted.levels),
            )
            for job in metric.jobs
        ]
        env = {**job_environment(wanted.set), **variables}
        asked = Mix(jobs, metric.gap_s, stand.nodes, env, self._asked.jobs)
        found = mix.run(asked, seed, stand.bench.held, self._say)
        gathered.values.update({f"{metric.name} {what}": value for what, value in found.values.items()})
        gathered.contamination.extend(found.others)

    def _command(
        self,
        metric: StudyMetric,
        stand: Stand,
        wanted: Conditions,
        variables: Mapping[str, str],
        gathered: Measured,
    ) -> None:
        text = filled(metric.command, wanted.levels)
        ranks = wanted.ranks or wanted.ranks_per_node * len(stand.nodes) or metric.ranks
        if metric.ranks:
            mpi = wanted.mpi or self._asked.mpi
            place = spread(stand.nodes, ranks)
            text = preparation.mpi_command(
                stand.config, stand.transport, stand.records, mpi, place, text, self._say
            )
        text = command.placed(text, stand.config.transport)
        env = {**job_environment(wanted.set), **variables}
        nodes = stand.nodes[: 1 if stand.config.transport == "local" else None]
        with (
            stand.bench.held(),
            power.Meter(stand.transport, nodes) if metric.energy else nullcontext() as meter,
        ):
            ran = command.run(stand.transport, stand.nodes[0], text, env)
        run_time_s = command.run_time_s(ran)
        value = command.number(metric.match, ran) if metric.match else run_time_s
        if not 0 < value < math.inf:
            raise TrialError(f"{value:g}: only numbers above zero can be compared as ratios")
        gathered.values[metric.name] = value
        if meter is not None and metric.energy:
            try:
                gathered.values[metric.energy_figure] = power.joules(
                    meter.readings, metric.energy, run_time_s
                )
            except Unknown as lack:
                gathered.failures[metric.energy_figure] = str(lack)

    def _operation(
        self,
        plan: StudyPlan,
        metric: StudyMetric,
        stand: Stand,
        wanted: Conditions,
        how: tuple[int, Mapping[str, str]],
        gathered: Measured,
    ) -> None:
        launch, operation = stand.probe(metric.op, wanted.mpi or self._asked.mpi)
        places = _places(operation, stand, wanted, metric)
        sizes = ladder.sizes_of(operation, metric.sizes_bytes)
        part = Part(op=operation.name, sizes_bytes=sizes, places=places, group=not operation.between_pairs)
        workload = Workload(parts=[part], sweeps=plan.sweeps, visit_us=plan.visit_us)
        stand.bench.use(launch, [operation])
        seed, variables = how
        logs: dict[int, list[float]] = {}
        for result in stand.bench.launches(workload, seed, variables):
            gathered.contamination.extend(result.launch.contamination)
            for cell, (median, _) in estimate.medians(result).items():
                logs.setdefault(cell.size_bytes, []).append(math.log(median))
        for name, size in metric.figures:
            if size in logs:
                time_s = math.exp(sum(logs[size]) / len(logs[size]))
                gathered.values[name] = size / time_s if metric.bandwidth else time_s


def _without(metrics: Sequence[StudyMetric], failure: Exception) -> dict[str, str]:
    """Return what a failure leaves without a value, and the reason."""
    return {metric.of(figure).name: str(failure) for metric in metrics for figure, _ in metric.figures}


def _places(operation: Operation, stand: Stand, wanted: Conditions, metric: StudyMetric) -> list[Place]:
    """Return who takes part: the pairs, as many ranks of all nodes as are wanted, or each node alone."""
    if operation.between_pairs:
        return list(pairs(wanted.pairs or "ring", stand.config, stand.nodes))
    if not operation.of_all:
        return [(node,) for node in stand.nodes]
    ranks = wanted.ranks or metric.ranks or len(stand.nodes) * max(wanted.ranks_per_node, 1)
    return [spread(stand.nodes, ranks)]


def nodes_of(config: ClusterConfig, nodes: str | None) -> list[str]:
    """Return the nodes of a cluster that take part; all of this machine's."""
    return config.select(None if config.transport == "local" else nodes)


def pairs(text: str, config: ClusterConfig, nodes: Sequence[str]) -> list[Pair]:
    """Return pairs of nodes, as ``--pairs`` takes them; or those that a cable joins, or that none does.

    Raises
    ------
    UsageError
        They cannot be read, or there are none.
    """
    if text not in (CABLED, SWITCHED):
        return inventory.pairs(text, list(nodes))
    joined = {frozenset(link.nodes) for link in config.links}
    if not joined:
        raise UsageError("the cluster file has no direct links ([cluster] links)")
    every = [(a, b) for number, a in enumerate(nodes) for b in nodes[number + 1 :]]
    found = [pair for pair in every if (frozenset(pair) in joined) == (text == CABLED)]
    if not found:
        raise UsageError(f"no two of {', '.join(nodes)} are {text}")
    return found[: max(len(nodes), 1)]


def _addresses(records: Sequence[NodeRecord], interface: str) -> dict[str, str]:
    """Return the address of every node on an interface; raises UsageError where a node has none."""
    found: dict[str, str] = {}
    for record in records:
        words = str(record.facts.get("nic.addresses", "")).replace(",", " ").split()
        plain = [word.partition("/")[0] for word in words]
        known = next((word for word in plain if word.count(".") == 3), None)
        if known is None:
            raise UsageError(f"{record.node}: there is no interface {interface}, or it has no IPv4 address")
        found[record.node] = known
    return found


@contextmanager
def opened(asked: Asked, say: Say) -> Iterator[Performer]:
    """Open what makes the runs of a study; whatever happens, the nodes are as they were when the context ends."""
    with ExitStack() as stack:
        performer = Performer(asked, stack, say)
        try:
            yield performer
        finally:
            performer.release()


def missing(
    factors: Sequence[StudyFactor],
    metrics: Sequence[StudyMetric],
    known: Mapping[str, str],
    asked: Asked,
    performer: Performer,
) -> dict[str, str]:
    """Return which levels (``factor: level``) and metrics cannot be had on these nodes, and why.

    Parameters
    ----------
    known
        Those that are not asked for, as it is known that they cannot be had.
    """
    found = dict(known)
    mpi = {level.mpi or asked.mpi for factor in factors for level in factor.levels}
    for metric in metrics:
        if metric.name in found:
            continue
        reason = _metric_missing(metric, performer, asked.mpi if mpi <= {None} else next(iter(mpi)))
        if reason:
            found[metric.name] = reason
    ops = [metric.op for metric in metrics if metric.kind == "operation" and metric.name not in found]
    for factor in factors:
        for level in factor.levels:
            place = f"{factor.name}: {level.name}"
            reason = "" if place in found else _level_missing(level, performer, ops)
            if reason:
                found[place] = reason
    return found


def _metric_missing(metric: StudyMetric, performer: Performer, mpi: str | None) -> str:
    """Return why a metric cannot be had; empty when it can, or only a run of it tells."""
    stand = performer.stand(Where("", ""))
    try:
        if metric.kind == "operation":
            stand.probe(metric.op, mpi)
        elif metric.hpl is not None:
            place = HplPlace(stand.config, stand.transport, stand.records, mpi, 0, {})
            stand.asked.hpl.require(place, metric.hpl, metric.program)
        elif metric.kind == "jobs":
            mix.require(stand.nodes)
    except (TransportError, KeyboardInterrupt):
        raise
    except WulfError as failure:
        return str(failure)
    return ""


def _level_missing(level: StudyLevel, performer: Performer, ops: Sequence[str]) -> str:
    """Return why a level cannot be had; empty when it can."""
    try:
        stand = performer.stand(Where(level.cluster, level.interface))
        _require_settable(level.set, stand)
        if level.mpi:
            for op in ops:
                stand.probe(op, level.mpi)
        if level.blas:
            stand.blas(level.blas)
        if level.pairs:
            pairs(level.pairs, stand.config, stand.nodes)
        if level.build:
            _built(level.build, stand)
    except NotRestoredError:
        raise
    except (WulfError, ConfigError) as failure:
        return " ".join(str(failure).split())
    return ""


def _require_settable(setting: Values, stand: Stand) -> None:
    """Refuse a setting that the nodes do not allow, or that cannot be set by this user."""
    wanted = [steps.check(catalogue.knob(name), value) for name, value in on_nodes(setting).items()]
    if not wanted:
        return
    change.require_right(stand.config, stand.nodes)
    interfaces.require(setting, stand.records)
    nodes = {record.node: wanted for record in stand.records}
    change.plan(stand.records, stand.config.interface, nodes, stand.asked.permissions)


def _built(text: str, stand: Stand) -> None:
    placed = command.placed(text, stand.config.transport)
    ran = command.run(stand.transport, stand.nodes[0], placed, {}, limit_s=BUILD_S)
    if ran.error:
        raise UsageError(f"build: {ran.error}")

"""The nodes as a bench on which one trial after the other is made: set, measure, and always put back."""

from __future__ import annotations

import math
import random
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec
import numpy as np

from wulf.base import access, catalogue
from wulf.base.contracts import Transport
from wulf.base.errors import ProbeError, WulfError
from wulf.base.nodeset import fold
from wulf.base.records import (
    LaunchResult,
    NodeRecord,
    Operation,
    Part,
    Place,
    ProbeFigure,
    Sample,
    Statistic,
    Values,
    Workload,
)
from wulf.node.change import live, steps
from wulf.node.change.guard import Guards
from wulf.node.change.transaction import NotRestoredError, StepError
from wulf.node.change.trial import Trial
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.fleet import change
from wulf.node.probe import command
from wulf.node.probe.execute import RunLaunch
from wulf.node.probe.schedule import Alternation, LaunchPlan
from wulf.node.trials.experiment import concurrency, settling
from wulf.node.trials.experiment.objective import metric_name
from wulf.stats.estimate import sample_mean, sample_quantiles

#: After a change the guards' watchers still start or end; a short trial would measure that [s].
SETTLE_S = 0.5
#: Letters of two settings that are measured within one launch.
ARMS = "ab"
#: Each is measured for so long at a time [s], and for so many sweeps at least.
DWELL_S = 0.25
FEWEST_SWEEPS = 4
#: Launches from which it is learnt how long a change takes to have its effect, and what does not matter of it.
SETTLING, SETTLED = 4, 0.01
#: So many times as long as the longest measurement so far may the next one take before the nodes give its setting up.
LONGER = 3.0
_RISKY = ("connectivity", "link down", "link blip")


class TrialError(WulfError):
    """A trial that gave no figures; says why."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What the workload gave."""

    #: Metric → value.
    values: dict[str, float]
    #: Folded pair → metric → its value there; empty where one pair is all.
    by_place: dict[str, dict[str, float]] = {}
    contamination: list[str]
    #: Time of the node-local reference [s], geometric mean over the launches; None where none was made.
    reference: float | None


class TrialRunner:
    """Some nodes that this process has taken, with their original settings known.

    Use it through `open_runner`, which puts everything back at the end.
    """

    def __init__(
        self,
        config: ClusterConfig,
        transport: Transport,
        guards: Guards,
        launch: RunLaunch | None,
        records: Sequence[NodeRecord],
        operations: Mapping[str, Operation],
    ) -> None:
        self._config = config
        self._transport = transport
        self._trial = Trial(guards, [record.node for record in records])
        self._launch = launch
        self._records = list(records)
        self._operations = operations
        self._nodes = [record.node for record in records]
        #: What the launches have: values on the nodes and of the job.
        self._setting: Values = {}
        #: Values of the open change, which is left open as long as the settings that follow are parts of it: each then
        #: takes a moment, and whether a setting is the original one or not the nodes' guards are as they are.
        self._open: Values = {}
        #: Which of them are made; None where that is not known.
        self._made: Values | None = {}
        #: How long a measurement took at most, during which nothing is said to the nodes [s].
        self._longest_s = 0.0
        #: Settings whose effect on the wire has been proven.
        self._proven: set[str] = set()
        self._launches = 0
        #: Operation → sweeps under one of two settings, as long as the first launch shows that it takes.
        self._dwell_sweeps: dict[str, int] = {}
        #: Operation → sweeps after a change that are left out, once that is known; and what tells it.
        self._settle: dict[str, int] = {}
        self._settling: dict[tuple[str, str], list[settling.Floats]] = {}

    def take(self) -> None:
        """Put the guards on the nodes and lock them.

        Raises
        ------
        StepError
            Somebody else has a node, or it cannot be changed.
        """
        self._trial.take()

    def set(self, setting: Values) -> None:
        """Make the nodes have a setting; knobs that it does not name have their original values.

        Raises
        ------
        StepError
            A node did not take it, or it has no effect; everything is as it was originally.
        """
        self._renew()
        wanted = on_nodes(setting)
        if wanted != self._made:
            is_part = self._is_part(wanted)
            plan = self._plan(self._open if is_part else wanted)
            self._made = None
            try:
                if is_part:
                    self._make_part(plan, wanted)
                else:
                    self.make(plan)
                    self._open = wanted
            except StepError:
                self._forget()
                raise
            self._made = wanted
        self._setting = dict(setting)

    def _forget(self) -> None:
        """Nothing is set any more."""
        self._setting, self._open, self._made = {}, {}, {}

    def restore(self) -> None:
        """Put the original settings back.

        Raises
        ------
        StepError
            A node could not; names it.
        """
        self._forget()
        self._trial.restore()
        time.sleep(SETTLE_S)

    def release(self) -> None:
        """Put the original settings back and let the nodes go."""
        self._forget()
        self._trial.release()

    def measure(self, workload: Workload, figures: Sequence[ProbeFigure], seed: int) -> Reading:
        """Measure the workload once under the present setting.

        Parameters
        ----------
        figures
            What is wanted of the probe's output.

        Raises
        ------
        TrialError
            A launch or a command failed, or took so long that the nodes may have undone the setting meanwhile.
        """
        env = job_environment(self._setting)
        gathered = _Gathered()
        for part, places in _turns(workload):
            operation = self._operations[part.op]
            with self.held():
                if operation.command:
                    gathered.found[operation.name] = [self._command(operation, places[0][0], env)]
                else:
                    gathered.take(self._run(workload, part, places, seed, env), figures)
        return gathered.reading()

    def _renew(self, silence_s: float = 0.0) -> None:
        """Tell the nodes that we are still here; where one does not know of it, nothing stays set."""
        try:
            self._trial.renew(max(silence_s, LONGER * self._longest_s))
        except StepError:
            self.restore()
            raise

    @contextmanager
    def held(self, silence_s: float = 0.0) -> Iterator[None]:
        """Measure under the open change; what a node may have undone meanwhile is no measurement of it.

        Parameters
        ----------
        silence_s
            How long it may take [s], where that is known.

        Raises
        ------
        TrialError
            It took longer than the nodes wait.
        """
        try:
            self._renew(silence_s)
        except NotRestoredError:
            raise
        except StepError as error:
            raise TrialError(str(error)) from None
        begin = time.monotonic()
        try:
            yield
        finally:
            self._longest_s = max(self._longest_s, time.monotonic() - begin)
        if not self._trial.held:
            raise TrialError(
                f"it took {time.monotonic() - begin:.0f} s, and the nodes undo a change when they hear nothing for so "
                "long; the next one is given more time"
            )

    def can_alternate(self, first: Values, second: Values) -> bool:
        """Whether every node's guard can make one of two settings, then the other, while a probe measures."""
        if any(second.get(knob, value) != value for knob, value in first.items()):
            return False
        if job_environment(first) != job_environment(second):
            return False
        plan = self._plan(on_nodes({**first, **second}))
        return first == second or all(record.node in plan.plans for record in self._records)

    def alternate(
        self,
        first: Values,
        second: Values,
        workload: Workload,
        figures: Sequence[ProbeFigure],
        dwells: int,
        seed: int,
    ) -> tuple[Reading, Reading]:
        """Measure two settings in turn within each launch of the workload.

        The settings of both are one open change for that time, with its journal and its deadline: the nodes' guards
        make either part of it when the probe asks for it.

        Parameters
        ----------
        first, second
            Settings of which `can_alternate` holds.
        dwells
            How often one of them is made in each launch, a multiple of four. The workload has been measured before.

        Raises
        ------
        TrialError
            A launch failed, or a guard did not make a setting.
        StepError
            As `set`.
        """
        both = {**first, **second}
        self._open_both(both, one=first == second)
        env = job_environment(both)
        gathered = _Gathered(), _Gathered()
        for part, places in _turns(workload):
            self._renew()
            nodes = list(dict.fromkeys(node for place in places for node in place))
            alternation = Alternation(
                place=self._open_parts(first, second, nodes) if first != second else "",
                arms=_arms(dwells, seed=seed + self._launches),
                dwell_sweeps=self._dwell_sweeps[part.op],
                settle_sweeps=self._settle.get(part.op, 0),
            )
            with self.held():
                result = self._run(workload, part, places, seed, env, alternation)
            if alternation.place:
                self._watch_settling(part.op, result, alternation)
            for letter, one in zip(ARMS, gathered, strict=True):
                one.take(_under(result, letter), figures)
        return gathered[0].reading(), gathered[1].reading()

    def _open_both(self, both: Values, *, one: bool) -> None:
        """Have the settings of two in an open change, of which parts can be made; at once where they are one."""
        if one or not self._is_part(on_nodes(both)):
            self.set(both)
        self._setting = both
        # The last one of the launch, or an earlier one where it failed.
        self._made = None if on_nodes(both) else {}

    def _watch_settling(self, op: str, result: LaunchResult, alternation: Alternation) -> None:
        """Learn from the first launches how long after a change its effect takes."""
        if op in self._settle:
            return
        for sample in result.samples:
            if len(sample.batch_medians_ns) % alternation.dwell_sweeps:
                continue  # nothing came back of some visit
            found = settling.deviations(sample.batch_medians_ns, alternation.dwell_sweeps)
            self._settling.setdefault((op, sample.cell.setting), []).append(found)
        known = [self._settling.get((op, letter), []) for letter in ARMS]
        if all(known) and sum(map(len, known)) >= len(result.samples) * SETTLING:
            self._settle[op] = max(settling.unsettled(np.concatenate(rows), SETTLED) for rows in known)

    def _open_parts(self, first: Values, second: Values, nodes: Sequence[str]) -> str:
        """Let the probe on these nodes have either part of the open change made; return where it asks."""
        plans = self._plan(self._open).plans
        parts = {node: (_numbers(plans[node], first), _numbers(plans[node], second)) for node in nodes}
        return self._trial.alternate(parts)

    def _is_part(self, wanted: Values) -> bool:
        """Whether a setting can be made from the open change alone, over the connections that there are."""
        if not self._open or any(self._open.get(name) != value for name, value in wanted.items()):
            return False
        made = self._open if self._made is None else self._made
        switched = [catalogue.knob(name) for name in made.keys() ^ wanted.keys()]
        return not any(knob.lockout in _RISKY or knob.severing for knob in switched)

    def _make_part(self, opened: change.ChangePlan, wanted: Values) -> None:
        if opened.plans:
            self._trial.make_part({node: _numbers(plan, wanted) for node, plan in opened.plans.items()})
        time.sleep(SETTLE_S)

    def use(self, launch: RunLaunch, operations: Sequence[Operation]) -> None:
        """Launch in another way from now on, such as with another MPI library or another command."""
        self._launch = launch
        self._operations = {operation.name: operation for operation in operations}

    def launches(
        self, workload: Workload, seed: int, variables: Mapping[str, str] | None = None
    ) -> list[LaunchResult]:
        """Launch every operation of the workload once between each of its pairs, under the present setting.

        Parameters
        ----------
        variables
            Of every job, beside those of the setting.

        Raises
        ------
        TrialError
            A launch failed.
        """
        env = {**job_environment(self._setting), **(variables or {})}
        found = []
        for part, places in _turns(workload):
            with self.held():
                found.append(self._run(workload, part, places, seed, env))
        return found

    def can_share(self, workload: Workload) -> bool:
        """Whether pairs of a workload can be measured at the same time: two ranks each of one MPI job."""
        between = [part for part in workload.parts if not part.group]
        return all(self._operations[part.op].transport == "mpi" for part in between) and any(
            len(group) > 1 for part in between for group in concurrency.groups(part.places)
        )

    def _plan(self, setting: Values) -> change.ChangePlan:
        wanted = [steps.check(catalogue.knob(name), value) for name, value in setting.items()]
        nodes = {record.node: wanted for record in self._records}
        return change.plan(self._records, self._config.interface, nodes, change.VETTED)

    def make(self, plan: change.ChangePlan) -> None:
        """Make the nodes have what a plan wants, and all else as it was originally; prove what has not been proven.

        Raises as `set`.
        """
        proofs = [
            live.checks(change.effect_probe(self._trial.guards.transport, self._config, nodes), unproven)
            for nodes, wanted in plan.alike()
            if (unproven := [one for one in wanted if one.knob.live and str(one) not in self._proven])
        ]

        def reasons() -> live.Reasons:
            return {node: reason for proof in proofs for node, reason in proof().items()}

        risky = any(one.knob.lockout in _RISKY for one in plan.settings.values())
        self._trial.set(plan.plans, reasons, risky=risky)
        time.sleep(SETTLE_S)
        self._proven |= plan.settings.keys()

    def _run(
        self,
        workload: Workload,
        part: Part,
        places: Sequence[Place],
        seed: int,
        env: dict[str, str],
        alternation: Alternation | None = None,
    ) -> LaunchResult:
        assert self._launch is not None, "a workload with probes needs them on the nodes"
        self._launches += 1
        operation = self._operations[part.op]
        result = self._launch(
            LaunchPlan(
                id=f"{self._launches:05d}",
                index=self._launches,
                op=part.op,
                transport=operation.transport,
                command=operation.command,
                prints={
                    one.name: one.match for one in self._operations.values() if one.printed_by == part.op
                },
                place=tuple(node for place in places for node in place),
                pairs=[(first, second) for first, second in places] if len(places) > 1 else [],
                setting=", ".join(f"{name}={value}" for name, value in self._setting.items()) or "original",
                purpose="measure",
                sizes_bytes=part.sizes_bytes,
                sweeps=(len(alternation.arms) * alternation.dwell_sweeps if alternation else workload.sweeps),
                visit_us=workload.visit_us,
                reference_us=workload.reference_us,
                seed=(seed + self._launches) & (2**63 - 1),
                env=env,
                alternation=alternation,
            )
        )
        if result.launch.status != "ok":
            raise TrialError(
                result.launch.error or f"{part.op} failed between {' and '.join(result.launch.place)}"
            )
        ends = [sample.batch_at_us[-1] for sample in result.samples if sample.batch_at_us]
        if ends and alternation is None:
            sweep_s = max(ends) * 1e-6 / workload.sweeps
            self._dwell_sweeps.setdefault(part.op, max(math.ceil(DWELL_S / sweep_s), FEWEST_SWEEPS))
        return result

    def _command(self, operation: Operation, node: str, env: Mapping[str, str]) -> float:
        """Run a command on a node; return its run time [s], or the number in its output."""
        try:
            ran = command.run(self._transport, node, operation.command, env)
            run_time_s = command.run_time_s(ran)
            return command.number(operation.match, ran) if operation.match else run_time_s
        except ProbeError as error:
            raise TrialError(str(error)) from None


@contextmanager
def open_runner(bench: TrialRunner) -> Iterator[TrialRunner]:
    """Take the nodes; whatever happens, they have their original settings when the context ends."""
    try:
        bench.take()
        yield bench
    finally:
        bench.release()


def _turns(workload: Workload) -> Iterator[tuple[Part, list[Place]]]:
    """Yield who is measured when: pairs in turn, or as many at once as have no node in common; then all others."""
    between = [
        (part, concurrency.groups(part.places) if workload.at_once else [[place] for place in part.places])
        for part in workload.parts
        if not part.group
    ]
    for number in range(max((len(turns) for _, turns in between), default=0)):
        yield from ((part, turns[number]) for part, turns in between if number < len(turns))
    for part in workload.parts:
        if part.group:
            yield from ((part, [place]) for place in part.places)


class _Gathered:
    """What the launches of one setting gave."""

    def __init__(self) -> None:
        self.found: dict[str, list[float]] = {}
        self._by_place: dict[str, dict[str, float]] = {}
        self._suspect: list[str] = []
        self._references: list[float] = []

    def take(self, result: LaunchResult, figures: Sequence[ProbeFigure]) -> None:
        self._suspect += result.launch.contamination
        if result.reference_s is not None:
            self._references.append(result.reference_s)
        for sample in result.samples:
            for name, value in figure_of(sample, figures):
                self.found.setdefault(name, []).append(value)
                self._by_place.setdefault(fold(sample.cell.place), {})[name] = value

    def reading(self) -> Reading:
        return Reading(
            values={name: _together(values) for name, values in self.found.items()},
            by_place=self._by_place if len(self._by_place) > 1 else {},
            contamination=list(dict.fromkeys(self._suspect)),
            reference=_together(self._references) if self._references else None,
        )


def _under(result: LaunchResult, letter: str) -> LaunchResult:
    """Return what a launch gave under one of its two settings."""
    return msgspec.structs.replace(
        result,
        samples=[sample for sample in result.samples if sample.cell.setting == letter],
        references=[one for one in result.references if one.setting == letter],
    )


def _numbers(plan: Sequence[steps.Step], setting: Values) -> list[int]:
    """Return the numbers of those steps of a plan that are of a setting."""
    return [number for number, step in enumerate(plan, 1) if step.knob in setting]


def _arms(dwells: int, seed: int) -> str:
    """Return an order of two settings in which neither a drift nor who was first favours one: random ABBA or BAAB."""
    order = random.Random(seed)  # noqa: S311 - reproducible, not secret
    return "".join(order.choice(("abba", "baab")) for _ in range(dwells // 4))


def _together(values: Sequence[float]) -> float:
    """Return the mean of the logarithms: each pair has a time of its own, and all have the same say."""
    if len(values) == 1:
        return values[0]
    return math.exp(sum(map(math.log, values)) / len(values))


def job_environment(setting: Values) -> dict[str, str]:
    """Return the environment that gives a job those values of a setting that are not the nodes'.

    Open MPI takes its parameters from variables of their names; a knob of two parameters has a value for each.
    """
    env: dict[str, str] = {}
    for name, value in setting.items():
        variable = _variable(name)
        if variable:
            targets = catalogue.knob(name).access.target.split()
            words = value.split() if len(targets) > 1 else [value]
            for target, word in zip(targets, words, strict=False):
                env[variable.format(name=target)] = word
    return env


def job_line(setting: Values) -> str:
    """Return the variables of `job_environment` as a shell takes them."""
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in job_environment(setting).items())


def on_nodes(setting: Values) -> Values:
    """Return those values of a setting that are set on the nodes, not given to a job."""
    return {name: value for name, value in setting.items() if not _variable(name)}


def _variable(name: str) -> str:
    """Return how a knob is given to a job in its environment; empty for one that is set on the nodes."""
    return access.kinds()[catalogue.knob(name).access.kind].variable


_STATISTICS: Mapping[Statistic, Callable[[Sample], float]] = {
    "median": lambda sample: sample_quantiles(sample, [0.5])[0],
    "mean": sample_mean,
    "p99": lambda sample: sample_quantiles(sample, [0.99])[0],
}


def figure_of(sample: Sample, figures: Sequence[ProbeFigure]) -> Iterator[tuple[str, float]]:
    """Yield the names and values [s] of those figures that are of this sample."""
    for figure in figures:
        if (figure.op, figure.size_bytes) == (sample.cell.op, sample.cell.size_bytes):
            yield metric_name(figure), _STATISTICS[figure.statistic](sample)

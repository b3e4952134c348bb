"""The nodes as a bench on which one trial after the other is made: set, measure, and always put back."""

from __future__ import annotations

import math
import re
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from wulf import access, catalogue
from wulf.change import apply, live, steps
from wulf.change.guard import Answers, Guards
from wulf.cluster.inventory import ClusterConfig
from wulf.errors import ProbeError, WulfError
from wulf.estimate import sample_quantiles
from wulf.experiment.objective import TAIL, metric_name
from wulf.nodeset import fold
from wulf.ports import Transport
from wulf.probe.command import run as run_command
from wulf.probe.schedule import LaunchPlan
from wulf.procedure import change
from wulf.procedure.measuring.loop import RunLaunch
from wulf.records import (
    CommandPart,
    LaunchResult,
    NodeRecord,
    Operation,
    Pair,
    ProbeFigure,
    ProbePart,
    Values,
    Workload,
)
from wulf.text import last_line, printable

#: A change under trial is undone by the nodes themselves after so long without a word from here [s].
DEADLINE_S = 120
#: A node that cannot be reached is tried again so often [s].
RETRY_S = 5
#: So long where the change can cut a node off; it is extended over a new connection at once [s].
RISKY_DEADLINE_S = 20
#: The nodes are ours for so long without a word [s].
LEASE_S = 900
_RISKY = ("connectivity", "link down", "link blip")


class TrialError(WulfError):
    """A trial that gave no figures; says why."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What one cycle gave."""

    #: Metric → value.
    values: dict[str, float]
    contamination: list[str]


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
        self._guards = guards
        self._launch = launch
        self._records = list(records)
        self._operations = operations
        self._nodes = [record.node for record in records]
        #: Node → the change that is open there.
        self._open: dict[str, str] = {}
        self._setting: Values = {}
        self._renewed_s = 0.0
        #: Settings whose effect on the wire has been proven.
        self._proven: set[tuple[str, str]] = set()
        self._launches = 0

    def take(self) -> None:
        """Put the guards on the nodes and lock them.

        Raises
        ------
        TrialError
            Somebody else has a node, or it cannot be changed.
        """
        _require(self._guards.install(self._nodes), "cannot put the guard there")
        self._renew()

    def set(self, setting: Values) -> None:
        """Make the nodes have a setting; knobs that it does not name have their original values.

        Raises
        ------
        TrialError
            A node did not take it, or it has no effect; everything is as it was originally.
        """
        self._renew()
        if _on_nodes(setting) != _on_nodes(self._setting):
            self._switch(setting)
        self._setting = dict(setting)

    def restore(self) -> None:
        """Put the original settings back.

        Raises
        ------
        TrialError
            A node could not; names it.
        """
        self._setting = {}
        if not self._open:
            return
        by_change: dict[str, list[str]] = {}
        for node, tx in self._open.items():
            by_change.setdefault(tx, []).append(node)
        self._open = {}
        for tx, nodes in by_change.items():
            _require(self._undo(tx, nodes), "could not be put back")

    def _undo(self, tx: str, nodes: list[str]) -> Answers:
        """Undo a change; a node that was cut off does it by itself, and is waited for until it must have."""
        answers = self._guards.call(nodes, "undo", tx, "the trial is over")
        patience = time.monotonic() + DEADLINE_S + RETRY_S
        while lost := [node for node, answer in answers.items() if answer.code is None]:
            if time.monotonic() > patience:
                break
            time.sleep(RETRY_S)
            answers |= self._guards.call(lost, "undo", tx, "the trial is over", fresh=True)
        return answers

    def release(self) -> None:
        """Put the original settings back and let the nodes go."""
        try:
            self.restore()
        finally:
            self._guards.unlock(self._nodes)

    def measure(self, cycle: Workload, seed: int) -> Reading:
        """Measure one cycle under the present setting.

        Raises
        ------
        TrialError
            A launch or a command failed.
        """
        env = job_environment(self._setting)
        found: dict[str, list[float]] = {}
        suspect: list[str] = []
        for pair in cycle.pairs:
            for part in cycle.probes:
                result = self._run(cycle, part, pair, seed, env)
                suspect += result.launch.contamination
                for name, value in _figures(result):
                    found.setdefault(name, []).append(value)
        # Each pair has a time of its own: the mean of the logarithms gives every pair the same say.
        values = {name: math.exp(sum(map(math.log, times)) / len(times)) for name, times in found.items()}
        for command in cycle.commands:
            values[command.metric] = self._command(command, env)
        return Reading(values=values, contamination=list(dict.fromkeys(suspect)))

    def _switch(self, setting: Values) -> None:
        knob_settings = [
            steps.check(catalogue.knob(name), value) for name, value in _on_nodes(setting).items()
        ]
        plans = change.plan(self._records, self._config.interface, knob_settings, change.VETTED).plans
        risky = any(knob_setting.knob.lockout in _RISKY for knob_setting in knob_settings)
        unproven = [
            knob_setting
            for knob_setting in knob_settings
            if (knob_setting.knob.id, knob_setting.value) not in self._proven
        ]
        if not plans:
            self.restore()
            return
        after = self._proof(
            list(plans), [knob_setting for knob_setting in unproven if knob_setting.knob.live]
        )
        try:
            self._swap(plans, risky=risky)
            reasons = after()
            if reasons:
                raise TrialError("; ".join(f"{node}: {reason}" for node, reason in reasons.items()))
        except TrialError:
            self.restore()
            raise
        self._proven |= {(knob_setting.knob.id, knob_setting.value) for knob_setting in unproven}

    def _proof(self, nodes: Sequence[str], knob_settings: Sequence[steps.KnobSetting]) -> live.After:
        if not knob_settings:
            return dict
        return live.checks(change.effect_probe(self._guards.transport, self._config, nodes), knob_settings)

    def _swap(self, plans: Mapping[str, Sequence[steps.Step]], *, risky: bool) -> None:
        idle = {node: tx for node, tx in self._open.items() if node not in plans}
        for node, tx in idle.items():
            _require(self._guards.call([node], "undo", tx, "the next trial"), "could not be put back")
            del self._open[node]
        tx = apply.new_change()
        old, self._open = self._open, dict.fromkeys(plans, tx)
        deadline_s = RISKY_DEADLINE_S if risky else DEADLINE_S
        answers = self._guards.swap(plans, old, tx, deadline_s)
        # A node that refused has put everything back already; `undo` of what it does not know does nothing.
        _require(answers, "did not take it")
        if risky:
            answers = self._guards.call(list(plans), "extend", tx, str(DEADLINE_S), fresh=True)
            _require(answers, "cannot be reached any more")

    def _renew(self) -> None:
        """Tell the nodes that we are still here, now and then."""
        if self._renewed_s and time.monotonic() - self._renewed_s < DEADLINE_S / 4:
            return
        _require(self._guards.lock(self._nodes, LEASE_S), "is not ours")
        for tx in set(self._open.values()):
            nodes = [node for node, mine in self._open.items() if mine == tx]
            _require(self._guards.call(nodes, "extend", tx, str(DEADLINE_S)), "has given up the change")
        self._renewed_s = time.monotonic()

    def _run(
        self, cycle: Workload, part: ProbePart, pair: Pair, seed: int, env: dict[str, str]
    ) -> LaunchResult:
        assert self._launch is not None, "a cycle with probes needs them on the nodes"
        self._launches += 1
        result = self._launch(
            LaunchPlan(
                id=f"{self._launches:05d}",
                index=self._launches,
                op=part.op,
                transport=self._operations[part.op].transport,
                place=pair,
                setting=", ".join(f"{name}={value}" for name, value in self._setting.items()) or "original",
                purpose="measure",
                sizes_bytes=part.sizes_bytes,
                sweeps=cycle.sweeps,
                visit_us=cycle.visit_us,
                seed=(seed + self._launches) & (2**63 - 1),
                env=env,
            )
        )
        if result.launch.status != "ok":
            raise TrialError(result.launch.error or f"{part.op} failed between {' and '.join(pair)}")
        return result

    def _command(self, command: CommandPart, env: Mapping[str, str]) -> float:
        """Run a command on the first node; return its run time [s], or the number in its output."""
        node = self._nodes[0]
        try:
            ran = run_command(self._transport, node, command.command, env)
        except ProbeError as error:
            raise TrialError(str(error)) from None
        if not command.match:
            return ran.nanoseconds * 1e-9
        found = re.findall(command.match, ran.text, re.MULTILINE)
        try:
            return float(found[-1])
        except (IndexError, ValueError):
            what = f"{printable(found[-1], 60)!r}, which is no number," if found else "nothing"
            end = printable(last_line(ran.text.encode()) or "nothing", 100)
            raise TrialError(
                f"{command.command!r}: {command.match!r} matches {what} in its output, which ends: {end}"
            ) from None


@contextmanager
def open_runner(bench: TrialRunner) -> Iterator[TrialRunner]:
    """Take the nodes; whatever happens, they have their original settings when the context ends."""
    try:
        bench.take()
        yield bench
    finally:
        bench.release()


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


def _on_nodes(setting: Values) -> Values:
    return {name: value for name, value in setting.items() if not _variable(name)}


def _variable(name: str) -> str:
    """Return how a knob is given to a job in its environment; empty for one that is set on the nodes."""
    return access.kinds()[catalogue.knob(name).access.kind].variable


def _figures(result: LaunchResult) -> Iterator[tuple[str, float]]:
    """Median of every size, and the tail of the smallest."""
    smallest = min(result.launch.sizes_bytes)
    for sample in result.samples:
        size = sample.cell.size_bytes
        median, tail = sample_quantiles(sample, [0.5, 0.99])
        yield metric_name(ProbeFigure(op=sample.cell.op, size_bytes=size)), median
        if size == smallest:
            yield metric_name(ProbeFigure(op=sample.cell.op, size_bytes=size, statistic=TAIL)), tail


def _require(answers: Answers, what: str) -> None:
    failed = [answer for answer in answers.values() if not answer.done]
    if failed:
        names = fold([answer.node for answer in failed])
        raise TrialError(f"{names} {what}: {failed[0].reason}")

"""The nodes of a step, measured with the change and without it under their guards."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from wulf.base.contracts import Transport
from wulf.base.errors import ProbeError
from wulf.base.nodeset import fold, reasons_text
from wulf.base.records import LaunchResult, NodeRecord, Operation, Pair, Part, Place, ProbeFigure, Workload
from wulf.base.text import count, printable
from wulf.base.tool import Progress
from wulf.node.change import steps
from wulf.node.change.guard import Guards
from wulf.node.change.transaction import NotRestoredError, StepError
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.fleet import change, preparation
from wulf.node.trials.bench import TrialError, TrialRunner, figure_of, open_runner
from wulf.node.trials.experiment.objective import SWEEPS, USUAL, VISIT_US
from wulf.node.trials.loop import WARM_UP
from wulf.node.trials.open_bench import runner_for
from wulf.tools.rollout.evidence import STATES, Loss, Match, Reading, Round, State, changing
from wulf.tools.rollout.schedule import HaltError

#: Sizes of the messages whose times are latency and bandwidth [B].
SIZES_BYTES = (64, 1 << 20)
#: What losses are counted with, and how long a visit of it takes [µs]: some thousands of datagrams.
LOSSY, LOSSY_BYTES, LOSSY_VISIT_US = "udp_rr", 64, 25_000
#: Rounds in a row in which the nodes did not take the change, after which the roll-out halts.
MOST_FAILED = 3
_ASK_S = 30.0


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster on which a change is rolled out."""

    config: ClusterConfig
    transport: Transport
    guards: Guards
    records: list[NodeRecord]
    tools: preparation.Toolbox
    wanted: list[steps.KnobSetting]

    def plan(self, nodes: Collection[str]) -> change.ChangePlan:
        """Return the change of these nodes; what may not be set was found before."""
        return change.plan(
            self.records, self.config.interface, {node: self.wanted for node in nodes}, change.VETTED
        )

    def silent(self, nodes: Sequence[str]) -> dict[str, str]:
        """Return nodes that do not answer over a new connection, and why."""
        answers = self.transport.run(["true"], nodes, timeout_s=_ASK_S, fresh=True)
        return {
            node: without_name(node, answers[node].reason) for node in nodes if answers[node].status != "ok"
        }

    def require_answers(self, nodes: Sequence[str]) -> None:
        """Halt where a node of a step does not answer: that it is silent says nothing good of the change."""
        if silent := self.silent(nodes):
            raise SilentError(
                f"{fold(silent)} did not answer while the change was tried there: {reasons_text(silent)}",
                silent,
            )


def without_name(node: str, reason: str) -> str:
    """Return why a node does not answer, without its own name before it: nodes of one reason stand together."""
    return printable(reason, 300).removeprefix(f"{node}: ") or "it does not answer"


@contextmanager
def opened(where: Where, matches: Sequence[Match], seed: int, say: Progress) -> Iterator[NodeBench]:
    """Take the nodes of a step; whatever happens, they have their original settings when the context ends.

    Raises
    ------
    HaltError
        They cannot be had, or measured as they are.
    """
    members = list(dict.fromkeys(node for match in matches for node in match.pair))
    records = [record for record in where.records if record.node in members]
    try:
        ready = runner_for(
            where.config, where.transport, where.guards, records, where.tools, [], say, among=members
        )
        with open_runner(ready.bench) as runner:
            bench = NodeBench(where, runner, ready.operations, members, seed, say)
            bench.warm_up(matches)
            yield bench
    except (ProbeError, StepError, NotRestoredError) as error:
        where.require_answers(members)
        raise HaltError(str(error)) from error


class NodeBench:
    """Nodes that this process has taken, with the change on some of them; see `course.Bench`."""

    def __init__(
        self,
        where: Where,
        runner: TrialRunner,
        operations: Sequence[Operation],
        members: Sequence[str],
        seed: int,
        say: Progress,
    ) -> None:
        self._where = where
        self._runner = runner
        self._op = next(one for one in operations if one.name != LOSSY)
        self._members = list(members)
        self._order = random.Random(seed)  # noqa: S311 - reproducible, not secret
        self._seed = seed
        self._say = say
        self._failed = 0

    def warm_up(self, matches: Sequence[Match]) -> None:
        """Measure the nodes as they are, without keeping it: caches, connections and clocks settle."""
        for _ in range(WARM_UP):
            readings = self._readings([match.pair for match in matches])
        dead = {pair: why for pair, why in readings.items() if isinstance(why, str)}
        if len(dead) == len(readings):
            raise HaltError(f"the nodes cannot be measured as they are: {next(iter(dead.values()))}")

    def have(self, nodes: Collection[str]) -> None:
        """Give these nodes the change, unconfirmed, and all others what they had.

        Raises
        ------
        StepError
            A node did not take it; all have what they had.
        """
        plan = self._where.plan(nodes)
        if plan.plans:
            self._runner.make(plan)
        else:
            self._runner.restore()

    @contextmanager
    def held(self, silence_s: float) -> Iterator[None]:
        """Let the nodes keep what they have for so long without a word; raises TrialError where that was not enough."""
        with self._runner.held(silence_s):
            yield

    def prepare(self, matches: Sequence[Match]) -> dict[str, str]:
        """Try whether the nodes take the change; return those that do not, and why."""
        nodes = changing(matches)
        self._say(f"{fold(nodes)}: trying whether they take it")
        try:
            self.have(nodes)
        except NotRestoredError:
            raise
        except StepError as error:
            self._where.require_answers(self._members)
            self._say.note(f"not all take it: {printable(str(error), 300)}")
            return {node: why for node in nodes if (why := self._refusal(node))}
        return {}

    def _refusal(self, node: str) -> str:
        """Return why a node does not take the change; empty where it does."""
        try:
            self.have([node])
        except NotRestoredError:
            raise
        except StepError as error:
            self._where.require_answers(self._members)
            return printable(str(error), 300)
        return ""

    def round(self, matches: Sequence[Match], number: int) -> Round:
        """Measure every pair under each of the four states, in random order."""
        self._say(
            f"round {number + 1}: {count(len(changing(matches)), 'node')} with the change and without it"
        )
        found: dict[State, dict[Pair, Reading]] = {}
        try:
            for state in self._order.sample(STATES, len(STATES)):
                self.have(_having(matches, state))
                found[state] = self._readings([match.pair for match in matches])
            self._failed = 0
        except NotRestoredError:
            raise
        except StepError as error:
            self._where.require_answers(self._members)
            self._failed += 1
            if self._failed >= MOST_FAILED:
                raise HaltError(str(error)) from error
        return found

    def losses(self, matches: Sequence[Match]) -> dict[Pair, Loss | str]:
        """Count datagrams lost with the change and without it, one pair after the other."""
        self._say(f"counting lost datagrams between {count(len(matches), 'pair')}")
        seen: dict[bool, dict[Pair, tuple[int, int] | str]] = {}
        for changed in self._order.sample((False, True), 2):
            self.have(changing(matches) if changed else [])
            seen[changed] = {match.pair: self._lost(match.pair) for match in matches}
        return {match.pair: _loss(seen[True][match.pair], seen[False][match.pair]) for match in matches}

    def _lost(self, pair: Pair) -> tuple[int, int] | str:
        """Return how many of how many datagrams are lost between two nodes, or why that is not known."""
        part = Part(op=LOSSY, sizes_bytes=[LOSSY_BYTES], places=[pair])
        try:
            (result,) = self._runner.launches(
                Workload(parts=[part], sweeps=SWEEPS, visit_us=LOSSY_VISIT_US), self._next_seed()
            )
        except TrialError as error:
            self._where.require_answers(self._members)
            return str(error)
        lost = sum(sample.lost for sample in result.samples)
        return lost, lost + sum(sample.iterations for sample in result.samples)

    def _readings(self, pairs: Sequence[Pair]) -> dict[Pair, Reading]:
        """Return the times between pairs: all at once, where that goes; where it fails, one after the other."""
        workload = self._workload(pairs, at_once=True)
        if self._runner.can_share(workload):
            try:
                return _by_pair(self._runner.launches(workload, self._next_seed()), self._figures)
            except TrialError:
                self._where.require_answers(self._members)
        return {pair: self._reading(pair) for pair in pairs}

    def _reading(self, pair: Pair) -> Reading:
        try:
            results = self._runner.launches(self._workload([pair], at_once=False), self._next_seed())
        except TrialError as error:
            self._where.require_answers(self._members)
            return str(error)
        return _by_pair(results, self._figures).get(pair, "it gave no figures")

    def _workload(self, pairs: Sequence[Pair], *, at_once: bool) -> Workload:
        places: list[Place] = list(pairs)
        part = Part(op=self._op.name, sizes_bytes=list(SIZES_BYTES), places=places)
        return Workload(parts=[part], sweeps=SWEEPS, visit_us=VISIT_US, at_once=at_once)

    @property
    def _figures(self) -> list[ProbeFigure]:
        return [ProbeFigure(op=self._op.name, size_bytes=size, statistic=USUAL) for size in SIZES_BYTES]

    def _next_seed(self) -> int:
        self._seed += 1
        return self._seed


class SilentError(HaltError):
    """Nodes that do not answer any more."""

    def __init__(self, text: str, nodes: Mapping[str, str]) -> None:
        super().__init__(text)
        self.nodes = dict(nodes)


def _having(matches: Sequence[Match], state: State) -> list[str]:
    """Return the nodes that have the change in a state."""
    return [
        node
        for match in matches
        for node, changed in zip(match.pair, (state[0], state[1] and match.both), strict=True)
        if changed
    ]


def _by_pair(results: Sequence[LaunchResult], figures: Sequence[ProbeFigure]) -> dict[Pair, Reading]:
    found: dict[Pair, dict[str, float]] = {}
    for result in results:
        for sample in result.samples:
            first, second = sample.cell.place
            found.setdefault((first, second), {}).update(figure_of(sample, figures))
    return dict(found)


def _loss(with_it: tuple[int, int] | str, without: tuple[int, int] | str) -> Loss | str:
    """Return losses of as many datagrams each: of more that were sent, the share counts."""
    if isinstance(without, str):
        return f"not known without the change: {without}"
    if isinstance(with_it, str):
        return with_it
    sent = min(with_it[1], without[1])
    if not sent:
        return "nothing was sent"
    lost = [round(lost * sent / of) for lost, of in (with_it, without)]
    return Loss(lost[0], lost[1], sent)

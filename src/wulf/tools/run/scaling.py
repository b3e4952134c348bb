"""A program launched with one number of ranks after the other, in random order: speed-up, efficiency, and the laws."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

import msgspec

from wulf.base.contracts import Transport
from wulf.base.errors import EXIT_INTERRUPTED, ProbeError, TransportError, UsageError, WulfError
from wulf.base.nodeset import reasons_text
from wulf.base.records import SCHEMA_VERSION, Estimate, NodeRecord
from wulf.base.text import count, printable
from wulf.base.tool import Progress
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.fleet import allocation, preparation
from wulf.node.fleet.clusters import config_of
from wulf.node.fleet.new_run import head, new_seed, place_of
from wulf.node.fleet.placement import spread
from wulf.node.probe import command
from wulf.stats.core import intervals, scaling
from wulf.stats.core.paired import paired_shift
from wulf.stats.estimate.cells import as_estimate
from wulf.tools.run import efficiency_loss
from wulf.tools.run.command_text import text_of
from wulf.tools.run.record import (
    Scaling,
    ScalingForecast,
    ScalingLaunch,
    ScalingLaw,
    ScalingLoss,
    ScalingManifest,
    ScalingPlan,
    ScalingPoint,
)
from wulf.tools.run.request import ScalingRequest
from wulf.tools.run.store import ScalingRun, ScalingWriter

CONFIDENCE = 0.95
#: Rounds that have failed for every number of ranks, after which there is no hope.
GIVE_UP = 2
#: Where the command says how many ranks there are: then the work grows with them.
RANKS = "{ranks}"


class Tracer(Protocol):
    """What records programs: a tool of its own."""

    def __call__(self, command: str, ranks: int, nodes: Sequence[str], path: Path) -> None:
        """Launch a program once with the tracer; write its trace. Raises WulfError where that failed."""


class Place(NamedTuple):
    """Where a program is launched."""

    config: ClusterConfig
    transport: Transport
    records: Sequence[NodeRecord]

    @property
    def nodes(self) -> list[str]:
        """Their names."""
        return [record.node for record in self.records]


def measure(
    request: ScalingRequest, progress: Progress, tracer: Callable[[ClusterConfig], Tracer]
) -> Scaling:
    """Launch a program with every number of ranks, round after round, and say how its time goes with them.

    After Ctrl-C the rounds so far are used. All is kept as a run.

    Raises
    ------
    UsageError
        It is no program with its arguments, or never ended well; says why.
    TransportError
        A node does not answer.
    """
    begin_s = time.monotonic()
    path = place_of(request.path, request.runs)
    config = config_of(request.cluster)
    nodes = config.select(request.nodes)
    with preparation.connect(config, nodes, progress) as (transport, records):
        down = {record.node: record.error or "does not answer" for record in records if not record.reachable}
        if down:
            raise TransportError(f"every node must take part: {reasons_text(down)}")
        commands = _commands(request, Place(config, transport, records), progress)
        plan = _plan(request, nodes)
        with ScalingWriter.create(
            path, ScalingManifest(**head(path.name, config, [], {}), plan=plan)
        ) as writer:
            progress.note(f"run: {path}")
            rounds = _Rounds(request, plan, transport, commands, writer)
            try:
                interrupted = rounds.make(begin_s, progress)
                if request.traces and not interrupted:
                    _trace(request, writer, tracer(config), progress)
            except BaseException as error:
                ended = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
                writer.update(status=ended, message=str(error) or None)
                raise
            whole = _whole_rounds(plan, rounds.launches) >= plan.rounds
            writer.update(status="interrupted" if interrupted else "complete" if whole else "budget")
    return shown(ScalingRun(path=path, manifest=writer.manifest, launches=rounds.launches))


def shown(run: ScalingRun) -> Scaling:
    """Return what a stored run has found."""
    return conclude(
        run.manifest.plan,
        run.launches,
        run.manifest.losses,
        run.manifest.untraced,
        interrupted=run.manifest.status == "interrupted",
        run=str(run.path),
    )


def _plan(request: ScalingRequest, nodes: Sequence[str]) -> ScalingPlan:
    text = text_of(request.command)
    return ScalingPlan(
        command=text,
        ranks=sorted(set(request.ranks)),
        nodes=list(nodes),
        per_node=request.ranks_per_node,
        weak=RANKS in text,
        rounds=request.rounds,
        budget_s=request.budget_s,
        seed=new_seed(request.seed),
    )


def _trace(request: ScalingRequest, writer: ScalingWriter, tracer: Tracer, progress: Progress) -> None:
    """Launch each number of ranks once more with the tracer, and keep where the time of the ranks went."""
    plan = writer.manifest.plan
    losses: list[ScalingLoss] = []
    untraced: dict[int, str] = {}
    for ranks in plan.ranks:
        progress(f"one launch of {count(ranks, 'rank')}, recorded")
        path = writer.path / f"ranks-{ranks}.wtrace"
        own = plan.command.replace(RANKS, str(ranks))
        try:
            tracer(own, ranks, _used(plan.nodes, ranks, request.ranks_per_node), path)
            losses.append(efficiency_loss.of(path))
        except WulfError as failure:
            untraced[ranks] = printable(str(failure), 300)
        writer.update(losses=list(losses), untraced=dict(untraced))


def _commands(request: ScalingRequest, where: Place, progress: Progress) -> dict[int, str]:
    """Return for a shell on the first node how each number of ranks is started."""
    config, transport, records = where
    text = text_of(request.command)
    mpi = request.mpi or config.mpi.compiler
    found = {}
    for ranks in sorted(set(request.ranks)):
        own = text.replace(RANKS, str(ranks))
        place = spread(_used(where.nodes, ranks, request.ranks_per_node), ranks)
        whole = preparation.mpi_command(config, transport, records, mpi, place, own, progress)
        found[ranks] = command.placed(whole, config.transport, request.directory or "")
    return found


def _used(nodes: Sequence[str], ranks: int, per_node: int) -> list[str]:
    """Return the nodes that so many ranks are on: all, or as many as it takes at so many on each."""
    if not per_node:
        return list(nodes)
    wanted = -(-ranks // per_node)
    if wanted > len(nodes):
        raise UsageError(
            f"--ranks {ranks} at {per_node} on a node takes {count(wanted, 'node')}, and there are {len(nodes)}"
        )
    return list(nodes[:wanted])


class _Rounds:
    """Rounds of one launch of every number of ranks, each in an order of its own."""

    def __init__(
        self,
        request: ScalingRequest,
        plan: ScalingPlan,
        transport: Transport,
        commands: Mapping[int, str],
        writer: ScalingWriter,
    ) -> None:
        self.launches: list[ScalingLaunch] = []
        self._request, self._transport, self._node = request, transport, plan.nodes[0]
        self._commands, self._writer = commands, writer
        self._count = 0
        self._order = random.Random(plan.seed)  # noqa: S311 - reproducible, not secret

    def make(self, begin_s: float, progress: Progress) -> bool:
        """Make all rounds, or those that the budget allows, which began then; return whether Ctrl-C ended them."""
        rounds = allocation.rounds_left(self._request.budget_s, begin_s, "the launches", progress.note)
        wanted = self._request.rounds
        while self._count < wanted and rounds.another():
            each_s = rounds.passed_s / max(self._count, 1)
            left = f", about {each_s * (wanted - self._count):.0f} s left" if self._count else ""
            try:
                for ranks in self._order.sample(list(self._commands), len(self._commands)):
                    progress(f"round {self._count + 1} of {wanted}: {count(ranks, 'rank')}{left}")
                    self._take(self._launch(ranks))
            except KeyboardInterrupt:
                if not self._count:
                    raise
                return True
            self._count += 1
            self._require_any()
        return False

    def _launch(self, ranks: int) -> ScalingLaunch:
        try:
            ran = command.run(self._transport, self._node, self._commands[ranks], {})
            time_s = command.run_time_s(ran)
            if self._request.match is not None:
                time_s = command.number(self._request.match, ran)
            if not 0 < time_s < math.inf:
                raise ProbeError(f"it printed a time of {time_s:g}")
        except ProbeError as failure:
            reason = printable(str(failure), 300)
            return ScalingLaunch(ranks=ranks, round=self._count, time_s=None, reason=reason)
        return ScalingLaunch(ranks=ranks, round=self._count, time_s=time_s)

    def _take(self, launch: ScalingLaunch) -> None:
        self._writer.append(launch)
        self.launches.append(launch)

    def _require_any(self) -> None:
        if self._count >= GIVE_UP and all(one.time_s is None for one in self.launches):
            reasons = list(dict.fromkeys(one.reason for one in self.launches))
            raise UsageError(f"no launch has ended well: {printable('; '.join(reasons), 400)}")


def conclude(
    plan: ScalingPlan,
    launches: Sequence[ScalingLaunch],
    losses: Sequence[ScalingLoss] = (),
    untraced: Mapping[int, str] = MappingProxyType({}),
    *,
    interrupted: bool = False,
    run: str = "",
) -> Scaling:
    """Return what follows from launches."""
    good = [Launch(one.ranks, one.round, one.time_s) for one in launches if one.time_s is not None]
    laws, forecasts, by = ([], [], "") if plan.weak else _laws(good, plan.per_node or 1)
    return Scaling(
        schema_version=SCHEMA_VERSION,
        command=plan.command,
        nodes=plan.nodes,
        per_node=plan.per_node,
        weak=plan.weak,
        points=[_point(ranks, plan, good, launches) for ranks in plan.ranks],
        laws=laws,
        forecasts=forecasts,
        by=by,
        losses=list(losses),
        untraced=dict(untraced),
        rounds=_whole_rounds(plan, launches),
        seed=plan.seed,
        interrupted=interrupted,
        run=run,
    )


def _whole_rounds(plan: ScalingPlan, launches: Sequence[ScalingLaunch]) -> int:
    counts = Counter(one.round for one in launches)
    return sum(count == len(plan.ranks) for count in counts.values())


class Launch(NamedTuple):
    """A launch that ended well."""

    ranks: int
    round: int
    time_s: float


def _point(
    ranks: int, plan: ScalingPlan, good: Sequence[Launch], launches: Sequence[ScalingLaunch]
) -> ScalingPoint:
    own = {one.round: one.time_s for one in good if one.ranks == ranks}
    fewest = min((one.ranks for one in good), default=ranks)
    base = {one.round: one.time_s for one in good if one.ranks == fewest}
    times = ranks / fewest
    ratios = _logs(base, own) if ranks != fewest else []
    gain = as_estimate(paired_shift(ratios, CONFIDENCE).ratio, "ratio") if ratios else None
    return ScalingPoint(
        ranks=ranks,
        nodes=len(_used(plan.nodes, ranks, plan.per_node)[:ranks]),
        time=as_estimate(intervals.median(list(own.values()), CONFIDENCE), "s") if own else None,
        speed_up=gain if gain is None or not plan.weak else _times(gain, times),
        efficiency=None if gain is None else gain if plan.weak else _times(gain, 1 / times),
        failures=dict(Counter(one.reason for one in launches if one.ranks == ranks and one.time_s is None)),
    )


def _logs(base: Mapping[int, float], own: Mapping[int, float]) -> list[float]:
    return [math.log(base[number] / own[number]) for number in base if number in own]


def _times(estimate: Estimate, factor: float) -> Estimate:
    return msgspec.structs.replace(
        estimate,
        value=estimate.value * factor,
        low=None if estimate.low is None else estimate.low * factor,
        high=None if estimate.high is None else estimate.high * factor,
    )


def _laws(launches: Sequence[Launch], each: int) -> tuple[list[ScalingLaw], list[ScalingForecast], str]:
    """Return both laws, and what more ranks would bring by the simpler one that is not refuted."""
    columns = (
        [one.ranks for one in launches],
        [one.round for one in launches],
        [one.time_s for one in launches],
    )
    amdahl, universal = scaling.amdahl(*columns), scaling.universal(*columns)
    laws = [_amdahl(amdahl), _universal(universal)]
    most = max(columns[0], default=0)
    chosen, by = amdahl, laws[0].name
    if universal is not None and universal.kappa is not None and (universal.kappa.low or 0.0) > 0:
        chosen, by = universal, laws[1].name
    if chosen is None or not scaling.identified(chosen.sigma):
        return laws, [], ""
    return laws, list(_forecasts(chosen, most, each, len(launches))), by


def _forecasts(law: scaling.Law, most: int, each: int, n: int) -> Iterator[ScalingForecast]:
    for ranks in (most + each, most + 2 * each, 2 * most):
        value, low, high = law.relative(most, ranks)
        ratio = Estimate(
            value=value, low=low, high=high, confidence=CONFIDENCE, unit="ratio", n=n, method=scaling.METHOD
        )
        yield ScalingForecast(ranks=ranks, ratio=ratio)


def _parameter(interval: intervals.Interval) -> Estimate | None:
    return as_estimate(interval, "ratio") if scaling.identified(interval) else None


def _amdahl(law: scaling.Law | None) -> ScalingLaw:
    if law is None:
        return ScalingLaw(name="Amdahl", parameters={}, reason="it takes two numbers of ranks in two rounds")
    known = _parameter(law.sigma)
    reason = "" if known else f"the serial share is not identifiable: anything from {_span(law.sigma)}"
    return ScalingLaw(name="Amdahl", parameters={"serial share": known}, reason=reason)


def _universal(law: scaling.Law | None) -> ScalingLaw:
    if law is None or law.kappa is None:
        return ScalingLaw(
            name="universal scalability",
            parameters={},
            reason="it takes three numbers of ranks in two rounds",
        )
    found = {"contention": _parameter(law.sigma), "coherency": _parameter(law.kappa)}
    unknown = [name for name, value in found.items() if value is None]
    reason = f"not identifiable: {', '.join(unknown)}" if unknown else ""
    if not unknown and not law.kappa.low:
        reason = "coherency cannot be told from none: Amdahl's law is enough"
    return ScalingLaw(name="universal scalability", parameters=found, reason=reason)


def _span(interval: intervals.Interval) -> str:
    return f"{interval.low:.0%} to {interval.high:.0%}"


def exit_code(found: Scaling) -> int:
    """Return the exit code: whether Ctrl-C has cut it short, or launches failed."""
    if found.interrupted:
        return EXIT_INTERRUPTED
    return 3 if any(point.failures for point in found.points) else 0

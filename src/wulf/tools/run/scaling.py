"""A program launched with one number of ranks after the other, in random order: speed-up, efficiency, and the laws."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from wulf.base.contracts import Transport
from wulf.base.errors import EXIT_INTERRUPTED, ProbeError, TransportError, UsageError
from wulf.base.nodeset import reasons_text
from wulf.base.records import SCHEMA_VERSION, Estimate, NodeRecord
from wulf.base.text import printable
from wulf.base.tool import Progress
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.fleet import allocation, site
from wulf.node.fleet.begin import new_seed
from wulf.node.fleet.clusters import config_of
from wulf.node.measuring.participants import spread
from wulf.node.probe import command
from wulf.stats.core import intervals, scaling
from wulf.stats.core.paired import paired_shift
from wulf.stats.estimate.cells import as_estimate
from wulf.tools.run.record import Scaling, ScalingForecast, ScalingLaw, ScalingPoint
from wulf.tools.run.request import ScalingRequest
from wulf.tools.run.text import text_of

CONFIDENCE = 0.95
#: Rounds that have failed for every number of ranks, after which there is no hope.
GIVE_UP = 2
#: Where the command says how many ranks there are: then the work grows with them.
RANKS = "{ranks}"


class Launch(NamedTuple):
    """A launch that ended well."""

    ranks: int
    round: int
    time_s: float


def measure(request: ScalingRequest, progress: Progress) -> Scaling:
    """Launch a program with every number of ranks, round after round, and say how its time goes with them.

    After Ctrl-C the rounds so far are used.

    Raises
    ------
    UsageError
        It is no program with its arguments, or never ended well; says why.
    TransportError
        A node does not answer.
    """
    config = config_of(request.cluster)
    nodes = config.select(request.nodes)
    with site.connect(config, nodes, progress) as (transport, records):
        down = {record.node: record.error or "does not answer" for record in records if not record.reachable}
        if down:
            raise TransportError(f"every node must take part: {reasons_text(down)}")
        seed = new_seed(request.seed)
        rounds = _Rounds(
            request, seed, transport, nodes, _commands(request, config, transport, records, progress)
        )
        interrupted = rounds.make(progress)
    return conclude(
        text_of(request.command),
        nodes,
        rounds.launches,
        rounds.failures,
        rounds.count,
        seed,
        per_node=request.ranks_per_node,
        interrupted=interrupted,
    )


def _commands(
    request: ScalingRequest,
    config: ClusterConfig,
    transport: Transport,
    records: Sequence[NodeRecord],
    progress: Progress,
) -> dict[int, str]:
    """Return for a shell on the first node how each number of ranks is started."""
    nodes = [record.node for record in records]
    text = text_of(request.command)
    mpi = request.mpi or config.mpi.compiler
    found = {}
    for ranks in sorted(set(request.ranks)):
        own = text.replace(RANKS, str(ranks))
        place = spread(_used(nodes, ranks, request.ranks_per_node), ranks)
        whole = site.mpi_command(config, transport, records, mpi, place, own, progress)
        found[ranks] = command.placed(whole, config.transport, request.directory or "")
    return found


def _used(nodes: Sequence[str], ranks: int, per_node: int) -> list[str]:
    """Return the nodes that so many ranks are on: all, or as many as it takes at so many on each."""
    if not per_node:
        return list(nodes)
    count = -(-ranks // per_node)
    if count > len(nodes):
        raise UsageError(
            f"--ranks {ranks} at {per_node} on a node takes {count} nodes, and there are {len(nodes)}"
        )
    return list(nodes[:count])


class _Rounds:
    """Rounds of one launch of every number of ranks, each in an order of its own."""

    def __init__(
        self,
        request: ScalingRequest,
        seed: int,
        transport: Transport,
        nodes: Sequence[str],
        commands: Mapping[int, str],
    ) -> None:
        self.launches: list[Launch] = []
        self.failures: dict[int, Counter[str]] = {ranks: Counter() for ranks in commands}
        self.count = 0
        self._request, self._transport, self._node, self._commands = request, transport, nodes[0], commands
        self._order = random.Random(seed)  # noqa: S311 - reproducible, not secret

    def make(self, progress: Progress) -> bool:
        """Make all rounds, or those that the budget allows; return whether Ctrl-C ended them."""
        budget_s = allocation.capped(self._request.budget_s, progress)
        begin = time.monotonic()
        wanted = self._request.rounds
        while self.count < wanted:
            passed_s = time.monotonic() - begin
            if self.count and passed_s >= budget_s:
                break
            left = f", about {passed_s / self.count * (wanted - self.count):.0f} s left" if self.count else ""
            try:
                for ranks in self._order.sample(list(self._commands), len(self._commands)):
                    progress(f"round {self.count + 1} of {wanted}: {ranks} ranks{left}")
                    self._launch(ranks)
            except KeyboardInterrupt:
                if not self.count:
                    raise
                return True
            self.count += 1
            self._require_any()
        return False

    def _launch(self, ranks: int) -> None:
        try:
            ran = command.run(self._transport, self._node, self._commands[ranks], {})
            time_s = command.run_time_s(ran)
            if self._request.match is not None:
                time_s = command.number(self._request.match, ran)
            if not time_s > 0:
                raise ProbeError(f"it printed a time of {time_s:g}")
        except ProbeError as failure:
            self.failures[ranks][printable(str(failure), 300)] += 1
        else:
            self.launches.append(Launch(ranks, self.count, time_s))

    def _require_any(self) -> None:
        if self.count >= GIVE_UP and not self.launches:
            reasons = list(dict.fromkeys(reason for counts in self.failures.values() for reason in counts))
            raise UsageError(f"no launch has ended well: {printable('; '.join(reasons), 400)}")


def conclude(
    text: str,
    nodes: Sequence[str],
    launches: Sequence[Launch],
    failures: Mapping[int, Mapping[str, int]],
    rounds: int,
    seed: int,
    *,
    per_node: int = 0,
    interrupted: bool = False,
) -> Scaling:
    """Return what follows from launches."""
    weak = RANKS in text
    laws, forecasts, by = ([], [], "") if weak else _laws(launches, per_node or 1)
    return Scaling(
        schema_version=SCHEMA_VERSION,
        command=text,
        nodes=list(nodes),
        per_node=per_node,
        weak=weak,
        points=[
            _point(ranks, _used(nodes, ranks, per_node)[:ranks], launches, failures, weak=weak)
            for ranks in sorted(failures)
        ],
        laws=laws,
        forecasts=forecasts,
        by=by,
        rounds=rounds,
        seed=seed,
        interrupted=interrupted,
    )


def _point(
    ranks: int,
    nodes: Sequence[str],
    launches: Sequence[Launch],
    failures: Mapping[int, Mapping[str, int]],
    *,
    weak: bool,
) -> ScalingPoint:
    own = {one.round: one.time_s for one in launches if one.ranks == ranks}
    fewest = min((one.ranks for one in launches), default=ranks)
    base = {one.round: one.time_s for one in launches if one.ranks == fewest}
    times = ranks / fewest
    ratios = _logs(base, own) if ranks != fewest else []
    gain = as_estimate(paired_shift(ratios, CONFIDENCE).ratio, "ratio") if ratios else None
    return ScalingPoint(
        ranks=ranks,
        nodes=len(nodes),
        time=as_estimate(intervals.median(list(own.values()), CONFIDENCE), "s") if own else None,
        speed_up=gain if gain is None or not weak else _times(gain, times),
        efficiency=None if gain is None else gain if weak else _times(gain, 1 / times),
        failures=dict(failures.get(ranks, {})),
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

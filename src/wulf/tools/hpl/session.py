"""A run of HPL from the nodes to the conclusion: sizes, search, the large problem, fresh launches."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import msgspec

from wulf.base.contracts import Transport
from wulf.base.errors import AnalysisError, UsageError, WulfError
from wulf.base.output_values import cpu_list
from wulf.base.records import NodeRecord
from wulf.base.text import count
from wulf.node.cluster import inventory
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.fleet import allocation, power
from wulf.node.fleet import preparation as cluster_site
from wulf.node.fleet.clusters import config_of, distinct
from wulf.node.fleet.new_run import head, new_seed, place_of
from wulf.stats.estimate import ranking
from wulf.tools.hpl import given_problems, installation, launching, peak, run_time
from wulf.tools.hpl import program as hpl
from wulf.tools.hpl import result as hpl_result
from wulf.tools.hpl.libraries import libraries_of, ranked
from wulf.tools.hpl.record import (
    HplLaunch,
    HplManifest,
    HplPhase,
    HplPlan,
    HplResult,
    HplSetting,
    Peak,
    TimeModel,
)
from wulf.tools.hpl.request import BUDGET_S, HplRequest
from wulf.tools.hpl.search import CUT, Order, Search, Values
from wulf.tools.hpl.store import HEAD, HplRun, HplWriter, load_hpl

#: Shares of the whole time until which settings are searched; the rest is for the result.
SEARCH_SHARE = 0.5
#: Of the whole time: after it no round of BLAS libraries is begun, but the first.
BLAS_SHARE = 0.15
#: Launches at the small order that should fit into the search.
SMALL_LAUNCHES = 30
#: Orders of the search: the large one takes about four times as long.
LARGER = 1.6
#: The first problem, and how much longer the next one is.
FIRST_ORDER, GROWTH = 1024, 1.5
#: Solutions below this are mostly start [s].
SHORTEST_S = 0.2
#: Launches of the chosen setting at each of the orders that the model is made of.
FOR_MODEL = 2
#: What a launch takes beside its solution, times this and a little more, may pass before it is cut.
PATIENCE, LITTLE_S = 2.0, 2.0
#: A launch that nothing is compared with has failed after the time that is left, or after so many times what it should
#: take where that is more, and a while [s].
OVERDUE, OVERDUE_S = 10.0, 60.0


class Watcher(Protocol):
    """Shows a person what is being done."""

    def stage(self, text: str) -> None:
        """Announce a new part of the work."""

    def note(self, text: str) -> None:
        """Say something that stays to be read."""

    def begun(self, path: Path, manifest: HplManifest) -> None:
        """Report a run and its plan."""

    def launched(self, launch: HplLaunch, spent_s: float, left_s: float) -> None:
        """Report a launch, and how much time is left."""

    def interrupted(self, path: Path) -> None:
        """Report that it was interrupted, and what was measured is kept."""


def start(request: HplRequest, watcher: Watcher) -> HplRun:
    """Make a new run.

    Raises
    ------
    UsageError
        There is no program, or the nodes cannot run it.
    KeyboardInterrupt
        With what was measured kept.
    """
    path = place_of(request.path, request.runs)
    config = config_of(request.cluster)
    with cluster_site.connect(config, distinct(config, request.nodes), watcher.stage) as (transport, records):
        budget_s = allocation.capped(request.budget_s or BUDGET_S, watcher.note)
        manifest = _manifest(
            replace(request, cluster=config, budget_s=budget_s), path.name, transport, records
        )
        site = installation.site(config, transport, manifest.plan, records, manifest.id, watcher.note)
        with HplWriter.create(path, manifest) as writer:
            watcher.begun(path, manifest)
            _carry_out(writer, [], site, watcher)
    return load_hpl(path)


def go_on(path: Path, time_s: float | None, watcher: Watcher) -> HplRun:
    """Go on with a run that was interrupted, or ended by its time.

    Parameters
    ----------
    time_s
        Time for all of it [s]; None for as much as it was given at first.

    Raises
    ------
    UsageError
        It is complete, or its time is over.
    """
    manifest = load_hpl(path).manifest
    if manifest.status == "complete":
        raise UsageError(f"{path} is complete; there is nothing to go on with")
    if manifest.status == "budget" and time_s is None:
        raise UsageError(
            f"{path} has used up its {manifest.plan.time_s:.0f} s: say how many it may be with --budget"
        )
    config = inventory.parse(manifest.cluster, str(path / HEAD))
    with cluster_site.connect(config, manifest.plan.nodes, watcher.stage) as (transport, records):
        site = installation.site(config, transport, manifest.plan, records, path.resolve().name, watcher.note)
        run = load_hpl(path)
        with HplWriter(path, run.manifest) as writer:
            spent_s = sum(launch.wall_s for launch in run.launches)
            left_s = (time_s or run.manifest.plan.time_s) - spent_s
            plan = msgspec.structs.replace(
                run.manifest.plan, time_s=spent_s + allocation.capped(left_s, watcher.note)
            )
            writer.resumed(plan)
            watcher.begun(path, writer.manifest)
            _carry_out(writer, run.launches, site, watcher)
    return load_hpl(path)


def conclude(manifest: HplManifest, launches: Sequence[HplLaunch]) -> HplResult:
    """Return the conclusion from what was launched so far, with how its BLAS libraries compare."""
    return hpl_result.conclude(manifest, launches, ranked(manifest.plan, launches))


def _manifest(
    request: HplRequest, name: str, transport: Transport, records: Sequence[NodeRecord]
) -> HplManifest:
    cluster_site.measurable([tuple(record.node for record in records)], records)
    config = config_of(request.cluster)
    nodes = [record.node for record in records]
    program = installation.program(transport, nodes, request.program)
    cpus = min(_cpus(records).values())
    memory = cluster_site.memory_bytes(config, records)
    found, unknown = _peak(request.peak_gflops, records, _cores(config, nodes, cpus))
    env = dict(config.mpi.env)
    libraries, left_out = (
        libraries_of(transport, nodes, program, request.blas_library, env)
        if request.blas_library is not None
        else ({}, {})
    )
    largest = hpl.largest_order(memory) if memory else None
    problems, threshold = given_problems.given(request, len(nodes), cpus)
    given_problems.require_room(problems, largest)
    plan = HplPlan(
        program=program,
        kind=hpl.kind_of(program),
        nodes=nodes,
        cpus=cpus,
        memory_bytes=memory,
        largest_n=largest,
        time_s=request.budget_s or BUDGET_S,
        repeats=request.launches,
        seed=new_seed(request.seed),
        values={}
        if problems
        else {
            key: [_shown(value) for value in values] for key, values in hpl.space(len(nodes), cpus).items()
        },
        asked=problems,
        asked_threshold=threshold,
        mpi=request.mpi,
        env=env,
        libraries=libraries,
        libraries_left_out=left_out,
        price=request.price,
        prices=request.named_prices(),
        measures_power=request.measure_power,
        watts=request.watts,
        peak=found,
        peak_unknown=unknown,
    )
    return HplManifest(**head(name, config, [], {}), plan=plan, records=list(records))


def _shown(value: hpl.Layout | int) -> str:
    return (
        f"{value.p}×{value.q}, {count(value.threads, 'thread')}"
        if isinstance(value, hpl.Layout)
        else str(value)
    )


def _cpus(records: Sequence[NodeRecord]) -> dict[str, int]:
    """Return the cores of each node that may be used.

    Raises
    ------
    UsageError
        A node does not say.
    """
    found = {}
    for record in records:
        allowed, threads = record.facts.get("cpu.allowed"), record.facts.get("cpu.threads_per_core")
        if allowed is None:
            raise UsageError(f"{record.node}: how many CPUs it has is not known: 'wulf audit facts' says why")
        cores = len(cpu_list(str(allowed))) // (threads if isinstance(threads, int) and threads > 1 else 1)
        found[record.node] = max(cores, 1)
    return found


def _cores(config: ClusterConfig, nodes: Sequence[str], used: int) -> dict[str, int]:
    """Return the cores of each node that HPL uses; of nodes on the same CPUs only the first has any."""
    counted: list[str] = []
    for node in nodes:
        if not any(config.shares_cpu(node, other) for other in counted):
            counted.append(node)
    return {node: used if node in counted else 0 for node in nodes}


def _peak(
    given: float | None, records: Sequence[NodeRecord], cores: Mapping[str, int]
) -> tuple[Peak | None, str]:
    if given is not None:
        return Peak(gflops=given), ""
    try:
        return peak.peak(records, cores), ""
    except AnalysisError as error:
        return None, str(error)


class _Run:
    """The launches of a run, one after the other, until its time is over."""

    def __init__(
        self,
        writer: HplWriter,
        launches: Sequence[HplLaunch],
        site: launching.HplSite,
        watcher: Watcher,
    ) -> None:
        self._writer = writer
        self._site = site
        self._watcher = watcher
        self.plan = writer.manifest.plan
        self.launches = list(launches)
        #: Launches that were made before the run went on.
        self._earlier = len(launches)
        #: Variables of the BLAS library that is chosen; of the only one from the beginning.
        self.library: Mapping[str, str] = next(iter(self.plan.libraries.values()), {})
        self._begin = time.monotonic() - sum(launch.wall_s for launch in launches)
        values = hpl.space(len(self.plan.nodes), self.plan.cpus)
        self.settings: list[Values] = [
            dict(zip(values, combination, strict=True)) for combination in itertools.product(*values.values())
        ]

    @property
    def spent_s(self) -> float:
        return time.monotonic() - self._begin

    @property
    def left_s(self) -> float:
        return max(self.plan.time_s - self.spent_s, 0.0)

    @property
    def env(self) -> dict[str, str]:
        """Variables of a launch."""
        return {**self.plan.env, **self.library}

    def limit(self, n: int) -> int:
        """Return an order that fits into the memory, too."""
        return n if self.plan.largest_n is None else min(n, self.plan.largest_n)

    def of(self, phase: HplPhase, status: str = "ok") -> list[HplLaunch]:
        """Return the launches of a phase."""
        return [launch for launch in self.launches if launch.phase == phase and launch.status == status]

    def confirmed(self) -> int:
        """Return how many fresh launches count as made; what has failed is tried again when a run goes on."""
        return len(self.of("confirm")) + sum(
            launch.phase == "confirm" and launch.status != "ok" for launch in self.launches[self._earlier :]
        )

    def launch(self, phase: HplPhase, n: int, chosen: HplSetting, limit_s: float | None) -> HplLaunch:
        """Make one launch; it is stored when this returns."""
        limit = self._limit(n, limit_s) or self._longest_s(n)
        site = msgspec.structs.replace(self._site, env=self.env)
        done = self._launched(site, phase, n, chosen, limit)
        self._writer.append(done)
        self.launches.append(done)
        self._watcher.launched(done, self.spent_s, self.left_s)
        return done

    def _launched(
        self,
        site: launching.HplSite,
        phase: HplPhase,
        n: int,
        chosen: HplSetting,
        limit: launching.Limit | float,
    ) -> HplLaunch:
        if phase != "confirm" or not self.plan.measures_power:
            return launching.launch(site, len(self.launches), phase, n, chosen, limit)
        with power.Meter(site.transport, site.nodes) as meter:
            done = launching.launch(site, len(self.launches), phase, n, chosen, limit)
        return msgspec.structs.replace(done, power=meter.power())

    def _limit(self, n: int, limit_s: float | None) -> launching.Limit | None:
        same = [
            launch
            for launch in self.launches
            if launch.n == n and launch.status == "ok" and launch.env == self.env
        ]
        if limit_s is None or not same:
            return None
        # Of the launches the one that is what the best is expected to be.
        best = min(same, key=lambda launch: abs((launch.time_s or 0.0) - limit_s / CUT))
        beside = max(launch.wall_s - (launch.time_s or 0.0) for launch in same)
        return launching.Limit(
            time_s=limit_s, beside_s=PATIENCE * beside + LITTLE_S, best=best.progress, factor=CUT
        )

    def _longest_s(self, n: int) -> float:
        """Return what a launch of an order may take before it has failed [s]."""
        ok = [launch for launch in self.launches if launch.status == "ok"]
        largest = max((launch.n for launch in ok), default=n)
        walls = [launch.wall_s for launch in ok if launch.n == largest]
        # Nothing of it grows faster than the solution.
        expected_s = max(walls, default=0.0) * max(n / largest, 1.0) ** 3
        return max(OVERDUE * expected_s, self.left_s) + OVERDUE_S


def _carry_out(
    writer: HplWriter, launches: Sequence[HplLaunch], site: launching.HplSite, watcher: Watcher
) -> None:
    run = _Run(writer, launches, site, watcher)
    status, message = "failed", None
    try:
        with launching.workplace(site):
            status = _phases(run, watcher)
    except KeyboardInterrupt:
        status = "interrupted"
        watcher.interrupted(writer.path)
        raise
    except WulfError as error:
        message = str(error)
        raise
    finally:
        writer.update(status=status, message=message)
        result = conclude(writer.manifest, run.launches)
        writer.conclude(result)
        if result.n is not None and result.setting is not None:
            writer.keep(hpl.INPUTS["xhpl"], hpl.hpl_dat([result.n], result.setting))


def _phases(run: _Run, watcher: Watcher) -> str:
    """Go through all phases; return how it ended."""
    if run.plan.asked:
        return _as_asked(run, watcher)
    watcher.stage("how long small problems take")
    small = _small_order(run)
    if len(run.plan.libraries) > 1:
        watcher.stage(f"{len(run.plan.libraries)} BLAS libraries compared")
        _choose_library(run, small)
    watcher.stage(f"searching the settings at N {small} and {_large_order(run, small)}")
    chosen = _search(run, small)
    watcher.stage("how long the chosen setting takes")
    n = _order(run, chosen, small)
    forecast = hpl_result.predicted(hpl_result.model(run.launches, chosen), n)
    expected = f", expected to take {forecast.time.value:.0f} s" if forecast else ""
    watcher.stage(f"{count(run.plan.repeats, 'fresh launch')} at N {n}{expected}: {chosen.shown}")
    return _confirm(run, n, chosen)


def _as_asked(run: _Run, watcher: Watcher) -> str:
    """Launch every problem that was asked for, in rounds of random order; return how it ended."""
    problems = run.plan.asked
    watcher.stage(f"{count(len(problems), 'problem')} as asked, {count(run.plan.repeats, 'launch')} of each")
    order = random.Random(run.plan.seed)  # noqa: S311 - reproducible, not secret
    rounds = [order.sample(range(len(problems)), len(problems)) for _ in range(run.plan.repeats)]
    todo = [problems[place] for places in rounds for place in places]
    # Those that were made before the run went on, but for the ones that failed.
    for launch in run.of("confirm"):
        done = next((one for one in todo if (one.n, one.setting) == (launch.n, launch.setting)), None)
        if done is not None:
            todo.remove(done)
    for number, one in enumerate(todo):
        if number and run.left_s <= 0:
            return "budget"
        run.launch("confirm", one.n, one.setting, None)
    return "complete" if run.of("confirm") else "failed"


def _plain(run: _Run) -> HplSetting:
    """Return a setting that is never bad: a nearly square grid, one rank for each CPU."""
    layout = hpl.layouts(len(run.plan.nodes), run.plan.cpus)
    single = [one for one in layout if one.threads == 1]
    return hpl.setting(
        {"layout": max(single, key=lambda one: one.p / one.q), "nb": 128, "bcast": 1, "depth": 1, "swap": 2}
    )


def _small_order(run: _Run) -> int:
    """Return the order at which settings are tried first; problems grow until they take as long as there is time."""
    searched = [launch.n for launch in run.launches if launch.phase == "search"]
    if searched:
        return searched[0]
    wanted_s = max(SEARCH_SHARE * run.plan.time_s / 2 / SMALL_LAUNCHES, SHORTEST_S)
    done = [launch for launch in run.of("size") if launch.setting == _plain(run)]
    n = run.limit(FIRST_ORDER)
    while not done or (done[-1].wall_s < wanted_s and run.limit(int(n * GROWTH)) > n):
        if done:
            n = run.limit(int(n * GROWTH) // 64 * 64)
        launch = run.launch("size", n, _plain(run), None)
        if launch.status != "ok":
            raise AnalysisError(f"HPL does not run here: {launch.reason} (command: {' '.join(launch.argv)})")
        done.append(launch)
    # The last one may have taken much longer than is wanted.
    shrunk = done[-1].n * min(1.0, (wanted_s / done[-1].wall_s) ** (1 / 3))
    return max(int(shrunk) // 64 * 64, run.limit(FIRST_ORDER))


def _choose_library(run: _Run, small: int) -> None:
    """Launch one setting with every BLAS library, in rounds of random order; go on with the fastest.

    Problems are smaller than those of the search, and rounds end when their share of the time is used.
    """
    names = list(run.plan.libraries)
    n = max(run.limit(int(small / LARGER) // 64 * 64), 64)
    order = random.Random(run.plan.seed)  # noqa: S311 - reproducible, not secret
    rounds = [order.sample(names, len(names)) for _ in range(ranking.rounds_needed(len(names)))]
    done = len(run.of("blas", "ok")) + len(run.of("blas", "failed"))
    later = any(launch.phase in ("search", "confirm") for launch in run.launches)
    begin_s = run.spent_s
    for number, names_ in enumerate(rounds):
        if later or (number and run.spent_s - begin_s > BLAS_SHARE * run.plan.time_s):
            break
        for place, name in enumerate(names_):
            if number * len(names) + place >= done:
                run.library = run.plan.libraries[name]
                run.launch("blas", n, _plain(run), None)
    found = ranked(run.plan, run.launches)
    if not found:
        raise AnalysisError("with none of the BLAS libraries did HPL run in all launches")
    run.library = run.plan.libraries[found[0].library]


def _large_order(run: _Run, small: int) -> int:
    return run.limit(int(small * LARGER) // 64 * 64)


def _search(run: _Run, small: int) -> HplSetting:
    """Search the settings in the time for it; return the best.

    Raises
    ------
    AnalysisError
        Every launch failed.
    """
    confirmed = [launch.setting for launch in run.launches if launch.phase == "confirm"]
    if confirmed:
        return confirmed[-1]
    orders: dict[Order, int] = {"small": small, "large": _large_order(run, small)}
    phases: dict[Order, HplPhase] = {"small": "search", "large": "large"}
    known = {msgspec.json.encode(hpl.setting(values)): place for place, values in enumerate(run.settings)}
    spent_on_sizes = sum(launch.wall_s for launch in run.of("size"))
    search = Search(run.settings, SEARCH_SHARE * run.plan.time_s - spent_on_sizes, run.plan.seed)
    for launch in run.launches:
        for order, phase in phases.items():
            if launch.phase == phase:
                search.add(known[msgspec.json.encode(launch.setting)], order, launch.time_s, launch.wall_s)
    while (proposal := search.propose()) is not None:
        chosen = hpl.setting(run.settings[proposal.index])
        done = run.launch(phases[proposal.order], orders[proposal.order], chosen, proposal.limit_s)
        search.add(proposal.index, proposal.order, done.time_s, done.wall_s)
    best = search.best()
    if best is None:
        return _plain(run)
    return hpl.setting(run.settings[best])


def _order(run: _Run, chosen: HplSetting, small: int) -> int:
    """Return the order of the result: what fits into the memory, and is expected to fit into the rest of the time."""
    confirmed = [launch.n for launch in run.launches if launch.phase == "confirm"]
    if confirmed:
        return confirmed[-1]
    for n in dict.fromkeys((small, _large_order(run, small))):
        _for_model(run, n, chosen)
    model = hpl_result.model(run.launches, chosen)
    if model is None:
        return _large_order(run, small)
    each_s = run.left_s / run.plan.repeats
    limit = run.plan.largest_n if run.plan.largest_n is not None else 10 * model.n_max
    # Of the largest order alone: what small ones take beside the solution is a start, which does not grow.
    beside = max(
        (one.wall_s - (one.time_s or 0.0)) / one.n**2
        for one in run.launches
        if one.status == "ok" and one.n == model.n_max
    )
    n = run_time.largest_within(model, each_s, limit, chosen.nb)
    # Matrix and check take time, too: in proportion to n².
    while n > model.n_max and _upper_s(model, n) + beside * n**2 > each_s:
        n -= chosen.nb
    return max(n, model.n_max // chosen.nb * chosen.nb)


def _for_model(run: _Run, n: int, chosen: HplSetting) -> None:
    """Launch a setting as often at an order as the model takes, while there is time."""
    while run.left_s > 0:
        known = [
            one
            for one in run.launches
            if (one.n, one.setting, one.status, one.env) == (n, chosen, "ok", run.env)
        ]
        if len(known) >= FOR_MODEL:
            return
        if run.launch("size", n, chosen, None).status != "ok":
            raise AnalysisError(f"the setting that was best fails now: {run.launches[-1].reason}")


def _upper_s(model: TimeModel, n: int) -> float:
    upper = run_time.forecast(model, n).time.high
    assert upper is not None
    return upper


def _confirm(run: _Run, n: int, chosen: HplSetting) -> str:
    """Make fresh launches of what was chosen; return how it ended."""
    while run.confirmed() < run.plan.repeats:
        walls = [launch.wall_s for launch in run.launches if launch.phase == "confirm"]
        if walls and run.left_s < max(walls) / 2:
            return "budget"
        run.launch("confirm", n, chosen, None)
    return "complete" if run.of("confirm") else "failed"

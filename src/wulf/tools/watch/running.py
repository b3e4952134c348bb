"""One time that it is a watch's turn: who is idle, a look at them, a short measured run, and what has changed."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from wulf import __version__
from wulf.base.errors import SchedulerError, UsageError, WulfError
from wulf.base.native import build
from wulf.base.nodeset import fold, reasons_text
from wulf.base.records.watched import WatchedTime, WatchReport, WatchRun
from wulf.base.store import Run
from wulf.base.store.history import History, network_file_system
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.fleet import exclusive_nodes
from wulf.node.fleet.look import judge as audited
from wulf.node.fleet.look import look
from wulf.node.measuring import session
from wulf.tools.watch import idle, judging, observations
from wulf.tools.watch.environment import Clock, utc
from wulf.tools.watch.history import rotation
from wulf.tools.watch.timer.times import Window

#: Small messages show what a node costs, large ones what its link carries.
SIZES_BYTES = (64, 1 << 20)
#: Of each pair: the median of three is not moved by one.
LAUNCHES = 3
#: Where nodes are busy they are looked at again after this time, as long as the window is open [s].
AGAIN_S = 600.0
#: Measured runs that are kept whole, beside what the history has of them.
KEPT_RUNS = 30
#: What was measured is thinned to one run a week after this time.
WHOLE_FOR = timedelta(days=400)
#: Added to the budget, for what comes before and after the measuring [s].
_BESIDE_S = 180.0
_RUNS = "runs"
_FEWEST_NODES = 2


class WatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a watch is to do when it is its turn."""

    name: str
    #: Of this watch.
    directory: Path
    config: ClusterConfig
    nodes: list[str]
    budget_s: float
    mpi: str | None = None
    window: Window | None = None
    scheduler: exclusive_nodes.Scheduler = "auto"
    #: Further options of salloc.
    slurm_options: tuple[str, ...] = ()


class _NothingError(Exception):
    """Nothing can be measured now, for this reason; `skipped` says it of each node."""

    def __init__(self, reason: str, skipped: dict[str, str]) -> None:
        super().__init__(reason)
        self.skipped = skipped


def run(request: WatchRequest, clock: Clock, watcher: session.Watcher) -> WatchReport:
    """Measure and judge, or keep why that could not be; return what the watch says now.

    Raises
    ------
    WulfError
        Something went wrong; the history has it, too.
    """
    kind = network_file_system(request.directory.parent)
    if kind is not None:
        watcher.note(
            f"{request.directory} is on {kind}: let one machine alone write to it, or choose a local "
            "directory with --watches"
        )
    with History(request.directory, writing=True) as history:
        begin = clock.now()
        number = history.next_number()
        try:
            judged = _measured(request, history, number, clock, watcher)
        except _NothingError as nothing:
            _keep_none(history, number, begin, "skipped", str(nothing), nothing.skipped)
            judged = None
        except WulfError as error:
            _keep_none(history, number, begin, "failed", str(error), {})
            raise
        now = clock.now()
        history.thin(utc(now - WHOLE_FOR))
        return judging.report(history, request.name, request.nodes, now, judged)


def _measured(
    request: WatchRequest, history: History, number: int, clock: Clock, watcher: session.Watcher
) -> judging.Judged:
    slurm = exclusive_nodes.by_slurm(request.config, request.scheduler)
    found = _idle(request, clock, watcher, slurm=slurm)
    if len(found.nodes) < _FEWEST_NODES:
        raise _NothingError(_too_few(found), found.busy)
    begin = clock.now()
    try:
        limit_s = request.budget_s + _BESIDE_S
        with exclusive_nodes.held(found.nodes, limit_s, request.slurm_options, slurm=slurm):
            watcher.stage(f"looking at {fold(found.nodes)}")
            records = look(request.config, found.nodes)
            able = [record.node for record in records if record.reachable and record.node in found.nodes]
            run = _measure(request, history, able, number, watcher)
    except SchedulerError as error:
        raise _NothingError(str(error), dict.fromkeys(found.nodes, str(error)) | found.busy) from None
    times = observations.times(run.require_analysis(), run.results)
    before = {node: history.facts_of(node) for node in found.nodes}
    facts = observations.facts(records, audited(records, "hpc"), run.manifest.software, before, begin)
    down = {record.node: record.error or "does not answer" for record in records if not record.reachable}
    kept = WatchRun(
        number=number,
        at=utc(begin),
        utc_offset_s=offset_s(begin),
        status="measured",
        seconds=_measuring_s(run),
        pairs=len({one.nodes for one in times if len(one.nodes) > 1}),
        skipped=found.busy | down,
        wulf_version=__version__,
    )
    return keep(history, kept, times, facts, clock.now())


def keep(
    history: History,
    run: WatchRun,
    times: Sequence[WatchedTime],
    facts: dict[str, dict[str, str | None]],
    now: datetime,
) -> judging.Judged:
    """Keep a run that has measured something, and judge it."""
    history.add(run, times, facts)
    return judging.update(history, now)


def _idle(request: WatchRequest, clock: Clock, watcher: session.Watcher, *, slurm: bool) -> idle.Idle:
    """Return who is idle; where some are not, look again as long as the window is open."""
    while True:
        left_s = _left_s(request.window, clock.now())
        if left_s is not None and left_s < request.budget_s:
            raise _NothingError("the window is closed", {})
        watcher.stage("checking which nodes are idle")
        found = idle.find(request.config, request.nodes, slurm=slurm)
        if not found.busy or left_s is None or left_s - AGAIN_S < request.budget_s:
            return found
        watcher.note(f"not idle: {reasons_text(found.busy)}; looked at again in {AGAIN_S / 60:.0f} min")
        clock.sleep(AGAIN_S)


def _left_s(window: Window | None, now: datetime) -> float | None:
    if window is None:
        return None
    return window.left_s(now.hour * 3600 + now.minute * 60 + now.second) or 0.0


def _too_few(found: idle.Idle) -> str:
    idle_ones = f"only {found.nodes[0]} is idle" if found.nodes else "no node is idle"
    return f"{idle_ones}: {reasons_text(found.busy)}"


def _measure(
    request: WatchRequest, history: History, nodes: list[str], number: int, watcher: session.Watcher
) -> Run:
    pairs = _pairs(request, history, nodes)
    if not pairs:
        raise UsageError(f"{fold(request.nodes)}: a watch needs two nodes that answer")
    mpi = bool(build.find_mpi(request.mpi))
    measuring = session.MeasureRequest(
        config=request.config,
        pairs=pairs,
        ops=["mpi_pingpong" if mpi else "tcp_rr"],
        ladder="watch",
        sizes_bytes=list(SIZES_BYTES),
        mpi=request.mpi,
        budget_s=request.budget_s,
        min_launches=LAUNCHES,
        max_launches=LAUNCHES,
        # Several pairs at once are one MPI job.
        at_once=mpi and len(nodes) > 3,
    )
    path = request.directory / _RUNS / f"{number:06d}"
    shutil.rmtree(path, ignore_errors=True)  # what a run that was killed has left
    run, _ = session.start(measuring, path, watcher)
    _forget_old_runs(path.parent)
    return run


def _pairs(request: WatchRequest, history: History, nodes: list[str]) -> list[tuple[str, str]]:
    last = next((run for run in reversed(history.runs()) if run.status == "measured"), None)
    rounds = rotation.rounds_that_fit(
        request.budget_s, len(nodes), last.pairs if last else 0, last.seconds if last else 0.0
    )
    slower = (alarm.nodes for alarm in history.alarms() if alarm.direction == "slower")
    trouble = rotation.trouble_of(request.nodes, slower)
    return rotation.choose(request.nodes, nodes, history.last_measured(), history.suspects(), rounds, trouble)


def _measuring_s(run: Run) -> float:
    """Time from the first launch to the end of the last [s]."""
    if not run.launches:
        return 0.0
    first, last = run.launches[0], run.launches[-1]
    begun = datetime.fromisoformat(first.started_at)
    return (datetime.fromisoformat(last.started_at) - begun).total_seconds() + last.duration_s


def _forget_old_runs(runs: Path) -> None:
    for path in sorted(runs.iterdir())[:-KEPT_RUNS]:
        shutil.rmtree(path, ignore_errors=True)


def _keep_none(
    history: History, number: int, begin: datetime, status: str, reason: str, skipped: dict[str, str]
) -> None:
    history.add(
        WatchRun(
            number=number,
            at=utc(begin),
            utc_offset_s=offset_s(begin),
            status="skipped" if status == "skipped" else "failed",
            reason=reason,
            skipped=skipped,
            wulf_version=__version__,
        ),
        [],
        {},
    )


def offset_s(at: datetime) -> int:
    """Return local time − UTC [s]."""
    offset = at.utcoffset()
    return round(offset.total_seconds()) if offset is not None else 0

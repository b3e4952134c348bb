"""The whole procedure in one run: audit, curves, mending, the search, what helps set, curves and audit again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import msgspec

from wulf.base.contracts import Say
from wulf.base.errors import ProbeError, StoreError, TransportError
from wulf.base.records import Audit, Mending, NodeRecord
from wulf.base.store import Run, write_atomically
from wulf.base.store.tuning import AFTER, AUDIT_AFTER, AUDIT_BEFORE, BEFORE, COMPARED, MENDED, TuningRun
from wulf.node.fleet import look
from wulf.node.fleet.change import ChangePlan
from wulf.node.measuring import session as measuring
from wulf.node.measuring.analysis import analyze, compare
from wulf.node.probe import ladder
from wulf.node.trials.experiment import objective
from wulf.page.page import html
from wulf.tools.compare import page as compare_report
from wulf.tools.measure import page as run_report
from wulf.tools.mend.work import Choice, MendingInterrupted, MendTask, mend, planned
from wulf.tools.tune import session as tuning

#: Share of the budget for the curves as found; as much again for those as left.
CURVES = 0.1
#: Share of the budget that the search has at least, whatever was spent before it.
LEAST_SEARCH = 0.4
#: Largest message of the curves [B].
_LARGEST = 1 << 20
#: Curves are precise enough after this.
_CURVES_S = 300.0


class Watcher(Protocol):
    """Shows a person what is being done; each part of the work has a display of its own."""

    def looking(self, nodes: int) -> AbstractContextManager[look.Progress]:
        """Show a look at so many nodes."""

    def audited(self, audit: Audit) -> None:
        """Report what the audit found."""

    def mending(self) -> AbstractContextManager[Say]:
        """Show how that is set right which is certainly wrong."""

    def mended(self, found: Mending) -> None:
        """Report what was set right, and what that brought."""

    def measuring(self, name: str) -> AbstractContextManager[measuring.Watcher]:
        """Show the measurement of curves."""

    def searching(self) -> AbstractContextManager[tuning.Watcher]:
        """Show the search."""

    def searched(self, run: TuningRun) -> None:
        """Report what the search found."""

    def note(self, text: str) -> None:
        """Say something that stays."""


def run(task: tuning.TuneTask, path: Path, watcher: Watcher, *, whole_curves: bool = True) -> TuningRun:
    """Do all of it in a new directory; what helps is set at the end.

    Parameters
    ----------
    task
        Its budget is for everything.
    whole_curves
        Whether whole curves are measured as found and as left, and compared.

    Raises
    ------
    StoreError
        The directory cannot be made.
    """
    try:
        path.mkdir(parents=True)
    except OSError as error:
        raise StoreError(f"cannot make the run directory {path}: {error.strerror}") from None
    begin = time.monotonic()
    records, audit = _audit(task, path / AUDIT_BEFORE, watcher)
    choice, plan = planned(_wanted(task), audit, records)
    curves = _curves_of(task, [set(nodes) for nodes in plan.rows.values()]) if whole_curves else None
    before = _curves_as_found(curves, path / BEFORE, watcher)
    mended = _mend(task, path / MENDED, records, (choice, plan), watcher)
    kept = mended.outcome is not None and mended.outcome.kept
    spent_s = time.monotonic() - begin + (curves.budget_s if curves else 0.0)
    search_s = max(task.budget_s - spent_s, task.budget_s * LEAST_SEARCH)
    with watcher.searching() as progress:
        searched = msgspec.structs.replace(task, budget_s=search_s, pairs=mended.pairs if kept else [])
        found = tuning.start(searched, path, progress, set_kept=True)
    watcher.searched(found)
    if found.manifest.change is not None or kept:
        if curves is not None:
            after = _curves(curves, path / AFTER, watcher)
            if before is not None:
                _compare(before, after, task.margin, path / COMPARED)
        _audit(task, path / AUDIT_AFTER, watcher)
    return found


def _audit(task: tuning.TuneTask, path: Path, watcher: Watcher) -> tuple[list[NodeRecord], Audit]:
    """Look at the nodes, judge them, and store what was found."""
    with watcher.looking(len(task.nodes)) as progress:
        records = look.look(task.config, task.nodes, progress=progress)
    audit = look.judge(records, task.goal.profile)
    watcher.audited(audit)
    write_atomically(path, msgspec.json.encode(audit))
    return records, audit


def _wanted(task: tuning.TuneTask) -> MendTask:
    # A command may take long, and is not made eighteen times before the search has begun.
    times = all(metric.figure and metric.better == "lower" for metric in task.goal.metrics)
    return MendTask(
        config=task.config,
        nodes=task.nodes,
        names=[],
        profile=task.goal.profile,
        permissions=task.permissions,
        mpi=task.mpi,
        seed=task.seed,
        goal=task.goal if times else None,
    )


def _mend(
    task: tuning.TuneTask,
    path: Path,
    records: list[NodeRecord],
    chosen: tuple[Choice, ChangePlan],
    watcher: Watcher,
) -> Mending:
    """Set right what is certainly wrong, and store what that brought."""

    def told(found: Mending) -> None:
        write_atomically(path, msgspec.json.encode(found))
        watcher.mended(found)

    with watcher.mending() as say:
        try:
            found = mend(_wanted(task), *chosen, records, say)
        except MendingInterrupted as stop:
            told(stop.found)
            raise
    told(found)
    return found


def _curves_of(task: tuning.TuneTask, changed: Sequence[set[str]]) -> measuring.MeasureRequest | None:
    """Return which curves are measured as found and as left; None where there is nothing to measure."""
    pairs = objective.pairs_for(task.nodes, changed)
    if not task.goal.probes or not pairs:
        return None
    return measuring.MeasureRequest(
        config=task.config,
        ops=list(task.goal.probes),
        mpi=task.mpi,
        pairs=pairs,
        ladder="imb",
        sizes_bytes=ladder.base_sizes("imb", _LARGEST),
        budget_s=min(task.budget_s * CURVES, _CURVES_S),
        max_launches=20,
    )


def _curves_as_found(curves: measuring.MeasureRequest | None, path: Path, watcher: Watcher) -> Run | None:
    """Measure curves before anything is changed; what is wrong may be that nothing can be measured."""
    if curves is None:
        return None
    try:
        return _curves(curves, path, watcher)
    except (ProbeError, TransportError) as failure:
        watcher.note(f"no curves as found: {failure}")
        return None


def _curves(curves: measuring.MeasureRequest, path: Path, watcher: Watcher) -> Run:
    """Measure whole curves of what the objective is made of, and write their page."""
    with watcher.measuring(path.name) as progress:
        measured, _ = measuring.start(curves, path, progress)
    page = html(
        run_report.build(measured.manifest, measured.nodes, measured.launches, analyze(measured), None)
    )
    write_atomically(path / "report.html", page.encode())
    return measured


def _compare(before: Run, after: Run, margin: float, path: Path) -> None:
    """Write the page that compares the curves as left with those as found, size by size."""
    page = html(compare_report.build(compare(before, after, margin), before.manifest.operations))
    write_atomically(path, page.encode())

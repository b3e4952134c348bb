"""The whole procedure in one run: audit, mending, curves, the search, what helps set, curves and audit again."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import msgspec

from wulf.errors import StoreError
from wulf.experiment import objective
from wulf.probe import ladder
from wulf.procedure import look
from wulf.procedure.analysis import analyze
from wulf.procedure.measuring import session as measuring
from wulf.procedure.mending import MendingInterrupted, MendRequest, mend, planned
from wulf.procedure.tuning import session as tuning
from wulf.procedure.tuning.prepare import Say
from wulf.records import Audit, Mending, NodeRecord
from wulf.report import run as run_report
from wulf.store import write_atomically
from wulf.store.tuning import AFTER, AUDIT_AFTER, AUDIT_BEFORE, BEFORE, MENDED, TuningRun

#: Share of the budget for the curves before the search; as much again for those after it.
CURVES = 0.1
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


def run(request: tuning.TuneRequest, path: Path, watcher: Watcher) -> TuningRun:
    """Do all of it in a new directory; what helps is set at the end.

    Parameters
    ----------
    request
        Its budget is for everything.

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
    records, audit = _audit(request, path / AUDIT_BEFORE, watcher)
    mended = _mend(request, path / MENDED, records, audit, watcher)
    share = 1 - 2 * CURVES if request.goal.probes else 1.0
    search_s = max(request.budget_s - (time.monotonic() - begin), request.budget_s / 2) * share
    _curves(request, path / BEFORE, watcher)
    with watcher.searching() as progress:
        searched = msgspec.structs.replace(request, budget_s=search_s)
        found = tuning.start(searched, path, progress, set_kept=True)
    watcher.searched(found)
    if found.manifest.change is not None or mended:
        _curves(request, path / AFTER, watcher)
        _audit(request, path / AUDIT_AFTER, watcher)
    return found


def _audit(request: tuning.TuneRequest, path: Path, watcher: Watcher) -> tuple[list[NodeRecord], Audit]:
    """Look at the nodes, judge them, and store what was found."""
    with watcher.looking(len(request.nodes)) as progress:
        records = look.look(request.config, request.nodes, progress=progress)
    audit = look.judge(records, request.goal.profile)
    watcher.audited(audit)
    write_atomically(path, msgspec.json.encode(audit))
    return records, audit


def _mend(
    request: tuning.TuneRequest, path: Path, records: list[NodeRecord], audit: Audit, watcher: Watcher
) -> bool:
    """Set right what is certainly wrong, and store what that brought; return whether anything has changed."""
    wanted = MendRequest(
        config=request.config,
        nodes=request.nodes,
        names=[],
        profile=request.goal.profile,
        permissions=request.permissions,
        mpi=request.mpi,
        seed=request.seed,
    )
    choice, plan = planned(wanted, audit, records)

    def told(found: Mending) -> None:
        write_atomically(path, msgspec.json.encode(found))
        watcher.mended(found)

    with watcher.mending() as say:
        try:
            found = mend(wanted, choice, plan, records, say)
        except MendingInterrupted as stop:
            told(stop.found)
            raise
    told(found)
    return found.outcome is not None and found.outcome.kept


def _curves(request: tuning.TuneRequest, path: Path, watcher: Watcher) -> None:
    """Measure whole curves of what the objective is made of, and write their page."""
    pairs = objective.pairs_for(request.nodes)
    if not request.goal.probes or not pairs:
        return
    wanted = measuring.MeasureRequest(
        config=request.config,
        ops=list(request.goal.probes),
        mpi=request.mpi,
        pairs=pairs,
        ladder="imb",
        sizes_bytes=ladder.base_sizes("imb", _LARGEST),
        budget_s=min(request.budget_s * CURVES, _CURVES_S),
        max_launches=20,
    )
    with watcher.measuring(path.name) as progress:
        measured, _ = measuring.start(wanted, path, progress)
    page = run_report.render_html(
        measured.manifest, measured.nodes, measured.launches, analyze(measured), None
    )
    write_atomically(path / "report.html", page.encode())

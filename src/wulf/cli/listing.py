"""``wulf list``: the runs there are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import msgspec
from rich.table import Table

from wulf import store
from wulf.cli.options import RUNS, JsonOption, RunsOption, print_json, show_table
from wulf.errors import StoreError
from wulf.store.hpl import HEAD as HPL
from wulf.store.hpl import load_hpl
from wulf.store.tuning import HEAD, load_tuning
from wulf.text import printable

Kind = Literal["measurement", "tuning", "hpl", "unknown"]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of ``wulf list --json``."""

    #: Name of the run.
    run: str
    #: ISO 8601, UTC; null when the run cannot be read.
    created_at: str | None
    #: As in its manifest, or what is wrong with it.
    status: str
    #: Measured, a search for better settings, or HPL; unknown when its directory cannot be read.
    kind: Kind
    #: Operations, or the objective.
    ops: list[str]
    #: Number of pairs.
    pairs: int
    #: Number of launches so far, scouts included; of trials in a search.
    launches: int


def command(runs: RunsOption = RUNS, json: JsonOption = False) -> None:
    """List the runs, the newest last."""
    entries = [
        *(_entry(path) for path in store.list_runs(runs)),
        *(_tuning(path) for path in store.list_runs(runs, HEAD)),
        *(_hpl(path) for path in store.list_runs(runs, HPL)),
        *(
            _broken(path, f"unreadable: {why}", "unknown")
            for path, why in store.unreadable_runs(runs).items()
        ),
    ]
    entries.sort(key=lambda entry: entry.created_at or "")
    if json:
        print_json(entries)
        return
    if not entries:
        sys.stdout.write(f"no runs in {runs} ('wulf measure' makes one)\n")
        return
    table = Table(box=None)
    # The name of a run is there to be copied: it is never cut.
    table.add_column("run", no_wrap=True, overflow="ignore")
    table.add_column("created", no_wrap=True)
    table.add_column("status", overflow="fold")
    table.add_column("operations or objective", overflow="fold")
    table.add_column("pairs", justify="right")
    table.add_column("launches or trials", justify="right")
    for entry in entries:
        created = (entry.created_at or "unknown")[:16].replace("T", " ")
        table.add_row(
            printable(entry.run),
            created,
            printable(entry.status, 200),
            ", ".join(entry.ops),
            str(entry.pairs),
            str(entry.launches),
        )
    show_table(table)


def _entry(path: Path) -> Entry:
    try:
        run = store.load(path)
    except StoreError as error:
        return _damaged(path, error, "measurement")
    plan = run.manifest.plan
    return Entry(
        run=path.name,
        created_at=run.manifest.created_at,
        status=_status(run.manifest.status, run.path),
        kind="measurement",
        ops=plan.workload.ops,
        pairs=len(plan.workload.places),
        launches=len(run.launches),
    )


def _tuning(path: Path) -> Entry:
    try:
        run = load_tuning(path)
    except StoreError as error:
        return _damaged(path, error, "tuning")
    return Entry(
        run=path.name,
        created_at=run.manifest.created_at,
        status=_status(run.manifest.status, run.path),
        kind="tuning",
        ops=[run.manifest.plan.objective],
        pairs=len(run.manifest.workload.places),
        launches=len(run.trials),
    )


def _hpl(path: Path) -> Entry:
    try:
        run = load_hpl(path)
    except StoreError as error:
        return _damaged(path, error, "hpl")
    return Entry(
        run=path.name,
        created_at=run.manifest.created_at,
        status=_status(run.manifest.status, run.path),
        kind="hpl",
        ops=["HPL"],
        pairs=0,
        launches=len(run.launches),
    )


def _damaged(path: Path, error: StoreError, kind: Kind) -> Entry:
    return _broken(path, f"damaged: {error}", kind)


def _broken(path: Path, status: str, kind: Kind) -> Entry:
    return Entry(
        run=path.name,
        created_at=None,
        status=status,
        kind=kind,
        ops=[],
        pairs=0,
        launches=0,
    )


def _status(status: str, path: Path) -> str:
    if status == "running" and not store.is_being_written(path):
        return "killed (--resume goes on)"
    return status

"""``wulf list``: the runs there are."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
from rich.table import Table

from wulf import store
from wulf.cli.options import RUNS, JsonOption, RunsOption, console
from wulf.errors import StoreError
from wulf.text import printable


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of ``wulf list --json``."""

    #: Name of the run.
    run: str
    #: ISO 8601, UTC; null when the run cannot be read.
    created_at: str | None
    #: As in its manifest, or what is wrong with it.
    status: str
    #: Operations.
    ops: list[str]
    #: Number of pairs.
    pairs: int
    #: Number of launches so far, scouts included.
    launches: int


def command(runs: RunsOption = RUNS, json: JsonOption = False) -> None:
    """List the runs, the newest last."""
    entries = [_entry(path) for path in store.list_runs(runs)]
    if json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(entries), indent=1).decode() + "\n")
        return
    if not entries:
        sys.stdout.write(f"no runs in {runs} ('wulf measure' makes one)\n")
        return
    table = Table(box=None)
    # The name of a run is there to be copied: it is never cut.
    table.add_column("run", no_wrap=True, overflow="ignore")
    table.add_column("created", no_wrap=True)
    table.add_column("status", overflow="fold")
    table.add_column("operations", overflow="fold")
    table.add_column("pairs", justify="right")
    table.add_column("launches", justify="right")
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
    console().print(table)


def _entry(path: Path) -> Entry:
    try:
        run = store.load(path)
    except StoreError as error:
        return Entry(run=path.name, created_at=None, status=f"damaged: {error}", ops=[], pairs=0, launches=0)
    plan = run.manifest.plan
    return Entry(
        run=path.name,
        created_at=run.manifest.created_at,
        status=_status(run),
        ops=plan.ops,
        pairs=len(plan.pairs),
        launches=len(run.launches),
    )


def _status(run: store.Run) -> str:
    if run.manifest.status == "running" and not store.is_being_written(run.path):
        return "killed (--resume goes on)"
    return run.manifest.status

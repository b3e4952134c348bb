"""``wulf runs list``: the runs there are."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wulf.base.errors import StoreError
from wulf.base.text import printable
from wulf.face.cli.options import print_json, show_table

if TYPE_CHECKING:
    from wulf.base.tool import Listed, RunKind
    from wulf.face.cli.json_records import Entry


def show(runs: Path, tags: Sequence[str], *, json: bool) -> None:
    """List the runs that have all these tags."""
    from rich.table import Table

    from wulf.base import store
    from wulf.base.store.kinds import list_any

    entries = [
        *(_entry(kind, path) for kind, path in list_any(runs)),
        *(
            _broken(path, f"unreadable: {why}", "unknown")
            for path, why in store.unreadable_runs(runs).items()
        ),
    ]
    entries = [entry for entry in entries if set(tags) <= set(entry.tags)]
    entries.sort(key=lambda entry: entry.created_at or "")
    if json:
        print_json(entries)
        return
    if not entries:
        which = f" with {', '.join(tags)}" if tags else ""
        sys.stdout.write(f"no runs{which} in {runs} ('wulf measure' makes one)\n")
        return
    said = any(entry.tags or entry.note for entry in entries)
    table = Table(box=None)
    # The name of a run is there to be copied: it is never cut.
    table.add_column("run", no_wrap=True, overflow="ignore")
    table.add_column("created", no_wrap=True)
    table.add_column("status", overflow="fold")
    table.add_column("operations or objective", overflow="fold")
    table.add_column("pairs", justify="right")
    table.add_column("launches or trials", justify="right")
    if said:
        table.add_column("tags, note", overflow="fold")
    for entry in entries:
        created = (entry.created_at or "unknown")[:16].replace("T", " ")
        table.add_row(
            printable(entry.run),
            created,
            printable(entry.status, 200),
            ", ".join(entry.ops),
            str(entry.pairs),
            str(entry.launches),
            *([_said(entry)] if said else []),
        )
    show_table(table)


def _said(entry: Entry) -> str:
    """Return the tags, and as much of the note as a line has room for."""
    return ": ".join(
        filter(None, (printable(", ".join(entry.tags)), printable(entry.note.partition("\n")[0], 60)))
    )


def _entry(kind: RunKind, path: Path) -> Entry:
    from wulf.base.store.labels import LABELS, Labels, labels
    from wulf.face.cli.json_records import Entry

    try:
        run = kind.read(path)
    except StoreError as error:
        return _broken(path, f"damaged: {error}", kind.name)
    try:
        said = labels(path)
    except StoreError:
        said = Labels(note=f"{LABELS} is damaged")
    listed: Listed = kind.part(kind.listed)(run)
    return Entry(
        run=path.name,
        created_at=run.manifest.created_at,
        status=_status(run.manifest.status, run.path),
        kind=kind.name,
        ops=listed.subjects,
        pairs=listed.pairs,
        launches=listed.steps,
        tags=list(said.tags),
        note=said.note,
    )


def _broken(path: Path, status: str, kind: str) -> Entry:
    from wulf.face.cli.json_records import Entry

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
    from wulf.base import store

    if status == "running" and not store.is_being_written(path):
        return "killed (--resume goes on)"
    return status

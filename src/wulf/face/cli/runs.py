"""``wulf runs``: what there is, and what is done with whole runs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import StoreError, UsageError
from wulf.base.request import RUNS
from wulf.base.text import printable
from wulf.face.cli import complete, listing
from wulf.face.cli.options import JsonOption, RunsOption, print_json

if TYPE_CHECKING:
    from wulf.base.store.labels import Labels

app = typer.Typer(
    help="List, label, rename, delete and move runs, of all kinds.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_Run = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="Path or name of a run, the beginning of its name, or 'latest'.",
        autocompletion=complete.runs,
    ),
]


@app.command("list")
def list_runs(
    tag: Annotated[
        list[str] | None, typer.Option(help="Only runs with this tag. May be repeated: with all of them.")
    ] = None,
    runs: RunsOption = RUNS,
    json: JsonOption = False,
) -> None:
    """List the runs, the newest last."""
    listing.show(runs, tag or [], json=json)


@app.command("tag")
def tag_run(
    run: _Run,
    tags: Annotated[list[str], typer.Argument(metavar="TAG...", help="Words; -TAG after -- removes one.")],
    runs: RunsOption = RUNS,
    json: JsonOption = False,
) -> None:
    """Add tags to a run, or remove them: 'wulf runs tag RUN good rack1', 'wulf runs tag RUN -- -good'."""
    from wulf.base.store.kinds import find_any
    from wulf.base.store.labels import labels, tagged

    path = find_any(run, runs)
    taken = [word[1:] for word in tags if word.startswith("-")]
    said = tagged(labels(path), [word for word in tags if not word.startswith("-")], taken)
    _save(path, said, json=json)


@app.command("note")
def note_run(
    run: _Run,
    text: Annotated[
        str | None,
        typer.Argument(help="The note; '' removes it. Default: show it."),
    ] = None,
    runs: RunsOption = RUNS,
    json: JsonOption = False,
) -> None:
    """Attach a note to a run, or show it."""
    from wulf.base.store.kinds import find_any
    from wulf.base.store.labels import labels, noted

    path = find_any(run, runs)
    if text is None:
        _show(path, labels(path), json=json)
    else:
        _save(path, noted(labels(path), text), json=json)


@app.command("rename")
def rename_run(
    run: _Run,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name.")],
    runs: RunsOption = RUNS,
) -> None:
    """Give a run another name."""
    from wulf.base.store.kinds import find_any
    from wulf.base.store.runs import checked_name

    path = find_any(run, runs)
    target = path.parent / checked_name(name)
    _require_idle(path, "renamed")
    if target.exists():
        raise UsageError(f"{target} exists already: choose another name")
    try:
        path.rename(target)
    except OSError as error:
        raise StoreError(f"cannot rename {path}: {error.strerror}") from error
    sys.stdout.write(f"run: {target}\n")


@app.command("delete")
def delete_runs(
    names: Annotated[
        list[str],
        typer.Argument(metavar="RUN...", help="Paths or full names.", autocompletion=complete.runs),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    runs: RunsOption = RUNS,
) -> None:
    """Delete runs for good; asks first.

    What a tuning run has set on the nodes stays set: 'wulf rollback' takes that back, also without the run.
    """
    paths = [_named_exactly(name, runs) for name in dict.fromkeys(names)]
    for path in paths:
        _require_idle(path, "deleted")
    if not yes and not _confirmed(paths):
        raise UsageError("nothing was deleted: give --yes, or answer y")
    for path in paths:
        _delete(path)
        sys.stdout.write(f"deleted: {path}\n")


@app.command("archive")
def archive_run(
    run: _Run,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="File to write. Default: ./RUN.tar.gz."),
    ] = None,
    runs: RunsOption = RUNS,
) -> None:
    """Pack a run into one file, with the checksums of all that is in it.

    It is an ordinary .tar.gz; 'sha256sum -c SHA256SUMS' in its directory checks it without wulf. The run stays.
    """
    from wulf.base.store import archive as archives
    from wulf.base.store.kinds import find_any

    path = find_any(run, runs)
    target = output or Path(f"{path.resolve().name}{archives.ENDING}")
    archives.pack(path, target)
    sys.stdout.write(f"written: {target} ({target.stat().st_size / 1e6:.1f} MB)\n")


@app.command("import")
def import_run(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Archives made by 'wulf runs archive'.")
    ],
    name: Annotated[str | None, typer.Option("--as", metavar="NAME", help="Name of the run here.")] = None,
    runs: RunsOption = RUNS,
) -> None:
    """Import runs from other machines.

    An archive that is damaged, or would write anything outside of its run, is refused and leaves nothing behind.
    For outputs of other benchmarks: 'wulf measure import'.
    """
    from wulf.base.store import archive as archives
    from wulf.base.store.runs import checked_name

    if name is not None and len(files) > 1:
        raise UsageError("--as names one run: give one FILE")
    for file in files:
        path = archives.unpack(file, runs, None if name is None else checked_name(name))
        sys.stdout.write(f"run: {path}\n")


def _save(path: Path, said: Labels, *, json: bool) -> None:
    from wulf.base.store.labels import save_labels

    save_labels(path, said)
    _show(path, said, json=json)


def _show(path: Path, said: Labels, *, json: bool) -> None:
    from wulf.face.cli.json_records import RunLabels

    if json:
        print_json(RunLabels(run=path.name, tags=list(said.tags), note=said.note))
        return
    sys.stdout.write(f"run: {path}\n")
    if said.tags:
        sys.stdout.write(f"tags: {printable(', '.join(said.tags))}\n")
    if said.note:
        sys.stdout.write(f"note: {printable(said.note, 10_000)}\n")


def _require_idle(path: Path, what: str) -> None:
    from wulf.base import store

    if store.is_being_written(path):
        raise StoreError(f"{path} is being written: it can be {what} when that has ended")


def _named_exactly(name: str, runs: Path) -> Path:
    """Return a run by its whole name: the beginning of one, or ``latest``, is too little to delete by."""
    from wulf.base.store.kinds import find_any, kind_of

    path = find_any(name, runs)
    if path.name != Path(name).name:
        raise UsageError(f"{printable(name, 80)!r}: to delete a run, give its full name, {path.name}")
    kind_of(path)
    return path


def _confirmed(paths: Sequence[Path]) -> bool:
    if not sys.stdin.isatty():
        return False
    sys.stderr.write(f"delete {', '.join(path.name for path in paths)}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _delete(path: Path) -> None:
    """Delete a directory: first its name goes, so that nobody finds half a run."""
    hidden = path.with_name(f".deleted-{path.name}")
    try:
        path.rename(hidden)
        shutil.rmtree(hidden)
    except OSError as error:
        raise StoreError(f"cannot delete {path}: {error.strerror}") from error

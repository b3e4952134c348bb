"""Options that several verbs share, and how they are resolved."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import UsageError
from wulf.base.request import JsonField, Option, RunsField
from wulf.face.cli import complete
from wulf.face.cli.declared import option_of
from wulf.node.fleet.fields import ClusterField

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from wulf.base import store

RunsOption = Annotated[Path, option_of(RunsField, "runs")]
RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="Path or name of a run, the beginning of its name, or 'latest'.",
        autocompletion=complete.runs,
    ),
]
JsonOption = Annotated[bool, option_of(JsonField, "json")]
ClusterOption = Annotated[str | None, option_of(ClusterField, "cluster")]
ResumeField = Annotated[
    str | None,
    Option(
        "Continue an interrupted run with its original options; 'latest' is the last one.",
        metavar="RUN",
        complete="runs",
    ),
]
#: Where the name of a new run stood in versions before 0.2.
MovedArgument = Annotated[str | None, typer.Argument(hidden=True)]
#: Wider than any table [columns].
_UNBOUNDED = 100_000


def console() -> Console:
    """Return the console for results; plain text when it is not a terminal."""
    from wulf.face.cli.stdout import Output

    return Output(soft_wrap=not sys.stdout.isatty(), highlight=False)


def show_table(table: Table) -> None:
    """Print a table at any width: where columns have no room a row is a paragraph; a pipe has whole lines."""
    from wulf.face.cli.stdout import Output
    from wulf.page import parts
    from wulf.page.terminal import Printer

    columns = tuple(
        parts.Column(str(column.header), numeric=column.justify == "right", whole=column.no_wrap)
        for column in table.columns
    )
    cells = zip(*(column.cells for column in table.columns), strict=True)
    rows = tuple(tuple(parts.Item(str(cell)) for cell in row) for row in cells)
    output = Output(width=None if sys.stdout.isatty() else _UNBOUNDED, highlight=False)
    Printer(output).rows(parts.Table("", columns, rows), heads=table.show_header)


def print_json(value: object) -> None:
    """Print a record, or a list of records, for programs."""
    import msgspec

    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=1).decode() + "\n")


def say(text: str) -> None:
    """Tell a person what is going on, beside the results."""
    sys.stderr.write(f"{text}\n")


def open_run(name: str, runs: Path) -> store.Run:
    """Load the run that a user names."""
    from wulf.base import store

    return store.load(store.find_run(name, runs))


def require_named(moved: str | None) -> None:
    """Refuse a name that stands where that of a new run stood.

    Raises
    ------
    UsageError
        Says how it is given now.
    """
    if moved is not None:
        raise UsageError(f"{moved!r}: a new run is named by --run NAME; to go on with one: --resume RUN")

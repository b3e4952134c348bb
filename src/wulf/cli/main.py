"""The ``wulf`` command: collects the verbs, and turns exceptions into messages and exit codes."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from rich.console import Console

from wulf import __version__
from wulf.cli import analyze, compare, init, lab, listing, measure, report
from wulf.errors import EXIT_ERROR, EXIT_INTERRUPTED, WulfError
from wulf.text import printable

app = typer.Typer(
    name="wulf",
    help="Measure what the interconnect of a cluster really does, with statistics that survive noise.\n\n"
    "Start with 'wulf lab up' for a virtual cluster, or 'wulf init' for your own; then 'wulf measure'.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Exit codes: 0 all well, 1 an error, 2 done but with findings (see the output), 130 interrupted.",
)
for verb in (init, measure, analyze, compare, report, listing):
    app.command(name=verb.NAME)(verb.command)
app.add_typer(lab.app, name="lab")


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"wulf {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def run() -> None:
    """Entry point of the ``wulf`` program."""
    try:
        app()
    except WulfError as error:
        Console(stderr=True, soft_wrap=True).print(
            f"wulf: {printable(str(error))}", style="red", markup=False
        )
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader (head, less) has gone; nothing may be written to it any more, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_ERROR)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    run()

"""The ``wulf`` command: collects the verbs, and turns exceptions into messages and exit codes."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from wulf import __version__
from wulf.errors import EXIT_ERROR, EXIT_INTERRUPTED, WulfError
from wulf.text import printable

#: Verb → its module, which has a function ``command`` or, with verbs of its own, an ``app``.
VERBS = {
    "init": "wulf.cli.init",
    "facts": "wulf.cli.facts",
    "audit": "wulf.cli.audit",
    "knob": "wulf.cli.knob",
    "run": "wulf.cli.run",
    "tune": "wulf.cli.tune",
    "set": "wulf.cli.set_values",
    "status": "wulf.cli.status",
    "rollback": "wulf.cli.rollback",
    "persist": "wulf.cli.persist",
    "verify": "wulf.cli.verify",
    "export": "wulf.cli.export",
    "measure": "wulf.cli.measure",
    "analyze": "wulf.cli.analyze",
    "compare": "wulf.cli.compare",
    "report": "wulf.cli.report",
    "list": "wulf.cli.listing",
    "lab": "wulf.cli.lab",
}


class _Verbs(TyperGroup):
    """Imports a verb only when it is used: the statistics and the charts alone take a second to import."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the base class's signature
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - the base class's signature
        if cmd_name not in VERBS:
            return None
        module = import_module(VERBS[cmd_name])
        if hasattr(module, "app"):
            command = typer.main.get_command(module.app)
        else:
            single = typer.Typer(add_completion=False, rich_markup_mode=None)
            single.command(name=cmd_name)(module.command)
            command = typer.main.get_command(single)
        command.name = cmd_name
        return command


app = typer.Typer(
    name="wulf",
    cls=_Verbs,
    help="Measure what the interconnect of a cluster really does, with statistics that survive noise, and find "
    "what on the nodes slows it down.\n\n"
    "Start with 'wulf lab up' for a virtual cluster, or 'wulf init' for your own; then 'wulf audit' and "
    "'wulf measure'.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Exit codes: 0 all well, 1 an error, 2 wrong usage, 3 done but with findings (see the output), "
    "130 interrupted.",
)


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

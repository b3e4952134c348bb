"""The ``wulf`` command: collects the verbs, and turns exceptions into messages and exit codes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from wulf import __version__
from wulf.base import defaults
from wulf.base.errors import EXIT_ERROR, EXIT_INTERRUPTED, WulfError
from wulf.base.signals import end_gently
from wulf.base.text import nearest, printable
from wulf.face.cli import logs
from wulf.face.cli.defaults import blaming, of_command
from wulf.face.cli.verbs import (
    HEADINGS,
    HIDDEN,
    MOVED,
    SHORT,
    VERBS,
    convert_if_given,
    listed_only,
    load,
    write_list,
)

#: Verbs that say what is wrong with the defaults that others would use.
_ABOUT_DEFAULTS = ("config",)


@contextmanager
def _ending_quietly() -> Iterator[None]:
    """End without a traceback on Ctrl-C, and when the reader of what is printed has gone."""
    try:
        yield
    except KeyboardInterrupt:
        # Verbs that have something to say of what became of their work have said it.
        raise _interrupted() from None
    except BrokenPipeError:
        _end_of_pipe()


class _Verbs(TyperGroup):
    """Imports a verb only when it is used, and the verb what does its work only when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the base class's signature
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        known = {**VERBS, **HIDDEN}
        if cmd_name in known:
            return load(cmd_name, known[cmd_name])
        if not ctx.resilient_parsing:
            moved = f": it is 'wulf {MOVED[cmd_name]}' now" if cmd_name in MOVED else nearest(cmd_name, VERBS)
            ctx.fail(f"No such command '{printable(cmd_name, 60)}'{moved}{'' if moved else '.'}")
        return None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        convert_if_given(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - the base class's signature
        for heading, verbs in HEADINGS.items():
            write_list(formatter, verbs, heading, max(map(len, VERBS)))

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        listed = listed_only(VERBS, self.params)
        names = ctx.help_option_names
        return listed.shell_complete(typer.Context(listed, help_option_names=names), incomplete)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            logs.accept_after_verb(command, rest)
            if hasattr(command, "commands"):
                convert_if_given(command.get_params(ctx))
        if command is not None and name is not None and name not in _ABOUT_DEFAULTS:
            # A shell that asks how a word may go on is told nothing of what is wrong.
            with suppress(WulfError) if ctx.resilient_parsing else nullcontext():
                defaults.require_known(list(VERBS))
                ctx.default_map = {name: of_command(SHORT.get(name, [name]), command, rest)}
        return name, command, rest

    def make_context(self, *words: Any, **more: Any) -> Any:
        with _ending_quietly():
            return super().make_context(*words, **more)  # prints the help

    def invoke(self, ctx: Any) -> Any:
        with _ending_quietly():
            return blaming(lambda: super(_Verbs, self).invoke(ctx))


app = typer.Typer(
    name="wulf",
    cls=_Verbs,
    help="Measure what the interconnect of a cluster really does, with statistics that survive noise, and find "
    "what on the nodes slows it down.\n\n"
    "Start with 'wulf lab up' for a virtual cluster, or 'wulf init' for your own; then 'wulf audit' and "
    "'wulf measure'.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
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
    verbose: logs.VerboseOption = False,
    log_file: logs.LogFileOption = None,
    explain: logs.ExplainOption = False,
) -> None:
    logs.begin(verbose=verbose, path=log_file, explain=explain)


def _interrupted() -> typer.Exit:
    sys.stderr.write("wulf: interrupted\n")
    return typer.Exit(EXIT_INTERRUPTED)


def _end_of_pipe() -> NoReturn:
    """End as other programs do whose reader (head, less) has gone: at once, and without a word."""
    # Nothing may be written to it any more, not even at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGPIPE)
    sys.exit(EXIT_ERROR)


def run() -> None:
    """Run the command line; `wulf.start` is the entry point of the program."""
    try:
        end_gently()  # whatever the verb: connections are closed, and their directories go
        app()
    except WulfError as error:
        from wulf.page.escaping import CleanConsole

        logs.ended(error)
        CleanConsole(stderr=True, soft_wrap=True).print(
            f"wulf: {printable(str(error))}", style="red", markup=False
        )
        sys.exit(error.exit_code)
    except SystemExit as end:
        logs.ended(end)
        _flush()
        raise end from None
    except BrokenPipeError:
        _end_of_pipe()
    except KeyboardInterrupt:
        _interrupted()
        sys.exit(EXIT_INTERRUPTED)
    except Exception as error:
        logs.ended(error)  # with all that led to it
        raise


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _end_of_pipe()


if __name__ == "__main__":
    run()

"""The ``wulf`` command: collects the verbs, and turns exceptions into messages and exit codes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from importlib import import_module
from typing import Annotated, Any, NamedTuple, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from wulf import __version__
from wulf.base import defaults
from wulf.base.errors import EXIT_ERROR, EXIT_INTERRUPTED, WulfError
from wulf.base.text import nearest, printable
from wulf.face.cli import logs
from wulf.face.cli.defaults import blaming, of_command


class Verb(NamedTuple):
    """A verb, as the list of verbs has it."""

    #: Has a function ``command`` or, with verbs of its own, an ``app``.
    module: str
    #: The first line of its help: it stands here so that the list imports no verb.
    summary: str


VERBS = {
    "init": Verb(
        "wulf.face.cli.init",
        "Write cluster.toml after looking at the nodes: interface, addresses, who does not answer.",
    ),
    "facts": Verb(
        "wulf.face.cli.facts", "Show how every node is made and set; nodes that agree share a line."
    ),
    "audit": Verb(
        "wulf.face.cli.audit",
        "Check every node's settings, services and drivers, and that the nodes are alike.",
    ),
    "knob": Verb("wulf.face.cli.knob", "The catalogue of settings, and their values on the nodes."),
    "mend": Verb("wulf.face.cli.mend", "Set right what is wrong whatever the cluster is for."),
    "run": Verb(
        "wulf.face.cli.run",
        "Do everything: audit, measure, mend, tune, confirm, measure again, report what all of it brought.",
    ),
    "tune": Verb("wulf.face.cli.tune", "Find the settings that help, by experiment, and set them."),
    "set": Verb("wulf.face.cli.set_values", "Set values on all nodes, or on none."),
    "status": Verb(
        "wulf.face.cli.status",
        "Show what wulf has set on the nodes, by which change, and what differs from the original state.",
    ),
    "rollback": Verb(
        "wulf.face.cli.rollback",
        "Put back, exactly, what confirmed changes have changed: live values and stored files.",
    ),
    "persist": Verb("wulf.face.cli.persist", "Keep over reboots what 'wulf set' or 'wulf tune' has set."),
    "verify": Verb(
        "wulf.face.cli.verify",
        "Prove that what was confirmed holds: the live values, the files that keep them, and the figures.",
    ),
    "export": Verb(
        "wulf.face.cli.export",
        "Write what was found to help as a TuneD profile, an Ansible playbook or a shell script.",
    ),
    "sudoers": Verb(
        "wulf.face.cli.sudoers",
        "Withdrawn: the rules that earlier versions printed let the user whom they name become root.",
    ),
    "topology": Verb(
        "wulf.face.cli.topology",
        "Show the direct links of the cluster file ([cluster] links), and which shapes are there with ranks on "
        "which node.",
    ),
    "measure": Verb("wulf.face.cli.measure", "Measure the interconnect between pairs of nodes."),
    "app": Verb(
        "wulf.face.cli.app",
        "Measure a command: its run time, numbers that it prints, and what it takes of the node.",
    ),
    "characterise": Verb(
        "wulf.face.cli.characterise",
        "Say of which class programs are: what they do with MPI, and what settings bring them.",
    ),
    "emulate": Verb(
        "wulf.face.cli.emulate",
        "Perform a pattern of messages and computing on the cluster, and say how long it takes.",
    ),
    "trace": Verb(
        "wulf.face.cli.trace", "Record what every rank of a program does with MPI, and say what that was."
    ),
    "predict": Verb(
        "wulf.face.cli.predict",
        "Say what a traced program would take on other networks, and whether that is worth anything.",
    ),
    "worth": Verb(
        "wulf.face.cli.worth",
        "Say what other networks are worth: node-hours saved a year, against ports and power.",
    ),
    "diagnose": Verb(
        "wulf.face.cli.diagnose", "Say which node, link or group of nodes is slow, or that all are alike."
    ),
    "drain": Verb(
        "wulf.face.cli.drain",
        "Take the nodes out of Slurm's service that a run of all pairs shows to be slow, with the reason.",
    ),
    "watch": Verb(
        "wulf.face.cli.watch",
        "Measure and audit again and again, on idle nodes, and say what has changed and what changed with it.",
    ),
    "blas": Verb(
        "wulf.face.cli.blas",
        "Say which BLAS library is fastest, by products of matrices (DGEMM), with its interval.",
    ),
    "hpcc": Verb(
        "wulf.face.cli.hpcc",
        "Run HPC Challenge on all nodes together and on each alone, and name the nodes that are not like the others.",
    ),
    "shipped": Verb(
        "wulf.face.cli.shipped",
        "Build a program that comes with wulf, put it on the nodes, and print its path there.",
    ),
    "hpl": Verb(
        "wulf.face.cli.hpl",
        "Run High-Performance Linpack with the setting that is quickest here, as large as time and memory allow.",
    ),
    "import": Verb(
        "wulf.face.cli.importing",
        "Import outputs of other benchmarks as a run, to compare, fit and report them.",
    ),
    "analyze": Verb(
        "wulf.face.cli.analyze",
        "Compute estimates, models and warnings again from the records of a run, and store them with it.",
    ),
    "compare": Verb(
        "wulf.face.cli.compare", "Show the shift of every size with its interval, and a verdict."
    ),
    "mpi": Verb(
        "wulf.face.cli.mpi",
        "Find the best algorithms for an MPI library's collectives, and compare MPI libraries.",
    ),
    "report": Verb(
        "wulf.face.cli.report",
        "Report a measured run, a tuning run or a run of HPL. Without an option an HTML file is written into it.",
    ),
    "list": Verb("wulf.face.cli.listing", "List the runs, the newest last."),
    "runs": Verb("wulf.face.cli.runs", "List, label, rename, delete and move runs, of all kinds."),
    "config": Verb(
        "wulf.face.cli.config",
        "Show the defaults of options, and where each is from: environment, your file, the site's file.",
    ),
    "schema": Verb(
        "wulf.face.cli.schema",
        "Print the JSON Schema (2020-12) of what a command prints with --json, or of a file of a run.",
    ),
    "lab": Verb(
        "wulf.face.cli.lab",
        "A virtual cluster on this machine, to try everything on without touching a real one.",
    ),
}
#: Verbs that no person gives: Slurm's tasks do.
_HIDDEN = {"replay-piece": Verb("wulf.face.cli.replay_piece", "")}
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


def _listed(options: list[Any]) -> TyperGroup:
    """Return a group that can only be listed: it has every verb with its summary, and nothing is imported for it."""
    return TyperGroup(
        params=options,
        commands={name: TyperCommand(name, help=verb.summary) for name, verb in VERBS.items()},
    )


def _convert_if_given(options: Iterable[Any]) -> None:
    """Let options be None at once where nobody has given them: what typer imports to convert values takes 0.1 s."""
    for option in options:
        if "process_value" not in vars(option):
            option.process_value = partial(_converted, option.process_value)


def _converted(convert: Callable[[Any, Any], Any], ctx: Any, value: Any) -> Any:
    return None if value is None else convert(ctx, value)


class _Verbs(TyperGroup):
    """Imports a verb only when it is used, and the verb what does its work only when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the base class's signature
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        known = VERBS | _HIDDEN
        if cmd_name not in known:
            if not ctx.resilient_parsing:
                hint = nearest(cmd_name, VERBS)
                ctx.fail(f"No such command '{printable(cmd_name, 60)}'{hint}{'' if hint else '.'}")
            return None
        module = import_module(known[cmd_name].module)
        if hasattr(module, "app"):
            command = typer.main.get_command(module.app)
        else:
            single = typer.Typer(add_completion=False, rich_markup_mode=None)
            single.command(name=cmd_name)(module.command)
            command = typer.main.get_command(single)
        command.name = cmd_name
        return command

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _convert_if_given(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        _listed([]).format_commands(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        listed = _listed(self.params)
        names = ctx.help_option_names
        return listed.shell_complete(typer.Context(listed, help_option_names=names), incomplete)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            logs.accept_after_verb(command)
            if hasattr(command, "commands"):
                _convert_if_given(command.get_params(ctx))
        if command is not None and name is not None and name not in _ABOUT_DEFAULTS:
            # A shell that asks how a word may go on is told nothing of what is wrong.
            with suppress(WulfError) if ctx.resilient_parsing else nullcontext():
                defaults.require_known(list(VERBS))
                ctx.default_map = {name: of_command([name], command)}
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
) -> None:
    logs.begin(verbose=verbose, path=log_file)


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
        app()
    except WulfError as error:
        from rich.console import Console

        logs.ended(error)
        Console(stderr=True, soft_wrap=True).print(
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

"""``wulf program trace``: what a program does with MPI, recorded, shown and exported."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from wulf.base.errors import UsageError
from wulf.base.units import parse_size
from wulf.face.cli.facts import NodesOption
from wulf.face.cli.options import ClusterOption, JsonOption, console, print_json
from wulf.face.cli.progress import staging

LIMIT = "1GiB"


class _Verbs(TyperGroup):
    """Takes a command for one to be recorded where no verb stands before it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["record", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Verbs,
    help="Record what every rank of a program does with MPI, and say what that was.\n\n"
    "'wulf program trace [-o FILE] -- mpirun -np 8 ./app' is short for 'wulf program trace record'. The program "
    "stays as it is: a library is loaded before its MPI library. 'wulf program predict FILE' says what it would take "
    "on other networks.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
FileArgument = Annotated[Path, typer.Argument(metavar="TRACE", help="A trace (.wtrace).")]


@app.command()
def record(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND...", help="The command, after --. One word alone is read by a shell."
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Where the trace goes.")
    ] = Path("app.wtrace"),
    limit: Annotated[
        str, typer.Option(help="Largest file of each rank: calls beyond it are counted, and not recorded.")
    ] = LIMIT,
    ranks: Annotated[
        int,
        typer.Option(
            min=0,
            help="The command is an MPI program: start so many ranks of it, spread over the nodes of the cluster, as "
            "its MPI library and network want it. Default: 0, the command starts its own.",
        ),
    ] = 0,
    mpi: Annotated[
        str | None,
        typer.Option(
            help="MPI library of the program: openmpi, mpich, or the path of an mpicc. Default: that of the mpirun "
            "that stands first, else that which the program is linked with."
        ),
    ] = None,
    cluster_name: ClusterOption = None,
    nodes: NodesOption = None,
    json: JsonOption = False,
) -> None:
    """Run a command, record every call of MPI, and write the trace.

    With --cluster or --ranks it runs on the first node; else here. Programs in C, C++ and Fortran that are linked
    dynamically are seen. A program that dies leaves a trace up to its end. Exit code: that of the command.
    """
    from wulf.base.trace.summary import summary
    from wulf.node.fleet.clusters import cluster as resolve
    from wulf.page.terminal import print_page
    from wulf.tools.trace import page as report
    from wulf.tools.trace import work

    config = resolve(cluster_name if cluster_name is not None or ranks else "local")
    request = work.TraceRequest(
        config=config,
        nodes=config.select(nodes),
        words=words,
        output=output,
        ranks=ranks,
        mpi=mpi or config.mpi.compiler,
        limit_bytes=parse_size(limit),
    )
    with staging() as say:
        found = work.trace(request, say)
    told = summary(found.trace)
    if json:
        print_json(told)
    else:
        print_page(report.build(told), console())
        sys.stderr.write(f"trace: {output}\n")
    if found.exit_code:
        raise typer.Exit(found.exit_code)


@app.command()
def show(
    trace: FileArgument,
    html_file: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write a page to this file: a timeline, who sends to whom, calls, ranks, sizes.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Say what a trace holds: time in MPI by call, ranks, sizes of messages, who sends to whom, what was when."""
    from wulf.base.store import write_atomically
    from wulf.base.trace.reader import read_verified
    from wulf.base.trace.summary import summary
    from wulf.page.page import html
    from wulf.page.terminal import print_page
    from wulf.tools.trace import page as report

    found = read_verified(trace)
    told = summary(found)
    if html_file is not None:
        write_atomically(html_file, html(report.build(told)).encode())
        sys.stderr.write(f"written: {html_file}\n")
    if json:
        print_json(told)
    else:
        print_page(report.build(told), console())


@app.command()
def pattern(
    trace: FileArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Where the pattern goes. Default: it is printed."
        ),
    ] = None,
) -> None:
    """Sum up a trace as a pattern, for 'wulf program emulate' and 'predict': who sends how much to whom each iteration.

    All iterations are alike in it: the order of calls and what waits for what are not there, so that it is a load of
    the same kind, to be changed and scaled, and no replay.
    """
    from wulf.base.pattern.summarised import pattern_text
    from wulf.base.store import write_atomically
    from wulf.base.trace.reader import read_verified
    from wulf.base.trace.summary import summary

    text = pattern_text(summary(read_verified(trace)))
    if output is None:
        sys.stdout.write(text)
    else:
        write_atomically(output, text.encode())
        sys.stderr.write(f"written: {output}\n")


@app.command("import")
def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Of GOAL one file; of SMPI those of the ranks, or their list as 'smpirun -replay' takes it.",
        ),
    ],
    from_: Annotated[
        Literal["goal", "smpi"], typer.Option("--from", help="Format: GOAL, or SMPI's time-independent text.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Where the trace goes.")
    ] = Path("app.wtrace"),
    speed: Annotated[
        float, typer.Option(min=1.0, help="Of SMPI: operations that a host computes in a second.")
    ] = 1e9,
) -> None:
    """Make a trace of what other simulators replay.

    It says nothing of how long the program ran: a prediction is then the model's alone. What cannot be followed (other
    communicators, a second CPU of a rank) is refused by file and line.
    """
    from wulf.base.trace.summary import summary
    from wulf.page.terminal import print_page
    from wulf.tools.trace import page as report
    from wulf.tools.trace.importing import import_trace

    print_page(report.build(summary(import_trace(files, from_, output, speed))), console())
    sys.stderr.write(f"trace: {output}\n")


@app.command()
def export(
    trace: FileArgument,
    to: Annotated[
        Literal["goal", "smpi"], typer.Option(help="Format: GOAL, or SMPI's time-independent text.")
    ],
    directory: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIRECTORY", help="Where the files go.")
    ],
) -> None:
    """Write a trace for other simulators."""
    from wulf.tools.trace import exporting

    if directory.exists() and not directory.is_dir():
        raise UsageError(f"-o {directory}: not a directory")
    for path in exporting.export(trace, to, directory):
        sys.stdout.write(f"{path}\n")

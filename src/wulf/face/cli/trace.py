"""``wulf program trace``: what a program does with MPI, recorded, shown and exported."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from wulf.base.errors import UsageError
from wulf.face.cli.declared import flat
from wulf.face.cli.options import JsonOption, console, print_json
from wulf.face.cli.progress import staging
from wulf.face.cli.tool import Shown, show_record
from wulf.tools.trace.request import ImportFormat, TraceRequest


class _Verbs(TyperGroup):
    """Takes a command for one to be recorded where no verb stands before it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["record", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Verbs,
    help="Record what every rank of a program does with MPI, and summarise it.\n\n"
    "'wulf program trace [-o FILE] -- mpirun -np 8 ./app' is short for 'wulf program trace record'. The program "
    "is not changed: a library is loaded before its MPI library. 'wulf program predict FILE' predicts its run time on "
    "other networks.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
FileArgument = Annotated[Path, typer.Argument(metavar="TRACE", help="A trace (.wtrace).")]


@app.command()
@flat
def record(request: TraceRequest, json: JsonOption = False) -> None:
    from wulf.base.trace.summary import summary
    from wulf.page.terminal import print_page
    from wulf.tools.trace import page as report
    from wulf.tools.trace import work

    with staging() as say:
        launches = work.launches(request, say)
    found = launches[0]
    told = summary(found.trace)
    if json:
        print_json(told)
    else:
        print_page(report.build(told), console())
        sys.stderr.write(f"trace: {request.output}\n")
    if len(launches) > 1:
        others = [str(request.output_of(number)) for number in range(2, len(launches) + 1)]
        said = work.differences(launches)
        words = " ".join(f"--again {shlex.quote(other)}" for other in others)
        sys.stderr.write(f"{said or 'how long the launches took is not known'}\n")
        sys.stderr.write(f"next: wulf program predict {shlex.quote(str(request.output))} {words} --on RUN\n")
    if code := next((one.exit_code for one in launches if one.exit_code), 0):
        raise typer.Exit(code)


@app.command()
@flat
def show(trace: FileArgument, shown: Shown) -> None:
    """Show what is in a trace: time in MPI by call, ranks, sizes of messages, who sends to whom, a timeline."""
    from wulf.base.trace.reader import read_verified
    from wulf.base.trace.summary import summary
    from wulf.tools.trace import page as report

    told = summary(read_verified(trace))
    show_record(told, report.build(told), shown)


@app.command()
def pattern(
    trace: FileArgument,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="File for the pattern. Default: print it."),
    ] = None,
) -> None:
    """Summarise a trace as a pattern for 'wulf program emulate' and 'predict': who sends whom how much in an iteration.

    All its iterations are alike: the order of calls and the dependences between them are not kept. It is a load of
    the same kind, which can be changed and scaled, but not a replay.
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
            help="GOAL: one file; SMPI: the files of the ranks, or the list of them that 'smpirun -replay' takes; "
            "OTF2: the anchor file (traces.otf2), or its directory.",
        ),
    ],
    from_: Annotated[
        ImportFormat,
        typer.Option(
            "--from", help="Format: GOAL, SMPI's time-independent text, or OTF2 (Score-P, EZTrace, TAU)."
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="File for the trace.")
    ] = Path("app.wtrace"),
    speed: Annotated[
        float, typer.Option(min=1.0, help="SMPI: operations that a host computes in a second.")
    ] = 1e9,
) -> None:
    """Convert a trace of another simulator (GOAL, SMPI) or of another recorder (OTF2).

    GOAL and SMPI do not say how long the program ran: a prediction is then the model's alone. What cannot be followed
    is refused with file and line; what is left out of an OTF2 archive is named and counted. OTF2 needs its own library:
    'pip install otf2', or Debian's python3-otf2.
    """
    from wulf.base.trace.summary import summary
    from wulf.page.terminal import print_page
    from wulf.tools.trace import page as report
    from wulf.tools.trace.importing import import_trace

    trace = import_trace(files, from_, output, speed)
    print_page(report.build(summary(trace)), console())
    for remark in trace.note["remarks"]:
        sys.stderr.write(f"{remark}\n")
    sys.stderr.write(f"trace: {output}\n")


@app.command()
def export(
    trace: FileArgument,
    to: Annotated[
        Literal["goal", "smpi"], typer.Option(help="Format: GOAL, or SMPI's time-independent text.")
    ],
    directory: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIRECTORY", help="Directory for the files.")
    ],
) -> None:
    """Write a trace for other simulators."""
    from wulf.tools.trace import exporting

    if directory.exists() and not directory.is_dir():
        raise UsageError(f"-o {directory}: not a directory")
    for path in exporting.export(trace, to, directory):
        sys.stdout.write(f"{path}\n")

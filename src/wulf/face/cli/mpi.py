"""``wulf mpi``: the collectives of an MPI library, and MPI libraries against each other."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS, EXIT_INTERRUPTED, UsageError
from wulf.base.signals import end_gently
from wulf.base.units import parse_duration, parse_percent, parse_size
from wulf.face.cli import mpi_parameters
from wulf.face.cli.compare import BUDGET as COMPARE_BUDGET
from wulf.face.cli.compare import LAUNCHES, measure_in_turn
from wulf.face.cli.facts import NodesOption
from wulf.face.cli.options import ClusterOption, JsonOption, console, print_json
from wulf.face.cli.progress import Display, note
from wulf.face.cli.set_values import telling_of_nodes

if TYPE_CHECKING:
    from wulf.node.trials import interleaving

#: What most programs wait for.
COLLECTIVES = "bcast,reduce,allreduce,allgather,alltoall"
OPS = "mpi_pingpong,mpi_bcast,mpi_reduce,mpi_allreduce,mpi_allgather,mpi_alltoall"
SIZES = "8,1KiB,64KiB"

app = typer.Typer(
    help="Find the best algorithms for an MPI library's collectives, and compare MPI libraries.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

app.command("parameters")(mpi_parameters.command)

HtmlOption = Annotated[Path | None, typer.Option("--html", help="Write a page to this file.", metavar="FILE")]
SeedOption = Annotated[int | None, typer.Option(help="Seed of all random orders.")]


@app.command()
def tune(
    collectives: Annotated[
        str, typer.Option(help="As the library calls them, separated by commas.")
    ] = COLLECTIVES,
    max_size: Annotated[str, typer.Option(help="Largest message.")] = "1M",
    ranks: Annotated[
        str | None,
        typer.Option(help="Numbers of ranks, separated by commas. Default: one on each node."),
    ] = None,
    budget: Annotated[str, typer.Option(help="Time for all of it.")] = "30m",
    out: Annotated[
        Path, typer.Option(help="The file of rules; beside it, with .json added, all that was found.")
    ] = Path("rules.conf"),
    mpi: Annotated[
        str | None, typer.Option(help="Which library: openmpi, mpich, or the path of its compiler.")
    ] = None,
    cluster: ClusterOption = None,
    nodes: NodesOption = None,
    html_file: HtmlOption = None,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """Find the algorithm that is best for each collective, size and number of ranks, and write the library's file.

    The installed library says which algorithms it has. All are measured against its own decision, launches in random
    order; at every size the better half goes on until one is left. That one is judged in launches of its own, where the
    library's own decision runs against itself, too: what is not faster by more than that differs is not written. An
    algorithm that fails, hangs or gives wrong data is struck out and named.

    The file has the format of the installed version (Open MPI: text of version 1 or 2, or JSON; MPICH: its decision
    tree, or lines of variables) and leaves to the library what was not measured. Where the library cannot tell sizes
    apart (variables; scan), one algorithm is for all: it must be slower at none that was measured. The file is tried,
    proven to be in effect (by the messages that the library sends; MPICH must end a job that has another collective's
    algorithm in the rule's place, of variables one with a nonsense), and measured against the default at sizes between.

    After Ctrl-C what was found until then is written; a file that was not tried yet with .untried added to its name.
    Exit code 3 when the file is not in effect, is refused for a collective or wholly, fails or is slower at a size
    between or could not be measured there, or when a collective could not be searched.
    """
    from wulf.base.store import write_atomically
    from wulf.node.fleet import allocation
    from wulf.node.fleet.begin import new_seed
    from wulf.node.fleet.clusters import cluster as resolve
    from wulf.page.page import html
    from wulf.page.terminal import print_page
    from wulf.tools.collectives import page as report
    from wulf.tools.collectives import session

    end_gently()
    _require_place(out, "--out")
    if html_file is not None:
        _require_place(html_file, "--html")
    config = resolve(cluster)
    request = session.TuneRequest(
        config=config,
        nodes=config.select(nodes),
        collectives=_words(collectives, "--collectives"),
        max_bytes=parse_size(max_size),
        ranks=_numbers(ranks),
        budget_s=allocation.capped(parse_duration(budget), note),
        out=out,
        mpi=mpi or config.mpi.compiler,
        seed=new_seed(seed),
    )
    with telling_of_nodes(json=json), Display() as display:
        found = session.save(session.tune(request, display.stage), out)
    if out.exists() and found.path != str(out.absolute()):
        sys.stderr.write(f"{out} is from before: this search has not written it\n")
    if html_file is not None:
        write_atomically(html_file, html(report.build(found)).encode())
        sys.stderr.write(f"written: {html_file}\n")
    if json:
        print_json(found)
    else:
        print_page(report.build(found), console())
    if found.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)
    wrong = found.refused or found.dropped or found.not_searched or found.slower or found.unjudged
    if wrong or (found.text and not (found.effective and found.held_out)):
        raise typer.Exit(EXIT_FINDINGS)


@app.command()
def compare(
    libraries: Annotated[
        list[str],
        typer.Argument(metavar="MPI MPI", help="openmpi, mpich, or the path of a compiler (mpicc)."),
    ],
    ops: Annotated[str, typer.Option(help="Operations, separated by commas.")] = OPS,
    sizes: Annotated[str, typer.Option(help="Message sizes.")] = SIZES,
    pairs: Annotated[str, typer.Option(help="all, ring, or pairs such as n1:n2,n3:n4.")] = "ring",
    launches: Annotated[int, typer.Option(help="Pairs of launches at most.")] = LAUNCHES,
    budget: Annotated[
        str, typer.Option(help="Time after which no pair of launches is begun.")
    ] = COMPARE_BUDGET,
    margin: Annotated[str, typer.Option(help="Differences smaller than this do not matter.")] = "2%",
    cluster: ClusterOption = None,
    nodes: NodesOption = None,
    html_file: HtmlOption = None,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """Measure two MPI libraries on the same nodes, launches in turn, and show every ratio with its interval.

    Operations between two nodes are measured between the pairs, collectives among all nodes. The first library is the
    base. 'wulf compare --interleaved mpi=…,KNOB=VALUE mpi=…' does the same with settings.

    Exit code 3 when the second library is worse somewhere.
    """
    from wulf.node.fleet import change
    from wulf.node.fleet.begin import new_seed
    from wulf.node.fleet.clusters import cluster as resolve
    from wulf.node.trials import interleaving

    end_gently()
    if len(libraries) != 2:
        raise UsageError("wulf compare libraries takes two libraries, such as openmpi mpich")
    config = resolve(cluster)
    request = interleaving.InterleaveRequest(
        config=config,
        nodes=config.select(nodes),
        sides=(_side(libraries[0]), _side(libraries[1])),
        ops=_words(ops, "--ops"),
        sizes_bytes=sorted({parse_size(size) for size in sizes.split(",")}),
        pairs=pairs,
        launches=launches,
        budget_s=parse_duration(budget),
        margin=parse_percent(margin),
        permissions=change.Permissions(),
        mpi=None,
        seed=new_seed(seed),
    )
    measure_in_turn(request, html_file, dry_run=False, json=json)


def _require_place(file: Path, option: str) -> None:
    """Raise UsageError where a file cannot be written, before half an hour is spent on it."""
    directory = file.absolute().parent
    if file.is_dir() or not directory.is_dir() or not os.access(directory, os.W_OK):
        raise UsageError(f"{option} {file}: name a file in a directory that is there and can be written to")


def _side(library: str) -> interleaving.Side:
    from wulf.node.trials import interleaving

    return interleaving.Side(name=library, mpi=library)


def _words(text: str, option: str) -> list[str]:
    words = list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not words:
        raise UsageError(f"{option}: name at least one")
    return words


def _numbers(text: str | None) -> list[int]:
    if text is None:
        return []
    words = _words(text, "--ranks")
    wrong = [word for word in words if not (word.isascii() and word.isdigit() and int(word) > 1)]
    if wrong:
        raise UsageError(f"--ranks {wrong[0]!r}: give whole numbers from 2 on, separated by commas")
    return sorted({int(word) for word in words})

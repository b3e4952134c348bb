"""``wulf bench blas``: which BLAS library is fastest on the nodes."""

from __future__ import annotations

from typing import Annotated

import typer

from wulf.base.errors import EXIT_INTERRUPTED, UsageError
from wulf.base.signals import end_gently
from wulf.base.units import parse_percent
from wulf.face.cli.options import ClusterOption, JsonOption, console, print_json, say


def command(
    cluster_name: ClusterOption = None,
    nodes: Annotated[
        str | None, typer.Option(help="Only these nodes of the cluster, such as 'node[01-08]'.")
    ] = None,
    libraries: Annotated[
        str,
        typer.Option(
            metavar="all|PATH,…", help="Which libraries: all that are found, or these, by their paths."
        ),
    ] = "all",
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, help="Threads for every library. Default: as the node with the fewest CPUs has CPUs."
        ),
    ] = None,
    size: Annotated[int, typer.Option(min=64, max=20000, help="Rows and columns of the matrices.")] = 1000,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Launches of each library. Default: what a proof needs.")
    ] = None,
    margin: Annotated[str, typer.Option(help="A rate that is higher by less does not matter.")] = "2%",
    seed: Annotated[int | None, typer.Option(help="Seed of the random orders.")] = None,
    json: JsonOption = False,
) -> None:
    """Say which BLAS library is fastest, by products of matrices (DGEMM), with its interval.

    Libraries are found on the nodes and loaded from where they are: the system's default stays what it is. All get
    the same number of threads; every product is checked. In each round every library has a launch, in random order;
    the fastest is compared with each of the others round by round.
    """
    from wulf.node.fleet.begin import new_seed
    from wulf.node.fleet.clusters import cluster as resolve
    from wulf.node.programs import blas_runs
    from wulf.page.terminal import print_page
    from wulf.tools.blas import page as report

    end_gently()
    config = resolve(cluster_name)
    chosen = config.select(nodes)
    request = blas_runs.BlasRequest(
        config=config,
        # The nodes of one machine are one.
        nodes=chosen[:1] if config.transport == "local" else chosen,
        libraries=_paths(libraries),
        threads=threads,
        size=size,
        rounds=rounds,
        margin=parse_percent(margin),
        seed=new_seed(seed),
    )
    found = blas_runs.compare(request, say)
    if json:
        print_json(found)
    else:
        print_page(report.build(found), console())
    if found.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)


def _paths(text: str) -> list[str] | None:
    if text == "all":
        return None
    paths = [path for path in text.split(",") if path]
    relative = [path for path in paths if not path.startswith("/")]
    if relative or len(paths) < 2:
        raise UsageError(
            f"--libraries {text!r}: write 'all', or two absolute paths or more, separated by commas"
        )
    return paths

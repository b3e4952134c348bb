"""``wulf bench hpcc``: HPC Challenge on the nodes, and which of them are not like the others."""

from __future__ import annotations

from typing import Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS, EXIT_INTERRUPTED
from wulf.base.signals import end_gently
from wulf.base.units import parse_duration
from wulf.face.cli import complete
from wulf.face.cli.options import (
    RUNS,
    ClusterOption,
    JsonOption,
    RunsOption,
    console,
    open_run,
    print_json,
    say,
)
from wulf.face.cli.progress import note


def command(
    earlier: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="A run of HPCC, to see again. Default: a new one.",
            autocompletion=complete.runs,
        ),
    ] = None,
    cluster_name: ClusterOption = None,
    nodes: Annotated[
        str | None, typer.Option(help="Only these nodes of the cluster, such as 'node[01-08]'.")
    ] = None,
    time: Annotated[
        str, typer.Option("--time", help="Time for all of it; the problem is chosen to fit.")
    ] = "20m",
    launches: Annotated[int, typer.Option(min=1, help="Rounds at most. An interval takes 6.")] = 6,
    size: Annotated[
        int | None, typer.Option(help="N of HPL on all nodes together. Runs are compared at the same N.")
    ] = None,
    ranks: Annotated[
        int | None, typer.Option(min=1, help="Ranks on each node. Default: as the smallest node has CPUs.")
    ] = None,
    program: Annotated[str, typer.Option(help="HPCC on the nodes: its name, or its path.")] = "hpcc",
    run: Annotated[str | None, typer.Option(help="Name of the run. Default: date and time.")] = None,
    runs: RunsOption = RUNS,
    json: JsonOption = False,
) -> None:
    """Run HPC Challenge on all nodes together and on each alone, and name the nodes that are not like the others.

    All results have their units and intervals; the run is stored, so that 'wulf compare' compares two of them. A run of
    HPCC that fails one of its own checks (residuals, errors of RandomAccess) is a failed one, and is shown.

    Exit code 3 when a node differs or a run of HPCC failed.
    """
    from wulf.node.fleet import allocation
    from wulf.node.fleet.begin import new_run, new_seed
    from wulf.node.fleet.clusters import cluster as resolve
    from wulf.page.terminal import print_page
    from wulf.tools.hpcc import page as report
    from wulf.tools.hpcc import result, work
    from wulf.tools.hpcc.program import check_size

    end_gently()
    if earlier is None:
        config = resolve(cluster_name)
        chosen = config.select(nodes)
        request = work.HpccRequest(
            config=config,
            # The nodes of one machine are one.
            nodes=chosen[:1] if config.transport == "local" else chosen,
            time_s=allocation.capped(parse_duration(time), note),
            launches=launches,
            size=check_size(size) if size is not None else None,
            ranks_per_node=ranks,
            program=program,
            seed=new_seed(),
        )
        measured = work.measure(request, new_run(run, runs), say)
    else:
        measured = open_run(earlier, runs)
    found = result.result(measured)
    if json:
        print_json(found)
    else:
        print_page(report.build(found), console())
        console().print(
            f"\nrun: {measured.path}\nnext: wulf compare, with another run of --size {found.sizes['together']}",
            markup=False,
            soft_wrap=True,
        )
    if earlier is None and found.status == "interrupted":
        raise typer.Exit(EXIT_INTERRUPTED)
    if found.different or found.failures:
        raise typer.Exit(EXIT_FINDINGS)

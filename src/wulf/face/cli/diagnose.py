"""``wulf diagnose``: which node, link or group of nodes is slow."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS, UsageError
from wulf.base.signals import end_gently
from wulf.base.units import parse_duration
from wulf.face.cli import complete
from wulf.face.cli.measure_progress import MeasureProgress
from wulf.face.cli.options import RUNS, ClusterOption, JsonOption, RunsOption, console, open_run, print_json
from wulf.face.cli.progress import note

if TYPE_CHECKING:
    from wulf.base import store

#: When a run counts as worse than its baseline.
FAIL_IF = "worse > 5%"


def command(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="A run of all pairs. Default: a new one is measured.",
            autocompletion=complete.runs,
        ),
    ] = None,
    cluster_name: ClusterOption = None,
    nodes: Annotated[
        str | None, typer.Option(help="Only these nodes of the cluster, such as 'node[01-08]'.")
    ] = None,
    budget: Annotated[str, typer.Option(help="Time for measuring.")] = "2m",
    runs: RunsOption = RUNS,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="An earlier run of the same pairs and sizes, to compare with.",
            autocompletion=complete.runs,
        ),
    ] = None,
    fail_if: Annotated[
        str | None, typer.Option(help=f"When it counts as worse than the baseline. Default: {FAIL_IF!r}.")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write JUnit XML to this file too.", metavar="FILE")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Say which node, link or group of nodes is slow, or that all are alike.

    Without a run all pairs are measured, at a small and a large size, pairs without a common node at the same time.
    A node is suspected that is slow with everybody, a link that is slower than both its nodes explain, a group that is
    slow with all others and quick among itself: something is between it and them. Of a cluster where all are alike
    something is suspected in one case of a hundred. Who is suspected is measured once more, alone, in half of the
    budget at most, and named only if it is slow then, too.

    Beside this it says which known causes the figures look like, each with its evidence and the next step: MTU, delayed
    acknowledgements, interrupt moderation, packet filters, duplex, links below their speed, losses, socket buffers,
    power states, busy nodes.

    Exit code 3 when something is suspected, worse than the baseline, or could not be measured again; so it can stand in
    a prolog or an acceptance test.
    """
    from wulf.base import store
    from wulf.page.sections import diagnosis as report
    from wulf.page.terminal import print_page
    from wulf.tools.diagnose import work

    end_gently()
    if fail_if is not None and baseline is None:
        raise UsageError("--fail-if is about --baseline: name the run to compare with")
    margin = work.fail_if(fail_if or FAIL_IF)
    earlier = open_run(baseline, runs) if baseline is not None else None
    loaded, whole = (
        (open_run(run, runs), True) if run is not None else _measured(cluster_name, nodes, budget, runs)
    )
    found = work.diagnose(loaded)
    if earlier is not None:
        found = work.against(found, loaded, earlier, margin)
    if junit is not None:
        store.write_atomically(junit, report.junit(found).encode())
        sys.stderr.write(f"written: {junit}\n")
    if json:
        print_json(found)
    else:
        print_page(report.page(found), console())
        console().print(f"all figures: wulf report {loaded.path}", markup=False, soft_wrap=True)
    if not whole or not found.fine or (found.gate is not None and found.gate.worse):
        raise typer.Exit(EXIT_FINDINGS)


def _measured(
    cluster_name: str | None, nodes: str | None, budget: str, runs: RunsOption
) -> tuple[store.Run, bool]:
    from wulf.node.fleet.begin import new_run
    from wulf.node.fleet.clusters import cluster as resolve
    from wulf.tools.diagnose import all_pairs

    config = resolve(cluster_name)
    return all_pairs.measure(
        config, config.select(nodes), parse_duration(budget), new_run(None, runs), MeasureProgress, note
    )

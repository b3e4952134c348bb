"""``wulf compare``: what changed from one run to others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from wulf import estimate
from wulf.cli import complete
from wulf.cli.options import RUNS, JsonOption, RunsOption, console, open_run, print_json
from wulf.errors import EXIT_FINDINGS, UsageError
from wulf.procedure.analysis import analyze
from wulf.records import Comparison
from wulf.report import compare as report
from wulf.store import Run, write_atomically
from wulf.units import parse_percent


def command(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN", help="The base, then what to compare with it.", autocompletion=complete.runs
        ),
    ],
    runs: RunsOption = RUNS,
    margin: Annotated[str, typer.Option(help="Differences smaller than this do not matter.")] = "2%",
    json: JsonOption = False,
    html_file: Annotated[
        Path | None, typer.Option("--html", help="Write a page to this file (two runs).", metavar="FILE")
    ] = None,
) -> None:
    """Show the shift of every size with its interval, and a verdict.

    The first run is the base. Exit code 3 when a run is worse than the base, or has nothing in common with it.
    """
    if len(names) < 2:
        raise UsageError("wulf compare needs at least two runs: the base, then what to compare with it")
    width = parse_percent(margin)
    base, *candidates = [open_run(name, runs) for name in names]
    comparisons = [_compare(base, candidate, width) for candidate in candidates]
    if html_file is not None:
        if len(comparisons) > 1:
            raise UsageError("--html shows two runs: name the base and one other")
        write_atomically(html_file, report.render_html(comparisons[0], base.manifest.operations).encode())
        sys.stderr.write(f"written: {html_file}\n")
    if json:
        print_json(comparisons)
    else:
        for comparison in comparisons:
            report.render_text(comparison, console(), base.manifest.operations)
    if any(comparison.verdict in ("worse", "mixed") or not comparison.cells for comparison in comparisons):
        raise typer.Exit(EXIT_FINDINGS)


def _compare(base: Run, candidate: Run, margin: float) -> Comparison:
    return estimate.compare(
        base.analysis() or analyze(base),
        candidate.analysis() or analyze(candidate),
        base.nodes,
        candidate.nodes,
        margin=margin,
        plans=(base.manifest.plan, candidate.manifest.plan),
    )

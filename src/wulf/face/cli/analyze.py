"""``wulf analyze``: derive everything again from a stored run."""

from __future__ import annotations

from wulf.face.cli.options import RUNS, JsonOption, RunArgument, RunsOption, console, open_run, print_json


def command(run: RunArgument = "latest", runs: RunsOption = RUNS, json: JsonOption = False) -> None:
    """Compute estimates, models and warnings again from the records of a run, and store them with it."""
    from wulf.base.store import save_analysis
    from wulf.node.measuring.analysis import analyze
    from wulf.page.terminal import print_page
    from wulf.tools.measure import page as run_report

    loaded = open_run(run, runs)
    analysis = analyze(loaded)
    save_analysis(loaded.path, analysis)
    if json:
        print_json(analysis)
        return
    print_page(run_report.build(loaded.manifest, loaded.nodes, loaded.launches, analysis), console())

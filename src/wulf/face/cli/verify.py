"""``wulf settings verify``: whether everything is as it was confirmed, live, stored and measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS, UsageError
from wulf.base.nodeset import fold, fold_reasons
from wulf.base.request import RUNS
from wulf.base.text import printable
from wulf.base.units import format_change, format_share, format_unseen
from wulf.face.cli import complete
from wulf.face.cli.facts import NodesOption
from wulf.face.cli.options import ClusterOption, JsonOption, RunsOption, console, print_json
from wulf.face.cli.progress import counting, note
from wulf.face.cli.tune_progress import TuneProgress

if TYPE_CHECKING:
    from pathlib import Path

    from wulf.base.store.tuning import TuningRun
    from wulf.face.cli.verification import Verification
    from wulf.tools.tune import verify


def command(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="The tuning run whose figures are measured again.",
            autocompletion=complete.runs,
        ),
    ] = None,
    cluster: ClusterOption = None,
    nodes: NodesOption = None,
    json: JsonOption = False,
    runs: RunsOption = RUNS,
) -> None:
    """Verify that what was confirmed still holds: the live values, the files that keep them, and the figures.

    With the name of a tuning run (or 'latest'), its objective is measured again and compared with the figures of
    its confirmation. Run it after a reboot. Exit code 3 when something does not hold, a node gives no usable
    answer, or figures scatter so much that a loss of 25 % would go unseen.
    """
    from wulf.face.cli.verification import Verification
    from wulf.node.fleet import change, persist
    from wulf.node.fleet.clusters import cluster as resolve

    config = resolve(cluster)
    chosen = config.select(nodes)
    with change.open_guards(config) as (_, guards):
        statuses = change.status(guards, chosen)
    unanswered = {status.node: status.error for status in statuses if status.error}
    held = persist.holding(statuses)
    figures = _figures(run, runs)
    if not held and not unanswered and figures is None:
        raise UsageError("nothing is set on these nodes, so there is nothing to verify")
    found = Verification(
        settings=held,
        figures=figures,
        holds=not unanswered and all(one.holds for one in held) and (figures is None or figures.holds),
        unanswered=unanswered,
    )
    if json:
        print_json(found)
    else:
        _show(found)
    if not found.holds or found.untold:
        raise typer.Exit(EXIT_FINDINGS)


def _figures(name: str | None, runs: Path) -> verify.Figures | None:
    """Measure the objective of a tuning run again; the latest is none where there is none, or it kept nothing.

    Then what 'wulf mend' or 'wulf settings set' has set is verified alone.
    """
    from wulf.base.store import find_run
    from wulf.base.store.runs import list_runs
    from wulf.base.store.tuning import HEAD, load_tuning
    from wulf.tools.tune import verify

    if name is None:
        return None
    if name == "latest" and not list_runs(runs, HEAD):
        note(f"there is no tuning run in {runs}: values and files are verified, no figures")
        return None
    found = load_tuning(find_run(name, runs, HEAD))
    if name == "latest" and verify.confirmed(found) is None:
        note(f"{found.path} has no confirmed settings: values and files are verified, no figures")
        return None
    return _measure(found)


def _measure(run: TuningRun) -> verify.Figures:
    from wulf.base.store.tuning import HEAD
    from wulf.node.fleet import change, preparation
    from wulf.node.trials import open_bench
    from wulf.tools.tune import session, verify

    with TuneProgress() as progress:
        config, tools = session.tools_of(run.manifest, str(run.path / HEAD), progress.stage)
        with (
            preparation.connect(config, run.manifest.nodes, progress.stage) as (transport, records),
            change.guarded(config, transport) as guards,
        ):
            commands = [operation for operation in run.manifest.operations if operation.command]
            ready = open_bench.runner_for(config, transport, guards, records, tools, commands, progress.stage)
            with counting("measuring") as count:
                return verify.measure(run, ready.bench, count)


def _show(found: Verification) -> None:
    out = console()
    for nodes, why in fold_reasons(found.unanswered):
        out.print(printable(f"NO  no usable answer of {fold(nodes)}: {why}", 400), style="red", markup=False)
    rows: dict[tuple[str, str, str, bool], list[str]] = {}
    for one in found.settings:
        rows.setdefault((one.what, one.wanted, one.now, one.holds), []).append(one.node)
    for (what, wanted, now, holds), nodes in rows.items():
        words = f"{what} = {wanted}" if holds else f"{what} is {now}, should be {wanted}"
        style = None if holds else "red"
        out.print(
            printable(f"{'ok ' if holds else 'NO '} {words} on {fold(nodes)}", 400), style=style, markup=False
        )
    if found.figures is not None:
        figures = found.figures
        kept, original = format_change(figures.against_kept), format_change(figures.against_original)
        mark = "?? " if figures.untold else "ok " if figures.holds else "NO "
        out.print(
            f"{mark} objective as a time: {kept} against what was confirmed, {original} "
            f"against the original (changes {format_unseen(figures.smallest_effect)} may go unseen here)",
            markup=False,
        )
    out.print(_answer(found), markup=False)


def _answer(found: Verification) -> str:
    """Return the verdict over all of it."""
    if not found.holds:
        return "not everything holds: see the lines with NO"
    if found.figures is None or not found.untold:
        figures = "" if found.figures is not None else " (no figures were measured)"
        return f"everything holds{figures}"
    seen = found.figures.visible
    loss = f"only a loss of {format_share(seen)} or more" if seen is not None else "no loss of any size"
    return f"cannot tell whether the figures hold: {loss} would be seen; verify again when the nodes are idle"

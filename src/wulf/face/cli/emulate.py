"""``wulf program emulate``: a pattern of messages performed on the cluster, and timed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from wulf.base.nodeset import fold
from wulf.base.request import JsonField, Option
from wulf.base.text import count, printable
from wulf.base.units import format_bytes, format_time
from wulf.face.cli.declared import Asked, flat, instead
from wulf.face.cli.measure import end_with_findings, show_measured
from wulf.face.cli.measure_progress import MeasureProgress, what_fits
from wulf.face.cli.options import ResumeField, print_json, show_table
from wulf.face.cli.progress import staging
from wulf.tools.emulate.request import EmulateRequest

if TYPE_CHECKING:
    from wulf.base import store
    from wulf.base.records import Plan
    from wulf.base.records.emulated import EmulatedPattern
    from wulf.node.measuring import session


def _list() -> None:
    from rich.table import Table

    from wulf.node.replay import patterns

    table = Table("name", "ranks", "what it is", box=None, pad_edge=False)
    for name in patterns.gallery():
        pattern = patterns.read(name).pattern
        table.add_row(name, str(pattern.ranks or "any"), f"{pattern.title}: {pattern.what}")
    show_table(table)


def _print(name: str) -> None:
    from wulf.node.replay import patterns

    sys.stdout.write(patterns.named(name))


@dataclass(frozen=True)
class Begun:
    """How it is begun and shown."""

    dry_run: Annotated[bool, Option("Show what would run, where and how often; start nothing.")] = False
    resume: ResumeField = None
    json: JsonField = False


@flat
def command(
    request: Asked[EmulateRequest],
    begun: Begun,
    list_patterns: Annotated[  # noqa: ARG001 - answered before
        bool, instead(lambda _: _list(), "List the patterns that come with wulf.", "--list")
    ] = False,
    show: Annotated[  # noqa: ARG001 - answered before
        str | None, instead(_print, "Print one of them, as a starting point for your own.", metavar="NAME")
    ] = None,
) -> None:
    from wulf.base.store import opened
    from wulf.node.measuring import session
    from wulf.tools.emulate import work

    on, runs = request.value("predict_on"), request.value("runs")
    calibrated = opened(on, runs) if on is not None else None
    if calibrated is not None:
        work.require_calibrated(calibrated)
    with MeasureProgress() as progress:
        if begun.resume is not None:
            measured = session.go_on(begun.resume, runs, request.value("budget_s"), progress)
        elif not begun.dry_run:
            measured = work.start(request(), progress)
        else:
            performed, plan, fit = work.foretell(request(), progress)
    if begun.dry_run:
        sys.stdout.writelines(f"{line}\n" for line in (*_what(performed, plan), *what_fits(plan, fit)))
    else:
        _show(measured, calibrated, json=begun.json)


def _show(measured: session.Outcome, calibrated: store.Run | None, *, json: bool) -> None:
    from wulf.tools.emulate import work

    run, analysis = measured
    if calibrated is not None:
        with staging() as say:
            work.predict(run, analysis, calibrated, say)
    if json:
        print_json(work.result(run, analysis))
        end_with_findings(measured)
    else:
        show_measured(measured)


def _what(pattern: EmulatedPattern, plan: Plan) -> Iterator[str]:
    """Say what is performed, and where."""
    (place,) = plan.workload.places
    yield f"{printable(pattern.title, 100)}: {count(pattern.ranks, 'rank')} on {_nodes(place)}"
    for program in pattern.programs:
        where = fold(sorted({place[rank] for rank in program.ranks}))
        yield (
            f"  {printable(program.name, 60)}: {count(program.iterations, 'iteration')} on "
            f"{count(len(program.ranks), 'rank')}, {where}"
        )
        for step in program.steps:
            yield f"    {printable(step, 200)}"
    yield (
        f"a pass: {count(pattern.messages, 'message')}, {format_bytes(pattern.bytes)}, besides collectives; at least "
        f"{format_time(pattern.least_s)} if the network had no delay"
    )
    yield f"each launch: {pattern.warm_ups} + {count(pattern.passes, 'pass')}, the first {pattern.warm_ups} to warm up"


def _nodes(place: tuple[str, ...]) -> str:
    nodes = list(dict.fromkeys(place))
    counts = sorted({place.count(node) for node in nodes})
    each = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{fold(nodes)}, {each} a node"

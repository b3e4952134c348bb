"""What became of a roll-out, as people read it: how many nodes have the change, and why the others have not.  Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from wulf.base.nodeset import fold
from wulf.base.text import count, printable
from wulf.base.units import format_change
from wulf.page import ticks
from wulf.page.blocks import Block, Command, Notes, Page, Section, Verdict
from wulf.page.parts import Column, Columns, Figure, Flag, Item, Table, Variant, rounded
from wulf.page.words import UNKNOWN, change_item, duration, percent, sentence
from wulf.tools.rollout import charts
from wulf.tools.rollout.record import Hardware, RolledFigure, RolledNode, Rollout, RolloutStep

_LIMIT = 300
#: Facts that harmed nodes have in common, in the verdict at most.
_FACTS = 4
_HAVE = ("kept", "had it")
_WORDS = {
    "kept": "kept: no harm there",
    "had it": "had it before",
    "harmed": "put back: it harms there",
    "cannot tell": "put back: not shown to do no harm",
    "refused": "not set: it does not take it",
    "silent": "does not answer",
    "other hardware": "left alone: other hardware",
    "busy": "waits: busy",
    "not reached": "not reached",
}
_FLAGS: dict[str, Flag] = {
    "kept": "good",
    "had it": "good",
    "harmed": "error",
    "cannot tell": "unknown",
    "refused": "warning",
    "silent": "error",
    "other hardware": "",
    "busy": "warning",
    "not reached": "warning",
}
_CHECK_FLAGS: dict[str, Flag] = {"failed": "error", "could not be run": "unknown", "passed": "good"}


def build(found: Rollout) -> Page:
    """Return all that is shown."""
    title, flag = _answer(found)
    return Page(
        title=title,
        lede=f"Rolled out: {_settings(found)}.",
        kind="Roll-out",
        verb="settings rollout",
        head=(Verdict(flag, tuple(_beside(found))), *_next(found)),
        sections=tuple(
            section
            for section in (
                Section("nodes", "Nodes", tuple(_nodes(found))),
                Section("hardware", "Hardware", (_hardware(found.hardware),)),
                Section("steps", "Steps", tuple(_steps(found))),
            )
            if section.blocks
        ),
        run=found.run_id,
    )


def _settings(found: Rollout) -> str:
    return ", ".join(
        f"{printable(knob, 80)}={printable(value, 80)}" for knob, value in found.plan.settings.items()
    )


def _answer(found: Rollout) -> tuple[str, Flag]:
    have = [one for one in found.nodes if one.state in _HAVE]
    said = f"{len(have)} of {count(len(found.nodes), 'node')} have the change"
    harmed = sum(one.state == "harmed" for one in found.nodes)
    were = "which was" if harmed == 1 else "which were"
    back = f"; it harms {count(harmed, 'node')}, {were} put back" if harmed else ""
    if found.status == "halted":
        return f"Halted: {said}{back}", "error"
    if found.status == "interrupted":
        return f"Interrupted: {said}{back}", "unknown"
    if found.status == "waiting":
        return f"{sentence(said)} so far{back}", "warning"
    return f"{sentence(said)}{back}", "good" if len(have) == len(found.nodes) else "warning"


def _beside(found: Rollout) -> Iterator[str]:
    if found.status == "halted":
        yield f"why: {printable(found.reason, 500)}"
    if found.in_common:
        facts = ", ".join(
            f"{fact} {printable(value, 60)}" for fact, value in [*found.in_common.items()][:_FACTS]
        )
        yield f"only the nodes that it harms have {facts}"
    plan = found.plan
    yield (
        f"a node keeps it where it is shown that no figure gets worse by {percent(plan.margin)}, and that it loses "
        f"less than {percent(plan.loss)} of datagrams; of nodes that it harms by that much one in "
        f"{round(1 / plan.missed)} keeps it at most"
    )
    if plan.check:
        yield f"the site's check: {printable(plan.check, 200)}"


def _next(found: Rollout) -> list[Block]:
    blocks: list[Block] = []
    if found.status in ("waiting", "halted", "interrupted"):
        blocks.append(Command("go on", f"wulf settings rollout --resume {found.run_id}"))
    if found.changes:
        blocks.append(Command("keep it over reboots", "wulf settings persist"))
        blocks.append(Command("take it back", f"wulf rollback --to {found.changes[0]}"))
    return blocks


def _nodes(found: Rollout) -> Iterator[Block]:
    yield Table(
        title="What became of the nodes",
        columns=(Column("state"), Column("nodes"), Column("number", numeric=True), Column("why")),
        rows=tuple(_by_state(found.nodes)),
    )
    metrics = list(dict.fromkeys(figure.metric for one in found.nodes for figure in one.figures))
    for number, metric in enumerate(metrics):
        yield _chart(found, metric, number)


def _by_state(nodes: Sequence[RolledNode]) -> Iterator[tuple[Item, ...]]:
    groups: dict[tuple[str, str], list[str]] = {}
    for one in nodes:
        groups.setdefault((one.state, one.reason), []).append(one.node)
    order = list(_WORDS)
    for (state, reason), names in sorted(groups.items(), key=lambda group: order.index(group[0][0])):
        yield (
            Item(_WORDS[state], flag=_FLAGS[state]),
            Item(fold(map(printable, names))),
            Item(str(len(names)), len(names)),
            Item(printable(reason, _LIMIT)),
        )


def _chart(found: Rollout, metric: str, number: int) -> Figure:
    rows = [
        (one, figure)
        for one in found.nodes
        for figure in one.figures
        if figure.metric == metric and one.step is not None
    ]
    main: Columns = {
        "step": [one.step for one, _ in rows],
        "node": [printable(one.node, 80) for one, _ in rows],
        "place": list(_places([one.step for one, _ in rows])),
        "ratio": rounded([figure.ratio.value for _, figure in rows]),
        "shown": [format_change(figure.ratio) for _, figure in rows],
        "became": [charts.KEPT if one.state == "kept" else charts.PUT_BACK for one, _ in rows],
        "why": [printable(one.reason, _LIMIT) for one, _ in rows],
    }
    kept = sum(one.state == "kept" for one, _ in rows)
    return Figure(
        id=f"nodes-{number + 1}",
        chart=charts.NODES,
        title=f"What it does to each node: {printable(metric, 80)}",
        x_title="step",
        y_title="change of the time",
        y=ticks.changes([1.0, *(figure.ratio.value for _, figure in rows)]),
        variants=(
            Variant(
                label="",
                datasets={"main": main},
                summary=f"{count(len(rows), 'node')} measured, {kept} kept.",
                caption="Each mark is a node, measured alternately with and without the change; below 0 % is faster.",
            ),
        ),
        logarithmic=False,
    )


def _places(steps: Sequence[int | None]) -> Iterator[int]:
    """Yield which one of its step each is."""
    seen = Counter[int | None]()
    for step in steps:
        yield seen[step]
        seen[step] += 1


def _hardware(kinds: Sequence[Hardware]) -> Table:
    return Table(
        title="Kinds of hardware",
        columns=(
            Column("hardware"),
            Column("nodes"),
            Column("is"),
            Column("figure"),
            Column("change", numeric=True),
            Column("ended"),
        ),
        rows=tuple(row for kind in kinds for row in _of_kind(kind)),
        empty="no node answered",
    )


def _of_kind(kind: Hardware) -> Iterator[tuple[Item, ...]]:
    facts = ", ".join(f"{fact}: {printable(value, 60)}" for fact, value in kind.facts.items())
    ended = kind.ended or ("" if kind.tried else "not tested on such nodes: left alone")
    figures: list[RolledFigure | None] = [*kind.figures] or [None]
    for figure in figures:
        yield (
            Item(printable(kind.name, 40)),
            Item(fold(map(printable, kind.nodes))),
            Item(printable(facts, _LIMIT) or "all alike"),
            Item(printable(figure.metric, 80) if figure else "none"),
            change_item(figure.ratio) if figure else Item(UNKNOWN, flag="unknown"),
            Item(printable(ended, _LIMIT)),
        )


def _steps(found: Rollout) -> Iterator[Block]:
    yield Table(
        title="Steps",
        columns=(
            Column("step", numeric=True),
            Column("nodes"),
            Column("rounds", numeric=True),
            Column("kept", numeric=True),
            Column("put back", numeric=True),
            Column("check"),
            Column("took", numeric=True),
            Column("ended"),
        ),
        rows=tuple(_step(step) for step in found.steps),
        empty="nothing was to be changed",
    )
    notes = [printable(note, _LIMIT) for step in found.steps for note in step.notes]
    if notes:
        yield Notes(tuple(dict.fromkeys(notes)))


def _step(step: RolloutStep) -> tuple[Item, ...]:
    kept = sum(one.state == "kept" for one in step.outcomes) if step.state == "done" else 0
    check = _check(step)
    return (
        Item(str(step.number), step.number),
        Item(fold(map(printable, step.nodes))),
        Item(str(step.rounds), step.rounds),
        Item(str(kept), kept),
        Item(str(len(step.nodes) - kept), len(step.nodes) - kept),
        Item(check, flag=_CHECK_FLAGS.get(check, "")),
        Item(duration(round(step.duration_s)), step.duration_s),
        Item(printable(step.halted, _LIMIT) or step.state, flag="error" if step.halted else ""),
    )


def _check(step: RolloutStep) -> str:
    """Return what the site's check said in a step; empty where it did not run."""
    said = {run.passed for run in step.checks}
    return "failed" if False in said else "could not be run" if None in said else "passed" if said else ""

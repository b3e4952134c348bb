"""From what was found of collectives to what is shown of it.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

from wulf.base.nodeset import fold
from wulf.base.records import Estimate
from wulf.base.text import count, printable
from wulf.base.units import format_bytes, format_change
from wulf.page.blocks import Code, Page, Section, Verdict
from wulf.page.parts import Column, Columns, Figure, Flag, Item, Table, Variant
from wulf.page.words import change_item, duration, name, percent
from wulf.tools.collectives.page import charts
from wulf.tools.collectives.record import (
    CollectiveTuning,
    HeldOut,
    HeldOutFailure,
    RuleEffect,
    StruckOut,
    TunedCell,
)

#: Where nothing is better.
DEFAULT = "library's own"
FORMATS = {
    "classic-1": "Open MPI's text of rules, version 1",
    "classic-2": "Open MPI's text of rules, version 2",
    "json-3": "Open MPI's JSON of rules, version 3",
    "mpich-tree": "MPICH's decision tree as JSON",
    "cvars": "a variable of MPICH for each collective",
}


def build(found: CollectiveTuning) -> Page:
    """Return all that is shown."""
    groups = {
        cell.collective: [c for c in found.cells if c.collective == cell.collective] for cell in found.cells
    }
    verdict, flag = _verdict(found)
    held_out, effects, struck_out = (
        _held_out(found.held_out),
        _effects(found.effects),
        _struck_out(found.struck_out),
    )
    usage = "\n".join(f"export {name}={value}" for name, value in found.environment.items())
    text = found.text if len(found.text) < 20_000 else ""
    return Page(
        title=f"{name(found.library)}: {verdict}",
        lede=_lede(found),
        kind="Collectives",
        verb="tune collectives",
        head=(Verdict(flag, tuple(_lines(found))),),
        sections=(
            Section(
                "maps",
                "Which algorithm wins where",
                tuple(
                    block
                    for place, (one, cells) in enumerate(groups.items())
                    for block in (_map(f"m{place}", one, cells), _cells(one, cells))
                ),
            ),
            Section("held-out", held_out.title, (held_out,)),
            Section("effect", effects.title, (effects,)),
            *([Section("usage", "How a job uses it", (Code(usage),))] if usage else []),
            *(
                [Section("file", "The file", (Code(text, summary=found.path or "the rules"),))]
                if text
                else []
            ),
            Section("struck-out", struck_out.title, (struck_out,)),
        ),
        run="collectives",
    )


def _lede(found: CollectiveTuning) -> str:
    nodes = f"{count(len(found.nodes), 'node')}, {fold(map(printable, found.nodes))}"
    launches = f"{count(found.launches, 'launch')} in {duration(round(found.lasted_s))}"
    return f"{nodes}; {launches}. Changes are of the time against the library's own decision: negative is faster."


def _verdict(found: CollectiveTuning) -> tuple[str, Flag]:
    if found.refused:
        return "Refused: no file is written", "error"
    if not found.text and len(found.not_judged) == len(found.cells):
        return "Cannot tell whether anything is better: too few launches; no file is written", "unknown"
    if not found.text:
        return (
            "Nothing is proven to be better than the library's own decisions: no file is written",
            "unknown",
        )
    kept = sum(cell.kept for cell in found.cells)
    better = f"{kept} of {count(len(found.cells), 'cell')} better than the library's own decision"
    but, flag = _but(found)
    return better + but, flag


def _but(found: CollectiveTuning) -> tuple[str, Flag]:
    """Say what became of a file that was written: the first that holds."""
    fails = any(one.with_file for one in found.held_out_failures)
    in_effect = "; the file is in effect"
    cases: tuple[tuple[bool, str, Flag], ...] = (
        (not found.tried, "; the file was not tried, and may end jobs", "warning"),
        (not found.effects, "; whether the file is in effect was not looked at", "warning"),
        (not found.effective, ", but the file is NOT in effect", "error"),
        (fails, f"{in_effect}, but launches with it FAIL at intermediate sizes", "error"),
        (not found.held_out, f"{in_effect}, but no intermediate size was measured with it", "warning"),
        (bool(found.slower), f"{in_effect}, but slower at some intermediate sizes", "warning"),
        (bool(found.unjudged), f"{in_effect}, but not all intermediate sizes could be judged", "warning"),
        (bool(found.dropped or found.not_searched), f"{in_effect}, but collectives are missing", "warning"),
        (bool(found.not_judged), f"{in_effect}, but there was no time for all cells", "warning"),
    )
    return next(((words, flag) for holds, words, flag in cases if holds), (in_effect, "good"))


def _lines(found: CollectiveTuning) -> list[str]:
    lines = [printable(found.refused, 400)] if found.refused else []
    if found.interrupted:
        lines.append("Interrupted: what follows was found until then.")
    for one, why in found.dropped.items():
        lines.append(f"{name(one)} is left out of the file: {printable(why, 300)}")
    for missed in found.not_searched:
        what = f"{name(missed.collective)} of {count(missed.ranks, 'rank')}"
        lines.append(
            f"{what} was not searched to the end, its default fails: {printable(missed.reason, 300)}"
        )
    if found.not_judged:
        lines.append(
            f"{len(found.not_judged)} of {count(len(found.cells), 'cell')} cannot be judged, as there was no "
            "time to launch all algorithms often enough: give more time (--budget), fewer collectives or fewer sizes."
        )
    lines += [_failure(one) for one in found.held_out_failures]
    if found.mean is not None and found.held_out:
        lines.append(
            f"At {count(len(found.held_out), 'size')} that decided nothing, the file and the default alternately: "
            f"{format_change(found.mean)} in the geometric mean (95 % interval){_beside(found.mean_control)}."
        )
    if found.mean_ruled is not None:
        ruled = sum(one.ruled for one in found.held_out)
        lines.append(
            f"At the {count(ruled, 'size')} of them with a rule: {format_change(found.mean_ruled)}"
            f"{_beside(found.mean_ruled_control)}."
        )
    if found.held_out:
        worst = max(found.held_out, key=lambda cell: cell.ratio.value)
        lines.append(
            f"The worst intermediate size: {worst.collective} of {count(worst.ranks, 'rank')} at "
            f"{format_bytes(worst.size_bytes)}, {format_change(worst.ratio)}; up to "
            f"+{percent(worst.limit - 1)} may be chance there."
        )
    if found.path:
        lines.append(f"{found.path}: {FORMATS[found.format]}.")
    return lines


def _beside(control: Estimate | None) -> str:
    """Say what the default differs from itself, beside what the file differs from it."""
    return f"; the default against itself: {format_change(control)}" if control is not None else ""


def _failure(one: HeldOutFailure) -> str:
    """Say what kept held-out sizes from being judged."""
    who = f"{name(one.collective)} of {count(one.ranks, 'rank')} at intermediate sizes"
    failed = [
        f"{count(launches, 'launch')} {way} the file failed"
        for launches, way in ((one.with_file, "with"), (one.without_file, "without"))
        if launches
    ]
    judged = [] if one.judged else ["it is not judged"]
    return f"{who}: {', '.join([*failed, *judged])}: {printable(one.reason, 300)}"


def _map(id_: str, collective: str, cells: Sequence[TunedCell]) -> Figure:
    main: Columns = {
        "size": [format_bytes(cell.size_bytes) for cell in cells],
        "ranks": [str(cell.ranks) for cell in cells],
        "wins": [_way(cell) if cell.kept else DEFAULT for cell in cells],
        "gain": [_change(cell) if cell.kept else "" for cell in cells],
        "change": [_full(cell) for cell in cells],
        "control": [format_change(cell.control) if cell.control else "unknown" for cell in cells],
        "why": [cell.reason or "kept" for cell in cells],
        "size_bytes": [cell.size_bytes for cell in cells],
    }
    kept = sum(cell.kept for cell in cells)
    return Figure(
        id=id_,
        chart=charts.MAP,
        title=collective,
        x_title="message size",
        y_title="ranks",
        variants=(
            Variant(
                label="",
                datasets={"main": main},
                summary=f"{collective}: an algorithm is better than the library's own decision in {kept} of "
                f"{count(len(cells), 'cell')}.",
                caption="Colour: the algorithm that wins; number: change of time against the library's own decision. "
                "Without a number nothing is proven to be better.",
            ),
        ),
    )


def _way(cell: TunedCell) -> str:
    parts = f", parts of {format_bytes(cell.segment_bytes)}" if cell.segment_bytes else ""
    return f"{name(cell.algorithm)}{parts}"


def _change(cell: TunedCell) -> str:
    return f"{(cell.ratio.value - 1) * 100:+.0f} %".replace("-", "−") if cell.ratio else ""


def _full(cell: TunedCell) -> str:
    return format_change(cell.ratio) if cell.ratio else "unknown"


def _cells(collective: str, cells: Sequence[TunedCell]) -> Table:
    return Table(
        title=collective,
        columns=(
            Column("ranks", numeric=True),
            Column("size", numeric=True, whole=True),
            Column("best"),
            Column("change of time", numeric=True),
            Column("default against itself", numeric=True, narrow=False),
            Column("in the file"),
        ),
        rows=tuple(
            (
                Item(str(cell.ranks), cell.ranks),
                Item(format_bytes(cell.size_bytes), cell.size_bytes),
                Item(_way(cell) if cell.algorithm else "–"),
                change_item(cell.ratio) if cell.ratio else Item("unknown", None, "unknown"),
                change_item(cell.control) if cell.control else Item("unknown", None, "unknown"),
                Item("yes", "yes", "good") if cell.kept else Item(f"no: {cell.reason}", "no"),
            )
            for cell in cells
        ),
        note="In launches of their own, after the search. Kept is what is proven to be faster by more than the default "
        "differs from itself anywhere in this collective and number of ranks.",
        tall=True,
    )


def _held_out(cells: Sequence[HeldOut]) -> Table:
    return Table(
        title="Held-out sizes, with the file against without",
        columns=(
            Column("collective"),
            Column("ranks", numeric=True),
            Column("size", numeric=True, whole=True),
            Column("change of time", numeric=True),
            Column("default against itself", numeric=True, narrow=False),
            Column("chance up to", numeric=True),
            Column("has a rule"),
        ),
        rows=tuple(
            (
                Item(cell.collective),
                Item(str(cell.ranks), cell.ranks),
                Item(format_bytes(cell.size_bytes), cell.size_bytes),
                change_item(cell.ratio, "error" if cell.ratio.value > cell.limit else ""),
                change_item(cell.control),
                Item(f"±{percent(cell.limit - 1)}", cell.limit),
                Item("yes" if cell.ruled else "no"),
            )
            for cell in cells
        ),
        empty="none was measured",
    )


def _effects(effects: Sequence[RuleEffect]) -> Table:
    flags: dict[str, Flag] = {
        "in effect": "good",
        "not in effect": "error",
        "alike": "",
        "unknown": "unknown",
    }
    return Table(
        title="Whether the file is in effect",
        columns=(
            Column("collective"),
            Column("ranks", numeric=True),
            Column("size", numeric=True, whole=True),
            Column("state"),
            Column("what was seen"),
        ),
        rows=tuple(
            (
                Item(effect.collective),
                Item(str(effect.ranks), effect.ranks),
                Item(format_bytes(effect.size_bytes), effect.size_bytes),
                Item(effect.state, effect.state, flags[effect.state]),
                Item(printable(effect.evidence, 400)),
            )
            for effect in effects
        ),
        empty="there is no file to look at",
    )


def _struck_out(struck: Sequence[StruckOut]) -> Table:
    return Table(
        title="Excluded or not tried",
        columns=(Column("collective"), Column("ranks", numeric=True), Column("algorithm"), Column("why")),
        rows=tuple(
            (
                Item(one.collective),
                Item(str(one.ranks), one.ranks),
                Item(
                    name(one.algorithm)
                    + (f", parts of {format_bytes(one.segment_bytes)}" if one.segment_bytes else "")
                ),
                Item(printable(one.reason, 300)),
            )
            for one in struck
        ),
        empty="all were tried, and none failed, hung or gave wrong data",
    )

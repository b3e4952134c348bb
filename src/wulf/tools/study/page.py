"""A study as people read it: the table first, then what each level brings, lines, costs, published values.  Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from wulf.base.errors import EXIT_INTERRUPTED
from wulf.base.text import count, printable
from wulf.base.units import format_bandwidth, format_bytes, format_time
from wulf.page.blocks import Block, Notes, Page, Section, Verdict, known
from wulf.page.parts import Column, Flag, Item, Table
from wulf.page.words import FLAGS, change_item, duration, estimate_item, listed, name, percent
from wulf.tools.study.design import FEWEST
from wulf.tools.study.record import (
    Study,
    StudyCell,
    StudyEffect,
    StudyFigure,
    StudyForecast,
    StudyLine,
    StudyMetric,
    StudyPlan,
    StudyPublished,
    StudyResult,
)

#: Exit code where not all that was wanted is known.
_SHORT = 3


def exit_code(found: Study) -> int:
    """Return the exit code: whether runs are missing, or failed."""
    result = found.result
    if result is None:
        return 0
    if result.status == "interrupted":
        return EXIT_INTERRUPTED
    failed = any(figure.failures for cell in result.cells for figure in cell.figures)
    return _SHORT if failed or result.status != "complete" else 0


def build(found: Study) -> Page:
    """Return which studies there are, what one would do, or what it has found."""
    if found.plan is None:
        return _known(found)
    if found.result is None:
        assert found.forecast is not None
        return _planned(found.plan, found.forecast)
    return _result(found.plan, found.result)


def _page(
    title: str, lede: str, head: tuple[Block, ...], sections: tuple[Section, ...] = (), run: str = ""
) -> Page:
    return Page(
        title=title, lede=lede, kind="Study", verb="bench study", head=head, sections=sections, run=run
    )


def _known(found: Study) -> Page:
    rows = tuple(
        (
            Item(name(one.name)),
            Item(printable(one.title, 200)),
            Item(printable(one.source, 200) or "–"),
            Item(printable(one.file, 200) or "comes with wulf"),
        )
        for one in found.known
    )
    columns = (
        Column("study", whole=True),
        Column("what it asks"),
        Column("source", narrow=False),
        Column("file", narrow=False),
    )
    return _page(f"{count(len(found.known), 'study', 'studies')}", "", (Table("Studies", columns, rows),))


def _planned(plan: StudyPlan, forecast: StudyForecast) -> Page:
    runs = f": {count(forecast.runs, 'run')}" if len(plan.cells) > 1 else ""
    return _page(
        printable(plan.title, 200),
        ", ".join(filter(None, (_designed(plan) + runs, _length(forecast)))),
        known(
            _factors(plan),
            _metrics(plan),
            *(
                Notes(lines)
                for lines in (tuple(plan.aliases), _left_out(plan), _at_the_run(forecast))
                if lines
            ),
        ),
    )


def _left_out(plan: StudyPlan) -> tuple[str, ...]:
    return tuple(
        f"left out: {printable(what, 100)}: {printable(why, 200)}" for what, why in plan.left_out.items()
    )


def _at_the_run(forecast: StudyForecast) -> tuple[str, ...]:
    return tuple(f"checked at the run: {printable(what, 300)}" for what in forecast.at_the_run)


def _designed(plan: StudyPlan) -> str:
    cells = len(plan.cells)
    what = {
        "full": "all combinations",
        "one at a time": "one factor at a time",
        "fractional": "a fraction of all combinations",
    }[plan.design]
    return (
        f"{what} ({cells}), each {count(plan.replications, 'time')} beside the base in random order"
        if cells > 1
        else f"nothing is varied, {count(plan.replications, 'run')}"
    )


def _length(forecast: StudyForecast) -> str:
    known_ = f"about {duration(float(f'{forecast.time_s:.2g}'))}" if forecast.time_s else ""
    rest = f"what {listed(forecast.unknown)} takes is not known before" if forecast.unknown else ""
    return "; ".join(filter(None, (known_, rest)))


def _factors(plan: StudyPlan) -> Table | None:
    if not plan.factors:
        return None
    explained = any(factor.about for factor in plan.factors)
    rows = tuple(
        (
            Item(name(factor.name)),
            Item(name(factor.levels[0].name)),
            Item(listed([name(level.name) for level in factor.levels[1:]], 12) or "none"),
            *((Item(printable(factor.about, 200)),) if explained else ()),
        )
        for factor in plan.factors
    )
    columns = (Column("factor"), Column("base"), Column("other levels"))
    about = (Column("about", narrow=False),) if explained else ()
    return Table("What is varied", (*columns, *about), rows)


def _metrics(plan: StudyPlan) -> Table:
    rows = tuple(
        (
            Item(name(metric.name)),
            Item(printable(metric.op or metric.command or _problem(metric), 100)),
            Item(
                listed([format_bytes(size) for size in metric.sizes_bytes], 8)
                if any(metric.sizes_bytes)
                else "–"
            ),
        )
        for metric in plan.metrics
    )
    return Table("What is measured", (Column("metric"), Column("by"), Column("sizes")), rows)


def _problem(metric: StudyMetric) -> str:
    if metric.jobs:
        return "Slurm: " + listed([f"{job.count} × {job.command}" for job in metric.jobs])
    problem = metric.hpl
    return f"HPL, N {problem.n}, NB {problem.nb}" if problem is not None else ""


def _result(plan: StudyPlan, result: StudyResult) -> Page:
    sections = [
        Section("effects", "What each level brings", _effects(plan, result)),
        Section("lines", "Lines through the sizes", (_lines(result.lines),) if result.lines else ()),
        Section("costs", "What a rate costs", (_costs(result),) if result.costs else ()),
        Section("published", "Published values", (_published(plan, result),) if plan.published else ()),
    ]
    return _page(
        f"{printable(plan.title, 200)}: {_headline(plan, result)}",
        f"{_designed(plan)}, on {count(len(plan.nodes), 'node')}",
        known(Verdict(_flag(result), _said(plan, result)), *(_cells(plan, result))),
        tuple(section for section in sections if section.blocks),
        run=result.run_id,
    )


def _flag(result: StudyResult) -> Flag:
    return (
        "good"
        if result.status == "complete" and exit_code(Study(schema_version=2, result=result)) == 0
        else "unknown"
    )


def _headline(plan: StudyPlan, result: StudyResult) -> str:
    """Return the level that brings most of the first figure, or that none is sure to."""
    first = plan.figures[0][0]
    sure = [
        one
        for one in result.effects
        if one.figure == first and len(one.levels) == 1 and one.verdict in ("better", "worse")
    ]
    if not result.effects:
        return f"{count(len(plan.figures), 'figure')}"
    if not sure:
        return f"no level is shown to change {name(first)}"
    most = max(sure, key=_log)
    (factor, level), *_ = most.levels.items()
    assert most.ratio is not None
    return f"{name(factor)} {name(level)} changes {name(first)} most, {change_item(most.ratio).text}"


def _log(effect: StudyEffect) -> float:
    """Return how far a ratio is from none, the same for half and for double."""
    ratio = effect.ratio.value if effect.ratio is not None else 1.0
    return abs(math.log(ratio)) if 0 < ratio < math.inf else math.inf


def _said(plan: StudyPlan, result: StudyResult) -> tuple[str, ...]:
    lines = []
    if result.runs < result.wanted:
        made = f"{result.runs} of {count(result.wanted, 'run')} made"
        why = {"budget": "the budget ended it", "interrupted": "it was interrupted"}.get(
            result.status, "it goes on"
        )
        lines.append(
            f"{made}: the others are of combinations that have never worked"
            if result.status == "complete"
            else f"{made}: {why}; --resume makes the rest"
        )
    lines += _left_out(plan)
    # A metric that failed gives none of its figures.
    of = {figure: metric.name for figure, metric in plan.figures}
    failed = [
        f"{_level_words(cell.levels)}, {name(of.get(figure.figure, figure.figure))}: {count(times, 'run')} failed: "
        f"{printable(why, 200)}"
        for cell in result.cells
        for figure in cell.figures
        for why, times in figure.failures.items()
    ]
    lines += dict.fromkeys(failed)
    if result.contaminated:
        lines.append(f"in {count(result.contaminated, 'run')} something else was going on on the nodes")
    return tuple(lines)


def _level_words(levels: Mapping[str, str]) -> str:
    return ", ".join(f"{name(factor)} {name(level)}" for factor, level in levels.items()) or "as it is"


def _cells(plan: StudyPlan, result: StudyResult) -> list[Table]:
    """Return the one table: a row for each combination and figure."""
    factors = [factor.name for factor in plan.factors]
    compared = len(plan.cells) > 1
    published = any(figure.published is not None for cell in result.cells for figure in cell.figures)
    columns = [Column(name(factor)) for factor in factors]
    columns += [Column("figure"), Column("value", numeric=True)]
    columns += [Column("against the base", numeric=True), Column("verdict")] if compared else []
    columns += [Column("published", numeric=True)] if published else []
    rows = [
        _row(cell, figure, factors, compared=compared, published=published)
        for cell in result.cells
        for figure in cell.figures
    ]
    note = f"Medians of runs; 95 % intervals. Changes within ±{percent(plan.margin)} do not matter."
    if compared and plan.replications < FEWEST:
        note += f" {count(plan.replications, 'pair')} of runs prove no change of a combination: {FEWEST} may."
    return [Table("All combinations", tuple(columns), tuple(rows), note=note, tall=len(rows) > 40)]


def _row(
    cell: StudyCell, figure: StudyFigure, factors: Sequence[str], *, compared: bool, published: bool
) -> tuple[Item, ...]:
    row = [Item(name(cell.levels[factor])) for factor in factors]
    row += [Item(name(figure.figure)), estimate_item(figure.value, "every run failed")]
    if compared:
        row += [
            change_item(figure.ratio) if figure.ratio is not None else Item("–"),
            Item(figure.verdict or "base", figure.verdict or "base", FLAGS.get(figure.verdict or "", "")),
        ]
    if published:
        row.append(_number(figure.published, figure.value.unit if figure.value is not None else ""))
    return tuple(row)


def _number(value: float | None, unit: str) -> Item:
    if value is None:
        return Item("–")
    if unit == "s":
        return Item(format_time(value), value)
    if unit == "B/s":
        return Item(format_bandwidth(value), value)
    return Item(f"{value:.4g} {unit}".strip(), value)


def _effects(plan: StudyPlan, result: StudyResult) -> tuple[Block, ...]:
    if not result.effects:
        return ()
    single = [one for one in result.effects if len(one.levels) == 1]
    double = [one for one in result.effects if len(one.levels) == 2]
    blocks: list[Block] = [
        _effect_table(
            f"Effects, each level against {_level_words(plan.levels_of(0))}",
            single,
            "Averaged over the levels of the other factors." if double else "",
        )
    ]
    if double:
        blocks.append(
            _effect_table(
                "Interactions", double, "What two levels bring together beyond what each brings alone."
            )
        )
    else:
        blocks.append(Notes((f"no interactions: {printable(result.no_interactions, 300)}",)))
    return tuple(blocks)


def _effect_table(title: str, effects: Sequence[StudyEffect], note: str) -> Table:
    columns = (Column("figure"), Column("level"), Column("change", numeric=True), Column("verdict"))
    rows = tuple(
        (
            Item(name(one.figure)),
            Item(" × ".join(f"{name(factor)} {name(level)}" for factor, level in one.levels.items())),
            change_item(one.ratio)
            if one.ratio is not None
            else Item(f"unknown: {one.reason}", None, "unknown"),
            Item(one.verdict, one.verdict, FLAGS[one.verdict]),
        )
        for one in effects
    )
    return Table(title, columns, rows, note=note, tall=len(rows) > 40)


def _lines(lines: Sequence[StudyLine]) -> Table:
    columns = (
        Column("metric"),
        Column("of"),
        Column("at 0 B", numeric=True),
        Column("per byte", numeric=True),
        Column("R²", numeric=True),
    )
    rows = tuple(
        (
            Item(name(one.metric)),
            Item(name(one.of) if one.of else _level_words(one.levels)),
            estimate_item(one.intercept),
            estimate_item(one.slope),
            Item(f"{one.r_squared:.2f}", one.r_squared),
        )
        for one in lines
    )
    note = "Least squares through the sizes of every run; medians of these. R² is of the line through the medians."
    return Table("Time against size", columns, rows, note=note)


def _costs(result: StudyResult) -> Table:
    rows = tuple(
        (
            Item(_level_words(one.levels)),
            Item(name(one.figure)),
            Item(name(one.price) if one.price else "power"),
            _cost_item(one.value.value, one.value.low, one.value.high, one.value.unit),
        )
        for one in result.costs
    )
    columns = (Column("combination"), Column("figure"), Column("price"), Column("cost", numeric=True))
    return Table("Price per GFLOPS, and MFLOPS per watt", columns, rows)


def _cost_item(value: float, low: float | None, high: float | None, unit: str) -> Item:
    bounds = f" ({_amount(low)} to {_amount(high)})" if low is not None and high is not None else ""
    return Item(f"{_amount(value)}{bounds} {unit}", value)


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 1e4 else f"{value:.4g}"


def _published(plan: StudyPlan, result: StudyResult) -> Table:
    units = {figure: metric.unit for figure, metric in plan.figures}
    columns = (
        Column("figure"),
        Column("of"),
        Column("published", numeric=True),
        Column("here", numeric=True),
        Column("note", narrow=False),
    )
    rows = tuple(
        (
            Item(name(one.figure)),
            Item(name(one.of) if one.of else _level_words(one.levels)),
            _number(one.value, units.get(one.figure, "s")),
            _here(plan, result, one),
            Item(printable(one.note, 200)),
        )
        for one in plan.published
    )
    return Table("Published, and here", columns, rows, tall=len(rows) > 40)


def _here(plan: StudyPlan, result: StudyResult, published: StudyPublished) -> Item:
    """Return what was measured of the same; of other machines the base."""
    wanted = {**plan.levels_of(0), **published.levels}
    for cell in result.cells:
        if cell.levels == wanted:
            for figure in cell.figures:
                if figure.figure == published.figure:
                    return estimate_item(figure.value, "every run failed")
    return Item("not measured", None, "unknown")

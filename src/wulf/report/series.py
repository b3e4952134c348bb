"""Records as the data of charts: columns of numbers with units in their names, and the words beside them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from wulf.records import CellEstimate, CurveModel, LineFit, Pair
from wulf.report import ranking, ticks
from wulf.report.parts import Columns, Datasets, Figure, Raw, Variant
from wulf.report.words import count, estimate_item, listed, pair_name, quantity
from wulf.records import Operation
from wulf.units import format_bytes, format_estimate

QUANTILES = ("min", "p5", "p25", "p50", "p75", "p95", "p99", "p99.9", "max")
#: Breakpoints of several pairs within this factor, with one cause, are one mark.
SAME_BREAK = 1.3
#: Beyond this ratio of largest to smallest size a linear axis shows nothing of the small ones.
LINEAR_RANGE = 64
#: Significant digits of raw numbers in a chart; estimates are printed from the records.
DIGITS = 7

Models = dict[Pair, CurveModel]


def figures(
    id_: str, operation: Operation | None, cells: Sequence[CellEstimate], models: Models, pairs: Sequence[Pair]
) -> tuple[tuple[Figure, ...], tuple[Figure, ...]]:
    """Return the charts over all pairs and the charts of one pair at a time."""
    groups = ranking.by_pair(cells)
    what = quantity(operation)
    shown = [cell for pair in pairs for cell in groups[pair]]
    overview = [latency(f"{id_}-latency", what, shown, models, pairs)]
    if any(cell.bandwidth for cell in shown):
        overview.append(bandwidth(f"{id_}-bandwidth", shown, pairs))
    if len(groups) > 2:
        overview += matrices(id_, what, groups, models)
    detail = [box(f"{id_}-box", what, groups, pairs), *regression(f"{id_}-fit", what, groups, models, pairs)]
    return tuple(overview), tuple(detail)


def latency(id_: str, what: str, cells: Sequence[CellEstimate], models: Models, pairs: Sequence[Pair]) -> Figure:
    """Time against size with the interval as a band, and the breakpoints."""
    drawn = [cell for cell in cells if cell.time.value > 0]
    breaks = _breaks([models[pair] for pair in pairs if pair in models])
    main: Columns = {
        "pair": [pair_name(cell.cell.pair) for cell in drawn],
        "size_bytes": [cell.cell.size_bytes for cell in drawn],
        "time_s": _rounded([cell.time.value for cell in drawn]),
        "low_s": _rounded([cell.time.low for cell in drawn]),
        "high_s": _rounded([cell.time.high for cell in drawn]),
        "launches": [cell.time.n for cell in drawn],
        "time": [format_estimate(cell.time) for cell in drawn],
    }
    return Figure(
        id=id_,
        kind="latency",
        title=f"{what.capitalize()} against message size",
        x_title="message size (logarithmic)",
        y_title=what,
        x=ticks.sizes(cell.cell.size_bytes for cell in drawn),
        y=ticks.times(bound for cell in drawn for bound in _bounds(cell)),
        variants=(
            Variant(
                label="",
                datasets={"main": main, "breaks": breaks},
                summary=_latency_summary(what, drawn),
                caption=_latency_caption(breaks),
            ),
        ),
    )


def bandwidth(id_: str, cells: Sequence[CellEstimate], pairs: Sequence[Pair]) -> Figure:
    """Bandwidth against size with the interval as a band."""
    drawn = [(cell, cell.bandwidth) for cell in cells if cell.bandwidth is not None]
    main: Columns = {
        "pair": [pair_name(cell.cell.pair) for cell, _ in drawn],
        "size_bytes": [cell.cell.size_bytes for cell, _ in drawn],
        "bandwidth_bytes_per_s": _rounded([rate.value for _, rate in drawn]),
        "low_bytes_per_s": _rounded([rate.low for _, rate in drawn]),
        "high_bytes_per_s": _rounded([rate.high for _, rate in drawn]),
        "launches": [rate.n for _, rate in drawn],
        "bandwidth": [format_estimate(rate) for _, rate in drawn],
    }
    best = max(drawn, key=lambda entry: entry[1].value)
    return Figure(
        id=id_,
        kind="bandwidth",
        title="Bandwidth against message size",
        x_title="message size (logarithmic)",
        y_title="bandwidth",
        x=ticks.sizes(cell.cell.size_bytes for cell, _ in drawn),
        y=ticks.bandwidths(rate.high or rate.value for _, rate in drawn),
        variants=(
            Variant(
                label="",
                datasets={"main": main},
                summary=f"Bandwidth of {count(len(pairs), 'pair')} against message size; "
                f"highest {format_estimate(best[1])} at {format_bytes(best[0].cell.size_bytes)} "
                f"on {pair_name(best[0].cell.pair)}.",
                caption="Message size divided by the time above; the band is the interval.",
            ),
        ),
    )


def box(id_: str, what: str, groups: dict[Pair, list[CellEstimate]], pairs: Sequence[Pair]) -> Figure:
    """Box plot per size: whiskers from minimum to maximum, as in RFC 2544 work."""
    every = [cell for pair in pairs for cell in groups[pair]]
    return Figure(
        id=id_,
        kind="box",
        title=f"Distribution of {what} per size",
        x_title="message size",
        y_title=what,
        y=ticks.times(value for cell in every for value in cell.quantiles_s.values()),
        variants=tuple(_box_variant(what, pair, groups[pair]) for pair in pairs),
    )


def _box_variant(what: str, pair: Pair, cells: Sequence[CellEstimate]) -> Variant:
    drawn = [cell for cell in cells if cell.quantiles_s.get("min", 0) > 0]
    main: dict[str, Sequence[Raw]] = {
        "size_bytes": [cell.cell.size_bytes for cell in drawn],
        "size": [format_bytes(cell.cell.size_bytes) for cell in drawn],
        "iterations": [cell.iterations for cell in drawn],
    }
    for quantile in QUANTILES:
        main[_column(quantile)] = _rounded([cell.quantiles_s.get(quantile) for cell in drawn])
    return Variant(
        label=pair_name(pair),
        datasets={"main": main},
        summary=f"Box plot of {what} on {pair_name(pair)} for {count(len(drawn), 'size')}, "
        f"over {sum(cell.iterations for cell in drawn)} iterations.",
        caption="All iterations of all launches, none dropped. Box: 25th to 75th percentile with the median; "
        "thick whisker: 5th to 95th; thin whisker: minimum to maximum.",
    )


def regression(
    id_: str, what: str, groups: dict[Pair, list[CellEstimate]], models: Models, pairs: Sequence[Pair]
) -> list[Figure]:
    """Medians of launches with the lines fitted through them; nothing where no line was fitted."""
    fitted = [pair for pair in pairs if pair in models and (models[pair].robust or models[pair].least_squares)]
    if not fitted:
        return []
    sizes = [cell.cell.size_bytes for pair in fitted for cell in groups[pair]]
    medians = [point.median_s for pair in fitted for cell in groups[pair] for point in cell.launches]
    logarithmic = max(sizes) > LINEAR_RANGE * max(min((size for size in sizes if size), default=1), 1)
    return [
        Figure(
            id=id_,
            kind="regression",
            title="Launch medians and fitted lines",
            x_title="message size (logarithmic)" if logarithmic else "message size",
            y_title=what,
            x=ticks.sizes(sizes) if logarithmic else ticks.linear_sizes(sizes),
            y=ticks.times(medians) if logarithmic else ticks.linear_times(medians),
            logarithmic=logarithmic,
            variants=tuple(_fit_variant(what, pair, groups[pair], models[pair]) for pair in fitted),
        )
    ]


def _fit_variant(what: str, pair: Pair, cells: Sequence[CellEstimate], model: CurveModel) -> Variant:
    points = [(cell, point) for cell in cells for point in cell.launches if point.median_s > 0]
    main: Columns = {
        "size_bytes": [cell.cell.size_bytes for cell, _ in points],
        "launch": [point.launch for _, point in points],
        "median_s": _rounded([point.median_s for _, point in points]),
        "contaminated": [int(point.contaminated) for _, point in points],
    }
    fits = [fit for fit in (model.robust, model.least_squares) if fit is not None]
    equations = [equation(fit) for fit in fits]
    return Variant(
        label=pair_name(pair),
        datasets={"main": main, "lines": _lines(fits)},
        summary=f"{count(len(points), 'launch median')} of {what} on {pair_name(pair)} with "
        f"{' and '.join(equations)}.",
        caption=" · ".join(equations) + ". Shaded: prediction interval of the Theil–Sen line.",
    )


def equation(fit: LineFit) -> str:
    """Return 'Theil–Sen: T = α + m/β, R² = …' with the values of a fit."""
    names = {"theil-sen": "Theil–Sen", "least-squares": "least squares"}
    return (
        f"{names[fit.method]}: T = {format_estimate(fit.alpha)} + m × {format_estimate(fit.inverse_beta)}, "
        f"R² = {fit.r_squared:.4f}"
    )


def _lines(fits: Sequence[LineFit]) -> Columns:
    names = {"theil-sen": "Theil–Sen", "least-squares": "least squares"}
    rows = [(names[fit.method], *point) for fit in fits for point in fit.curve if point[1] > 0]
    # A prediction interval may reach below zero at small sizes; a logarithmic axis has no place for it.
    return {
        "fit": [row[0] for row in rows],
        "size_bytes": [row[1] for row in rows],
        "fitted_s": _rounded([row[2] for row in rows]),
        "low_s": _rounded([row[3] if row[3] > 0 else None for row in rows]),
        "high_s": _rounded([row[4] for row in rows]),
    }


def matrices(id_: str, what: str, groups: dict[Pair, list[CellEstimate]], models: Models) -> list[Figure]:
    """Heat maps over pairs: zero-byte latency and asymptotic bandwidth, where the models have them."""
    found = []
    for key, title, worse in (
        ("zero_byte_latency", f"Zero-byte {what} by pair", "high"),
        ("asymptotic_bandwidth", "Asymptotic bandwidth by pair", "low"),
    ):
        known = [(pair, getattr(models[pair], key)) for pair in groups if pair in models]
        cells = [(pair, value) for pair, value in known if value is not None]
        if len(cells) > 2:
            found.append(_matrix(f"{id_}-{key.replace('_', '-')}", title, cells, worse))
    return found


def _matrix(id_: str, title: str, cells: list[tuple[Pair, Estimate]], worse: str) -> Figure:
    values = [estimate.value for _, estimate in cells]
    low, high = min(values), max(values)
    badness = [(value - low) / (high - low) if high > low else 0.0 for value in values]
    if worse == "low":
        badness = [1 - bad if high > low else 0.0 for bad in badness]
    worst = cells[badness.index(max(badness))]
    main: Columns = {
        "from": [pair_name_part for pair_name_part in (name(pair[0]) for pair, _ in cells)],
        "to": [name(pair[1]) for pair, _ in cells],
        "value": _rounded(values),
        "low": _rounded([estimate.low for _, estimate in cells]),
        "high": _rounded([estimate.high for _, estimate in cells]),
        "unit": [estimate.unit for _, estimate in cells],
        "text": [estimate_item(estimate).text for _, estimate in cells],
        "badness": [round(bad, 3) for bad in badness],
    }
    return Figure(
        id=id_,
        kind="matrix",
        title=title,
        x_title="to",
        y_title="from",
        variants=(
            Variant(
                label="",
                datasets={"main": main},
                summary=f"{title}: worst {estimate_item(worst[1]).text} on {pair_name(worst[0])}.",
                caption="Darker is worse, from the best pair to the worst; a blank field was not measured.",
            ),
        ),
    )

"""The scatter of launch medians and the lines fitted through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wulf.base.records import CellEstimate, CurveModel, LineFit, Place
from wulf.base.text import count
from wulf.base.units import format_estimate
from wulf.page import ticks
from wulf.page.parts import Columns, Figure, Variant, rounded
from wulf.page.words import Terms
from wulf.tools.measure.page import charts

METHODS = {"theil-sen": "Theil–Sen", "least-squares": "least squares"}
#: Beyond this ratio of largest to smallest size a linear axis shows nothing of the small ones.
LINEAR_RANGE = 64


def regression(
    id_: str,
    terms: Terms,
    groups: Mapping[Place, Sequence[CellEstimate]],
    models: Mapping[Place, CurveModel],
    pairs: Sequence[Place],
) -> list[Figure]:
    """Medians of launches with the lines fitted through them; nothing where no line was fitted."""
    fitted = [
        pair for pair in pairs if pair in models and (models[pair].robust or models[pair].least_squares)
    ]
    if not fitted:
        return []
    sizes = [cell.cell.size_bytes for pair in fitted for cell in groups[pair]]
    medians = [point.median_s for pair in fitted for cell in groups[pair] for point in cell.launches]
    logarithmic = max(sizes) > LINEAR_RANGE * max(min((size for size in sizes if size), default=1), 1)
    return [
        Figure(
            id=id_,
            chart=charts.REGRESSION,
            title="Launch medians and fitted lines",
            x_title=f"{terms.axis} (logarithmic)" if logarithmic else terms.axis,
            y_title=terms.quantity,
            x=ticks.sizes(sizes) if logarithmic else ticks.linear_sizes(sizes),
            y=ticks.times(medians) if logarithmic else ticks.linear_times(medians),
            logarithmic=logarithmic,
            variants=tuple(_fit_variant(terms, pair, groups[pair], models[pair]) for pair in fitted),
        )
    ]


def _fit_variant(terms: Terms, pair: Place, cells: Sequence[CellEstimate], model: CurveModel) -> Variant:
    points = [(cell, point) for cell in cells for point in cell.launches if point.median_s > 0]
    main: Columns = {
        "size_bytes": [cell.cell.size_bytes for cell, _ in points],
        "launch": [point.launch for _, point in points],
        "median_s": rounded([point.median_s for _, point in points]),
        "contaminated": [int(point.contaminated) for _, point in points],
    }
    fits = [fit for fit in (model.robust, model.least_squares) if fit is not None]
    equations = [equation(fit) for fit in fits]
    return Variant(
        label=terms.name(pair),
        datasets={"main": main, "lines": _lines(fits)},
        summary=f"{count(len(points), 'launch median')} of {terms.quantity} on {terms.name(pair)} with "
        f"{' and '.join(equations)}.",
        caption=" · ".join(equations) + ". Shaded: prediction interval of the Theil–Sen line.",
    )


def equation(fit: LineFit) -> str:
    """Return 'Theil–Sen: T = α + m/β, R² = …' with the values of a fit."""
    return (
        f"{METHODS[fit.method]}: T = {format_estimate(fit.alpha)} + m × {format_estimate(fit.inverse_beta)}, "
        f"R² = {fit.r_squared:.4f}"
    )


def _broken(text: str) -> str:
    """Mark where an equation may be broken when there is little room."""
    for mark in ("T =", "+ m", "R² ="):
        text = text.replace(mark, f"\n{mark}")
    return text


def _lines(fits: Sequence[LineFit]) -> Columns:
    rows = [(fit, *point) for fit in fits for point in fit.curve if point[1] > 0]
    # A prediction interval may reach below zero at small sizes; a logarithmic axis has no place for it.
    return {
        "fit": [_broken(equation(fit)) for fit, *_ in rows],
        "robust": [int(fit.method == "theil-sen") for fit, *_ in rows],
        "size_bytes": [size for _, size, *_ in rows],
        "fitted_s": rounded([fitted for _, _, fitted, *_ in rows]),
        "low_s": rounded([low if low > 0 else None for *_, low, _ in rows]),
        "high_s": rounded([high for *_, high in rows]),
    }

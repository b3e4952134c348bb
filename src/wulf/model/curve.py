"""All that is modelled about one operation between one pair of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from wulf.model import hockney, matrix
from wulf.model.hockney import NotIdentifiable
from wulf.records import CellEstimate, CurveModel, Estimate, LineFit
from wulf.stats.regression import Line


def curve(cells: Sequence[CellEstimate], quantity: str = "half_round_trip_time") -> CurveModel:
    """Fit the models of one operation, pair and setting.

    Parameters
    ----------
    cells
        At least one; all of one operation, pair and setting.
    quantity
        The operation's quantity (`wulf.records.Operation`); only a round trip has a zero-byte latency.

    Returns
    -------
    CurveModel
        What the data do not determine is None, with the reason in the notes.

    Raises
    ------
    ValueError
        When there are no cells.
    """
    if not cells:
        raise ValueError("a curve needs at least one cell")
    head = cells[0].cell
    data = matrix.of_cells(cells)
    notes: list[str] = []
    lines: list[Line] = []
    robust = least_squares = None
    if len(data.sizes) < hockney.MIN_SIZES:
        notes.append(f"no model: it takes {hockney.MIN_SIZES} sizes, there are {len(data.sizes)}")
    else:
        lines = hockney.launch_lines(data, hockney.robust_line)
        robust = _or_note(lambda: hockney.robust(data, lines), "Theil–Sen", notes)
        least_squares = _or_note(lambda: hockney.ordinary(data), "least squares", notes)
    latency = robust.alpha if robust and quantity == "half_round_trip_time" else None
    if robust and latency is None:
        notes.append("no zero-byte latency: the operation is not a round trip, α is the cost per message")
    return CurveModel(
        op=head.op,
        pair=head.pair,
        setting=head.setting,
        robust=robust,
        least_squares=least_squares,
        segments=[],
        zero_byte_latency=latency,
        asymptotic_bandwidth=_bandwidth(robust) if robust else None,
        n_half_bytes=_n_half(robust, lines) if robust else None,
        notes=notes,
    )


def _or_note(fit: Callable[[], LineFit], method: str, notes: list[str]) -> LineFit | None:
    try:
        return fit()
    except NotIdentifiable as reason:
        notes.append(f"no {method} line: {reason}")
        return None


def _bandwidth(fit: LineFit) -> Estimate:
    slope = fit.inverse_beta
    return Estimate(
        value=1 / slope.value,
        low=None if slope.high is None else 1 / slope.high,
        high=None if slope.low is None else 1 / slope.low,
        confidence=slope.confidence,
        unit="B/s",
        n=slope.n,
        method=f"1 / slope: {slope.method}",
    )


def _n_half(fit: LineFit, lines: Sequence[Line]) -> Estimate:
    """n½ = α β, the size at which half of the asymptotic bandwidth is reached (Hockney 1994)."""
    values = np.array([line.intercept / line.slope if line.slope > 0 else np.inf for line in lines])
    return hockney.estimate(values, fit.alpha.value / fit.inverse_beta.value, "B", "Theil–Sen α β")

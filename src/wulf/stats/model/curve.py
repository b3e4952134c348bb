"""All that is modelled about one operation between one pair of nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from wulf.base.records import CellEstimate, CurveModel, Estimate
from wulf.stats.core.segments import Piece
from wulf.stats.model import curve_data, hockney, segments
from wulf.stats.model.causes import NO_LIMITS, limits_of
from wulf.stats.model.hockney import NotIdentifiable

_T = TypeVar("_T")


class _Fits:
    """What is tried, and notes of what the data do not determine."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def or_note(self, what: str, fit: Callable[[], _T]) -> _T | None:
        """Return what is fitted; None, and a note, where that is not identifiable."""
        try:
            return fit()
        except NotIdentifiable as reason:
            self.notes.append(f"{what} is not identifiable: {reason}")
            return None


def curve(
    cells: Sequence[CellEstimate], pattern: str, eager_limits: Mapping[str, int] = NO_LIMITS
) -> CurveModel:
    """Fit the models of one operation, pair and setting.

    Parameters
    ----------
    cells
        At least one; all of one operation, pair and setting.
    pattern
        Who sends to whom (`wulf.base.records.Operation`); only a ping-pong has a latency.
    eager_limits
        Of the MPI library that was used, by the names that it gives them [B].

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
    round_trip = pattern == "ping-pong"
    model = _without_fits(cells, round_trip)
    data = curve_data.of_cells(cells)
    if len(data.sizes) < hockney.MIN_SIZES:
        return replace(
            model, notes=[f"no model: it takes {hockney.MIN_SIZES} sizes, there are {len(data.sizes)}"]
        )
    fits = _Fits()
    model = replace(
        model,
        robust=fits.or_note(
            "a Theil–Sen line",
            lambda: hockney.robust(data, hockney.launch_lines(data, hockney.robust_line)),
        ),
        least_squares=fits.or_note("a least-squares line", lambda: hockney.ordinary(data)),
    )
    divided = fits.or_note("the number of segments", lambda: segments.divide(data, cells))
    if divided is not None:
        model = replace(
            _with_ends(model, cells, data, divided, fits, round_trip=round_trip),
            segments=segments.describe(data, divided, model.op, limits_of(eager_limits, model.place)),
        )
    return replace(model, notes=fits.notes)


def _without_fits(cells: Sequence[CellEstimate], round_trip: bool) -> CurveModel:
    head = cells[0].cell
    return CurveModel(
        op=head.op,
        place=head.place,
        setting=head.setting,
        robust=None,
        least_squares=None,
        segments=[],
        zero_byte_latency=_measured_at_zero(cells) if round_trip else None,
        asymptotic_bandwidth=None,
        n_half_bytes=None,
    )


def _with_ends(
    model: CurveModel,
    cells: Sequence[CellEstimate],
    data: curve_data.Curve,
    divided: Sequence[Piece],
    fits: _Fits,
    *,
    round_trip: bool,
) -> CurveModel:
    """Return the model with what its first and last segments say: latency, bandwidth, n½."""
    latency = model.zero_byte_latency
    if latency is None and round_trip:
        latency = fits.or_note("the zero-byte latency", lambda: segments.zero_byte_latency(data, divided))
    bandwidth = None
    if any(cell.bandwidth for cell in cells):
        bandwidth = fits.or_note(
            "the asymptotic bandwidth", lambda: segments.asymptotic_bandwidth(data, divided)
        )
    else:
        fits.notes.append("no bandwidth: bytes ÷ this time is none")
    # Half of a bandwidth that is not known is not known either; the note about the bandwidth says why.
    n_half = fits.or_note("n½", lambda: segments.n_half(data, divided)) if bandwidth is not None else None
    return replace(model, zero_byte_latency=latency, asymptotic_bandwidth=bandwidth, n_half_bytes=n_half)


def _measured_at_zero(cells: Sequence[CellEstimate]) -> Estimate | None:
    return next((cell.time for cell in cells if cell.cell.size_bytes == 0), None)

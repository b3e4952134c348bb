"""All that is modelled about one operation between one pair of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from wulf.model import hockney, matrix, pieces
from wulf.model.hockney import NotIdentifiable
from wulf.records import CellEstimate, CurveModel

_T = TypeVar("_T")


def curve(cells: Sequence[CellEstimate]) -> CurveModel:
    """Fit the models of one operation, pair and setting.

    Parameters
    ----------
    cells
        At least one; all of one operation, pair and setting.

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
    data = matrix.of_cells(cells)
    if len(data.sizes) < hockney.MIN_SIZES:
        return _without_models(
            cells, f"no model: it takes {hockney.MIN_SIZES} sizes, there are {len(data.sizes)}"
        )
    head = cells[0].cell
    notes: list[str] = []
    divided = pieces.divide(data, cells)

    def or_note(what: str, fit: Callable[[], _T]) -> _T | None:
        try:
            return fit()
        except NotIdentifiable as reason:
            notes.append(f"{what} is not identifiable: {reason}")
            return None

    return CurveModel(
        op=head.op,
        pair=head.pair,
        setting=head.setting,
        robust=or_note(
            "a Theil–Sen line",
            lambda: hockney.robust(data, hockney.launch_lines(data, hockney.robust_line)),
        ),
        least_squares=or_note("a least-squares line", lambda: hockney.ordinary(data)),
        segments=pieces.describe(data, divided),
        zero_byte_latency=or_note(
            "the zero-byte latency", lambda: pieces.zero_byte_latency(data, divided, cells)
        ),
        asymptotic_bandwidth=or_note(
            "the asymptotic bandwidth", lambda: pieces.asymptotic_bandwidth(data, divided)
        ),
        n_half_bytes=or_note("n½", lambda: pieces.n_half(data, divided)),
        notes=notes,
    )


def _without_models(cells: Sequence[CellEstimate], reason: str) -> CurveModel:
    head = cells[0].cell
    empty = next((cell.time for cell in cells if cell.cell.size_bytes == 0), None)
    return CurveModel(
        op=head.op,
        pair=head.pair,
        setting=head.setting,
        robust=None,
        least_squares=None,
        segments=[],
        zero_byte_latency=empty,
        asymptotic_bandwidth=None,
        n_half_bytes=None,
        notes=[reason],
    )

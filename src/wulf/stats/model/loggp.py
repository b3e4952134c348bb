"""LogGP's parameters of messages between two ranks.

Alexandrov, Ionescu, Schauser, Scheiman (1995), "LogGP: incorporating long messages into the LogP model", SPAA '95.
What is measured for each of them follows Hoefler, Lichei, Rehm (2007), "Low-overhead LogGP parameter assessment for
modern interconnection networks", IPDPS 2007: calls are timed alone, and gaps by trains of messages of which the last is
answered.

A parameter that comes out negative, or that its interval does not tell from zero, is not printed: it is said why.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from wulf.base.records import CellEstimate, Estimate, LogGP, Operation, Place, Setting
from wulf.base.units import format_bytes, format_estimate
from wulf.stats.core.regression import Line, theil_sen
from wulf.stats.model import hockney
from wulf.stats.model.causes import limits_between, limits_of
from wulf.stats.model.curve_data import Curve, of_cells
from wulf.stats.model.hockney import CONFIDENCE, NotIdentifiable

ROUND_TRIP, SEND, RECEIVE = "mpi_pingpong", "mpi_send_overhead", "mpi_recv_overhead"
TRAIN, LATE = "mpi_rate", "mpi_late_receiver"
#: A send that takes at least so much of the time that the receiver comes late has waited for it.
WAITED = 0.5

#: Operation as it is asked for, without its number → that number (0 for none) → the cells, by size.
_Measured = Mapping[str, Mapping[int, Sequence[CellEstimate]]]


def loggp(
    cells: Sequence[CellEstimate], operations: Sequence[Operation], eager_limits: Mapping[str, int]
) -> Iterator[LogGP]:
    """Yield the parameters between the ranks of each place of which calls, gaps or late receivers were measured.

    Parameters
    ----------
    cells
        Of any operations.
    operations
        What is known of these: how the probe was asked for each.
    eager_limits
        Of the MPI library that was used, by the names that it gives them [B].
    """
    asked = {operation.name: _asked(operation) for operation in operations}
    places: dict[tuple[Place, Setting], dict[str, dict[int, list[CellEstimate]]]] = {}
    for cell in cells:
        kind, number = asked.get(cell.cell.op, ("", 0))
        if kind in {ROUND_TRIP, SEND, RECEIVE, TRAIN, LATE}:
            there = places.setdefault((cell.cell.place, cell.cell.setting), defaultdict(dict))
            there[kind].setdefault(number, []).append(cell)
    for (place, setting), measured in places.items():
        # A rate or a round trip alone is measured for its own sake.
        if measured.keys() & {SEND, RECEIVE, LATE} or len(measured.get(TRAIN, {})) > 1:
            found = LogGP(place=place, setting=setting)
            limits = limits_of(eager_limits, place)
            yield _with_limit(_with_gaps(_with_overheads(found, measured), measured), measured, limits)


def _asked(operation: Operation) -> tuple[str, int]:
    name, _, number = (operation.asked or operation.name).partition(":")
    usual = operation.parameter.usual if operation.parameter is not None else 0
    return name, int(number or usual)


def _with_overheads(found: LogGP, measured: _Measured) -> LogGP:
    """Add o_s, o_r and L, all of the smallest size that all of them have."""
    cells = {kind: _by_size(measured, kind) for kind in (ROUND_TRIP, SEND, RECEIVE)}
    sizes = [size for size in cells[ROUND_TRIP] if size in cells[SEND] and size in cells[RECEIVE]]
    if not sizes:
        lacking = [kind for kind, by_size in cells.items() if not by_size]
        why = f"not measured: {', '.join(lacking)}" if lacking else "no size was measured of all calls"
        return replace(found, notes=[*found.notes, f"L, o_s and o_r are not known: {why}"])
    whole, send, receive = (cells[kind][sizes[0]].time for kind in (ROUND_TRIP, SEND, RECEIVE))
    calls = send.value + receive.value
    with_calls = replace(found, send_overhead=send, receive_overhead=receive)
    try:
        latency = hockney.determined(_left(whole, send, receive), "L")
    except NotIdentifiable as reason:
        note = (
            f"L is not identifiable: {reason}; both calls take {calls / whole.value:.0%} of the "
            f"{format_estimate(whole)} that a message of {format_bytes(sizes[0])} takes"
        )
        return replace(with_calls, notes=[*found.notes, note])
    return replace(with_calls, latency=latency)


def _by_size(measured: _Measured, kind: str) -> dict[int, CellEstimate]:
    cells = [cell for numbered in measured.get(kind, {}).values() for cell in numbered]
    return {cell.cell.size_bytes: cell for cell in sorted(cells, key=lambda cell: cell.cell.size_bytes)}


def _left(whole: Estimate, *parts: Estimate) -> Estimate:
    """Return what is left of a time: all were measured in launches of their own, so their errors add as squares."""
    value = whole.value - sum(part.value for part in parts)
    below = _root([_below(whole), *map(_above, parts)])
    above = _root([_above(whole), *map(_below, parts)])
    return Estimate(
        value=value,
        low=None if below is None else value - below,
        high=None if above is None else value + above,
        confidence=CONFIDENCE,
        unit="s",
        n=min(one.n for one in (whole, *parts)),
        method="half round trip less both calls; errors of independent launches",
    )


def _root(errors: Sequence[float | None]) -> float | None:
    known = [error for error in errors if error is not None]
    return math.hypot(*known) if len(known) == len(errors) else None


def _below(figure: Estimate) -> float | None:
    return None if figure.low is None else figure.value - figure.low


def _above(figure: Estimate) -> float | None:
    return None if figure.high is None else figure.high - figure.value


def _with_gaps(found: LogGP, measured: _Measured) -> LogGP:
    """Add g and G from trains of messages: of two lengths, so that the answer does not count."""
    trains = {length: cells for length, cells in measured.get(TRAIN, {}).items() if length > 0}
    if len(trains) < 2:
        if not trains:
            return found
        return replace(
            found,
            notes=[*found.notes, f"g and G are not known: {TRAIN} was measured with one number of messages"],
        )
    short, long = min(trains), max(trains)
    try:
        gaps = _gaps(of_cells(trains[short]), of_cells(trains[long]), short, long)
        if len(gaps.sizes) < hockney.MIN_SIZES:
            raise NotIdentifiable(f"it takes {hockney.MIN_SIZES} sizes, there are {len(gaps.sizes)}")
        # A gap of one launch may come out negative, so errors are taken for parts of the gap of all of them.
        line = hockney.robust(gaps, hockney.launch_lines(gaps, _line_by(gaps.times)))
    except NotIdentifiable as reason:
        return replace(found, notes=[*found.notes, f"g and G are not identifiable: {reason}"])
    return replace(found, gap=line.alpha, gap_per_byte=line.inverse_beta)


def _line_by(scale: np.ndarray) -> Callable[[np.ndarray, np.ndarray], Line]:
    return lambda sizes, times: theil_sen(sizes, times, scale=scale)


def _gaps(short: Curve, long: Curve, fewer: int, more: int) -> Curve:
    """Return the gap between messages at the sizes that both trains have.

    A train of n messages takes a time of its own and n − 1 gaps; `times` are its time ÷ n.
    """
    sizes = np.intersect1d(short.sizes, long.sizes)
    ends = fewer * short.times[np.isin(short.sizes, sizes)]

    def gap(each: np.ndarray) -> np.ndarray:
        return (more * each[..., np.isin(long.sizes, sizes)] - ends) / (more - fewer)

    gaps = Curve(sizes, gap(long.times), gap(long.launches))
    if np.any(gaps.times <= 0):
        raise NotIdentifiable("a longer train takes no longer than a shorter one")
    return gaps


def _with_limit(found: LogGP, measured: _Measured, eager_limits: Mapping[str, int]) -> LogGP:
    """Add the eager limit: up to which size a send does not wait for a receiver that comes late."""
    waited = {
        size: cell.time.value * 1e6 >= WAITED * late_us
        for late_us in measured.get(LATE, {})
        for size, cell in _by_size(measured, LATE).items()
    }
    if not waited:
        return found
    eager = [size for size, waits in waited.items() if not waits]
    waiting = [size for size, waits in waited.items() if waits]
    if not waiting:
        return replace(
            found,
            notes=[*found.notes, f"the eager limit is {format_bytes(max(eager))} or more: nothing waited"],
        )
    if not eager:
        return replace(
            found,
            notes=[*found.notes, f"the eager limit is below {format_bytes(min(waiting))}: all sizes waited"],
        )
    if max(eager) > min(waiting):
        return replace(
            found,
            notes=[
                *found.notes,
                f"the eager limit is not at one size: {format_bytes(min(waiting))} waited for the receiver, "
                f"{format_bytes(max(eager))} did not",
            ],
        )
    low, high = max(eager), min(waiting)
    said = next(limits_between(low, high, eager_limits), None)
    return replace(
        found, eager_limit=(low, high), eager_limit_said=None if said is None else (said, eager_limits[said])
    )

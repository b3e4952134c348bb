"""Times of a calibration's operations by size: what was measured of messages between nodes, or within one.  Pure."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from wulf.base.errors import UsageError
from wulf.base.records import ORDER_PREFIX, CellEstimate, LogGP, Operation
from wulf.stats.prediction import setup_costs
from wulf.stats.prediction.draws import Draw
from wulf.stats.prediction.errors import errors
from wulf.stats.prediction.spreads import Spreads, spreads
from wulf.stats.prediction.sustained import Sustained, sustained

ROUND_TRIP, BOTH_WAYS, SEND, ISEND, RECEIVE = (
    "mpi_pingpong",
    "mpi_exchange",
    "mpi_send_overhead",
    "mpi_isend_overhead",
    "mpi_recv_overhead",
)
SHORT, LONG = "mpi_rate:1", "mpi_rate:16"
#: Synchronous messages: half a round trip, and a call alone.
ANSWERED, ANSWERED_CALL = "mpi_ssend_pingpong", "mpi_ssend_overhead"
#: Messages at once behind a rest: one, and so many.
SINGLE, TRAIN, TRAINED = "mpi_burst:1", "mpi_burst:8", 8
#: What CPUs take the time of, where messages are small.
_BY_CPU = (ROUND_TRIP, BOTH_WAYS, SEND, ISEND, RECEIVE, SHORT, LONG)
#: A network is not known without these.
NEEDED = (ROUND_TRIP, SEND, RECEIVE)
#: Up to this size nobody's buffers are full, and CPUs take most of the time [B].
SMALL = 1024
MEASURE = "measure with 'wulf measure --suite calibrate' on the cluster"


@dataclass(frozen=True)
class Points:
    """Times by size: the median over pairs of nodes [s]."""

    sizes: tuple[int, ...]
    times: tuple[float, ...]
    #: Standard deviation of its error [s]: of what all sizes have in common, and of what each has by itself.
    common: tuple[float, ...]
    own: tuple[float, ...]
    #: Between which most single ones lie.
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    #: Relative standard deviation of a launch, as far as these tell it; NaN where there was but one.
    spreads: tuple[float, ...]

    def drawn(self, draw: Draw, name: str, launch: float) -> list[float]:
        """Return the times moved by what may be off: all sizes by the same number, and each by one of its own.

        So is one launch, by `launch` standard deviations of launches.
        """
        all_sizes = draw.of(name)
        moved = [
            max(time + all_sizes * common + draw.of(f"{name} {size}") * own, 0.0)
            for size, time, common, own in zip(self.sizes, self.times, self.common, self.own, strict=True)
        ]
        if not launch:
            return moved
        return [time * math.exp(launch * spread) for time, spread in zip(moved, self.spreads, strict=True)]

    def among(self, number: float) -> list[float]:
        """Return times as some of the single ones are: all of them alike with 0, else those to either side [s]."""
        share = math.erf(number / math.sqrt(2))
        ends = self.highs if share > 0 else self.lows
        return [t + abs(share) * (end - t) for t, end in zip(self.times, ends, strict=True)]


@dataclass(frozen=True)
class Way:
    """What was measured of messages between nodes, or within one."""

    #: The run.
    origin: str
    #: ``between`` or ``within``.
    where: str
    points: Mapping[str, Points]
    #: Largest size that did not wait for its receiver [B].
    eager_bytes: int
    #: What of it is not known, or was taken for something, in words.
    notes: tuple[str, ...] = field(default=())
    pairs: int = 1
    #: Times of the first message in each launch, ascending [s].
    first_messages: tuple[float, ...] = ()

    @functools.cached_property
    def is_shaped(self) -> bool:
        """Whether the link lets bursts through faster than it carries more."""
        found = self.carried(
            {kind: dict(zip(of.sizes, of.times, strict=True)) for kind, of in self.points.items()}, None
        )
        return found is not None and found.is_shaped

    def carried(
        self, times: Mapping[str, Mapping[int, float]], shaped: bool | None, held: float = 0.0
    ) -> Sustained | None:
        """Return what the link carries in the long run; None within a node, where nothing is shared.

        Parameters
        ----------
        times
            Of each operation by size [s].
        shaped
            Whether it lets bursts through; None where that is to be found.
        held
            Where the depth of its bucket is between what is likely (0) and what may be (1).
        """
        if self.where == "within":
            return None
        empty = times[ROUND_TRIP][min(times[ROUND_TRIP])]
        first = of_rested_empty(times)
        rested = {size: time - first for size, time in times.get(SINGLE, {}).items()}
        turned = {size: time - empty for size, time in times[ROUND_TRIP].items()}
        trains = {TRAINED * size: time - first for size, time in times.get(TRAIN, {}).items()}
        # An older calibration, or one that was ended before, has no trains: long messages are trains of segments.
        trains = trains or turned
        singles = {size: min(time, rested.get(size, time)) for size, time in turned.items()}
        return sustained(trains, singles, _of_calls(times[SEND], times[RECEIVE]), shaped=shaped, held=held)

    @property
    def tells_launches(self) -> bool:
        """Whether every operation was launched more than once, so that it is known how launches differ."""
        return not any(math.isnan(spread) for points in self.points.values() for spread in points.spreads)


def between_nodes(
    cells: Sequence[CellEstimate], operations: Sequence[Operation], parameters: Sequence[LogGP], origin: str
) -> Way:
    """Return what was measured of messages between nodes.

    Raises
    ------
    UsageError
        What is needed was not measured: says what, and how it is measured.
    """
    return _way("between", cells, operations, parameters, origin)


def within_node(
    cells: Sequence[CellEstimate], operations: Sequence[Operation], parameters: Sequence[LogGP], origin: str
) -> Way:
    """Return what was measured of messages within nodes; raises as `between_nodes`."""
    return _way("within", cells, operations, parameters, origin)


def _way(
    where: str,
    cells: Sequence[CellEstimate],
    operations: Sequence[Operation],
    parameters: Sequence[LogGP],
    origin: str,
) -> Way:
    asked = {operation.name: _asked(operation) for operation in operations}
    groups: dict[str, dict[int, list[CellEstimate]]] = {}
    pairs = set()
    for cell in cells:
        if _lies(cell.cell.place, where) and not cell.cell.op.startswith(ORDER_PREFIX):
            sizes = groups.setdefault(asked.get(cell.cell.op, cell.cell.op), {})
            sizes.setdefault(cell.cell.size_bytes, []).append(cell)
            pairs.add(cell.cell.place)
    first = setup_costs.launches_of(
        [one for some in groups.pop(setup_costs.CONNECT, {}).values() for one in some]
    )
    alike = spreads([_small(groups.get(kind, {})) for kind in _BY_CPU])
    points = {kind: _points(sizes, alike) for kind, sizes in groups.items()}
    lacking = [kind for kind in NEEDED if kind not in points]
    if lacking:
        nodes = "between nodes" if where == "between" else "within a node"
        raise UsageError(f"{origin} has no {', '.join(lacking)} {nodes}: {MEASURE}")
    eager, notes = _eager(parameters, where)
    if not {SHORT, LONG} <= points.keys():
        notes = [
            *notes,
            f"{where}: the gap between messages ({SHORT} and {LONG}) was not measured: {MEASURE}",
        ]
    return Way(
        origin=origin,
        where=where,
        points=points,
        eager_bytes=eager,
        notes=tuple(notes),
        pairs=len(pairs),
        first_messages=first,
    )


def _of_calls(send: Mapping[int, float], receive: Mapping[int, float]) -> dict[int, float]:
    """Return by how much longer both calls take, each alone, than of the smallest message [s]."""
    alone = {size: send[size] + receive[size] for size in send.keys() & receive.keys()}
    return {size: time - alone[min(alone)] for size, time in alone.items()}


def _asked(operation: Operation) -> str:
    name, _, number = (operation.asked or operation.name).partition(":")
    return f"{name}:{number}" if name in ("mpi_rate", "mpi_burst") and number else name


def _lies(place: Sequence[str], where: str) -> bool:
    return len(place) == 2 and (len(set(place)) == 1) == (where == "within")


def _small(sizes: Mapping[int, Sequence[CellEstimate]]) -> list[CellEstimate]:
    return [one for size, cells in sizes.items() if size <= SMALL for one in cells]


def _points(sizes: Mapping[int, Sequence[CellEstimate]], alike: Spreads) -> Points:
    ordered = sorted(sizes)
    times = [float(np.median([one.time.value for one in sizes[size]])) for size in ordered]
    common, own = errors(sizes)
    lows, highs = (
        [
            float(np.median([one.quantiles_s.get(end, one.time.value) for one in sizes[size]]))
            for size in ordered
        ]
        for end in ("p5", "p95")
    )
    return Points(
        tuple(ordered),
        tuple(times),
        tuple(common),
        tuple(own),
        lows=tuple(min(low, time) for low, time in zip(lows, times, strict=True)),
        highs=tuple(max(high, time) for high, time in zip(highs, times, strict=True)),
        spreads=tuple(
            float(np.median([(alike if size <= SMALL else Spreads()).of_launch(one) for one in sizes[size]]))
            for size in ordered
        ),
    )


def _eager(parameters: Sequence[LogGP], where: str) -> tuple[int, list[str]]:
    """Return up to which size a send does not wait, and what must be known of that."""
    there = [one for one in parameters if _lies(one.place, where)]
    said = [one.eager_limit_said[1] for one in there if one.eager_limit_said is not None]
    seen = [one.eager_limit[0] for one in there if one.eager_limit is not None]
    notes = [f"{where}: {note}" for one in there[:1] for note in one.notes]
    # What the library says counts its own headers, too; what was seen is what a program sends.
    if seen:
        return min(seen), notes
    if said:
        return min(said), notes
    return 1 << 62, [
        *notes,
        f"{where}: no message was seen to wait for its receiver: all are taken for eager",
    ]


def of_rested_empty(times: Mapping[str, Mapping[int, float]]) -> float:
    """Return what an empty message and its answer take behind a rest [s].

    Caches are cold and CPUs asleep by then: it is more than a round trip, by ten times where that takes 12 µs.
    """
    turned, rested = times[ROUND_TRIP], times.get(SINGLE, {})
    smallest = min(turned)
    return max(2 * turned[smallest], rested.get(smallest, 0.0))

"""From a measured run to the network of a replay: measured round trips come out as they were measured.  Pure.

With T(s) half a round trip of s bytes, o_s, o_r what the calls take alone, g the gap between messages of a train,
L the latency, w the time on the wire:

* a message that does not wait for its receiver: T(s) = o_s(s) + w(s) + L + o_r(s);
* one that does (rendezvous): T(s) = o_s + 3 L + w(s) + o_r: sender and receiver agree first.

Of the smallest message L is what is left. Of larger ones w is the gap, and the receiver's CPU takes what is left;
where the gap is more than what is left, both CPUs and the wire overlapped in the round trip, and w is what is left.
Where both are the same but for what they are off by, w is between them: the smaller one would be too small each time.

A message may have arrived before the call that sends it returns: both calls together then take more than half a round
trip. What is too much is the sender's time `after` the message has left. So is what is left of a call that goes on
while its message leaves, be it that it waits or that its CPU does the interface's work. A ping-pong does not feel it;
who computes behind the call does, and two ranks that send to each other do: of them E(s) is measured, and

* a message that does not wait: E(s) = o_s(s) + max(w(s) + L, after(s) + busy(s)) + o_r(s);
* one that does: E(s) = T(s) - L - o_r + after(s), and several at once wait at the same time.

`busy` is what interrupts take of a receiver that does something else when a message comes: it is no part of what
sending takes, which a stream of messages one way tells. Trains say what it is at most.

No message takes the wire for less than its size at the rate of the long run, which trains tell; where single ones do,
the link lets bursts through, and that has parameters of its own (`sustained`).

A small message that is sent synchronously is answered. Half a round trip of such messages takes P(s), a call of one
alone C(s): the message is through at its receiver P - T later than another, and its sender hears of it C - T + o_r
after it has come.

When within its call a message leaves no round trip tells: L may be more by all of o_s, and o_s less. It changes nothing
but what another latency does, so that question has the whole range, or is refused where the range is too wide.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from wulf.base.errors import UsageError
from wulf.base.records import ORDER_PREFIX, CellEstimate, LogGP, Operation
from wulf.stats.prediction import setup_costs
from wulf.stats.prediction.draws import WIDTH, Draw, Likely, at_end
from wulf.stats.prediction.errors import errors
from wulf.stats.prediction.network import (
    Link,
    Network,
    Piece,
    Pieces,
    at,
    from_size,
    meeting_ns,
    scaled,
    through,
)
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
#: What the CPU takes the time of, where messages are small.
_BY_CPU = (ROUND_TRIP, BOTH_WAYS, SEND, ISEND, RECEIVE, SHORT, LONG)
#: A network is not known without these.
NEEDED = (ROUND_TRIP, SEND, RECEIVE)
#: A call that takes more than this part of the gap waits for the wire; up to this size nobody's buffers are full [B].
HINDERED, _SHORT = 0.5, 1024
#: A message is in frames: Ethernet, IP and TCP (with timestamps) take so much of a link beside it [B]. Those of a long
#: message are in the rate of long trains.
_FRAME_BYTES = 14 + 20 + 32
#: Of two ranks that send large messages to each other one waits for so many of the other's at most.
_MOST_WAITS = 2
#: A latency that may be more than so many times as much is not known.
_KNOWN = 2.0
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
        first = _of_rested_empty(times)
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
    return [one for size, cells in sizes.items() if size <= _SHORT for one in cells]


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
            float(np.median([(alike if size <= _SHORT else Spreads()).of_launch(one) for one in sizes[size]]))
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


def link(way: Way, draw: Draw | None = None, *, one_launch: bool = False) -> Link:
    """Return the link of a replay: what was measured, or with a draw what it may have been, or one launch finds."""
    chance = draw or Likely()
    launch = chance.of(f"{way.origin} launch") if one_launch else 0.0
    drawn = _drawn(way, chance, launch)
    # Of a span alone: drawn at either end, alike of all networks of a sample, as it is of what CPUs do (ADR 67).
    carried = way.carried(drawn, way.is_shaped, at_end(chance.of("held bursts"), 0.0))
    shaped = carried if carried is not None and carried.is_shaped else None
    whole = _whole(drawn) if shaped is not None else drawn[ROUND_TRIP]
    long_run = carried.per_byte_ns if carried is not None else 0.0
    gaps, off = _gaps(drawn), _gaps_off(way)
    # What was drawn is off by what was measured, and as much again.
    off = off if draw is None else scaled(off, math.sqrt(2))
    send, receive = _pieces_of(_unhindered(drawn[SEND], gaps)), _pieces_of(drawn[RECEIVE])
    sizes = sorted(whole)
    (o_s, wire, o_r), latency = _of_smallest(sizes[0], whole[sizes[0]] * 1e9, send, receive, gaps)
    eager = [size for size in sizes if size <= way.eager_bytes] or sizes[:1]
    ends = [
        _ends(
            whole[size] * 1e9 - latency,
            (o_s, at(send, size)),
            o_r,
            (at(gaps, size), at(off, size)) if gaps else (math.inf, 0.0),
            0.0 if shaped is not None else long_run * size,
        )
        for size in eager[1:]
    ]
    parts = [(o_s, wire, o_r), *ends]
    sent, wires, received = (through(eager, values) for values in zip(*parts, strict=True))
    small = Link(
        latency,
        way.eager_bytes,
        sent,
        received,
        wires,
        not_told=_not_told(way, latency, o_s) if draw is None else {},
        latency_span_ns=o_s,
    )
    number = chance.of(f"{way.origin} {way.where} small both ways")
    small = _with_both(_with_answers(small, drawn), eager, drawn, (gaps, long_run), number)
    made = _with_large(way, small, drawn, whole, (chance, long_run if shaped is not None else 0.0))
    return made if shaped is None else _shaped(made, small.wire, shaped, sizes)


def network(
    between: Way,
    within: Way | None,
    draw: Draw | None = None,
    *,
    compute: float = 1.0,
    one_launch: bool = False,
) -> Network:
    """Return the network of a replay: what was measured, or with a draw what it may have been, or one launch finds."""
    chance = draw or Likely()
    made = link(between, draw, one_launch=one_launch)
    drawn = _drawn(between, chance, chance.of(f"{between.origin} launch") if one_launch else 0.0)
    return Network(
        made,
        link(within, draw, one_launch=one_launch) if within is not None else None,
        compute=compute,
        making_ns=setup_costs.making_ns(drawn, made, chance.of("making")),
        connecting_ns=setup_costs.connecting_ns(
            between.first_messages,
            2 * drawn[ROUND_TRIP][min(drawn[ROUND_TRIP])],
            chance,
            one_launch=one_launch,
        ),
    )


def _with_answers(small: Link, drawn: Mapping[str, Mapping[int, float]]) -> Link:
    """Return the link with what answers to its smallest message take, if that was measured."""
    pingpong, call = drawn.get(ANSWERED, {}), drawn.get(ANSWERED_CALL, {})
    sizes = sorted(pingpong.keys() & call.keys() & drawn[ROUND_TRIP].keys())
    if not sizes:
        return small
    size = sizes[0]
    once = drawn[ROUND_TRIP][size]
    heard = (call[size] - once) * 1e9 + at(small.receive, size)
    return replace(
        small,
        answering_ns=max(pingpong[size] - once, 0.0) * 1e9,
        answered_ns=max(heard - small.latency_ns, 0.0),
    )


def _of_rested_empty(times: Mapping[str, Mapping[int, float]]) -> float:
    """Return what an empty message and its answer take behind a rest [s].

    Caches are cold and CPUs asleep by then: it is more than a round trip, by ten times where that takes 12 µs.
    """
    turned, rested = times[ROUND_TRIP], times.get(SINGLE, {})
    smallest = min(turned)
    return max(2 * turned[smallest], rested.get(smallest, 0.0))


def _whole(drawn: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
    """Return half round trips of a link that lets bursts through: none of them waits for what others have taken."""
    turned = drawn[ROUND_TRIP]
    empty, first = turned[min(turned)], _of_rested_empty(drawn)
    rested = {size: max(time - first, 0.0) + empty for size, time in drawn.get(SINGLE, {}).items()}
    if not rested:
        return dict(turned)
    between = _pieces_of(rested)
    return {
        size: min(time, at(between, size) * 1e-9) if size <= max(rested) else time
        for size, time in turned.items()
    }


def _with_large(
    way: Way,
    small: Link,
    drawn: Mapping[str, Mapping[int, float]],
    whole: Mapping[int, float],
    of_both: tuple[Draw, float],
) -> Link:
    """Return the link with messages that wait for their receivers, if there are any.

    Parameters
    ----------
    of_both
        What is drawn, and for how long a byte takes a link that lets bursts through in the long run, else 0 [ns].
    """
    large = [size for size in sorted(whole) if size > way.eager_bytes]
    if not large:
        return small
    begin, latency = way.eager_bytes + 1, small.latency_ns
    o_s, o_r = at(small.send, 0), at(small.receive, 0)
    posts = _posts(drawn.get(ISEND, {}), begin) or (Piece(0, o_s, 0.0),)
    late = [whole[size] * 1e9 - 3 * latency - at(posts, size) - o_r for size in large]
    alone = {size: max(whole[size], of_both[1] * 1e-9 * size) for size in large}
    # Who waits hears of it after its own message has come: that is no part of what it waits longer.
    late_after = [wait + latency + o_r if wait > 0 else 0.0 for wait in _late_afters(way, of_both[0], alone)]
    return replace(
        small,
        send=_joined(small.send, begin, from_size(posts, begin)),
        receive=_joined(small.receive, begin, (Piece(begin, o_r, 0.0),)),
        wire=_joined(small.wire, begin, _late(begin, large, late)),
        after=_joined(small.after, begin, _late(begin, large, late_after)),
        busy=_joined(small.busy, begin, (Piece(begin, 0.0, 0.0),)) if small.busy else (),
    )


def _shaped(found: Link, burst: Pieces, carried: Sustained, sizes: Sequence[int]) -> Link:
    """Return a link that lets bursts through: a message and its frame take it for their bytes in the long run."""
    wires = [max(at(burst, size), carried.per_byte_ns * (size + _FRAME_BYTES)) for size in sizes]
    return replace(found, wire=through(sizes, wires), burst=burst, depth_ns=carried.depth_ns)


def _not_told(way: Way, latency: float, o_s: float) -> dict[str, str]:
    """Return which parameters are not told, and why."""
    found = {}
    kinds = (ROUND_TRIP, SEND, RECEIVE)
    off = (part for kind in kinds for part in (way.points[kind].common[0], way.points[kind].own[0]))
    error = WIDTH * 1e9 * math.hypot(*off)
    low, high = max(latency - error, 0.0), latency + error + o_s
    if high > _KNOWN * max(low, 1e-9) and high > _KNOWN * latency:
        found["latency"] = (
            f"{way.origin} does not tell the latency: it is anywhere from {low / 1e3:.1f} to {high / 1e3:.1f} µs, as "
            "the calls take most of a message's time; ask for a time (latency=50us)"
        )
    times = {kind: dict(zip(of.sizes, of.times, strict=True)) for kind, of in way.points.items()}
    carried = way.carried(times, way.is_shaped)
    if carried is not None and not carried.is_steady:
        found["bandwidth"] = (
            f"{way.origin} does not tell the bandwidth of the long run: the rate of its longest trains still falls; "
            "its longest trains still fit into what is buffered there"
        )
    return found


def _drawn(way: Way, chance: Draw, launch: float) -> dict[str, dict[int, float]]:
    """Return the times of each operation by size [s], as they may have been."""
    return {
        kind: dict(
            zip(
                points.sizes,
                points.drawn(chance, f"{way.origin} {way.where} {kind}", launch),
                strict=True,
            )
        )
        for kind, points in way.points.items()
    }


def _with_both(
    small: Link,
    sizes: Sequence[int],
    drawn: Mapping[str, Mapping[int, float]],
    rates: tuple[Pieces, float],
    number: float,
) -> Link:
    """Return the link with what the calls and interrupts of ranks take that send and receive at the same time.

    What two ranks that send to each other take longer, and CPUs do not explain, messages are on their way: at either
    end, as how often those of a program meet is not known.

    Parameters
    ----------
    sizes
        Of messages that do not wait for their receivers [B].
    rates
        Gaps between messages of trains, and for how long a byte takes the link in the long run [ns].
    number
        A standard normal number: whether messages meet.
    """
    gaps, long_run = rates
    calls = _pieces_of(drawn[SEND])
    after = through(sizes, [max(at(calls, size) - at(small.send, size), 0.0) for size in sizes])
    small = replace(small, after=after)
    if BOTH_WAYS not in drawn:
        return small
    both = _pieces_of(drawn[BOTH_WAYS])
    lacking = [_lacking(small, size, at(both, size), long_run) for size in sizes]
    # Of a train nobody takes more than its gap.
    most = [max(at(gaps, size) - at(small.receive, size), 0.0) if gaps else math.inf for size in sizes]
    small = replace(small, busy=through(sizes, [min(*pair) for pair in zip(lacking, most, strict=True)]))
    first = sizes[0]
    rest = max(at(both, first) - meeting_ns(small, first), 0.0)
    return replace(small, latency_ns=small.latency_ns + at_end(number, 0.0) * rest)


def _lacking(small: Link, size: int, both: float, long_run: float) -> float:
    """Return how much more CPU explains what two ranks take that send to each other [ns]."""
    o_s, o_r = at(small.send, size), at(small.receive, size)
    # Where the wire is what takes the time, two messages that meet tell nothing of the CPU.
    if max(at(small.wire, size), long_run * size) > o_s + o_r or both <= meeting_ns(small, size):
        return 0.0
    return both - o_s - at(small.after, size) - o_r


def _late_afters(way: Way, chance: Draw, alone: Mapping[int, float]) -> list[float]:
    """Return by how much more two ranks take that send large messages to each other than one alone [ns].

    An answer that lets a message go may have to wait behind a message the other way: then they go one after the
    other. How often that happens to a program depends on how far its ranks are apart, which is another matter in each,
    and on each network: so the number's name has the run. What takes longer than two more messages was lost or held up.
    """
    if BOTH_WAYS not in way.points:
        return [0.0 for _ in alone]
    points = way.points[BOTH_WAYS]
    often = chance.of(f"{way.origin} {way.where} both ways")
    both = dict(zip(points.sizes, points.among(often), strict=True))
    waits = {size: max(both.get(size, time) - time, 0.0) for size, time in alone.items()}
    return [min(waits[size], _MOST_WAITS * time) * 1e9 for size, time in alone.items()]


def _pieces_of(times: Mapping[int, float]) -> Pieces:
    sizes = sorted(times)
    return through(sizes, [times[size] * 1e9 for size in sizes])


def _posts(times: Mapping[int, float], begin: int) -> Pieces:
    """Return what it takes to begin a message that waits for its receiver [ns]; nothing where it was not measured."""
    large = {size: time for size, time in times.items() if size >= begin}
    return _pieces_of(large) if large else ()


def _unhindered(times: Mapping[int, float], gaps: Pieces) -> dict[int, float]:
    """Return what sending takes of the CPU [s]: not the time in which it waits for the wire, which is the wire's.

    Where a call takes much of the gap between messages, its buffers are full. From there on it is taken to grow with
    the size as before.
    """
    hindered = [size for size, time in times.items() if gaps and time * 1e9 > HINDERED * at(gaps, size)]
    begin = min((size for size in hindered if size > _SHORT), default=None)
    free = sorted(size for size in times if begin is None or size < begin)
    if begin is None or len(free) < 2:
        return dict(times)
    first, last = free[0], free[-1]
    rise = max(times[last] - times[first], 0.0) / (last - first)
    return {
        size: time if size <= last else min(time, times[last] + rise * (size - last))
        for size, time in times.items()
    }


def _gaps(drawn: Mapping[str, Mapping[int, float]]) -> Pieces:
    """Return the gap between messages of a train [ns]; nothing where it was not measured."""
    if SHORT not in drawn or LONG not in drawn:
        return ()
    sizes = sorted(drawn[SHORT].keys() & drawn[LONG].keys())
    if len(sizes) < 2:
        return ()
    return through(sizes, [(16 * drawn[LONG][size] - drawn[SHORT][size]) / 15 * 1e9 for size in sizes])


def _gaps_off(way: Way) -> Pieces:
    """Return the standard deviation of what the gap and what is left of a round trip differ by from noise [ns]."""
    kinds = [way.points[kind] for kind in (SHORT, LONG, ROUND_TRIP) if kind in way.points]
    if len(kinds) < 3:
        return ()
    short, long, turned = (
        {size: math.hypot(*off) for size, *off in zip(of.sizes, of.common, of.own, strict=True)}
        for of in kinds
    )
    sizes = sorted(short.keys() & long.keys() & turned.keys())
    off = [math.hypot(short[size] / 15, long[size] * 16 / 15, turned[size]) * 1e9 for size in sizes]
    return through(sizes, off) if sizes else (Piece(0, 0.0, 0.0),)


def smaller(one: float, other: float, off: float) -> float:
    """Return the smaller of two figures, and what is between them where they differ by no more than they are `off`.

    The square of their difference is too large by `off` squared on average, and the smaller one is too small for it.
    """
    if not off or math.isinf(one):
        return min(one, other)
    return (one + other - math.sqrt(max((one - other) ** 2 - off**2, 0.0))) / 2


def _of_smallest(
    size: int, total: float, send: Pieces, receive: Pieces, gaps: Pieces
) -> tuple[tuple[float, float, float], float]:
    """Divide a message's time: the sender's CPU, the wire, the receiver's CPU, and the latency [ns]."""
    o_r = min(at(receive, size), total)
    o_s = min(at(send, size), total - o_r)
    gap = at(gaps, size) if gaps else 0.0
    wire = min(gap, total - o_s - o_r) if gap > max(o_s, o_r) else 0.0
    return (o_s, wire, o_r), max(total - o_s - o_r - wire, 0.0)


def _ends(
    left: float, send: tuple[float, float], receive: float, gap: tuple[float, float], carried: float
) -> tuple[float, float, float]:
    """Divide what is left of a round trip without its latency: the sender's CPU, the wire, the receiver's CPU [ns].

    The wire takes what the link takes in the long run (`carried`): the CPU's work that is meanwhile is behind it. The
    gap has what it is off by from what is left.
    """
    longest = max(left - receive - send[0], 0.0)
    least = min(carried, longest)
    o_s = min(max(send), max(left - receive - least, send[0]))
    rest = max(left - o_s - receive, 0.0)
    wire = min(max(smaller(gap[0], rest, gap[1]), least), rest + receive)
    return o_s, wire, receive + rest - wire


def _late(begin: int, sizes: Sequence[int], values: Sequence[float]) -> Pieces:
    """Return what goes through the points, and on below them to where it begins."""
    run = sizes[1] - sizes[0] if len(sizes) > 1 else sizes[0]
    rise = values[1] - values[0] if len(sizes) > 1 else values[0]
    first = max(values[0] - rise / run * (sizes[0] - begin), 0.0)
    with_begin = [(begin, first)] if begin < sizes[0] else []
    points = [*with_begin, *zip(sizes, values, strict=True)]
    return from_size(through([size for size, _ in points], [value for _, value in points]), begin)


def _joined(small: Pieces, begin: int, large: Pieces) -> Pieces:
    return (*(piece for piece in small if piece.from_bytes < begin), *large)

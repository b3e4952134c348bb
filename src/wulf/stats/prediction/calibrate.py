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

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from wulf.stats.prediction import setup_costs
from wulf.stats.prediction.draws import WIDTH, Draw, Likely, at_end
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
from wulf.stats.prediction.operation_times import (
    ANSWERED,
    ANSWERED_CALL,
    BOTH_WAYS,
    ISEND,
    LONG,
    RECEIVE,
    ROUND_TRIP,
    SEND,
    SHORT,
    SINGLE,
    SMALL,
    Way,
    of_rested_empty,
)
from wulf.stats.prediction.sustained import Sustained

#: A call that takes more than this part of the gap waits for the wire.
HINDERED = 0.5
#: A message is in frames: Ethernet, IP and TCP (with timestamps) take so much of a link beside it [B]. Those of a long
#: message are in the rate of long trains.
_FRAME_BYTES = 14 + 20 + 32
#: Of two ranks that send large messages to each other one waits for so many of the other's at most.
_MOST_WAITS = 2
#: A latency that may be more than so many times as much is not known.
_KNOWN = 2.0


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
    number = chance.of(" ".join((way.origin, way.where, "small messages meet")))
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


def _whole(drawn: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
    """Return half round trips of a link that lets bursts through: none of them waits for what others have taken."""
    turned = drawn[ROUND_TRIP]
    empty, first = turned[min(turned)], of_rested_empty(drawn)
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
    often = chance.of(" ".join((way.origin, way.where, "large messages meet")))
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
    begin = min((size for size in hindered if size > SMALL), default=None)
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

"""Networks as the replay takes them: LogGP with pieces by size, within a node and between nodes.  Pure.

The text format, and what each number means, is documented in ``native/replay/network.hpp``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Piece:
    """From ``from_bytes`` on something takes ``base_ns + per_byte_ns × size`` [ns]."""

    from_bytes: int
    base_ns: float
    per_byte_ns: float


Pieces = tuple[Piece, ...]


@dataclass(frozen=True)
class Link:
    """What messages over one kind of way take."""

    #: On its way, without what both calls take [ns].
    latency_ns: float
    #: Messages up to that size do not wait for their receiver [B].
    eager_bytes: int
    #: The CPU's time at either end.
    send: Pieces
    receive: Pieces
    #: How long the network interface is taken.
    wire: Pieces
    #: The sender's CPU when the message has left, for which its receiver does not wait; empty for none.
    after: Pieces = ()
    #: How much more of the receiver's CPU a message takes that has come before its receiver waits for it, as interrupts
    #: took it from what that did; empty for none.
    busy: Pieces = ()
    #: Of a link that lets bursts through: how long it is taken by a message that finds it rested, while `wire` is of
    #: the long run; and how far ahead of that it may be [ns].
    burst: Pieces = ()
    depth_ns: float = 0.0
    #: What the switch's port to a receiver keeps while it is busy [B], and after which time a message that it had no
    #: room for comes again [ns]; event by event only.
    buffer_bytes: float = math.inf
    timeout_ns: float = 200e6
    #: A small message that is always answered (MPI_Ssend) is through so much later, and its sender hears of it so much
    #: later, without the latency of the answer; None: as an answer that is a message of its own [ns].
    answering_ns: float | None = None
    answered_ns: float | None = None
    #: By so much the latency may be more, and what the sender's CPU takes before a message leaves less [ns].
    latency_span_ns: float = 0.0
    #: Parameter (``latency``, ``bandwidth``) → why it is not known.
    not_told: Mapping[str, str] = field(default_factory=dict)

    @property
    def answers(self) -> tuple[float, float]:
        """How much later one that is answered is through, and its sender hears of it but for the latency [ns]."""
        sent, heard = at(self.send, 0), at(self.receive, 0)
        return (
            sent if self.answering_ns is None else self.answering_ns,
            sent + heard if self.answered_ns is None else self.answered_ns,
        )


@dataclass(frozen=True)
class Network:
    """What a network is to a program."""

    between: Link
    #: None where no two ranks share a node.
    within: Link | None
    #: Of adding up what came [ns/B].
    reduce_ns_per_byte: float = 0.0
    #: Times what the program computes between calls.
    compute: float = 1.0
    #: Of each rank when a communicator is made, beside its messages [ns].
    making_ns: float = 0.0
    #: For how long a rank's first message to another node waits for a connection [ns].
    connecting_ns: float = 0.0

    @property
    def surely_eager(self) -> int:
        """Up to which size no message waits for its receiver, wherever it goes [B]."""
        return min(link.eager_bytes for link in (self.between, self.within) if link is not None)


def through(sizes: Sequence[int], values_ns: Sequence[float]) -> Pieces:
    """Return pieces that go through points, which never fall; beyond the last point they go on as before it.

    Parameters
    ----------
    sizes
        Ascending [B].
    values_ns
        Of each size [ns].
    """
    values = list(itertools.accumulate((max(float(value), 0.0) for value in values_ns), max))
    if len(sizes) == 1:
        return (Piece(0, values[0], 0.0),)
    pieces = []
    for (size, value), (behind, then) in itertools.pairwise(zip(sizes, values, strict=True)):
        slope = (then - value) / (behind - size)
        pieces.append(Piece(size, value - slope * size, slope))
    # Below the first point what the first one takes.
    return tuple(pieces) if sizes[0] == 0 else (Piece(0, values[0], 0.0), *pieces)


def at(pieces: Pieces, size: int) -> float:
    """Return what a message of a size takes [ns]; without pieces it takes no time."""
    last = Piece(0, 0.0, 0.0)
    for piece in pieces:
        if piece.from_bytes > size:
            break
        last = piece
    return last.base_ns + last.per_byte_ns * size


def meeting_ns(link: Link, size: int) -> float:
    """Return what two ranks take, as the replay has it, that send each other a message that does not wait [ns]."""
    there = at(link.wire, size) + link.latency_ns
    here = at(link.after, size) + at(link.busy, size)
    return at(link.send, size) + max(there, here) + at(link.receive, size)


def from_size(pieces: Pieces, size: int) -> Pieces:
    """Return pieces that begin at a size."""
    first = [piece for piece in pieces if piece.from_bytes <= size][-1]
    later = [piece for piece in pieces if piece.from_bytes > size]
    return (replace(first, from_bytes=size), *later)


def faster(pieces: Pieces, factor: float) -> Pieces:
    """Return pieces of which all that grows with the size takes 1/`factor`; what an empty message takes stays."""
    empty = at(pieces, 0)
    return tuple(
        Piece(one.from_bytes, empty + (one.base_ns - empty) / factor, one.per_byte_ns / factor)
        for one in pieces
    )


def scaled(pieces: Pieces, factor: float) -> Pieces:
    """Return pieces that take `factor` times as long."""
    return tuple(Piece(one.from_bytes, one.base_ns * factor, one.per_byte_ns * factor) for one in pieces)


def free(link: Link) -> Link:
    """Return a link of which no message takes any time."""
    nothing = (Piece(0, 0.0, 0.0),)
    return replace(
        link,
        latency_ns=0.0,
        send=nothing,
        receive=nothing,
        wire=nothing,
        after=(),
        busy=(),
        burst=(),
        depth_ns=0.0,
        answering_ns=0.0,
        answered_ns=0.0,
    )


def only_wire(link: Link) -> Link:
    """Return a link of which a message takes its size at the bandwidth, and nothing else.

    Where the bytes of frames count (`burst`), no frame of its own either: small messages that wait share one.
    """
    nothing = (Piece(0, 0.0, 0.0),)
    return replace(
        link,
        latency_ns=0.0,
        send=nothing,
        receive=nothing,
        wire=(Piece(0, 0.0, link.wire[-1].per_byte_ns),) if link.burst else link.wire,
        after=(),
        busy=(),
        answering_ns=0.0,
        answered_ns=0.0,
    )


def unbuffered(network: Network) -> Network:
    """Return a network whose ports keep whatever comes."""
    return replace(network, between=replace(network.between, buffer_bytes=math.inf))


def bandwidth(link: Link) -> float | None:
    """Return the bandwidth of large messages [B/s]; None where more bytes take no more time."""
    each = link.wire[-1].per_byte_ns
    return 1e9 / each if each > 0 else None


def text(networks: Iterable[Network]) -> str:
    """Return the file that the replay reads; a network is called by its place, from 0."""
    return "".join(f"{line}\n" for place, one in enumerate(networks) for line in _lines(place, one))


def _lines(place: int, network: Network) -> Iterator[str]:
    yield f"network {place}"
    for where, link in (("between", network.between), ("within", network.within)):
        if link is None:
            continue
        yield f"latency {where} {link.latency_ns:.6g}"
        yield f"eager {where} {link.eager_bytes}"
        if link.depth_ns > 0:
            yield f"depth {where} {link.depth_ns:.9g}"
        if math.isfinite(link.buffer_bytes):
            yield f"buffer {where} {link.buffer_bytes:.9g}"
            yield f"timeout {where} {link.timeout_ns:.9g}"
        for name, value in zip(("answering", "answered"), link.answers, strict=True):
            yield f"{name} {where} {value:.9g}"
        for what, pieces in (
            ("send", link.send),
            ("receive", link.receive),
            ("after", link.after),
            ("busy", link.busy),
            ("wire", link.wire),
            ("burst", link.burst if link.depth_ns > 0 else ()),
        ):
            for piece in pieces:
                yield f"{what} {where} {piece.from_bytes} {piece.base_ns:.9g} {piece.per_byte_ns:.9g}"
    yield f"reduce {network.reduce_ns_per_byte:.9g}"
    yield f"compute {network.compute:.9g}"
    yield f"making {network.making_ns:.9g}"
    yield f"connecting {network.connecting_ns:.9g}"

"""What the replay prints, as records.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import msgspec

from wulf.base.errors import TraceError
from wulf.base.records import CurveLine, PathShares, Timeline, TimelineRow
from wulf.base.text import count
from wulf.stats.prediction.network import Network

_NS = 1e-9


class Plan(msgspec.Struct, frozen=True, tag="plan", tag_field="type"):
    """What the trace consists of."""

    ranks: int
    operations: int
    buffered: int = 0
    largest_buffered_bytes: int = 0
    #: Messages that nobody receives, and ranks of one of them.
    lost: int = 0
    lost_from: int = 0
    lost_to: int = 0


class Unfinished(msgspec.Struct, frozen=True, tag="unfinished", tag_field="type"):
    """A message that nobody sends or receives."""

    what: str


class Result(msgspec.Struct, frozen=True, tag="result", tag_field="type"):
    """The program on one network."""

    network: str
    time_ns: float
    compute_ns: float = 0.0
    reduce_ns: float = 0.0
    between_hops: float = 0.0
    between_send_ns: float = 0.0
    between_receive_ns: float = 0.0
    between_wire_ns: float = 0.0
    within_hops: float = 0.0
    within_send_ns: float = 0.0
    within_receive_ns: float = 0.0
    within_wire_ns: float = 0.0

    def path(self, network: Network) -> PathShares:
        """Return what the longest path goes through on its network."""
        latency = self.between_hops * network.between.latency_ns
        if network.within is not None:
            latency += self.within_hops * network.within.latency_ns
        return PathShares(
            compute_s=(self.compute_ns + self.reduce_ns) * _NS,
            latency_s=latency * _NS,
            bandwidth_s=(self.between_wire_ns + self.within_wire_ns) * _NS,
            overhead_s=(
                self.between_send_ns + self.between_receive_ns + self.within_send_ns + self.within_receive_ns
            )
            * _NS,
            hops=self.between_hops,
        )


class Line(msgspec.Struct, frozen=True, tag="line", tag_field="type"):
    """A straight piece of the curve."""

    latency_ns: float
    time_ns: float
    hops: float


class Hops(msgspec.Struct, frozen=True, tag="hops", tag_field="type"):
    """Latencies of the longest path of one call, rank and size."""

    call: str
    from_rank: int
    bytes: int
    latencies: int
    where: Literal["between", "within"] = "between"


class RankTimes(msgspec.Struct, frozen=True, tag="timeline", tag_field="type"):
    """A row of a timeline: ranks, and in each cell of time the shares of what they do."""

    network: str
    part: Literal["whole", "middle"]
    first_rank: int
    last_rank: int
    from_ns: float
    for_ns: float
    computing: list[float]
    messages: list[float]
    waiting: list[float]


class Program(msgspec.Struct, frozen=True, tag="program", tag_field="type"):
    """One of the programs that are replayed event by event."""

    #: Receives from anybody; those of them that take whoever comes first.
    wild: int
    chosen: int


class Contended(msgspec.Struct, frozen=True, tag="contended", tag_field="type"):
    """All programs on one network, event by event."""

    network: str
    #: Of each program.
    times_ns: list[float]
    #: Messages and pieces that took an interface or an uplink, and ranks that chose in step with others.
    events: int
    #: How often another message came first than as it was traced.
    moved: int
    #: Taking whoever comes first would have made all wait for each other.
    as_recorded: bool
    #: Messages that found a full buffer, and came again after a timeout.
    timeouts: int = 0


@dataclass(frozen=True)
class Replayed:
    """All that one replay has printed; results in the order of the networks."""

    plan: Plan
    results: list[Result]
    curve: list[CurveLine]
    hops: list[Hops]
    programs: list[Program]
    #: Of the first networks.
    contended: list[Contended]
    rank_times: list[RankTimes] = field(default_factory=list)


def read(printed: bytes, networks: int, origin: str) -> Replayed:
    """Return what a replay has printed: results of so many networks, unless it was event by event.

    Raises
    ------
    TraceError
        It is not what a replay prints.
    """
    decoder = msgspec.json.Decoder(Plan | Unfinished | Result | Line | Hops | Program | Contended | RankTimes)
    try:
        records = decoder.decode_lines(printed)
    except msgspec.DecodeError as error:
        raise TraceError(f"{origin}: what the replay prints is not understood: {error}") from None
    plans = [one for one in records if isinstance(one, Plan)]
    results = [one for one in records if isinstance(one, Result)]
    contended = [one for one in records if isinstance(one, Contended)]
    if not plans or [one.network for one in results or contended] != [
        str(place) for place in range(networks)
    ]:
        raise TraceError(
            f"{origin}: the replay has printed {len(results or contended)} of {count(networks, 'result')}"
        )
    curve = [
        CurveLine(latency_s=one.latency_ns * _NS, time_s=one.time_ns * _NS, hops=one.hops)
        for one in records
        if isinstance(one, Line)
    ]
    return Replayed(
        plans[0],
        results,
        curve,
        [one for one in records if isinstance(one, Hops)],
        [one for one in records if isinstance(one, Program)],
        contended,
        [one for one in records if isinstance(one, RankTimes)],
    )


def joined(pieces: Sequence[Replayed]) -> Replayed:
    """Return the replay of all networks from replays of some of them, in order; what is of the first is there."""
    return replace(pieces[0], results=[one for piece in pieces for one in piece.results])


def timelines(found: Replayed, place: int, name: str) -> list[Timeline]:
    """Return the timelines of the network at a place, by the name that it is asked for."""
    parts: dict[Literal["whole", "middle"], list[RankTimes]] = {}
    for one in found.rank_times:
        if one.network == str(place):
            parts.setdefault(one.part, []).append(one)
    return [
        Timeline(
            network=name,
            part=part,
            from_s=rows[0].from_ns * _NS,
            for_s=rows[0].for_ns * _NS,
            rows=[
                TimelineRow(
                    first_rank=row.first_rank,
                    last_rank=row.last_rank,
                    computing=row.computing,
                    messages=row.messages,
                    waiting=row.waiting,
                )
                for row in rows
            ],
        )
        for part, rows in parts.items()
    ]


def at(curve: Sequence[CurveLine], latency_s: float) -> float:
    """Return the time at a latency [s]."""
    line = [one for one in curve if one.latency_s <= latency_s][-1]
    return line.time_s + line.hops * (latency_s - line.latency_s)


def tolerated(curve: Sequence[CurveLine], latency_s: float, slower: float) -> float | None:
    """Return up to which latency the time grows by no more than a part; None where it never does [s]."""
    wanted = (1 + slower) * at(curve, latency_s)
    reached = [one for one in curve if one.time_s <= wanted]
    last = reached[-1]
    return last.latency_s + (wanted - last.time_s) / last.hops if last.hops > 0 else None

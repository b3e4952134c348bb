"""What single flows between two nodes met."""

from __future__ import annotations

from typing import Literal

from wulf.base.records.base import Pair, Record

Protocol = Literal["udp", "tcp"]


class FlowSeen(Record, frozen=True, kw_only=True):
    """What one flow met in one kind of messages."""

    #: The first one asks, or sends the stream.
    nodes: Pair
    protocol: Protocol
    size_bytes: int
    port: int
    to_port: int
    #: Switches on the way there and back, by the address with which they answer; null for one that does not. Empty
    #: where nothing is known, or no switch that routes is between them.
    out: list[str | None]
    back: list[str | None]
    #: Requests, and those that did not arrive, and those whose answer did not.
    sent: int
    lost_out: int
    lost_back: int
    #: Time of a request until its answer [s], the middle of all visits, without what all flows have in common then; and
    #: its standard error. Null where none was answered.
    time_s: float | None
    error_s: float | None

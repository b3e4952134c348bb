"""What comes out."""

from __future__ import annotations

from wulf.base.records import Record


class OfMtu(Record, frozen=True):
    """Goodput with frames of one size."""

    mtu_bytes: int
    bytes_per_s: float
    #: Of the line rate.
    share: float


class Goodput(Record, frozen=True, kw_only=True):
    """What headers leave of a link's line rate."""

    schema_version: int
    line_bytes_per_s: float
    by_mtu: list[OfMtu]

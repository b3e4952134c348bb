"""What runs of older schema versions lacked: one step for each version, for all kinds of files."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

from wulf.errors import UsageError
from wulf.records.base import SCHEMA_VERSION
from wulf.units import parse_size

Kind = Literal["manifest", "record", "tuning", "trial"]
Raw = dict[str, Any]

#: Quantity of a version 1 operation → what version 2 says of it.
_QUANTITIES: dict[str, Raw] = {
    "half_round_trip_time": {
        "ranks": 2,
        "pattern": "ping-pong",
        "quantity": "half round trip",
        "moves_bytes": True,
    },
    "message_time": {"ranks": 2, "pattern": "stream", "quantity": "time per message", "moves_bytes": True},
    "overhead_time": {"ranks": 1, "pattern": "none", "quantity": "probe overhead", "moves_bytes": False},
}
_SIZED = re.compile(r"(?P<op>\S.*?)\s+(?P<size>\d+\s?(?:[KMG]i)?B)(?:\s+(?P<statistic>p99))?")


def _to_2(kind: Kind, raw: Raw) -> Raw:
    """Let operations say what they mean, and metrics what of the probe they are."""
    if kind in ("manifest", "tuning"):
        raw["operations"] = [_operation(operation) for operation in raw.get("operations", [])]
    if kind == "tuning":
        for metric in raw.get("plan", {}).get("metrics", []):
            metric["figure"] = _figure(metric.get("name", ""))
    return raw


def _operation(raw: Raw) -> Raw:
    known = _QUANTITIES.get(str(raw.get("quantity")), {})
    return {"axis": "message size", "axis_unit": "B", "better": "lower", "usual": 0, **raw, **known}


def _figure(name: str) -> Raw | None:
    found = _SIZED.fullmatch(name)
    if found is None:
        return None
    try:
        size = parse_size(found["size"])
    except UsageError:
        return None
    return {"op": found["op"], "size_bytes": size, "statistic": found["statistic"] or "median"}


#: Schema version → what turns a decoded JSON object of that version into one of the next.
MIGRATIONS: dict[int, Callable[[Kind, Raw], Raw]] = {1: _to_2}


def migrate(kind: Kind, raw: Raw, version: int) -> Raw:
    """Return a decoded JSON object of an older schema version as one of this version."""
    for step in range(version, SCHEMA_VERSION):
        raw = MIGRATIONS[step](kind, raw)
    if "schema_version" in raw:
        raw["schema_version"] = SCHEMA_VERSION
    return raw

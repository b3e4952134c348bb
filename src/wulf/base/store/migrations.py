"""What runs of older schema versions lacked: one step for each version, for all kinds of files."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from wulf.base.errors import UsageError
from wulf.base.records import SCHEMA_VERSION, command_operation
from wulf.base.units import parse_size

Kind = Literal[
    "manifest",
    "record",
    "tuning",
    "trial",
    "hpl",
    "hpl launch",
    "study",
    "study trial",
    "scaling",
    "scaling launch",
    "rollout",
    "rollout step",
]
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
    """Let operations say what they mean, plans who takes part in each, and metrics what of the probe they are."""
    if kind in ("manifest", "tuning"):
        raw["operations"] = [_operation(operation) for operation in raw["operations"]]
    if kind == "manifest":
        plan = raw["plan"]
        parts = [_part(op, _possible(plan["sizes_bytes"], raw, op), plan["pairs"]) for op in plan["ops"]]
        plan["workload"] = _workload(parts, plan)
    if kind == "tuning":
        cycle = raw.pop("cycle")
        parts = [_part(probe["op"], probe["sizes_bytes"], cycle["pairs"]) for probe in cycle["probes"]]
        for command in cycle["commands"]:
            parts.append({**_part(command["metric"], [0], [raw["nodes"][:1]]), "group": True})
            raw["operations"].append(_command(command))
        raw["workload"] = _workload(parts, cycle)
        for metric in raw.get("plan", {}).get("metrics", []):
            metric["figure"] = _figure(metric.get("name", ""))
    return raw


def _part(op: str, sizes_bytes: list[int], places: list[list[str]]) -> Raw:
    return {"op": op, "sizes_bytes": sizes_bytes, "places": places}


def _workload(parts: list[Raw], raw: Raw) -> Raw:
    return {"parts": parts, "sweeps": raw["sweeps"], "visit_us": raw["visit_us"]}


def _possible(sizes_bytes: list[int], manifest: Raw, op: str) -> list[int]:
    """Return the sizes of a version 1 plan that an operation could do: all operations had the same ones."""
    able = {one["name"]: one for one in manifest["operations"]}[op]
    least, most = able["min_size_bytes"], able["max_size_bytes"]
    return [size for size in sizes_bytes if least <= size <= most] or [least]


def _command(raw: Raw) -> Raw:
    """Return the operation that a command of a version 1 cycle is."""
    operation = command_operation(raw["command"], name=raw["metric"], match=raw.get("match", ""))
    return dict(msgspec.to_builtins(operation))


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
    """Return a decoded JSON object of an older schema version as one of this version.

    Raises
    ------
    DecodeError
        It is damaged.
    """
    for step in range(version, SCHEMA_VERSION):
        try:
            raw = MIGRATIONS[step](kind, raw)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            # Nothing has looked at its types yet.
            raise msgspec.DecodeError(f"it is not what version {step} wrote: {error!r}") from None
    if "schema_version" in raw:
        raw["schema_version"] = SCHEMA_VERSION
    return raw

"""Tables of a run as rows."""

from __future__ import annotations

from typing import Any

import msgspec

from wulf.records import Analysis


def flat(record: msgspec.Struct) -> dict[str, Any]:
    """Return the fields of a record and of those in it, side by side."""
    row: dict[str, Any] = {}
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if isinstance(value, msgspec.Struct):
            row.update(flat(value))
        elif name == "pair":
            row["node_a"], row["node_b"] = value
        else:
            row[name] = value
    return row


def cell_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """Return one row per cell estimate."""
    rows = []
    for cell in analysis.cells:
        row = flat(cell.cell) | {
            "time_s": cell.time.value,
            "time_low_s": cell.time.low,
            "time_high_s": cell.time.high,
            "bandwidth_Bps": cell.bandwidth.value if cell.bandwidth else None,
            "launches": len(cell.launches),
            "iterations": cell.iterations,
            "lost": cell.lost,
            "corrupt": cell.corrupt,
            "reached": cell.reached,
        }
        rows.append(row | {f"{name}_s": value for name, value in cell.quantiles_s.items()})
    return rows


def median_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """Return one row per cell and launch."""
    return [
        flat(cell.cell)
        | {
            "launch": point.launch,
            "index": point.index,
            "median_s": point.median_s,
            "contaminated": point.contaminated,
        }
        for cell in analysis.cells
        for point in cell.launches
    ]

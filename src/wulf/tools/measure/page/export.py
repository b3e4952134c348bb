"""A run as data: CSV in long form for a spreadsheet or R, JSON for everything else."""

from __future__ import annotations

import csv as csv_module
import io
from collections.abc import Sequence

import msgspec

from wulf.base.records import Analysis, CellEstimate, Estimate, Launch, Manifest, NodeRecord
from wulf.base.store.columns import ends
from wulf.page import escaping
from wulf.tools.measure.page.boxes import QUANTILES

HEADER = (
    "run",
    "op",
    "setting",
    "source",
    "destination",
    "size_bytes",
    "time_s",
    "time_low_s",
    "time_high_s",
    "bandwidth_bytes_per_s",
    "bandwidth_low_bytes_per_s",
    "bandwidth_high_bytes_per_s",
    "confidence",
    "method",
    "launches",
    "iterations",
    *(f"{quantile}_s" for quantile in QUANTILES),
    "lost",
    "corrupt",
    "modes_between",
    "target",
    "reached",
    "notes",
)


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """What `json` writes."""

    #: What was measured, with what, how far.
    manifest: Manifest
    #: Facts of the nodes.
    nodes: Sequence[NodeRecord]
    #: All launches in time order, without their samples.
    launches: Sequence[Launch]
    #: All that is derived.
    analysis: Analysis


def json(
    manifest: Manifest, nodes: Sequence[NodeRecord], launches: Sequence[Launch], analysis: Analysis
) -> bytes:
    """Return manifest, nodes, launches and analysis as one indented JSON object; unknown is null."""
    whole = Export(manifest=manifest, nodes=nodes, launches=launches, analysis=analysis)
    return msgspec.json.format(msgspec.json.encode(whole), indent=2)


def csv(analysis: Analysis) -> str:
    """Return one line per operation, pair and size with a header; unknown is empty."""
    out = io.StringIO()
    writer = csv_module.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    for cell in analysis.cells:
        writer.writerow(escaping.csv([analysis.run_id, *_row(cell)]))
    return out.getvalue()


def _row(cell: CellEstimate) -> list[str | int | float | None]:
    key = cell.cell
    return [
        key.op,
        key.setting,
        *ends(key.place),
        key.size_bytes,
        *_bounds(cell.time),
        *_bounds(cell.bandwidth),
        cell.time.confidence,
        cell.time.method,
        cell.time.n,
        cell.iterations,
        *(cell.quantiles_s.get(quantile) for quantile in QUANTILES),
        cell.lost,
        cell.corrupt,
        cell.modes_between,
        cell.target,
        "yes" if cell.reached else "no",
        "; ".join(cell.notes),
    ]


def _bounds(estimate: Estimate | None) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if estimate is None else (estimate.value, estimate.low, estimate.high)

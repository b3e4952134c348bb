"""Tables of a run as rows."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from wulf.base.errors import StoreError
from wulf.base.records import Analysis, Launch, LaunchResult, Place, Trial, Tuning

Rows = list[dict[str, Any]]


def table(name: str, makers: Mapping[str, Callable[[], Rows]]) -> dict[str, list[Any]]:
    """Return one of several tables as columns of equal length.

    Raises
    ------
    StoreError
        There is no such table.
    """
    if name not in makers:
        raise StoreError(f"no table {name!r}; there are: {', '.join(makers)}")
    rows = makers[name]()
    return {column: [row[column] for row in rows] for column in rows[0]} if rows else {}


def ends(place: Place) -> tuple[str, str]:
    """Return who measures, and with whom: one node of a pair, the names of all others of a group."""
    return place[0], ",".join(place[1:])


def flat(record: msgspec.Struct) -> dict[str, Any]:
    """Return the fields of a record and of those in it, side by side."""
    row: dict[str, Any] = {}
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if isinstance(value, msgspec.Struct):
            row.update(flat(value))
        elif name == "place":
            row["node_a"], row["node_b"] = ends(value)
        else:
            row[name] = value
    return row


def of_records(records: Sequence[msgspec.Struct]) -> dict[str, list[Any]]:
    """Return records of one kind as columns of equal length; ``time`` with a ``value`` in it is ``time_value``.

    Where a record has nothing (None), so have its columns; lists and dictionaries stay what they are.
    """
    rows = [_deep(record) for record in records]
    names = dict.fromkeys(name for row in rows for name in row)
    # What is None in one record has fields in another.
    parents = {name for name in names if any(other.startswith(f"{name}_") for other in names)}
    kept = [name for name in names if name not in parents or any(row.get(name) is not None for row in rows)]
    return {name: [row.get(name) for row in rows] for name in kept}


def _deep(record: msgspec.Struct) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if isinstance(value, msgspec.Struct):
            row.update({f"{name}_{inner}": found for inner, found in _deep(value).items()})
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


def launch_rows(results: Sequence[LaunchResult]) -> Rows:
    """Return one row per launch; what is a list in the record is text or a number here."""
    return [
        {
            "id": launch.id,
            "index": launch.index,
            "op": launch.op,
            "node_a": ends(launch.place)[0],
            "node_b": ends(launch.place)[1],
            "pairs": " ".join(":".join(pair) for pair in launch.pairs),
            "beside": " ".join(":".join(one.pair) for one in launch.beside),
            "beside_bytes_per_s": sum(one.bytes_per_s for one in launch.beside) if launch.beside else None,
            "setting": launch.setting,
            "purpose": launch.purpose,
            "sizes": len(launch.sizes_bytes),
            "smallest_bytes": min(launch.sizes_bytes, default=None),
            "largest_bytes": max(launch.sizes_bytes, default=None),
            "seed": launch.seed,
            "started_at": launch.started_at,
            "duration_s": launch.duration_s,
            "status": launch.status,
            "error": launch.error,
            "unreachable": " ".join(launch.unreachable),
            "contamination": "; ".join(launch.contamination),
            "command": shlex.join(launch.argv),
            "probe_version": launch.probe.version if launch.probe else None,
            "mpi": launch.probe.mpi if launch.probe else None,
            "yields": launch.probe.yields if launch.probe else None,
            "reference_s": result.reference_s,
            **_loads(launch),
        }
        for result in results
        for launch in [result.launch]
    ]


def _loads(launch: Launch) -> dict[str, float | None]:
    """Return what else happened on the two nodes, the worse of both."""
    seen = {
        "load1": [context.load1 for context in launch.context],
        "steal_ratio": [context.steal_ratio for context in launch.context],
    }
    return {name: max((v for v in values if v is not None), default=None) for name, values in seen.items()}


def trial_rows(trials: Sequence[Trial]) -> Rows:
    """Return one row per trial and metric; a trial that failed has one without a metric."""
    rows = []
    for trial in trials:
        alike = {
            "index": trial.index,
            "phase": trial.phase,
            "round": trial.round,
            "block": trial.block,
            "setting": _setting(trial.setting),
            "started_at": trial.started_at,
            "duration_s": trial.duration_s,
            "status": trial.status,
            "error": trial.error,
            "reference_s": trial.reference,
            "contamination": "; ".join(trial.contamination),
        }
        values: list[tuple[str | None, float | None]] = [*trial.values.items()]
        rows += [alike | {"metric": metric, "value": value} for metric, value in values or [(None, None)]]
    return rows


def effect_rows(result: Tuning | None) -> Rows:
    """Return one row per comparison of a search; none before there is a conclusion."""
    return [
        {
            "phase": effect.phase,
            "round": effect.round,
            "knob": effect.knob,
            "value": effect.value,
            "base": _setting(effect.base),
            "tried": _setting(effect.tried),
            "ratio": effect.ratio.value,
            "ratio_low": effect.ratio.low,
            "ratio_high": effect.ratio.high,
            "p_value": effect.p_value,
            "p_adjusted": effect.p_adjusted,
            "verdict": effect.verdict,
            "blocks": effect.blocks,
            "trials": effect.trials,
            "failed": effect.failed,
            "harmed": "; ".join(effect.harmed),
            "note": effect.note,
        }
        for effect in (result.effects if result else [])
    ]


def _setting(values: Mapping[str, str]) -> str:
    return " ".join(f"{knob}={value}" for knob, value in values.items())

"""From a run of all pairs to what is slow: a node, a link, a direction, or what a group of nodes has in common."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from wulf import store
from wulf.diagnose.pairs import FEWEST_PARTNERS, MARGIN, additive, suspects
from wulf.errors import AnalysisError
from wulf.procedure.analysis import analyze
from wulf.records import CellEstimate, NodeRecord
from wulf.records.diagnosed import Diagnosis, Matrix

#: What is measured where nothing was: small messages show what a node costs, large ones what its link carries.
SIZES_BYTES = (64, 256 << 10)


def diagnose(run: store.Run) -> Diagnosis:
    """Say what is slow among the nodes of a run.

    Raises
    ------
    AnalysisError
        No operation was measured between enough pairs; says what to measure.
    """
    analysis = run.analysis() or analyze(run)
    pairs = {operation.name for operation in run.manifest.operations if operation.between_pairs}
    cells: dict[tuple[str, int], list[CellEstimate]] = defaultdict(list)
    for cell in analysis.cells:
        if cell.cell.op in pairs:
            cells[cell.cell.op, cell.cell.size_bytes].append(cell)
    matrices = [
        matrix
        for op in dict.fromkeys(op for op, _ in cells)
        for size in _ends([size for name, size in cells if name == op])
        if (matrix := _matrix(op, size, cells[op, size])) is not None
    ]
    if not matrices:
        raise AnalysisError(
            f"{run.path}: it takes {FEWEST_PARTNERS + 1} nodes that were each measured with {FEWEST_PARTNERS} others "
            "to tell which is slow: wulf measure --pairs all, or wulf diagnose without a run"
        )
    nodes = list(
        dict.fromkeys(node for group in cells.values() for cell in group for node in cell.cell.place)
    )
    return Diagnosis(
        run_id=run.manifest.id,
        nodes=nodes,
        matrices=matrices,
        margin=MARGIN,
        link_bits_per_s=_links(run.nodes),
    )


def _ends(sizes: Sequence[int]) -> list[int]:
    return list(dict.fromkeys((min(sizes), max(sizes))))


def _matrix(op: str, size: int, cells: Sequence[CellEstimate]) -> Matrix | None:
    """Return what the times at one size say; None where there are too few pairs."""
    times = {cell.cell.place: cell.time.value for cell in cells}
    names = sorted({node for place in times for node in place})
    partners = {name: {node for place in times if name in place for node in place} - {name} for name in names}
    if any(len(known) < FEWEST_PARTNERS for known in partners.values()):
        return None
    logs = _logs(times, names)
    fit = additive(np.where(np.isfinite(logs), logs, logs.T))
    measured = sum(len(known) for known in partners.values()) // 2
    return Matrix(
        op=op,
        size_bytes=size,
        typical_s=math.exp(fit.typical),
        scatter=fit.node_scatter,
        pairs=measured,
        missing=math.comb(len(names), 2) - measured,
        suspects=suspects(logs, names),
    )


def _logs(times: Mapping[tuple[str, ...], float], names: Sequence[str]) -> NDArray[np.float64]:
    places = {name: index for index, name in enumerate(names)}
    logs = np.full((len(names), len(names)), np.nan)
    for (first, second), time in times.items():
        logs[places[first], places[second]] = math.log(time)
    # A pair that was measured in one direction is the same in the other.
    for i, j in itertools.permutations(range(len(names)), 2):
        if not np.isfinite(logs[i, j]):
            logs[i, j] = logs[j, i]
    return logs


def _links(nodes: Sequence[NodeRecord]) -> dict[str, float]:
    return {
        record.node: float(speed)
        for record in nodes
        if isinstance(speed := record.facts.get("nic.speed_bits_per_s"), int | float) and speed > 0
    }

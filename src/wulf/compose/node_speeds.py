"""How fast nodes are beside each other, from runs that say it of each alone."""

from __future__ import annotations

import statistics
from typing import NamedTuple

from wulf.base.errors import AnalysisError, UsageError
from wulf.base.output_values import Unknown, cpu_list
from wulf.base.records import NodeRecord
from wulf.base.store import Run
from wulf.stats.estimate import sample_quantiles
from wulf.tools.hpcc.result import result

#: Of HPC Challenge: products of matrices on all processors of a node at the same time.
DGEMM = "StarDGEMM_Gflops"
#: Of the probe: fixed work, whose time is the longer the slower a node is.
WORK = "noise"


class Speeds(NamedTuple):
    """What a run says."""

    #: In words.
    what: str
    #: Node → speed, in any unit.
    speeds: dict[str, float]


def speeds_of(run: Run) -> Speeds:
    """Return how fast each node of a run is.

    Raises
    ------
    UsageError
        The run does not say it of at least two nodes.
    """
    for found in (_of_hpcc(run), _of_work(run)):
        if len(found.speeds) > 1:
            return found
    raise UsageError(
        f"{run.path} does not say how fast each of its nodes is alone: "
        "'wulf bench hpcc' or 'wulf measure --suite host' do"
    )


def _of_hpcc(run: Run) -> Speeds:
    try:
        by_node = result(run).by_node
    except AnalysisError:
        return Speeds("", {})
    alone = {
        node: figure.value.value
        for node, figures in by_node.items()
        for figure in figures
        if figure.name == DGEMM
    }
    return Speeds("products of matrices on each node alone (HPC Challenge)", alone)


def _of_work(run: Run) -> Speeds:
    fixed = {one.name for one in run.manifest.operations if (one.asked or one.name).partition(":")[0] == WORK}
    times: dict[str, list[float]] = {}
    for sample in run.samples:
        if sample.cell.op in fixed:
            times.setdefault(sample.cell.place[0], []).append(sample_quantiles(sample, [0.5])[0])
    cpus = {record.node: _cpus(record) for record in run.nodes}
    alone = {
        node: cpus[node] / statistics.median(values)
        for node, values in sorted(times.items())
        if cpus.get(node) and min(values) > 0
    }
    return Speeds("fixed work on a processor of each node, times how many it has", alone)


def _cpus(record: NodeRecord) -> int:
    """Return how many processors may be used there; 0 where the node does not say."""
    try:
        return len(cpu_list(str(record.facts.get("cpu.allowed"))))
    except Unknown:
        return 0

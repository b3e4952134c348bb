"""What of a study can be told before its nodes are asked, and what is left of it without the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from wulf.base.contracts import Say
from wulf.base.errors import BuildError, UsageError, WulfError
from wulf.base.native import build
from wulf.base.records import Operation
from wulf.base.text import nearest
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.fleet import preparation
from wulf.node.fleet.clusters import cluster
from wulf.node.probe import ladder
from wulf.node.programs import blas_libraries
from wulf.node.trials.bench import on_nodes
from wulf.page.words import listed
from wulf.tools.study import file
from wulf.tools.study.metrics import named_in
from wulf.tools.study.performing import nodes_of, pairs
from wulf.tools.study.record import StudyFactor, StudyLevel, StudyMetric


class Wanted(NamedTuple):
    """Which part of a study can be had: its factors and metrics, and why the others cannot."""

    factors: list[StudyFactor]
    metrics: list[StudyMetric]
    left_out: dict[str, str]


def here(
    written: file.Written, config: ClusterConfig | None, nodes: str | None, mpi: str | None, say: Say
) -> dict[str, str]:
    """Return which levels and metrics this machine already knows that it cannot have, and why.

    Parameters
    ----------
    config
        The cluster; None where none is known yet: then nothing is said of pairs.
    mpi
        Which library is used where no level names one.

    Raises
    ------
    ConfigError
        The file names what is nowhere; names the file, the line and the key.
    """
    found: dict[str, str] = {}
    for number, (said, factor) in enumerate(zip(written.document.value.factor, written.factors, strict=True)):
        order = [level.name for level in said.level]
        for level in factor.levels:
            path = f"factor[{number}]" + (f".level[{order.index(level.name)}]" if order else "")
            reason = _library(written, path, level.mpi) or _of_cluster(level, config, nodes)
            if reason:
                found[f"{factor.name}: {level.name}"] = reason
    libraries = [level.mpi for factor in written.factors for level in factor.levels]
    first = next((name for name in libraries if name), None) or mpi
    for number, metric in enumerate(written.metrics):
        if metric.kind == "operation":
            reason = _operation(written, f"metric[{number}]", metric, first, say)
            if reason:
                found[metric.name] = reason
    return found


def _library(written: file.Written, path: str, name: str) -> str:
    """Return why an MPI library cannot be had; refuse what is none."""
    try:
        if name:
            build.find_mpi(name)
    except BuildError as failure:
        if not build.may_be_mpi(name):
            written.document.fail(f"{path}.mpi", str(failure))
        return str(failure)
    return ""


def _of_cluster(level: StudyLevel, config: ClusterConfig | None, nodes: str | None) -> str:
    """Return why the cluster of a level cannot be had, or the pairs there."""
    try:
        there = cluster(level.cluster) if level.cluster else config
        if level.pairs and there is not None:
            pairs(level.pairs, there, nodes_of(there, None if level.cluster else nodes))
    except WulfError as failure:
        return " ".join(str(failure).split())
    return ""


def _operation(written: file.Written, path: str, metric: StudyMetric, mpi: str | None, say: Say) -> str:
    """Return why an operation cannot be had here; refuse one that there is not, and sizes that it cannot do."""
    try:
        operation = preparation.toolbox([metric.op], mpi, say).operations[0]
    except UsageError as failure:
        written.document.fail(f"{path}.op", str(failure))
    except BuildError as failure:
        return str(failure)
    unable = sorted(set(metric.sizes_bytes) - set(ladder.sizes_of(operation, metric.sizes_bytes)))
    if unable:
        many = ", ".join(map(str, unable[:5]))
        written.document.fail(f"{path}.sizes", f"{metric.op} takes {_sizes(operation)}, not {many} B")
    return ""


def _sizes(operation: Operation) -> str:
    low, high, step = operation.min_size_bytes, operation.max_size_bytes, operation.size_step_bytes
    if high == 0:
        return "no sizes"
    return f"sizes from {low} to {high} B" + (f", multiples of {step}" if step > 1 else "")


def at_the_run(factors: Sequence[StudyFactor], metrics: Sequence[StudyMetric]) -> list[str]:
    """Return, in words, what only the nodes can tell."""
    levels = [level for factor in factors for level in factor.levels]
    kinds = {metric.kind for metric in metrics}
    said = {
        "settings that the nodes allow": dict.fromkeys(
            name for level in levels for name in on_nodes(level.set)
        ),
        "BLAS libraries": dict.fromkeys(_blas(level.blas) for level in levels if level.blas),
        "interfaces": dict.fromkeys(level.interface for level in levels if level.interface),
        "builds": dict.fromkeys(level.build for level in levels if level.build),
        "commands": dict.fromkeys(metric.name for metric in metrics if metric.kind == "command"),
    }
    found = [f"{what}: {listed(list(names), 8)}" for what, names in said.items() if names]
    found += ["HPL, and CPUs for its grid"] if "hpl" in kinds else []
    return found + (["Slurm's sbatch and squeue"] if "jobs" in kinds else [])


def _blas(name: str) -> str:
    usual = blas_libraries.USUAL
    hint = "" if name in usual else nearest(name, usual).removeprefix("; ")
    return f"{name} ({hint})" if hint else name


def reduced(written: file.Written, left_out: Mapping[str, str]) -> Wanted:
    """Return what is left of a study without some levels and metrics, and says what that means.

    A factor of which one level is left is not varied: what that level makes different stays in every combination.

    Raises
    ------
    UsageError
        No metric is left, or nothing to compare.
    """
    why = dict(left_out)
    factors = list(filter(None, map(partial(_factor, why), written.factors)))
    gone = {factor.name for factor in written.factors} - {factor.name for factor in factors}
    for metric in written.metrics:
        lost = sorted(gone & named_in(metric))
        if lost and metric.name not in why:
            why[metric.name] = f"its command names {{{lost[0]}}}, a factor of which no level can be had"
    metrics = [metric for metric in written.metrics if metric.name not in why]
    reasons = "; ".join(f"{what}: {reason}" for what, reason in why.items())
    if not metrics:
        raise UsageError(f"none of its metrics can be had here: {reasons}")
    if written.factors and not any(len(factor.levels) > 1 for factor in factors):
        raise UsageError(f"nothing is left to compare, no factor has two levels here: {reasons}")
    return Wanted(factors, metrics, why)


def _factor(why: dict[str, str], factor: StudyFactor) -> StudyFactor | None:
    """Return a factor with the levels that can be had, and say what is lost with the others; None without any."""
    levels = [level for level in factor.levels if f"{factor.name}: {level.name}" not in why]
    key = f"factor {factor.name}"
    if not levels:
        why[key] = "none of its levels can be had"
        return None
    first = levels[0].name
    if len(levels) == 1 < len(factor.levels):
        why[key] = f"only {first!r} can be had: there is nothing to compare it with"
    elif levels[0] != factor.levels[0]:
        base = f"{factor.name}: {factor.levels[0].name}"
        why[base] += f" (it was the base; the others are compared with {first!r})"
    return msgspec.structs.replace(factor, levels=levels)

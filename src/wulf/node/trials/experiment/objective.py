"""What a tuning run is to improve, and what must not get worse: metrics, and the cycle that measures them.  Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Literal

import msgspec

from wulf.base import toml
from wulf.base.errors import ConfigError, UsageError
from wulf.base.records import (
    Metric,
    Operation,
    Pair,
    Part,
    Place,
    ProbeFigure,
    Statistic,
    Workload,
    command_operation,
)
from wulf.base.text import nearest
from wulf.base.units import format_bytes, parse_size

#: Pairs that a trial measures at most: each of them takes a launch.
MAX_PAIRS = 8
SWEEPS = 12
VISIT_US = 1000
#: Statistic that moves as the time of many messages does: a median stays where it is while fewer than half are slower.
USUAL: Statistic = "mean"
#: Statistic that shows the slowest of the iterations.
TAIL: Statistic = "p99"
#: Messages of this size show what the network carries, not how fast it answers [B].
LARGE_BYTES = 65536
#: Message of each sender where many send to one, and a request that nothing holds up [B].
INCAST_BYTES, SMALL_BYTES = (16384, 65536), 64
_APP = "app:"
#: Objectives that need no more words.
NAMES = ("latency", "bandwidth", "incast")


class Objective(msgspec.Struct, frozen=True, kw_only=True):
    """An objective: what is measured in every trial, and what of it counts how much."""

    #: As the user named it.
    name: str
    #: Which recommendations of the catalogue it goes with.
    profile: Literal["latency", "throughput", "hpc"]
    metrics: list[Metric]
    #: Operation of the probe → sizes [B].
    probes: dict[str, list[int]]
    commands: list[Operation]
    #: Operations of the probe in which all nodes take part at once.
    together: frozenset[str] = frozenset()

    @property
    def figures(self) -> list[ProbeFigure]:
        """What of the probe's output its metrics are."""
        return figures_of(self.metrics)

    def workload(self, nodes: Sequence[str], pairs: Sequence[Pair] | None = None) -> Workload:
        """Return what one trial measures on these nodes; between `pairs` where they are given."""
        places: list[Place] = list(pairs_for(nodes) if pairs is None else pairs)
        everybody: list[Place] = [tuple(nodes)]
        probes = [
            Part(op=op, sizes_bytes=sizes, places=everybody, group=True)
            if op in self.together
            else Part(op=op, sizes_bytes=sizes, places=places)
            for op, sizes in self.probes.items()
        ]
        first: list[Place] = [(nodes[0],)]
        commands = [Part(op=one.name, sizes_bytes=[0], places=first, group=True) for one in self.commands]
        return Workload(parts=[*probes, *commands], sweeps=SWEEPS, visit_us=VISIT_US)


def figures_of(metrics: Sequence[Metric]) -> list[ProbeFigure]:
    """Return what of the probe's output some metrics are; those of commands are not."""
    return [metric.figure for metric in metrics if metric.figure is not None]


def metric_name(figure: ProbeFigure) -> str:
    """Return the name of a metric of the probe, such as ``mpi_pingpong 64 B mean``; the median has no word."""
    tail = "" if figure.statistic == "median" else f" {figure.statistic}"
    return f"{figure.op} {format_bytes(figure.size_bytes)}{tail}"


def named(name: str, ping_pong: Callable[[], Operation], known: Callable[[str], Operation]) -> Objective:
    """Return the objective ``latency``, ``bandwidth``, ``incast`` or ``app: CMD``.

    Parameters
    ----------
    ping_pong
        Called for the operation to measure, when one is needed.
    known
        As of `from_toml`.

    Raises
    ------
    UsageError
        There is no such objective.
    """
    if name == "latency":
        weights = {1: 2.0, 64: 1.0, 1024: 1.0}
        return _probe_goal(name, "latency", ping_pong(), weights, guards=[65536, 262144], watched=[8192])
    if name == "bandwidth":
        weights = {65536: 1.0, 262144: 1.0, 1048576: 2.0}
        return _probe_goal(name, "throughput", ping_pong(), weights, guards=[64], watched=[1024, 8192])
    if name == "incast":
        return _incast(known("tcp_incast"), known("tcp_rr"))
    if name.startswith(_APP):
        command = name.removeprefix(_APP).strip()
        if not command:
            raise UsageError("--objective 'app: COMMAND': which command?")
        return application(command, "", "lower", "s")
    hint = nearest(name, NAMES)
    raise UsageError(f"--objective {name!r}: {', '.join(NAMES)}, 'app: COMMAND' or a .toml file{hint}")


def _incast(together: Operation, alone: Operation) -> Objective:
    """Return the objective of many to one: the mean, which has the stalls; small requests must not get slower."""
    metrics = [_probe_metric(together, size, weight=1.0) for size in INCAST_BYTES]
    guard = _probe_metric(alone, SMALL_BYTES, guard=True)
    return Objective(
        name="incast",
        profile="throughput",
        metrics=[*metrics, guard],
        probes={together.name: list(INCAST_BYTES), alone.name: [SMALL_BYTES]},
        commands=[],
        together=frozenset({together.name}),
    )


def application(command: str, match: str, better: Literal["lower", "higher"], unit: str) -> Objective:
    """Return the objective of a command: its run time [s], or the number that `match` finds in its output.

    Raises
    ------
    UsageError
        `match` is not a regular expression with one group.
    """
    _require_group(match, "--match")
    metric = "run time" if not match else "result"
    return Objective(
        name=f"{_APP} {command}",
        profile="hpc",
        metrics=[Metric(name=metric, pattern="application", unit=unit, better=better, weight=1.0)],
        probes={},
        commands=[command_operation(command, name=metric, match=match)],
    )


class _Entry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One ``[[metric]]`` of an objective's file."""

    op: str = ""
    size: str = ""
    statistic: Statistic | None = None
    command: str = ""
    match: str = ""
    name: str = ""
    unit: str = "s"
    better: Literal["lower", "higher"] = "lower"
    weight: float = 1.0
    guard: bool = False


class _File(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    profile: Literal["latency", "throughput", "hpc"] = "hpc"
    metric: list[_Entry]


def from_toml(text: bytes, origin: str, known: Callable[[str], Operation]) -> Objective:
    """Return the objective that a file describes.

    Parameters
    ----------
    known
        Returns the operation of a name; raises UsageError when there is none.

    Raises
    ------
    ConfigError
        Names the file and what is wrong in it.
    """
    read = toml.read(text, origin, _File)
    document = read.value
    sizes: dict[str, list[int]] = {}
    commands: list[Operation] = []
    metrics: list[Metric] = []
    for number, entry in enumerate(document.metric):
        try:
            metrics.append(_metric(entry, sizes, commands, known))
        except UsageError as error:
            read.fail(f"metric[{number}]", str(error))
    if not any(metric.weight > 0 for metric in metrics):
        raise ConfigError(f"{origin}: no [[metric]] has a weight: there is nothing to improve")
    if len({metric.name for metric in metrics}) < len(metrics):
        raise ConfigError(f"{origin}: two metrics have the same name: give them a 'name'")
    return Objective(
        name=origin,
        profile=document.profile,
        metrics=metrics,
        probes={op: sorted(set(wanted)) for op, wanted in sizes.items()},
        commands=commands,
        together=frozenset(op for op in sizes if known(op).pattern == "incast"),
    )


def _metric(
    entry: _Entry,
    sizes: dict[str, list[int]],
    commands: list[Operation],
    known: Callable[[str], Operation],
) -> Metric:
    """Return the metric, and add what measures it."""
    if bool(entry.op) == bool(entry.command):
        raise UsageError("give 'op' with a 'size', or 'command'")
    if not 0 <= entry.weight < 1e6:
        raise UsageError(f"weight = {entry.weight}: zero or more")
    if entry.op:
        size = parse_size(entry.size or "1B")
        operation = known(entry.op)
        sizes.setdefault(entry.op, []).append(size)
        return _probe_metric(
            operation,
            size,
            statistic=entry.statistic or USUAL,
            better=entry.better,
            weight=entry.weight,
            guard=entry.guard,
        )
    if entry.statistic is not None:
        raise UsageError("'statistic' is for an 'op'; a command gives one value")
    _require_group(entry.match, "match")
    name = entry.name or ("result" if entry.match else "run time")
    commands.append(command_operation(entry.command, name=name, match=entry.match))
    return Metric(
        name=name,
        pattern="application",
        unit=entry.unit if entry.match else "s",
        better=entry.better,
        weight=entry.weight,
        guard=entry.guard,
    )


def _probe_metric(
    operation: Operation,
    size_bytes: int,
    *,
    pattern: str = "",
    statistic: Statistic = USUAL,
    better: Literal["lower", "higher"] | None = None,
    weight: float = 0.0,
    guard: bool = False,
) -> Metric:
    figure = ProbeFigure(op=operation.name, size_bytes=size_bytes, statistic=statistic)
    return Metric(
        name=metric_name(figure),
        pattern=pattern or operation.pattern,
        unit="s",
        better=better or operation.better,
        weight=weight,
        guard=guard,
        figure=figure,
    )


def _require_group(match: str, where: str) -> None:
    try:
        groups = re.compile(match).groups
    except re.error as error:
        raise UsageError(f"{where} {match!r} is not a regular expression: {error}") from None
    if match and groups != 1:
        raise UsageError(f"{where} {match!r}: one group (in parentheses) around the number")


def _probe_goal(
    name: str,
    profile: Literal["latency", "throughput"],
    operation: Operation,
    weights: dict[int, float],
    *,
    guards: list[int],
    watched: list[int],
) -> Objective:
    sizes = sorted({*weights, *guards, *watched})
    metrics = [_probe_metric(operation, size, weight=weight) for size, weight in weights.items()]
    metrics += [
        _probe_metric(operation, size, pattern="large messages" if size >= LARGE_BYTES else "", guard=True)
        for size in guards
    ]
    metrics.append(_probe_metric(operation, sizes[0], pattern="tail", statistic=TAIL, guard=True))
    metrics += [_probe_metric(operation, size) for size in watched]
    return Objective(
        name=name,
        profile=profile,
        metrics=metrics,
        probes={operation.name: sizes},
        commands=[],
    )


def pairs_for(
    nodes: Sequence[str], changed: Sequence[Collection[str]] = (), most: int = MAX_PAIRS
) -> list[Pair]:
    """Return pairs that touch every node once, as far as `most` reaches; spread over the nodes.

    Parameters
    ----------
    changed
        Nodes that a setting changes, for each setting that changes some only. Pairs of nodes that different
        settings change come first, then one within each set of changed nodes: what is changed at one end, or at
        both, shows there. The other nodes make up the rest.
    """
    groups: dict[tuple[bool, ...], list[str]] = {}
    for node in nodes:
        groups.setdefault(tuple(node in some for some in changed), []).append(node)
    left = [list(group) for group in groups.values()]
    telling: list[Pair] = []
    while len(left := [group for group in left if group]) > 1:
        first, second = sorted(left, key=len, reverse=True)[:2]
        telling.append((first.pop(0), second.pop(0)))
    telling += [
        (group[0], group[1])
        for key, group in groups.items()
        if any(key) and len(groups) > 1 and len(group) > 1
    ]
    rest = left[0] if left else []
    if len(rest) % 2:
        rest.append(next((node for node in nodes if node != rest[-1]), rest[-1]))
    plain = [pair for pair in zip(rest[::2], rest[1::2], strict=True) if pair[0] != pair[1]]
    chosen = _some(list(dict.fromkeys(telling)), most)
    return [*chosen, *_some([pair for pair in plain if pair not in chosen], most - len(chosen))]


def _some(pairs: list[Pair], most: int) -> list[Pair]:
    """Return no more than so many of the pairs, evenly."""
    step = -(-len(pairs) // most) if pairs and most > 0 else 1
    return pairs[::step] if most > 0 else []

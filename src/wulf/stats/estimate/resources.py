"""What commands take of the node that they are started on.  Pure."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from wulf.base.records import Estimate, Launch, LaunchResult, Place, Resources, Usage
from wulf.stats.core import intervals
from wulf.stats.estimate.cells import as_estimate

#: A kernel counts the time of processes in steps of this at the coarsest [s].
STEP_S = 0.01
#: A run is so much of the time in which its energy was counted, at least.
_RUNNING = 0.8


def resources(results: Sequence[LaunchResult], confidence: float) -> Iterator[Resources]:
    """Yield the medians over the good launches of each command at a place."""
    found: dict[tuple[str, Place], list[tuple[Usage, float]]] = defaultdict(list)
    energies: dict[tuple[str, Place], list[float | None]] = defaultdict(list)
    lacks: dict[tuple[str, Place], dict[str, str]] = defaultdict(dict)
    for result in results:
        launch = result.launch
        if launch.status == "ok" and launch.usage is not None:
            run_s = result.samples[0].batch_medians_ns[0] * 1e-9
            found[launch.op, launch.place].append((launch.usage, run_s))
            without = energy_lacks(launch, run_s)
            lacks[launch.op, launch.place] |= without
            energies[launch.op, launch.place].append(None if without else cpu_energy(launch))
    for (op, place), used in found.items():
        cpu = [_sum(usage) for usage, _ in used]
        busy = [
            None if time_s is None else time_s / run_s for time_s, (_, run_s) in zip(cpu, used, strict=True)
        ]
        yield Resources(
            op=op,
            place=place,
            cpu=_median(cpu, "s", confidence, STEP_S),
            kernel=_median([usage.system_s for usage, _ in used], "s", confidence, STEP_S),
            busy=_median(busy, "ratio", confidence, STEP_S / statistics.median(run_s for _, run_s in used)),
            peak=_median([usage.peak_bytes for usage, _ in used], "B", confidence),
            cpu_energy=(energy := _median(energies[op, place], "J", confidence)),
            energy_lacks=lacks[op, place] if energy is None else {},
        )


def energy_lacks(launch: Launch, run_s: float) -> dict[str, str]:
    """Return why nodes of a launch do not say what energy it took; empty where all do."""
    nodes = {node.node: node for node in launch.context}
    found = {}
    for name in dict.fromkeys(launch.place):
        node = nodes.get(name)
        if node is None or node.interval_s is None:
            found[name] = "it was not looked at"
        elif node.cpu_joules is None:
            found[name] = node.unknown.get("cpu_joules", "it does not say why")
        elif run_s < _RUNNING * node.interval_s:
            found[name] = (
                f"a launch is less than {_RUNNING:.0%} of the time between the looks at its counters"
            )
    return found


def cpu_energy(launch: Launch) -> float:
    """Return what the CPUs of all nodes of a launch took [J]: of one that lacks nothing."""
    names = set(launch.place)
    return sum(node.cpu_joules or 0.0 for node in launch.context if node.node in names)


def _sum(usage: Usage) -> float | None:
    return None if usage.user_s is None or usage.system_s is None else usage.user_s + usage.system_s


def _median(
    values: Sequence[float | None], unit: str, confidence: float, step: float = 0.0
) -> Estimate | None:
    """Return the median with its interval, no narrower than the step in which the values come."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    found = intervals.median(known, confidence)
    low, high = (
        (None, None)
        if found.low is None or found.high is None
        else (max(min(found.low, found.value - step / 2), 0.0), max(found.high, found.value + step / 2))
    )
    return as_estimate(replace(found, low=low, high=high), unit)

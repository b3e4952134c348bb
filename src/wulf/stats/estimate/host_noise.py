"""What each node does by itself: detours of fixed work on every CPU, late wake-ups, the clock, and what these cost.

Pure. Fixed work that takes longer than usual was interrupted (Petrini, Kerbyson, Pakin, 2003, "The Case of the Missing
Supercomputer Performance"; the fixed work quantum of Sottile and Minnich, 2004). All launches count, also those
under other load, as that is what is looked for.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wulf.base.records import (
    CellEstimate,
    CpuNoise,
    DetourRate,
    Estimate,
    HostClock,
    HostNoise,
    Launch,
    LaunchResult,
    Operation,
    Sample,
    WakeDelay,
)
from wulf.stats.core import intervals, rates
from wulf.stats.core.quantiles import weighted_quantile
from wulf.stats.estimate.cells import as_estimate
from wulf.stats.estimate.figure_advice import TICK_RATES_HZ

#: Operations of the probe: fixed work on a CPU, sleeps of a length [µs].
ON_CPU, WAKE = "noise_on", "wake"
#: Lengths between which detours are counted [s]; a shorter one is none.
LENGTHS_S = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
#: Bins of the histogram of lengths for a decade.
BINS = 5
#: Detours come with the tick where they come as often, up to this share, …
TICK_TOLERANCE = 0.1
#: … and so evenly that chance does it less often than this.
SIGNIFICANCE = 0.01


class _Look(NamedTuple):
    """What one launch saw of a CPU."""

    #: Mean ÷ shortest time − 1.
    taken: float
    #: Share of the time.
    detoured: float
    longest_s: float
    watched_s: float
    #: Detours from each of `LENGTHS_S` on, to below the next.
    counts: NDArray[np.float64]
    #: Bin of the histogram → detours.
    bins: dict[int, float]


def host_noise(
    results: Sequence[LaunchResult],
    cells: Sequence[CellEstimate],
    operations: Sequence[Operation],
    confidence: float,
) -> list[HostNoise]:
    """Return what a run says of the nodes on which it had fixed work done, or woke from sleeps.

    Parameters
    ----------
    results
        Launches that measure, with their samples.
    cells
        Estimates of these, adjusted by the reference where that is of use.
    operations
        What each operation does.
    confidence
        Of the intervals.

    Returns
    -------
    list of HostNoise
        In the order of their names, without advice.
    """
    good = [result for result in results if result.launch.status == "ok"]
    networked = {operation.name for operation in operations if operation.transport in ("mpi", "net")}
    wakes = _wakes(cells, _numbered(operations, WAKE))
    by_node: dict[str, dict[int, list[_Look]]] = defaultdict(dict)
    for (node, cpu), found in sorted(_looks(good, _numbered(operations, ON_CPU)).items()):
        by_node[node][cpu] = found
    return [
        HostNoise(
            node=node,
            cpus=[_cpu(cpu, found, confidence) for cpu, found in by_node[node].items()],
            wakes=wakes[node],
            clock=_clock([result.launch for result in good if result.launch.place[0] == node], confidence),
            steal=_load(node, "steal_ratio", good, confidence),
            foreign=_load(node, "foreign_cpu_ratio", good, confidence),
            quiet_width=_quiet_width(node, cells, networked, confidence),
        )
        for node in sorted(by_node.keys() | wakes.keys())
    ]


def _numbered(operations: Iterable[Operation], name: str) -> dict[str, int]:
    """Return what in a run is this operation of the probe, each with the number that it was asked for."""
    found = {}
    for operation in operations:
        base, _, number = (operation.asked or operation.name).partition(":")
        if base == name and operation.parameter is not None:
            found[operation.name] = int(number) if number else operation.parameter.usual
    return found


def _looks(results: Iterable[LaunchResult], cpus: Mapping[str, int]) -> dict[tuple[str, int], list[_Look]]:
    """Return what every launch saw of the CPU that it was on, by node and CPU."""
    looks: dict[tuple[str, int], list[_Look]] = defaultdict(list)
    for sample in (sample for result in results for sample in result.samples):
        if sample.cell.op in cpus and sample.histogram:
            looks[sample.cell.place[0], cpus[sample.cell.op]].append(_look(sample))
    return looks


def _look(sample: Sample) -> _Look:
    values, counts = np.array(sample.histogram, dtype=np.float64).T
    values = values * 1e-9 / sample.divisor
    watched = float(values @ counts)
    lengths = values - weighted_quantile(values, counts, 0.5)
    is_detour = lengths >= LENGTHS_S[0]
    lengths, often = lengths[is_detour], counts[is_detour]
    classes = np.searchsorted(LENGTHS_S, lengths, side="right") - 1
    bins: dict[int, float] = defaultdict(float)
    for length, count in zip(lengths.tolist(), often.tolist(), strict=True):
        bins[math.floor(BINS * math.log10(length / LENGTHS_S[0]))] += count
    return _Look(
        # Both from the histogram, so that both are rounded alike.
        taken=watched / float(counts.sum()) / float(values[0]) - 1,
        detoured=float(lengths @ often) / watched,
        longest_s=float(lengths[-1]) if lengths.size else 0.0,
        watched_s=watched,
        counts=np.bincount(classes, weights=often, minlength=len(LENGTHS_S)).astype(np.float64),
        bins=bins,
    )


def _cpu(cpu: int, looks: Sequence[_Look], confidence: float) -> CpuNoise:
    watched = [look.watched_s for look in looks]
    by_class = np.array([look.counts for look in looks])
    bins: dict[int, float] = defaultdict(float)
    for look in looks:
        for index, count in look.bins.items():
            bins[index] += count
    return CpuNoise(
        cpu=cpu,
        taken=as_estimate(intervals.median([look.taken for look in looks], confidence), "ratio"),
        detoured=as_estimate(intervals.median([look.detoured for look in looks], confidence), "ratio"),
        longest_s=max(look.longest_s for look in looks),
        watched_s=sum(watched),
        detours=[
            DetourRate(
                from_s=low, to_s=high, per_s=as_estimate(rates.rate(found, watched, confidence), "1/s")
            )
            for low, high, found in zip(LENGTHS_S, (*LENGTHS_S[1:], None), by_class.T, strict=True)
        ],
        histogram=[
            (LENGTHS_S[0] * 10 ** (index / BINS), count / sum(watched))
            for index, count in sorted(bins.items())
        ],
        tick_hz=_tick(by_class.sum(axis=1), watched),
    )


def _tick(counts: NDArray[np.float64], watched: Sequence[float]) -> int | None:
    """Return the rate of the tick at which detours come [Hz]; None where they come at no such rate, or at random."""
    chance = rates.chance_of_evenness(counts, watched)
    if chance is None or chance >= SIGNIFICANCE:
        return None
    per_s = float(counts.sum()) / sum(watched)
    return next((hz for hz in TICK_RATES_HZ if abs(per_s / hz - 1) <= TICK_TOLERANCE), None)


def _wakes(cells: Iterable[CellEstimate], gaps_us: Mapping[str, int]) -> dict[str, list[WakeDelay]]:
    """Return the delays after sleeps by node, the shortest sleep first."""
    wakes: dict[str, list[WakeDelay]] = defaultdict(list)
    for cell in sorted(cells, key=lambda cell: gaps_us.get(cell.cell.op, 0)):
        if cell.cell.op in gaps_us:
            wakes[cell.cell.place[0]].append(WakeDelay(gap_s=gaps_us[cell.cell.op] * 1e-6, late=cell.time))
    return wakes


def _clock(launches: Iterable[Launch], confidence: float) -> HostClock | None:
    clocks = [launch.probe.clock for launch in launches if launch.probe is not None]
    if not clocks:
        return None
    return HostClock(
        source=clocks[-1].source,
        cost=as_estimate(intervals.median([clock.cost_ns * 1e-9 for clock in clocks], confidence), "s"),
        resolution_s=max(clock.resolution_ns for clock in clocks) * 1e-9,
    )


def _load(node: str, field: str, results: Iterable[LaunchResult], confidence: float) -> Estimate | None:
    """Return a share of the CPU time that the looks around the launches on a node tell; None where none does."""
    shares = [
        share
        for result in results
        for context in result.launch.context
        if context.node == node and (share := getattr(context, field)) is not None
    ]
    return as_estimate(intervals.median(shares, confidence), "ratio") if shares else None


def _quiet_width(
    node: str, cells: Iterable[CellEstimate], networked: set[str], confidence: float
) -> Estimate | None:
    """Return how wide intervals would be where no launch is slow by its host, as a share of what they are."""
    widths = [
        1 / math.sqrt(cell.adjusted.gain)
        for cell in cells
        if cell.adjusted is not None and cell.cell.op in networked and node in cell.cell.place
    ]
    if not widths:
        return None
    return Estimate(
        value=statistics.median(widths),
        low=None,
        high=None,
        confidence=confidence,
        unit="ratio",
        n=len(widths),
        method="1/√gain of the adjustment by the reference, median over cells",
    )

"""What the reader of a run must be told, each with what to do about it.  Pure."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from wulf.records import Advice, CellEstimate, LaunchResult, NodeRecord, Pair, Plan, Sample
from wulf.stats.trend import trend
from wulf.text import printable
from wulf.units import format_bytes, format_time

#: Tick rates of Linux kernels (CONFIG_HZ) [Hz].
TICK_RATES_HZ = (100, 250, 300, 1000)
#: A latency this close to a multiple of the tick (or of its half) is suspicious …
TICK_TOLERANCE = 0.04
#: … when a smaller message than this takes so long; transfers of large ones may take as long honestly.
TICK_MAX_SIZE_BYTES = 4096
#: The probe's clock may cost this much of what it measures; the probe itself aims at 0.05.
CLOCK_SHARE = 0.08
DRIFT_P = 0.01
#: Noise alone leaves some series unsettled; more than this share of them is worth a word.
WARMUP_SHARE = 0.1

Stream = tuple[str, Pair]


def advise(
    cells: Sequence[CellEstimate], results: Sequence[LaunchResult], nodes: Sequence[NodeRecord], plan: Plan
) -> list[Advice]:
    """Everything about a run that a reader must know, the worst first.

    Parameters
    ----------
    cells
        Estimates of the run.
    results
        Its launches, failed ones and scouts included.
    nodes
        Its nodes, those that did not answer included.
    plan
        What was wanted.
    """
    streams = _streams(cells)
    found = [
        *_unreachable(nodes),
        *_failed(results),
        *(
            advice
            for stream, group in streams.items()
            for look in _LOOKS
            for advice in look(stream, group, plan)
        ),
        *_contaminated(results),
        *_shared_cpu(results),
        *_clock_cost(results),
        *_warmup(results),
    ]
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda advice: order[advice.severity])


def tick_multiple(time_s: float) -> tuple[int, int, bool] | None:
    """Which scheduler tick a time is a multiple of: (multiple, tick rate [Hz], of half a tick), or None.

    A half round trip is half a tick when one of the two ranks waits for the tick, and a whole one when both do.
    """
    for rate in TICK_RATES_HZ:
        for half in (False, True):
            unit = (0.5 if half else 1.0) / rate
            multiple = round(time_s / unit)
            if 1 <= multiple <= (1 if half else 3) and abs(time_s / (multiple * unit) - 1) <= TICK_TOLERANCE:
                return multiple, rate, half
    return None


def _streams(cells: Iterable[CellEstimate]) -> dict[Stream, list[CellEstimate]]:
    groups: dict[Stream, list[CellEstimate]] = defaultdict(list)
    for cell in cells:
        groups[cell.cell.op, cell.cell.pair].append(cell)
    return groups


def _subject(stream: Stream) -> str:
    return f"{stream[0]} {'–'.join(stream[1])}"


def _sizes(cells: Sequence[CellEstimate]) -> str:
    sizes = [format_bytes(cell.cell.size_bytes) for cell in cells]
    return ", ".join(sizes[:4]) + (f" and {len(sizes) - 4} more sizes" if len(sizes) > 4 else "")


def _launches(count: int) -> str:
    return f"{count} launch" if count == 1 else f"{count} launches"


def _unreachable(nodes: Iterable[NodeRecord]) -> Iterator[Advice]:
    for node in nodes:
        if not node.reachable or node.error:
            yield Advice(
                kind="unreachable_node",
                severity="error",
                subject=node.node,
                text=printable(node.error or f"{node.node} does not answer", 300),
                advice=f"Nothing was measured with it. Try 'ssh {node.node} true', then measure again.",
            )


def _failed(results: Iterable[LaunchResult]) -> Iterator[Advice]:
    failed: dict[Stream, list[str]] = defaultdict(list)
    for result in results:
        if result.launch.status == "failed":
            failed[result.launch.op, result.launch.pair].append(result.launch.error or "no reason is known")
    for stream, errors in failed.items():
        common, count = Counter(errors).most_common(1)[0]
        yield Advice(
            kind="failed_launch",
            severity="error",
            subject=_subject(stream),
            text=f"{_launches(len(errors))} failed, {count} of them: {printable(common, 300)}",
            advice="Failed launches are not in any figure. A failure that comes back needs its cause removed.",
        )


def _not_reached(stream: Stream, cells: Sequence[CellEstimate], plan: Plan) -> Iterator[Advice]:
    missed = [cell for cell in cells if not cell.reached]
    few = [cell for cell in missed if cell.time.half_width_ratio is None]
    wide = [cell for cell in missed if cell.time.half_width_ratio is not None]
    if few:
        count = min(cell.time.n for cell in few)
        yield Advice(
            kind="few_launches",
            severity="warning",
            subject=_subject(stream),
            text=f"{_launches(count)} do not make a {plan.confidence:.0%} interval, which takes 6: {_sizes(few)}",
            advice="Give it more time (wulf measure --resume) or allow more (--min-launches, --max-launches).",
        )
    if wide:
        worst = max(cell.time.half_width_ratio or 0.0 for cell in wide)
        yield Advice(
            kind="not_reached",
            severity="warning",
            subject=_subject(stream),
            text=f"±{worst:.1%} at worst, target ±{plan.precision:.1%}, after {max(c.time.n for c in wide)} launches "
            f"(it would take about {_forecast(wide, plan)}): {_sizes(wide)}",
            advice="The figures are as uncertain as shown. More launches as noisy as these narrow them "
            "(--max-launches, --budget); a quieter cluster gets there sooner.",
        )


def _forecast(cells: Sequence[CellEstimate], plan: Plan) -> int:
    """Forecast the launches for the worst cell to be precise: intervals narrow with the root of their number."""
    needed = max(cell.time.n * ((cell.time.half_width_ratio or 0.0) / plan.precision) ** 2 for cell in cells)
    return int(float(f"{math.ceil(needed):.1e}")) if needed >= 100 else math.ceil(needed)


def _tick(stream: Stream, cells: Sequence[CellEstimate], plan: Plan) -> Iterator[Advice]:
    del plan
    small = [cell for cell in cells if cell.cell.size_bytes <= TICK_MAX_SIZE_BYTES]
    hit = [(cell, tick) for cell in small if (tick := tick_multiple(cell.time.value)) is not None]
    if not hit:
        return
    cell, (multiple, rate, half) = hit[0]
    name = "half a scheduler tick" if half else f"{multiple} scheduler tick{'s' if multiple > 1 else ''}"
    yield Advice(
        kind="scheduler_tick",
        severity="error",
        subject=_subject(stream),
        text=f"{format_time(cell.time.value)} at {format_bytes(cell.cell.size_bytes)} is {name} of a "
        f"{rate} Hz kernel: the CPU's time is measured, not the network's",
        advice="Two ranks share a core, or each waits for the scheduler to give the CPU back. Bind the ranks to "
        "cores of their own, or let them yield (Open MPI: --mca mpi_yield_when_idle 1).",
    )


def _modes(stream: Stream, cells: Sequence[CellEstimate], plan: Plan) -> Iterator[Advice]:
    del plan
    several = [cell for cell in cells if cell.modes_between > 1]
    if several:
        yield Advice(
            kind="bimodal",
            severity="warning",
            subject=_subject(stream),
            text=f"the launches fall into {max(c.modes_between for c in several)} groups: {_sizes(several)}",
            advice="No single number describes them. Look at the box plots; placement of the ranks, a connection "
            "that hashes to another path or interrupts on another core are the usual causes.",
        )


def _lost(stream: Stream, cells: Sequence[CellEstimate], plan: Plan) -> Iterator[Advice]:
    del plan
    lost = sum(cell.lost for cell in cells)
    corrupt = sum(cell.corrupt for cell in cells)
    tried = lost + sum(cell.iterations for cell in cells)
    if lost:
        yield Advice(
            kind="lost",
            severity="warning",
            subject=_subject(stream),
            text=f"{lost} of {tried} datagrams were lost ({lost / tried:.2%})",
            advice="Lost datagrams have no time and are not in the figures. Look at the interfaces' drop counters "
            "and at the socket buffers (net.core.rmem_max).",
        )
    if corrupt:
        yield Advice(
            kind="corrupt",
            severity="error",
            subject=_subject(stream),
            text=f"{corrupt} messages arrived with other bytes than were sent",
            advice="Do not use this link before its cause is found: checksum offload, driver, cable, memory.",
        )


def _drift(stream: Stream, cells: Sequence[CellEstimate], plan: Plan) -> Iterator[Advice]:
    drifting = []
    for cell in cells:
        found = trend([point.median_s for point in cell.launches])
        if (
            found is not None
            and found.p_value < DRIFT_P / len(cells)
            and abs(found.change) > 2 * plan.precision
        ):
            drifting.append((cell, found.change))
    if drifting:
        worst = max(drifting, key=lambda item: abs(item[1]))[1]
        yield Advice(
            kind="drift",
            severity="warning",
            subject=_subject(stream),
            text=f"times changed by up to {worst:+.1%} from the first launch to the last: "
            f"{_sizes([cell for cell, _ in drifting])}",
            advice="Something changed while it was measured: temperature, clock frequency, another load. "
            "The intervals assume that nothing did.",
        )


_LOOKS: tuple[Callable[[Stream, Sequence[CellEstimate], Plan], Iterator[Advice]], ...] = (
    _tick,
    _lost,
    _not_reached,
    _modes,
    _drift,
)


def _contaminated(results: Iterable[LaunchResult]) -> Iterator[Advice]:
    counted = [result.launch for result in results if result.launch.purpose == "measure"]
    suspect = [launch for launch in counted if launch.contamination]
    if suspect:
        reasons = Counter(reason for launch in suspect for reason in launch.contamination)
        yield Advice(
            kind="contaminated",
            severity="warning",
            subject=", ".join(sorted({node for launch in suspect for node in launch.pair})[:8]),
            text=f"{len(suspect)} of {len(counted)} launches ran beside something else; most often: "
            f"{printable(reasons.most_common(1)[0][0], 200)}",
            advice="Stop other work on the nodes and measure again; clean launches are preferred where there "
            "are enough.",
        )


def _shared_cpu(results: Iterable[LaunchResult]) -> Iterator[Advice]:
    pairs = sorted({r.launch.pair for r in results if r.launch.probe is not None and r.launch.probe.yields})
    if pairs:
        yield Advice(
            kind="shared_cpu",
            severity="note",
            subject=", ".join("–".join(pair) for pair in pairs[:8]),
            text="the two ranks share a CPU and give it away while they wait",
            advice="These figures contain the switch from one process to the other; do not compare them with "
            "those of nodes that have a CPU each.",
        )


def _warmup(results: Iterable[LaunchResult]) -> Iterator[Advice]:
    samples: dict[Stream, list[Sample]] = defaultdict(list)
    for result in results:
        if result.launch.purpose == "measure" and result.launch.status == "ok":
            samples[result.launch.op, result.launch.pair].extend(result.samples)
    for stream, group in samples.items():
        restless = sorted({sample.cell.size_bytes for sample in group if not sample.warmup_settled})
        count = sum(not sample.warmup_settled for sample in group)
        if count > WARMUP_SHARE * len(group):
            yield Advice(
                kind="warmup",
                severity="note",
                subject=_subject(stream),
                text=f"times had not settled at the end of the warm-up in {count} of {len(group)} series "
                f"({format_bytes(restless[0])} to {format_bytes(restless[-1])})",
                advice="Some of the warm-up may be in the figures. Longer visits (--visit) settle it; a cluster that "
                "never settles is noisy or its clock frequency moves.",
            )


def _clock_cost(results: Iterable[LaunchResult]) -> Iterator[Advice]:
    """Warn of a clock that costs much of what was timed singly; the probe times whole visits where it can tell."""
    shares: dict[str, tuple[float, float]] = {}
    for result in results:
        if result.launch.probe is None or result.launch.op == "empty":
            continue
        cost_ns = result.launch.probe.clock.cost_ns
        for sample in result.samples:
            if sample.timing == "iteration" and sample.batch_medians_ns:
                share = cost_ns / max(statistics.median(sample.batch_medians_ns), 1.0)
                shares[sample.cell.op] = max(shares.get(sample.cell.op, (0.0, 0.0)), (share, cost_ns))
    for op, (share, cost_ns) in shares.items():
        if share >= CLOCK_SHARE:
            yield Advice(
                kind="clock_cost",
                severity="warning",
                subject=op,
                text=f"reading the clock takes {format_time(cost_ns * 1e-9)}, {share:.0%} of the fastest message",
                advice="Check the clock source of the nodes (it should be tsc).",
            )

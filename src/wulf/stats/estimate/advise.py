"""What the reader of a run must be told, each with what to do about it.  Pure."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import scipy

from wulf.base.nodeset import fold, fold_reasons, impersonal
from wulf.base.records import (
    Advice,
    CellEstimate,
    CellMode,
    Launch,
    LaunchResult,
    NodeRecord,
    Operation,
    Place,
    Plan,
    Sample,
)
from wulf.base.text import printable
from wulf.base.units import format_bytes, format_sizes, format_time
from wulf.stats.core.trend import DEPENDENT_P, TESTABLE, dependence, trend
from wulf.stats.estimate import files, order_effects, reference_adjustment
from wulf.stats.estimate.cells import WORTH_SAYING

#: Tick rates of Linux kernels (CONFIG_HZ) [Hz].
TICK_RATES_HZ = (100, 250, 300, 1000)
#: A latency this close to a multiple of the tick (or of its half) is suspicious …
TICK_TOLERANCE = 0.04
#: … when a smaller message than this takes so long; transfers of large ones may take as long honestly.
TICK_MAX_SIZE_BYTES = 4096
#: The probe's clock may cost this much of what it measures; the probe itself aims at 0.05.
CLOCK_SHARE = 0.08
DRIFT_P = 0.01
#: Smaller ones are not told apart.
SMALLEST_P = 0.001
#: Noise alone leaves some series unsettled; more than this share of them is worth a word.
WARMUP_SHARE = 0.1
#: Of a collective, ranks begin together where hardly an iteration is left out as some rank was late, ...
LATE_SHARE = 0.25
#: ... and those that count began within this share of what is measured, or within little more than what the probe
#: always allows [s].
LATE_OF_TIME = 0.2
LATE_ALWAYS_S = 2.5e-6
#: Operations and pairs that are named one by one.
NAMED = 3

#: Launches that an interval takes.
FEWEST = 6

#: Launches from which on no number of them will do.
ENDLESS = 10_000
_GIVEN_UP = (
    "The launches differ so much that more of them do not help, so they were ended before the time was over: look at "
    "what makes them differ (groups of launches, other load on the nodes), then measure again."
)
_MORE_LAUNCHES = (
    "The figures are as uncertain as shown. More launches as noisy as these narrow them "
    "(--max-launches, --launches of wulf program run, --budget); a quieter cluster gets there sooner."
)
_MORE_BLOCKS = (
    "The figures are as uncertain as shown: they are those of all hours and days of the series. More blocks narrow "
    "them (--every, --for)."
)

Stream = tuple[str, Place]
Streams = Mapping[Stream, Sequence[CellEstimate]]


def advise(
    cells: Sequence[CellEstimate],
    results: Sequence[LaunchResult],
    nodes: Sequence[NodeRecord],
    plan: Plan,
    operations: Sequence[Operation],
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
    operations
        What each operation does.
    """
    streams = _streams(cells)
    silent = {operation.name for operation in operations if operation.pattern == "none"}
    # A program or a disk may take any time; a message that takes as long as a tick has waited for one.
    programs = {one.name for one in operations if one.pattern == "application" or one.files}
    found = [
        *_unreachable(nodes),
        *_left_out(plan),
        *_failed(results, plan),
        *_not_begun(results, plan),
        *_of_streams(streams, plan, programs),
        *_dependent(streams, plan),
        *_not_tested(streams, plan),
        *_contaminated(results),
        *_one_machine(results),
        *_company(results),
        *_shared_cpu(results),
        *files.advise(cells, results, operations),
        *order_effects.advise(cells, operations),
        # Where nobody sends, what the clock costs is the figure itself.
        *_clock_cost(result for result in results if result.launch.op not in silent),
        *_warmup(results, plan),
        *_one_run(streams),
        *reference_adjustment.advise(cells),
    ]
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda advice: order[advice.severity])


def _of_streams(streams: Streams, plan: Plan, programs: Collection[str]) -> Iterator[Advice]:
    for stream, group in streams.items():
        for look in _LOOKS:
            if look is not _tick or stream[0] not in programs:
                yield from look(stream, group, plan)


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
        groups[cell.cell.op, cell.cell.place].append(cell)
    return groups


def _subject(stream: Stream, plan: Plan) -> str:
    """Return operation and place: what is not measured between the pairs has a set of nodes."""
    op, place = stream
    return f"{op} {'–'.join(place) if op in plan.workload.between_pairs else _group(place)}"


def _group(place: Place) -> str:
    """Return the nodes of a group, each once; two names are as short as their set."""
    nodes = list(dict.fromkeys(place))
    return ",".join(nodes) if len(nodes) < 3 else fold(nodes)


def _subjects(streams: Sequence[Stream], plan: Plan) -> str:
    """Return some streams by name; of many, each operation with the number of its pairs."""
    if len(streams) <= NAMED:
        return ", ".join(_subject(stream, plan) for stream in streams)
    pairs = Counter(op for op, _ in streams)
    return ", ".join(
        f"{op} ({count} pair{'s' if count > 1 else ''})" if op in plan.workload.between_pairs else op
        for op, count in pairs.items()
    )


def _at(cells: Sequence[CellEstimate], measured: Sequence[CellEstimate]) -> str:
    """Return a colon and the sizes of some of the cells that a stream has; nothing where it has no sizes."""
    some, every = ([cell.cell.size_bytes for cell in of] for of in (cells, measured))
    return f": {format_sizes(some, every)}" if any(every) else ""


def _span(sizes: Collection[int]) -> str:
    """Return the smallest and the largest size in parentheses; nothing where there is none but zero."""
    ends = dict.fromkeys((min(sizes), max(sizes)))
    return f" ({' to '.join(map(format_bytes, ends))})" if any(ends) else ""


def _launches(count: int) -> str:
    return f"{count} launch" if count == 1 else f"{count} launches"


def _unreachable(nodes: Iterable[NodeRecord]) -> Iterator[Advice]:
    lost = {
        node.node: node.error or f"{node.node} does not answer"
        for node in nodes
        if not node.reachable or node.error
    }
    for names, reason in fold_reasons(lost):
        yield Advice(
            kind="unreachable_node",
            severity="error",
            subject=fold(names),
            text=printable(reason, 300),
            advice=f"Nothing was measured with it. Try 'ssh {names[0]} true', then measure again.",
        )


def _left_out(plan: Plan) -> Iterator[Advice]:
    groups: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for absent in plan.left_out:
        groups[tuple(absent.ops)][absent.node] = absent.reason
    for ops, names, reason in ((ops, *found) for ops, of in groups.items() for found in fold_reasons(of)):
        yield Advice(
            kind="left_out_node",
            severity="error",
            subject=f"{', '.join(ops)} {fold(names)}",
            text=printable(reason, 300),
            advice="The others were measured without it. Fix that there, then measure again.",
        )


def _not_begun(results: Sequence[LaunchResult], plan: Plan) -> Iterator[Advice]:
    """Operations that the run did not come to; what failed, or had lost its node, is said elsewhere."""
    tried = {
        (result.launch.op, place)
        for result in results
        if result.launch.purpose == "measure"
        for place in result.launch.measured
    }
    out = {(op, absent.node) for absent in plan.left_out for op in absent.ops}
    out |= {
        (op, node) for result in results for node in result.launch.unreachable for op in plan.workload.ops
    }
    deserted = ", or no other pair was left to measure at the same time" if plan.workload.at_once else ""
    for part in plan.workload.parts:
        op = part.op
        able = [place for place in part.places if not any((op, node) in out for node in place)]
        missing = [place for place in able if (op, place) not in tried]
        some = f" {len(missing)} of {len(able)} "
        between = f" between{some}pairs" if not part.group else f" on{some}nodes" if len(able) > 1 else ""
        if missing:
            yield Advice(
                kind="not_begun",
                severity="warning",
                subject=op,
                text=f"not measured{between}: the run ended before{deserted}",
                advice="The budget is spent in the order of --ops. To measure the rest: "
                "wulf measure --resume latest.",
            )


def _failed(results: Iterable[LaunchResult], plan: Plan) -> Iterator[Advice]:
    """Streams whose launches failed for the same reason share one advice; a node's name is no other reason."""
    failed: dict[str, list[tuple[Stream, str]]] = defaultdict(list)
    for result in results:
        if result.launch.status == "failed":
            error = result.launch.error or "no reason is known"
            cases = [((result.launch.op, place), error) for place in result.launch.measured]
            failed[impersonal(error, result.launch.place)] += cases
    for alike, cases in failed.items():
        errors = {error for _, error in cases}
        yield Advice(
            kind="failed_launch",
            severity="error",
            subject=_subjects(list(dict.fromkeys(stream for stream, _ in cases)), plan),
            text=f"{_launches(len(cases))} failed: {printable(errors.pop() if len(errors) == 1 else alike, 300)}",
            advice="Failed launches are not in any figure. A failure that comes back needs its cause removed.",
        )


def _late(stream: Stream, cells: Sequence[CellEstimate], plan: Plan) -> Iterator[Advice]:
    late = [(cell.exits, cell) for cell in cells if cell.exits is not None and _began_late(cell)]
    if not late:
        return
    worst = max(exits.tolerance_s for exits, _ in late)
    left_out = max(exits.late for exits, _ in late)
    sizes = format_sizes((one.cell.size_bytes for _, one in late), (one.cell.size_bytes for one in cells))
    yield Advice(
        kind="late_starts",
        severity="warning",
        subject=_subject(stream, plan),
        text=f"ranks did not begin together at {sizes}: up to {left_out:.0%} of the iterations do not count as one was "
        f"late, in those that count one was up to {format_time(worst)} late",
        advice="The times hold some of the waiting for a rank that had no CPU. Stop what else runs on the nodes, or "
        "start no more ranks than there are CPUs.",
    )


def _began_late(cell: CellEstimate) -> bool:
    exits = cell.exits
    if exits is None:
        return False
    allowed_s = max(LATE_ALWAYS_S, LATE_OF_TIME * cell.time.value)
    return exits.late > LATE_SHARE or exits.tolerance_s > allowed_s


def _not_reached(stream: Stream, cells: Sequence[CellEstimate], plan: Plan) -> Iterator[Advice]:
    missed = [cell for cell in cells if not cell.reached]
    few = [cell for cell in missed if cell.time.half_width_ratio is None]
    wide = [cell for cell in missed if cell.time.half_width_ratio is not None]
    if few:
        count = min(cell.time.n for cell in few)
        yield Advice(
            kind="few_launches",
            severity="warning",
            subject=_subject(stream, plan),
            text=f"only {_launches(count)}: a {plan.confidence:.0%} interval takes 6{_at(few, cells)}",
            advice="Give it more time (wulf measure --resume RUN) or allow more (--min-launches, --max-launches, "
            "--launches of wulf program run).",
        )
    if wide:
        worst = max(cell.time.half_width_ratio or 0.0 for cell in wide)
        yield Advice(
            kind="not_reached",
            severity="warning",
            subject=_subject(stream, plan),
            text=f"{_width(worst)} at worst, target ±{plan.precision:.1%}, "
            f"after {max(c.time.n for c in wide)} launches ({_forecast(wide, plan)}){_at(wide, cells)}",
            advice=_MORE_BLOCKS if plan.series else _more(wide, plan),
        )


def _more(cells: Sequence[CellEstimate], plan: Plan) -> str:
    """Return what to do where the precision was not reached."""
    return _GIVEN_UP if _needed(cells, plan) >= ENDLESS else _MORE_LAUNCHES


def _needed(cells: Sequence[CellEstimate], plan: Plan) -> float:
    """Return the launches that the worst cell will need: intervals narrow with the root of their number."""
    return max(cell.time.n * ((cell.time.half_width_ratio or 0.0) / plan.precision) ** 2 for cell in cells)


def _width(half: float) -> str:
    """Return half the width of an interval against its value."""
    return f"±{half:.1%}" if half < 1 else "as wide as the value itself"


def _forecast(cells: Sequence[CellEstimate], plan: Plan) -> str:
    """Say how many launches it would take."""
    needed = _needed(cells, plan)
    if not needed < ENDLESS:
        return "no number of launches is enough"
    return f"it would take about {int(float(f'{needed:.1e}')) if needed >= 100 else math.ceil(needed)}"


def _tick(stream: Stream, cells: Sequence[CellEstimate], plan: Plan) -> Iterator[Advice]:
    small = [cell for cell in cells if cell.cell.size_bytes <= TICK_MAX_SIZE_BYTES]
    hit = [(cell, tick) for cell in small if (tick := tick_multiple(cell.time.value)) is not None]
    if not hit:
        return
    cell, (multiple, rate, half) = hit[0]
    name = "half a scheduler tick" if half else f"{multiple} scheduler tick{'s' if multiple > 1 else ''}"
    at = f" at {format_bytes(cell.cell.size_bytes)}" if any(each.cell.size_bytes for each in cells) else ""
    yield Advice(
        kind="scheduler_tick",
        severity="error",
        subject=_subject(stream, plan),
        text=f"{format_time(cell.time.value)}{at} is {name} of a "
        f"{rate} Hz kernel: the CPU's time is measured, not the network's",
        advice="Two ranks share a core, or each waits for the scheduler to give the CPU back. Bind the ranks to "
        "cores of their own, or let them yield (Open MPI: --mca mpi_yield_when_idle 1).",
    )


def _modes(stream: Stream, cells: Sequence[CellEstimate], plan: Plan) -> Iterator[Advice]:
    several = [cell for cell in cells if cell.modes_between > 1]
    if several:
        yield Advice(
            kind="bimodal",
            severity="warning",
            subject=_subject(stream, plan),
            text=f"the launches fall into {max(c.modes_between for c in several)} groups{_at(several, cells)}",
            advice="No single number describes them. Look at the box plots; placement of the ranks, a connection "
            "that hashes to another path or interrupts on another core are the usual causes.",
        )


def _modes_within(stream: Stream, cells: Sequence[CellEstimate], plan: Plan) -> Iterator[Advice]:
    several = [cell for cell in cells if cell.modes_within]
    if several:
        worst = max(several, key=lambda cell: cell.launches_with_modes)
        fast, slow = worst.modes_within
        yield Advice(
            kind="modes",
            severity="warning",
            subject=_subject(stream, plan),
            text=f"two modes in {worst.launches_with_modes} of {_launches(len(worst.launches))}: {_mode(fast)} "
            f"and {_mode(slow)}{_at([worst], cells)}{_elsewhere(several, cells)}",
            advice="A message takes one of two times, and the median is that of the more frequent one. Usual causes: "
            "interrupt moderation that adapts (rx-usecs, adaptive-rx), delayed acknowledgements, power states of the "
            "processor (C-states, frequency). wulf audit looks for them; wulf tune --objective latency counts both.",
        )


def _mode(mode: CellMode) -> str:
    """Return a mode's time, between which times it was, and how many messages took so long."""
    low, high = format_time(mode.low_s), format_time(mode.high_s)
    return f"{format_time(mode.time_s)} ({low} to {high}, {mode.share:.0%} of the messages)"


def _elsewhere(some: Sequence[CellEstimate], cells: Sequence[CellEstimate]) -> str:
    return f" ({len(some)} of {len(cells)} sizes have them)" if len(some) > 1 else ""


def _lost(stream: Stream, cells: Sequence[CellEstimate], plan: Plan) -> Iterator[Advice]:
    lost = sum(cell.lost for cell in cells)
    corrupt = sum(cell.corrupt for cell in cells)
    tried = lost + sum(cell.iterations for cell in cells)
    if lost:
        yield Advice(
            kind="lost",
            severity="warning",
            subject=_subject(stream, plan),
            text=f"{lost} of {tried} datagrams were lost ({lost / tried:.2%})",
            advice="Lost datagrams have no time and are not in the figures. Look at the interfaces' drop counters "
            "and at the socket buffers (net.core.rmem_max).",
        )
    if corrupt:
        yield Advice(
            kind="corrupt",
            severity="error",
            subject=_subject(stream, plan),
            text=f"{corrupt} messages arrived corrupted",
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
            subject=_subject(stream, plan),
            text=f"times changed by up to {worst:+.1%} from the first launch to the last"
            f"{_at([cell for cell, _ in drifting], cells)}",
            advice="Something changed while it was measured: temperature, clock frequency, another load. "
            "The intervals assume that nothing did.",
        )


def _dependent(streams: Streams, plan: Plan) -> Iterator[Advice]:
    """Warn of launches that resemble those before them; of all sizes together, as what does it moves them together.

    The false-discovery rate is controlled over all operations and pairs (Benjamini and Hochberg).
    """
    tested = {stream: dependence(_launch_levels(cells)) for stream, cells in streams.items()}
    found = {stream: p_value for stream, p_value in tested.items() if p_value is not None}
    if not found:
        return
    adjusted = scipy.stats.false_discovery_control(list(found.values()), method="bh")
    for stream, p_value in zip(found, map(float, adjusted), strict=True):
        if p_value >= DEPENDENT_P or any(_drift(stream, streams[stream], plan)):
            continue  # nothing, or a drift, which is said already
        wider = max(cell.widened for cell in streams[stream])
        done = (
            f"the intervals are up to {wider:.1f} × as wide as those of independent ones, and may still be too narrow"
            if wider >= WORTH_SAYING
            else "the intervals are narrower than they should be"
        )
        yield Advice(
            kind="dependent",
            severity="warning",
            subject=_subject(stream, plan),
            text=f"launches in a row resemble each other (p {_p_words(p_value)}): they say less than as many "
            f"independent ones; {done}",
            advice="Something comes and goes while it is measured (another load, a state of the machine). Spread the "
            "launches over more time: more pairs or operations in one run, or several runs at different times.",
        )


def _launch_levels(cells: Sequence[CellEstimate]) -> list[float]:
    """Return by how much each launch differs from the usual, over all sizes, in time order."""
    logs: dict[int, list[float]] = defaultdict(list)
    for cell in cells:
        middle = math.log(cell.time.value) if cell.time.value > 0 else 0.0
        for point in cell.launches:
            if point.median_s > 0:
                logs[point.index].append(math.log(point.median_s) - middle)
    return [statistics.fmean(logs[index]) for index in sorted(logs)]


def _not_tested(streams: Streams, plan: Plan) -> Iterator[Advice]:
    """Say of which figures nobody can know whether their launches depend on each other."""
    few = {stream: max(len(cell.launches) for cell in cells) for stream, cells in streams.items()}
    few = {stream: count for stream, count in few.items() if FEWEST <= count < TESTABLE}
    if few:
        yield Advice(
            kind="not_tested",
            severity="note",
            subject=_subjects(list(few), plan),
            text=f"{_launches(min(few.values()))} cannot show whether they depend on each other, which takes "
            f"{TESTABLE}: the intervals assume that they do not. If each resembled the one before (correlation 0.5), "
            "only about 80 % of such intervals would contain the time",
            advice=_MORE_BLOCKS
            if plan.series
            else f"Give it more time (--budget), or allow {TESTABLE} launches (--max-launches, --launches of wulf "
            f"program run).",
        )


def _one_run(streams: Streams) -> Iterator[Advice]:
    """Say with every run what no run can show of itself."""
    if any(cell.time.low is not None for cells in streams.values() for cell in cells):
        yield Advice(
            kind="one_run",
            severity="note",
            subject="every figure",
            text="another run on another day may differ by a few percent as a whole (2 to 5 % is usual), and so may "
            "the time in a state of the machine that lasts for many launches: neither is in the intervals",
            advice="They say how well this run knows the time while it ran. To compare two settings, measure them "
            "interleaved (wulf compare --interleaved).",
        )


def _p_words(p_value: float) -> str:
    return f"{p_value:.3f}" if p_value >= SMALLEST_P else f"< {SMALLEST_P}"


_LOOKS: tuple[Callable[[Stream, Sequence[CellEstimate], Plan], Iterator[Advice]], ...] = (
    _tick,
    _lost,
    _late,
    _not_reached,
    _modes,
    _modes_within,
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
            subject=", ".join(sorted({node for launch in suspect for node in launch.place})[:8]),
            text=f"{len(suspect)} of {len(counted)} launches are contaminated; most often: "
            f"{printable(reasons.most_common(1)[0][0], 200)}",
            advice="Stop other work on the nodes and measure again; clean launches are preferred where there "
            "are enough.",
        )


def _one_machine(results: Sequence[LaunchResult]) -> Iterator[Advice]:
    """Say what was measured where no network was between the two ends."""
    launches = [result.launch for result in results if result.launch.probe is not None]
    inside = sorted({x.op for x in launches if x.probe is not None and x.probe.mpi and _hosts(x) == 1})
    # mpirun's --host is 127.0.0.1, too, whatever its ranks talk over.
    loopback = sorted(
        {x.op for x in launches if any(word.startswith("127.") for word in x.argv)} - set(inside)
    )
    if inside:
        yield Advice(
            kind="one_machine",
            severity="note",
            subject=", ".join(inside),
            text="all ranks were on one machine: this is the MPI library's shared memory, not a network, unless "
            "the library was configured otherwise",
            advice="With OMPI_MCA_btl=self,tcp before the command Open MPI goes over loopback there, too.",
        )
    if loopback:
        yield Advice(
            kind="one_machine",
            severity="note",
            subject=", ".join(loopback),
            text="both ends were on one machine: this is its loopback, not a network",
            advice="It shows what the kernel's part costs; measure between two nodes for the rest.",
        )


def _hosts(launch: Launch) -> int:
    """How many machines the ranks of a launch were on; 0 when fewer than two ranks said so."""
    hosts = launch.probe.hosts if launch.probe is not None else []
    return len(set(hosts)) if len(hosts) > 1 else 0


def _shared_cpu(results: Iterable[LaunchResult]) -> Iterator[Advice]:
    sharing = [r.launch for r in results if r.launch.probe is not None and r.launch.probe.yields]
    pairs = sorted({place for launch in sharing for place in launch.measured})
    if pairs:
        yield Advice(
            kind="shared_cpu",
            severity="note",
            subject=", ".join("–".join(pair) if len(pair) < 3 else _group(pair) for pair in pairs[:8]),
            text="ranks share a CPU and yield it while they wait",
            advice="These figures contain the switch from one process to the other; do not compare them with "
            "those of nodes that have a CPU each.",
        )


def _company(results: Iterable[LaunchResult]) -> Iterator[Advice]:
    """Tell that pairs were measured beside more others in one launch than in another."""
    beside: dict[str, set[int]] = defaultdict(set)
    for result in results:
        if result.launch.pairs and result.launch.status == "ok":
            beside[result.launch.op].add(len(result.launch.pairs) - 1)
    for op, counts in beside.items():
        if len(counts) > 1:
            yield Advice(
                kind="company",
                severity="note",
                subject=op,
                text=f"a pair was measured at the same time as {min(counts)} to {max(counts)} others",
                advice="Its figures hold for all of these together. Name pairs with every node in exactly one "
                "(--pairs) to have the same ones in every launch.",
            )


def _warmup(results: Iterable[LaunchResult], plan: Plan) -> Iterator[Advice]:
    samples: dict[Stream, list[Sample]] = defaultdict(list)
    for result in results:
        if result.launch.purpose == "measure" and result.launch.status == "ok":
            for sample in result.samples:
                samples[result.launch.op, sample.cell.place].append(sample)
    for stream, group in samples.items():
        restless = {sample.cell.size_bytes for sample in group if not sample.warmup_settled}
        count = sum(not sample.warmup_settled for sample in group)
        if count > WARMUP_SHARE * len(group):
            yield Advice(
                kind="warmup",
                severity="note",
                subject=_subject(stream, plan),
                text=f"times had not settled at the end of the warm-up in {count} of {len(group)} series"
                f"{_span(restless)}",
                advice="Some of the warm-up may be in the figures. Longer visits (--visit) settle it; a cluster that "
                "never settles is noisy or its clock frequency moves.",
            )


def _clock_cost(results: Iterable[LaunchResult]) -> Iterator[Advice]:
    """Warn of a clock that costs much of what was timed singly; the probe times whole visits where it can tell."""
    shares: dict[str, tuple[float, float]] = {}
    for result in results:
        if result.launch.probe is None:
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

"""What the reader of a run must be told of its figures, each with what to do about it.  Pure."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import scipy

from wulf.base.records import IMPORTED, Advice, CellEstimate, CellMode, Plan
from wulf.base.text import count
from wulf.base.units import format_bytes, format_sizes, format_time
from wulf.stats.core.trend import DEPENDENT_P, TESTABLE, dependence, trend
from wulf.stats.estimate import advice_words as words
from wulf.stats.estimate.advice_words import Stream, Streams
from wulf.stats.estimate.cells import WORTH_SAYING

#: Tick rates of Linux kernels (CONFIG_HZ) [Hz].
TICK_RATES_HZ = (100, 250, 300, 1000)
#: A latency this close to a multiple of the tick (or of its half) is suspicious …
TICK_TOLERANCE = 0.04
#: … when a smaller message than this takes so long; transfers of large ones may take as long honestly.
TICK_MAX_SIZE_BYTES = 4096
DRIFT_P = 0.01
#: Smaller ones are not told apart.
SMALLEST_P = 0.001
#: Of a collective, ranks begin together where hardly an iteration is left out as some rank was late, ...
LATE_SHARE = 0.25
#: ... and those that count began within this share of what is measured, or within little more than what the probe
#: always allows [s].
LATE_OF_TIME = 0.2
LATE_ALWAYS_S = 2.5e-6
#: Launches that an interval takes.
FEWEST = 6
#: Launches from which on no number of them will do.
ENDLESS = 10_000
_GIVEN_UP = (
    "The launches differ so much that more of them do not help, for which a run ends before its time is over: look at "
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
_MORE_OUTPUTS = (
    "The figures are those of the files: run the benchmark again and import its outputs together with these; each file "
    "is a launch (wulf measure import FILE...)."
)


def streams_of(cells: Iterable[CellEstimate]) -> dict[Stream, list[CellEstimate]]:
    """Return the cells of each operation between given nodes."""
    groups: dict[Stream, list[CellEstimate]] = defaultdict(list)
    for cell in cells:
        groups[cell.cell.op, cell.cell.place].append(cell)
    return groups


def of_streams(streams: Streams, plan: Plan, programs: Collection[str]) -> Iterator[Advice]:
    """Say what is to be known of single operations between given nodes; `programs` may take any time."""
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


def _at(cells: Sequence[CellEstimate], measured: Sequence[CellEstimate]) -> str:
    """Return a colon and the sizes of some of the cells that a stream has; nothing where it has no sizes."""
    some, every = ([cell.cell.size_bytes for cell in of] for of in (cells, measured))
    return f": {format_sizes(some, every)}" if any(every) else ""


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
        subject=words.subject(stream, plan),
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
        fewest = min(cell.time.n for cell in few)
        yield Advice(
            kind="few_launches",
            severity="warning",
            subject=words.subject(stream, plan),
            text=f"only {count(fewest, 'launch')}: a {plan.confidence:.0%} interval takes 6{_at(few, cells)}",
            advice=_how_more(
                plan,
                "Give it more time (wulf measure --resume RUN) or allow more (--min-launches, --max-launches, "
                "--launches of wulf program run).",
            ),
        )
    if wide:
        worst = max(cell.time.half_width_ratio or 0.0 for cell in wide)
        yield Advice(
            kind="not_reached",
            severity="warning",
            subject=words.subject(stream, plan),
            text=f"{_width(worst)} at worst, target ±{plan.precision:.1%}, "
            f"after {count(max(c.time.n for c in wide), 'launch')} ({_forecast(wide, plan)}){_at(wide, cells)}",
            advice=_GIVEN_UP if _needed(wide, plan) >= ENDLESS else _how_more(plan, _MORE_LAUNCHES),
        )


def _how_more(plan: Plan, of_a_run: str) -> str:
    """Return how there come to be more launches: those of a series and of files are asked for in ways of their own."""
    if plan.ladder == IMPORTED:
        return _MORE_OUTPUTS
    return _MORE_BLOCKS if plan.series else of_a_run


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
    name = "half a scheduler tick" if half else count(multiple, "scheduler tick")
    at = f" at {format_bytes(cell.cell.size_bytes)}" if any(each.cell.size_bytes for each in cells) else ""
    yield Advice(
        kind="scheduler_tick",
        severity="error",
        subject=words.subject(stream, plan),
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
            subject=words.subject(stream, plan),
            text=f"the launches fall into {count(max(c.modes_between for c in several), 'group')}{_at(several, cells)}",
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
            subject=words.subject(stream, plan),
            text=f"two modes in {worst.launches_with_modes} of {count(len(worst.launches), 'launch')}: {_mode(fast)} "
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
    return f" ({len(some)} of {count(len(cells), 'size')} have them)" if len(some) > 1 else ""


def _lost(stream: Stream, cells: Sequence[CellEstimate], plan: Plan) -> Iterator[Advice]:
    lost = sum(cell.lost for cell in cells)
    corrupt = sum(cell.corrupt for cell in cells)
    tried = lost + sum(cell.iterations for cell in cells)
    if lost:
        yield Advice(
            kind="lost",
            severity="warning",
            subject=words.subject(stream, plan),
            text=f"lost: {lost} of {count(tried, 'datagram')} ({lost / tried:.2%})",
            advice="Lost datagrams have no time and are not in the figures. Look at the interfaces' drop counters "
            "and at the socket buffers (net.core.rmem_max).",
        )
    if corrupt:
        yield Advice(
            kind="corrupt",
            severity="error",
            subject=words.subject(stream, plan),
            text=f"{count(corrupt, 'message')} arrived corrupted",
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
            subject=words.subject(stream, plan),
            text=f"times changed by up to {worst:+.1%} from the first launch to the last"
            f"{_at([cell for cell, _ in drifting], cells)}",
            advice="Something changed while it was measured: temperature, clock frequency, another load. "
            "The intervals assume that nothing did.",
        )


def dependent(streams: Streams, plan: Plan) -> Iterator[Advice]:
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
            subject=words.subject(stream, plan),
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


def not_tested(streams: Streams, plan: Plan) -> Iterator[Advice]:
    """Say of which figures nobody can know whether their launches depend on each other."""
    few = {stream: max(len(cell.launches) for cell in cells) for stream, cells in streams.items()}
    few = {stream: n for stream, n in few.items() if FEWEST <= n < TESTABLE}
    if few:
        yield Advice(
            kind="not_tested",
            severity="note",
            subject=words.subjects(list(few), plan),
            text=f"{min(few.values())} launches cannot show whether they depend on each other, which takes "
            f"{TESTABLE}: the intervals assume that they do not. If each resembled the one before (correlation 0.5), "
            "only about 80 % of such intervals would contain the time",
            advice=_how_more(
                plan,
                f"Give it more time (--budget), or allow {TESTABLE} launches (--max-launches, --launches of wulf "
                "program run).",
            ),
        )


def one_run(streams: Streams) -> Iterator[Advice]:
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

"""What the nodes do by themselves: detours of fixed work, late wake-ups, and what would make them quieter."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from wulf.base.nodeset import fold
from wulf.base.records import CpuNoise, Estimate, HostAdvice, HostNoise, Operation
from wulf.base.text import count, printable
from wulf.base.units import format_spread, format_time, format_value
from wulf.page import ticks
from wulf.page.blocks import Block, Cards, Paragraph, Section
from wulf.page.parts import Card, Column, Figure, Item, Raw, Table, Variant, rounded
from wulf.page.words import estimate_item, name, rest
from wulf.tools.measure.page import charts

#: CPUs in the table, and in the chart: the noisiest.
ROWS, LINES = 32, 6
#: The operation of the probe that is made on one given CPU.
ON_CPU = "noise_on"
#: Bins of the histogram for a decade, as `wulf.stats.estimate.host_noise` makes them.
BINS = 5

#: A CPU and its node.
Watched = tuple[str, CpuNoise]


def sections(hosts: Sequence[HostNoise], *, brief: bool) -> Iterator[Section]:
    """Yield what is shown of the nodes by themselves, where anything was measured on them alone."""
    if not hosts:
        return
    watched = sorted(
        ((host.node, cpu) for host in hosts for cpu in host.cpus), key=lambda one: -one[1].detoured.value
    )
    quiet = [host.node for host in hosts if not host.advice]
    none = f"Nothing was found that is known to make {fold(map(name, quiet))} quieter."
    tables: tuple[Block, ...] = () if brief else (_nodes(hosts), *_figures(watched), _cpus(watched))
    yield Section(
        "hosts",
        "Hosts",
        (Cards(_cards(hosts)), *([Paragraph(none)] if quiet else []), *tables),
        "what the nodes do by themselves",
    )


def shows(operation: Operation | None) -> bool:
    """Whether all of an operation is shown here, in one table for all CPUs."""
    return operation is not None and (operation.asked or operation.name).partition(":")[0] == ON_CPU


def _nodes(hosts: Sequence[HostNoise]) -> Table:
    gaps = sorted({wake.gap_s for host in hosts for wake in host.wakes})
    return Table(
        title="Clock, wake-ups and load of the nodes",
        columns=(
            Column("node", whole=True),
            Column("clock reading", numeric=True),
            Column("clock step", numeric=True, narrow=False),
            *(Column(f"late after {format_time(gap)} of sleep", numeric=True) for gap in gaps),
            Column("hypervisor took", numeric=True, narrow=False),
            Column("others used", numeric=True, narrow=False),
            Column("intervals on a quiet host", numeric=True),
        ),
        rows=tuple(_node_row(host, gaps) for host in hosts),
        note="Late: by how much a process is back late from a sleep, median over launches. Hypervisor, others: share "
        "of the CPU time while it was measured. Intervals on a quiet host: their width ÷ that of the intervals of the "
        "network operations of this run (1/√gain of the adjustment by the reference, median over cells); unknown where "
        "no operation is proven to follow its hosts.",
    )


def _node_row(host: HostNoise, gaps: Sequence[float]) -> tuple[Item, ...]:
    late = {wake.gap_s: wake.late for wake in host.wakes}
    clock, width = host.clock, host.quiet_width
    return (
        Item(name(host.node)),
        estimate_item(clock.cost if clock else None),
        Item(format_time(clock.resolution_s), clock.resolution_s) if clock else estimate_item(None),
        *(estimate_item(late.get(gap)) for gap in gaps),
        _share(host.steal),
        _share(host.foreign),
        Item(f"{format_value(width.value, '')} × ({count(width.n, 'cell')})", width.value)
        if width
        else estimate_item(None),
    )


def _share(share: Estimate | None) -> Item:
    return Item(format_spread(share), share.value) if share else estimate_item(None)


def _cpus(watched: Sequence[Watched]) -> Table:
    """Return the noisiest CPUs, with how often work on them was interrupted for how long."""
    shown = watched[:ROWS]
    classes = [(rate.from_s, rate.to_s) for rate in shown[0][1].detours] if shown else []
    return Table(
        title="Detours of fixed work by CPU, noisiest first",
        columns=(
            Column("node", whole=True),
            Column("CPU", numeric=True),
            Column("detours take", numeric=True),
            Column("above the shortest", numeric=True, narrow=False),
            Column("longest", numeric=True),
            *(Column(_length(*ends), numeric=True, narrow=False) for ends in classes),
            Column("tick", numeric=True, narrow=False),
        ),
        rows=tuple(_cpu_row(node, cpu) for node, cpu in shown),
        note=" ".join(
            filter(
                None,
                (
                    "A detour is what 100 µs of work took longer than the launch's median, from 1 µs on. Detours take: "
                    "their share of the time. Above the shortest: mean ÷ shortest − 1, with a clock frequency that "
                    "moves in it. Both are medians over launches. By length: detours per second. Tick: rate of the "
                    "kernel's tick at which they come, too evenly to be chance.",
                    rest(len(watched), ROWS, "CPUs"),
                ),
            )
        ),
        empty="no CPU was watched by itself",
    )


def _length(low_s: float, high_s: float | None) -> str:
    return f"≥ {format_time(low_s)}" if high_s is None else f"{format_time(low_s)} to {format_time(high_s)}"


def _cpu_row(node: str, cpu: CpuNoise) -> tuple[Item, ...]:
    return (
        Item(name(node)),
        Item(str(cpu.cpu), cpu.cpu),
        _share(cpu.detoured),
        _share(cpu.taken),
        Item(f"{format_time(cpu.longest_s)} in {format_time(cpu.watched_s)}", cpu.longest_s),
        *(Item(format_spread(rate.per_s), rate.per_s.value) for rate in cpu.detours),
        Item(f"{cpu.tick_hz} Hz", cpu.tick_hz) if cpu.tick_hz else Item("–", None),
    )


def _called(node: str, cpu: CpuNoise) -> str:
    return f"{name(node)} CPU {cpu.cpu}"


def _figures(watched: Sequence[Watched]) -> tuple[Figure, ...]:
    """Return the histogram of the lengths of detours; nothing where there was none."""
    drawn = [one for one in watched if one[1].histogram][:LINES]
    if not drawn:
        return ()
    points = [(node, cpu, index) for node, cpu in drawn for index in range(len(cpu.histogram))]
    bins = [cpu.histogram[index] for _, cpu, index in points]
    half = 10 ** (0.5 / BINS)
    main: dict[str, Sequence[Raw]] = {
        "cpu": [_called(node, cpu) for node, cpu, _ in points],
        # Lines are drawn between bins that lie beside each other; there was nothing in those that are not there.
        "stretch": [_stretch(cpu, index) for _, cpu, index in points],
        "length_s": rounded([low * half for low, _ in bins]),
        "from_s": rounded([low for low, _ in bins]),
        "per_s": rounded([rate for _, rate in bins]),
    }
    return (
        Figure(
            id="detours",
            chart=charts.DETOURS,
            title="Detours of fixed work by length",
            x_title="length of the detour (logarithmic)",
            y_title="detours per second (logarithmic)",
            x=ticks.times(low * half for low, _ in bins),
            y=ticks.rates(rate for _, rate in bins),
            variants=(
                Variant(
                    label="",
                    datasets={"main": main},
                    summary=_summary(drawn),
                    caption=f"Of all launches, in {BINS} bins for a factor of ten; a point stands in the middle of its "
                    f"bin, an empty bin has none. {_chosen(drawn, watched)}",
                ),
            ),
        ),
    )


def _stretch(cpu: CpuNoise, index: int) -> int:
    """Return the number of empty stretches before a bin."""
    places = [round(BINS * math.log10(low)) for low, _ in cpu.histogram[: index + 1]]
    return sum(after - before > 1 for before, after in itertools.pairwise(places))


def _summary(drawn: Sequence[Watched]) -> str:
    node, cpu = drawn[0]
    return (
        f"Detours of fixed work on {count(len(drawn), 'CPU')} by length; on {_called(node, cpu)} they take "
        f"{format_spread(cpu.detoured)} of the time, the longest {format_time(cpu.longest_s)}."
    )


def _chosen(drawn: Sequence[Watched], watched: Sequence[Watched]) -> str:
    if len(drawn) == len(watched):
        return ""
    return f"Of {count(len(watched), 'CPU')} the {len(drawn)} with most time in detours."


def _cards(hosts: Sequence[HostNoise]) -> tuple[Card, ...]:
    """Return what would make nodes quieter; what several bear is said once, with the evidence of the first."""
    found: dict[str, list[tuple[str, HostAdvice]]] = defaultdict(list)
    for host in hosts:
        for advice in host.advice:
            found[advice.id].append((host.node, advice))
    return tuple(
        Card(
            title=cases[0][1].title,
            where=fold(name(node) for node, _ in cases),
            evidence=printable(cases[0][1].evidence, 300)
            + (f" ({name(cases[0][0])})" if len(cases) > 1 else ""),
            why=cases[0][1].why,
            next=cases[0][1].next,
        )
        for cases in found.values()
    )

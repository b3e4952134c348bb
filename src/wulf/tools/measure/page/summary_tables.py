"""Tables of what a run says of several operations together."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence

from wulf.base.nodeset import fold
from wulf.base.records import Launch, LogGP, Operation, Overhead, Overlap, Resources
from wulf.base.text import printable
from wulf.base.units import format_bytes, format_portion, format_time, format_value
from wulf.page.parts import Column, Item, Table
from wulf.page.words import change_item, estimate_item, listed, name, place_name, sized
from wulf.tools.measure.page.tables import parameter_item

LOAD_NOTE = (
    "Requests of tcp_loaded are timed from when each was due, whatever became of the one before. A 99th percentile "
    "takes 100 values in every launch, a 99.9th 1000 (--visit makes launches longer)."
)


def overheads_table(overheads: Sequence[Overhead]) -> Table:
    """Return what MPI costs over TCP between the same nodes, at the pair where each operation and size costs most."""
    groups: dict[tuple[str, int], list[Overhead]] = defaultdict(list)
    for overhead in overheads:
        groups[overhead.op, overhead.size_bytes].append(overhead)
    rows = []
    for (op, size), found in sorted(groups.items()):
        worst = max(found, key=lambda one: one.ratio.value)
        rows.append(
            (
                Item(name(op)),
                Item(format_bytes(size), size),
                Item(place_name(worst.place) + (f" (worst of {len(found)})" if len(found) > 1 else "")),
                change_item(worst.ratio),
                Item(_added(worst), worst.base_s * (worst.ratio.value - 1)),
            )
        )
    return Table(
        title="Time of a message with MPI against one over a plain TCP connection",
        columns=(
            Column("operation"),
            Column("size", numeric=True),
            Column("pair"),
            Column("costs", numeric=True),
            Column("that is", numeric=True),
        ),
        rows=tuple(rows),
        note="Launches of both took turns in the same minutes. With shared memory between ranks MPI needs no TCP.",
    )


def _added(overhead: Overhead) -> str:
    """Return what is added to a message, with its interval."""
    ratio = overhead.ratio
    value, low, high = (
        "?" if bound is None else f"{1e6 * overhead.base_s * (bound - 1):+.3g}".replace("-", "−")
        for bound in (ratio.value, ratio.low, ratio.high)
    )
    return f"{value} µs " + ("(no interval)" if "?" in (low, high) else f"({low} to {high})")


def loads_table(loads: Sequence[Overhead], launches: Sequence[Launch] = ()) -> Table:
    """Return what load costs: the change of each quantile, at the pair where it is largest."""
    groups: dict[tuple[str, int], dict[str, list[Overhead]]] = defaultdict(lambda: defaultdict(list))
    for load in loads:
        groups[load.op, load.size_bytes][load.quantile].append(load)
    shown = list(dict.fromkeys(load.quantile for load in loads))
    return Table(
        title="Time under load or beside traffic against that without, at the pair where it changes most",
        columns=(
            Column("operation"),
            Column("against"),
            Column("size", numeric=True),
            *(Column(quantile, numeric=True) for quantile in shown),
        ),
        rows=tuple(_load_row(op, size, found, shown) for (op, size), found in sorted(groups.items())),
        note=" ".join((LOAD_NOTE, *_traffic(launches))),
    )


def _load_row(
    op: str, size: int, found: Mapping[str, Sequence[Overhead]], shown: Sequence[str]
) -> tuple[Item, ...]:
    worst = {quantile: max(of, key=lambda one: one.ratio.value) for quantile, of in found.items()}
    return (
        Item(name(op)),
        Item(name(next(iter(worst.values())).base)),
        Item(format_bytes(size), size),
        *(
            change_item(worst[quantile].ratio)
            if quantile in worst
            else Item("too few values", None, "unknown")
            for quantile in shown
        ),
    )


def _traffic(launches: Sequence[Launch]) -> list[str]:
    """Say of each operation beside traffic how much of it there was."""
    rates: dict[str, list[float]] = defaultdict(list)
    pairs: dict[str, set[int]] = defaultdict(set)
    for launch in launches:
        if launch.beside:
            rates[launch.op] += [one.bytes_per_s for one in launch.beside]
            pairs[launch.op].add(len(launch.beside))
    return [
        f"Beside {name(op)} {' to '.join(str(number) for number in sorted({min(pairs[op]), max(pairs[op])}))} other "
        f"pair{'s' if max(pairs[op]) > 1 else ''} streamed at {format_value(statistics.median(found), 'B/s')} each "
        f"({format_value(min(found), 'B/s')} to {format_value(max(found), 'B/s')} over all launches)."
        for op, found in rates.items()
    ]


def parameters_table(parameters: Sequence[LogGP]) -> Table:
    """Return LogGP's parameters of each place."""
    rows = tuple(
        (
            Item(place_name(one.place)),
            *(
                parameter_item(figure)
                for figure in (
                    one.latency,
                    one.send_overhead,
                    one.receive_overhead,
                    one.gap,
                    one.gap_per_byte,
                )
            ),
            Item(_eager_limit(one), one.eager_limit[1] if one.eager_limit else None),
        )
        for one in parameters
    )
    notes = dict.fromkeys(note for one in parameters for note in one.notes)
    return Table(
        title="A message between two ranks takes o_s + L + o_r, and each that follows it g, each byte G more",
        columns=(
            Column("ranks on"),
            Column("L", numeric=True),
            Column("o_s", numeric=True),
            Column("o_r", numeric=True),
            Column("g", numeric=True),
            Column("G", numeric=True),
            Column("eager limit", numeric=True),
        ),
        rows=rows,
        note=" ".join(f"{note[:1].upper()}{note[1:]}." for note in notes),
    )


def _eager_limit(found: LogGP) -> str:
    if found.eager_limit is None:
        return "not seen"
    seen = "between " + " and ".join(f"{size} B" for size in found.eager_limit)
    if found.eager_limit_said is None:
        return seen
    return f"{found.eager_limit_said[1]} B ({found.eager_limit_said[0]}), seen {seen}"


def overlaps_table(overlaps: Sequence[Overlap], operations: Mapping[str, Operation]) -> Table:
    """Return which share of each operation and size goes on during a computation, where it is least."""
    groups: dict[tuple[str, int], list[Overlap]] = defaultdict(list)
    for overlap in overlaps:
        groups[overlap.base, overlap.size_bytes].append(overlap)
    rows = []
    for (op, size), found in sorted(groups.items()):
        operation = operations.get(op)
        worst = min(found, key=lambda one: one.share.value)
        where = place_name(worst.place, operation)
        rows.append(
            (
                Item(name(op)),
                Item(format_bytes(size), size) if sized(operation, [size]) else Item("–", None),
                Item(where + (f" (least of {len(found)})" if len(found) > 1 else "")),
                Item(format_portion(worst.share), worst.share.value),
                Item(format_time(worst.base_s), worst.base_s),
            )
        )
    return Table(
        title="Share of a non-blocking operation that goes on during a computation as long as it",
        columns=(
            Column("operation"),
            Column("size", numeric=True),
            Column("group"),
            Column("overlaps", numeric=True),
            Column("takes alone", numeric=True),
        ),
        rows=tuple(rows),
        note="1 − time beyond the computation ÷ time alone, as measured: below 0 % where computing delays it.",
    )


def _no_energy(resources: Sequence[Resources]) -> str:
    """Say what was looked at for the energy of launches in vain."""
    nodes: dict[str, dict[str, None]] = {}
    for one in resources:
        for node, why in one.energy_lacks.items():
            nodes.setdefault(why, {})[node] = None
    why = listed(
        [f"{name(fold(list(found)))}: {printable(reason, 160)}" for reason, found in nodes.items()], 3
    )
    return f" Energy: not told ({why})." if why else ""


def resources_table(resources: Sequence[Resources]) -> Table:
    """Return what commands took of the node that they were started on, and what energy of all their nodes."""
    has_energy = any(one.cpu_energy is not None for one in resources)
    return Table(
        title="What a launch takes of the node that it is started on",
        columns=(
            Column("command"),
            Column("time of CPUs", numeric=True),
            Column("of it in the kernel", numeric=True),
            Column("CPUs kept busy", numeric=True),
            Column("memory of the largest process", numeric=True),
            *([Column("energy of CPUs and memory, all nodes", numeric=True)] if has_energy else []),
        ),
        rows=tuple(
            (
                Item(name(one.op)),
                estimate_item(one.cpu, "the node's shell does not say"),
                estimate_item(one.kernel, "the node's shell does not say"),
                estimate_item(one.busy, "the node's shell does not say"),
                estimate_item(one.peak, "GNU time is not installed there"),
                *([estimate_item(one.cpu_energy, "not all nodes say it")] if has_energy else []),
            )
            for one in resources
        ),
        note="Ranks on other nodes are not in it."
        + (
            " Energy: by the counters of the CPUs (RAPL) of all nodes, from just before to just after a launch, "
            "whoever used them; what else is in a node takes energy, too."
            if has_energy
            else _no_energy(resources)
        ),
    )

"""What the figures of one pair of nodes show, as names and values that signatures speak of.  Pure."""

from __future__ import annotations

import ipaddress
import math
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence

from wulf.base.records import CellEstimate, CurveModel, FactValue, NodeRecord

#: A time this long beside a short one is a timer's: of the delayed acknowledgement, or of the first retransmission [s].
TIMERS_S = ((0.036, 0.046), (0.19, 0.22))
#: Messages up to this one show what a message costs, from that one on what the link carries [B].
SMALL_BYTES, LARGE_BYTES = 1024, 64 << 10
#: Of which all that was sent is gone, and of which nothing is.
ALL_LOST, NONE_LOST = 0.9, 0.01

#: Name → what it is. `one.`, `other.`, `least.` and `most.` stand before the name of a fact: the value of either node,
#: the smaller and the larger one where both are numbers.
FEATURES: Mapping[str, str] = {
    "transport": "what carries the messages: mpi, tcp, udp",
    "sizes": "how many sizes were measured",
    "small_s": "time of the smallest message, of at most 1 KiB",
    "small_p99_to_median": "its 99th percentile ÷ its median",
    "small_mode_gap_s": "time between its fastest and slowest mode, where it has two",
    "small_mode_ratio": "share of the slowest mode",
    "timer_s": "a time at which messages bunch that is one of a timer's: 40 ms, 200 ms",
    "timer_ratio": "share of the messages that take it",
    "lost_ratio": "share of the datagrams that are lost at the size at which most are, where not all are",
    "lost_datagrams": "how many those are",
    "lost_from_bytes": "size from which nearly all datagrams are lost, and below which nearly none is",
    "rate_bits_per_s": "highest rate of a message of 64 KiB or more",
    "link_ratio": "that rate ÷ the speed of the slower link",
    "in_flight_bytes": "that rate × the round trip of a small message: the data in flight",
    "window_bytes": "what a connection may have in flight: the smallest limit of both nodes' socket buffers",
    "busiest_cpu_ratio": "how busy the busiest CPU of both nodes was, median over launches",
    "gateway_out": "the gateway that the first node sends through to the second; none for a direct way",
    "gateway_back": "the same of the second to the first",
    "r_squared": "share of the variation of the times that a straight line explains",
    "contaminated_ratio": "share of the launches under other load",
    "warned": "what was warned of in the analysis",
}
_SIDES = ("one", "other", "least", "most")
_BUFFERS = ("sysctl.net.ipv4.tcp_rmem", "sysctl.net.ipv4.tcp_wmem")


def is_feature(name: str) -> bool:
    """Whether a signature may speak of it."""
    side, _, fact = name.partition(".")
    return name in FEATURES or (side in _SIDES and bool(fact))


def of_pair(
    cells: Sequence[CellEstimate],
    model: CurveModel | None,
    nodes: tuple[NodeRecord, NodeRecord],
    warned: Collection[str] = (),
) -> dict[str, FactValue]:
    """Return all features that the figures of one operation between two nodes have.

    Parameters
    ----------
    cells
        At least one size.
    model
        Of these cells; None without one.
    nodes
        Both, in the order of the pair.
    warned
        Kinds of advice that the analysis of the run gives.
    """
    found = dict(_of_facts(nodes)) | dict(_of_routes(nodes))
    ordered = sorted(cells, key=lambda cell: cell.cell.size_bytes)
    transport = ordered[0].cell.op.partition("_")[0]
    found |= {"transport": transport, "sizes": len(ordered), "warned": " ".join(sorted(warned))}
    found |= _of_small(ordered[0])
    found |= _of_timers(ordered)
    found |= _of_losses(ordered)
    found |= _of_rate(ordered, found)
    if model is not None and model.least_squares is not None:
        found["r_squared"] = model.least_squares.r_squared
    busy = [p.busiest_cpu_ratio for cell in ordered for p in cell.launches if p.busiest_cpu_ratio is not None]
    if busy:
        found["busiest_cpu_ratio"] = statistics.median(busy)
    launches = [point.contaminated for cell in ordered for point in cell.launches]
    if launches:
        found["contaminated_ratio"] = sum(launches) / len(launches)
    return found


def _of_facts(nodes: tuple[NodeRecord, NodeRecord]) -> Iterator[tuple[str, FactValue]]:
    first, second = (node.facts for node in nodes)
    for side, facts in (("one", first), ("other", second)):
        yield from ((f"{side}.{name}", value) for name, value in facts.items())
    for name in first.keys() & second.keys():
        numbers = _number(first[name]), _number(second[name])
        if numbers[0] is not None and numbers[1] is not None:
            yield f"least.{name}", min(numbers[0], numbers[1])
            yield f"most.{name}", max(numbers[0], numbers[1])
    limits = [limit for facts in (first, second) for name in _BUFFERS if (limit := _last(facts.get(name)))]
    if limits:
        yield "window_bytes", min(limits)


def _of_routes(nodes: tuple[NodeRecord, NodeRecord]) -> Iterator[tuple[str, FactValue]]:
    first, second = (node.facts for node in nodes)
    for name, sender, receiver in (("gateway_out", first, second), ("gateway_back", second, first)):
        gateway = _gateway(sender.get("network.routes"), receiver.get("nic.addresses"))
        if gateway is not None:
            yield name, gateway


def _gateway(routes: FactValue, addresses: FactValue) -> str | None:
    """Return the gateway of the narrowest route to a node's first address; None where none is known to lead there."""
    try:
        target = ipaddress.ip_interface(str(addresses or "").split(" ")[0]).ip
    except ValueError:
        return None
    best: tuple[int, str] | None = None
    for route in str(routes or "").split(", "):
        destination, *words = route.split(" ")
        try:
            network = ipaddress.ip_network("0.0.0.0/0" if destination == "default" else destination)
        except ValueError:
            continue
        if target in network and (best is None or network.prefixlen > best[0]):
            best = network.prefixlen, words[1] if words[:1] == ["via"] else "none"
    return best[1] if best is not None else None


def _number(value: FactValue) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    try:
        return float(str(value))
    except ValueError:
        return None


def _last(value: FactValue) -> float | None:
    """Return the last number of a setting such as ``4096 131072 6291456``."""
    words = str(value or "").split()
    return _number(words[-1]) if words else None


def _of_small(cell: CellEstimate) -> Iterator[tuple[str, FactValue]]:
    if cell.cell.size_bytes > SMALL_BYTES:
        return
    yield "small_s", cell.time.value
    if (p99 := cell.quantiles_s.get("p99")) and (p50 := cell.quantiles_s.get("p50")):
        yield "small_p99_to_median", p99 / p50
    if len(cell.modes_within) > 1:
        fast, *_, slow = sorted(cell.modes_within, key=lambda mode: mode.time_s)
        yield "small_mode_gap_s", slow.time_s - fast.time_s
        yield "small_mode_ratio", slow.share


def _of_timers(cells: Sequence[CellEstimate]) -> Iterator[tuple[str, FactValue]]:
    # A large message may honestly take so long.
    short = [cell for cell in cells if cell.cell.size_bytes < LARGE_BYTES]
    found = [
        (mode.share, mode.time_s) for cell in short for mode in cell.modes_within if _is_timer(mode.time_s)
    ]
    # Where nothing comes sooner it is the way that takes so long.
    found += [
        (0.5, cell.time.value)
        for cell in short
        if _is_timer(cell.time.value) and 2 * cell.quantiles_s.get("min", math.inf) < cell.time.value
    ]
    if found:
        share, time_s = max(found)
        yield "timer_s", time_s
        yield "timer_ratio", share


def _is_timer(time_s: float) -> bool:
    # A time of an operation may be that of one way: half of a timer.
    return any(low <= time_s * ways <= high for low, high in TIMERS_S for ways in (1, 2))


def _of_losses(cells: Sequence[CellEstimate]) -> Iterator[tuple[str, FactValue]]:
    lost = {
        cell.cell.size_bytes: cell.lost / (cell.lost + cell.iterations)
        for cell in cells
        if cell.lost + cell.iterations
    }
    gone = [size for size, share in lost.items() if share > ALL_LOST]
    if gone and all(share < NONE_LOST for size, share in lost.items() if size < min(gone)):
        yield "lost_from_bytes", min(gone)
    some = [size for size, share in lost.items() if share <= ALL_LOST]
    if some:
        worst = max(some, key=lambda size: lost[size])
        yield "lost_ratio", lost[worst]
        yield "lost_datagrams", sum(cell.lost for cell in cells if cell.cell.size_bytes == worst)


def _of_rate(
    cells: Sequence[CellEstimate], known: Mapping[str, FactValue]
) -> Iterator[tuple[str, FactValue]]:
    rates = [
        cell.bandwidth.value * 8
        for cell in cells
        if cell.bandwidth is not None and cell.cell.size_bytes >= LARGE_BYTES
    ]
    if not rates:
        return
    yield "rate_bits_per_s", max(rates)
    link = _number(known.get("least.nic.speed_bits_per_s"))
    if link:
        yield "link_ratio", max(rates) / link
    small = _number(known.get("small_s"))
    if small:
        yield "in_flight_bytes", max(rates) / 8 * 2 * small

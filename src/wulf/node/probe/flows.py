"""Many flows between two nodes: what each met, and which way it takes (docs/protocol.md)."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from wulf.base.errors import OverdueError, ProbeError, TransportError
from wulf.base.records.base import Pair
from wulf.base.records.flows import FlowSeen, Protocol
from wulf.base.text import last_words, printable
from wulf.node.probe import parse
from wulf.node.probe.start import SILENCE_S, START_S, Site, start_net

#: Visits of each size that tell something, where a launch does not come to its end.
FEWEST_VISITS = 3
#: A datagram that has no answer for so long is lost [µs].
LOST_AFTER_US = 10000
#: Error of a median ÷ that of a mean, of a normal distribution.
_OF_MEDIAN = 1.2533
Hops = list[str | None]


class FlowsLine(msgspec.Struct, frozen=True, tag="flows", tag_field="type"):
    """What all flows of one visit met."""

    size: int
    port: int
    ports: list[int]
    sent: list[int]
    answered: list[int]
    arrived: list[int]
    late: list[int]
    medians_ns: list[float | None]

    def __post_init__(self) -> None:
        """Refuse lists that do not belong together."""
        lists = (self.sent, self.answered, self.arrived, self.late, self.medians_ns)
        if any(len(values) != len(self.ports) for values in lists):
            raise ValueError("not a value for each flow")


class TraceLine(msgspec.Struct, frozen=True, tag="trace", tag_field="type"):
    """Which way a flow takes."""

    from_port: int
    to_port: int
    hops: Hops


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent over the flows of a pair."""

    protocol: Protocol
    sizes_bytes: list[int]
    flows: int
    sweeps: int
    visit_us: int


_flows = msgspec.json.Decoder(FlowsLine)
_trace = msgspec.json.Decoder(TraceLine)


class Met(NamedTuple):
    """What the flows between two nodes met."""

    seen: list[FlowSeen]
    #: Why it is not all that was asked for; empty where it is.
    short: str = ""


def measure(site: Site, pair: Pair, asked: Asked, limit_s: float) -> Met:
    """Measure many flows between two nodes; their ways are not known yet.

    Where much is lost it takes long, or ends early: what was seen by then counts.

    Raises
    ------
    ProbeError
        It failed before there was enough to tell; says why.
    TransportError
        A node does not answer.
    """
    lines: list[FlowsLine] = []
    try:
        _launch(site, pair, asked, limit_s, lines)
    except (ProbeError, TransportError) as error:
        visits = Counter(line.size for line in lines)
        if any(visits[size] < FEWEST_VISITS for size in asked.sizes_bytes):
            raise
        why = f"after {limit_s:.0f} s it was not done" if isinstance(error, OverdueError) else str(error)
        return Met(list(_seen(pair, asked, lines)), why)
    return Met(list(_seen(pair, asked, lines)))


def _launch(site: Site, pair: Pair, asked: Asked, limit_s: float, lines: list[FlowsLine]) -> None:
    """Take the lines of a launch until its end."""
    near, far = pair
    arguments = [
        *("--op", f"{asked.protocol}_flows:{asked.flows}"),
        *("--sizes", ",".join(map(str, asked.sizes_bytes))),
        *("--sweeps", str(asked.sweeps), "--visit-us", str(asked.visit_us), "--reference-us", "0"),
        *(("--datagram-timeout-us", str(LOST_AFTER_US)) if asked.protocol == "udp" else ()),
    ]
    with start_net(site, pair, arguments) as client:
        for line in client.lines(SILENCE_S, limit_s):
            if line.startswith(b'{"type":"flows"'):
                lines.append(_decoded(_flows, line))
                continue
            said = parse.message(line)
            if isinstance(said, parse.ErrorLine):
                raise ProbeError(f"{said.peer or far}: {said.message}")
            if isinstance(said, parse.End):
                return
        why = last_words(client.stderr()) or "no message"
    raise ProbeError(f"{near}–{far}: the probe ended early: {why}")


def _decoded(decoder: msgspec.json.Decoder[FlowsLine], line: bytes) -> FlowsLine:
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, ValueError) as error:
        raise ProbeError(f"the probe broke its protocol ({error}): {printable(line, 120)!r}") from error


def _seen(pair: Pair, asked: Asked, lines: Sequence[FlowsLine]) -> Iterator[FlowSeen]:
    """Yield what each flow met at each size."""
    by_size: dict[int, list[FlowsLine]] = defaultdict(list)
    for line in lines:
        by_size[line.size].append(line)
    for size, visits in by_size.items():
        # The last ones are those of the sweeps: before them it warms up.
        yield from _at_size(pair, asked.protocol, size, visits[-asked.sweeps :])


def _at_size(pair: Pair, protocol: Protocol, size: int, visits: Sequence[FlowsLine]) -> Iterator[FlowSeen]:
    excess: dict[int, list[float]] = defaultdict(list)
    counts: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
    commons = []
    for visit in visits:
        known = [value for value in visit.medians_ns if value is not None]
        commons.append(statistics.median(known) if known else None)
        back = map(sum, zip(visit.answered, visit.late, strict=True))
        rows = zip(visit.ports, visit.sent, back, visit.arrived, visit.medians_ns, strict=True)
        for port, sent, answered, arrived, median in rows:
            lost_out = max(sent - arrived, 0)
            more = (sent, lost_out, max(sent - lost_out - answered, 0))
            counts[port] = [old + new for old, new in zip(counts[port], more, strict=True)]
            if median is not None and commons[-1] is not None:
                excess[port].append(median - commons[-1])
    usual = [value for value in commons if value is not None]
    for port, (sent, lost_out, lost_back) in counts.items():
        time_s, error_s = _typical(excess[port], statistics.median(usual) if usual else 0.0)
        yield FlowSeen(
            nodes=pair,
            protocol=protocol,
            size_bytes=size,
            port=port,
            to_port=visits[-1].port,
            out=[],
            back=[],
            sent=sent,
            lost_out=lost_out,
            lost_back=lost_back,
            time_s=time_s,
            error_s=error_s,
        )


def _typical(excess: Sequence[float], common_ns: float) -> tuple[float | None, float | None]:
    """Return the middle of what a flow took in all visits, and its standard error [s]; nothing of fewer than two."""
    if len(excess) < 2:
        return None, None
    # Of few visits a robust scatter would often be nearly nothing.
    error = _OF_MEDIAN * statistics.stdev(excess) / len(excess) ** 0.5
    return (common_ns + statistics.median(excess)) * 1e-9, error * 1e-9


def ways(
    site: Site, pair: Pair, protocol: Protocol, ports: Sequence[tuple[int, int]]
) -> Mapping[tuple[int, int], Hops]:
    """Return which switches the flows of the first node to the second pass: (source port, destination port) → switches.

    Raises
    ------
    ProbeError, TransportError
        As `measure`.
    """
    near, far = pair
    argv = [
        site.net_probes[near],
        "--trace",
        *("--bind", site.addresses.get(near, near), "--to", site.addresses.get(far, far)),
        *("--flows", ",".join(f"{source}:{target}" for source, target in ports)),
        *(["--tcp"] if protocol == "tcp" else []),
    ]
    found: dict[tuple[int, int], Hops] = {}
    with site.transport.start(argv, near) as process:
        for line in process.lines(SILENCE_S, START_S):
            if line.startswith(b'{"type":"trace"'):
                said = _traced(line)
                found[said.from_port, said.to_port] = said.hops
            elif isinstance(said_else := parse.message(line), parse.ErrorLine):
                raise ProbeError(f"{near}: {said_else.message}")
    return found


def _traced(line: bytes) -> TraceLine:
    try:
        said = _trace.decode(line)
    except msgspec.DecodeError as error:
        raise ProbeError(f"the probe broke its protocol ({error}): {printable(line, 120)!r}") from error
    return msgspec.structs.replace(
        said, hops=[None if hop is None else printable(hop, 64) for hop in said.hops]
    )

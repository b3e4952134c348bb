"""Many flows between all pairs of some nodes, with their ways."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import msgspec

from wulf.base import disjoint_rounds, text
from wulf.base.errors import ProbeError, TransportError
from wulf.base.records.base import Pair
from wulf.base.records.flows import FlowSeen, Protocol
from wulf.base.text import printable
from wulf.base.tool import Progress
from wulf.node.probe import flows
from wulf.node.probe.flows import Asked
from wulf.node.probe.start import Site

#: Warming up takes as long as so many visits; and a visit lasts so long at most and at least [s].
WARM_UP, LONGEST_S, SHORTEST_S = 5, 2.0, 0.02
#: A kind of message may take so many times its share of the time, and so long to begin [s]: losses are waited for.
OVERTIME, BEGIN_S = 2.0, 20.0


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent over the flows of a pair."""

    protocol: Protocol
    size_bytes: int
    sweeps: int
    #: Of the time of a pair.
    share: float
    #: From the second node to the first.
    is_back: bool = False


@dataclass
class Taken:
    """What has been measured so far."""

    seen: list[FlowSeen] = field(default_factory=list)
    #: Pair → why it was not measured.
    missing: dict[str, str] = field(default_factory=dict)


def measure(
    where: Site,
    pairs: Sequence[Pair],
    kinds: Sequence[Kind],
    *,
    count: int,
    budget_s: float,
    taken: Taken,
    say: Progress,
) -> None:
    """Measure all pairs, those without a common node at the same time unless nodes share a CPU."""
    able = [pair for pair in pairs if set(pair) <= where.net_probes.keys()]
    for pair in pairs:
        if pair not in able:
            taken.missing["–".join(pair)] = "the probe does not run on a node"
    shared = where.shares_cpu(*dict.fromkeys(node for pair in able for node in pair))
    groups = [[place] for place in range(len(able))] if shared else disjoint_rounds.disjoint(able)
    begin = time.monotonic()
    for number, group in enumerate(groups):
        left_s = budget_s - (time.monotonic() - begin)
        if left_s <= 0:
            for place in group:
                taken.missing["–".join(able[place])] = "time ran out: a larger --budget measures all pairs"
            continue
        each_s = left_s / (len(groups) - number)
        say(f"flows of {text.count(len(able), 'pair')}: {number + 1} of {len(groups)}")
        with ThreadPoolExecutor(max_workers=len(group)) as pool:
            work = [pool.submit(_measure_pair, where, able[place], kinds, count, each_s) for place in group]
            for place, one in zip(group, work, strict=True):
                seen, short = one.result()
                taken.seen += seen
                if short:
                    taken.missing["–".join(able[place])] = printable("; ".join(short), 300)


def _measure_pair(
    where: Site, pair: Pair, kinds: Sequence[Kind], count: int, each_s: float
) -> tuple[list[FlowSeen], list[str]]:
    """Measure the flows of a pair, with their ways there and back, and say what of it could not be done."""
    found: list[FlowSeen] = []
    short: list[str] = []
    for kind in kinds:
        visit_s = min(max(each_s * kind.share / (kind.sweeps + WARM_UP), SHORTEST_S), LONGEST_S)
        asked = Asked(
            protocol=kind.protocol,
            sizes_bytes=[kind.size_bytes],
            flows=count,
            sweeps=kind.sweeps,
            visit_us=round(visit_s * 1e6),
        )
        between = (pair[1], pair[0]) if kind.is_back else pair
        try:
            seen, why = flows.measure(where, between, asked, OVERTIME * each_s * kind.share + BEGIN_S)
        except (ProbeError, TransportError) as error:
            seen, why = [], str(error)
        found += seen
        if why:
            short.append(f"{kind.protocol}, {kind.size_bytes} B, from {between[0]}: {why}")
    return list(_with_ways(where, found, short)), list(dict.fromkeys(short))


def _with_ways(where: Site, found: Sequence[FlowSeen], short: list[str]) -> Iterator[FlowSeen]:
    """Yield flows with their ways: each way is asked once, from the node that sends on it.

    Ways that cannot be asked are said in `short`: their flows have none, as where no switch answers.
    """
    asked: dict[tuple[Pair, Protocol], dict[tuple[int, int], None]] = {}
    for flow in found:
        back = flow.nodes[1], flow.nodes[0]
        asked.setdefault((flow.nodes, flow.protocol), {})[flow.port, flow.to_port] = None
        asked.setdefault((back, flow.protocol), {})[flow.to_port, flow.port] = None
    known: dict[tuple[Pair, Protocol], Mapping[tuple[int, int], flows.Hops]] = {}
    for key, ports in asked.items():
        try:
            known[key] = flows.ways(where, *key, list(ports))
        except (ProbeError, TransportError) as error:
            known[key] = {}
            short.append(f"the ways from {key[0][0]} are not known: {error}")
    for flow in found:
        back = flow.nodes[1], flow.nodes[0]
        yield msgspec.structs.replace(
            flow,
            out=known[flow.nodes, flow.protocol].get((flow.port, flow.to_port), []),
            back=known[back, flow.protocol].get((flow.to_port, flow.port), []),
        )

"""Measure what tells which nodes hang on one switch, and put it together."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from wulf.base.contracts import Transport
from wulf.base.errors import UsageError
from wulf.base.interfaces import Interfaces
from wulf.base.nodeset import fold
from wulf.base.records import SCHEMA_VERSION
from wulf.base.records.base import Pair
from wulf.base.records.flows import FlowSeen
from wulf.base.store import write_atomically
from wulf.base.text import count, printable
from wulf.base.tool import Progress
from wulf.node.cluster import inventory
from wulf.node.fleet import allocation, preparation
from wulf.node.fleet.clusters import config_of
from wulf.node.measuring import flows
from wulf.node.measuring.flows import Kind, Taken
from wulf.stats.estimate import switches
from wulf.stats.estimate.switches import Level
from wulf.tools.fabric.record import SOURCES, TOP, InferredFabric, InferredLevel, InferredSwitch
from wulf.tools.fabric.request import FabricRequest

#: Requests [B] on so many flows of each pair, and how often.
REQUEST_BYTES, FLOWS, SWEEPS = 64, 8, 4
#: A daemon that does not answer is none.
ASK_WITHIN_S = 10.0
_CHASSIS = re.compile(r"^lldp\.(?P<port>[^.=]+)\.chassis\.name=(?P<name>.+)$", re.MULTILINE)
#: Names that Slurm takes.
_STRANGE = re.compile(r"[^A-Za-z0-9_.-]+")


def infer(request: FabricRequest, say: Progress) -> InferredFabric:
    """Measure, and say which nodes hang on one switch.

    Raises
    ------
    UsageError
        There are fewer than two nodes.
    TransportError
        No pair of nodes answers.
    """
    config = config_of(request.cluster)
    nodes = config.select(request.nodes)
    if len(nodes) < 2 or config.transport == "local":
        raise UsageError("switches are between nodes: it takes two of them")
    tools = preparation.toolbox(["udp_flows"], None, say)
    with preparation.connect(config, nodes, say) as (transport, records):
        pairs, _ = preparation.measurable(inventory.pairs("all", nodes), records)
        heard = neighbours(transport, nodes, config.interface)
        ready = preparation.ready(config, transport, records, tools, say)
        taken = Taken()
        kinds = [Kind(protocol="udp", size_bytes=REQUEST_BYTES, sweeps=SWEEPS, share=1.0)]
        budget_s = allocation.capped(request.budget_s, say.note)
        flows.measure(ready.where, pairs, kinds, count=FLOWS, budget_s=budget_s, taken=taken, say=say)
        names = _names(transport, nodes[0], taken.seen)
    found = concluded(nodes, heard, taken.seen, names, taken.missing)
    for path, text in ((request.topology, found.topology_conf), (request.hostfile, found.hostfile)):
        if path is not None and text:
            write_atomically(path, text.encode())
    return found


def neighbours(
    transport: Transport, nodes: Sequence[str], interface: str | Interfaces | None
) -> dict[str, str]:
    """Return what the port of each node hears of its switch, where lldpd runs: node → switch."""
    answers = transport.run(["lldpctl", "-f", "keyvalue"], nodes, timeout_s=ASK_WITHIN_S)
    found = {}
    for node, answer in answers.items():
        heard = {
            match["port"]: match["name"]
            for match in _CHASSIS.finditer(answer.stdout.decode(errors="replace"))
        }
        if answer.status == "ok" and heard:
            found[node] = printable(heard.get(_own(interface, node), next(iter(heard.values()))), 64)
    return found


def _own(interface: str | Interfaces | None, node: str) -> str:
    """Return how a node calls its interface; empty where that is not known."""
    if isinstance(interface, Interfaces):
        return interface.of_node.get(node, interface.usual or "")
    return interface or ""


def _names(transport: Transport, node: str, seen: Sequence[FlowSeen]) -> dict[str, str]:
    """Return how a node's name service calls the switches that have answered."""
    addresses = sorted(
        {hop for flow in seen for hops in (flow.out, flow.back) for hop in hops if hop is not None}
    )
    if not addresses:
        return {}
    answer = transport.run(["getent", "hosts", *addresses], [node], timeout_s=ASK_WITHIN_S)[node]
    lines = [line.split() for line in answer.stdout.decode(errors="replace").splitlines()]
    return {words[0]: printable(words[1], 64) for words in lines if len(words) > 1}


def concluded(
    nodes: Sequence[str],
    heard: Mapping[str, str],
    seen: Sequence[FlowSeen],
    names: Mapping[str, str],
    missing: Mapping[str, str],
) -> InferredFabric:
    """Return the tree that all of it shows.

    Parameters
    ----------
    heard
        Node → switch, of LLDP.
    seen
        Flows between the nodes, with their ways.
    names
        Address → name of switches.
    missing
        Pair → why it was not measured.
    """
    levels, remarks = _levels(nodes, heard, seen)
    shown = list(_named(levels, names))
    return InferredFabric(
        schema_version=SCHEMA_VERSION,
        nodes=list(nodes),
        levels=shown,
        remarks=[*remarks, *(f"not measured: {pair}: {why}" for pair, why in list(missing.items())[:5])],
        topology_conf="".join(f"{line}\n" for line in topology_conf(shown)),
        hostfile="".join(f"{node}\n" for node in _ordered(shown, nodes)) if shown else "",
    )


def _levels(
    nodes: Sequence[str], heard: Mapping[str, str], seen: Sequence[FlowSeen]
) -> tuple[list[Level], list[str]]:
    ways: dict[Pair, list[Sequence[str | None]]] = defaultdict(list)
    for flow in seen:
        ways[flow.nodes].append(flow.out)
        ways[flow.nodes[1], flow.nodes[0]].append(flow.back)
    routed = switches.by_ways(nodes, ways)
    lowest = [switches.by_neighbours(heard)] if set(heard) >= set(nodes) else []
    remarks = []
    if lowest and routed and lowest[0].groups != routed[0].groups:
        remarks.append("LLDP and the ways of flows do not agree on which nodes are together: LLDP is shown")
    if routed:
        return [*lowest, *(routed[1:] if lowest else routed)], remarks
    logs, errors = _matrix(nodes, seen)
    timed = switches.by_times(nodes, logs, errors, seed=1) if np.isfinite(logs).any() else []
    if not timed and not lowest:
        few = (
            f"of {count(len(nodes), 'node')} times do not tell it (six do)"
            if len(nodes) < 6
            else "no pair was measured"
        )
        remarks.append(f"no switch has answered on the way, no port hears LLDP, and {few}")
    upper = [level for level in timed if not lowest or len(level.groups) < len(lowest[0].groups)]
    return [*lowest, *upper] if lowest else timed, remarks


def _matrix(nodes: Sequence[str], seen: Sequence[FlowSeen]) -> tuple[np.ndarray, np.ndarray]:
    """Return the logarithms of the times between nodes, and their errors: of each pair the middle of its flows."""
    places = {node: place for place, node in enumerate(nodes)}
    times: dict[Pair, list[tuple[float, float]]] = defaultdict(list)
    for flow in seen:
        if flow.time_s and flow.error_s is not None:
            times[flow.nodes].append((flow.time_s, flow.error_s))
    logs, errors = (np.full((len(nodes), len(nodes)), np.nan) for _ in range(2))
    for (first, second), values in times.items():
        here = places[first], places[second]
        middle = float(np.median([time for time, _ in values]))
        error = float(np.median([error for _, error in values])) / middle / math.sqrt(len(values))
        logs[here] = logs[here[::-1]] = math.log(middle)
        errors[here] = errors[here[::-1]] = error
    return logs, errors


def _named(levels: Sequence[Level], names: Mapping[str, str]) -> Iterator[InferredLevel]:
    """Yield levels with a name for every switch, and what is below each."""
    below: list[InferredSwitch] = []
    used = {TOP}
    for number, level in enumerate(levels, 1):
        found = []
        for place, (group, known) in enumerate(zip(level.groups, level.names, strict=True), 1):
            own = _STRANGE.sub("-", names.get(known, known)).strip("-") or f"tier{number}-{place}"
            name = own if own not in used else f"{own}-{place}"
            used.add(name)
            held = [one.name for one in below if set(one.nodes) <= set(group)]
            found.append(InferredSwitch(name=name, nodes=list(group), switches=held))
        below = found
        yield InferredLevel(switches=found, source=level.source, confidence=level.confidence)


def topology_conf(levels: Sequence[InferredLevel]) -> Iterator[str]:
    """Yield the lines of Slurm's topology.conf: switches of nodes, switches of these, and one above all."""
    if not levels:
        return
    for level in levels[:1]:
        yield f"# from {SOURCES[level.source]}, confidence {level.confidence:.0%}"
        yield from (f"SwitchName={one.name} Nodes={fold(one.nodes)}" for one in level.switches)
    for level in levels[1:]:
        yield f"# from {SOURCES[level.source]}, confidence {level.confidence:.0%}"
        yield from (f"SwitchName={one.name} Switches={','.join(one.switches)}" for one in level.switches)
    if len(levels[-1].switches) > 1:
        yield "# what connects them all"
        yield f"SwitchName={TOP} Switches={','.join(one.name for one in levels[-1].switches)}"


def _ordered(levels: Sequence[InferredLevel], nodes: Sequence[str]) -> list[str]:
    """Return the nodes, those of a switch together, from the highest level down."""
    keys = {
        node: tuple(
            next(
                (place for place, one in enumerate(level.switches) if node in one.nodes), len(level.switches)
            )
            for level in reversed(levels)
        )
        for node in nodes
    }
    return sorted(nodes, key=lambda node: (keys[node], nodes.index(node)))

"""Measure many flows between nodes, ask which way they take, and judge them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from wulf.base.contracts import Transport
from wulf.base.errors import UsageError
from wulf.base.nodeset import fold
from wulf.base.records import SCHEMA_VERSION, NodeRecord
from wulf.base.records.base import Pair
from wulf.base.records.flows import FlowSeen
from wulf.base.text import count, in_command, printable
from wulf.base.tool import Progress
from wulf.node.cluster import inventory
from wulf.node.fleet import allocation, preparation
from wulf.node.fleet.clusters import config_of
from wulf.node.measuring import flows as measuring
from wulf.node.measuring.flows import Kind, Taken
from wulf.node.probe.start import Site
from wulf.tools.paths import bonds, judging
from wulf.tools.paths.record import Culprit, Paths, Reproduction, Switch, Way
from wulf.tools.paths.request import PathsRequest

#: Requests [B], and how often each kind of message is measured.
REQUEST_BYTES, SWEEPS, STREAM_SWEEPS = 64, 6, 4
#: Share of the time for all pairs; the rest is for those with flows that are worse for no known reason.
FIRST = 0.75
NAME_WITHIN_S = 10.0
_SERVER_PORT = 18400


def find(request: PathsRequest, say: Progress) -> Paths:
    """Measure and judge the paths between nodes.

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
        raise UsageError("paths are between nodes: it takes two of them")
    tools = preparation.toolbox(["udp_flows", "tcp_flows"], None, say)
    with preparation.connect(config, nodes, say) as (transport, records):
        pairs, lost = preparation.measurable(inventory.pairs("all", nodes), records)
        ready = preparation.ready(config, transport, records, tools, say)
        taken = Taken(missing={"–".join(pair): "a node does not answer" for pair in lost})
        budget_s = allocation.capped(request.budget_s, say.note)
        kinds = _kinds(request.stream_bytes)
        measuring.measure(
            ready.where, pairs, kinds, count=request.flows, budget_s=budget_s * FIRST, taken=taken, say=say
        )
        suspected = judging.unexplained(judging.judge(taken.seen))
        again = Taken()
        if suspected:
            both = {frozenset(pair): pair for pair in pairs}
            once_more = list(dict.fromkeys(both[frozenset(pair)] for pair in suspected))
            say.note(
                f"once more: {count(len(once_more), 'pair')} with flows that are worse for no known reason"
            )
            rest_s = budget_s * (1 - FIRST)
            measuring.measure(
                ready.where, once_more, kinds, count=request.flows, budget_s=rest_s, taken=again, say=say
            )
            taken.missing |= again.missing
        verdict = judging.judge(taken.seen, again.seen)
        found = judged(nodes, pairs, taken, verdict, (ready.where, records))
        return _named(found, transport)


def _kinds(stream_bytes: int) -> list[Kind]:
    """Return what is measured of a pair: requests over UDP and TCP, streams in each direction."""
    return [
        Kind(protocol="udp", size_bytes=REQUEST_BYTES, sweeps=SWEEPS, share=0.25),
        Kind(protocol="tcp", size_bytes=REQUEST_BYTES, sweeps=SWEEPS, share=0.15),
        Kind(protocol="tcp", size_bytes=stream_bytes, sweeps=STREAM_SWEEPS, share=0.3),
        Kind(protocol="tcp", size_bytes=stream_bytes, sweeps=STREAM_SWEEPS, share=0.3, is_back=True),
    ]


def judged(
    nodes: list[str],
    pairs: Sequence[Pair],
    taken: Taken,
    verdict: judging.Verdict,
    around: tuple[Site, Sequence[NodeRecord]],
) -> Paths:
    """Return what was measured with its verdict, and what facts of the nodes add to it."""
    where, records = around
    measured = {flow.nodes for flow in taken.seen}
    spread = judging.spread(taken.seen, verdict.culprits)
    if spread != "ECMP" and any(map(bonds.spreads, records)):
        spread = "below the routes"
    bond_of = {record.node: bonds.bond(record) for record in records}
    found = Paths(
        schema_version=SCHEMA_VERSION,
        nodes=nodes,
        pairs=[pair for pair in pairs if pair in measured],
        missing=taken.missing,
        spread=spread,
        remarks=_remarks(records),
        switches=[
            Switch(address=address, name=address, hop=hop) for address, hop in switches(taken.seen).items()
        ],
        culprits=verdict.culprits,
        sights=verdict.sights,
        mpi=judging.exposure(taken.seen, verdict.culprits),
        seen=taken.seen,
        addresses={node: where.addresses.get(node, node) for node in nodes},
        probes=where.net_probes,
    )
    shown = [
        msgspec.structs.replace(
            culprit,
            reproduction=_reproduction(found, culprit),
            bond=bond_of.get(culprit.common[0]) if len(culprit.common) == 1 else None,
        )
        for culprit in found.culprits
    ]
    return msgspec.structs.replace(found, culprits=shown)


def _remarks(records: Sequence[NodeRecord]) -> list[str]:
    """Return why flows may not be spread over all paths, nodes of one reason together."""
    alike: dict[str, list[str]] = {}
    for record in records:
        if why := bonds.remark(record):
            alike.setdefault(why, []).append(record.node)
    return [f"{fold(nodes)}: {why}" for why, nodes in alike.items()]


def switches(seen: Sequence[FlowSeen]) -> dict[str, int]:
    """Return the switches that have answered: address → how far from the nearest node, the first being 1."""
    found: dict[str, int] = {}
    for flow in seen:
        for hops in (flow.out, flow.back):
            for place, hop in enumerate(hops):
                if hop is not None:
                    near = min(place, len(hops) - 1 - place) + 1
                    found[hop] = min(near, found.get(hop, near))
    return dict(sorted(found.items(), key=lambda one: (one[1], one[0])))


def _reproduction(found: Paths, culprit: Culprit) -> Reproduction | None:
    """Return a flow that shows it: the worst one of the metric that is clearest."""
    metric = min(culprit.effects, key=lambda effect: effect.p_value).metric
    bad, well = judging.examples(found.seen, culprit, metric)
    if bad is None:
        return None
    near, far = (in_command(found.addresses[node], "ADDRESS") for node in bad.nodes)
    probes = [in_command(found.probes.get(node, ""), "wulf-probe-net") for node in bad.nodes]
    size = bad.size_bytes
    udp = bad.protocol == "udp"
    return Reproduction(
        nodes=bad.nodes,
        protocol=bad.protocol,
        port=bad.port,
        to_port=bad.to_port,
        well_port=well.port if well is not None else None,
        probe=[
            f"{probes[1]} --server --bind {far} --port {_SERVER_PORT}",
            f"{probes[0]} --connect {far}:{_SERVER_PORT} --op {bad.protocol}_flows:1 --sizes {size} --port {bad.port}",
        ],
        plain=[
            f"iperf3 --server --bind {far} --port {bad.to_port}",
            f"iperf3 --client {far} --bind {near} --port {bad.to_port} --cport {bad.port}"
            + (" --udp --bitrate 100M" if udp else ""),
        ],
    )


def _named(found: Paths, transport: Transport) -> Paths:
    """Return the same with the names that the nodes' name service has for switches."""
    addresses = [switch.address for switch in found.switches]
    if not addresses:
        return found
    near = found.nodes[0]
    answer = transport.run(["getent", "hosts", *addresses], [near], timeout_s=NAME_WITHIN_S)[near]
    names = _names(answer.stdout.decode(errors="replace")) if answer.status in ("ok", "exit") else {}
    call: Callable[[Way], Way] = lambda way: msgspec.structs.replace(  # noqa: E731 - used right below
        way, names=[names.get(hop, hop) for hop in way.hops]
    )
    return msgspec.structs.replace(
        found,
        switches=[
            msgspec.structs.replace(one, name=names.get(one.address, one.address)) for one in found.switches
        ],
        culprits=[
            msgspec.structs.replace(culprit, ways=[call(way) for way in culprit.ways])
            for culprit in found.culprits
        ],
    )


def _names(said: str) -> Mapping[str, str]:
    lines = [line.split() for line in said.splitlines()]
    return {words[0]: printable(words[1], 64) for words in lines if len(words) > 1}

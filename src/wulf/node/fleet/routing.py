"""Let nodes reach each other over their direct links: plan the routes, make them through the guards, prove them."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from wulf.base import catalogue
from wulf.base.contracts import Transport
from wulf.base.errors import TransportError, UsageError
from wulf.base.interfaces import interface_of
from wulf.base.nodeset import fold, reasons_text
from wulf.base.records import ChangeOutcome, LinkEnd, NodeStatus
from wulf.base.text import count, is_interface, printable
from wulf.base.topology import routes as planning
from wulf.base.topology.shapes import Shape
from wulf.node.change import apply, live, routes
from wulf.node.change.connectivity import Carrying
from wulf.node.change.guard import Guards
from wulf.node.change.routes import HostRoute, NodeRoutes
from wulf.node.change.steps import Step
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.facts.capture import capture
from wulf.node.fleet import change, direct_links, missed_changes

#: No two nodes have the same routes, so they begin one after the other; each waits so much longer for the last [s].
BEGIN_S = 1
#: A shape whose routes are wanted is looked for so long [s].
EMBED_S = 10.0


class RoutingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A change of routes that may be made."""

    #: Node → the address by which the others know it.
    addresses: dict[str, str]
    #: Node → all its routes over links.
    routes: dict[str, list[HostRoute]]
    #: Node → interfaces over which packets for others come in.
    forwarding: dict[str, list[str]]
    #: Node → steps; a node that has all of it already is not in it.
    plans: dict[str, list[Step]]
    #: Links on the way → how many routes are that long.
    hops: dict[int, int]


def intend(transport: Transport, guards: Guards, config: ClusterConfig, hops: int | Shape) -> RoutingPlan:
    """Look at the nodes and plan ``direct up to hops, else the switch``; what earlier plans have more is taken away.

    Of a shape the ways are those of dimension order, between all its nodes.

    Raises
    ------
    UsageError
        `hops` is below 1, the shape is not in the links, there are none, or what the cluster file says of them does not
        suffice.
    RefusedError
        The nodes are not as the cluster file says, or their changes go through sudo, which sets no routes.
    TransportError
        A node does not answer.
    """
    planned = _planned(config, hops)
    nodes = list(config.nodes)
    _require_level(transport, config, nodes)
    now, unknown = routes.look(transport, nodes)
    if unknown:
        raise TransportError(f"nothing was changed: {reasons_text(unknown)}")
    addresses = _switch_addresses(config, now)
    ends = _ends(config, now)
    wanted = _host_routes(planned, ends, addresses)
    forwarding = {
        node: sorted(str(end.interface) for link in links for end in ends[link] if end.node == node)
        for node, links in planning.forwarded(planned).items()
    }
    plans = {}
    for status in change.status(guards, nodes):
        node = status.node
        mine = wanted.get(node, []), forwarding.get(node, [])
        steps = [*_steps(now[node], *mine), *_spare(status, *mine)]
        if steps:
            plans[node] = steps
    return RoutingPlan(
        addresses=addresses,
        routes=wanted,
        forwarding=forwarding,
        plans=plans,
        hops=Counter(one.hops for one in planned),
    )


def _planned(config: ClusterConfig, hops: int | Shape) -> list[planning.Route]:
    """Return the routes, by what the cluster file says alone."""
    if isinstance(hops, int) and hops < 1:
        raise UsageError(
            f"--routes {hops}: how many links a way may have, 1 or more ('wulf rollback' undoes routes)"
        )
    if config.transport == "local":
        raise UsageError('routes are between machines: this cluster is one (transport = "local")')
    if config.change.become is not None:
        raise change.RefusedError(
            "nothing was changed: routes are not set through sudo; set them as root "
            '([change] user = "root", without become)'
        )
    links = direct_links.pairs(config)
    if isinstance(hops, int):
        return planning.plan(links, hops)
    found = direct_links.embed(config, hops, within_s=EMBED_S)
    if found.state != "found":
        raise UsageError(f"--routes {hops}: {found.reason}")
    return planning.by_dimension(hops, found.placement, links)


def make(
    transport: Transport,
    guards: Guards,
    plan: RoutingPlan,
    *,
    deadline_s: int,
    watch: Callable[[str], None] = lambda _: None,
) -> ChangeOutcome:
    """Make the routes on all nodes, prove that every target is reached over its cable, and confirm; or put all back."""
    if not plan.plans:
        return ChangeOutcome(change="", kept=True, nodes=[])
    # The routes say which way packets take, so no interface is named.
    probe = live.EffectProbe(
        transport=transport, nodes=list(plan.plans), addresses=plan.addresses, interface=None
    )
    carries = Carrying(probe).look()

    def proofs() -> live.Reasons:
        return routes.unreached(probe, plan.routes) or carries.reasons()

    until_s = deadline_s + BEGIN_S * len(plan.plans)
    outcome = apply.change(guards, plan.plans, deadline_s=until_s, live=proofs, watch=watch)
    return change.with_notes(outcome, carries.notes())


def summary(plan: RoutingPlan) -> list[str]:
    """Return what the plan is, in a few lines for people."""
    lines = [
        f"{count(routes, 'route')} over {count(length, 'link')}"
        for length, routes in sorted(plan.hops.items())
    ]
    if plan.forwarding:
        lines.append(f"packets for others are forwarded by {fold(plan.forwarding)}")
    return lines


def _require_level(transport: Transport, config: ClusterConfig, nodes: Sequence[str]) -> None:
    """Refuse nodes that were missing from a change."""
    behind = missed_changes.behind(config, nodes)
    if behind:
        knobs = {name for entry in behind.values() for name in entry.values}
        missed_changes.require_level(
            config, capture(transport, nodes, config.interface, [catalogue.knob(name) for name in knobs])
        )


def _switch_addresses(config: ClusterConfig, now: Mapping[str, NodeRoutes]) -> dict[str, str]:
    """Return node → the address by which the others reach it through the switch; raises as `intend`."""
    found = {}
    for node, has in now.items():
        known = config.addresses.get(node, "")
        if not _is_ipv4(known):
            there = has.addresses.get(interface_of(config.interface, node) or "", [])
            if not there:
                raise UsageError(
                    f"{config.origin}: the IPv4 address of {node} behind the switch is not known: [cluster] interface "
                    "or [addresses] says it"
                )
            known = there[0].partition("/")[0]
        elif not any(
            address.partition("/")[0] == known for mine in has.addresses.values() for address in mine
        ):
            raise change.RefusedError(
                f"nothing was changed: {node} has no address {known}, as [addresses] says"
            )
        found[node] = known
    return found


def _ends(config: ClusterConfig, now: Mapping[str, NodeRoutes]) -> list[tuple[LinkEnd, LinkEnd]]:
    """Return both ends of every link with interface and address, as the nodes have them; raises as `intend`."""
    found = []
    for number, link in enumerate(config.links, start=1):
        where = f"{config.origin}: [cluster] links, link {number}"
        one, other = (_end(end, now[end.node], where) for end in link.ends)
        if (
            ipaddress.IPv4Interface(str(one.address)).network
            != ipaddress.IPv4Interface(str(other.address)).network
        ):
            raise change.RefusedError(
                f"nothing was changed: {where}: {one.node} has {one.address} and {other.node} {other.address}, "
                "which are not in one network"
            )
        found.append((one, other))
    return found


def _end(end: LinkEnd, has: NodeRoutes, where: str) -> LinkEnd:
    """Return an end with what the cluster file leaves out; raises where the node has not what it says."""
    if end.interface is None and end.address is None:
        raise UsageError(
            f"{where}: give {end.node} an interface or an address, as in {end.node}:eth1=10.1.0.1/31"
        )
    fitting = [
        (interface, address)
        for interface, addresses in has.addresses.items()
        for address in addresses
        if end.interface in (None, interface) and end.address in (None, address)
    ]
    if len(fitting) != 1:
        wanted = " on ".join(word for word in (end.address, end.interface) if word)
        there = ", ".join(f"{name} {' '.join(mine)}" for name, mine in has.addresses.items())
        raise change.RefusedError(
            f"nothing was changed: {where}: {end.node} has {'no' if not fitting else 'more than one'} address "
            f"{wanted} (it has {printable(there, 300)})"
        )
    interface, address = fitting[0]
    if not is_interface(interface):
        raise change.RefusedError(
            f"nothing was changed: {where}: {printable(interface, 40)!r} is not an interface"
        )
    return LinkEnd(node=end.node, interface=interface, address=address)


def _host_routes(
    planned: Sequence[planning.Route], ends: Sequence[tuple[LinkEnd, LinkEnd]], addresses: Mapping[str, str]
) -> dict[str, list[HostRoute]]:
    """Return node → its routes, with the addresses and interfaces of the links."""
    found: dict[str, list[HostRoute]] = {}
    for one in planned:
        near, far = sorted(ends[one.link], key=lambda end: end.node != one.node)
        route = HostRoute(
            target=addresses[one.target],
            gateway=_ip(far),
            interface=str(near.interface),
            source=addresses[one.node],
        )
        found.setdefault(one.node, []).append(route)
    return found


def _steps(now: NodeRoutes, wanted: Sequence[HostRoute], forwarding: Sequence[str]) -> Iterator[Step]:
    """Yield what a node lacks."""
    yield from (routes.forwarding(interface) for interface in forwarding if interface not in now.forwarding)
    yield from (route.step() for route in wanted if not now.has(route))


def _spare(status: NodeStatus, wanted: Sequence[HostRoute], forwarding: Sequence[str]) -> Iterator[Step]:
    """Yield what takes away what an earlier plan has set and this one has not."""
    if status.error:
        raise TransportError(f"{status.node}: {status.error}")
    targets = {route.target for route in wanted}
    for value in status.settings:
        if not value.differs:
            continue
        if value.knob.startswith(routes.ROUTE) and value.target not in targets:
            yield routes.absent(value.target)
        if value.knob.startswith(routes.FORWARDING):
            interface = value.knob.removeprefix(routes.FORWARDING)
            if interface not in forwarding:
                yield routes.forwarding(interface, on=False)


def _ip(end: LinkEnd) -> str:
    return str(end.address).partition("/")[0]


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True

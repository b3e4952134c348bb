"""Routes of nodes to single addresses, as steps of a guard; and whether they lead where they should."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from wulf.base.contracts import NodeResult, Transport
from wulf.base.text import last_line, printable
from wulf.node.change import live
from wulf.node.change.steps import NOTHING, Step

#: No route of its own: the way is that of the network.
NONE = "none"
#: What the names of these settings begin with. They are of no knob: each cluster has its own.
ROUTE, FORWARDING = "direct.route.", "direct.forwarding."
OWN = (ROUTE, FORWARDING)
_KIND = "host_route"
_FORWARDING = "/proc/sys/net/ipv4/conf/{}/forwarding"
_LOOK = (
    'export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"; '
    'command -v ip >/dev/null || { echo "ip is not installed (package iproute2)" >&2; exit 1; }; '
    "ip -o -4 address show | sed 's/^/address /'; ip -4 route show table main | sed 's/^/route /'; "
    'for file in /proc/sys/net/ipv4/conf/*/forwarding; do echo "forwarding $file $(cat $file)"; done'
)
_ADDRESS = re.compile(r"address \d+: (?P<interface>[^\s@:]+)\S*\s+inet (?P<address>[0-9./]+)")


class HostRoute(msgspec.Struct, frozen=True, kw_only=True):
    """A node's route to the address of another one."""

    #: Address.
    target: str
    #: Address of the neighbour, on the cable to it.
    gateway: str
    interface: str
    #: The node's own address, by which the target knows it.
    source: str

    @property
    def value(self) -> str:
        """The words of the route."""
        return f"via {self.gateway} dev {self.interface} src {self.source}"

    def step(self) -> Step:
        """Return the step that makes it."""
        return _route(self.target, self.value)


class NodeRoutes(msgspec.Struct, frozen=True, kw_only=True):
    """What a node has now."""

    #: Interface → its IPv4 addresses with the lengths of their prefixes.
    addresses: dict[str, list[str]]
    #: Address → the words of the route to it alone.
    routes: dict[str, str]
    #: Interfaces over which packets for others come in that are sent on.
    forwarding: frozenset[str]

    def has(self, route: HostRoute) -> bool:
        """Whether the route is there already."""
        return self.routes.get(route.target) == route.value


def absent(target: str) -> Step:
    """Return the step after which there is no route to this address alone."""
    return _route(target, NONE)


def forwarding(interface: str, *, on: bool = True) -> Step:
    """Return the step that lets packets for others in over an interface, and over no other one.

    ``net.ipv4.ip_forward`` would let them in over all of them, and set other parameters, too.
    """
    target = _FORWARDING.format(interface)
    return Step(
        knob=FORWARDING + interface, kind="file", interface=NOTHING, target=target, value=str(int(on))
    )


def look(transport: Transport, nodes: Sequence[str]) -> tuple[dict[str, NodeRoutes], dict[str, str]]:
    """Read addresses, routes and forwarding.

    Returns
    -------
    tuple of dict and dict
        Node → what it has; node → why that is not known.
    """
    answers = transport.run(["sh", "-c", _LOOK], nodes, timeout_s=live.TIMEOUT_S)
    found = {
        node: read(answer.stdout.decode(errors="replace"))
        for node, answer in answers.items()
        if _said(answer)
    }
    lacking = {
        node: last_line(answer.stderr) or answer.reason or "it does not report its addresses"
        for node, answer in answers.items()
        if not _said(answer)
    }
    return found, lacking


def read(text: str) -> NodeRoutes:
    """Return what a node says of itself."""
    addresses: dict[str, list[str]] = {}
    routes: dict[str, str] = {}
    forwards = set()
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if match := _ADDRESS.match(line):
            addresses.setdefault(match["interface"], []).append(match["address"])
        elif word == "route" and " metric " not in line:
            target, _, words = rest.partition(" ")
            routes[target.removesuffix("/32")] = " ".join(words.split())
        elif word == "forwarding" and line.endswith("/forwarding 1"):
            forwards.add(line.split("/")[-2])
    return NodeRoutes(addresses=addresses, routes=routes, forwarding=frozenset(forwards))


def unreached(effect_probe: live.EffectProbe, routes: Mapping[str, Iterable[HostRoute]]) -> live.Reasons:
    """Return the nodes that do not reach a target of their routes over the cable, and which."""
    lines = [f"{one.source} {one.target} {one.interface}" for mine in routes.values() for one in mine]
    listed = "\n".join(f"{name} {address}" for name, address in effect_probe.addresses.items())
    text = f"nodes={shlex.quote(listed)}\nroutes={shlex.quote(chr(10).join(lines))}\n{live.script()}"
    nodes = [node for node, mine in routes.items() if any(mine)]
    answers = effect_probe.transport.run(
        ["sh", "-s", "--", "reaches", "-", ""], nodes, timeout_s=live.TIMEOUT_S, stdin=text.encode()
    )
    return {node: printable(reason, 300) for node, reason in live.failed(answers).items()}


def _route(target: str, value: str) -> Step:
    return Step(knob=ROUTE + target, kind=_KIND, interface=NOTHING, target=target, value=value)


def _said(answer: NodeResult) -> bool:
    return answer.status == "ok" and b"address " in answer.stdout

"""How the nodes see each other: names, the largest frame that passes, clocks. Parsing is pure.

Clocks are compared in two ways. A ping with IP time stamps tells the difference to another node to a
millisecond, twice that at worst; it knows nothing of days. The time that the node prints, against the times at
which the controller asked and got the answer, tells it to some tenths of a second, of any size. Where the two
agree the first counts.
"""

from __future__ import annotations

import ipaddress
import re
import time
from collections.abc import Iterable, Sequence
from importlib import resources
from itertools import pairwise

import msgspec

from wulf.base.contracts import NodeResult, Transport
from wulf.base.interfaces import Interface, by_interface
from wulf.base.output_values import Unknown, number, shown, whole
from wulf.base.records import FactValue, NodeRecord
from wulf.node.facts.tree import Tree

#: So many names are looked up on every node.
_NAMES = 64
#: Exit code of timeout(1).
_TIMED_OUT = 124
_DAY_MS = 86_400_000
_PATH = ("path.peer", "path.answers", "path.mtu_bytes")


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What one node printed, and when the controller asked and got it [s since 1970]."""

    tree: Tree
    asked: float
    answered: float


def look_around(
    transport: Transport, records: Sequence[NodeRecord], interface: Interface, *, timeout_s: float = 30.0
) -> list[NodeRecord]:
    """Add ``path.*``, ``names.*`` and ``clock.*`` to the facts of the nodes that answered."""
    if interface is None:
        return [_without(record, "the cluster's interface is not known") for record in records]
    addresses = {record.node: _address(record) for record in records}
    peers = [f"{node}={address}" for node, address in addresses.items() if address][:_NAMES]
    up = [record.node for record in records if record.reachable and record.error is None]
    views: dict[str, View] = {}
    failures: dict[str, str] = {}
    asked = time.time()

    def take(result: NodeResult) -> None:
        if result.status == "ok":
            tree = Tree(result.stdout.decode("utf-8", "replace"))
            views[result.node] = View(tree=tree, asked=asked, answered=time.time())
        else:
            failures[result.node] = result.reason or result.status

    if up and peers:
        script = resources.files("wulf.node.facts").joinpath("peers.sh").read_bytes()
        for name, named in by_interface(interface, up).items():
            words = ["sh", "-s", "--", name or "", *peers]
            transport.run(words, named, timeout_s=timeout_s, stdin=script, each=take)
    middle = middle_of_clocks(views.values())
    same = _same_machine(records)
    records = [
        msgspec.structs.replace(record, facts=record.facts | {"path.same_machine": same[record.node]})
        if record.node in same
        else record
        for record in records
    ]
    return [
        with_view(record, views[record.node], middle)
        if record.node in views
        else _without(record, failures.get(record.node, "it was not asked"))
        for record in records
    ]


def with_view(record: NodeRecord, view: View, middle_s: float | None) -> NodeRecord:
    """Add to a node's facts what it sees of the others.

    Parameters
    ----------
    middle_s
        The cluster's clock against the controller's [s]; None when it is not known.
    """
    tree = view.tree
    facts: dict[str, FactValue] = {}
    unknown: dict[str, str] = {}
    try:
        facts |= _path(tree)
    except Unknown as reason:
        unknown |= dict.fromkeys(_PATH, str(reason))
    try:
        facts |= _clock(view, middle_s)
    except Unknown as reason:
        unknown["clock.offset_s"] = str(reason)
    facts |= _names(tree, record.node)
    for name, read in (("path.ssh", _ssh), ("path.ports", _ports)):
        try:
            facts |= read(tree)
        except Unknown as reason:
            unknown[name] = str(reason)
    return msgspec.structs.replace(record, facts=record.facts | facts, unknown=record.unknown | unknown)


def middle_of_clocks(views: Iterable[View]) -> float | None:
    """Return the difference to the controller's clock that most nodes can have [s]; None when none is known.

    Every node's difference lies in an interval; the point that lies in the most of them is the cluster's
    (Marzullo's algorithm, as NTP uses it).
    """
    edges = []
    for view in views:
        try:
            centre, half = _coarse(view)
        except Unknown:
            continue
        edges += [(centre - half, -1), (centre + half, 1)]
    depth = best = 0
    middle = None
    edges.sort()
    for (edge, kind), (following, _) in pairwise(edges):
        depth -= kind
        if depth > best:
            best, middle = depth, (edge + following) / 2
    return middle


def _without(record: NodeRecord, reason: str) -> NodeRecord:
    if not record.reachable or record.error is not None:
        return record
    return msgspec.structs.replace(
        record, unknown=record.unknown | dict.fromkeys((*_PATH, "clock.offset_s"), reason)
    )


def _path(tree: Tree) -> dict[str, FactValue]:
    """Return the best of the paths tried."""
    found = []
    for n in (1, 2):
        if f"path.{n}" in tree:
            peer, _, size = tree.text(f"path.{n}").partition(" ")
            found.append((whole(size, "the frame"), peer))
    if not found:
        tree.text("path")
    largest, peer = max(found, key=lambda one: one[0])
    facts: dict[str, FactValue] = {"path.peer": peer, "path.answers": largest > 0}
    if largest:
        facts["path.mtu_bytes"] = largest
    return facts


def _clock(view: View, middle_s: float | None) -> dict[str, FactValue]:
    coarse, width = _coarse(view)
    offset = coarse - (middle_s if middle_s is not None else coarse)
    try:
        fine, narrow = _fine(view.tree.lines("clock"))
    except Unknown:
        pass
    else:
        # Beyond what the coarse one can tell, the two cannot be of the same clock: midnight, or worse.
        if abs(fine - offset) <= 2 * width:
            offset, width = fine, narrow
    words = (
        f"{abs(offset) * 1e3:.0f} ms {'ahead' if offset > 0 else 'behind'}, give or take {width * 1e3:.1f} ms"
    )
    return {"clock.offset_s": offset, "clock.uncertainty_s": width, "clock.offset_words": words}


def _coarse(view: View) -> tuple[float, float]:
    """Return (the node's clock less the controller's, half of what it may be off) [s]."""
    said = number(view.tree.text("date").replace(".%N", "").replace(".N", ""), "the time")
    return said - (view.asked + view.answered) / 2, (view.answered - view.asked) / 2 + 1e-3


def _fine(lines: Sequence[str]) -> tuple[float, float]:
    """Return (this node's clock less its peer's, half of what it may be off) [s], from ``ping -T tsonly``.

    Time stamps are whole milliseconds: that of the peer less that of the sending is at most 1 ms less, and at
    most 1 ms and the round trip more, than the difference of the clocks.
    """
    lows, highs = [], []
    trip = 0.0
    for index, line in enumerate(lines):
        round_trip = re.search(r"time=([0-9.]{1,12}) ms", line)
        if round_trip:
            trip = float(round_trip[1])
        first = re.search(r"TS:\s+(-?\d{1,12}) absolute", line)
        if first and index + 1 < len(lines):
            step = re.fullmatch(r"\s*(-?\d{1,12})(?: \(.*\))?\s*", lines[index + 1])
            if step:
                peer_ahead = (int(step[1]) + _DAY_MS // 2) % _DAY_MS - _DAY_MS // 2
                lows.append(-peer_ahead - 1.0)
                highs.append(-peer_ahead + 1.0 + trip)
    if not lows:
        raise Unknown("the peer sent no time stamps")
    low, high = max(lows), min(highs)
    if low > high:
        low, high = min(lows), max(highs)
    return (low + high) / 2e3, (high - low) / 2e3


def _ssh(tree: Tree) -> dict[str, FactValue]:
    """Return by what of a peer's name and address it cannot be reached over ssh, and why; ``works`` where by both."""
    tree.require("ssh")
    said = []
    ways = tree.outputs("ssh.")
    for way in ways:
        text, code = tree.output(f"ssh.{way}")
        if code:
            lines = [line for line in text.splitlines() if line.strip()]
            why = (
                "no answer in time"
                if code == _TIMED_OUT
                else lines[-1].strip()
                if lines
                else f"exit code {code}"
            )
            said.append(f"{shown(way, 60)}: {shown(why, 120)}")
    if not ways:
        raise Unknown("there is no other node")
    return {"path.ssh": "; ".join(said) or "works"}


def _ports(tree: Tree) -> dict[str, FactValue]:
    """Return to which ports of a peer, that answers on ssh's, nothing comes through; ``works`` where all answer.

    Nobody need listen there: that a port is closed is an answer. A firewall that rejects as a closed port does cannot
    be told from one.
    """
    tree.require("ports")
    shut = []
    peer = tree.text("ports")
    for port in tree.outputs("port."):
        text, code = tree.output(f"port.{port}")
        refused = re.search(r"refused", text, re.IGNORECASE)
        if code == _TIMED_OUT:
            shut.append(f"port {port}: no answer in time")
        elif code and not refused:
            shut.append(f"port {port}: {shown(text.rpartition(':')[2].strip() or f'exit code {code}', 80)}")
    if not shut:
        return {"path.ports": "works"}
    return {"path.ports": shown(f"{peer} ({'; '.join(shut)})", 300)}


def _same_machine(records: Sequence[NodeRecord]) -> dict[str, str]:
    """Return node → the other names under which the list has the same address of the cluster's interface."""
    by_address: dict[str, list[str]] = {}
    for record in records:
        if address := _address(record):
            by_address.setdefault(address, []).append(record.node)
    return {
        node: " ".join(other for other in nodes if other != node) or "none"
        for nodes in by_address.values()
        for node in nodes
    }


def _names(tree: Tree, own: str) -> dict[str, FactValue]:
    """Return what the names of the peers mean on this node, by name, and which mean this node itself."""
    found: dict[str, FactValue] = {}
    looped: list[str] = []
    for name in tree.outputs("name."):
        address = tree.text(f"name.{name}")
        # A node's own name may mean loopback to itself: that is another check's business.
        if not address.startswith("127."):
            found[f"names.{name}"] = address or "nothing"
        elif name != own:
            looped.append(f"{name} ({address})")
    return found | {"path.loopback_names": shown(", ".join(looped), 400) or "none"}


def _address(record: NodeRecord) -> str:
    """Return a node's address, for the other nodes' ping; empty when it is none."""
    said = str(record.facts.get("nic.addresses") or "").split(" ")[0].partition("/")[0]
    try:
        return str(ipaddress.ip_address(said))
    except ValueError:
        return ""

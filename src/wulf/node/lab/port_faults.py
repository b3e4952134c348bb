"""The port of the virtual switch that a node is plugged into: how fast it is, and how much its queue holds.  Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec

from wulf.base.errors import UsageError
from wulf.base.text import printable
from wulf.base.units import parse_size
from wulf.node.lab.topology import Link, link, shaping

FORMS = "node01:queue=64KiB, node01:queue=64KiB,rate=1gbit, node01:none"
_PORT = re.compile(r"(?P<node>node\d{2}):(?P<what>none|queue=(?P<queue>[^,]+)(,rate=(?P<rate>[^,]+))?)")
#: Of a queue with no rate: slow enough to be full before this machine has passed a burst on.
USUAL_RATE = "100mbit"
#: What passes at once when nothing has come for a while: two frames, so that all else is the queue's [B].
_AT_ONCE, _SMALLEST = 3100, 4096


class Port(msgspec.Struct, frozen=True, kw_only=True):
    """What a node's port is to be."""

    node: str
    #: Bytes that it holds, with the headers of frames; 0 for the port as it was.
    queue_bytes: int = 0
    #: As `tc` writes it.
    rate: str = USUAL_RATE

    def commands(self, usual: Link, *, has_netem: bool) -> list[list[str]]:
        """Return what makes the port so, whatever it was before; `usual` is the node's cable."""
        device = f"vb-{self.node}"
        if self.queue_bytes:
            shape = ["tbf", "rate", self.rate, "burst", str(_AT_ONCE), "limit", str(self.queue_bytes)]
            return [["tc", "qdisc", "replace", "dev", device, "root", *shape]]
        return [command.split() for command in shaping(usual, device, has_netem=has_netem)]


def is_port(text: str) -> bool:
    """Whether a word is written as what a port is to be."""
    return _PORT.fullmatch(text) is not None


def parse(text: str, nodes: Collection[str]) -> Port:
    """Return what a user writes, such as ``node01:queue=64KiB``.

    Raises
    ------
    UsageError
        It is none, or of no node of this lab.
    """
    match = _PORT.fullmatch(text)
    if match is None:
        raise UsageError(f"{printable(text, 60)!r} is not about a port; write for example {FORMS}")
    if match["node"] not in nodes:
        raise UsageError(f"{text!r}: there is no such node")
    if match["queue"] is None:
        return Port(node=match["node"])
    size = parse_size(match["queue"])
    if size < _SMALLEST:
        raise UsageError(f"{text!r}: a queue holds {_SMALLEST} B or more")
    return Port(node=match["node"], queue_bytes=size, rate=str(link(rate=match["rate"] or USUAL_RATE).rate))

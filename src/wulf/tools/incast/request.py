"""What is asked: who receives, from whom, and messages of which sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from wulf.base.request import BYTES, SECONDS, Option
from wulf.node.fleet.fields import ClusterField, NodesField, SeedField

#: Messages as gathers and reductions of programs have them, and as file systems answer [B].
SIZES = (16 << 10, 64 << 10, 256 << 10)


@dataclass(frozen=True)
class IncastRequest:
    """Say from how many senders to one on transfers break down, and how deep the switch's buffer is.

    One node asks 1, 2 … all others for a message at the same time, over TCP, and has the time until all of them are
    there. That is held against what the receiver's link explains: the time of one message, and of the others one after
    the other at the rate that the link has carried. Where it takes half as long again or more, beyond noise, it is
    broken: the queue of the switch's port was full, segments were lost, and senders wait for a timeout.

    How much the queue holds is told by bursts of datagrams from all senders: all of a burst arrives as long as the
    queue has room. Segments that were sent again and timeouts are the evidence.

    Where nothing breaks, something is named in one case of a hundred. It cannot tell where transfers that take three
    times as long could not have been seen. Exit code 3 when it breaks, or when it cannot be told.
    """

    cluster: ClusterField = None
    _: KW_ONLY
    nodes: NodesField = None
    to: Annotated[str, Option("Node that receives. Default: the first one.", metavar="NODE")] = ""
    sizes_bytes: Annotated[Sequence[int], Option("Message of each sender.", unit=BYTES, separator=",")] = (
        SIZES
    )
    budget_s: Annotated[float, Option("Time for measuring.", unit=SECONDS)] = 180.0
    seed: SeedField = None

"""What many flows between nodes met, and which part of the network makes them suffer."""

from __future__ import annotations

from typing import Literal

from wulf.base.errors import EXIT_FINDINGS
from wulf.base.records.base import Estimate, Pair, Record
from wulf.base.records.flows import FlowSeen

Metric = Literal["latency", "loss", "rate"]
#: How flows are spread over paths: by switches that route, below them (LACP), not at all as far as is known.
Spread = Literal["ECMP", "below the routes", "one path", "unknown"]


class PathEffect(Record, frozen=True, kw_only=True):
    """How much worse flows are that pass a part of the network."""

    metric: Metric
    #: Latency [s] that a round trip takes more, share of packets that are lost, time of a stream ÷ usual time.
    value: Estimate
    #: Chance of it where all paths are alike.
    p_value: float


class Way(Record, frozen=True, kw_only=True):
    """A part of the network: a switch, or a link in the direction in which packets pass it."""

    #: One address of a switch, or two ends of a link: addresses of switches, or nodes.
    hops: list[str]
    #: As the nodes' name service calls them; the same as `hops` where it has no name.
    names: list[str]


class Reproduction(Record, frozen=True, kw_only=True):
    """A flow that shows it, beside one that does not."""

    nodes: Pair
    protocol: Literal["udp", "tcp"]
    #: Source port and destination port.
    port: int
    to_port: int
    #: A source port between the same nodes that is well; null where none is.
    well_port: int | None
    #: What to run on the second node, then on the first: of wulf's own probe, and of iperf3.
    probe: list[str]
    plain: list[str]


class Culprit(Record, frozen=True, kw_only=True):
    """A part of the network that makes flows suffer."""

    #: What it is: any of these, where flows that pass one pass the others; empty where the way of flows is not known.
    ways: list[Way]
    effects: list[PathEffect]
    #: Pairs with flows that suffer, the first node sending.
    pairs: list[Pair]
    #: Nodes that all these pairs have in common.
    common: list[str]
    #: Of the one node that they have in common: its bond, such as ``802.3ad, layer3+4``; empty where it has none, null
    #: where that is not known, or where there is no such node.
    bond: str | None = None
    #: Flows of these pairs that suffer, and all of these pairs.
    suffering: int
    flows: int
    reproduction: Reproduction | None

    @property
    def share(self) -> float:
        """Share of the flows of these pairs that suffer."""
        return self.suffering / max(self.flows, 1)


class Sight(Record, frozen=True, kw_only=True):
    """How bad a path has to be to be found in nine cases out of ten."""

    metric: Metric
    #: As `PathEffect.value`; null where none could be named.
    visible: float | None
    wanted: float

    @property
    def is_clear(self) -> bool:
        """Whether what has to be seen would have been."""
        return self.visible is not None and self.visible <= self.wanted


class MpiExposure(Record, frozen=True, kw_only=True):
    """What that means for a job with a TCP connection between each two nodes."""

    connections: int
    #: How many of them suffer, as many as on average, and the chance that any does.
    suffering: float
    any: float


class Switch(Record, frozen=True, kw_only=True):
    """A switch that has answered."""

    address: str
    name: str
    #: How far it is from the nearest node, the first one being 1.
    hop: int


class Paths(Record, frozen=True, kw_only=True):
    """Which path is bad."""

    schema_version: int
    nodes: list[str]
    pairs: list[Pair]
    #: Pair, or why it was not measured.
    missing: dict[str, str]
    spread: Spread
    #: Why flows may not be spread over all paths: nodes, and what their bonds do.
    remarks: list[str]
    switches: list[Switch]
    culprits: list[Culprit]
    sights: list[Sight]
    mpi: MpiExposure
    #: Of all pairs, as they were measured.
    seen: list[FlowSeen]
    #: Address of each node, and where its probe is.
    addresses: dict[str, str]
    probes: dict[str, str]

    @property
    def untold(self) -> list[Sight]:
        """What could not have been seen, where nothing was."""
        return [] if self.culprits else [sight for sight in self.sights if not sight.is_clear]

    @property
    def fine(self) -> bool:
        """Whether no path is bad, as far as had to be seen."""
        return not self.culprits and not self.untold and not self.missing


def exit_code(found: Paths) -> int:
    """Return the exit code: whether there is something to look at."""
    return 0 if found.fine else EXIT_FINDINGS

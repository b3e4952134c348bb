"""Which nodes hang on one switch."""

from __future__ import annotations

from typing import Literal

from wulf.base.errors import EXIT_FINDINGS
from wulf.base.records.base import Record

Source = Literal["neighbours", "ways", "times"]
#: Each of them in words.
SOURCES: dict[Source, str] = {
    "neighbours": "what ports hear of their switch (LLDP)",
    "ways": "the switches on the way between nodes",
    "times": "times of small messages",
}
#: What the switch is called that connects all others.
TOP = "top"


class InferredSwitch(Record, frozen=True, kw_only=True):
    """A switch, or several that nothing tells apart, with all nodes below it."""

    #: Its own where it says one, else made up.
    name: str
    nodes: list[str]
    #: Names of the switches of the level below; empty in the lowest level.
    switches: list[str]


class InferredLevel(Record, frozen=True, kw_only=True):
    """One level of switches."""

    switches: list[InferredSwitch]
    source: Source
    #: Share of the pairs that agree with it, or how often it comes out of the times again; 1 of what ports hear.
    confidence: float


class InferredFabric(Record, frozen=True, kw_only=True):
    """The tree of switches, as far as it shows."""

    schema_version: int
    nodes: list[str]
    #: The lowest first; empty where it cannot be told.
    levels: list[InferredLevel]
    #: Why it cannot be told, or what is not known.
    remarks: list[str]
    #: Slurm's topology.conf, and the nodes in the order of the tree, a line each.
    topology_conf: str
    hostfile: str


def exit_code(found: InferredFabric) -> int:
    """Return the exit code: whether it could be told."""
    return 0 if found.levels else EXIT_FINDINGS

"""What is wrong with a network, and where."""

from __future__ import annotations

from typing import Literal

from wulf.records.base import Record

#: ``sending`` and ``receiving``: a node in one direction; ``group``: nodes with something between them and the others.
Kind = Literal["node", "link", "sending", "receiving", "group"]


class Suspect(Record, frozen=True, kw_only=True):
    """A part of the network that is slower than its like."""

    kind: Kind
    nodes: list[str]
    #: How much longer a message takes there, as a share of the time between others.
    slower: float
    #: Scatter of what is well, in logarithms of times.
    scatter: float
    #: Chance of it where all are alike, all that was looked at being counted.
    p_value: float


class Matrix(Record, frozen=True, kw_only=True):
    """The times between all pairs at one size, and what they say."""

    op: str
    size_bytes: int
    #: Typical time between two nodes [s].
    typical_s: float
    #: Scatter between nodes that are alike, in logarithms.
    scatter: float
    pairs: int
    #: Pairs of these nodes that were not measured.
    missing: int
    #: The worst first.
    suspects: list[Suspect]


class Diagnosis(Record, frozen=True, kw_only=True):
    """What a run says of the nodes and links that it measured."""

    #: Name of the run.
    run_id: str
    nodes: list[str]
    #: By operation and size.
    matrices: list[Matrix]
    #: Slower by less is not said, as a share.
    margin: float
    #: Node → what its link says of its speed, where that is known.
    link_bits_per_s: dict[str, float] = {}

    @property
    def fine(self) -> bool:
        """Whether nothing is suspected."""
        return not any(matrix.suspects for matrix in self.matrices)

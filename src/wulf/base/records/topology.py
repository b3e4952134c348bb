"""Direct links between nodes, and the shapes that embed in them."""

from __future__ import annotations

from typing import Literal

from wulf.base.records.base import Record


class LinkEnd(Record, frozen=True, kw_only=True):
    """One end of a direct link."""

    node: str
    #: Interface that it is plugged into; null where the cluster file does not say.
    interface: str | None = None
    #: Address of that interface with the length of its network's prefix, such as ``10.1.0.1/31``; null as before.
    address: str | None = None


class DirectLink(Record, frozen=True, kw_only=True):
    """A cable between two nodes, beside the switch."""

    #: Two.
    ends: tuple[LinkEnd, LinkEnd]

    @property
    def nodes(self) -> tuple[str, str]:
        """The two nodes."""
        return self.ends[0].node, self.ends[1].node


class Embedding(Record, frozen=True, kw_only=True):
    """Whether a shape is there in the direct links, and where."""

    #: Such as ``torus:4x2``; a kind alone (``torus``) where there is none of any size.
    shape: str
    #: ``not found``: the search was ended before it was over, so there may be one.
    state: Literal["found", "none", "not found"]
    #: Node of every rank; ranks are numbered as ``MPI_Cart_create`` does. Empty unless found.
    placement: list[str] = []
    #: Why there is none, or how long it was looked for; empty when found.
    reason: str = ""


class LinkTopology(Record, frozen=True, kw_only=True):
    """What the direct links of a cluster make."""

    nodes: list[str]
    links: list[DirectLink]
    #: Of every kind of shape the largest that are there; before them larger ones whose search was ended.
    embeddings: list[Embedding]

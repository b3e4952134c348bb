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

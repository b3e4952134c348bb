"""What all records share."""

from __future__ import annotations

from typing import Literal

import msgspec

SCHEMA_VERSION = 2

Setting = str
#: Two nodes; the first one measures.
Pair = tuple[str, str]
#: Who takes part: the node of every rank, in rank order. Two are a pair; a node with several ranks is there several
#: times.
Place = tuple[str, ...]
FactValue = str | int | float | bool | None
#: "mixed" is only said of whole runs: some operations are better, some worse. "different" is only said of two runs:
#: they differ, by no more than the same thing may on another day.
Verdict = Literal["better", "worse", "no difference", "no decision", "mixed", "different"]


#: Facts that every node has of its own: that they differ between nodes says nothing.
OWN_FACTS = frozenset(
    {
        "node.hostname",
        "network.addresses",
        "network.own_name",
        "network.routes",
        "nic.addresses",
        "nic.peer",
        "nic.device",
        "nic.carrier_changes",
        "cpu.allowed",
        "irq.affinity",
    }
)
#: Facts of the moment: that they differ between two looks says nothing.
PASSING_FACTS = frozenset(
    {
        "node.up_s",
        "node.load1",
        "node.load_per_cpu",
        "cpu.steal_ratio",
        "nic.interrupts_per_s",
        "nic.interrupt_queues",
        "nic.interrupt_cpus",
        "nic.interrupts_on",
        "network.errors",
        "network.drops",
        "network.backlog_drops",
        "network.budget_squeezes",
        "network.resolve_s",
        "network.retransmitted_ratio",
        "firewall.tracked_connections",
        "time.offset_s",
        "look.counters_s",
        "look.machine_s",
        "look.network_s",
        "look.firewall_s",
        "look.services_s",
        "look.files_s",
        "look.mpi_s",
        "look.counters_again_s",
    }
)


#: Of a record, and of a text within it, so much is shown where it is printed [characters].
_SHOWN, _TEXT, _FEW = 300, 40, 3


def _brief(value: object) -> str:
    """Return a value as it is shown within a record."""
    if isinstance(value, Estimate):
        return f"{value.value:.4g} {value.unit}" + (
            f" ({value.low:.4g} to {value.high:.4g})"
            if value.low is not None and value.high is not None
            else ""
        )
    if isinstance(value, Record):
        return f"{type(value).__name__}(…)"
    if isinstance(value, str) and len(value) > _TEXT:
        return repr(value[:_TEXT]) + "…"
    if isinstance(value, list | tuple | dict) and (len(value) > _FEW or any(map(_is_large, value))):
        return f"<{len(value)}>"
    return repr(value)


def _is_large(value: object) -> bool:
    return isinstance(value, Record | list | tuple | dict) or (isinstance(value, str) and len(value) > _TEXT)


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Base of all records: immutable, keyword-only, tolerant of fields of later versions."""

    def __repr__(self) -> str:
        """Return the class with its fields on one line: of what is large only how much it is."""
        shown = ""
        for name in self.__struct_fields__:
            more = f"{', ' if shown else ''}{name}={_brief(getattr(self, name))}"
            if len(shown) + len(more) > _SHOWN:
                return f"{type(self).__name__}({shown}, …)"
            shown += more
        return f"{type(self).__name__}({shown})"


class Estimate(Record, frozen=True, kw_only=True):
    """A figure with its interval. No number leaves the statistics without one."""

    #: The figure.
    value: float
    #: Lower bound of the interval; null when it is not determined.
    low: float | None
    #: Upper bound of the interval; null when it is not determined.
    high: float | None
    #: Of the interval (0.95).
    confidence: float
    #: ``s``, ``B/s``, ``s/B``, ``B``, ``1/s`` or ``ratio``.
    unit: str
    #: Number of independent replicates (launches) behind it.
    n: int
    #: How the figure and its interval were made.
    method: str

    @property
    def half_width_ratio(self) -> float | None:
        """Half the interval's width relative to the value; None when unknown."""
        if self.low is None or self.high is None or self.value == 0:
            return None
        return (self.high - self.low) / 2 / abs(self.value)

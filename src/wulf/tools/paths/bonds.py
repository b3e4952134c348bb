"""What the bonds of nodes do with the flows between two of them, as facts say.  Pure.

Source: kernel documentation, networking/bonding.rst (mode, xmit_hash_policy, tlb_dynamic_lb).
"""

from __future__ import annotations

from wulf.base.records import NodeRecord
from wulf.base.text import printable

#: Modes with a transmit hash, and the hashes that take ports.
_HASHED = ("802.3ad", "balance-xor")
_BY_PORTS = ("layer3+4", "encap3+4")
#: The mode with a standby: what comes takes the same member, too.
ONE_MEMBER = "active-backup"
#: What flows from one node to another meet in other modes.
_MEET = {
    ONE_MEMBER: "sends all by one member: no flow shows another",
    "balance-rr": "spreads packets, not flows, over its members: a faulty one makes all flows worse, and does not show",
    "broadcast": "sends every packet by all members: a faulty one does not show",
    "balance-tlb": "may choose a member for each node, not by ports: a faulty one may not show",
    "balance-alb": "chooses a member for each node, not by ports: a faulty one does not show",
}


def bond(record: NodeRecord) -> str | None:
    """Return a node's bond, such as ``802.3ad, layer3+4``; empty where it has none, None where that is not known."""
    mode = record.facts.get("nic.bond_mode")
    if mode is not None:
        words = [mode, record.facts.get("nic.bond_hash")] if mode in _HASHED else [mode]
        return ", ".join(printable(str(word), 40) for word in words if word is not None)
    return "" if "nic.bond_mode" in record.absent and not _has_team(record) else None


def spreads(record: NodeRecord) -> bool:
    """Whether a node's bond spreads the flows to one other node over its members."""
    return record.facts.get("nic.bond_mode") in _HASHED and record.facts.get("nic.bond_hash") in _BY_PORTS


def remark(record: NodeRecord) -> str:
    """Return why a faulty member of a node's bond may not show; empty where it does."""
    if _has_team(record):
        return "its team of interfaces chooses a member by a rule that is not known here"
    mode = record.facts.get("nic.bond_mode")
    if mode is None or spreads(record):
        return ""
    if mode not in _HASHED:
        said = _MEET.get(str(mode), "chooses its members in a way that is not known here")
        return f"its bond ({printable(str(mode), 40)}) {said}"
    by = record.facts.get("nic.bond_hash")
    if by is None:
        why = printable(record.unknown.get("nic.bond_hash", ""), 100)
        return f"by what its bond chooses a member is not known: {why}"
    return (
        f"its bond chooses a member by {printable(str(by), 40)}, not by ports: what it sends to one node takes one "
        "member, and a faulty one does not show here"
    )


def _has_team(record: NodeRecord) -> bool:
    return "(team" in str(record.facts.get("nic.stack", "")) or record.facts.get("nic.kind") == "team"

"""Which nodes a diagnosis calls bad, in the words in which Slurm keeps why a node is drained.  Pure."""

from __future__ import annotations

from collections.abc import Mapping

from wulf.base.records.diagnosed import Diagnosis, Suspect
from wulf.base.text import printable
from wulf.base.units import format_bytes
from wulf.node.cluster.names import check_node_name

#: Of these one node is to blame; a link or a group is no node that could be taken out.
_OF_A_NODE = frozenset({"node", "sending", "receiving"})
#: Slurm shows no more of a reason in one line of ``sinfo``.
_LONGEST = 120


def reasons(found: Diagnosis) -> dict[str, str]:
    """Return why each bad node is to be drained; the worst of several reasons."""
    worst: dict[str, tuple[float, str]] = {}
    for matrix in found.matrices:
        for suspect in matrix.suspects:
            if suspect.kind in _OF_A_NODE and len(suspect.nodes) == 1:
                node = check_node_name(suspect.nodes[0])
                what = f"{matrix.op} {format_bytes(matrix.size_bytes)}"
                if suspect.slower > worst.get(node, (0.0, ""))[0]:
                    worst[node] = suspect.slower, _reason(found.run_id, suspect, what)
    return {node: reason for node, (_, reason) in sorted(worst.items())}


def together(reasons: Mapping[str, str]) -> list[tuple[list[str], str]]:
    """Return the nodes that have a reason in common."""
    alike: dict[str, list[str]] = {}
    for node, reason in reasons.items():
        alike.setdefault(reason, []).append(node)
    return [(nodes, reason) for reason, nodes in alike.items()]


def _reason(run: str, suspect: Suspect, what: str) -> str:
    direction = "" if suspect.kind == "node" else f" {suspect.kind}"
    said = f"wulf diagnose {run}: {1 + suspect.slower:.2f} x slower{direction} than comparable nodes, {what}"
    return printable(said, _LONGEST)

"""Which remedies cannot be tried on some nodes, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wulf.base.contracts import Transport
from wulf.base.nodeset import fold
from wulf.base.records import NodeRecord
from wulf.base.text import printable
from wulf.node.change import steps
from wulf.tools.incast.record import RemedyKind
from wulf.tools.incast.remedies import SETTINGS

#: Algorithms whose modules are not loaded are not listed: the kernel loads them when they are set. In a container only
#: those can be set that everybody may use.
_OFFERS = (
    "list=available load=modprobe; systemd-detect-virt -cq 2>/dev/null && list=allowed load=false; "
    "PATH=$PATH:/sbin:/usr/sbin; for one; do grep -qw $one /proc/sys/net/ipv4/tcp_${list}_congestion_control || "
    "$load -n -q tcp_$one || echo $one; done"
)
_ALGORITHM = "net.ipv4.tcp_congestion_control"
_WITHIN_S = 15.0


def lacking(transport: Transport, records: Sequence[NodeRecord]) -> dict[RemedyKind, str]:
    """Return the remedies that cannot be tried on all of these nodes: kind → nodes and what they lack.

    A remedy that a node does not say anything of may be tried: its guard refuses what is not there.
    """
    wanted = {kind: steps.parse([setting])[0] for kind, setting in SETTINGS.items()}
    absent = _absent(transport, records, [one.value for one in wanted.values() if _is_algorithm(one)])
    found: dict[RemedyKind, str] = {}
    for kind, setting in wanted.items():
        reasons: dict[str, list[str]] = {}
        for record in records:
            why = steps.obstacle(setting, record, take_over=False, relax=False)
            if not why and _is_algorithm(setting) and setting.value in absent.get(record.node, ()):
                why = f"the kernel offers no {setting.value} there"
            if why:
                reasons.setdefault(why, []).append(record.node)
        if reasons:
            found[kind] = "; ".join(f"{fold(nodes)}: {printable(why, 200)}" for why, nodes in reasons.items())
        elif all(steps.fulfilled_on(setting, record) for record in records):
            found[kind] = f"all nodes have {setting} already"
    return found


def _is_algorithm(setting: steps.KnobSetting) -> bool:
    return setting.knob.access.target == _ALGORITHM


def _absent(
    transport: Transport, records: Sequence[NodeRecord], algorithms: Sequence[str]
) -> Mapping[str, Sequence[str]]:
    """Return the algorithms that the kernels of nodes do not have."""
    answers = transport.run(
        ["sh", "-c", _OFFERS, "sh", *algorithms], [record.node for record in records], timeout_s=_WITHIN_S
    )
    return {
        node: answer.stdout.decode(errors="replace").split()
        for node, answer in answers.items()
        if answer.status == "ok"
    }

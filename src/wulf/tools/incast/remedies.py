"""What helps where too many send to one, and what it would do here.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec

from wulf.base.text import count
from wulf.base.units import format_bytes, format_value
from wulf.tools.incast.record import Cliff, Depth, IncastCell, Remedy, RemedyKind

#: A window is whole pages, and no smaller than a few segments [B].
_PAGE, _LEAST = 1024, 4096
#: Kind, what it does, and the setting that tries it.
_USUAL: tuple[tuple[RemedyKind, str, str], ...] = (
    (
        "shorter timeout",
        "a lost segment that nothing follows is sent again after 200 ms; with a timeout of 5 ms that is a fortieth of "
        "the time. No less is lost",
        "route.rto_min",
    ),
    (
        "ECN",
        "DCTCP keeps the queue short where the switch marks packets (ECN) before it is full; without marks it changes "
        "nothing",
        "sysctl.net.ipv4.tcp_congestion_control=dctcp",
    ),
    (
        "pacing",
        "BBR spreads a sender's segments over a round trip, as the queue fq does for other algorithms (on interfaces "
        "that are made after it is the default): it helps few senders of large messages, and hardly many of small ones",
        "sysctl.net.ipv4.tcp_congestion_control=bbr",
    ),
    (
        "pause frames",
        "senders wait instead of losing, if NICs and switches agree on it; other traffic through these ports waits, "
        "too",
        "nic.pause='on on'",
    ),
)


#: By kind, a setting such as the command tries.
SETTINGS: Mapping[RemedyKind, str] = MappingProxyType(
    {kind: knob.replace("'", "") for kind, _, knob in _USUAL}
    | {"shorter timeout": "route.rto_min=5", "smaller windows": "sysctl.net.ipv4.tcp_rmem=4096 8192 8192"}
)


def remedies(
    found: Sequence[IncastCell],
    broken: Sequence[Cliff],
    deep: Depth,
    lacking: Mapping[RemedyKind, str] = MappingProxyType({}),
) -> list[Remedy]:
    """Return what could help, with what it would do here; nothing where nothing breaks.

    Parameters
    ----------
    lacking
        Kind → why it cannot be tried on these nodes.
    """
    if not broken:
        return []
    return [
        msgspec.structs.replace(one, command="", lacking=lacking[one.kind]) if one.kind in lacking else one
        for one in _remedies(found, broken, deep)
    ]


def _remedies(found: Sequence[IncastCell], broken: Sequence[Cliff], deep: Depth) -> Iterator[Remedy]:
    worst = max(broken, key=lambda cliff: cliff.ratio.value)
    most = max(cell.senders for cell in found)
    cell = next(one for one in found if (one.senders, one.size_bytes) == (most, worst.size_bytes))
    yield Remedy(
        kind="fewer at a time",
        does=f"{worst.senders - 1} at a time with {format_bytes(worst.size_bytes)} each hold. {most} in turns would "
        f"take about {format_value(cell.expected_s, 's')}; at once they take {format_value(cell.time.value, 's')}. A "
        "gather along a tree does that",
        command="wulf tune collectives",
    )
    if deep.bytes is not None:
        each = max(int(deep.bytes.value / most) // _PAGE * _PAGE, _LEAST)
        yield Remedy(
            kind="smaller windows",
            does=f"{format_bytes(each)} on the way from each of {count(most, 'sender')} fit into the queue: receive "
            "windows of that size lose nothing, and cost bandwidth where round trips are long",
            command=_tune(f"sysctl.net.ipv4.tcp_rmem='4096 {each} {each}'"),
        )
    for kind, does, knob in _USUAL:
        yield Remedy(kind=kind, does=does, command=_tune(knob))


def _tune(knob: str) -> str:
    return f'wulf tune --objective incast --knobs "{knob}"'

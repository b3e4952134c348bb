"""What usually makes a curve bend at a size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from wulf.base.units import format_bytes

EAGER = "eager limit"
#: What Open MPI calls a limit of one of its ways to send, and of one within a node.
_WAY, _INSIDE = re.compile("btl_"), re.compile("^btl_(self|sm|vader|smcuda)_")
NO_LIMITS: Mapping[str, int] = MappingProxyType({})
#: (payload [B], protocols it is about, cause). Sources: the libraries' own documentation (ompi_info --all, MPICH's
#: README.envvar), header lengths of RFC 768, 791, 9293 and 7323, Linux Documentation/networking/ip-sysctl.
CAUSES: tuple[tuple[int, frozenset[str], str], ...] = (
    (1448, frozenset({"tcp", "mpi"}), "MTU 1500 (one TCP segment with time stamps)"),
    (1460, frozenset({"tcp", "mpi"}), "MTU 1500 (one TCP segment)"),
    (1472, frozenset({"udp"}), "MTU 1500 (one UDP datagram)"),
    (4096, frozenset({"tcp", "udp", "mpi"}), "memory page of 4 KiB"),
    (4096, frozenset({"mpi"}), "eager limit of 4 KiB"),
    (8192, frozenset({"mpi"}), "eager limit of 8 KiB"),
    (8948, frozenset({"tcp", "mpi"}), "MTU 9000 (one TCP segment with time stamps)"),
    (8960, frozenset({"tcp", "mpi"}), "MTU 9000 (one TCP segment)"),
    (8972, frozenset({"udp"}), "MTU 9000 (one UDP datagram)"),
    (16384, frozenset({"tcp", "mpi"}), "first socket send buffer of 16 KiB (tcp_wmem)"),
    (32768, frozenset({"mpi"}), "eager limit of 32 KiB"),
    (65536, frozenset({"mpi"}), "eager limit of 64 KiB (btl_tcp_eager_limit of Open MPI)"),
    (65536, frozenset({"tcp", "mpi"}), "largest segment offload, 64 KiB"),
    (131072, frozenset({"mpi"}), "eager limit of 128 KiB"),
    (131072, frozenset({"tcp", "mpi"}), "first socket receive buffer of 128 KiB (tcp_rmem)"),
    (212992, frozenset({"tcp", "udp", "mpi"}), "socket buffer limit (net.core.rmem_max)"),
    (262144, frozenset({"mpi"}), "eager limit of 256 KiB"),
)
#: An MPI library adds its own header to a message, so that the step comes a little before the limit.
_HEADER_BYTES = {"mpi": 128, "tcp": 0, "udp": 0}
#: A break that is only known to lie within a factor of this may have too many causes to name one.
_WIDEST = 1.25


def likely_cause(op: str, low: int, high: int, eager_limits: Mapping[str, int] = NO_LIMITS) -> str | None:
    """Name what may cause a break between two sizes; None when nothing known lies there, or too much may.

    Parameters
    ----------
    op
        Operation; what stands before its underscore is the protocol.
    low, high
        Measured sizes on either side of the break [B].
    eager_limits
        What the MPI library in use says of its own limits: name → size [B]; where there are any, usual limits of
        libraries are not named.
    """
    protocol = op.partition("_")[0]
    if low <= 0 or high > max(_WIDEST * low, low + 1):
        return None
    header = _HEADER_BYTES.get(protocol, 0)
    own = list(limits_between(low, high, eager_limits)) if protocol == "mpi" else []
    usual = [
        cause
        for size, about, cause in CAUSES
        if protocol in about and low <= size < high + header and not (eager_limits and EAGER in cause)
    ]
    found = [f"{EAGER} {name} = {format_bytes(eager_limits[name])}" for name in own] + usual
    return f"likely: {' or '.join(found)}" if found else None


def limits_of(eager_limits: Mapping[str, int], place: Sequence[str]) -> dict[str, int]:
    """Return the limits that can hold between the ranks of a place: those of one node use no network, others do.

    Open MPI says those of all its ways to send (btl), whichever it uses.
    """
    inside = len(set(place)) == 1
    return {
        name: size
        for name, size in eager_limits.items()
        if inside is bool(_INSIDE.search(name)) or not _WAY.match(name)
    }


def limits_between(low: int, high: int, eager_limits: Mapping[str, int]) -> Iterator[str]:
    """Yield the limits of the MPI library that may lie between two sizes [B], its own header counted."""
    for name, limit in eager_limits.items():
        if low <= limit < high + _HEADER_BYTES["mpi"]:
            yield name

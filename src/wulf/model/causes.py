"""What usually makes a curve bend at a size."""

from __future__ import annotations

#: (payload size [B], cause). Sources: the libraries' own documentation (ompi_info --all, MPICH's README.envvar),
#: RFC 791/793/768 header lengths, Linux Documentation/networking/ip-sysctl.
CAUSES: tuple[tuple[int, str], ...] = (
    (1448, "MTU 1500: one TCP segment with time stamps"),
    (1460, "MTU 1500: one TCP segment"),
    (1472, "MTU 1500: one UDP datagram"),
    (2048, "receive buffer of 2 KiB"),
    (4096, "memory page, or an eager limit of 4 KiB"),
    (8192, "eager limit of 8 KiB"),
    (8948, "MTU 9000: one TCP segment with time stamps"),
    (8960, "MTU 9000: one TCP segment"),
    (8972, "MTU 9000: one UDP datagram"),
    (16384, "socket send buffer (tcp_wmem), or an eager limit of 16 KiB"),
    (32768, "eager limit of 32 KiB"),
    (65536, "eager limit of 64 KiB (Open MPI's btl_tcp_eager_limit), or a segmentation offload of 64 KiB"),
    (131072, "eager limit of 128 KiB, or the socket receive buffer (tcp_rmem)"),
    (212992, "socket buffer limit (net.core.rmem_max)"),
    (262144, "eager limit of 256 KiB, or a cache"),
)
#: MPI adds its own header to a message, so the step comes a little before the limit.
_HEADER_BYTES = 128


def likely_cause(low: int, high: int) -> str | None:
    """Name what may cause a break between two sizes [B]; None when nothing known lies there.

    The break must lie at the size, or less than a message header before it.
    """
    found = [cause for size, cause in CAUSES if low <= size <= high + _HEADER_BYTES and high >= size // 2]
    return f"likely: {found[0]}" if len(found) == 1 or (found and high <= 4 * low) else None

"""The arithmetic: payload of a full segment over what it takes on the wire."""

from __future__ import annotations

from wulf.tools.goodput.record import Goodput, OfMtu
from wulf.tools.goodput.request import GoodputRequest

from wulf.base.records import SCHEMA_VERSION
from wulf.base.tool import Progress

#: IPv4 and TCP without options, and time stamps with what aligns them [B].
_HEADERS, _TIMESTAMPS = 20 + 20, 12
#: Preamble, Ethernet header, checksum and gap between frames [B] (IEEE 802.3).
_FRAMING = 8 + 14 + 4 + 12


def goodput(request: GoodputRequest, progress: Progress) -> Goodput:
    """Return the goodput of each MTU."""
    progress(f"{len(request.mtu)} sizes of frames")
    headers = _HEADERS + (_TIMESTAMPS if request.timestamps else 0)
    shares = {mtu: (mtu - headers) / (mtu + _FRAMING) for mtu in request.mtu}
    line_bytes_per_s = request.mbits_per_s * 1e6 / 8
    return Goodput(
        schema_version=SCHEMA_VERSION,
        line_bytes_per_s=line_bytes_per_s,
        by_mtu=[OfMtu(mtu, share * line_bytes_per_s, share) for mtu, share in shares.items()],
    )

"""What is asked: of which frames, at which line rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from wulf.base.errors import UsageError
from wulf.base.request import Option


@dataclass(frozen=True)
class GoodputRequest:
    """Say what the headers of Ethernet, IP and TCP leave of a link's line rate."""

    mtu: Annotated[Sequence[int], Option("MTU [B]. May be repeated.", metavar="BYTES")] = (1500, 9000)
    mbits_per_s: Annotated[float, Option("Line rate [Mbit/s].", names=("--rate",), least=1)] = 1000.0
    timestamps: Annotated[
        bool, Option("Without TCP's time stamps, which take 12 B.", names=("--no-timestamps",))
    ] = True

    def __post_init__(self) -> None:
        small = next((mtu for mtu in self.mtu if not 576 <= mtu <= 65_535), None)
        if small is not None:
            raise UsageError(f"--mtu {small}: between 576 and 65535 B")

"""What is asked: between whom, at which frame sizes, how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from wulf.base.errors import UsageError
from wulf.base.request import BYTES, SECONDS, SHARE, Option
from wulf.node.fleet.fields import ClusterField, SeedField

#: Frame sizes of RFC 2544, section 9.1 [B].
FRAMES = (64, 128, 256, 512, 1024, 1280, 1518)
#: What a frame has beside the datagram: Ethernet's header and check, those of IP and of UDP [B].
OVERHEAD = 14 + 4 + 20 + 8
#: Sizes between which a datagram has room for what the probe writes into it, and needs one frame [B].
SMALLEST, LARGEST = 64, 9018
#: Trials of the study of Sales, Sari and Westphall: 70 s, 20 repetitions.
LONG_S, LONG_REPETITIONS = 70.0, 20


@dataclass(frozen=True)
class Rfc2544Request:
    """RFC 2544: the highest rate without loss, loss by rate, the longest burst, latency at that rate.

    UDP datagrams from one node to another, as frames of these sizes. The highest rate without loss is found by
    bisection (26.1), along with what the sender itself can do; then the loss at tenths of that rate (26.3), the
    longest back-to-back burst that arrives complete (26.4) and the depth of the buffer that follows from it (RFC
    9004), and the round-trip time while frames are sent at the rate without loss (26.2). A node is not a device under
    test with two ports: the results are those of both nodes and everything between them.

    Exit code 3 when something could not be found.
    """

    cluster: ClusterField = None
    _: KW_ONLY
    pair: Annotated[
        str, Option("Two nodes: the first sends. Default: the first two.", metavar="NODE:NODE")
    ] = ""
    frames_bytes: Annotated[
        Sequence[int],
        Option("Frame sizes, including Ethernet header and checksum.", unit=BYTES, separator=","),
    ] = FRAMES
    trial_s: Annotated[float, Option("Length of a trial; the RFC says 60s.", unit=SECONDS)] = 3.0
    repetitions: Annotated[
        int, Option("Trials at the rate and burst that are found; an interval needs 6.", least=1)
    ] = 6
    long: Annotated[bool, Option("The preset of a study: trials of 70 s, 20 repetitions.")] = False
    precision: Annotated[float, Option("Precision to which the rate is searched.", unit=SHARE)] = 0.01
    most_mbit_s: Annotated[
        int, Option("Highest rate to try [Mbit/s of datagrams].", least=1, most=100_000)
    ] = 100_000
    longest: Annotated[int, Option("Longest burst to try [frames].", least=1, most=1_000_000)] = 20_000
    seed: SeedField = None

    def __post_init__(self) -> None:
        """Refuse frames that no datagram fits into.

        Raises
        ------
        UsageError
            Names the size.
        """
        for size in self.frames_bytes:
            if not SMALLEST <= size <= LARGEST:
                raise UsageError(f"--frames {size}B: between {SMALLEST} and {LARGEST}")

    @property
    def length_s(self) -> float:
        """Length of a trial [s]."""
        return LONG_S if self.long else self.trial_s

    @property
    def times(self) -> int:
        """Trials at what is found."""
        return LONG_REPETITIONS if self.long else self.repetitions

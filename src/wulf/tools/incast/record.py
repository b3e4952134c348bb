"""From how many senders on transfers to one receiver break down, and how deep the buffer before it is."""

from __future__ import annotations

from typing import Literal

from wulf.base.errors import EXIT_FINDINGS
from wulf.base.records.base import Estimate, Record

RemedyKind = Literal["fewer at a time", "smaller windows", "shorter timeout", "ECN", "pacing", "pause frames"]


class IncastCell(Record, frozen=True, kw_only=True):
    """So many senders, each with a message of so many bytes."""

    senders: int
    size_bytes: int
    #: Mean time until all messages are there.
    time: Estimate
    #: What the receiver's link explains of it [s].
    expected_s: float
    #: How many times as long as that it takes.
    ratio: Estimate
    #: Share of the transfers that took three times as long as explained, or more.
    stalled: float
    #: Chance of both where nothing breaks; 1 of a single sender, which is what others are held against.
    p_value: float
    broken: bool
    #: How many times as long it had to take on average to be seen in nine cases of ten; null of a single sender.
    visible: float | None
    #: The share that had to stall to be seen; null of a single sender.
    visible_stalls: float | None
    #: Segments that were sent again by all senders, and how many transfers there were.
    again: int
    transfers: int

    @property
    def goodput(self) -> float | None:
        """Bytes per second that arrive; None where no time was taken."""
        return self.senders * self.size_bytes / self.time.value if self.time.value > 0 else None


class Cliff(Record, frozen=True, kw_only=True):
    """Where transfers of one size break down."""

    size_bytes: int
    #: The fewest senders with which they do.
    senders: int
    ratio: Estimate
    #: Share of the transfers that stall.
    stalled: float


class BurstsSeen(Record, frozen=True, kw_only=True):
    """Bursts of one size from all senders at once."""

    #: Of all senders together, with the headers of their frames.
    sent_bytes: int
    #: What arrived of each burst.
    arrived_bytes: list[int]

    @property
    def whole(self) -> bool:
        """Whether all of every burst has arrived."""
        return min(self.arrived_bytes) >= self.sent_bytes


class Depth(Record, frozen=True, kw_only=True):
    """How much the queue before the receiver holds."""

    #: What it holds beside what it passes on meanwhile; null where that cannot be told.
    bytes: Estimate | None
    #: The largest bursts that arrived whole, which it holds at least, but for what it passed on; null where none did.
    whole_bytes: int | None
    #: The smallest bursts that lost something; null where none did.
    lossy_bytes: int | None
    #: Why it cannot be told; empty where it can.
    reason: str
    bursts: list[BurstsSeen]


class SenderCounts(Record, frozen=True, kw_only=True):
    """What the senders' kernels have counted, of all transfers with so many senders."""

    senders: int
    transfers: int
    retransmitted: int
    timeouts: int


class Remedy(Record, frozen=True, kw_only=True):
    """What could help."""

    kind: RemedyKind
    does: str
    #: What tries it; empty where it cannot be tried here.
    command: str
    #: Why it cannot: nodes, and what they lack; or that all have it.
    lacking: str = ""


class Incast(Record, frozen=True, kw_only=True):
    """Where incast breaks."""

    schema_version: int
    receiver: str
    senders: list[str]
    #: Rounds in which all numbers of senders were measured once.
    rounds: int
    #: Bytes per second that the receiver's link has carried at most; null where nothing was measured.
    rate: float | None
    cells: list[IncastCell]
    cliffs: list[Cliff]
    depth: Depth
    evidence: list[SenderCounts]
    remedies: list[Remedy]
    #: Why something was not measured.
    missing: list[str]

    @property
    def untold(self) -> list[IncastCell]:
        """Cells of sizes without a cliff in which a breakdown could not have been seen."""
        broken = {cliff.size_bytes for cliff in self.cliffs}
        return [
            cell
            for cell in self.cells
            if cell.size_bytes not in broken
            and (cell.visible or 0) > WANTED
            and (cell.visible_stalls or 0) > STALLS
        ]

    @property
    def fine(self) -> bool:
        """Whether nothing breaks, as far as had to be seen."""
        return bool(self.cells) and not self.cliffs and not self.untold and not self.missing


#: Transfers that take so many times as long on average have to be seen, or that such a share of them stalls.
WANTED, STALLS = 3.0, 0.2


def exit_code(found: Incast) -> int:
    """Return the exit code: whether there is something to look at."""
    return 0 if found.fine else EXIT_FINDINGS

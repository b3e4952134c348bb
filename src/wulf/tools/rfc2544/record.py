"""What RFC 2544's benchmarks have found."""

from __future__ import annotations

from wulf.base.records.base import Estimate, Pair, Record


class Rate(Record, frozen=True, kw_only=True):
    """A rate at which frames were sent."""

    #: Of datagrams, as it was asked for [Mbit/s].
    asked_mbit_s: int
    frames_per_s: float
    #: What the sender sent [frames/s].
    sent_per_s: float
    #: Share of the frames that did not arrive; null where nothing is known of the trial.
    loss: float | None


class Buffer(Record, frozen=True, kw_only=True):
    """How much the way between two nodes holds of a burst (RFC 9004, section 5.4)."""

    #: The longest burst less what has left while it arrived [frames].
    frames: Estimate
    #: In which time bursts bring so much: the RFC's corrected buffer time [s].
    time: Estimate
    #: At which rate the frames of bursts arrived [1/s].
    arrival_per_s: float


class FrameSize(Record, frozen=True, kw_only=True):
    """All of a frame size."""

    frame_bytes: int
    #: The highest rate without loss; null where even the lowest loses.
    throughput: Rate | None
    #: It is the most that the sender can do, or that was allowed: the network may carry more.
    sender_limited: bool
    #: All that was allowed loses nothing: neither sender nor network limit it.
    rate_is_limit: bool = False
    #: Trials at this rate, and those of them that lost something after all.
    repetitions: int = 0
    lossy_repetitions: int = 0
    #: Loss at tenths of the highest rate that was tried.
    losses: list[Rate]
    #: The longest burst that arrives whole, the median of all searches [frames]; null where not even a single frame
    #: does.
    burst: int | None
    #: What each search has found [frames].
    bursts: list[int] = []
    #: All that was allowed arrives whole.
    burst_is_limit: bool = False
    #: Null where it is not known.
    buffer: Buffer | None = None
    #: Why it is not known; empty when it is.
    buffer_unknown: str = ""
    #: Half round trip while frames go at the rate without loss; null where it is not known.
    latency: Estimate | None
    #: What went wrong.
    notes: list[str] = []


class Rfc2544(Record, frozen=True, kw_only=True):
    """RFC 2544 between two nodes."""

    schema_version: int
    #: The first one sends.
    pair: Pair
    trial_s: float
    precision: float
    sizes: list[FrameSize]

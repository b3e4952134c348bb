"""RFC 2544 between two nodes: trials of the socket probe, searched by halving."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from wulf.base.errors import TransportError, UsageError
from wulf.base.nodeset import reasons_text
from wulf.base.records import SCHEMA_VERSION, Estimate, LaunchResult, Pair, Sample
from wulf.base.text import count, printable
from wulf.base.tool import Progress
from wulf.node.cluster import inventory
from wulf.node.fleet import preparation
from wulf.node.fleet.clusters import config_of
from wulf.node.fleet.new_run import new_seed
from wulf.node.probe.execute import RunLaunch
from wulf.node.probe.schedule import LaunchPlan
from wulf.stats import estimate
from wulf.stats.core import intervals
from wulf.stats.estimate.cells import as_estimate
from wulf.tools.rfc2544 import buffer, search
from wulf.tools.rfc2544.record import Buffer, FrameSize, Rate, Rfc2544
from wulf.tools.rfc2544.request import OVERHEAD, Rfc2544Request

STREAM, BURST, ROUND_TRIP = "udp_stream", "udp_burst", "udp_rr"
#: The probe makes visits of these operations so many times as long as it is asked for.
VISIT_SCALE = 5
#: Visits of a trial: the longer they are, the less a queue hides.
VISITS = 3
#: A sender that sends less than this of what it is asked for cannot do more.
SENT = 0.95
#: Trials at a found rate after which a lower one is tried.
STEPS = 5
#: Bursts of a trial are made within so long [µs].
BURST_US = 20_000
LATENCY_US, LATENCY_SWEEPS = 5_000, 5


def measure(request: Rfc2544Request, progress: Progress) -> Rfc2544:
    """Find throughput, loss by rate, bursts and latency of every frame size.

    Raises
    ------
    TransportError
        A node does not answer.
    UsageError
        There are no two nodes.
    """
    config = config_of(request.cluster)
    nodes = list(config.nodes)
    if len(nodes) < 2:
        raise UsageError("it takes two nodes")
    pair = inventory.pairs(request.pair, nodes)[0] if request.pair else (nodes[0], nodes[1])
    tools = preparation.toolbox([STREAM, BURST, ROUND_TRIP], None, progress)
    with preparation.connect(config, list(pair), progress) as (transport, records):
        down = {record.node: record.error or "does not answer" for record in records if not record.reachable}
        if down:
            raise TransportError(reasons_text(down))
        ready = preparation.ready(config, transport, records, tools, progress)
        speed = records[0].facts.get("nic.speed_bits_per_s")
        line = float(speed) if isinstance(speed, int | float) else math.inf
        bench = _Bench(request, pair, ready.launch, line, progress)
        sizes = [bench.size(frame) for frame in sorted(set(request.frames_bytes))]
    return Rfc2544(
        schema_version=SCHEMA_VERSION,
        pair=pair,
        trial_s=request.length_s,
        precision=request.precision,
        sizes=sizes,
    )


class _Trial(NamedTuple):
    """What a trial gave."""

    sample: Sample | None
    error: str


class _Bench:
    """Makes trials between two nodes."""

    def __init__(
        self,
        request: Rfc2544Request,
        pair: Pair,
        launch: RunLaunch,
        line_bits_per_s: float,
        progress: Progress,
    ) -> None:
        self._request, self._pair, self._launch, self._say = request, pair, launch, progress
        self._line_bits_per_s = line_bits_per_s
        self._seed = new_seed(request.seed)
        self._number = 0
        self._notes: list[str] = []

    def size(self, frame: int) -> FrameSize:
        """Return all of a frame size."""
        self._notes = []
        tried: dict[int, Rate] = {}

        def passes(rate: int) -> bool:
            tried[rate] = self._rate(frame, rate)
            return tried[rate].loss == 0 and tried[rate].sent_per_s >= SENT * tried[rate].frames_per_s

        found = search.highest(passes, 1, self._request.most_mbit_s, self._request.precision)
        rate, made, lossy = self._confirmed(frame, found.value)
        beyond = [one for one in tried.values() if rate is not None and one.asked_mbit_s > rate]
        short = [one for one in beyond if one.loss == 0]
        throughput = tried.get(rate) or self._rate(frame, rate) if rate is not None else None
        sender_limited = found.is_limit or (bool(short) and len(short) == len(beyond))
        bursts, is_limit = self._bursts(frame)
        held: Buffer | None = None
        unknown = why_unknown(throughput, bursts, sender_limited=sender_limited, is_limit=is_limit)
        if throughput is not None and not unknown:
            held = buffer.corrected(bursts, throughput.frames_per_s, self._request.precision)
            unknown = "" if held is not None else "bursts come no faster than frames leave"
        return FrameSize(
            frame_bytes=frame,
            throughput=throughput,
            sender_limited=sender_limited,
            rate_is_limit=found.is_limit and rate == found.value,
            repetitions=made,
            lossy_repetitions=lossy,
            losses=self._losses(frame, max(tried)),
            burst=statistics.median_low(one.frames for one in bursts) if bursts else None,
            bursts=[one.frames for one in bursts],
            burst_is_limit=is_limit,
            buffer=held,
            buffer_unknown=unknown,
            latency=self._latency(frame, rate) if rate is not None else None,
            notes=list(dict.fromkeys(self._notes)),
        )

    def _confirmed(self, frame: int, rate: int | None) -> tuple[int | None, int, int]:
        """Return a rate at which no repetition loses anything, how many were made, and how many lost all the same."""
        lossy = failed = 0
        for _ in range(STEPS):
            if rate is None or rate < 1:
                break
            losses = [self._rate(frame, rate).loss for _ in range(self._request.times)]
            lossy, failed = sum(map(bool, losses)), losses.count(None)
            if not lossy and not failed:
                return rate, len(losses), 0
            rate = min(rate - 1, int(rate * (1 - self._request.precision)))
        if rate is not None:
            self._notes.append("no rate was found at which every repetition loses nothing")
        if failed:
            self._notes.append(
                f"{failed} of {count(self._request.times, 'repetition')} failed: what they lose is unknown"
            )
        return None, self._request.times, lossy

    def _losses(self, frame: int, most: int) -> list[Rate]:
        """Return the loss at tenths of a rate, downwards, until two in a row lose nothing (RFC 2544, 26.3)."""
        found: list[Rate] = []
        for tenth in range(10, 0, -1):
            found.append(self._rate(frame, max(1, most * tenth // 10)))
            if [one.loss for one in found[-2:]] == [0, 0]:
                break
        return found

    def _rate(self, frame: int, rate: int) -> Rate:
        """Make a trial at a rate of datagrams [Mbit/s]."""
        self._say(f"{frame} B: {rate} Mbit/s")
        size = frame - OVERHEAD
        visit_us = max(int(self._request.length_s * 1e6 / VISITS / VISIT_SCALE), 1000)
        trial = self._trial(f"{STREAM}:{rate}", size, VISITS, min(visit_us, 1_000_000))
        wanted = rate * 1e6 / 8 / size
        if trial.sample is None:
            self._notes.append(printable(trial.error, 200))
            return Rate(asked_mbit_s=rate, frames_per_s=wanted, sent_per_s=wanted, loss=None)
        sample = trial.sample
        loss = sample.lost / max(sample.lost + sample.iterations, 1)
        return Rate(asked_mbit_s=rate, frames_per_s=wanted, sent_per_s=sent_per_s(sample), loss=loss)

    def _bursts(self, frame: int) -> tuple[list[buffer.Burst], bool]:
        """Return the longest burst that arrives whole, sought several times, and whether it is all that is allowed."""
        rates: dict[int, float] = {}
        line_per_s = buffer.line_rate_per_s(frame, self._line_bits_per_s)

        def passes(length: int) -> bool:
            sent_per_s = self._burst(frame, length)
            rates[length] = min(sent_per_s or 0.0, line_per_s)
            return sent_per_s is not None

        found: list[buffer.Burst] = []
        near = None
        for _ in range(self._request.times):
            value, is_limit = search.highest(passes, 1, self._request.longest, 0.0, near)
            if value is None:
                return [], False
            found.append(buffer.Burst(value, rates[value]))
            if is_limit:
                return found, True
            near = value
        return found, False

    def _burst(self, frame: int, length: int) -> float | None:
        """Return the rate at which the frames of bursts were sent [1/s]; None where not all arrived whole."""
        self._say(f"{frame} B: bursts of {length}")
        trial = self._trial(f"{BURST}:{length}", frame - OVERHEAD, max(self._request.times, 3), BURST_US)
        if trial.sample is None or trial.sample.lost:
            return None
        # All bursts must have room, so the fastest one tells how much there is.
        return max((rate for rate in trial.sample.sent_per_s if rate is not None), default=math.inf)

    def _latency(self, frame: int, rate: int) -> Estimate | None:
        """Return the half round trip while frames go at a rate."""
        self._say(f"{frame} B: latency at {rate} Mbit/s")
        medians = []
        for _ in range(self._request.times):
            beside = f"{STREAM}:{rate}"
            trial = self._trial(ROUND_TRIP, frame - OVERHEAD, LATENCY_SWEEPS, LATENCY_US, beside)
            if trial.sample is not None and trial.sample.histogram:
                medians.append(estimate.sample_quantiles(trial.sample, [0.5])[0])
            elif trial.error:
                self._notes.append(printable(trial.error, 200))
        return as_estimate(intervals.median(medians), "s") if medians else None

    def _trial(self, asked: str, size: int, sweeps: int, visit_us: int, beside: str = "") -> _Trial:
        self._number += 1
        result: LaunchResult = self._launch(
            LaunchPlan(
                id=f"{self._number:05d}",
                index=self._number,
                op=asked.partition(":")[0],
                asked=asked,
                transport="net",
                place=self._pair,
                beside=[self._pair] if beside else [],
                beside_op=beside,
                setting="default",
                purpose="measure",
                sizes_bytes=[size],
                sweeps=max(sweeps, 3),
                visit_us=visit_us,
                seed=(self._seed + self._number) & (2**63 - 1),
            )
        )
        sample = result.samples[0] if result.samples else None
        return _Trial(sample, result.launch.error or "")


def sent_per_s(sample: Sample) -> float:
    """Return what a sender has sent, the median of visits [1/s]; infinite where no visit says it."""
    known = [rate for rate in sample.sent_per_s if rate is not None]
    return statistics.median(known) if known else math.inf


def why_unknown(
    throughput: Rate | None, bursts: Sequence[buffer.Burst], *, sender_limited: bool, is_limit: bool
) -> str:
    """Return why bursts say nothing of a buffer; empty when they do."""
    if throughput is None:
        return "no rate without loss"
    if not bursts:
        return "no burst arrived whole"
    if is_limit:
        return "no burst was lost"
    return "the sender is slower than the way" if sender_limited else ""

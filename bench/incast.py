"""``wulf diagnose incast`` on simulated switches whose buffer is known, on clean ones, and (``--lab``) on virtual ones.

In each draw of other numbers: 2 to 15 senders at 1 or 10 Gbit/s, a queue of 16 KiB to 1 MiB, windows of 16 KiB or
more. A transfer takes what the link explains, with 2 to 10 % of scatter that a launch has in common and as much of its
own, and 1 % take twice as long. From the number of senders on with which messages (or windows) together are more than
the queue holds, with 10 % of scatter, senders wait for a timeout of 200 ms in 30 to 100 % of the transfers. Bursts: the
queue passes on 1/100 of a burst to what its number of senders allows, and senders begin up to 3 % of it apart.

Right is a cliff within one sender of the first that is too many, at every size that has one; and a depth within 20 %.
Goals: 95 % each, and nothing named in 98 % of clean draws.

``--seed=N`` draws others, ``--draws=N`` so many of each (200). ``--lab`` raises a virtual cluster of six nodes as root
and plants queues; it needs a machine with nothing else to do.
"""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from bench.worlds.line import Count, bounds
from wulf.node import lab as virtual
from wulf.tools.incast import judging, work
from wulf.tools.incast.judging import PROBE_BYTES, Met, Round
from wulf.tools.incast.record import BurstsSeen, Depth
from wulf.tools.incast.request import SIZES

SEED, DRAWS = 20261126, 200
ROUNDS, TIMEOUT_S = 6, 0.2
#: Nodes of the lab, queues of its port [KiB], and what its port passes at once beside them [B].
LAB_NODES, LAB_KIB, LAB_AT_ONCE = 6, (32, 64, 128, 256), 3100
DEPTH_WITHIN = 0.2
Random = np.random.Generator


@dataclass
class Port:
    """A switch's port with the senders that send through it."""

    random: Random
    senders: int
    rate: float
    base_s: float
    queue_bytes: float
    window_bytes: float
    noise: float
    stalls: float

    def first(self, size: int) -> float:
        """Return the fewest senders that are too many; infinity where none are."""
        each = min(size, self.window_bytes)
        count = math.floor(self.queue_bytes / each) + 1
        return max(count, 2) if count <= self.senders and size > PROBE_BYTES else math.inf

    def transfers(self, senders: int, size: int) -> Met:
        """Return what a launch meets."""
        count = max(int(0.04 / (senders * size / self.rate + self.base_s)), 4)
        explained = self.base_s + senders * (size / self.rate + 2e-6)
        times = explained * np.exp(
            self.noise * (self.random.standard_normal() + self.random.standard_normal(count))
        )
        times *= np.where(self.random.random(count) < 0.01, 2.0, 1.0)
        under_way = senders * min(size, self.window_bytes) * np.exp(0.1 * self.random.standard_normal(count))
        full = (under_way > self.queue_bytes) & (senders > 1) & (size > PROBE_BYTES)
        stalled = full & (self.random.random(count) < self.stalls)
        return Met(times + TIMEOUT_S * stalled, int(stalled.sum()))

    def round(self) -> Round:
        """Return a round of all numbers of senders."""
        sizes = (PROBE_BYTES, *SIZES)
        return {
            (count, size): self.transfers(count, size)
            for count in work.numbers(self.senders)
            for size in sizes
        }

    def depth(self) -> Depth:
        """Return what bursts tell, as the tool goes about it."""
        share = self.random.uniform(0.01, 1 / self.senders)
        seen = {length: self._burst(length, share) for length in work.lengths()}
        lossy = [length for length, burst in seen.items() if not burst.whole]
        if lossy:
            seen |= {length: self._burst(length, share) for length in work.closer(min(lossy)) - seen.keys()}
        return judging.depth(list(seen.values()), "")

    def _burst(self, length: int, share: float) -> BurstsSeen:
        frame = work.DATAGRAM_BYTES + judging.OVERHEAD
        sent = length * self.senders * frame
        passed = sent * (share + self.random.uniform(0, 0.03, 8))
        arrived = np.minimum(np.floor((self.queue_bytes + passed) / frame) * frame, sent)
        return BurstsSeen(sent_bytes=sent, arrived_bytes=arrived.astype(int).tolist())


def port(random: Random, *, clean: bool) -> Port:
    """Return a port of other numbers."""
    return Port(
        random=random,
        senders=int(random.integers(2, 16)),
        rate=float(random.choice([1.25e8, 1.25e9])),
        base_s=float(random.uniform(20e-6, 200e-6)),
        queue_bytes=1e12 if clean else float(np.exp(random.uniform(math.log(16 << 10), math.log(1 << 20)))),
        window_bytes=float(random.choice([16 << 10, 64 << 10, 1 << 30])),
        noise=float(random.uniform(0.02, 0.1)),
        stalls=float(random.uniform(0.3, 1.0)),
    )


def near(port: Port, found: Mapping[int, int]) -> bool:
    """Whether the cliff of every size is within one of the senders that were measured."""
    counts = work.numbers(port.senders)
    for size in SIZES:
        first, named = port.first(size), found.get(size)
        truth = next((place for place, count in enumerate(counts) if count >= first), len(counts))
        place = counts.index(named) if named is not None else len(counts)
        if abs(place - truth) > 1:
            return False
    return True


def draw(seed: int, number: int, clean: bool) -> tuple[bool, bool]:
    """Return whether the cliffs of a draw are right, and the depth; of a clean one whether nothing is named."""
    one = port(np.random.default_rng([seed, number, clean]), clean=clean)
    cells, _ = judging.cells([one.round() for _ in range(ROUNDS)])
    found = {cliff.size_bytes: cliff.senders for cliff in judging.cliffs(cells)}
    if clean:
        return not found, True
    deep = one.depth().bytes
    return near(one, found), deep is not None and abs(deep.value / one.queue_bytes - 1) <= DEPTH_WITHIN


def lab() -> int:
    """Plant queues of known depth in a virtual cluster, and print what is found."""
    raised, was_up = virtual.up(LAB_NODES)
    right = 0
    try:
        for kib in LAB_KIB:
            raised.plant_at_port(f"node01:queue={kib}KiB")
            argv = [sys.executable, "-m", "wulf.face.cli.main", "diagnose", "incast"]
            argv += ["--cluster", "lab", "--json"]
            said = subprocess.run(argv, capture_output=True, text=True, check=False)
            if said.returncode not in (0, 3):
                raise SystemExit(f"bench: wulf diagnose incast: {said.stderr[-500:]}")
            found = json.loads(said.stdout)
            truth, deep = kib * 1024 + LAB_AT_ONCE, found["depth"]["bytes"]
            right += deep is not None and abs(deep["value"] / truth - 1) <= DEPTH_WITHIN
            cliffs = ", ".join(f"{one['size_bytes']} B from {one['senders']}" for one in found["cliffs"])
            value = f"{deep['value']:.0f} B" if deep is not None else found["depth"]["reason"]
            print(f"queue {truth} B: depth {value}; breaks: {cliffs or 'nothing'}", flush=True)
    finally:
        if was_up:
            raised.plant_at_port("node01:none")
        else:
            raised.down()
    print(f"incast-lab value={right}/{len(LAB_KIB)} goal=all {'pass' if right == len(LAB_KIB) else 'short'}")
    return 0 if right == len(LAB_KIB) else 1


def main(arguments: Sequence[str]) -> int:
    """Entry point."""
    if "--lab" in arguments:
        return lab()
    given = dict(one.removeprefix("--").split("=", 1) for one in arguments if "=" in one)
    seed = int(given.get("seed", SEED))
    draws = int(given.get("draws", 40 if "--quick" in arguments else DRAWS))
    hits = {"cliff": 0, "depth": 0, "clean": 0}
    with ProcessPoolExecutor(2) as pool:
        for clean in (False, True):
            for first, second in pool.map(
                draw, itertools.repeat(seed, draws), range(draws), itertools.repeat(clean)
            ):
                hits["clean" if clean else "cliff"] += first
                hits["depth"] += second and not clean
    for name, count in hits.items():
        low, high = bounds(Count(hits=count, of=draws))
        print(f"{name:<6} right {count}/{draws} ({100 * low:.1f} to {100 * high:.1f} %)")
    holds = hits["cliff"] >= 0.95 * draws and hits["depth"] >= 0.95 * draws and hits["clean"] >= 0.98 * draws
    shares = ", ".join(f"{name} {100 * count / draws:.1f} %" for name, count in hits.items())
    print(f"incast value={shares} goal=95 %, 95 %, 98 % {'pass' if holds else 'short'}")
    return 0 if holds else 1

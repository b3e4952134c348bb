"""Is a slow node named, and no other, by ``wulf diagnose``, and how long does it take?

On the lab, eight virtual nodes: in half of the repeats, drawn at random, the link of a node drawn at random is
throttled so that a message of 1 MiB takes about twice as long with it as between others. Goals: the whole takes three
minutes at most; the node is named in 19 of 20 repeats, and nothing in 20 clean ones.

In simulation, with the noise of small messages in the lab's own clean runs of before (what nodes add and what is left
of pairs, drawn anew, that of the pairs once more where suspects are measured alone): one node takes 20 % longer with
every message. Goals: named in 95 of 100, something else or something where nothing is wrong in 1 of 100 at most.
"""

from __future__ import annotations

import json
import math
import random
import statistics
import sys
import time
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from bench.common import Figure, finish
from bench.tune_lab import Scene, raised
from wulf.base.records.diagnosed import Diagnosis
from wulf.base.store import load
from wulf.stats.estimate.pairs import MARGIN, additive, suspects
from wulf.tools.diagnose import confirmation
from wulf.tools.diagnose.work import SUSPICION, small_messages

NODES, REPEATS, SIMULATED = 8, 20, 100
#: Of a clean lab a message of 1 MiB takes about 2 ms between pairs that are measured four at a time.
THROTTLED = "tc qdisc replace dev host0 root tbf rate 2200mbit burst 64kb latency 50ms"
FREED = "tc qdisc del dev host0 root"
SLOWER = 1.2
MINUTES = 3.0

Floats = NDArray[np.float64]


class Repeat(msgspec.Struct, frozen=True):
    """What one diagnosis on the lab gave."""

    planted: str
    named: list[str]
    took_s: float


def diagnosed(scene: Scene, name: str, planted: int | None) -> tuple[Repeat, str]:
    """Diagnose the lab with a throttled node, or without; return what was named, and the run's name."""
    if planted is not None:
        scene.on(planted, THROTTLED)
    begin = time.monotonic()
    try:
        found = msgspec.convert(
            json.loads(scene.wulf("diagnose", "--cluster", "lab", "--json")), type=Diagnosis
        )
    finally:
        if planted is not None:
            scene.on(planted, FREED)
    named = sorted(
        {
            f"{suspect.kind} {'+'.join(suspect.nodes)}"
            for matrix in found.matrices
            for suspect in matrix.suspects
        }
    )
    truth = "" if planted is None else f"node node{planted:02d}"
    repeat = Repeat(truth, named, time.monotonic() - begin)
    print(
        f"  {name}: planted {truth or 'nothing'}, named {', '.join(named) or 'nothing'}, {repeat.took_s:.0f} s"
    )
    return repeat, found.run_id


def noise_of(logs: Floats) -> tuple[Floats, Floats]:
    """Return what nodes add and what is left of pairs in a clean run, each as it scatters."""
    fit = additive(logs)
    rest = fit.rest[np.triu_indices(len(logs), 1)]
    freedom = len(rest) - len(logs)
    return fit.nodes, rest * math.sqrt(len(rest) / freedom)


def simulated(noises: Sequence[tuple[Floats, Floats]], seed: int, *, slow: bool) -> list[str]:
    """Return what is named in a cluster of the lab's noise, with node 3 slower or not."""
    draw = np.random.default_rng(seed)
    nodes, rest = noises[int(draw.integers(len(noises)))]
    added = draw.choice(nodes, NODES)
    if slow:
        added[3] += math.log(SLOWER)
    logs = added[:, None] + added[None, :] + _symmetric(_drawn(draw, rest))
    np.fill_diagonal(logs, np.nan)
    found = suspects(logs, [f"n{number}" for number in range(NODES)], false_alarm=SUSPICION)
    accused = frozenset(node for suspect in found for node in suspect.nodes)
    once_more = added[:, None] + added[None, :] + _symmetric(_drawn(draw, rest))
    well = [place for place in np.argsort(np.abs(added)).tolist() if f"n{place}" not in accused][
        : confirmation.WELL
    ]
    pairs = {(first, second) for first in range(NODES) for second in well if first != second}
    pairs |= {(int(one.nodes[0][1:]), int(one.nodes[1][1:])) for one in found if one.kind == "link"}
    times = {
        (f"n{first}", f"n{second}"): math.exp(once_more[first, second])
        for first, second in pairs
        if (second, first) not in pairs or first < second
    }
    return [
        f"{suspect.kind} {'+'.join(suspect.nodes)}"
        for suspect in found
        if confirmation.is_slow(suspect, times, accused, MARGIN) is not False
    ]


def _drawn(draw: np.random.Generator, rest: Floats) -> Floats:
    """Return a matrix of what is left of pairs, above its diagonal."""
    return np.triu(draw.choice(rest, (NODES, NODES)), 1)


def _symmetric(values: Floats) -> Floats:
    above = np.triu(values, 1)
    return above + above.T


def main(arguments: list[str]) -> int:
    """Entry point."""
    repeats = 2 if "--quick" in arguments else REPEATS
    order = random.Random(1)
    plan = [None] * repeats + [order.randint(1, NODES) for _ in range(repeats)]
    order.shuffle(plan)
    found: list[Repeat] = []
    noises = []
    with raised(None, NODES) as scene:
        for number, planted in enumerate(plan):
            repeat, run = diagnosed(scene, f"repeat {number + 1}", planted)
            found.append(repeat)
            if planted is None:
                noises.append(noise_of(small_messages(load(scene.directory / "runs" / run))))
    planted_ones = [repeat for repeat in found if repeat.planted]
    clean = [repeat for repeat in found if not repeat.planted]
    missed = sum(repeat.named != [repeat.planted] for repeat in planted_ones)
    alarms = sum(bool(repeat.named) for repeat in clean)
    named = [simulated(noises, seed, slow=True) for seed in range(SIMULATED)]
    quiet = [simulated(noises, SIMULATED + seed, slow=False) for seed in range(SIMULATED)]
    right = sum(one == ["node n3"] for one in named)
    scatter = statistics.median(float(np.median(np.abs(rest))) for _, rest in noises)
    print(f"  what is left of pairs in clean runs: {scatter:.1%} (median)")
    print(f"  lab: {len(planted_ones) - missed} of {len(planted_ones)} named")
    print(f"  lab: {alarms} of {len(clean)} clean with an alarm")
    print(
        f"  simulated: {right} of {SIMULATED} named, {sum(map(bool, quiet))} of {SIMULATED} clean with an alarm"
    )
    return finish(
        "slow-node",
        [
            Figure(name="minutes", value=max(repeat.took_s for repeat in found) / 60, goal=MINUTES),
            Figure(name="missed", value=missed / len(planted_ones), goal=0.05),
            Figure(name="alarms", value=float(alarms), goal=0.0),
            Figure(name="simulated-missed", value=1 - right / SIMULATED, goal=0.05),
            Figure(name="simulated-alarms", value=sum(map(bool, quiet)) / SIMULATED, goal=0.01),
        ],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

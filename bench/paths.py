"""``wulf diagnose paths`` on simulated fabrics with one sick path, and on clean ones: is that path named?

Leaves and spines with ECMP, in each draw of other numbers: 2 to 4 leaves, 2 to 8 spines, 2 or 3 nodes on each leaf, 32
flows between each two nodes, whose way is at random, there and back. What is assumed beside it: a round trip takes 20
to 60 µs, a tenth of the requests twice as long; each flow has its own offset, as a NIC hashes it to one of four queues
(0 to 3 µs, the same for all of a port); visits scatter by 1 to 4 %, and one in fifty takes half as long again; one
packet of 20,000 is lost anywhere; a stream's time scatters by 3 to 10 %. In a third of the draws some switches do not
answer, in the `bond` kinds no switch routes at all.

Right is a draw in which the planted switch or link is named, and no other; of a bond's member (which no address tells)
that flows of its node, and of no other, are said to be worse. The control is what `wulf diagnose` makes of all pairs,
each measured by six connections from random ports. Goals: every kind ≥ 95 % right, ≥ 98 % of the clean ones nothing.

``--seed=N`` draws others (development used 1 to 99, reported is 20261126), ``--draws=N`` so many of each kind (200).

``--lab`` raises a virtual fabric of eight nodes, two leaves and four spines as root, and plants in each draw one of six
kinds (+50 µs, 1 % loss, a tenth of the rate; of a spine, or of what it sends to one leaf) or nothing, 20 times each
(``--draws=N``; ``--kinds='loss spine,clean'`` only some). Right is the planted switch or link by its name and no other;
"cannot tell" is counted apart. Goals: as above, and at most three minutes for each diagnosis. It needs a machine with
nothing else to do.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from bench.worlds.line import Count, bounds
from wulf.base.native import build
from wulf.base.records.base import Pair
from wulf.base.records.flows import FlowSeen
from wulf.node import lab as virtual
from wulf.node.lab import topology
from wulf.stats.estimate import pairs as between
from wulf.tools.paths import judging
from wulf.tools.paths.record import Culprit

SEED, DRAWS = 20261126, 200
FLOWS, VISITS, STREAM_VISITS = 32, 6, 4
REQUESTS = 600
STREAM_BYTES, SMALL_BYTES = 512 << 10, 64
LOSS, SLOW_S, TENTH = 0.01, 50e-6, 10.0
Random = np.random.Generator
Part = tuple[str, ...]
#: What is planted: what it does, and where.
KINDS = tuple(
    f"{what} {where}" for where in ("spine", "one way", "bond") for what in ("latency", "loss", "rate")
)
#: The virtual fabric, what is planted in it, and how long a diagnosis may take [s].
LAB_SHAPE, LAB_NODES, LAB_DRAWS = "leaf-spine:2x4", 8, 20
LAB_FAULTS = {"latency": "delay=50us", "loss": "loss=1%", "rate": "rate=100mbit"}
LAB_KINDS = (*(kind for kind in KINDS if not kind.endswith("bond")), "clean")
LAB_MOST_S = 180.0


@dataclass
class Fabric:
    """A fabric with what its flows meet."""

    random: Random
    leaves: int
    spines: int
    nodes: list[str]
    what: str = ""
    #: Switch, link (from, to), or node whose bond has a sick member.
    sick: Part = ()
    silent: frozenset[str] = frozenset()
    routed: bool = True

    def leaf(self, node: str) -> str:
        """Return the leaf of a node."""
        return f"leaf{self.nodes.index(node) * self.leaves // len(self.nodes)}"

    def way(self, pair: Pair) -> tuple[list[str], bool]:
        """Return the switches that a new flow passes, and whether it takes the sick member of its node's bond."""
        first, last = map(self.leaf, pair)
        between_leaves = [] if first == last else [f"spine{self.random.integers(self.spines)}", last]
        return [first, *between_leaves], self.sick == (pair[0],) and self.random.random() < 0.5

    def meets(self, pair: Pair, switches: Sequence[str], *, member: bool) -> int:
        """Return how often a flow passes what is sick."""
        if not self.routed:
            return int(member)
        parts = judging.parts_of(switches, *pair)
        return parts.count(self.sick)


def fabric(kind: str, random: Random) -> Fabric:
    """Return a fabric with what a kind plants; a clean one for the empty kind."""
    leaves, spines = int(random.integers(2, 5)), int(random.integers(2, 9))
    nodes = [f"node{number:02d}" for number in range(leaves * int(random.integers(2, 4)))]
    found = Fabric(random, leaves, spines, nodes)
    what, _, where = kind.partition(" ")
    found.what = what
    spine = f"spine{random.integers(spines)}"
    if where == "spine":
        found.sick = (spine,)
    elif where == "one way":
        found.sick = (spine, f"leaf{random.integers(leaves)}")
    elif where == "bond":
        found.sick = (nodes[int(random.integers(len(nodes)))],)
    found.routed = where != "bond" and (bool(kind) or random.random() < 0.7)
    quiet = [name for name in [f"leaf{n}" for n in range(leaves)] if random.random() < 0.3]
    found.silent = frozenset(quiet if random.random() < 1 / 3 and where != "one way" else [])
    return found


def seen(world: Fabric) -> list[FlowSeen]:
    """Return what the flows between all nodes meet."""
    base_s = world.random.uniform(20e-6, 60e-6)
    noise = world.random.uniform(0.01, 0.04), world.random.uniform(0.03, 0.1)
    queues = world.random.uniform(0, 3e-6, 4)
    found: list[FlowSeen] = []
    for pair in itertools.combinations(world.nodes, 2):
        back = pair[1], pair[0]
        found += _flows(world, pair, ("udp", False), base_s, noise[0], queues)
        found += _flows(world, pair, ("tcp", False), base_s, noise[0], queues)
        for one in (pair, back):
            found += _flows(world, one, ("tcp", True), 4e-3, noise[1], np.zeros(4))
    return found


def _flows(
    world: Fabric, pair: Pair, kind: tuple[str, bool], base_s: float, noise: float, queues: np.ndarray
) -> list[FlowSeen]:
    random, (protocol, stream) = world.random, kind
    shape = FLOWS, STREAM_VISITS if stream else VISITS
    there, returning = [world.way(pair) for _ in range(FLOWS)], [world.way(pair[::-1]) for _ in range(FLOWS)]
    met_out = np.array([world.meets(pair, way, member=member) for way, member in there])
    met_back = np.array([world.meets(pair[::-1], way, member=member) for way, member in returning])
    times = base_s + queues[(np.arange(FLOWS) * 7 + len(protocol)) % 4]
    if world.what == "latency":
        times = times + SLOW_S * (met_out + met_back)
    if world.what == "rate" and stream:
        times = np.where(met_out > 0, times * TENTH, times)
    values = times[:, None] * np.exp(noise * random.standard_normal(shape))
    values *= np.where(random.random(shape) < 0.02, 1.5, 1.0)
    losing, sent = world.what == "loss", REQUESTS if protocol == "udp" else 0
    lost_out = random.binomial(sent, 5e-5 + LOSS * losing * met_out)
    lost_back = random.binomial(sent - lost_out, 5e-5 + LOSS * losing * met_back)
    middles = np.median(values, axis=1)
    errors = 1.2533 * np.std(values, axis=1, ddof=1) / shape[1] ** 0.5
    return [
        FlowSeen(
            nodes=pair,
            protocol="udp" if protocol == "udp" else "tcp",
            size_bytes=STREAM_BYTES if stream else SMALL_BYTES,
            port=20000 + port,
            to_port=18500,
            out=_answering(world, there[port][0]),
            back=_answering(world, returning[port][0]),
            sent=sent or REQUESTS,
            lost_out=int(lost_out[port]),
            lost_back=int(lost_back[port]),
            time_s=float(middles[port]),
            error_s=float(errors[port]),
        )
        for port in range(FLOWS)
    ]


def _answering(world: Fabric, switches: Sequence[str]) -> list[str | None]:
    if not world.routed:
        return []
    return [None if switch in world.silent else switch for switch in switches]


def named(world: Fabric) -> list[Culprit]:
    """Return what is named, as `wulf diagnose paths` goes about it."""
    random = world.random
    state = random.bit_generator.state
    first = seen(world)
    verdict = judging.judge(first)
    again: list[FlowSeen] = []
    if judging.unexplained(verdict):
        # The same flows take the same ways, and meet other noise.
        random.bit_generator.state = state
        again = _other_noise(seen(world), random)
    return judging.judge(first, again).culprits


def _other_noise(flows: Sequence[FlowSeen], random: Random) -> list[FlowSeen]:
    found = []
    for flow in flows:
        if flow.time_s is None or flow.error_s is None:
            found.append(flow)
            continue
        time_s = flow.time_s + flow.error_s * float(random.standard_normal()) * 2**0.5
        found.append(msgspec.structs.replace(flow, time_s=max(time_s, 1e-9)))
    return found


def is_right(world: Fabric, culprits: Sequence[Culprit]) -> bool:
    """Whether what was planted is named, and nothing else."""
    if not world.what:
        return not culprits
    if len(culprits) != 1:
        return False
    culprit = culprits[0]
    if not world.routed:
        return not culprit.ways and culprit.common == list(world.sick)
    return world.sick in {tuple(way.hops) for way in culprit.ways}


def pairwise(world: Fabric) -> bool:
    """Whether all pairs, each by six connections from random ports, have something that is named."""
    random, count = world.random, len(world.nodes)
    large = world.what == "rate"
    noise = random.uniform(0.02, 0.05)
    logs = np.full((count, count), np.nan)
    for (i, near), (j, far) in itertools.permutations(enumerate(world.nodes), 2):
        times = []
        for _ in range(6):
            (out, own), (back, other) = world.way((near, far)), world.way((far, near))
            met = world.meets((near, far), out, member=own)
            returning = world.meets((far, near), back, member=other)
            base = 4e-3 if large else 4e-5
            extra = SLOW_S * (met + returning) / 2 if world.what == "latency" else 0.0
            times.append(
                (base + extra) * (TENTH if large and met else 1.0) * np.exp(noise * random.standard_normal())
            )
        logs[i, j] = np.log(np.median(times))
    return bool(between.suspects(logs, world.nodes)) if count > between.FEWEST_PARTNERS else False


def count(kind: str, seed: int, draws: int) -> tuple[int, int]:
    """Return how many draws of a kind are right, and in how many pairwise diagnosis names anything."""
    right = by_pairs = 0
    for draw in range(draws):
        world = fabric(kind, np.random.default_rng([seed, *map(ord, kind), draw]))
        right += is_right(world, named(world))
        by_pairs += pairwise(world)
    return right, by_pairs


def planted(kind: str, random: Random) -> tuple[str, Part]:
    """Return the fault of a draw as `wulf lab plant` takes it, and the switch or link that is to be named; or none."""
    if kind == "clean":
        return "", ()
    spine, leaf = f"spine{random.integers(1, 5)}", f"leaf{random.integers(1, 3)}"
    what, _, where = kind.partition(" ")
    if where == "one way":
        return f"{spine}>{leaf}:{LAB_FAULTS[what]}", (spine, leaf)
    return f"{spine}:{LAB_FAULTS[what]}", (spine,)


def said_of(part: Part, found: Mapping[str, Any]) -> str:
    """Return what a diagnosis makes of what was planted: right, wrong, or that it cannot tell."""
    if not found["culprits"]:
        blind = [one for one in found["sights"] if one["visible"] is None or one["visible"] > one["wanted"]]
        unknown = bool(blind or found["missing"])
        return ("cannot tell" if unknown else "nothing") if part else ("right, blind" if unknown else "right")
    named_ways = [[tuple(way["names"]) for way in one["ways"]] for one in found["culprits"]]
    # What sends to a leaf is named by the leaf's address at that end, or by its name.
    return "right" if len(named_ways) == 1 and part in named_ways[0] else f"wrong: {named_ways}"


def diagnosed() -> tuple[Mapping[str, Any], float]:
    """Return what `wulf diagnose paths` finds in the lab, and how long that took [s]."""
    begin = time.monotonic()
    argv = [sys.executable, "-m", "wulf.face.cli.main", "diagnose", "paths", "--cluster", "lab", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(f"bench: wulf diagnose paths: {done.stderr[-500:]}")
    return json.loads(done.stdout), time.monotonic() - begin


def program(name: str) -> str:
    """Return where a program of the lab is, built when it is needed."""
    return str(build.build_program(name, None).path)


def lab(kinds: Iterable[str], seed: int, draws: int) -> int:
    """Plant faults in a virtual fabric, one after the other, and print what is found."""
    cables = topology.parse_fabric(LAB_SHAPE)
    raised, was_up = virtual.up(LAB_NODES, cables=cables, program=program)
    right, longest_s = {}, 0.0
    try:
        for kind in kinds:
            counted: Counter[str] = Counter()
            for number in range(draws):
                fault, part = planted(kind, np.random.default_rng([seed, *map(ord, kind), number]))
                if fault:
                    raised.plant_in_fabric(fault, program)
                try:
                    found, took_s = diagnosed()
                finally:
                    if fault:
                        raised.plant_in_fabric(f"{fault.partition(':')[0]}:none", program)
                said = said_of(part, found)
                counted[said.partition(":")[0]] += 1
                longest_s = max(longest_s, took_s)
                print(f"  {kind:<16} {fault:<26} {said} ({took_s:.0f} s)", flush=True)
            right[kind] = (counted["right"] + counted["right, blind"]) / draws
            print(f"{kind:<16} {dict(counted)}", flush=True)
    finally:
        if not was_up:
            raised.down()
    holds = all(share >= (0.98 if kind == "clean" else 0.95) for kind, share in right.items())
    holds &= longest_s <= LAB_MOST_S
    shares = ", ".join(f"{kind} {100 * share:.0f} %" for kind, share in right.items())
    print(
        f"paths-lab value={shares}; at most {longest_s:.0f} s goal=95 %, clean 98 %, {LAB_MOST_S:.0f} s "
        f"{'pass' if holds else 'short'}"
    )
    return 0 if holds else 1


def main(arguments: Sequence[str]) -> int:
    """Entry point."""
    given: Mapping[str, str] = dict(one.removeprefix("--").split("=", 1) for one in arguments if "=" in one)
    seed = int(given.get("seed", SEED))
    if "--lab" in arguments:
        wanted = given.get("kinds", ",".join(LAB_KINDS)).split(",")
        return lab(wanted, seed, int(given.get("draws", LAB_DRAWS)))
    draws = int(given.get("draws", 20 if "--quick" in arguments else DRAWS))
    shares = {}
    kinds = (*KINDS, "")
    with ProcessPoolExecutor(2) as pool:
        counted = pool.map(count, kinds, itertools.repeat(seed), itertools.repeat(draws))
        for kind, (right, by_pairs) in zip(kinds, counted, strict=True):
            low, high = bounds(Count(hits=right, of=draws))
            shares[kind] = right / draws
            said = "nothing" if not kind else "right"
            print(
                f"{kind or 'clean':<16} {said} {right}/{draws} ({100 * low:.1f} to {100 * high:.1f} %); pairwise "
                f"diagnosis names something in {by_pairs}",
                flush=True,
            )
    worst = min((kind for kind in KINDS), key=shares.__getitem__)
    holds = shares[worst] >= 0.95 and shares[""] >= 0.98
    print(
        f"paths value={100 * shares[worst]:.1f} % ({worst}), clean {100 * shares['']:.1f} % goal=95 %, 98 % "
        f"{'pass' if holds else 'short'}"
    )
    return 0 if holds else 1

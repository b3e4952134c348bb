"""Worlds for `wulf diagnose`: clusters that differ by design, and noise that is not normal.

Each cluster goes the way of a real one: the times between all pairs, who is suspected in them, those once more alone,
the median of as many launches as the program makes then, each with noise of its own, and what is named in the end.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from bench.worlds.line import Count, World
from wulf.base.records import Pair
from wulf.base.records.diagnosed import Matrix
from wulf.stats.estimate import pairs
from wulf.tools.diagnose import confirmation, work
from wulf.tools.diagnose.all_pairs import AGAIN

Floats = NDArray[np.float64]
Random = np.random.Generator
OP, SIZE, TYPICAL_S = "mpi_pingpong", 64, 20e-6
SLOW_NODE, SLOW_LINK = math.log(1.2), math.log(1.3)


class Cluster(msgspec.Struct, kw_only=True, frozen=True):
    """What is true of a cluster: logarithms of times, n × n, and noise of a measurement of every pair."""

    true: Floats
    kinds: Sequence[str]
    noise: Callable[[Random, tuple[int, ...]], Floats]
    #: Share of the pairs that were not measured.
    missing: float = 0.0


def _normal(scatter: float) -> Callable[[Random, tuple[int, ...]], Floats]:
    return lambda rng, shape: scatter * rng.standard_normal(shape)


def _heavy(rng: Random, shape: tuple[int, ...]) -> Floats:
    return np.asarray(0.02 * rng.standard_t(2.5, shape))


def _spikes(rng: Random, shape: tuple[int, ...]) -> Floats:
    return np.asarray(0.02 * rng.standard_normal(shape) + math.log(2.0) * (rng.random(shape) < 0.02))


def _even(rng: Random, nodes: int) -> Floats:
    """Nodes that differ by 2 %."""
    added = 0.02 * rng.standard_normal(nodes)
    return np.asarray(added[:, None] + added[None, :])


def _plain(rng: Random, nodes: int) -> Cluster:
    return Cluster(true=_even(rng, nodes), kinds=["a"] * nodes, noise=_normal(0.03))


def _two_tiers(rng: Random, nodes: int) -> Cluster:
    """Racks of 4 to 8 nodes; between them a message takes 20 to 60 % longer."""
    rack = np.arange(nodes) // int(rng.integers(4, 9))
    apart = rack[:, None] != rack[None, :]
    true = _even(rng, nodes) + math.log1p(float(rng.uniform(0.2, 0.6))) * apart
    return Cluster(true=true, kinds=["a"] * nodes, noise=_normal(0.03))


def _line(rng: Random, nodes: int) -> Cluster:
    """A line of racks of 4 to 8 nodes: each switch on the way adds 8 to 15 %."""
    rack = np.arange(nodes) // int(rng.integers(4, 9))
    hops = np.abs(rack[:, None] - rack[None, :])
    true = _even(rng, nodes) + np.log1p(float(rng.uniform(0.08, 0.15)) * hops)
    return Cluster(true=true, kinds=["a"] * nodes, noise=_normal(0.03))


def _two_kinds(rng: Random, nodes: int) -> Cluster:
    """A third to a half of the nodes is of another kind: 15 % slower."""
    slower = rng.permutation(nodes) < int(nodes * rng.uniform(0.33, 0.5))
    each = math.log(1.15) * slower
    return Cluster(
        true=_even(rng, nodes) + each[:, None] + each[None, :],
        kinds=["b" if one else "a" for one in slower],
        noise=_normal(0.03),
    )


def _gaps(rng: Random, nodes: int) -> Cluster:
    return msgspec.structs.replace(_plain(rng, nodes), missing=0.3)


def _tails(rng: Random, nodes: int) -> Cluster:
    return msgspec.structs.replace(_plain(rng, nodes), noise=_heavy)


def _spiky(rng: Random, nodes: int) -> Cluster:
    return msgspec.structs.replace(_plain(rng, nodes), noise=_spikes)


STRUCTURES = {
    "plain": _plain,
    "two-tiers": _two_tiers,
    "line": _line,
    "two-kinds": _two_kinds,
    "gaps": _gaps,
    "tails": _tails,
    "spikes": _spiky,
}


def named(cluster: Cluster, rng: Random) -> set[tuple[str, ...]]:
    """Return the kinds and nodes of what a diagnosis names."""
    found = diagnosis(cluster, rng)
    return {(one.kind, *one.nodes) for one in found.suspects} if found is not None else set()


def diagnosis(cluster: Cluster, rng: Random) -> Matrix | None:
    """Return what a diagnosis says in the end; None where there are too few pairs."""
    nodes = [f"n{number:02d}" for number in range(len(cluster.true))]
    kinds = dict(zip(nodes, cluster.kinds, strict=True))
    between = [pair for pair in itertools.combinations(nodes, 2) if rng.random() >= cluster.missing]

    def measured(chosen: Sequence[Pair], launches: int = 1) -> dict[Pair, float]:
        noise = np.median(cluster.noise(rng, (launches, len(chosen))), axis=0)
        places = [(nodes.index(first), nodes.index(second)) for first, second in chosen]
        return {
            pair: TYPICAL_S * math.exp(cluster.true[place] + own)
            for pair, place, own in zip(chosen, places, noise.tolist(), strict=True)
        }

    times = measured(between)
    strict, lax = (
        work.matrix(OP, SIZE, times, kinds=kinds, false_alarm=chance)
        for chance in (pairs.FALSE_ALARM, work.SUSPICION)
    )
    if strict is None or lax is None:
        return None
    again = confirmation.pairs([lax])
    if again:
        strict = work.confirmed(strict, lax, measured(again, AGAIN), work.usual(times, kinds, lax))
    return strict


def _alarms(
    make: Callable[[Random, int], Cluster], sizes: Sequence[int]
) -> Callable[[Sequence[int], int], Count]:
    def world(seed: Sequence[int], times: int) -> Count:
        rng = np.random.default_rng(seed)
        return Count(
            hits=sum(bool(named(make(rng, sizes[n % len(sizes)]), rng)) for n in range(times)), of=times
        )

    return world


def _planted(
    make: Callable[[Random, int], Cluster], sizes: Sequence[int], kind: str
) -> Callable[[Sequence[int], int], Count]:
    def world(seed: Sequence[int], times: int) -> Count:
        rng = np.random.default_rng(seed)
        hits = 0
        for number in range(times):
            cluster = make(rng, sizes[number % len(sizes)])
            first, second = sorted(rng.choice(len(cluster.true), 2, replace=False).tolist())
            if kind == "node":
                cluster.true[first, :] += SLOW_NODE
                cluster.true[:, first] += SLOW_NODE
                truth: tuple[str, ...] = ("node", f"n{first:02d}")
            else:
                cluster.true[first, second] += SLOW_LINK
                truth = ("link", f"n{first:02d}", f"n{second:02d}")
            # What was not measured nobody can name.
            hits += truth in named(
                msgspec.structs.replace(cluster, missing=0.0) if kind == "link" else cluster, rng
            )
        return Count(hits=hits, of=times)

    return world


SAID = {"node": "it takes 20 % longer", "link": "it takes 30 % longer"}
_SMALL, _MIDDLE = (4, 8, 16), (12, 20, 32)


def _seen(seed: Sequence[int], times: int) -> Count:
    """Count the slow nodes that are named where they are as slow as a clean diagnosis says that it could see."""
    rng = np.random.default_rng(seed)
    hits = 0
    for number in range(times):
        nodes = (4, 8, 16)[number % 3]
        noise = _normal(float(np.exp(rng.uniform(math.log(0.01), math.log(1.0)))))
        clean = msgspec.structs.replace(_plain(rng, nodes), noise=noise)
        told = diagnosis(clean, rng)
        share = math.log1p(told.visible or 0.0) if told is not None else 0.0
        clean.true[0, :] += share
        clean.true[:, 0] += share
        hits += ("node", "n00") in named(clean, rng)
    return Count(hits=hits, of=times)


def _blind(seed: Sequence[int], times: int) -> Count:
    """Count the diagnoses that call a cluster fine on a host so busy that times scatter by factors."""
    rng = np.random.default_rng(seed)
    busy = (
        msgspec.structs.replace(_plain(rng, 4), noise=_normal(float(rng.uniform(1, 3)))) for _ in range(times)
    )
    told = (diagnosis(one, rng) for one in busy)
    fine = [one is not None and not one.suspects and (one.visible or 0.0) <= 0.5 for one in told]
    return Count(hits=sum(fine), of=times)


WORLDS = (
    World(
        item="A1",
        name="diagnose-seen",
        says="nodes as slow as a run says that it names in nine cases out of ten, that are named",
        at_least=0.85,
        times=150,
        run=_seen,
    ),
    World(
        item="A1",
        name="diagnose-blind",
        says="four nodes on a host so busy that times scatter by factors, which are called fine",
        at_most=0.02,
        times=100,
        run=_blind,
    ),
    *(
        World(
            item="D",
            name=f"diagnose-{name}-alarm",
            says=f"clusters ({name}) in which something is named though nothing is wrong",
            at_most=0.02,
            times=60,
            run=_alarms(make, _SMALL if name in ("plain", "gaps") else _MIDDLE),
        )
        for name, make in STRUCTURES.items()
    ),
    *(
        World(
            item="D",
            name=f"diagnose-{name}-{kind}",
            says=f"clusters ({name}) in which the {kind} is named: {SAID[kind]}",
            at_least=0.95,
            times=40,
            run=_planted(make, (8, 16, 24) if name in ("plain", "gaps") else _MIDDLE, kind),
        )
        for name, make in STRUCTURES.items()
        for kind in ("node", "link")
    ),
)

"""``wulf diagnose`` on simulated clusters with one thing wrong, and on clean ones: is that named, and nothing else?

Every case is a cluster of six nodes, measured as ``wulf diagnose`` does it (all pairs, six launches of each size; where
the cause shows in datagrams, these), its launches made up value by value and analysed as any run is. What is assumed of
the network: a message takes 20 µs and what its size takes at 1 Gbit/s; values scatter by 6 % with 1 % of them three
times as long, launches by 2 %. What is assumed of a cause is what its signature's sources say of it; so this shows that
causes are told from each other and from noise, not that every network shows them so.

Right is a run in which the cause that was planted is named, and no other but what it brings along (a half duplex link
is a slow one, too). Goal: 95 % of all planted runs are right, and no clean run of at least 50 has anything named.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from bench.scheduling import ping_pong
from wulf.base.records import (
    Analysis,
    Cell,
    FactValue,
    Launch,
    LaunchResult,
    NodeContext,
    NodeRecord,
    Pair,
    Part,
    Plan,
    Sample,
    Workload,
)
from wulf.node.measuring.analysis import analyze_results
from wulf.stats.estimate import pairs as between
from wulf.stats.estimate.signatures import symptoms
from wulf.tools.diagnose.work import matrices_of

NODES = tuple(f"node{number:02d}" for number in range(1, 7))
PAIRS = tuple(itertools.combinations(NODES, 2))
SIZES = (64, 512, 4096, 32768, 131072, 1 << 20)
#: Values of a launch at one size, and launches.
VALUES, LAUNCHES = 400, 6
BASE_S, LINK_BITS_PER_S = 20e-6, 1e9
REPEATS, CLEAN = 10, 60
FACTS: dict[str, FactValue] = {
    "nic.mtu_bytes": 1500,
    "nic.duplex": "full",
    "nic.speed_bits_per_s": 1_000_000_000,
    "nic.speed_max_bits_per_s": 1_000_000_000,
    "nic.rx_usecs": "3",
    "network.routes": "default via 10.0.0.254 dev eth0, 10.0.0.0/24 dev eth0",
    "net.conntrack": "off",
    "firewall.rules_on_path": 0,
    "cpu.idle_exit_us": 2,
    "sysctl.net.ipv4.tcp_rmem": "4096 131072 6291456",
    "sysctl.net.ipv4.tcp_wmem": "4096 16384 4194304",
}
Random = np.random.Generator


class World:
    """A simulated cluster; a case changes it."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.op = "mpi_pingpong"
        self.sizes: Sequence[int] = SIZES
        self.facts: dict[str, dict[str, FactValue]] = {
            node: FACTS | {"nic.addresses": f"10.0.0.{number}/24"} for number, node in enumerate(NODES, 1)
        }
        #: What a message of a pair takes longer, as a factor of what it costs and of what its size costs.
        self.slower: Callable[[Pair, int], float] = lambda _pair, _size: 1.0
        #: What is added to some of the values [s]; None for nothing.
        self.extra: Callable[[Random, int, int], np.ndarray] | None = None
        #: Share of the datagrams that are lost at a size.
        self.lost: Callable[[int], float] = lambda _size: 0.0
        self.base_s = BASE_S
        self.bits_per_s = LINK_BITS_PER_S
        #: Scatter of a size as a whole, from one to the next.
        self.rough = 0.0
        self.contaminated = False
        #: How busy the busiest CPU of each node is.
        self.busy = 0.3
        self.warned: set[str] = set()

    def value_s(self, pair: Pair, size: int) -> float:
        """Return what a message takes one way."""
        return (self.base_s + size * 8 / self.bits_per_s) * self.slower(pair, size)

    def results(self) -> list[LaunchResult]:
        """Return all launches."""
        bumps = {size: float(np.exp(self.rough * self.random.standard_normal())) for size in self.sizes}
        return [
            self._launch(index, pair, bumps)
            for index, (pair, _) in enumerate(itertools.product(PAIRS, range(LAUNCHES)))
        ]

    def _launch(self, index: int, pair: Pair, bumps: dict[int, float]) -> LaunchResult:
        level = float(np.exp(0.02 * self.random.standard_normal()))
        launch = Launch(
            id=f"{index:05d}",
            index=index,
            op=self.op,
            place=pair,
            setting="default",
            purpose="measure",
            sizes_bytes=list(self.sizes),
            seed=index,
            started_at="2026-01-01T00:00:00+00:00",
            duration_s=1.0,
            status="ok",
            error=None,
            argv=["mpirun"],
            probe=None,
            context=[NodeContext(node=name, busiest_cpu_ratio=self.busy) for name in pair],
            contamination=[f"other load on {pair[0]}"] if self.contaminated else [],
        )
        samples = [self._sample(launch, pair, size, level * bumps[size]) for size in self.sizes]
        return LaunchResult(launch=launch, samples=[one for one in samples if one is not None])

    def _sample(self, launch: Launch, pair: Pair, size: int, level: float) -> Sample | None:
        lost = int(self.random.binomial(VALUES, self.lost(size)))
        count = VALUES - lost
        if not count:
            return None
        way_s = self.value_s(pair, size) * level * np.exp(0.06 * self.random.standard_normal(count))
        way_s = np.where(self.random.random(count) < 0.01, 3 * way_s, way_s)
        if self.extra is not None:
            way_s = way_s + self.extra(self.random, count, size)
        round_ns = np.rint(2e9 * way_s).astype(int)
        batches = np.array_split(round_ns, min(20, count))
        values, counts = np.unique(_binned(round_ns), return_counts=True)
        return Sample(
            launch=launch.id,
            cell=Cell(op=self.op, size_bytes=size, place=pair),
            timing="iteration",
            divisor=2.0,
            iterations=count,
            batch_iterations=max(count // 20, 1),
            histogram=[(int(value), int(number)) for value, number in zip(values, counts, strict=True)],
            min_ns=int(round_ns.min()),
            max_ns=int(round_ns.max()),
            batch_medians_ns=[float(np.median(batch)) for batch in batches],
            warmup_medians_ns=[float(np.median(round_ns))] * 2,
            warmup_settled=True,
            lost=lost,
        )

    def analysis(self) -> tuple[Analysis, list[NodeRecord]]:
        """Return what a run of it gives."""
        records = [NodeRecord(node=name, reachable=True, facts=facts) for name, facts in self.facts.items()]
        part = Part(op=self.op, sizes_bytes=list(self.sizes), places=list(PAIRS))
        plan = Plan(
            workload=Workload(parts=[part], sweeps=20, visit_us=2000),
            ladder="diagnose",
            max_size_bytes=max(self.sizes),
            precision=0.05,
            confidence=0.95,
            budget_s=120.0,
            min_launches=LAUNCHES,
            max_launches=LAUNCHES,
            seed=1,
        )
        operation = ping_pong(
            self.op, "mpi" if self.op.startswith("mpi") else "net", lossy=self.op.startswith("udp")
        )
        return analyze_results("simulated", plan, [operation], records, self.results()), records


def _binned(round_ns: np.ndarray) -> np.ndarray:
    """Round to three digits, about as the probe's histogram does."""
    step = 10.0 ** (np.floor(np.log10(np.maximum(round_ns, 1))) - 2)
    return np.asarray(np.rint(round_ns / step) * step, dtype=int)


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong."""

    name: str
    plant: Callable[[World], None]
    #: What may be named beside it, as it brings that along.
    brings: tuple[str, ...] = ()


def _slow(which: Callable[[Pair], bool], share: float, from_bytes: int = 0) -> Callable[[World], None]:
    def plant(world: World) -> None:
        world.slower = lambda pair, size: share if which(pair) and size >= from_bytes else 1.0

    return plant


def _fact(name: str, value: FactValue, nodes: Sequence[str] = NODES) -> Callable[[World], None]:
    def plant(world: World) -> None:
        for node in nodes:
            world.facts[node][name] = value

    return plant


def _both(*plants: Callable[[World], None]) -> Callable[[World], None]:
    def plant(world: World) -> None:
        for one in plants:
            one(world)

    return plant


def _set(**values: object) -> Callable[[World], None]:
    def plant(world: World) -> None:
        for name, value in values.items():
            setattr(world, name, value)

    return plant


def _sometimes(
    share: float, extra_s: float, below: int = 1 << 30
) -> Callable[[Random, int, int], np.ndarray]:
    return lambda random, count, size: np.where((random.random(count) < share) & (size < below), extra_s, 0.0)


_THIRD = NODES[2]
_RACK = set(NODES[4:])
_UDP = {"op": "udp_rr", "sizes": (64, 512, 1024, 1400, 1472)}
CASES = (
    Case(name="node", plant=_slow(lambda pair: _THIRD in pair, 2.0)),
    Case(name="link", plant=_slow(lambda pair: pair == PAIRS[3], 2.0)),
    Case(name="group", plant=_slow(lambda pair: len(_RACK & set(pair)) == 1, 2.0)),
    Case(name="network.mtu_host", plant=_fact("nic.mtu_bytes", 9000, [_THIRD])),
    Case(name="network.mtu_path", plant=_set(**_UDP, lost=lambda size: 0.999 if size > 1400 else 0.0)),
    Case(name="tcp.delayed_ack", plant=_set(op="tcp_rr", extra=_sometimes(0.2, 20e-3, 65536))),
    Case(
        name="nic.interrupt_moderation",
        plant=_both(_fact("nic.rx_usecs", "100"), _set(base_s=BASE_S + 60e-6)),
    ),
    Case(
        name="network.packet_filter",
        plant=_both(_fact("firewall.rules_on_path", 300), _set(base_s=1.5 * BASE_S)),
    ),
    Case(
        name="nic.duplex",
        plant=_both(_fact("nic.duplex", "half", [_THIRD]), _slow(lambda pair: _THIRD in pair, 3.0, 32768)),
        brings=("node",),
    ),
    Case(
        name="nic.slow_link",
        plant=_both(
            _fact("nic.speed_bits_per_s", 100_000_000, [_THIRD]),
            _slow(lambda pair: _THIRD in pair, 8.0, 4096),
        ),
        brings=("node",),
    ),
    Case(name="network.loss", plant=_set(**_UDP, lost=lambda _size: 0.01)),
    Case(
        name="tcp.window",
        plant=_both(
            _fact("sysctl.net.ipv4.tcp_rmem", "4096 16384 65536"),
            _set(op="tcp_rr", base_s=600e-6, bits_per_s=0.4e9),
        ),
    ),
    Case(
        name="cpu.power_states",
        plant=_both(_fact("cpu.idle_exit_us", 100), _set(extra=_sometimes(0.3, 60e-6, 65536))),
    ),
    Case(name="cpu.scheduler_tick", plant=_set(base_s=2e-3)),
    Case(
        name="network.shared_medium",
        plant=_set(rough=1.2, sizes=(64, 128, 256, 512, 1024, 1280, 1518, 4096, 8192, 16384)),
    ),
    Case(name="tcp.processor", plant=_set(op="tcp_rr", bits_per_s=0.4e9, busy=0.95)),
    Case(
        name="network.asymmetric_route",
        plant=_fact("network.routes", "10.0.0.0/24 dev eth0, 10.0.0.1 via 10.0.0.254 dev eth0", [_THIRD]),
    ),
    Case(name="node.contaminated", plant=_set(contaminated=True)),
    # No node is slower than another: what the links can do is all that shows it.
    Case(
        name="hardware.below_expected",
        plant=_both(
            _fact("expected.bandwidth_low_bits_per_s", 0.847e9),
            _fact("expected.latency_high_s", 119e-6),
            _fact("expected.bandwidth", "0.847 to 0.941 Gbit/s"),
            _set(bits_per_s=0.3e9),
        ),
    ),
)


def named(world: World) -> set[str]:
    """Return what the diagnosis of a cluster names."""
    analysis, records = world.analysis()
    found = {
        symptom.id
        for symptom in symptoms(
            analysis.cells, analysis.models, records, {advice.kind for advice in analysis.warnings}
        )
    }
    return found | {
        suspect.kind for matrix in matrices_of(analysis.cells, records) for suspect in matrix.suspects
    }


def main(argv: list[str]) -> int:
    """Print the confusion matrix; 0 when both goals are reached."""
    repeats, clean = (1, 5) if "--quick" in argv else (REPEATS, CLEAN)
    seeds = itertools.count(1)
    right = 0
    missed = other = 0
    print(f"{'planted':22}{'right':>7}  named")
    for case in CASES:
        counts: Counter[str] = Counter()
        good = 0
        for _ in range(repeats):
            world = World(next(seeds))
            case.plant(world)
            found = named(world)
            counts.update(found)
            missed += case.name not in found
            other += bool(found - {case.name, *case.brings})
            good += case.name in found and not found - {case.name, *case.brings}
        right += good
        print(f"{case.name:22}{good:4}/{repeats:<3} {_counted(counts)}", flush=True)
    counts = Counter()
    alarms = 0
    for _ in range(clean):
        found = named(World(next(seeds)))
        counts.update(found)
        alarms += bool(found)
    print(f"{'nothing':22}{clean - alarms:4}/{clean:<3} {_counted(counts)}")
    total = repeats * len(CASES)
    passed = right >= 0.95 * total and alarms == 0
    print(f"{missed} not named, {other} with another named; margin {between.MARGIN:.0%}")
    print(
        f"confusion value={right / total:.3f},{alarms}/{clean} goal=0.95,0/{clean} {'pass' if passed else 'short'}"
    )
    return 0 if passed else 1


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counts.most_common())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

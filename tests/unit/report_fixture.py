"""A whole made-up run for the tests of the report: seeded, with everything that can be wrong in it."""

from __future__ import annotations

import math
import random
import statistics
from pathlib import Path

from wulf.base import catalogue
from wulf.base.records import (
    SCHEMA_VERSION,
    Advice,
    Analysis,
    Audit,
    Cell,
    CellComparison,
    CellEstimate,
    Clock,
    Comparison,
    CurveModel,
    Estimate,
    Launch,
    LaunchPoint,
    LineFit,
    Manifest,
    NodeContext,
    NodeRecord,
    Operation,
    Part,
    Plan,
    ProbeInfo,
    Segment,
    Workload,
)
from wulf.node.facts.parse import parse
from wulf.node.fleet.look import judge

OPERATIONS = {
    # name: (transport, quantity, largest [B], lossy, alpha [s], inverse beta [s/B], summary)
    "mpi_pingpong": ("mpi", "half round trip", 4 << 20, False, 28e-6, 8.6e-9, "blocking MPI ping-pong"),
    "tcp_rr": ("net", "half round trip", 4 << 20, False, 21e-6, 8.5e-9, "TCP request and response"),
    "udp_rr": ("net", "half round trip", 65507, True, 19e-6, 8.5e-9, "UDP request and response"),
    "tcp_stream": ("net", "time per message", 4 << 20, False, 0.9e-6, 8.48e-9, "TCP stream in one direction"),
}
PAIRS = [("node01", "node02"), ("node01", "node03"), ("node02", "node04")]
FACTOR = (1.0, 1.03, 1.17, 1.08, 1.05, 1.12)
LAUNCHES = 12
EAGER_LIMIT = 65536
HOSTILE_NODE = "<script>alert(1)</script>"
HOSTILE_TEXT = "\x1b[31mred\x1b[0m </script><img src=x onerror=alert(2)> {{7*7}}"


def ladder(count: int = 60, largest: int = 1 << 20) -> list[int]:
    """Zero, powers of two, their neighbours and points between them: `count` sizes up to `largest`."""
    powers = [1 << k for k in range(largest.bit_length()) if 1 << k <= largest]
    between = [n * 3 // 2 for n in powers if n >= 64]
    around = [n + d for n in (1448, 4096, EAGER_LIMIT) for d in (-1, 0, 1)]
    quarters = [n * f // 4 for n in powers if n >= 1024 for f in (5, 7)]
    rest = [n * f // 8 for n in powers if n >= 256 for f in (9, 11, 13, 15)]
    sizes: list[int] = []
    for size in [0, *powers, *between, *around, *quarters, *rest]:
        if size <= largest and size not in sizes and len(sizes) < count:
            sizes.append(size)
    return sorted(sizes)


def estimate(value: float, ratio: float, unit: str, n: int = LAUNCHES) -> Estimate:
    return Estimate(
        value=value,
        low=value * (1 - ratio),
        high=value * (1 + ratio),
        confidence=0.95,
        unit=unit,
        n=n,
        method="order statistics of launch medians",
    )


def _interval(values: list[float], unit: str) -> Estimate:
    """Median with the interval of order statistics (3rd lowest to 3rd highest of 12: 96 %)."""
    ordered = sorted(values)
    known = len(ordered) >= 6
    return Estimate(
        value=statistics.median(ordered),
        low=ordered[2] if known else None,
        high=ordered[-3] if known else None,
        confidence=0.95,
        unit=unit,
        n=len(ordered),
        method="order statistics of launch medians",
    )


def _true_time(op: str, size: int, factor: float) -> float:
    alpha, inverse_beta = OPERATIONS[op][4:6]
    step = 26e-6 if op == "mpi_pingpong" and size > EAGER_LIMIT else 0.0
    segments = max(0, math.ceil(size / 1448) - 1)
    return (alpha + inverse_beta * size + step + min(segments, 1) * 2.5e-6) * factor


def _cell(rng: random.Random, op: str, size: int, pair: tuple[str, str], factor: float) -> CellEstimate:
    spread = 0.006 if size else 0.05
    medians = [_true_time(op, size, factor) * rng.lognormvariate(0, spread) for _ in range(LAUNCHES)]
    points = [
        LaunchPoint(
            launch=f"{i:05d}",
            index=i,
            median_s=median,
            quantiles_s={"p50": median},
            modes=1,
            contaminated=i == 4,
        )
        for i, median in enumerate(medians)
    ]
    time = _interval(medians, "s")
    middle = time.value
    shape = {"min": 0.93, "p5": 0.96, "p25": 0.985, "p50": 1.0, "p75": 1.03, "p95": 1.14}
    shape |= {"p99": 1.6, "p99.9": 3.1, "max": 6.5 + 4 * rng.random()}
    low, high = time.low or middle, time.high or middle
    bandwidth = None
    if size:
        bandwidth = Estimate(
            value=size / middle,
            low=size / high,
            high=size / low,
            confidence=0.95,
            unit="B/s",
            n=LAUNCHES,
            method="order statistics of launch medians",
        )
    half = time.half_width_ratio or 0.0
    return CellEstimate(
        cell=Cell(op=op, size_bytes=size, place=pair),
        time=time,
        bandwidth=bandwidth,
        quantiles_s={name: middle * ratio for name, ratio in shape.items()},
        launches=points,
        iterations=LAUNCHES * 1400,
        lost=rng.randrange(40) if OPERATIONS[op][3] and size > 20000 else 0,
        corrupt=0,
        modes_between=1,
        target=0.02,
        reached=half <= 0.02,
    )


def _fit(method: str, op: str, factor: float, sizes: list[int]) -> LineFit:
    alpha, inverse_beta = (value * factor for value in OPERATIONS[op][4:6])
    if method == "least-squares":
        alpha *= 1.11
    line = [(float(n), alpha + n * inverse_beta) for n in sizes]
    return LineFit(
        method=method,
        alpha=estimate(alpha, 0.012, "s"),
        inverse_beta=estimate(inverse_beta, 0.004, "s/B"),
        r_squared=0.99874 if method == "theil-sen" else 0.99921,
        residual_spread_s=1.2e-6,
        curve=[(n, t, t * 0.95, t * 1.05) for n, t in line],
    )


def _model(op: str, pair: tuple[str, str], factor: float, sizes: list[int]) -> CurveModel:
    alpha, inverse_beta = (value * factor for value in OPERATIONS[op][4:6])
    segments = [
        Segment(
            first_size_bytes=sizes[0],
            last_size_bytes=sizes[-1],
            intercept=estimate(alpha, 0.01, "s"),
            slope=estimate(inverse_beta, 0.004, "s/B"),
            breakpoint_bytes=None,
            breakpoint_interval=None,
            cause=None,
        )
    ]
    if op == "mpi_pingpong" and sizes[-1] > EAGER_LIMIT:
        segments = [
            Segment(
                first_size_bytes=sizes[0],
                last_size_bytes=EAGER_LIMIT,
                intercept=estimate(alpha, 0.01, "s"),
                slope=estimate(inverse_beta, 0.01, "s/B"),
                breakpoint_bytes=EAGER_LIMIT + 1,
                breakpoint_interval=(EAGER_LIMIT, EAGER_LIMIT + 1),
                cause="likely the eager limit (64 KiB)",
            ),
            Segment(
                first_size_bytes=EAGER_LIMIT + 1,
                last_size_bytes=sizes[-1],
                intercept=estimate(alpha + 26e-6 * factor, 0.02, "s"),
                slope=estimate(inverse_beta, 0.004, "s/B"),
                breakpoint_bytes=None,
                breakpoint_interval=None,
                cause=None,
            ),
        ]
    return CurveModel(
        op=op,
        place=pair,
        setting="default",
        robust=_fit("theil-sen", op, factor, sizes),
        least_squares=_fit("least-squares", op, factor, sizes),
        segments=segments,
        zero_byte_latency=None if op == "tcp_stream" else estimate(alpha, 0.011, "s"),
        asymptotic_bandwidth=estimate(1 / inverse_beta, 0.004, "B/s"),
        n_half_bytes=estimate(alpha / inverse_beta, 0.013, "B"),
        notes=["a stream has no zero-byte latency"] if op == "tcp_stream" else [],
    )


def _launches(ops: list[str], pairs: list[tuple[str, str]], sizes: list[int]) -> list[Launch]:
    launches = []
    for i in range(LAUNCHES):
        for op in ops:
            for pair in pairs:
                index = len(launches)
                failed = index == 7
                launches.append(
                    Launch(
                        id=f"{index:05d}",
                        index=index,
                        op=op,
                        place=pair,
                        setting="default",
                        sizes_bytes=sizes,
                        seed=1000 + index,
                        started_at=f"2026-11-21T08:{i * 2:02d}:00+00:00",
                        duration_s=1.9,
                        status="failed" if failed else "ok",
                        error=f"{pair[1]} has not answered for 8 s" if failed else None,
                        argv=["mpirun", "-np", "2", "--host", ",".join(pair), "wulf-probe-mpi", "--op", op],
                        probe=None if failed else _probe(op, pair),
                        context=[NodeContext(node=name, load1=0.4, steal_ratio=0.001) for name in pair],
                        contamination=[f"{pair[0]}: other processes used 34 % of a CPU"] if i == 4 else [],
                    )
                )
    return launches


def _probe(op: str, pair: tuple[str, str]) -> ProbeInfo:
    return ProbeInfo(
        version="0.1.0",
        protocol=1,
        mpi="Open MPI v4.1.4" if op.startswith("mpi") else None,
        hosts=list(pair),
        cpus=[[0], [1]],
        clock=Clock(source="CLOCK_MONOTONIC_RAW", resolution_ns=1.0, cost_ns=24.1),
    )


def _nodes(pairs: list[tuple[str, str]]) -> list[NodeRecord]:
    names = sorted({name for pair in pairs for name in pair})
    facts = {
        "kernel.release": "6.1.0-18-amd64",
        "kernel.os": "Debian GNU/Linux 12",
        "cpu.model": "AMD EPYC 7302P 16-Core Processor",
        "cpu.count": 16,
        "nic.driver": "igb",
        "nic.speed_bits_per_s": 1_000_000_000,
        "nic.mtu_bytes": 1500,
        "mpi.openmpi": "4.1.4",
    }
    nodes = []
    for i, name in enumerate(names):
        own = dict(facts)
        if name == HOSTILE_NODE:
            own["kernel.release"] = HOSTILE_TEXT
        elif i == 2:
            own["kernel.release"] = "6.1.0-21-amd64"
        nodes.append(
            NodeRecord(
                node=name,
                reachable=True,
                facts=own,
                unknown={"nic.firmware": "ethtool is not installed"},
            )
        )
    return [*nodes, NodeRecord(node="node99", reachable=False, error="node99: no route to host")]


def audit() -> Audit:
    """Return the audit of four captured nodes, of which two differ."""
    knobs = list(catalogue.knobs().values())
    text = (Path(__file__).parents[1] / "golden" / "lab-node.tree").read_text(encoding="utf-8")
    changes = {
        "node02": ("/sys/class/net/host0/mtu:1500", "/sys/class/net/host0/mtu:1400"),
        "node03": ("/proc/sys/net/ipv4/tcp_timestamps:1", "/proc/sys/net/ipv4/tcp_timestamps:0"),
    }
    nodes = [
        parse(name, text.replace(*changes.get(name, ("", ""))), "host0", knobs)
        for name in ("node01", "node02", "node03", "node04")
    ]
    nodes.append(NodeRecord(node="node05", reachable=False, error="node05: no route to host"))
    return judge(nodes, "hpc")


def cluster_audit(count: int) -> Audit:
    """Return the audit of many captured nodes that tell little: much is unknown, and a few differ in several ways."""
    knobs = list(catalogue.knobs().values())
    text = (Path(__file__).parents[1] / "golden" / "nodes" / "igb.tree").read_text(encoding="utf-8")
    # Captured before these lines of lscpu were looked at; what no node tells is no gap of some.
    vendor = next(line for line in text.splitlines() if "Vendor ID:" in line)
    more = ("CPU family: 6", "Model: 85", "BogoMIPS: 4200.00", "Flags: constant_tsc avx2 fma")
    text = text.replace(vendor, "\n".join((vendor, *(f" {line}" for line in more))), 1)
    changes = {
        4: ("/sys/class/net/eno1/mtu:9000", "/sys/class/net/eno1/mtu:1500"),
        5: ("tcp_timestamps:1", "tcp_timestamps:0"),
        7: ("scaling_governor:performance", "scaling_governor:powersave"),
        9: ("current_clocksource", "not_told"),
    }
    kinds = {place: text.replace(*changes.get(place, ("", ""))) for place in range(16)}
    names = [f"compute{number:03d}" for number in range(1, count + 1)]
    return judge([parse(name, kinds[i % 16], "eno1", knobs) for i, name in enumerate(names)], "hpc")


def _manifest(ops: list[str], pairs: list[tuple[str, str]], sizes: list[int]) -> Manifest:
    operations = [
        Operation(
            name=op,
            transport=OPERATIONS[op][0],
            ranks=2,
            pattern="stream" if op == "tcp_stream" else "ping-pong",
            axis="message size",
            axis_unit="B",
            quantity=OPERATIONS[op][1],
            better="lower",
            moves_bytes=True,
            usual=1 + list(OPERATIONS).index(op),
            divisor=2.0 if OPERATIONS[op][1] == "half round trip" else 1.0,
            timing="batch" if op == "tcp_stream" else "iteration",
            min_size_bytes=0,
            max_size_bytes=OPERATIONS[op][2],
            lossy=OPERATIONS[op][3],
            summary=OPERATIONS[op][6],
        )
        for op in ops
    ]
    return Manifest(
        schema_version=SCHEMA_VERSION,
        id="2026-11-21T08-00-00-demo",
        created_at="2026-11-21T08:00:00+00:00",
        updated_at="2026-11-21T08:24:31+00:00",
        status="budget",
        wulf_version="0.1.0",
        command_line=["wulf", "measure", "--ops", ",".join(ops), "--precision", "2%"],
        plan=Plan(
            workload=Workload(
                parts=[Part(op=op, sizes_bytes=sizes, places=pairs) for op in ops], sweeps=5, visit_us=2000
            ),
            ladder="adaptive",
            max_size_bytes=max(sizes, default=0),
            precision=0.02,
            confidence=0.95,
            budget_s=1500.0,
            min_launches=6,
            max_launches=40,
            seed=20261121,
        ),
        operations=operations,
        cluster='[cluster]\nname = "demo"\nnodes = "node[01-04]"\ninterface = "eth0"\n',
        software={
            "python": "3.11.2",
            "mpi_compiler": "gcc 12.2.0",
            "probe_sha256": "5a17c0de",
            "mpich": None,
        },
        message="the budget of 25 min was spent before all cells reached their target",
    )


def _warnings(pairs: list[tuple[str, str]]) -> list[Advice]:
    return [
        Advice(
            kind="failed_launch",
            severity="error",
            subject="launch 00007",
            text=f"{pairs[-1][1]} has not answered for 8 s",
            advice="Look at the node's log and its cable, then run 'wulf measure --resume latest'.",
        ),
        Advice(
            kind="not_reached",
            severity="warning",
            subject="0 B",
            text="±4 %, target 2 %",
            advice="Raise --budget, or accept the interval that is printed.",
        ),
        Advice(
            kind="lost",
            severity="note",
            subject="udp_rr",
            text="some datagrams of more than 20000 B were lost; they have no time and are not in the figures",
            advice="Look for drops with 'ethtool -S' on both nodes.",
        ),
    ]


def make(
    ops: tuple[str, ...] = tuple(OPERATIONS),
    pairs: int = 3,
    sizes: int = 60,
    hostile: bool = False,
    seed: int = 1,
) -> tuple[Manifest, list[NodeRecord], list[Launch], Analysis]:
    """Return manifest, nodes, launches and analysis of a made-up run."""
    rng = random.Random(seed)
    names = ["node01", "node02", "node03", HOSTILE_NODE if hostile else "node04"]
    every = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    chosen = PAIRS if pairs == 3 and not hostile else every[-pairs:] if hostile else every[:pairs]
    steps = ladder(sizes)
    cells, models = [], []
    for op in ops:
        own = [n for n in steps if n <= OPERATIONS[op][2] and (n or op != "tcp_stream")]
        for pair, factor in zip(chosen, FACTOR, strict=False):
            cells += [_cell(rng, op, size, pair, factor) for size in own]
            models.append(_model(op, pair, factor, own))
    launches = _launches(list(ops), chosen, steps)
    analysis = Analysis(
        schema_version=SCHEMA_VERSION,
        run_id="2026-11-21T08-00-00-demo",
        cells=cells,
        models=models,
        warnings=_warnings(chosen),
        launches_ok=sum(launch.status == "ok" for launch in launches),
        launches_failed=sum(launch.status == "failed" for launch in launches),
        launches_contaminated=sum(bool(launch.contamination) for launch in launches),
    )
    return _manifest(list(ops), chosen, steps), _nodes(chosen), launches, analysis


def empty() -> tuple[Manifest, list[NodeRecord], list[Launch], Analysis]:
    """Return a run in which nothing was measured."""
    manifest = _manifest(["mpi_pingpong"], [PAIRS[0]], [0, 1, 64])
    analysis = Analysis(
        schema_version=SCHEMA_VERSION,
        run_id=manifest.id,
        cells=[],
        models=[],
        warnings=[],
        launches_ok=0,
        launches_failed=0,
        launches_contaminated=0,
    )
    return manifest, [], [], analysis


def comparison(hostile: bool = False) -> Comparison:
    """Return a comparison of two runs with every verdict in it."""
    rng = random.Random(3)
    cells = []
    for pair in PAIRS[:2]:
        for size in ladder(24):
            if size <= EAGER_LIMIT:
                ratio, verdict, p = 0.90 + rng.gauss(0, 0.004), "better", 0.001
            else:
                ratio, verdict, p = 1.0 + rng.gauss(0, 0.004), "no difference", 0.6
            if size == 0:
                ratio, verdict, p = 1.04, "no decision", 0.2
            if size == 1 << 20:
                ratio, verdict, p = 1.08, "worse", 0.004
            cells.append(_compared(pair, size, ratio, verdict, p))
    pooled = {"mpi_pingpong": _compared(("all pairs", "all pairs"), 0, 0.943, "better", 0.002)}
    return Comparison(
        schema_version=SCHEMA_VERSION,
        base="2026-11-20-before",
        candidate=HOSTILE_TEXT if hostile else "2026-11-21-after",
        differing_facts={"interrupt_coalescing": ("rx-usecs 3", "rx-usecs 0")},
        cells=cells,
        pooled=pooled,
        smallest_effect=0.012,
        smallest_effects={"mpi_pingpong": 0.012},
        offset=0.1,
        margin=0.02,
        verdict="mixed",
        reason="latency is better below 64 KiB and worse at 1 MiB",
    )


def _compared(pair: tuple[str, str], size: int, ratio: float, verdict: str, p: float) -> CellComparison:
    width = 0.05 if verdict == "no decision" else 0.008
    return CellComparison(
        op="mpi_pingpong",
        size_bytes=size,
        place=pair,
        ratio=Estimate(
            value=ratio,
            low=ratio * (1 - width),
            high=ratio * (1 + width),
            confidence=0.95,
            unit="ratio",
            n=12,
            method="Hodges-Lehmann shift of logarithms",
        ),
        p_value=p,
        p_adjusted=min(1.0, p * 1.6),
        verdict=verdict,
    )

"""A calibrated run of known parameters and traces of small programs, for tests of predictions."""

from __future__ import annotations

from msgspec.structs import replace

from tests.unit.make_cells import analysis, curve
from tests.unit.make_records import manifest, operation
from wulf.base import store
from wulf.base.records import (
    SCHEMA_VERSION,
    BandwidthNeed,
    BandwidthPoint,
    Contended,
    Contention,
    CurveLine,
    Estimate,
    HopSource,
    IntervalPart,
    LogGP,
    OtherProgram,
    PathShares,
    Predicted,
    Prediction,
    Timeline,
    TimelineRow,
    Tolerance,
)
from wulf.base.trace.layout import Flag, Kind
from wulf.base.trace.writer import StreamWriter, write_container
from wulf.tools.worth.record import Influence, JobEffect, NetworkWorth, Worth

SIZES = [1, 64, 1024, 4096, 16384, 32768, 65536, 131072, 262144, 1048576]
L, O_S, O_R, PER_BYTE, EAGER = 30e-6, 4e-6, 5e-6, 8.5e-9, 65536
BETWEEN, WITHIN = ("node01", "node02"), ("node01", "node01")
#: Within a node all is ten times as fast.
FACTORS = {BETWEEN: 1.0, WITHIN: 0.1}
OPERATIONS = [
    *(
        operation(name)
        for name in ("mpi_pingpong", "mpi_send_overhead", "mpi_isend_overhead", "mpi_recv_overhead")
    ),
    *(replace(operation(f"train_{n}"), asked=f"mpi_rate:{n}") for n in (1, 16)),
]


def round_trip(size):
    """Half of it, which is what a curve has [s]."""
    return O_S + O_R + L * (1 if size <= EAGER else 3) + PER_BYTE * size


def cells(places=(BETWEEN, WITHIN), spread=0.002):
    found = []
    for place in places:
        factor = FACTORS[place]
        measured = {
            "mpi_pingpong": [round_trip(size) for size in SIZES],
            "mpi_send_overhead": [O_S for _ in SIZES],
            "mpi_isend_overhead": [O_S for _ in SIZES],
            "mpi_recv_overhead": [O_R for _ in SIZES],
            "train_1": [100e-6 + PER_BYTE * size for size in SIZES],
            "train_16": [(100e-6 + 16 * PER_BYTE * size) / 16 for size in SIZES],
        }
        for seed, (op, times) in enumerate(measured.items()):
            one = curve(SIZES, [factor * time for time in times], spread=spread, seed=seed, op=op)
            found += [replace(cell, cell=replace(cell.cell, place=place)) for cell in one]
    return found


def parameters(places=(BETWEEN, WITHIN)):
    return [
        LogGP(
            place=place,
            setting="default",
            eager_limit=(EAGER, EAGER + 1),
            eager_limit_said=("limit", EAGER),
        )
        for place in places
    ]


def calibrated_run(path, places=(BETWEEN, WITHIN), more=(), **changes):
    """A run directory whose analysis has these cells; `more`: what making a communicator takes, and connecting."""
    others = []
    for op, time in zip(("mpi_comm_dup", "mpi_connect"), more, strict=False):
        (one,) = curve([0], [time], spread=0.0, op=op)
        others.append(replace(one, cell=replace(one.cell, place=BETWEEN)))
    operations = [*OPERATIONS, *(operation(one.cell.op) for one in others)]
    with store.create(path, manifest(id=path.name, status="complete", operations=operations)):
        pass
    found = replace(
        analysis([*cells(places), *others], path.name),
        parameters=parameters(places),
        launches_seen=0,
        **changes,
    )
    store.save_analysis(path, found)
    return store.load(path)


def ping_pong(path, size, count=20, compute_ns=0, run_ns=0, hosts=("node01", "node02"), **note):
    """Rank 0 sends and waits for the answer, again and again; `note` is what the trace says of itself."""
    streams = []
    for rank in (0, 1):
        stream = StreamWriter(rank, 2, host=hosts[rank])
        kinds = (Kind.SEND, Kind.RECV) if rank == 0 else (Kind.RECV, Kind.SEND)
        for _ in range(count):
            stream.add(kinds[0], peer=1 - rank, bytes=size, compute_ns=compute_ns)
            stream.add(kinds[1], peer=1 - rank, bytes=size)
        streams.append(stream.finish(run_ns))
    write_container(path, {"command": "./ping-pong"} | note, streams)
    return path


def ring(
    path,
    *,
    ranks=4,
    steps=50,
    size=8192,
    compute_ns=300_000,
    run_ns=0,
    ranks_per_node=1,
    wild=False,
    cut=False,
):
    """All send to the next and receive from the one before, or from anybody, then agree on a number.

    With `cut` the last rank is killed in its last step.
    """
    streams = []
    for rank in range(ranks):
        stream = StreamWriter(rank, ranks, host=f"node{rank // ranks_per_node + 1:02d}")
        for step in range(steps):
            stream.add(
                Kind.IRECV,
                peer=(rank - 1) % ranks,
                bytes=size,
                request=1,
                compute_ns=compute_ns + 997 * (step % 7),
                flags=Flag.WILD if wild else 0,
            )
            if cut and rank == ranks - 1 and step == steps - 1:
                break
            stream.add(Kind.SEND, peer=(rank + 1) % ranks, bytes=size)
            stream.add(Kind.WAIT, peer=(rank - 1) % ranks, request=1)
            stream.add(Kind.ALLREDUCE, bytes=8)
        streams.append(stream.finish(run_ns))
    write_container(path, {"command": "./ring --steps 50"}, streams)
    return path


def figure(value, ratio=0.05, unit="s"):
    low, high = sorted((value * (1 - ratio), value * (1 + ratio)))
    return Estimate(value=value, low=low, high=high, confidence=0.95, unit=unit, n=200, method="test")


def predicted(name, change, hops, verdict):
    parts = PathShares(
        compute_s=6.0, latency_s=2 * change, bandwidth_s=1.5 * change, overhead_s=0.5, hops=hops
    )
    return Predicted(
        name=name,
        title=f"the network {name}",
        time=figure(10 * change),
        change=figure(change, unit="ratio"),
        model_s=6.5 + 3.5 * change,
        path=parts,
        source="a test (memory)",
        verdict=verdict,
        made_of=[
            IntervalPart(
                what="mpi_exchange of the calibration",
                share=0.82,
                without=0.021,
                narrower="6 launches tell it: --min-launches 18 --budget 30m",
            )
        ],
    )


def timeline(network, part, for_s, rows=4, cells=20):
    """Ranks that compute, then wait; the last cell of the second row is past its end."""
    waiting = [0.3 if cell % 2 else 0.0 for cell in range(cells)]
    lines = [
        TimelineRow(
            first_rank=4 * row,
            last_rank=4 * row + 3,
            computing=[0.95 - one for one in waiting[:-1]] + [0.0 if row == 1 else 0.9],
            messages=[0.05] * (cells - 1) + [0.0],
            waiting=[*waiting[:-1], 0.0],
        )
        for row in range(rows)
    ]
    return Timeline(network=network, part=part, from_s=0.0, for_s=for_s, rows=lines)


def contention(beside=()):
    """The same networks event by event."""
    names = ("as it is", "25gbe-roce", "10gbe+compute=x0.9", "latency=22.4µs", "latency=100µs")
    networks = [
        Contended(
            name=name,
            time=figure(10 * change),
            change=figure(change, unit="ratio"),
            verdict=verdict,
            model_s=10 * change,
            gap=figure(1.12, 0.01, unit="ratio"),
            slowed=figure(1.4, unit="ratio") if beside else None,
            moved=12,
            beside=[OtherProgram(trace=one, time=figure(4.0)) for one in beside],
        )
        for name, change, verdict in zip(
            names,
            (1.0, 0.75, 1.0, 0.97, 1.4),
            ("no difference", "faster", "no difference", "cannot be told", "slower"),
            strict=True,
        )
    ]
    return Contention(
        samples=12,
        topology="/etc/slurm/topology.conf" if beside else "",
        wild=40,
        chosen=36,
        base=networks[0],
        scenarios=networks[1:],
        meaning=["Contention matters: event by event the run time changes by +12 %."],
    )


def prediction(found=None):
    """A prediction as a record, of all verdicts."""
    changes = (0.7, 1.0, 0.97, 1.4)
    verdicts = ("faster", "no difference", "cannot be told", "slower")
    scenarios = [
        predicted(name, change, 60_000, verdict)
        for name, change, verdict in zip(
            ("25gbe-roce", "10gbe+compute=x0.9", "latency=22.4µs", "latency=100µs"),
            changes,
            verdicts,
            strict=True,
        )
    ]
    lines = [(0.0, 9.0, 10_000), (20e-6, 9.2, 60_000), (90e-6, 13.4, 90_000)]
    return Prediction(
        schema_version=SCHEMA_VERSION,
        trace="cfd.wtrace",
        command="mpirun -np 64 ./cfd input",
        ranks=64,
        nodes=8,
        run="cal",
        latency_s=24e-6,
        bandwidth=117e6,
        samples=200,
        seed=1,
        operations=5_700_000,
        own_s=10.4,
        gap=figure(0.96, unit="ratio"),
        base=predicted("as it is", 1.0, 60_000, "the model's own time"),
        scenarios=scenarios,
        bound=predicted("ideal network", 0.62, 0, "faster"),
        curve=[CurveLine(latency_s=at, time_s=time, hops=hops) for at, time, hops in lines],
        tolerance=[
            Tolerance(slower=slower, latency=figure(latency), beyond_s=1e-3)
            for slower, latency in ((0.01, 32e-6), (0.02, 34e-6), (0.05, 39e-6))
        ],
        bandwidth_curve=[
            BandwidthPoint(factor=factor, bandwidth=117e6 * factor, time_s=8.9 + 1.5 / factor)
            for factor in (0.25, 0.5, 1.0, 2.0, 4.0)
        ],
        bandwidth_need=[
            BandwidthNeed(slower=slower, bandwidth=figure(rate, unit="B/s"), below=29e6)
            for slower, rate in ((0.01, 109e6), (0.02, 103e6), (0.05, 87e6))
        ],
        hops=[
            HopSource(call="allreduce", ranks=[0, 1, 2, 3], size_bytes=8, hops=50_000),
            HopSource(call="isend", ranks=[3], size_bytes=4096, hops=10_000),
            HopSource(call="allreduce", ranks=[5], size_bytes=8, hops=70, between=False),
        ],
        timelines=[
            timeline(name, part, for_s)
            for name, shorter in (("as it is", 1.0), ("25gbe-roce", 0.7))
            for part, for_s in (("whole", 10.4 * shorter), ("middle", 2e-3))
        ],
        contention=found,
        conclusion=["25gbe-roce: faster.", "Do not buy 10gbe+compute=x0.9 for this program."],
        notes=["Compute times vary."],
    )


def valued():
    """What networks are worth, as a record."""
    networks = [
        NetworkWorth(
            network=name,
            title=f"the network {name}",
            jobs=[JobEffect(trace="cfd.wtrace", share=0.6, change=figure(0.8, unit="ratio"))],
            saved_node_hours=figure(30_000, unit="h"),
            value=figure(9_000, 0.4, "EUR/year"),
            price=figure(12_000, 0.3, "EUR"),
            power=figure(1_100, 0.3, "EUR/year"),
            net=figure(net, 0.6, "EUR"),
            break_even_port=figure(980, 0.4, "EUR"),
            pay_back_years=None if net < 0 else figure(1.5, 0.4, "years"),
            pays=pays,
            worth_nodes=figure(3.8, unit="nodes"),
            nodes_for_it=figure(2.2, 0.3, "nodes"),
            energy=None if net < 0 else figure(7_500, 0.4, "kWh/year"),
            beyond_tuned=figure(0.9, unit="ratio"),
            net_after_tuning=figure(net - 5_000, 0.6, "EUR"),
            pays_after_tuning=pays,
            leads=pays,
            source="estimate",
            verdict=verdict,
            influences=[
                Influence(what=what, at_low=net - width, at_high=net + width)
                for what, width in (("price of a node-hour", 9_000.0), ("run time of cfd.wtrace", 4_000.0))
            ],
        )
        for name, net, pays, verdict in (
            ("25gbe-roce", 19_600.0, 1.0, "pays"),
            ("100gbe-roce", -8_000.0, 0.0, "does not pay"),
            ("10gbe", 900.0, 0.6, "cannot be told"),
        )
    ]
    return Worth(
        schema_version=SCHEMA_VERSION,
        run="cal",
        nodes=32,
        hours_a_year=7900,
        years=4,
        currency="EUR",
        samples=200,
        seed=1,
        tuned="1gbe-tuned",
        tuned_change=figure(0.95, unit="ratio"),
        bound_port=figure(1_400, 0.4, "EUR"),
        networks=networks,
        conclusion=["Tune first: 1gbe-tuned.", "It pays to buy 25gbe-roce."],
        notes=["A node-hour that is saved is worth what it costs."],
    )

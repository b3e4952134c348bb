"""A calibrated run of known parameters and traces of small programs, for tests of predictions."""

from __future__ import annotations

from msgspec.structs import replace

from tests.unit.make_cells import analysis, curve
from tests.unit.make_records import manifest, operation
from wulf import store
from wulf.records import LogGP
from wulf.wtrace.layout import Kind
from wulf.wtrace.writer import StreamWriter, write_container

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


def calibrated_run(path, places=(BETWEEN, WITHIN), **changes):
    """A run directory whose analysis has these cells."""
    with store.create(path, manifest(id=path.name, status="complete", operations=OPERATIONS)):
        pass
    found = replace(
        analysis(cells(places), path.name), parameters=parameters(places), launches_seen=0, **changes
    )
    store.save_analysis(path, found)
    return store.load(path)


def ping_pong(
    path, size, count=20, compute_ns=0, run_ns=0, hosts=("node01", "node02"), command="./ping-pong"
):
    """Rank 0 sends and waits for the answer, again and again."""
    streams = []
    for rank in (0, 1):
        stream = StreamWriter(rank, 2, host=hosts[rank])
        kinds = (Kind.SEND, Kind.RECV) if rank == 0 else (Kind.RECV, Kind.SEND)
        for _ in range(count):
            stream.add(kinds[0], peer=1 - rank, bytes=size, compute_ns=compute_ns)
            stream.add(kinds[1], peer=1 - rank, bytes=size)
        streams.append(stream.finish(run_ns))
    write_container(path, {"command": command}, streams)
    return path


def ring(path, ranks=4, steps=50, size=8192, compute_ns=300_000, run_ns=0, ranks_per_node=1):
    """All send to the next and receive from the one before, then agree on a number."""
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
            )
            stream.add(Kind.SEND, peer=(rank + 1) % ranks, bytes=size)
            stream.add(Kind.WAIT, peer=(rank - 1) % ranks, request=1)
            stream.add(Kind.ALLREDUCE, bytes=8)
        streams.append(stream.finish(run_ns))
    write_container(path, {"command": "./ring --steps 50"}, streams)
    return path

"""Traces of applications that many run (LAMMPS, HPC Challenge), and of programs that come with wulf."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.native import programs
from tests.native.tracing import Tracer, tracer_of
from wulf.base.trace.layout import Kind, State
from wulf.base.trace.reader import Trace, read
from wulf.base.trace.summary import summary
from wulf.base.trace.writer import pack
from wulf.node.programs.shipped import SHIPPED
from wulf.tools.hpcc import program as hpcc
from wulf.tools.run import efficiency_loss

pytestmark = [pytest.mark.mpi, pytest.mark.thorough]

#: Of pieces of a broadcast along cables (native/probe/ops/mpi/bcast_chain.c).
TAG_PIECE = 200
#: A crystal that melts.
MELT = """\
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 4 0 4 0 4
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
fix 1 all nve
thermo 10
run 20
"""


@pytest.fixture
def tracer() -> Tracer:
    """Debian builds both with Open MPI."""
    return tracer_of("openmpi")


def traced(tracer: Tracer, directory: Path, name: str, *words: str) -> tuple[Trace, str]:
    program = programs.program(SHIPPED[name].program, "openmpi") if name in SHIPPED else shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed")
    streams = directory / "streams"
    streams.mkdir()
    done = tracer.run(streams, Path(program), *words, ranks=2)
    assert done.returncode == 0 and "wulf-tracer" not in done.stderr, done.stdout + done.stderr
    pack(directory / "a.wtrace", {"command": name}, streams)
    trace = read(directory / "a.wtrace")
    for stream in trace.streams:
        stream.verify()
        assert stream.state is State.FINISHED and stream.lost == 0
    return trace, done.stdout


def test_lammps(tracer: Tracer, tmp_path: Path) -> None:
    (tmp_path / "in.melt").write_text(MELT)
    trace, printed = traced(tracer, tmp_path, "lmp", "-in", "in.melt")
    assert "Total wall time" in printed
    assert not trace.unsound
    pairs = {(pair.source, pair.destination): pair for pair in summary(trace).pairs}
    # Atoms at the boundary are sent in every step, both ways.
    assert pairs[0, 1].count > 20 and pairs[1, 0].count > 20


def test_hpc_challenge(tracer: Tracer, tmp_path: Path) -> None:
    (tmp_path / "hpccinf.txt").write_text(hpcc.input_file(96, 2))
    trace, _ = traced(tracer, tmp_path, "hpcc")
    assert "Success=1" in (tmp_path / "hpccoutf.txt").read_text()
    calls = {one.call: one.count for one in summary(trace).calls}
    assert {"send", "recv", "bcast", "allreduce", "alltoall", "sendrecv"} <= set(calls)


@pytest.mark.parametrize(
    ("name", "words", "calls"),
    [
        ("ep", ("--class", "S"), {"allreduce"}),
        ("is", ("--class", "S"), {"allreduce", "alltoallv"}),
        ("cg", ("--class", "S"), {"allreduce"}),
        ("search", ("--sequences", "40", "--count", "2"), {"send", "recv"}),
    ],
)
def test_kernels_and_the_search(
    tracer: Tracer, tmp_path: Path, name: str, words: tuple[str, ...], calls: set[str]
) -> None:
    trace, printed = traced(tracer, tmp_path, name, *words)
    assert "result right" in printed
    assert not trace.unsound
    assert calls <= {one.call for one in summary(trace).calls}
    # It can be replayed, and the parts of its time are its time.
    split = efficiency_loss.of(trace.path)
    parts = (split.computing_s, split.files_s, split.waiting_s, split.transfer_s)
    assert sum(parts) == pytest.approx(2 * split.run_s)
    assert min(parts) >= -0.01 * split.run_s


@pytest.mark.parametrize(
    ("operation", "ranks", "is_cable"),
    [
        ("mpi_bcast_chain", 5, lambda one, other, _: other - one == 1),
        ("mpi_bcast_ring", 5, lambda one, other, ranks: (other - one) % ranks in (1, ranks - 1)),
        ("mpi_bcast_tree", 8, lambda one, other, _: (one ^ other).bit_count() == 1),
        ("mpi_bcast_tree", 6, lambda one, other, _: (one ^ other).bit_count() == 1),
    ],
)
def test_broadcasts_along_cables_send_over_cables_alone(
    tracer: Tracer, tmp_path: Path, operation: str, ranks: int, is_cable: Callable[[int, int, int], bool]
) -> None:
    streams = tmp_path / "streams"
    streams.mkdir()
    words = ("--op", operation, "--sizes", "40000", "--sweeps", "1", "--visit-us", "1")
    done = tracer.run(streams, programs.program("wulf-probe-mpi", "openmpi"), *words, ranks=ranks)
    assert done.returncode == 0, done.stdout + done.stderr
    pack(tmp_path / "a.wtrace", {"command": operation}, streams)
    sent: set[tuple[int, int]] = set()
    for stream in read(tmp_path / "a.wtrace").streams:
        records = stream.slots[stream.starts()]
        pieces = records[(records["kind"] == Kind.ISEND) & (records["tag"] == TAG_PIECE)]
        sent |= {(stream.rank, int(peer)) for peer in pieces["peer"]}
    # Everybody but the first has it from one neighbour.
    assert sorted(other for _, other in sent) == list(range(1, ranks))
    assert all(is_cable(one, other, ranks) for one, other in sent)

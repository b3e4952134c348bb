"""What the tracer records of small programs that count themselves, with each MPI library of this machine."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from tests.native.conftest import build
from wulf.wtrace.layout import Kind, State, Unsound
from wulf.wtrace.reader import Stream, Trace, read
from wulf.wtrace.writer import pack

PROGRAM = Path(__file__).with_name("traced.c")
TIMEOUT_S = 120
SENDS = {Kind.SEND, Kind.SSEND, Kind.BSEND, Kind.ISEND, Kind.ISSEND, Kind.IBSEND, Kind.SENDRECV}
RECEIVES = {Kind.RECV, Kind.MRECV, Kind.RECV_PART}
BEGUN = {Kind.IRECV, Kind.IMRECV}
COMPLETED = {Kind.WAIT, Kind.WAIT_SOME, Kind.TEST}
FEATURES = [
    *("blocking", "modes", "nonblocking", "waitany", "waitsome", "testany", "testsome", "test", "farm"),
    *("persistent", "groups", "mesh", "graph", "variable", "usual", "in_place", "begun", "types", "probes"),
]
#: Ranks on nodes of their own, all alike.
NETWORK = """\
network some
latency between 20000
eager between 4096
send between 0 500 0
receive between 0 500 0
wire between 0 100 8
"""


class Tracer(msgspec.Struct, frozen=True):
    """The tracer and a program, built with one MPI library."""

    family: str
    library: Path
    program: Path

    def run(
        self, directory: Path, *words: str, ranks: int = 4, **own: str
    ) -> subprocess.CompletedProcess[str]:
        launch = [str(shutil.which(f"mpirun.{self.family}")), "-np", str(ranks)]
        if self.family == "openmpi":
            launch += ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
            # It has no one-sided operations over TCP.
            between = "vader" if words[0] == "windows" else "tcp"
            launch += ["--mca", "mpi_yield_when_idle", "1", "--mca", "btl", f"self,{between}"]
            launch += ["--mca", "btl_tcp_if_include", "lo"]
        else:
            launch += ["-launcher", "fork"]
        given = {"LD_PRELOAD": str(self.library), "WULF_TRACE": str(directory), **own}
        environment = ["env", *(f"{name}={value}" for name, value in given.items())]
        argv = [*launch, *environment, str(self.program), *words]
        return subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)

    def trace(self, directory: Path, *words: str, ranks: int = 4) -> tuple[Trace, dict[int, list[int]]]:
        """Return the trace of a program, and by rank what it has counted itself."""
        streams = directory / "streams"
        streams.mkdir()
        done = self.run(streams, *words, ranks=ranks)
        assert done.returncode == 0 and "wulf-tracer" not in done.stderr, done.stderr
        counted = {
            int(line.split()[0]): [int(n) for n in line.split()[1:]] for line in done.stdout.splitlines()
        }
        pack(directory / "a.wtrace", {"command": list(words)}, streams)
        return read(directory / "a.wtrace"), counted


@pytest.fixture(scope="module", params=["openmpi", "mpich"])
def tracer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tracer:
    family = str(request.param)
    compiler = shutil.which(f"mpicc.{family}")
    if compiler is None:
        pytest.skip(f"{family} is not installed")
    directory = tmp_path_factory.mktemp(f"tracer-{family}")
    library = build(directory, "libwulf-tracer.so", f"-DWULF_MPI={compiler}")
    program = directory / "traced"
    # MPICH declares for every call how much it reads, so that a constant for "none" is warned of.
    subprocess.run([compiler, "-w", "-O1", str(PROGRAM), "-o", str(program)], check=True, timeout=TIMEOUT_S)
    return Tracer(family, library, program)


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("replay"), "wulf-replay", "-DWULF_REPLAY=ON")


def counted(stream: Stream) -> list[int]:
    """Return what a trace says of a rank in the order in which the program prints it."""
    sent = sent_bytes = got = got_bytes = together = 0
    made: dict[int, Kind] = {}
    sizes: dict[int, int] = {}
    for record in stream.records():
        if record.kind in (Kind.SEND_INIT, Kind.SSEND_INIT, Kind.BSEND_INIT, Kind.RECV_INIT):
            made[record.request], sizes[record.request] = record.kind, record.bytes
        elif record.kind is Kind.FREE:
            made.pop(record.request, None)
        elif record.kind in BEGUN:
            made[record.request] = record.kind
        elif record.kind in SENDS or (
            record.kind is Kind.START and made[record.request] is not Kind.RECV_INIT
        ):
            there = record.kind is Kind.START or record.peer >= 0
            sent += there
            sent_bytes += (
                (sizes[record.request] if record.kind is Kind.START else record.bytes) if there else 0
            )
        elif record.kind in RECEIVES and record.peer >= 0:
            got, got_bytes = got + 1, got_bytes + record.bytes
        elif record.kind in COMPLETED and made.get(record.request) in (*BEGUN, Kind.RECV_INIT):
            got, got_bytes = got + 1, got_bytes + record.bytes
            if made[record.request] in BEGUN:
                del made[record.request]
        together += Kind.BARRIER <= record.kind <= Kind.MAKE_COMMUNICATOR
    return [sent, sent_bytes, got, got_bytes, together]


@pytest.mark.mpi
@pytest.mark.parametrize("feature", FEATURES)
def test_a_trace_says_what_the_program_has_counted(
    tracer: Tracer, replay: Path, tmp_path: Path, feature: str
) -> None:
    trace, expected = tracer.trace(tmp_path, feature)
    assert sorted(expected) == [0, 1, 2, 3]
    for stream in trace.streams:
        stream.verify()
        assert stream.state is State.FINISHED and stream.lost == 0 and not stream.unsound
        assert counted(stream) == expected[stream.rank]
        spent = sum(record.compute_ns + record.call_ns for record in stream.records())
        assert 0 < spent <= stream.run_ns
    network = tmp_path / "network"
    network.write_text(NETWORK)
    done = subprocess.run(
        [str(replay), str(tmp_path / "a.wtrace"), str(network)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and '"type":"result"' in done.stdout, done.stderr


@pytest.mark.mpi
def test_what_cannot_be_replayed_is_marked(tracer: Tracer, tmp_path: Path) -> None:
    trace, _ = tracer.trace(tmp_path, "windows", ranks=2)
    assert trace.unsound == {Unsound.ONE_SIDED}
    assert next(trace.streams[0].records()).payload == b"MPI_Win_create"


@pytest.mark.mpi
def test_a_program_that_dies_leaves_what_it_did(tracer: Tracer, tmp_path: Path) -> None:
    streams = tmp_path / "streams"
    streams.mkdir()
    assert tracer.run(streams, "dies", ranks=2).returncode != 0
    pack(tmp_path / "a.wtrace", {}, streams)
    died = read(tmp_path / "a.wtrace").streams[1]
    assert died.state is State.RUNNING and died.run_ns == 0
    kinds = [record.kind for record in died.records()]
    assert kinds.count(Kind.SEND) == 5 and kinds[-1] is Kind.BARRIER


@pytest.mark.mpi
def test_calls_beyond_the_limit_are_counted(tracer: Tracer, tmp_path: Path) -> None:
    streams = tmp_path / "streams"
    streams.mkdir()
    tracer.run(streams, "blocking", ranks=2, WULF_TRACE_LIMIT=str(4096 + 4 * 32))
    stream = Stream(memoryview((streams / "rank.000000").read_bytes()), "rank 0")
    stream.verify()
    assert stream.state is State.FULL and len(stream.slots) == 4 and stream.lost == 6


@pytest.mark.mpi
def test_without_being_asked_nothing_is_written(tracer: Tracer, tmp_path: Path) -> None:
    done = tracer.run(tmp_path, "blocking", ranks=2, WULF_TRACE="")
    assert done.returncode == 0 and not list(tmp_path.iterdir())


@pytest.mark.mpi
def test_a_directory_that_cannot_be_written_is_named(tracer: Tracer, tmp_path: Path) -> None:
    done = tracer.run(tmp_path, "blocking", ranks=2, WULF_TRACE=str(tmp_path / "no" / "where"))
    assert done.returncode == 0
    assert "wulf-tracer: rank 0 is not traced" in done.stderr and "No such file" in done.stderr

"""What the tracer records of small programs that count themselves, with each MPI library of this machine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.native import programs
from tests.native.conftest import EACH_FAMILY
from tests.native.tracer_calls import local, unknown, wrapped
from tests.native.tracing import Tracer, check, counted, tracer_of
from tests.tiers import mostly_thorough, thorough
from wulf.base.trace.layout import Flag, Kind, Unsound
from wulf.base.trace.summary import file_calls, summary

pytestmark = pytest.mark.mpi

FEATURES = [
    *("blocking", "modes", "nonblocking", "waitany", "waitsome", "testany", "testsome", "test", "farm"),
    *("persistent", "groups", "mesh", "graph", "variable", "usual", "in_place", "begun", "types", "probes"),
    *("made", "looked", "cancels"),
]
#: All of them in one program.
ALL = "all"
#: Programs that send messages one by one, so that the library's own count of messages is that of the program.
#: Not persistent ones: Open MPI 4.1 does not count what MPI_Start sends.
MONITORED = ["blocking", "nonblocking", "waitany", "farm", "types"]
WAYS = {"mpif.h": "MPIF", "use mpi": "MODULE", "use mpi_f08": "F08"}
#: Ranks on nodes of their own, all alike.
NETWORK = """\
network some
latency between 20000
eager between 4096
send between 0 500 0
receive between 0 500 0
wire between 0 100 8
"""


@pytest.fixture(params=EACH_FAMILY)
def tracer(request: pytest.FixtureRequest) -> Tracer:
    return tracer_of(request.param)


@pytest.fixture
def program(tracer: Tracer) -> Path:
    return tracer.compile("traced.c")


@pytest.fixture(params=mostly_thorough(WAYS, "use mpi"))
def fortran(request: pytest.FixtureRequest, tracer: Tracer) -> Path:
    way = WAYS[str(request.param)]
    return tracer.compile("traced.F90", f"-D{way}", "-fallow-argument-mismatch", language="fortran")


@pytest.fixture
def replay() -> Path:
    return programs.program("wulf-replay")


def replayed(replay: Path, directory: Path) -> subprocess.CompletedProcess[str]:
    network = directory / "network"
    network.write_text(NETWORK)
    argv = [str(replay), str(directory / "a.wtrace"), str(network)]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_every_call_of_the_library_is_known(tracer: Tracer, tmp_path: Path) -> None:
    found = unknown(tracer.compiler, tracer.library, tmp_path)
    assert not found, "give them a line in native/tracer, or a word in native/tracer/local_calls.txt"
    both = wrapped(tracer.library) & local()
    assert not both


@pytest.mark.parametrize("feature", mostly_thorough([ALL, *FEATURES], ALL))
def test_a_trace_says_what_the_program_has_counted(
    tracer: Tracer, program: Path, replay: Path, tmp_path: Path, feature: str
) -> None:
    trace, expected = tracer.trace(tmp_path, program, feature)
    check(trace, expected)
    assert not trace.unsound
    done = replayed(replay, tmp_path)
    assert done.returncode == 0 and '"type":"result"' in done.stdout, done.stderr


@pytest.mark.parametrize(
    "part", mostly_thorough(["messages", "requests", "collectives", "communicators"], "messages")
)
def test_fortran_programs_are_recorded_once(
    tracer: Tracer, fortran: Path, replay: Path, tmp_path: Path, part: str
) -> None:
    trace, expected = tracer.trace(tmp_path, fortran, part)
    check(trace, expected)
    assert not trace.unsound
    records = list(trace.streams[0].records())
    if part == "messages":
        assert [record.tag for record in records if record.kind is Kind.PHASE] == [7]
    if part == "collectives":
        in_place = [record.kind for record in records if record.flags & Flag.IN_PLACE]
        assert in_place == [Kind.ALLREDUCE, Kind.REDUCE]
    assert replayed(replay, tmp_path).returncode == 0


@pytest.mark.parametrize("feature", mostly_thorough(MONITORED, "nonblocking"))
def test_the_library_counts_the_same_messages(
    tracer: Tracer, program: Path, tmp_path: Path, feature: str
) -> None:
    if tracer.family != "openmpi":
        pytest.skip("only Open MPI counts messages itself")
    prefix = tmp_path / "counted"
    monitoring = {"enable": "2", "enable_output": "3", "filename": str(prefix)}
    words = [
        word for name, value in monitoring.items() for word in ("--mca", f"pml_monitoring_{name}", value)
    ]
    trace, _ = tracer.trace(tmp_path, program, feature, options=("--mca", "btl", "self,tcp", *words))
    found = {}
    for file in tmp_path.glob("counted.*.prof"):
        for line in file.read_text().splitlines():
            # E: messages of the program, not the library's own.
            if line.startswith("E\t"):
                _, source, destination, size, _, count, *_ = line.split()
                found[int(source), int(destination)] = (int(count), int(size))
    assert found == {
        (pair.source, pair.destination): (pair.count, pair.bytes) for pair in summary(trace).pairs
    }


@pytest.mark.parametrize(
    ("feature", "what", "call"),
    [
        ("windows", Unsound.ONE_SIDED, "MPI_Win_create"),
        thorough("between", Unsound.INTER, "MPI_Intercomm_create"),
        thorough("forgets", Unsound.CANCELLED, "cancel"),
    ],
)
def test_what_cannot_be_replayed_is_marked(
    tracer: Tracer, program: Path, tmp_path: Path, feature: str, what: Unsound, call: str
) -> None:
    # Open MPI 4 has no one-sided operations over TCP.
    trace, _ = tracer.trace(tmp_path, program, feature, ranks=2, options=("--mca", "btl", "self,vader"))
    assert trace.unsound == {what}
    assert call in {one.call for one in summary(trace).calls}


def test_calls_on_files_are_counted_and_replayed_as_they_were(
    tracer: Tracer, program: Path, replay: Path, tmp_path: Path
) -> None:
    trace, _ = tracer.trace(tmp_path, program, "files", ranks=2)
    found = summary(trace)
    calls = {one.call: one for one in found.calls}
    assert calls["MPI_File_write_at_all"].bytes == 2 * 64 and calls["MPI_File_open"].bytes == 0
    on_files = sum(one.seconds for name, one in calls.items() if name.startswith("MPI_File_"))
    assert sum(rank.files_s for rank in found.ranks) == pytest.approx(on_files)
    # It is no reason against a prediction; all their time is in it.
    assert trace.unsound == {Unsound.FILES} and found.unsound == []
    spent = file_calls(trace)
    assert sum(spent.values()) == pytest.approx(on_files / 2) and set(spent) <= set(calls)
    done = replayed(replay, tmp_path)
    assert done.returncode == 0, done.stderr
    (result,) = [json.loads(line) for line in done.stdout.splitlines() if '"type":"result"' in line]
    assert result["time_ns"] >= 1e9 * min(rank.files_s for rank in found.ranks), result


def test_a_request_keeps_its_number_though_another_thread_gets_its_handle(
    tracer: Tracer, tmp_path: Path
) -> None:
    trace, expected = tracer.trace(tmp_path, tracer.compile("threaded.c", "-pthread"), "reused")
    assert expected == {stream.rank: counted(stream) for stream in trace.streams}
    for stream in trace.streams:
        begun: dict[int, Kind] = {}
        received = 0
        for one in stream.records():
            if one.kind in (Kind.ISEND, Kind.IRECV):
                assert one.request not in begun
                begun[one.request] = one.kind
            elif one.kind in (Kind.WAIT, Kind.WAIT_SOME, Kind.TEST, Kind.FREE):
                is_receive = begun.pop(one.request) is Kind.IRECV
                # The first that came of MPI_Waitany may be either.
                assert (one.bytes, one.peer >= 0) == ((4, True) if is_receive else (0, False))
                assert one.kind is not Kind.FREE or not is_receive
                received += is_receive
        assert not begun and received == 4 * 500


@pytest.mark.parametrize("way", mostly_thorough(["over", "apart"], "over"))
def test_threads_are_recorded_and_told_where_their_calls_overlap(
    tracer: Tracer, replay: Path, tmp_path: Path, way: str
) -> None:
    program = tracer.compile("threaded.c", "-pthread")
    trace, expected = tracer.trace(tmp_path, program, way)
    done = replayed(replay, tmp_path)
    if way == "apart":
        check(trace, expected)
        assert not trace.unsound and done.returncode == 0
    else:
        assert expected == {stream.rank: counted(stream) for stream in trace.streams}
        assert trace.unsound == {Unsound.THREADS}
        assert done.returncode != 0 and "2 threads call MPI, at the same time for" in done.stderr
        assert "with one thread that calls MPI" in done.stderr
    for stream in trace.streams:
        told = stream.threads
        assert told.threads == len(told.of) == 2
        assert all(one.name and one.overlapping <= one.calls for one in told.of)
        assert all(one.calls >= 3 * 500 for one in told.of)
        overlapping = [one.overlapping for one in told.of]
        assert bool(told.overlap_ns) == any(overlapping) == (Unsound.THREADS in stream.unsound)
        assert sum(one.overlapping_ns for one in told.of) == pytest.approx(told.overlapping_ns, abs=3)
        # At any time in which two are within, each of them is in a call that counts.
        assert 2 * told.overlap_ns <= 1.01 * told.overlapping_ns + 2_000 * sum(overlapping)

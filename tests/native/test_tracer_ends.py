"""How a stream ends: the program is killed, the file or the disk is full, there is nowhere to write."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.native.conftest import EACH_FAMILY
from tests.native.tracing import Tracer, tracer_of
from tests.tiers import mostly_thorough
from wulf.base.trace.layout import Kind, State
from wulf.base.trace.reader import Stream, read
from wulf.base.trace.writer import pack

pytestmark = pytest.mark.mpi

#: Records of "many".
MANY = 6000


@pytest.fixture(params=EACH_FAMILY)
def tracer(request: pytest.FixtureRequest) -> Tracer:
    return tracer_of(request.param)


@pytest.fixture
def program(tracer: Tracer) -> Path:
    return tracer.compile("traced.c")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1200k", "none", str(place)], check=False)
    if done.returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def streams_in(directory: Path) -> Path:
    streams = directory / "streams"
    streams.mkdir()
    return streams


def stream_of(directory: Path, rank: int) -> Stream:
    found = Stream(memoryview((directory / f"rank.{rank:06d}").read_bytes()), f"rank {rank}")
    found.verify()
    return found


@pytest.mark.parametrize("feature", mostly_thorough(["dies", "killed"], "killed"))
def test_a_program_that_dies_leaves_what_it_did(
    tracer: Tracer, program: Path, tmp_path: Path, feature: str
) -> None:
    streams = streams_in(tmp_path)
    assert tracer.run(streams, program, feature, ranks=2).returncode != 0
    pack(tmp_path / "a.wtrace", {}, streams)
    died = read(tmp_path / "a.wtrace").streams[1]
    assert died.state is State.RUNNING and died.run_ns == 0
    kinds = [record.kind for record in died.records()]
    if feature == "dies":
        assert kinds.count(Kind.SEND) == 5 and kinds[-1] is Kind.BARRIER
    else:
        # Several windows, and a part of one.
        assert kinds.count(Kind.SENDRECV) == kinds.count(Kind.RECV_PART) == MANY
        assert kinds[-1] is Kind.RECV_PART


def test_calls_beyond_the_limit_are_counted(tracer: Tracer, program: Path, tmp_path: Path) -> None:
    streams = streams_in(tmp_path)
    tracer.run(streams, program, "blocking", ranks=2, WULF_TRACE_LIMIT=str(4096 + 4 * 32))
    stream = stream_of(streams, 0)
    # One of them is the phase that the program begins with.
    assert stream.state is State.FULL and len(stream.slots) == 4 and stream.lost == 7
    assert not list(streams.glob("*.tail"))


@pytest.mark.root
def test_a_full_disk_ends_the_trace_and_not_the_program(
    tracer: Tracer, program: Path, tmp_path: Path, small_disk: Path
) -> None:
    done = tracer.run(small_disk, program, "many", ranks=2)
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        stream = stream_of(small_disk, rank)
        assert stream.state is State.FULL and stream.lost > 0
        sent = sum(record.kind is Kind.SENDRECV for record in stream.records())
        assert 0 < sent < MANY and sent + stream.lost == MANY


@pytest.mark.root
def test_a_disk_that_is_full_from_the_beginning_is_named(
    tracer: Tracer, program: Path, tmp_path: Path, small_disk: Path
) -> None:
    (small_disk / "all of it").write_bytes(b"x" * 1200 * 1024)
    done = tracer.run(small_disk, program, "blocking", ranks=2)
    assert done.returncode == 0
    assert "rank 0 is not traced" in done.stderr and "No space left on device" in done.stderr
    assert not list(small_disk.glob("rank.*"))


def test_a_limit_of_the_system_is_no_signal(tracer: Tracer, program: Path, tmp_path: Path) -> None:
    if tracer.family == "mpich":
        pytest.skip("its own files of shared memory are larger")
    streams = streams_in(tmp_path)
    limited = tmp_path / "limited"
    limited.write_text(f'#!/bin/sh\nulimit -f 300\nexec {program} "$@"\n')  # in blocks of 512 B
    limited.chmod(0o755)
    done = tracer.run(streams, limited, "many", ranks=2)
    assert done.returncode == 0, done.stderr
    stream = stream_of(streams, 0)
    assert stream.state is State.FULL and len(stream.slots) == (300 * 512 - 4096) // 32


def test_without_being_asked_nothing_is_written(tracer: Tracer, program: Path, tmp_path: Path) -> None:
    streams = streams_in(tmp_path)
    done = tracer.run(streams, program, "blocking", ranks=2, WULF_TRACE="")
    assert done.returncode == 0 and not list(streams.iterdir())


def test_a_directory_that_cannot_be_written_is_named(tracer: Tracer, program: Path, tmp_path: Path) -> None:
    streams = streams_in(tmp_path)
    done = tracer.run(streams, program, "blocking", ranks=2, WULF_TRACE=str(tmp_path / "no" / "where"))
    assert done.returncode == 0
    assert "wulf-tracer: rank 0 is not traced" in done.stderr and "No such file" in done.stderr


def test_of_two_programs_the_first_is_traced(tracer: Tracer, program: Path, tmp_path: Path) -> None:
    streams = streams_in(tmp_path)
    assert tracer.run(streams, program, "blocking", ranks=2).returncode == 0
    done = tracer.run(streams, program, "farm", ranks=2)
    assert done.returncode == 0 and "the command has started another MPI program before" in done.stderr
    assert sum(record.kind is Kind.SEND for record in stream_of(streams, 0).records()) == 5

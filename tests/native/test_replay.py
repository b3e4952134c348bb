"""The replay of traces as a program: what it prints, what it refuses, and damaged traces."""

from __future__ import annotations

import platform
import resource
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from bench import fuzz_trace
from bench.replay import NETWORKS
from bench.traces import Stencil
from tests.native.programs import made, program
from tests.tiers import thorough
from wulf.base.trace.layout import RECORD, Kind
from wulf.base.trace.writer import StreamWriter, write_container
from wulf.stats.prediction.network import text

STENCIL = Stencil(16, 20)
#: Of damaged traces; `bench fuzz-trace` runs a million.
CASES = 5000


@pytest.fixture
def replay() -> Path:
    return program("wulf-replay")


@pytest.fixture
def given(tmp_path: Path) -> list[str]:
    """A stencil's trace and nineteen networks."""
    STENCIL.write(tmp_path / "given.wtrace")
    (tmp_path / "networks").write_text(text([*NETWORKS, *NETWORKS, *NETWORKS[:3]]))
    return [str(tmp_path / "given.wtrace"), str(tmp_path / "networks")]


def run(
    program: Path, *arguments: str, before: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *arguments], capture_output=True, text=True, check=False, preexec_fn=before, timeout=300
    )


def test_operations_are_counted_as_they_were_made(replay: Path, given: list[str]) -> None:
    plan = msgspec.json.decode(run(replay, *given).stdout.splitlines()[0])
    assert (plan["ranks"], plan["records"]) == (STENCIL.ranks, STENCIL.records)
    assert plan["operations"] == STENCIL.messages
    assert plan["operations"] + plan["computations"] == STENCIL.operations
    # The first message of a rank may wait for its connection.
    assert plan["steps"] == STENCIL.operations + STENCIL.ranks
    assert plan["bytes"] <= 32 * STENCIL.operations


@pytest.mark.parametrize("bytes_", [4096, 1 << 18])
def test_threads_change_nothing(replay: Path, given: list[str], tmp_path: Path, bytes_: int) -> None:
    Stencil(16, 20, bytes_).write(tmp_path / "s.wtrace")
    arguments = (str(tmp_path / "s.wtrace"), given[1], "--path", "--curve", "1000:100000")
    alone, together = (run(replay, *arguments, "--threads", number) for number in ("1", "3"))
    assert alone.returncode == 0, alone.stderr
    assert alone.stdout.count('"result"') == 19
    assert alone.stdout == together.stdout


def test_rendezvous_takes_no_more_than_32_bytes_an_operation(
    replay: Path, given: list[str], tmp_path: Path
) -> None:
    Stencil(16, 20, 1 << 18).write(tmp_path / "s.wtrace")
    plan = msgspec.json.decode(run(replay, str(tmp_path / "s.wtrace"), given[1]).stdout.splitlines()[0])
    assert plan["bytes"] <= 32 * plan["operations"]


def test_times_of_every_stage(replay: Path, given: list[str]) -> None:
    done = run(replay, *given, "--times", "2", "--curve", "1000:100000")
    first, *times = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
    assert first["type"] == "plan"
    assert [one["type"] for one in times] == ["times", "times"]
    for stage in ("load_ns", "plan_ns", "evaluate_ns", "paths_ns", "curve_ns"):
        assert times[0][stage] > 0
    assert times[0]["lines"] >= 1


@pytest.mark.parametrize("wrong", ["0", "1.5", "-1", "many"])
def test_wrong_numbers_are_said(replay: Path, given: list[str], wrong: str) -> None:
    done = run(replay, *given, "--threads", wrong)
    assert done.returncode == 3
    assert wrong in done.stderr


def large(path: Path, kind: Kind, records: int) -> int:
    """Write a trace of two ranks with many records of one kind; return its size."""
    streams = []
    for rank in range(2):
        stream = StreamWriter(rank, 2)
        one = np.zeros(records, dtype=RECORD)
        one["kind"], one["peer"], one["bytes"] = kind, 1 - rank, 8
        if kind is Kind.SEND and rank == 1:
            one["kind"] = Kind.RECV
        stream.extend(one)
        streams.append(stream.finish(1))
    write_container(path, {"command": "large"}, streams)
    return path.stat().st_size


@pytest.mark.parametrize(("kind", "how_much"), [(Kind.SEND, "at least"), thorough(Kind.ALLTOALL, "about")])
def test_a_trace_that_needs_more_memory_than_there_is_is_refused(
    replay: Path, given: list[str], tmp_path: Path, kind: Kind, how_much: str
) -> None:
    size = large(tmp_path / "large.wtrace", kind, 2_000_000)
    room = size + (48 << 20)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (room, room))

    done = run(replay, str(tmp_path / "large.wtrace"), given[1], before=limit)
    assert done.returncode == 3
    assert f"the trace needs {how_much}" in done.stderr, done.stderr
    assert "are there" in done.stderr


@pytest.mark.thorough
@pytest.mark.skipif(platform.machine() != "x86_64", reason="there are none for this processor")
def test_wide_kernels_share_nothing_with_the_rest(tmp_path: Path) -> None:
    """A function that the linker could take from there for all machines would stop those without its instructions."""
    made(tmp_path, "wulf_replay", "-DWULF_REPLAY=ON")
    objects = list(tmp_path.rglob("kernel_avx*.o"))
    assert len(objects) == 2
    for one in objects:
        listed = subprocess.run(["nm", str(one)], capture_output=True, text=True, check=True).stdout
        assert not [line for line in listed.splitlines() if line.split()[-2] in ("W", "V", "u")]


@pytest.mark.thorough
def test_damaged_traces(tmp_path: Path) -> None:
    if shutil.which("clang++") is None:
        pytest.skip("clang is not installed")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    run_, crashes, last = fuzz_trace.fuzz(fuzz_trace.built(tmp_path / "build"), corpus, CASES)
    assert crashes == 0, last
    assert run_ >= CASES

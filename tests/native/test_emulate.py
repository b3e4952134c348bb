"""Patterns performed with each MPI library of this machine, counted by the tracer, which knows nothing of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.cli.waiting import wait_until
from tests.native import programs
from tests.native.conftest import EACH_FAMILY
from tests.tiers import mostly_thorough
from wulf.base.trace.layout import Kind
from wulf.base.trace.reader import Stream, read
from wulf.base.trace.traffic import traffic
from wulf.base.trace.writer import pack
from wulf.node.replay import patterns

pytestmark = pytest.mark.mpi

TIMEOUT_S = 240
RANKS = 4
#: Of steps that are made now and then the tenth iteration is one.
ITERATIONS = 10
COLLECTIVES = range(Kind.BARRIER, Kind.REDUCE_SCATTER_BLOCK + 3)
SENDS = (Kind.SEND, Kind.ISEND, Kind.SENDRECV, Kind.SEND_INIT)
#: Of messages that compare clocks: native/core/mpi/clocks.c.
CLOCK_TAG = 5
FARMS = ("task-farm", "shared")
HEAD = f'title = "t"\nranks = {RANKS}\n[[program]]\nname = "p"\niterations = {ITERATIONS}\n'
STEP = "[[program.step]]\n"
DRAWN = 'size = { distribution = "uniform", low = 0, high = "20 KiB" }\n'
ALL_COLLECTIVES = HEAD + "".join(
    f'{STEP}collective = "{name}"\n' + (f"size = {size}\n" if name != "barrier" else "")
    for name in (
        *("barrier", "bcast", "gather", "scatter", "allgather", "alltoall", "reduce"),
        *("allreduce", "reduce-scatter", "scan", "exscan"),
    )
    for size in (800, 13)
)
#: Programs that share ranks, in another order; clients that come when they like; requests that stay.
SHARED = f"""\
title = "shared"
ranks = {RANKS}
[[program]]
name = "a"
ranks = [0, 1, 2]
iterations = 7
{STEP}exchange = "client-server"
requests = 3
think = {{ distribution = "exponential", mean = "30 us" }}
size = 100
reply = {{ distribution = "choice", values = [1, 3000, 70000] }}
{STEP}exchange = "task-farm"
tasks = 7
compute = {{ distribution = "exponential", mean = "50 us" }}
size = 1
reply = {{ distribution = "choice", values = [1, 30, 7] }}
[[program]]
name = "b"
ranks = [3, 2, 1]
iterations = 9
{STEP}exchange = "task-farm"
tasks = 5
compute = "10 us"
size = 0
reply = 10
{STEP}exchange = "ring"
method = "persistent"
size = 10
"""
OWN = {
    "collectives": ALL_COLLECTIVES,
    "shared": SHARED,
    "neighborhood": f'{HEAD}{STEP}exchange = "halo-2d"\nmethod = "neighborhood"\noverlap = "20 us"\n{DRAWN}'
    f'{STEP}exchange = "edges"\nedges = [[0, 1], [1, 2], [2, 0]]\nmethod = "neighborhood"\n{DRAWN}',
    "blocking": f'{HEAD}{STEP}exchange = "all-to-all"\nmethod = "blocking"\n{DRAWN}',
}
ONE_SIDED = (
    f'{HEAD}{STEP}exchange = "halo-2d"\nperiodic = true\nmethod = "one-sided"\noverlap = "20 us"\n{DRAWN}'
)


class Emulator(msgspec.Struct, frozen=True):
    """The emulator, built with one MPI library."""

    family: str
    path: Path
    tracer: Path | None

    def argv(self, trace: Path, *words: str, ranks: int = RANKS, programs: int = 1, **env: str) -> list[str]:
        """Return the command line of a launch with these variables of its ranks."""
        launch = [str(shutil.which(f"mpirun.{self.family}")), "-np", str(ranks)]
        if self.family == "openmpi":
            launch += ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
            launch += ["--mca", "mpi_yield_when_idle", "1"]
        else:
            launch += ["-launcher", "fork"]
        names = [word for n in range(programs) for word in ("--program", f"p{n}", "--iteration", f"i{n}")]
        between = ["env", *(f"{name}={value}" for name, value in env.items())] if env else []
        return [*launch, *between, str(self.path), "--trace", str(trace), *names, *words]

    def run(
        self, trace: Path, *words: str, ranks: int = RANKS, programs: int = 1, **env: str
    ) -> tuple[int, list[dict[str, Any]], str]:
        """Return the exit code, the lines that it printed, and what it complained of."""
        argv = self.argv(trace, *words, ranks=ranks, programs=programs, **env)
        own = dict(os.environ, ASAN_OPTIONS="detect_leaks=0")
        done = subprocess.run(argv, capture_output=True, timeout=TIMEOUT_S, check=False, env=own)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
        return done.returncode, lines, done.stderr.decode(errors="replace")


def failures(lines: list[dict[str, Any]], complaint: str) -> str:
    """Return all that ranks have said of a failure: the launcher may end the first one before it says a word."""
    errors = [json.dumps(line, separators=(",", ":")) for line in lines if line["type"] == "error"]
    return "\n".join([*errors, complaint])


@pytest.fixture(params=EACH_FAMILY)
def emulator(request: pytest.FixtureRequest) -> Emulator:
    family = request.param
    tracer = programs.program("libwulf-tracer.so", family)
    return Emulator(family, programs.program("wulf-emulate", family), tracer)


@pytest.fixture
def sanitized() -> Emulator:
    return Emulator(programs.sanitized_family(), programs.sanitized("wulf-emulate"), None)


def written(directory: Path, name: str, ranks: int = RANKS) -> Path:
    """Write the trace of a pattern with few iterations."""
    text = OWN.get(name) or re.sub(r"iterations = \d+", f"iterations = {ITERATIONS}", patterns.named(name))
    file = directory / f"{name}.toml"
    file.write_text(text)
    return patterns.pattern_trace(file, ranks, directory)


def programs_of(trace: Path) -> int:
    return len(read(trace).note["programs"])


def between(trace: Path) -> Counter[tuple[int, int]]:
    """Return the bytes and, under negative ranks, the messages from rank to rank that a pattern's trace has."""
    found: Counter[tuple[int, int]] = Counter()
    for way, load in traffic(read(trace)).items():
        if not way.is_together:
            found[way.source, way.destination] += load.bytes
            found[-1 - way.source, -1 - way.destination] += load.messages
    return found


def marked(stream: Stream) -> list[Any]:
    """Return what a rank did within its passes: between the two barriers that each of them has around it."""
    records = list(stream.records())
    barriers = [place for place, one in enumerate(records) if one.kind is Kind.BARRIER and one.comm == 0]
    return records[barriers[0] + 1 : barriers[-1]]


def check_cells(lines: list[dict[str, Any]], programs: int, passes: int) -> None:
    cells = {line["op"]: line for line in lines if line["type"] == "cell"}
    assert list(cells) == ["run time", *(f"{of}{n}" for n in range(programs) for of in "pi")]
    whole = cells["run time"]
    assert whole["corrupt"] == 0 and len(whole["batch_medians_ns"]) == passes
    assert len(whole["warmup_medians_ns"]) == 1 and len(whole["exit_medians_ns"]) == RANKS
    for number in range(programs):
        of_program, iterations = cells[f"p{number}"], cells[f"i{number}"]
        assert iterations["iterations"] == passes * iterations["batch_iterations"]
        assert sum(count for _, count in iterations["histogram"]) == iterations["iterations"]
        for time, all_of_it in zip(of_program["batch_medians_ns"], whole["batch_medians_ns"], strict=True):
            assert 0 < time <= all_of_it
    shares = [line for line in lines if line["type"] == "program"]
    assert [line["number"] for line in shares] == list(range(programs))
    for line in shares:
        for time, compute in zip(line["time_ns"], line["compute_ns"], strict=True):
            assert 0 <= compute <= time


@pytest.mark.parametrize(
    "name", mostly_thorough([*patterns.gallery(), *OWN], "collectives", "shared", "neighborhood", "halo-3d")
)
def test_a_pattern_sends_what_it_says(emulator: Emulator, tmp_path: Path, name: str) -> None:
    trace = written(tmp_path, name)
    programs = programs_of(trace)
    streams = tmp_path / "streams"
    streams.mkdir()
    code, lines, complaint = emulator.run(
        trace,
        *("--check", "--passes", "1", "--warm-up", "1", "--compute", "clock"),
        programs=programs,
        LD_PRELOAD=str(emulator.tracer),
        WULF_TRACE=str(streams),
    )
    assert code == 0, (lines[-1:], complaint)
    check_cells(lines, programs, 1)
    pack(tmp_path / "made.wtrace", {}, streams)
    made = read(tmp_path / "made.wtrace")
    seen = sent_in_passes(made.streams)
    said = Counter({way: 2 * n for way, n in between(trace).items() if n})
    if name in FARMS:
        # Who gets which task is decided by who is back first: all together is as the pattern says.
        assert totals(seen) == totals(said)
    else:
        assert seen == said
    assert collectives(made.streams) == Counter({kind: 2 * n for kind, n in collectives_of(trace).items()})


def totals(found: Counter[tuple[int, int]]) -> tuple[int, int]:
    """Return messages and bytes of all pairs together."""
    return (
        sum(n for (source, _), n in found.items() if source < 0),
        sum(n for (source, _), n in found.items() if source >= 0),
    )


def sent_in_passes(streams: list[Stream]) -> Counter[tuple[int, int]]:
    """Return what the tracer has seen of messages between ranks, beside those that agree on a common time."""
    found: Counter[tuple[int, int]] = Counter()
    for stream in streams:
        world = members_of(stream)
        inits = {record.request: record for record in stream.records() if record.kind is Kind.SEND_INIT}
        for record in marked(stream):
            sent = inits.get(record.request) if record.kind is Kind.START else record
            if sent is not None and sent.kind in SENDS and not is_of_the_clock(sent):
                count(found, stream.rank, world[sent.comm][0][sent.peer], sent.bytes)
            if record.kind is Kind.NEIGHBOR_ALLTOALLV:
                numbers, targets = world[record.comm]
                for target, size in zip(targets, record.sizes().tolist(), strict=True):
                    count(found, stream.rank, numbers[target], size)
    return Counter({way: n for way, n in found.items() if n})


def is_of_the_clock(record: Any) -> bool:
    """Whether a message only compares clocks: on the world, with a tag that no step of these patterns has there."""
    return record.comm == 0 and record.tag == CLOCK_TAG and record.bytes in (1, 8)


def count(found: Counter[tuple[int, int]], source: int, destination: int, size: int) -> None:
    found[source, destination] += size
    found[-1 - source, -1 - destination] += 1


def members_of(stream: Stream) -> dict[int, tuple[list[int], list[int]]]:
    """Return of each communicator its members in the world, and to which of them this rank sends as a neighbour."""
    found: dict[int, tuple[list[int], list[int]]] = {
        0: (list(range(stream.ranks)), []),
        1: ([stream.rank], []),
    }
    for record in stream.records():
        if record.kind is Kind.COMMUNICATOR:
            members, sources, targets = np.frombuffer(record.payload, "<u4", 3).tolist()
            numbers = np.frombuffer(record.payload, "<i4", offset=20).tolist()
            first = members + sources
            found[record.comm] = numbers[:members], numbers[first : first + targets]
    return found


#: Calls that a pass makes for itself: to begin together, and to say when its iterations were over.
_OF_A_PASS = (Kind.BARRIER, Kind.BCAST, Kind.GATHER, Kind.REDUCE)


def collectives(streams: list[Stream]) -> Counter[Kind]:
    """Return how many collectives the tracer has seen, beside those kinds that a pass makes for itself."""
    return Counter(
        record.kind
        for stream in streams
        for record in marked(stream)
        if record.kind in COLLECTIVES and record.kind not in _OF_A_PASS
    )


def collectives_of(trace: Path) -> Counter[Kind]:
    return Counter(
        record.kind
        for stream in read(trace).streams
        for record in stream.records()
        if record.kind in COLLECTIVES and record.kind not in _OF_A_PASS
    )


def test_memory_of_others(emulator: Emulator, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(ONE_SIDED)
    trace = patterns.pattern_trace(tmp_path / "a.toml", RANKS, tmp_path)
    code, lines, complaint = emulator.run(trace, "--check", "--passes", "2")
    assert code == 0, (lines[-1:], complaint)
    check_cells(lines, 1, 2)


@pytest.mark.parametrize(
    "name",
    mostly_thorough(["halo-1d", "halo-3d", "client-server", "task-farm", "collectives"], "halo-1d"),
)
def test_what_is_changed_on_its_way_is_counted(emulator: Emulator, tmp_path: Path, name: str) -> None:
    shim = programs.shim("corrupting", emulator.family)
    trace = written(tmp_path, name)
    words = ("--passes", "1", "--compute", "none")
    code, lines, complaint = emulator.run(trace, "--check", *words, LD_PRELOAD=str(shim))
    assert code == 0, (lines[-1:], complaint)
    assert next(line for line in lines if line["type"] == "cell")["corrupt"] > 0


#: Blocking, begun and waited for later, both at once, several with one tag on their way, collectives in between.
MAIL = (
    f'{HEAD}{STEP}exchange = "halo-2d"\nperiodic = true\noverlap = "20 us"\n{DRAWN}'
    f'{STEP}exchange = "ring"\nmethod = "blocking"\n{DRAWN}{STEP}exchange = "all-to-all"\n{DRAWN}'
    f'{STEP}collective = "allreduce"\nsize = 64\n'
)


def mailed(directory: Path) -> tuple[Path, Path]:
    """Return the trace of `MAIL`, and a directory for the file that its messages go by."""
    (directory / "a.toml").write_text(MAIL)
    shared = directory / "shared"
    shared.mkdir()
    return patterns.pattern_trace(directory / "a.toml", RANKS, directory), shared


@pytest.mark.parametrize("method", ["memory", "file"])
def test_other_ways_bring_the_same(emulator: Emulator, tmp_path: Path, method: str) -> None:
    trace, shared = mailed(tmp_path)
    words = ["--method", method, *(["--dir", str(shared)] if method == "file" else [])]
    words += ["--check", "--passes", "2", "--compute", "none"]
    code, lines, complaint = emulator.run(trace, *words)
    assert code == 0, (lines[-1:], complaint)
    check_cells(lines, 1, 2)
    assert list(shared.iterdir()) == []
    if method == "file":
        shim = programs.shim("corrupting", emulator.family)
        code, lines, complaint = emulator.run(trace, *words, LD_PRELOAD=str(shim))
        # A length that is not what was sent ends it, data that is not is counted.
        assert code != 0 or next(line for line in lines if line["type"] == "cell")["corrupt"] > 0, complaint
        assert list(shared.iterdir()) == []


@pytest.mark.parametrize("fails", ["write", "read"])
def test_a_file_that_fails_on_one_node_is_not_left(emulator: Emulator, tmp_path: Path, fails: str) -> None:
    trace, shared = mailed(tmp_path)
    shim = programs.shim("failing_files", emulator.family)
    words = ("--method", "file", "--dir", str(shared), "--passes", "1", "--compute", "none")
    env = {"LD_PRELOAD": str(shim), "WULF_FAILS": fails}
    code, lines, complaint = emulator.run(trace, *words, **env)
    assert code != 0 and f"rank {RANKS - 1}" in failures(lines, complaint)
    assert list(shared.iterdir()) == []


def test_a_file_is_not_left_where_a_rank_is_ended_when_it_has_just_made_it(
    emulator: Emulator, tmp_path: Path
) -> None:
    trace, shared = mailed(tmp_path)
    shim = programs.shim("made_files", emulator.family)
    words = ("--method", "file", "--dir", str(shared))
    env = {"LD_PRELOAD": str(shim), "WULF_MAKER": "ended"}
    code, lines, complaint = emulator.run(trace, *words, **env)
    assert code != 0 and "launcher ended the launch" in failures(lines, complaint)
    assert list(shared.iterdir()) == []


def test_nor_where_the_rank_that_has_made_it_gets_no_cpu(emulator: Emulator, tmp_path: Path) -> None:
    """Open MPI's launcher kills the others when one has ended; MPICH's waits for all."""
    trace, shared = mailed(tmp_path)
    stopped = "stopped" if emulator.family == "openmpi" else ""
    env = {"LD_PRELOAD": str(programs.shim("made_files", emulator.family)), "WULF_MAKER": stopped}
    words = ("--method", "file", "--dir", str(shared), "--passes", "1000", "--compute", "none")
    with subprocess.Popen(
        emulator.argv(trace, *words, **env), text=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as job:
        wait_until(lambda: list(shared.iterdir()), "the ranks have a file", job)
        job.terminate()
        job.wait(timeout=TIMEOUT_S)
    wait_until(lambda: not list(shared.iterdir()), "the file is gone")


def test_a_directory_that_nodes_do_not_share_is_named(emulator: Emulator, tmp_path: Path) -> None:
    trace = written(tmp_path, "halo-1d")
    path = programs.in_two_directories(emulator.path, tmp_path, rank=2)
    odd = msgspec.structs.replace(emulator, path=path)
    code, lines, complaint = odd.run(trace, "--method", "file", "--dir", ".")
    assert code != 0
    assert f"{socket.gethostname()} does not see ./" in failures(lines, complaint)
    assert [list((tmp_path / name).iterdir()) for name in ("here", "there")] == [[], []]


def test_what_goes_by_messages_alone_is_refused_otherwise(emulator: Emulator, tmp_path: Path) -> None:
    trace = written(tmp_path, "task-farm")
    code, lines, complaint = emulator.run(trace, "--method", "memory")
    assert code != 0 and "by messages alone" in failures(lines, complaint)


@pytest.mark.parametrize(
    "name", mostly_thorough([*OWN, "client-server", "halo-3d", "two-programs"], "shared")
)
def test_the_sanitizers_find_nothing(sanitized: Emulator, tmp_path: Path, name: str) -> None:
    trace = written(tmp_path, name)
    words = ("--check", "--passes", "1", "--compute", "none")
    code, lines, complaint = sanitized.run(trace, *words, programs=programs_of(trace))
    assert code == 0, (lines[-1:], complaint)
    assert "runtime error" not in complaint and "AddressSanitizer" not in complaint, complaint


@pytest.mark.thorough
def test_a_damaged_trace_is_refused(sanitized: Emulator, tmp_path: Path) -> None:
    trace = written(tmp_path, "halo-1d", 2)
    whole = trace.read_bytes()
    bent = tmp_path / "bent.wtrace"
    first = int.from_bytes(whole[32:40], "little") + 4096
    cases = {
        "cut": whole[: len(whole) // 2],
        "short": whole[:40],
        "kind": whole[:first] + b"\x7f" + whole[first + 1 :],
        "flags": whole[: first + 1] + b"\x01" + whole[first + 2 :],
        "nothing": b"x",
    }
    for what, content in cases.items():
        bent.write_bytes(content)
        code, lines, complaint = sanitized.run(bent, ranks=2)
        assert code != 0 and '"code":"trace"' in failures(lines, complaint), (what, lines, complaint)
        assert "AddressSanitizer" not in complaint and "runtime error" not in complaint, (what, complaint)


def test_ranks_that_do_not_fit_are_refused(sanitized: Emulator, tmp_path: Path) -> None:
    code, lines, complaint = sanitized.run(written(tmp_path, "halo-1d"), ranks=2)
    said = failures(lines, complaint)
    assert code != 0 and '"code":"ranks"' in said and 'has 4 ranks, the job has 2"' in said, said


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--trace", "a", "--program", "p"], "--iteration: one for each --program"),
        (["--program", "p", "--iteration", "i"], "--trace: a file must be given"),
        (
            ["--trace", "a", "--program", "p", "--iteration", "i", "--passes", "0"],
            "--passes takes a number from 1",
        ),
        (["--trace", "a", "--program", "p", "--iteration", "i", "--compute", "x"], "work, clock or none"),
        (["--trace", "a", "--method", "file"], "--dir goes with --method file"),
        (["--what"], "there is no option --what"),
    ],
)
def test_wrong_usage_is_said(sanitized: Emulator, words: list[str], complaint: str) -> None:
    done = subprocess.run([sanitized.path, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and complaint in done.stderr

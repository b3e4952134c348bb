"""The MPI probe, built with each MPI library of this machine, two ranks on it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from tests.cli.waiting import wait_until
from tests.native import programs
from tests.native.conftest import MpiProbe
from tests.native.probe import TIMEOUT_S, cells, lines_of, measuring, run
from tests.tiers import mostly_thorough, thorough

pytestmark = pytest.mark.mpi
#: A rank that spins may get no CPU for long where others have work: only what hangs is ended.
SHORT = ("--sweeps", "3", "--visit-us", "500", "--peer-timeout", "120")
#: Few sizes and a bounded time: ranks that spin get a share of two busy CPUs only.
ENDLESS = ("--sweeps", "100000", "--visit-us", "5000", "--peer-timeout")
#: Of MPICH's launches a quarter lost the last line, so many at once on two CPUs.
LAUNCHES, AT_ONCE = 24, 4
RANK = (b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=")
#: One operation between two, one of all, one of memory of others; and whatever there is.
SOME_AND_ALL = pytest.mark.parametrize(
    "some",
    [
        ("mpi_pingpong", "mpi_allreduce", "mpi_get", "mpi_file_write_shared", "mpi_file_read_own"),
        thorough(()),
    ],
    ids=["some", "all"],
)


def rank_pid(job: int, program: Path, rank: int) -> int:
    """Process that is this rank of the job that `job` has started: other tests run the same program."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "exe").readlink() != program or job not in ancestors(process):
                continue
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:  # not ours, or gone
            continue
        if any(name + str(rank).encode() in variables for name in RANK):
            return int(process.name)
    raise AssertionError(f"no rank {rank} of {program} is running")


def ancestors(process: Path) -> Iterator[int]:
    """Yield who has started a process, and who has started that, and so on."""
    while process.name != "0":
        process = process.with_name((process / "stat").read_text().rpartition(")")[2].split()[1])
        yield int(process.name)


def test_measures_every_size(either_mpi_probe: MpiProbe) -> None:
    lines = run(either_mpi_probe.argv(2, "--op", "mpi_pingpong", "--sizes", "65536,0,1", *SHORT))
    assert lines[0]["mpi"]
    assert len(lines[0]["hosts"]) == len(lines[0]["cpus"]) == 2
    assert lines[0]["yields"] == (either_mpi_probe.family == "openmpi")
    found = cells(lines)
    assert list(found) == [0, 1, 65536]
    assert all(cell["divisor"] == 2 and cell["corrupt"] == 0 for cell in found.values())


def _operations(mpi_probe: MpiProbe) -> dict[str, dict]:
    listed = subprocess.run([mpi_probe.path, "--list"], capture_output=True, check=True, timeout=TIMEOUT_S)
    return {operation["name"]: operation for operation in json.loads(listed.stdout)}


@SOME_AND_ALL
def test_every_operation_moves_what_it_was_given(
    mpi_probe: MpiProbe, some: tuple[str, ...], tmp_path: Path
) -> None:
    for name, operation in _operations(mpi_probe).items():
        if operation["transport"] != "mpi" or name not in (some or [name]):
            continue
        least, most = operation["min_size_bytes"], operation["max_size_bytes"]
        sizes = [size for size in (0, 8, 1000, 65536) if least <= size <= most]
        # The last of three has no partner across the middle. Those of MPICH spin, and there may be two CPUs.
        for ranks in [3] if operation["ranks"] == 0 and mpi_probe.family == "openmpi" else [2]:
            argv = mpi_probe.argv(
                *(ranks, "--op", name, "--sizes", ",".join(map(str, sizes)), "--dir", str(tmp_path), *SHORT)
            )
            found = cells(run(argv))
            assert list(found) == sizes, name
            assert list(tmp_path.iterdir()) == [], "a file was left behind"
            assert all(cell["corrupt"] == 0 and cell["iterations"] > 0 for cell in found.values()), name


def test_a_directory_that_a_node_lacks_is_named(either_mpi_probe: MpiProbe, tmp_path: Path) -> None:
    """At every launch, also where the launcher has no time to read what a rank says before it ends the job."""
    argv = either_mpi_probe.argv(
        2, "--op", "mpi_file_write_own", "--sizes", "8", "--dir", str(tmp_path / "no")
    )

    def said(_: int) -> str:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
        return done.stdout + done.stderr

    with ThreadPoolExecutor(AT_ONCE) as launches:
        for words in launches.map(said, range(LAUNCHES)):
            assert "no such directory, which every node must have" in words


def test_the_library_says_its_parameters_as_the_environment_has_them(mpi_probe: MpiProbe) -> None:
    name, variable, value = {
        "openmpi": ("btl_tcp_eager_limit", "OMPI_MCA_btl_tcp_eager_limit", "4096"),
        "mpich": ("MPIR_CVAR_POLLS_BEFORE_YIELD", "MPIR_CVAR_POLLS_BEFORE_YIELD", "7"),
    }[mpi_probe.family]

    def asked(**more: str) -> dict[str, dict]:
        words = [mpi_probe.path, "--parameters"]
        said = subprocess.run(
            words, capture_output=True, check=True, timeout=TIMEOUT_S, env=os.environ | more
        )
        first, *rest = [json.loads(line) for line in said.stdout.splitlines()]
        assert first["type"] == "library" and first["version"]
        assert all(line["type"] == "parameter" for line in rest)
        return {line["name"]: line for line in rest}

    usual = asked()
    assert len(usual) > 100 and usual[name]["value"] != value and usual[name]["about"]
    assert asked(**{variable: value})[name]["value"] == value
    if mpi_probe.family == "openmpi":
        assert usual["coll_tuned_bcast_algorithm"]["values"]["1"]


def _shim(mpi_probe: MpiProbe, name: str, *variables: str) -> list[str]:
    """Begin of a command line of two ranks with a library of ours between program and MPI."""
    shim = programs.shim(name, mpi_probe.family)
    return [*mpi_probe.argv(2)[:-1], "env", f"LD_PRELOAD={shim}", *variables]


@SOME_AND_ALL
def test_every_operation_sees_what_is_corrupt(
    mpi_probe: MpiProbe, some: tuple[str, ...], tmp_path: Path
) -> None:
    shim = _shim(mpi_probe, "corrupting")
    for name, operation in _operations(mpi_probe).items():
        if operation["transport"] != "mpi" or name not in (some or [name]):
            continue
        # After a barrier, or described before, it is the same message that is checked in the same way.
        again = name.endswith(("_barrier", "_persistent")) and name != "mpi_persistent"
        if not operation["max_size_bytes"] or again:
            continue
        words = ["--op", name, "--sizes", "8,4096", "--dir", str(tmp_path), *SHORT]
        found = cells(run([*shim, str(mpi_probe.path), *words]))
        assert all(cell["corrupt"] > 0 for cell in found.values()), name


def _shares(mpi_probe: MpiProbe, op: str, directory: Path) -> tuple[str, list[float]]:
    """What the directory is on, and of each visit the share in memory."""
    lines = run(mpi_probe.argv(2, "--op", op, "--sizes", "65536", "--dir", str(directory), *SHORT))
    (cell,) = cells(lines).values()
    assert len(cell["in_memory"]) == len(cell["batch_medians_ns"])
    return lines[0]["filesystem"], cell["in_memory"]


@pytest.mark.parametrize("sharing", mostly_thorough(["own", "shared", "collective"], "shared"))
def test_what_is_in_memory_is_told_from_what_is_not(
    mpi_probe: MpiProbe, sharing: str, tmp_path: Path
) -> None:
    on, kept = _shares(mpi_probe, f"mpi_file_read_{sharing}", tmp_path)
    assert min(kept) > 0.9, "it had just been written"
    _, forgotten = _shares(mpi_probe, f"mpi_file_read_{sharing}_dropped", tmp_path)
    assert max(forgotten) < 0.1 or on in ("tmpfs", "overlayfs"), on
    _, written = _shares(mpi_probe, f"mpi_file_write_{sharing}", tmp_path)
    assert min(written) > 0.9


def test_a_directory_that_nodes_do_not_share_is_named(mpi_probe: MpiProbe, tmp_path: Path) -> None:
    path = programs.in_two_directories(mpi_probe.path, tmp_path, rank=1)
    odd = msgspec.structs.replace(mpi_probe, path=path)
    argv = odd.argv(2, "--op", "mpi_file_write_shared", "--sizes", "4096", "--dir", ".", *SHORT)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    said = done.stdout + done.stderr  # who is not the first rank says it on its standard error
    assert done.returncode != 0 and "a directory that all nodes share" in said, done
    assert f"{socket.gethostname()} cannot find ./" in said
    assert [list((tmp_path / name).iterdir()) for name in ("here", "there")] == [[], []]


@pytest.mark.parametrize("sharing", mostly_thorough(["own", "shared", "collective"], "shared"))
@pytest.mark.parametrize(("op", "fails"), [("write", "write"), ("read", "read"), thorough("read", "write")])
def test_a_call_that_fails_on_one_node_is_named_and_no_file_is_left(
    mpi_probe: MpiProbe, op: str, fails: str, sharing: str, tmp_path: Path
) -> None:
    """A file system without room most of all: what is left would keep it full."""
    words = ["--op", f"mpi_file_{op}_{sharing}", "--sizes", str(1 << 20), "--dir", str(tmp_path), *SHORT]
    argv = [*_shim(mpi_probe, "failing_files", f"WULF_FAILS={fails}"), str(mpi_probe.path), *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode != 0 and f"cannot {fails} {tmp_path}" in done.stdout + done.stderr, done
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("sharing", "files"), [("own", 2), ("shared", 1)])
def test_a_launch_that_is_ended_leaves_no_file(
    mpi_probe: MpiProbe, sharing: str, files: int, tmp_path: Path
) -> None:
    """Nor where the rank that has made it gets no CPU: Open MPI's launcher kills the others when one has ended."""
    words = ["--op", f"mpi_file_write_{sharing}", "--sizes", "4096", "--dir", str(tmp_path), *ENDLESS, "60"]
    stopped = (
        "WULF_MAKER=stopped" if mpi_probe.family == "openmpi" else "WULF_MAKER="
    )  # MPICH's waits for all
    argv = [*_shim(mpi_probe, "made_files", stopped), str(mpi_probe.path), *words]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
        wait_until(lambda: len(list(tmp_path.iterdir())) == files, "the ranks have their files", job)
        assert job.poll() is None
        job.terminate()  # SIGINT, too, but MPICH's launcher kills the ranks then
        job.wait(timeout=TIMEOUT_S)
    wait_until(lambda: not list(tmp_path.iterdir()), f"gone are {files}")


@pytest.mark.parametrize("sharing", ["own", "shared"])
def test_nor_does_one_that_is_ended_when_it_has_just_made_it(
    mpi_probe: MpiProbe, sharing: str, tmp_path: Path
) -> None:
    words = [
        "--op",
        f"mpi_file_write_{sharing}",
        "--sizes",
        "4096",
        "--dir",
        str(tmp_path),
        *SHORT,
        "--peer-timeout",
        "20",
    ]
    argv = [*_shim(mpi_probe, "made_files", "WULF_MAKER=ended"), str(mpi_probe.path), *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    told = "launcher ended the launch" in done.stdout + done.stderr
    # Two ranks that end at the same time can end MPICH's launcher with them.
    assert told or done.returncode == -signal.SIGPIPE, done
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_launch_left_is_removed_when_it_is_old(mpi_probe: MpiProbe, tmp_path: Path) -> None:
    old, new, other = (
        tmp_path / f"wulf-probe-files-{who}" for who in (f"{os.getuid()}-h-1", f"{os.getuid()}-h-2", "x-h-3")
    )
    for left in (old, new, other):
        left.touch()
    os.utime(old, (0, 0))
    os.utime(other, (0, 0))
    _shares(mpi_probe, "mpi_file_write_own", tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([new, other])


def test_the_library_gives_the_thread_level_that_was_asked_for(mpi_probe: MpiProbe) -> None:
    words = ["--op", "mpi_pingpong", "--sizes", "8", *SHORT]
    lines = run(mpi_probe.argv(2, *words, "--thread-level", "funneled"))
    assert lines[0]["thread_level"] in ("funneled", "serialized", "multiple")
    argv = [str(mpi_probe.path), *words, "--thread-level", "many"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 2 and "--thread-level" in done.stderr


def test_an_operation_takes_its_number(mpi_probe: MpiProbe) -> None:
    words = ("--op", "mpi_strided:2", "--label", "every second", "--sizes", "1024")
    lines = run(mpi_probe.argv(2, *words, *SHORT))
    assert lines[0]["op"] == cells(lines)[1024]["op"] == "every second"
    for words, complaint in (
        (("mpi_strided:0", "8"), "from 1 to 1024"),
        (("mpi_strided:x", "8"), "from 1 to 1024"),
        (("mpi_strided:", "8"), "from 1 to 1024"),
        (("mpi_ring:3", "8"), "takes no number"),
        (("mpi_allreduce", "9"), "multiples of 8 B"),
    ):
        argv = [str(mpi_probe.path), "--op", words[0], "--sizes", words[1]]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert done.returncode == 2 and complaint in done.stderr, words


@pytest.mark.parametrize("ranks", mostly_thorough([2, 4], 4))
def test_a_group_has_as_many_ranks_as_there_are(mpi_probe: MpiProbe, ranks: int) -> None:
    lines = run(mpi_probe.argv(ranks, "--op", "mpi_bcast", "--sizes", "0,1024", *SHORT))
    assert len(lines[0]["hosts"]) == ranks
    (reference,) = [line for line in lines if line["type"] == "reference"]
    assert [len(values) for values in reference["medians_ns"]] == ranks * [6]
    found = cells(lines)
    assert list(found) == [0, 1024]
    assert all(cell["divisor"] == 1 and cell["min_ns"] > 0 for cell in found.values())


def test_what_is_not_waited_for_says_what_it_is_held_against(mpi_probe: MpiProbe) -> None:
    known = _operations(mpi_probe)
    beside = {name: one["overlaps"] for name, one in known.items() if one["overlaps"] is not None}
    assert len(beside) == 12
    for name, alone in beside.items():
        assert name == f"{alone}_overlap"
        blocking = known[alone.replace("mpi_i", "mpi_", 1)]
        same = ("ranks", "pattern", "max_size_bytes", "size_step_bytes")
        assert all(known[alone][key] == known[name][key] == blocking[key] for key in same), name
        assert known[alone]["quantity"] == blocking["quantity"] != known[name]["quantity"]
        assert not known[name]["moves_bytes"]


@pytest.mark.parametrize("ranks", mostly_thorough([2, 4], 4))
def test_all_ranks_of_a_group_compute(mpi_probe: MpiProbe, ranks: int) -> None:
    found = cells(run(mpi_probe.argv(ranks, "--op", "mpi_iallreduce_overlap", "--sizes", "8", *SHORT)))
    assert found[8]["iterations"] > 0 and found[8]["corrupt"] == 0
    assert len(found[8]["exit_medians_ns"]) == ranks


@pytest.mark.thorough
def test_what_overlaps_is_told_from_what_does_not(mpi_probe: MpiProbe) -> None:
    words = ("--op", "mpi_ibcast_overlap", "--sizes", "8", "--sweeps", "40", "--reference-us", "0")
    left_ns = {}
    for percent in (0, 100):
        shim = _shim(mpi_probe, "overlapping", f"OVERLAP={percent}")
        cell = cells(run([*shim, str(mpi_probe.path), *words]))[8]
        # Whatever else runs here makes visits longer, so the shortest counts.
        left_ns[percent] = min(cell["batch_medians_ns"])
    # None of 300 µs that nobody calls MPI in is hidden: other load makes it only more. Where they are, less is left.
    assert left_ns[0] > 300_000 / 2
    assert left_ns[100] < left_ns[0]


def test_a_group_is_more_than_one(mpi_probe: MpiProbe) -> None:
    argv = mpi_probe.argv(1, "--op", "mpi_bcast", "--sizes", "1", *SHORT)
    done = subprocess.run(argv, capture_output=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 3
    (line,) = lines_of(done.stdout)
    assert line["code"] == "ranks" and "at least 2 ranks, there is 1" in line["message"]


def test_pairs_measure_at_once(mpi_probe: MpiProbe) -> None:
    lines = run(mpi_probe.argv(4, "--op", "mpi_pingpong", "--sizes", "65536,0,1", "--at-once", *SHORT))
    assert len(lines[0]["hosts"]) == 4
    found = [line for line in lines if line["type"] == "cell"]
    assert [(*line["ranks"], line["size"]) for line in found] == [
        (first, first + 1, size) for first in (0, 2) for size in (0, 1, 65536)
    ]
    assert all(line["corrupt"] == 0 and len(line["batch_medians_ns"]) == 3 for line in found)
    references = [line for line in lines if line["type"] == "reference"]
    assert [line["ranks"] for line in references] == [[0, 1], [2, 3]]
    assert all([len(values) for values in line["medians_ns"]] == [9, 9] for line in references)
    assert lines[-1]["type"] == "end"


@pytest.mark.parametrize(
    ("ranks", "op"), [(3, "mpi_pingpong"), thorough(4, "mpi_bcast"), thorough(2, "empty")]
)
def test_at_once_wants_pairs(mpi_probe: MpiProbe, ranks: int, op: str) -> None:
    argv = mpi_probe.argv(ranks, "--op", op, "--sizes", "0", "--at-once", *SHORT)
    done = subprocess.run(argv, capture_output=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 3
    assert [line["code"] for line in lines_of(done.stdout)] == ["ranks"]


@pytest.mark.parametrize("victim", mostly_thorough([1, 2, 3], 3))
def test_of_pairs_at_once_one_that_dies_ends_the_launch(mpi_probe: MpiProbe, victim: int) -> None:
    argv = mpi_probe.argv(4, "--op", "mpi_pingpong", "--sizes", "1024", "--at-once", *ENDLESS, "4")
    with measuring(argv) as job:
        assert job.stdout is not None
        os.kill(rank_pid(job.pid, mpi_probe.path, victim), signal.SIGKILL)
        said = [line for line in job.stdout if line.startswith(b"{") and b'"waiting"' not in line]
        job.wait()
    assert job.returncode not in (0, -signal.SIGKILL)
    # A launcher that gives rank 0 no time to say it just ends the stream.
    last = lines_of(said[-1])[0] if said else {"type": "progress"}
    assert last["type"] == "progress" or last["code"] in ("peer_lost", "mpi")


@pytest.mark.parametrize("ranks", mostly_thorough([1, 3], 3))
def test_wants_two_ranks(mpi_probe: MpiProbe, ranks: int) -> None:
    argv = mpi_probe.argv(ranks, "--op", "mpi_pingpong", "--sizes", "1", *SHORT)
    done = subprocess.run(argv, capture_output=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 3
    lines = lines_of(done.stdout)
    assert [line["code"] for line in lines] == ["ranks"]


@pytest.mark.parametrize("ranks", mostly_thorough([1, 2], 1))
def test_measures_itself(mpi_probe: MpiProbe, ranks: int) -> None:
    assert 0 in cells(run(mpi_probe.argv(ranks, "--op", "empty", "--sizes", "0", *SHORT)))


def test_names_a_bad_option(mpi_probe: MpiProbe) -> None:
    argv = [mpi_probe.path, "--op", "tcp_rr", "--sizes", "1"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--op" in done.stderr


@pytest.mark.parametrize("cause", mostly_thorough([signal.SIGKILL, signal.SIGSTOP], signal.SIGKILL))
def test_names_a_peer_that_goes_away(mpi_probe: MpiProbe, cause: signal.Signals) -> None:
    argv = mpi_probe.argv(2, "--op", "mpi_pingpong", "--sizes", "1024", *ENDLESS, "4")
    with measuring(argv) as job:
        assert job.stdout is not None
        victim = rank_pid(job.pid, mpi_probe.path, 1)
        os.kill(victim, cause)
        # Like the controller: up to the last line of the protocol. The launcher may have more to say, and
        # Hydra waits for a rank that is stopped.
        last = next((line for line in job.stdout if b'"error"' in line), b"")
        end(victim)
    error = lines_of(last)[0]
    assert error["code"] == "peer_lost"
    assert error["peer"] == socket.gethostname()
    assert error["peer"] in error["message"]


def end(pid: int) -> None:
    """A launcher may have ended it already."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return

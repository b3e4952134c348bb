"""SMPI traces mean what SimGrid makes of them: it replays each and writes down what it did, with all arguments said."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from wulf.base.errors import TraceError
from wulf.node.replay import replaying
from wulf.stats.prediction.network import Link, Network, Piece
from wulf.tools.trace.importing import import_trace

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(shutil.which("smpirun") is None, reason="Debian: libsimgrid-dev"),
]
TRACES = Path(__file__).parents[1] / "golden/traces"
SPEED = 1e9
#: The platform of the field's case: 1 MB/s and 1 µs between two hosts.
LINK = Link(latency_ns=1000, eager_bytes=65_535, send=(), receive=(), wire=(Piece(0, 0, 1000),))
#: Its links carry what they say: no factors that were fitted to some cluster.
SETTINGS = (
    "network/model:CM02",
    "network/bandwidth-factor:1",
    "network/latency-factor:1",
    "network/TCP-gamma:1e12",
    "network/weight-S:0",
    "network/crosstraffic:0",
    "smpi/bw-factor:0:1",
    "smpi/lat-factor:0:1",
    "smpi/test:0",
)
#: SimGrid writes the computation of these down twice, as their argument and as an action of its own.
TWICE = re.compile(
    r"^(\d+ (?:reduce|allreduce|scan|exscan|reducescatter) .*\n)\d+ compute .*\n", re.MULTILINE
)


def simgrid(trace: Path, ranks: int, folder: Path) -> tuple[float, list[Path]]:
    """Replay a trace; return the time [s], and SimGrid's own trace of what it did."""
    (folder / "list").write_text(f"{trace}\n")
    hosts = [("a", "b")[rank % 2] for rank in range(ranks)]
    (folder / "hosts").write_text("\n".join(hosts) + "\n")
    argv = [
        "smpirun",
        "-np",
        str(ranks),
        "-hostfile",
        str(folder / "hosts"),
        "-platform",
        str(TRACES / "p.xml"),
    ]
    argv += ["-replay", str(folder / "list"), "-trace-ti", "-trace-file", str(folder / "again")]
    argv += [f"--cfg={one}" for one in (*SETTINGS, f"smpi/host-speed:{SPEED:g}f")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    found = re.search(r"Simulation time ([\d.]+)", done.stderr + done.stdout)
    assert done.returncode == 0 and found, done.stderr[-2000:]
    files = sorted((folder / "again_files").iterdir(), key=lambda one: int(one.stem.rsplit("-")[-1]))
    for file in files:
        file.write_text(TWICE.sub(r"\1", file.read_text()))
    return float(found[1]), files


def records(files: list[Path], folder: Path) -> list[list[tuple[object, ...]]]:
    trace = import_trace(files, "smpi", folder / "x.wtrace", SPEED)
    return [
        [(one.kind, one.peer, one.tag, one.bytes, one.compute_ns, one.payload) for one in stream.records()]
        for stream in trace.streams
    ]


def check(text: str, ranks: int, folder: Path) -> float:
    """Hold what we read in a trace against what SimGrid says that it did; return its time [s]."""
    trace = folder / "trace.txt"
    trace.write_text(text)
    seconds, again = simgrid(trace, ranks, folder)
    assert records([trace], folder) == records(again, folder)
    return seconds


def replayed_s(folder: Path) -> float:
    """Return how long our own replay of the trace takes [s]."""
    network = Network(between=LINK, within=LINK)
    return replaying.replay(folder / "x.wtrace", [network], nodes=[0, 1]).results[0].time_ns * 1e-9


def of_all(line: str, ranks: int = 4, init: str = "init") -> str:
    return "".join(f"{rank} {init}\n{rank} {line}\n{rank} finalize\n" for rank in range(ranks))


@pytest.mark.parametrize("name", ["alltoallv", "bcast-no-root", "with-test"])
def test_files_of_the_field(name, tmp_path):
    text = (TRACES / "field" / f"{name}.txt").read_text()
    seconds = check(text, 2, tmp_path)
    if name == "with-test":
        assert replayed_s(tmp_path) == pytest.approx(seconds, rel=0.01)


@pytest.mark.parametrize("init", ["init", "init 1"])
@pytest.mark.parametrize(
    "line",
    [
        "barrier",
        *("bcast 1000", "bcast 1000 2", "bcast 1000 2 1", "bcast 1e3 3 5", "bcast 1000.7"),
        *("reduce 100 2000", "reduce 100 2000 3", "reduce 100 2000 3 1"),
        *("allreduce 100 5e6", "allreduce 100 5e6 1", "scan 100 7e3", "exscan 100 7e3 5"),
        *("gather 10 10", "gather 10 10 2", "gather 10 10 2 1 1", "allgather 10 10", "allgather 10 10 4 4"),
        *("scatter 10 10", "scatter 10 10 2", "scatter 10 10 2 1 1", "alltoall 10 10", "alltoall 10 10 3 3"),
        *("gatherv 5 5 5 5 5", "gatherv 5 5 5 5 5 2", "gatherv 5 5 5 5 5 2 1 1"),
        *("scatterv 5 5 5 5 5", "scatterv 5 5 5 5 5 2", "scatterv 5 5 5 5 5 2 1 1"),
        *("allgatherv 5 5 5 5 5", "allgatherv 5 5 5 5 5 1 1", "allgatherv 5 5 5 5 5 0 5 10 15"),
        "allgatherv 5 5 5 5 5 1 1 0 5 10 15",
        *("alltoallv 20 5 5 5 5 20 5 5 5 5", "alltoallv 20 5 5 5 5 20 5 5 5 5 1 1"),
        *("reducescatter 5 6 7 8 1000", "reducescatter 5 6 7 8 1000 1"),
        *("compute 12345", "comm_size 4", "comm_split 7", "comm_dup 7", "location file.c 12"),
    ],
)
def test_every_action_with_what_may_be_left_out(line, init, tmp_path):
    check(of_all(line, init=init), 4, tmp_path)


@pytest.mark.parametrize("seed", range(20))
def test_messages_in_any_order(seed, tmp_path):
    check("".join(f"{line}\n" for line in exchanges(random.Random(seed))), 2, tmp_path)


def exchanges(chance: random.Random) -> Iterator[str]:
    """Yield lines of two ranks that send, receive, test and wait, so that both come to their end."""
    init = chance.choice(["init", "init 1"])
    yield from (f"{rank} {init}" for rank in (0, 1))
    for tag in range(chance.randint(1, 6)):
        one = chance.randint(0, 1)
        size = f"{chance.randint(0, 100_000)}{chance.choice(['', ' 1', ' 5', '.5'])}"
        match chance.randint(0, 3):
            case 0:
                yield f"{one} send {1 - one} {tag} {size}"
                yield f"{1 - one} recv {one} {tag} {size}"
            case 1:
                yield f"{1 - one} irecv {one} {tag} {size}"
                yield f"{one} isend {1 - one} {tag} {size}"
                yield f"{1 - one} test {one} {1 - one} {tag}"
                yield f"{1 - one} compute {chance.randint(0, 1000)}e5"
                yield f"{1 - one} wait {one} {1 - one} {tag}"
                yield f"{one} wait {one} {1 - one} {tag}"
            case 2:
                yield from (f"{rank} isend {1 - rank} {tag} {size}" for rank in (0, 1))
                yield from (f"{rank} irecv {1 - rank} {tag} {size}" for rank in (0, 1))
                yield from (f"{rank} waitall" for rank in (0, 1))
            case _:
                yield from (f"{rank} bcast {size.split(maxsplit=1)[0]} {one}" for rank in (0, 1))
    yield from (f"{rank} finalize" for rank in (0, 1))


def test_a_message_there_and_back_at_once(tmp_path):
    lines = [f"{rank} sendRecv 100 {1 - rank} 100 {1 - rank} 1 1" for rank in (0, 1)]
    trace = tmp_path / "trace.txt"
    trace.write_text("\n".join(["0 init", "1 init", *lines, "0 finalize", "1 finalize"]) + "\n")
    seconds, _ = simgrid(trace, 2, tmp_path)
    import_trace([trace], "smpi", tmp_path / "x.wtrace", SPEED)
    # SimGrid's platform has one link for both ways: each has half of it.
    assert replayed_s(tmp_path) == pytest.approx(seconds / 2, rel=0.05)


def test_sleep_is_time(tmp_path):
    """SimGrid does not write it down, but it takes its time."""
    trace = tmp_path / "trace.txt"
    trace.write_text(of_all("sleep 0.25", 2))
    import_trace([trace], "smpi", tmp_path / "x.wtrace", SPEED)
    assert replayed_s(tmp_path) == pytest.approx(simgrid(trace, 2, tmp_path)[0], rel=0.01)


def test_what_simgrid_does_not_read_is_refused(tmp_path):
    trace = tmp_path / "trace.txt"
    for line in ("bcast", "reduce 100", "gatherv 5 5 5", "alltoallv 20 5 5 5 5", "waitany", "send 1 0"):
        trace.write_text(of_all(line))
        with pytest.raises(TraceError, match=r"trace.txt:2: "):
            import_trace([trace], "smpi", tmp_path / "x.wtrace", SPEED)
        with pytest.raises(AssertionError):
            simgrid(trace, 4, tmp_path)

"""Drive the built probe: start it, collect its lines, hold every line against docs/protocol.md."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from wulf.base.records import Sample
from wulf.node.probe import parse

Line = dict[str, Any]
TOKEN = "5eed"
#: So long nothing lasts here, whatever else runs: it hangs.
TIMEOUT_S = 300

#: Keys of every kind of line, as documented; a key that is there must be known, and the other way round.
_HELLO = {
    *(
        "type",
        "protocol",
        "version",
        "program",
        "mpi",
        "eager_limits",
        "hosts",
        "cpus",
        "yields",
        "pid",
        "clock",
    ),
}
KEYS = {
    "hello": _HELLO | {"op", "seed"},
    "server": _HELLO | {"role", "port"},
    "progress": {"type", "sweep", "sweeps", "visits_done", "visits", "moved_bytes", "at_us"},
    "cell": {
        *("type", "op", "size", "timing", "divisor", "iterations", "batch_iterations", "min_ns", "max_ns"),
        *("histogram", "batch_medians_ns", "warmup_medians_ns", "warmup_settled", "lost", "warmup_lost"),
        *("corrupt", "batch_at_us"),
    },
    "flows": {
        *("type", "op", "size", "visit", "port", "ports", "sent", "answered", "arrived", "late", "again"),
        "medians_ns",
    },
    "incast": {"type", "op", "size", "visit", "senders", "times_ns", "arrived", "again"},
    "trace": {"type", "protocol", "from_port", "to_port", "hops", "reached"},
    "reference": {"type", "medians_ns", "at_us"},
    "scheduled": {"type", "of"},
    "error": {"type", "code", "peer", "message"},
    "end": {"type", "elapsed_s"},
}
#: What only some say: with MPI, with the directory of files, of datagrams.
SOMETIMES = {"thread_level", "filesystem", "in_memory", "sent_per_s"}
OF_COLLECTIVES = {"late", "start_tolerances_ns", "clock_errors_ns", "exit_medians_ns"}


def lines_of(output: bytes) -> list[Line]:
    """Decode what a probe printed; every line must keep the protocol and be understood by the controller."""
    result: list[Line] = []
    for raw in output.splitlines():
        if not raw.startswith(b"{"):  # what an MPI launcher says, or the empty line before an error
            continue
        line: Line = json.loads(raw)
        if line == {"type": "waiting"}:
            assert parse.message(raw) is None, "only a sign of life"
            continue
        kind = "server" if line.get("role") == "server" else line["type"]
        # Only results say which ranks and which of two settings they are about, where there are several.
        about = {"ranks", "arm"}
        said_keys = set(line) - about - (SOMETIMES if kind in ("hello", "cell") else set())
        assert said_keys in (KEYS[kind], KEYS[kind] | OF_COLLECTIVES if kind == "cell" else None), raw
        assert not about & set(line) or kind in ("cell", "reference", "scheduled"), raw
        said = parse.message(raw)
        if kind in (
            "flows",
            "incast",
            "trace",
        ):  # read by `wulf.node.probe.flows` and `wulf.node.probe.many_to_one`
            result.append(line)
            continue
        assert said is not None, raw
        if isinstance(said, parse.CellLine):
            place = ("near", "far", "near2", "far2")[: len(said.exit_medians_ns) or None]
            check_sample(parse.sample(said, "launch", place, "default"))
        if isinstance(said, parse.ReferenceLine):
            ranks = len(said.medians_ns)
            place = ("near", "far", "near2", "far2")[: 4 if said.ranks else ranks]
            assert len(parse.reference(said, place).medians_ns) == ranks
        result.append(line)
    assert result, "the probe printed nothing"
    return result


def check_sample(sample: Sample) -> None:
    """What must hold for every cell."""
    values = [value for value, _ in sample.histogram]
    assert values == sorted(set(values))
    assert sample.min_ns <= values[0]
    assert values[-1] <= sample.max_ns
    assert sample.batch_at_us == sorted(sample.batch_at_us)
    assert len(sample.batch_at_us) == len(sample.batch_medians_ns)
    assert 0 < len(sample.warmup_medians_ns) <= 8


def cells(lines: Sequence[Line]) -> dict[int, Line]:
    """Cells by size of a launch that ended well."""
    assert lines[-1]["type"] == "end", lines[-1]
    found = [line for line in lines if line["type"] == "cell"]
    assert [cell["size"] for cell in found] == sorted(cell["size"] for cell in found)
    return {cell["size"]: cell for cell in found}


@contextmanager
def secret(token: str = TOKEN) -> Iterator[IO[bytes]]:
    """Standard input of a probe: a file with the token."""
    with TemporaryFile() as file:
        file.write(f"{token}\n".encode())
        file.seek(0)
        yield file


def run(argv: Sequence[str | Path], expected_code: int = 0, token: str = TOKEN) -> list[Line]:
    """Run a probe to its end."""
    words = [str(word) for word in argv]
    with secret(token) as stdin:
        done = subprocess.run(words, stdin=stdin, capture_output=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == expected_code, (done.returncode, done.stdout[-500:], done.stderr[-2000:])
    return lines_of(done.stdout)


@contextmanager
def measuring(argv: Sequence[str | Path]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a probe whose end nobody waits for; it has said hello and that it goes on (`lines_of`, `rest_of`)."""
    words = [str(word) for word in argv]
    with (
        secret() as stdin,
        subprocess.Popen(words, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process,
    ):
        bound = threading.Timer(TIMEOUT_S, process.kill)
        bound.start()
        try:
            assert process.stdout is not None
            hello = lines_of(process.stdout.readline())[0]
            assert hello["type"] == "hello", hello
            assert process.stdout.readline(), "it ended before it had measured anything"
            yield process
        finally:
            process.kill()
            bound.cancel()


def rest_of(process: subprocess.Popen[bytes]) -> list[Line]:
    """Wait for the end of a probe that was `measuring`; return what else it said."""
    assert process.stdout is not None
    said = process.stdout.read()
    process.wait()
    return lines_of(said)


@contextmanager
def server(program: Path, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run a server on loopback; yields the process and its port."""
    argv = [str(program), "--server", "--token-stdin", *options]
    with secret() as stdin:
        process = subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stdout is not None
        hello = lines_of(process.stdout.readline())[0]
        yield process, hello["port"]
    finally:
        process.kill()
        process.communicate()


def client(program: Path, port: int, op: str, sizes: str, *options: str) -> list[str]:
    """Command line of a client; its standard input is `secret`."""
    where = ["--connect", f"127.0.0.1:{port}", "--peer-name", "far", "--token-stdin"]
    return [str(program), *where, "--op", op, "--sizes", sizes, *options]

"""What the tests of the tracer share: the tracer and programs built with one MPI library, and counts of a trace."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from tests.native import programs
from wulf.base.trace.layout import NOBODY, Kind
from wulf.base.trace.reader import Entry, Stream, Trace, read
from wulf.base.trace.writer import pack

HERE = Path(__file__).parent
TIMEOUT_S = 300
SENDS = {Kind.SEND, Kind.SSEND, Kind.BSEND, Kind.ISEND, Kind.ISSEND, Kind.IBSEND, Kind.SENDRECV}
RECEIVES = {Kind.RECV, Kind.MRECV, Kind.RECV_PART}
BEGUN = {Kind.IRECV, Kind.IMRECV}
INITS = {Kind.SEND_INIT, Kind.SSEND_INIT, Kind.BSEND_INIT, Kind.RECV_INIT}
COMPLETED = {Kind.WAIT, Kind.WAIT_SOME, Kind.TEST}
#: The ranks share CPUs with the rest of the tests; loopback TCP behaves as a network does.
OPTIONS = {
    "openmpi": [
        *("--allow-run-as-root", "--oversubscribe", "--bind-to", "none"),
        *("--mca", "mpi_yield_when_idle", "1", "--mca", "btl_tcp_if_include", "lo"),
    ],
    "mpich": ["-launcher", "fork"],
}


class Tracer(msgspec.Struct, frozen=True):
    """The tracer, built with one MPI library, and how that starts programs."""

    family: str
    compiler: str
    mpirun: str
    library: Path

    def compile(self, source: str, *options: str, language: str = "c") -> Path:
        """Build a program of this directory, in C, or in Fortran with the compiler beside that of C."""
        compiler = self.compiler if language == "c" else self.compiler.replace("mpicc", "mpif90")
        if shutil.which(compiler) is None:
            pytest.skip(f"{compiler} is not installed")
        # MPICH declares for every call how much it reads, so that a constant for "none" is warned of.
        return programs.compiled("traced", compiler, "-w", "-O1", *options, HERE / source)

    def run(
        self,
        directory: Path,
        program: Path,
        *words: str,
        ranks: int = 4,
        options: tuple[str, ...] = ("--mca", "btl", "self,tcp"),
        **own: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run it with the tracer, whose streams go to the directory; `options` are of Open MPI."""
        launch = [self.mpirun, "-np", str(ranks), *OPTIONS[self.family]]
        if self.family == "openmpi":
            launch += options
        given = {"LD_PRELOAD": str(self.library), "WULF_TRACE": str(directory), **own}
        environment = ["env", *(f"{name}={value}" for name, value in given.items())]
        return subprocess.run(
            [*launch, *environment, str(program), *words],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            cwd=directory.parent,
            env=surroundings(self.mpirun),
        )

    def trace(
        self,
        directory: Path,
        program: Path,
        *words: str,
        ranks: int = 4,
        options: tuple[str, ...] | None = None,
    ) -> tuple[Trace, dict[int, list[int]]]:
        """Return the trace of a program, and by rank what it has counted itself."""
        streams = directory / "streams"
        streams.mkdir()
        more = {} if options is None else {"options": options}
        done = self.run(streams, program, *words, ranks=ranks, **more)
        assert done.returncode == 0 and "wulf-tracer" not in done.stderr, done.stderr
        lines = [line.split() for line in done.stdout.splitlines()]
        counts = {int(rank): [int(number) for number in numbers] for rank, *numbers in lines}
        pack(directory / "a.wtrace", {"command": list(words)}, streams)
        return read(directory / "a.wtrace"), counts


def surroundings(mpirun: str) -> Mapping[str, str]:
    """Return an environment in which a launcher finds its own helpers before those of another library."""
    return {**os.environ, "PATH": f"{Path(mpirun).parent}:{os.environ['PATH']}"}


def tracer_of(family: str) -> Tracer:
    """Return the tracer of an MPI library of this machine; skip the test where there is none."""
    mpi = programs.required(family)
    return Tracer(family, mpi.compiler, mpi.mpirun, programs.program("libwulf-tracer.so", family))


def counted(stream: Stream) -> list[int]:
    """Return what a trace says of a rank in the order in which the programs print it."""
    sent: list[int] = []
    got: list[int] = []
    together = 0
    begun: dict[int, Entry] = {}  # by request
    cancelled: set[int] = set()  # requests
    for record in stream.records():
        together += Kind.BARRIER <= record.kind <= Kind.MAKE_COMMUNICATOR
        if record.kind in INITS | BEGUN:
            begun[record.request] = record
        elif record.kind is Kind.FREE:
            begun.pop(record.request, None)
        elif record.kind is Kind.CANCEL:
            cancelled.add(record.request)
        elif record.kind in COMPLETED and record.request in cancelled:
            cancelled.remove(record.request)
            if record.peer == NOBODY:
                continue
        sent += _sent(record, begun)
        got += _got(record, begun)
    return [len(sent), sum(sent), len(got), sum(got), together]


def _sent(record: Entry, begun: dict[int, Entry]) -> list[int]:
    """Return the bytes of a message that is sent here."""
    if record.kind is Kind.START:
        record = begun[record.request]
        return [] if record.kind is Kind.RECV_INIT else [record.bytes]
    return [record.bytes] if record.kind in SENDS and record.peer >= 0 else []


def _got(record: Entry, begun: dict[int, Entry]) -> list[int]:
    """Return the bytes of a message that has come here."""
    if record.kind in COMPLETED:
        what = begun.get(record.request)
        if what is None or what.kind not in BEGUN | {Kind.RECV_INIT}:
            return []
        if what.kind in BEGUN:
            del begun[record.request]
        return [record.bytes]
    return [record.bytes] if record.kind in RECEIVES and record.peer >= 0 else []


def check(trace: Trace, expected: Mapping[int, list[int]], ranks: int = 4) -> None:
    """Hold a trace against what its program has counted."""
    assert sorted(expected) == list(range(ranks))
    for stream in trace.streams:
        stream.verify()
        assert stream.lost == 0
        assert counted(stream) == expected[stream.rank]
        spent = sum(record.compute_ns + record.call_ns for record in stream.records())
        assert 0 < spent <= stream.run_ns

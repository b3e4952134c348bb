"""Launches of traced programs on two nodes."""

from __future__ import annotations

import base64
import subprocess
import tempfile
import time
from pathlib import Path

import msgspec

from bench.accuracy.networks import waited_us
from bench.common import PAIR, Pair
from wulf.base.contracts import MpiJob
from wulf.base.native import build
from wulf.base.trace.reader import read
from wulf.base.trace.writer import pack
from wulf.node.cluster.launcher import launcher_for

#: A program may take so long, also on a slow network and a busy machine [s].
LIMIT_S = 600.0


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of a program."""

    round: int
    network: str
    program: str
    #: Between MPI_Init and MPI_Finalize, on the slowest rank [s].
    time_s: float
    #: Share of the time from start to end in which some process of this machine waited for a processor.
    waited: float
    #: Below the directory of all that was measured; empty where it was not kept.
    trace: str = ""


class Starter:
    """Starts programs with the tracer in each rank."""

    def __init__(self, nodes: Pair, mpi: build.MpiLibrary) -> None:
        self._nodes, self._mpi = nodes, mpi
        self._tracer = nodes.install(build.build_program("libwulf-tracer.so", mpi).path)

    def built(self, source: Path) -> str:
        """Build a program of one file in C, and put it on the nodes."""
        target = Path(tempfile.mkdtemp(prefix="wulf-accuracy-")) / source.stem
        argv = [self._mpi.compiler, "-w", "-O2", "-o", str(target), str(source)]
        subprocess.run(argv, check=True)
        return self._nodes.install(target)

    def shipped(self, name: str) -> str:
        """Put a program that comes with the package on the nodes."""
        return self._nodes.install(build.build_program(name, self._mpi).path)

    def run(self, words: list[str], trace: Path) -> tuple[float, float]:
        """Launch a program; return its run time, and the share of the time in which processes waited.

        Parameters
        ----------
        trace
            Where its trace goes.
        """
        directory = f"{self._nodes.directory}/trace"
        job = MpiJob(
            program=words[0],
            arguments=words[1:],
            hosts=[(node, self._nodes.config.address(node)) for node in PAIR],
            interface=self._nodes.config.interface,
            env={"LD_PRELOAD": self._tracer, "WULF_TRACE": directory},
        )
        launcher = launcher_for(self._mpi.family, self._mpi.mpirun)
        before, begin = waited_us(), time.monotonic()
        # mpirun itself has nothing to be traced: it only passes the variables on.
        self._nodes.output(launcher.argv(job), env=launcher.env(job), timeout_s=LIMIT_S)
        waited = 1e-6 * (waited_us() - before) / (time.monotonic() - begin)
        self._fetch(directory, trace, " ".join(words))
        return 1e-9 * max(stream.run_ns for stream in read(trace).streams), waited

    def _fetch(self, directory: str, trace: Path, command: str) -> None:
        script = (
            f'cd {directory} && for f in rank.*; do echo "$f $(base64 -w 0 $f)"; done; rm -rf {directory}'
        )
        with tempfile.TemporaryDirectory() as name:
            for line in self._nodes.output(["sh", "-c", script]).splitlines():
                file, _, content = line.partition(" ")
                (Path(name) / file).write_bytes(base64.b64decode(content))
            pack(trace, {"command": command}, Path(name))

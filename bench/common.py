"""What the comparisons share: a pair of virtual nodes, interleaved launches, the last line."""

from __future__ import annotations

import importlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import msgspec
import numpy as np

from wulf.base.contracts import MpiJob, Transport
from wulf.base.native import build
from wulf.node import lab
from wulf.node.cluster import inventory
from wulf.node.cluster.launcher import launcher_for
from wulf.node.cluster.transport import open_transport
from wulf.stats.core import intervals, paired

PAIR = ("node01", "node02")
LINE_TIMEOUT_S = 60.0


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One ratio or other value and the goal it has to stay at or below."""

    name: str
    value: float
    goal: float
    low: float | None = None
    high: float | None = None
    #: Half the width that the interval may have; None: any.
    half_width: float | None = None

    @property
    def sharp(self) -> bool:
        """Whether the interval is as narrow as is asked for; one that is unknown is not."""
        if self.half_width is None:
            return True
        if self.low is None or self.high is None:
            return False
        return (self.high - self.low) / 2 <= self.half_width

    @property
    def reached(self) -> bool:
        """Whether the goal is reached, at the digits that are printed, and the value sharp enough to tell."""
        return round(self.value, 3) <= self.goal and self.sharp

    @property
    def said(self) -> str:
        """The value, with its interval where it has one."""
        interval = "" if self.low is None else f"({self.low:.3f}..{self.high:.3f})"
        return f"{self.name}:{self.value:.3f}{interval}"


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two virtual nodes, each with a CPU of its own, and how to run things there."""

    config: inventory.ClusterConfig
    transport: Transport
    directory: str

    def install(self, program: Path) -> str:
        """Copy a program to both nodes; return its path there."""
        target = f"{self.directory}/{program.name}"
        answers = self.transport.put(program, target, PAIR, timeout_s=LINE_TIMEOUT_S)
        failed = [answer.reason for answer in answers.values() if answer.status != "ok"]
        if failed:
            raise SystemExit(f"bench: {failed[0]}")
        return target

    def output(
        self,
        argv: Sequence[str],
        node: str = PAIR[0],
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        timeout_s: float = LINE_TIMEOUT_S,
    ) -> str:
        """Run a command on a node; return what it printed, on standard error last."""
        given = stdin.encode()
        answer = self.transport.run(list(argv), [node], timeout_s=timeout_s, env=env, stdin=given)[node]
        if answer.status != "ok":
            raise SystemExit(f"bench: {argv[0]}: {answer.reason}\n{answer.stderr.decode(errors='replace')}")
        return (answer.stdout + answer.stderr).decode()

    def mpirun(self, mpi: build.MpiLibrary, program: str, arguments: Sequence[str]) -> str:
        """Run an MPI program with one rank on each node, started exactly as wulf starts its probe."""
        job = MpiJob(
            program=program,
            arguments=list(arguments),
            hosts=[(node, self.config.address(node)) for node in PAIR],
            interface=self.config.interface,
        )
        launcher = launcher_for(mpi.family, mpi.mpirun)
        return self.output(launcher.argv(job), env=launcher.env(job))


@contextmanager
def pair() -> Iterator[Pair]:
    """Raise a virtual cluster (or use the one that is up) and reach its first two nodes."""
    missing = lab.supported()
    if missing:
        raise SystemExit("bench: no virtual cluster here: " + "; ".join(str(item) for item in missing))
    was_up = lab.current() is not None
    raised = lab.current() or lab.up(2)[0]
    config = inventory.parse(raised.cluster_toml(), "lab")
    transport = open_transport(config)
    try:
        yield Pair(config=config, transport=transport, directory="/var/tmp/wulf-bench")
    finally:
        transport.close()
        if not was_up:
            raised.down()


def measured(runs: Path, name: str, *words: str) -> None:
    """Measure between the two nodes with ``wulf measure WORDS``, as a user does; the run is `name` below `runs`."""
    argv = [sys.executable, "-m", "wulf.face.cli.main", "measure", "--run", name, "--runs", str(runs)]
    argv += ["--cluster", "lab", "--pairs", ":".join(PAIR), *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(f"bench: wulf measure failed: {done.stderr[-2000:]}")


def require(program: str, package: str) -> str:
    """Return the path of a program that is compared with; a comparison with nothing would always pass.

    Raises
    ------
    SystemExit
        It is not installed.
    """
    path = shutil.which(program)
    if path is None:
        raise SystemExit(f"bench: {program} is not installed: apt-get install {package}")
    return path


def require_module(name: str, group: str) -> ModuleType:
    """Return a module that needs packages of a dependency group; a comparison with nothing would always pass.

    Raises
    ------
    SystemExit
        They are not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise SystemExit(
            f"bench: {error.name} is not installed: .venv/bin/uv pip install --python .venv/bin/python --group {group}"
        ) from None


def build_mpi(source: Path, name: str, mpi: build.MpiLibrary) -> Path:
    """Build a program of a directory with a `CMakeLists.txt` with an MPI library."""
    target = Path(tempfile.mkdtemp(prefix="wulf-bench-"))
    configure = ["cmake", "-S", str(source), "-B", str(target), f"-DMPI_C_COMPILER={mpi.compiler}"]
    for argv in (configure, ["cmake", "--build", str(target), "--target", name]):
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"bench: {name} cannot be built:\n{done.stdout[-2000:]}")
    return target / name


def interleave(
    arms: Mapping[str, Callable[[], dict[str, float]]], rounds: int, seed: int = 1
) -> dict[str, dict[str, list[float]]]:
    """Run every arm once per round, in random order; return the values by arm and quantity."""
    order = random.Random(seed)
    values: dict[str, dict[str, list[float]]] = {name: {} for name in arms}
    for number in range(rounds):
        names = list(arms)
        order.shuffle(names)
        for name in names:
            for quantity, value in arms[name]().items():
                values[name].setdefault(quantity, []).append(value)
        if sys.stderr.isatty():
            print(f"\rround {number + 1}/{rounds}", end="", file=sys.stderr)
    return values


def ratio(name: str, ours: Sequence[float], theirs: Sequence[float], goal: float) -> Figure:
    """Ours divided by theirs: the median over rounds of the ratio within a round, with its interval.

    The launches of a round are neighbours in time, so that what changes slowly (a virtual machine's CPUs that
    are moved between physical cores change every latency by a fifth) falls out of the ratio.
    """
    found = intervals.median([our / their for our, their in zip(ours, theirs, strict=True)])
    return Figure(name=name, value=found.value, goal=goal, low=found.low, high=found.high)


def shift(name: str, ratios: Sequence[float], goal: float, half_width: float | None = None) -> Figure:
    """Ours divided by theirs over launches that each say a ratio: their pseudo-median, with its interval."""
    found = paired.paired_shift(np.log(ratios)).ratio
    return Figure(
        name=name, value=found.value, goal=goal, low=found.low, high=found.high, half_width=half_width
    )


def show(values: Mapping[str, Mapping[str, Sequence[float]]], unit: str, scale: float) -> None:
    """Print the spread of every arm."""
    for arm, quantities in values.items():
        for quantity, numbers in quantities.items():
            print(
                f"  {arm:14s} {quantity:10s} median {statistics.median(numbers) * scale:10.3f} {unit}"
                f"   min {min(numbers) * scale:10.3f}   max {max(numbers) * scale:10.3f}   n {len(numbers)}"
            )


def finish(name: str, figures: Sequence[Figure]) -> int:
    """Print the figures and the last line; return the exit status."""
    for figure in figures:
        interval = "" if figure.low is None else f"  95 % interval {figure.low:.3f} to {figure.high:.3f}"
        wanted = "" if figure.half_width is None else f", known within ± {figure.half_width:g}"
        print(f"  {figure.name}: {figure.value:.3f}{interval}  (goal <= {figure.goal:g}{wanted})")
    passed = all(figure.reached for figure in figures)
    value = ",".join(figure.said for figure in figures)
    goal = ",".join(f"{figure.name}:{figure.goal:g}" for figure in figures)
    print(f"{name} value={value} goal={goal} {'pass' if passed else 'short'}")
    return 0 if passed else 1


class Statements:
    """What has to hold, and how much of it does not."""

    def __init__(self) -> None:
        self.failed = 0
        self.begin = time.monotonic()

    def say(self, text: str, holds: bool) -> None:
        """Print a statement, whether it holds, and when."""
        self.failed += not holds
        print(f"  {time.monotonic() - self.begin:5.1f} s  {'yes' if holds else 'NO '}  {text}", flush=True)

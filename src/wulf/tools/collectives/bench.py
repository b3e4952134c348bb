"""Where collectives are measured: launches under an environment, and the library's own programs on the first node."""

from __future__ import annotations

import re
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from wulf.base.contracts import MpiJob
from wulf.base.errors import ProbeError, UsageError, WulfError
from wulf.base.native import build
from wulf.base.records import Operation, Place
from wulf.base.text import count, last_line, printable
from wulf.node.probe.execute import RunLaunch
from wulf.node.probe.schedule import LaunchPlan
from wulf.node.probe.start import Site
from wulf.stats import estimate
from wulf.tools.collectives.rules import installed

#: Visits of each size of a launch, and their length.
SWEEPS, VISIT_US = 12, 1000
ASK_S, CALLS_S = 60.0, 60.0
#: So many calls are made to count the library's messages; it sends fewer than that when it begins and ends.
CALLS = 100
#: Operations of the probe that have other names than the library's parameters.
_OPERATIONS = {
    "reduce_scatter_block": "mpi_reduce_scatter",
    "ireduce_scatter_block": "mpi_ireduce_scatter",
}
#: What coll/monitoring prints of messages that a collective is made of: from, to, bytes, messages.
_SENT = re.compile(r"^I\t([0-9]+)\t([0-9]+)\t([0-9]+) bytes\t([0-9]+) msgs sent", re.MULTILINE)
_MONITORED = {
    "OMPI_MCA_pml_monitoring_enable": "2",
    "OMPI_MCA_pml_monitoring_enable_output": "1",
}
#: A line in which a library says what went wrong.
_TELLING = re.compile(r"error|abort|invalid|fail|signal", re.IGNORECASE)
#: Texts inside a library that name its algorithms, or are a tree.
_TEXTS = """tr '\\0' '\\n' <"$1" | grep -a -e '^algorithm=MPIR_' -e '^{"collective='"""
_LIBRARY = """ldd "$1" | sed -n 's/.*=> *\\([^ ]*libmpi[^ ]*\\).*/\\1/p' | head -n 1"""

#: (from, to) → messages and bytes of one call.
Pattern = dict[tuple[int, int], tuple[int, int]]


class LaunchError(WulfError):
    """A launch that gave no times; says why."""


def operation_of(collective: str) -> str:
    """Return the name of the probe's operation that is a collective.

    Raises
    ------
    UsageError
        The probe's operation of that name is another collective.
    """
    if f"{collective}_block" in _OPERATIONS:
        raise UsageError(f"--collectives: {collective} is not measured; {collective}_block is")
    return _OPERATIONS.get(collective, f"mpi_{collective}")


def place_of(nodes: Sequence[str], ranks: int) -> Place:
    """Return the node of every rank: one each, or as many on each where there are more ranks than nodes.

    Raises
    ------
    UsageError
        They cannot be divided evenly.
    """
    if ranks <= len(nodes):
        return tuple(nodes[:ranks])
    if ranks % len(nodes):
        raise UsageError(
            f"--ranks {ranks}: up to as many as there are nodes ({len(nodes)}), or a multiple of it"
        )
    return tuple(node for node in nodes for _ in range(ranks // len(nodes)))


class Bench:
    """Launches on the nodes of a cluster."""

    def __init__(
        self,
        launch: RunLaunch,
        where: Site,
        nodes: Sequence[str],
        operations: Mapping[str, Operation],
        seed: int,
    ) -> None:
        self.nodes = list(nodes)
        self.launches = 0
        self._launch = launch
        self._where = where
        self._operations = operations
        self._seed = seed
        self._files: list[str] = []
        # Somebody else may do the same on these nodes at the same time.
        self._own = secrets.token_hex(4)

    def times(
        self, collective: str, ranks: int, sizes: Sequence[int], env: Mapping[str, str]
    ) -> dict[int, float]:
        """Return the median time of each size [s] of one launch; without sizes whose calls all began late.

        Raises
        ------
        LaunchError
            It failed, was ended, some data were wrong, or some time is none.
        """
        self.launches += 1
        operation = self._operations[operation_of(collective)]
        result = self._launch(
            LaunchPlan(
                id=f"{self.launches:05d}",
                index=self.launches,
                op=operation.name,
                transport=operation.transport,
                place=place_of(self.nodes, ranks),
                setting="default",
                purpose="measure",
                sizes_bytes=sorted(sizes),
                sweeps=SWEEPS,
                visit_us=VISIT_US,
                seed=(self._seed + self.launches) & (2**63 - 1),
                env=dict(env),
            )
        )
        if result.launch.status != "ok":
            raise LaunchError(result.launch.error or "the launch failed")
        if any(sample.corrupt for sample in result.samples):
            raise LaunchError("wrong data arrived")
        times = {cell.size_bytes: median for cell, (median, _) in estimate.medians(result).items()}
        for size, median in times.items():
            if median <= 0:
                raise LaunchError(f"calls at {size} B took no time: clocks of nodes could not be compared")
        return times

    def calls(self, collective: str, ranks: int, size_bytes: int, env: Mapping[str, str]) -> str:
        """Make some calls and nothing else; return what was printed.

        Raises
        ------
        LaunchError
            They failed, or gave wrong data.
        """
        where = self._where
        assert where.mpi_probe is not None
        assert where.launcher is not None
        place = place_of(self.nodes, ranks)
        job = MpiJob(
            program=where.mpi_probe,
            arguments=["--op", operation_of(collective), "--sizes", str(size_bytes), "--calls", str(CALLS)],
            hosts=[(node, where.addresses.get(node, node)) for node in place],
            interface=where.interface,
            subnet=where.subnet,
            shared_cpu=where.shares_cpu(*place),
            env=where.mpi_env | dict(env),
        )
        argv, around = where.launcher.argv(job), where.launcher.env(job)
        answer = where.transport.run(argv, [place[0]], timeout_s=CALLS_S, env=around)[place[0]]
        said = answer.stdout.decode(errors="replace")
        if answer.status != "ok" or '"type":"end"' not in said:
            errors = answer.stderr.decode(errors="replace")
            raise LaunchError(
                printable(_cause(said + errors) or answer.reason or "the job printed nothing", 300)
            )
        return said

    def pattern(self, collective: str, ranks: int, size_bytes: int, env: Mapping[str, str]) -> Pattern:
        """Return the messages of one call as Open MPI counts them; nothing where it does not.

        Raises as `calls`.
        """
        said = self.calls(collective, ranks, size_bytes, {**env, **_MONITORED})
        sent = {
            (int(source), int(target)): (int(messages) // CALLS, int(size) // CALLS)
            for source, target, size, messages in _SENT.findall(said)
        }
        # What is sent at begin and end gives every peer some bytes.
        return {way: count for way, count in sent.items() if count[0]}

    def library(self, mpi: build.MpiLibrary) -> installed.Library:
        """Ask the library on the first node, by its own programs: what starts the jobs may be another one's.

        Raises
        ------
        ProbeError
            Its program is not there, or fails.
        """
        where = self._where
        assert where.mpi_probe is not None
        if mpi.family == "mpich":
            path = self._ask(["sh", "-c", _LIBRARY, "sh", where.mpi_probe]).strip()
            return installed.mpich(mpi.version, self._ask(["sh", "-c", _TEXTS, "sh", path]).splitlines())
        program = str(Path(mpi.mpirun).with_name("ompi_info"))
        words = [program, "--param", "coll", "all", "--level", "9", "--parsable"]
        return installed.openmpi(mpi.version, self._ask(words))

    def put(self, text: str, name: str) -> str:
        """Put a file of rules on all nodes; return where it is, the same path everywhere.

        Raises
        ------
        LaunchError
            A node does not take it.
        """
        where = self._where
        assert where.mpi_probe is not None
        target = f"{Path(where.mpi_probe).parent}/{name}-{self._own}"
        self._files.append(target)  # some nodes may have it also where others do not take it
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=name) as file:
            file.write(text)
            file.flush()
            answers = where.transport.put(Path(file.name), target, self.nodes, timeout_s=ASK_S, mode=0o644)
        failed = [answer.reason for answer in answers.values() if answer.status != "ok"]
        if failed:
            raise LaunchError(f"cannot write {target}: {failed[0]}")
        return target

    def clean(self) -> None:
        """Take away the files that were put on the nodes."""
        if self._files:
            self._where.transport.run(["rm", "-f", *self._files], self.nodes, timeout_s=ASK_S)
            self._files.clear()

    def _ask(self, argv: list[str]) -> str:
        node = self.nodes[0]
        answer = self._where.transport.run(argv, [node], timeout_s=ASK_S, env=self._where.mpi_env)[node]
        if answer.status != "ok":
            why = last_line(answer.stderr) or answer.reason
            raise ProbeError(f"{node}: {argv[0]} says nothing of the library's algorithms: {why}")
        return answer.stdout.decode(errors="replace")


def _cause(said: str) -> str:
    """Return the line in which a failed job says why: the probe's own word, else the first one of the library."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("wulf-probe-mpi:") or '"message"' in line]
    telling = [line for line in lines if _TELLING.search(line)]
    return (own or telling or lines or [""])[0]


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """What is searched for by itself."""

    collective: str
    ranks: int
    #: At which it is decided, and at which the decision is judged [B].
    sizes: tuple[int, ...]
    held_out: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.collective} of {count(self.ranks, 'rank')}"

"""What the stages need from each other, as interfaces; the command line plugs the parts together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from wulf.base.interfaces import Interface, by_interface, common

#: Takes what long work says of its progress, a line at a time.
Say = Callable[[str], None]


class NodeResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one node answered. ``ok`` only when the command ran there and exited with 0."""

    node: str
    status: Literal["ok", "exit", "timeout", "unreachable", "garbage"]
    #: None when the command did not run to its end.
    exit_code: int | None
    stdout: bytes
    stderr: bytes
    #: Why it is not ``ok``, in one line that names the node; empty otherwise.
    reason: str = ""
    #: Nothing there said a word: the node may be off. One that refuses who asks is not silent.
    silent: bool = False


class RemoteProcess(Protocol):
    """A command that runs on a node and is read line by line."""

    def lines(self, timeout_s: float, total_s: float | None = None) -> Iterator[bytes]:
        """Yield stdout line by line; raise TransportError when no line comes for `timeout_s` [s].

        Whatever it prints, OverdueError is raised after `total_s` [s].
        """

    def ready(self) -> list[bytes]:
        """Return the lines of stdout that have come and were not read; wait for none."""

    def wait(self, timeout_s: float) -> int:
        """Exit code; raise TransportError after `timeout_s` [s]."""

    def stderr(self) -> bytes:
        """Return what has come on stderr so far (its last 64 KiB)."""

    def stop(self) -> None:
        """End it here and on the node; do nothing when it has ended."""


class Transport(Protocol):
    """Run commands and move files on nodes. No argument is ever interpreted by a shell unquoted."""

    name: str

    def run(
        self,
        argv: Sequence[str],
        nodes: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        each: Callable[[NodeResult], None] | None = None,
        fresh: bool = False,
    ) -> dict[str, NodeResult]:
        """Run the command on all nodes in parallel; one result for every node, whatever happens.

        With `each`, a result goes there as soon as it has come, in any order, and is not kept: of thousands
        of nodes only few outputs are in memory at a time. What is returned is then empty.
        """

    def put(
        self, source: Path, target: str, nodes: Sequence[str], *, timeout_s: float, mode: int = 0o755
    ) -> dict[str, NodeResult]:
        """Copy a file to the same absolute path on all nodes, atomically."""

    def start(
        self,
        argv: Sequence[str],
        node: str,
        *,
        env: Mapping[str, str] | None = None,
        line: str | None = None,
    ) -> AbstractContextManager[RemoteProcess]:
        """Start a command on one node; it is stopped when the context ends.

        `line` comes on its standard input: a secret, which among the arguments everybody on the node could read.
        """


class MpiJob(msgspec.Struct, frozen=True, kw_only=True):
    """One MPI program, one rank on each host."""

    program: str
    arguments: list[str]
    #: (node name, address the other nodes reach it by), in rank order.
    hosts: list[tuple[str, str]]
    #: Interface the traffic shall take on the nodes; None leaves it to the library.
    interface: Interface = None
    #: Subnet of that interface (CIDR), for libraries that select by subnet.
    subnet: str | None = None
    #: Ranks share CPUs: they give the CPU away while they wait.
    shared_cpu: bool = False
    #: Of each rank, all of them busy.
    threads: int = 1
    env: dict[str, str] = {}

    @property
    def nic(self) -> str | None:
        """What the interface is called on all hosts; None where they call it differently, or it does not matter."""
        return common(self.interface, (node for node, _ in self.hosts))

    @property
    def nics(self) -> list[str]:
        """What it is called on any of them."""
        return [name for name in by_interface(self.interface, (node for node, _ in self.hosts)) if name]

    @property
    def network(self) -> str | None:
        """Interface or, where it has several names, subnet of the traffic."""
        return self.nic or (self.subnet if self.nics else None)


class Launcher(Protocol):
    """An MPI library's way to start a job: nothing but argv and environment."""

    name: str

    def argv(self, job: MpiJob) -> list[str]:
        """Command line that starts the job on its first host."""

    def env(self, job: MpiJob) -> dict[str, str]:
        """Environment of that command, beyond what the host has."""

"""MPICH 3.2 and later, started by Hydra."""

from __future__ import annotations

from collections.abc import Sequence

from wulf.base.contracts import MpiJob
from wulf.node.cluster.launcher.hosts import Binding, by_address, data_interfaces


class Mpich:
    """``mpirun`` (Hydra) of MPICH."""

    name = "mpich"

    def __init__(
        self, command: str = "mpirun", arguments: Sequence[str] = (), *, binding: Binding | None = None
    ) -> None:
        self._command = command
        self._arguments = list(arguments)
        self._binding = binding

    def argv(self, job: MpiJob) -> list[str]:
        """Command line that starts the job on its first host."""
        hosts = by_address(job.hosts)
        words = [self._command, "-n", str(len(job.hosts)), "-launcher", "ssh"]
        # Otherwise Hydra kills the measuring rank at once when the other dies, before it can name its peer.
        words += ["-disable-auto-cleanup"]
        words += ["-hosts", ",".join(f"{address}:{ranks}" for address, ranks in hosts.items())]
        if self._binding is not None:
            words += ["-bind-to", self._binding]
        if job.nic is not None:
            words += ["-iface", job.nic]
        return [*words, *self._arguments, job.program, *job.arguments]

    def env(self, job: MpiJob) -> dict[str, str]:
        """Environment of that command, which Hydra passes on to the ranks."""
        variables = {"HYDRA_LAUNCHER_EXTRA_ARGS": "-oBatchMode=yes"}
        # -iface is for Hydra's own messages; the data goes by UCX or libfabric, as the library was built.
        variables |= data_interfaces(job)
        if job.shared_cpu:
            # For ch3 only. MPICH 4.0 (ch4) spins whatever it is told, and a ping-pong of two ranks on one CPU
            # takes a scheduler tick.
            variables |= {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
        return {**variables, **job.env}

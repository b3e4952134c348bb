"""Any MPI library, started by Slurm."""

from __future__ import annotations

from collections.abc import Sequence

from wulf.ports import MpiJob


class Srun:
    """``srun`` inside an allocation. The library is told about interfaces as each of them wants it."""

    name = "srun"

    def __init__(self, command: str = "srun", arguments: Sequence[str] = ()) -> None:
        self._command = command
        self._arguments = list(arguments)

    def argv(self, job: MpiJob) -> list[str]:
        """Command line that starts the job; ranks are on the hosts in the order given."""
        count = str(len(job.hosts))
        words = [self._command, "--nodes", count, "--ntasks", count, "--distribution=arbitrary"]
        words += ["--nodelist", ",".join(node for node, _ in job.hosts), "--export=ALL"]
        words += ["--cpu-bind=none" if job.shared_cpu else "--cpu-bind=cores"]
        return [*words, *self._arguments, job.program, *job.arguments]

    def env(self, job: MpiJob) -> dict[str, str]:
        """Environment of that command, which srun passes on to the ranks."""
        variables: dict[str, str] = {}
        if job.interface is not None:
            variables |= {
                "OMPI_MCA_btl_tcp_if_include": job.interface,
                "UCX_NET_DEVICES": job.interface,
                "FI_TCP_IFACE": job.interface,
                "FI_SOCKETS_IFACE": job.interface,
            }
        if job.shared_cpu:
            variables |= {"OMPI_MCA_mpi_yield_when_idle": "1"}
        return {**variables, **job.env}

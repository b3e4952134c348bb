"""Open MPI 4 and 5."""

from __future__ import annotations

from collections.abc import Sequence

from wulf.base.contracts import MpiJob
from wulf.node.cluster.launcher.hosts import Binding, bindings, by_address


class OpenMpi:
    """``mpirun`` of Open MPI.

    Which transport is used is the library's choice; an interface only restricts TCP and the library's own
    messages to it.
    """

    name = "openmpi"

    def __init__(
        self, command: str = "mpirun", arguments: Sequence[str] = (), *, binding: Binding | None = None
    ) -> None:
        self._command = command
        self._arguments = list(arguments)
        self._binding = binding

    def argv(self, job: MpiJob) -> list[str]:
        """Command line that starts the job on its first host."""
        words = [self._command, "-np", str(len(job.hosts)), "--host", _hosts(job)]
        # Binding to a core ignores the CPU set that the rank's node was given (taskset, a virtual node):
        # both ranks of a pair would meet on core 0. Unbound they inherit it.
        policies = bindings(job.env)
        if len(policies) < 2:
            words += ["--bind-to", *(policies or [self._binding or "none"])]
        for variable in job.env:
            words += ["-x", variable]
        return [*words, *self._arguments, job.program, *job.arguments]

    def env(self, job: MpiJob) -> dict[str, str]:
        """Environment of that command; versions 4 and 5 (PRTE) give some settings other names."""
        variables = {
            # Root started this; the question whether it should has been answered.
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PRTE_ALLOW_RUN_AS_ROOT": "1",
            "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            # Without a terminal a question would hang.
            "OMPI_MCA_plm_rsh_args": "-oBatchMode=yes",
            "PRTE_MCA_plm_ssh_args": "-oBatchMode=yes",
        }
        # Parameters of the ranks, which get all that begins with OMPI_. As words of mpirun they would outweigh what
        # the job says of the same ones.
        if job.shared_cpu:
            variables |= {"OMPI_MCA_mpi_yield_when_idle": "1"}
        if job.network is not None:
            variables |= {
                "OMPI_MCA_btl_tcp_if_include": job.network,
                "OMPI_MCA_oob_tcp_if_include": job.network,
                "PRTE_MCA_oob_tcp_if_include": job.network,
            }
        return {**variables, **job.env}


def _hosts(job: MpiJob) -> str:
    """Return the hosts with their slots; the first, which is where the job is started, by a name that is local there.

    PRRTE 3.0 (Open MPI 5) knows its own node by its host name and as localhost only. By an address of it that node is
    found, but its slots are counted as none: "There are not enough slots available" (PRRTE's pull request 2259).
    Open MPI 4 takes either.
    """
    own, *others = by_address(job.hosts).items()
    return ",".join(f"{name}:{ranks}" for name, ranks in (("localhost", own[1]), *others))

"""Any MPI library, started by Slurm."""

from __future__ import annotations

from collections.abc import Sequence

from wulf.base.contracts import MpiJob
from wulf.base.errors import UsageError
from wulf.node.cluster.launcher.hosts import BINDINGS, Binding, bindings, data_interfaces

#: MPI library → the plugin by which its ranks find each other when srun starts them: Open MPI takes PMIx only,
#: MPICH the protocol of PMI-1 and PMI-2.
PLUGINS = {"openmpi": "pmix", "mpich": "pmi2"}
#: What Open MPI binds to → what srun calls it. Ranks that srun has bound are left so by the library.
_UNITS = {
    "none": "none",
    "hwthread": "threads",
    "core": "cores",
    "numa": "ldoms",
    "socket": "sockets",
    "package": "sockets",
}


class Srun:
    """``srun`` inside an allocation. The library is told about interfaces as each of them wants it.

    Parameters
    ----------
    allocation
        Number of the job: srun is started by way of ssh, where nothing else says it.
    plugin
        Of `PLUGINS`; empty for Slurm's own default, or where `arguments` name one.
    """

    name = "srun"

    def __init__(
        self,
        command: str = "srun",
        arguments: Sequence[str] = (),
        *,
        allocation: str = "",
        plugin: str = "",
        binding: Binding | None = None,
    ) -> None:
        self._command = command
        self._arguments = list(arguments)
        self._allocation = allocation
        self._binding = binding
        self._plugin = plugin

    def argv(self, job: MpiJob) -> list[str]:
        """Command line that starts the job; ranks are on the hosts in the order given.

        Raises
        ------
        UsageError
            The job shall be bound to what srun binds nothing to.
        """
        nodes = [node for node, _ in job.hosts]
        words = [self._command]
        if self._allocation:
            # Steps beside each other: a pair at a time may be measured while others are.
            words += [f"--jobid={self._allocation}", "--overlap"]
        if self._plugin:
            words += [f"--mpi={self._plugin}"]
        words += ["--nodes", str(len(set(nodes))), "--ntasks", str(len(nodes))]
        # A node may be named several times, and the order counts, with this distribution only.
        words += ["--distribution=arbitrary", "--nodelist", ",".join(nodes), "--export=ALL"]
        words += [f"--cpu-bind={_unit(job, self._binding)}"]
        if job.shared_cpu:
            words += ["--overcommit"]
        return [*words, *self._arguments, job.program, *job.arguments]

    def env(self, job: MpiJob) -> dict[str, str]:
        """Environment of that command, which srun passes on to the ranks."""
        variables: dict[str, str] = {}
        if job.network is not None:
            variables |= {"OMPI_MCA_btl_tcp_if_include": job.network}
        variables |= data_interfaces(job)
        if job.shared_cpu:
            variables |= {"OMPI_MCA_mpi_yield_when_idle": "1"}
        return {**variables, **job.env}


def _unit(job: MpiJob, binding: Binding | None) -> str:
    """Return what srun binds each rank to: what the job says, else what the cluster's file says, else a core.

    Nothing where a core is too little and nobody has said it.
    """
    policies = bindings(job.env) or ([binding] if binding is not None else [])
    if not policies:
        # Bound to a core, all threads of a rank would be on it; unbound they have what the job has of the node.
        return "none" if job.shared_cpu or job.threads > 1 else "cores"
    # What follows a colon is about more ranks than cores, to which srun has --overcommit.
    unit = _UNITS.get(policies[0].partition(":")[0])
    if len(policies) > 1 or unit is None:
        raise UsageError(
            f"{' and '.join(f'{name}={job.env[name]}' for name in BINDINGS if name in job.env)}: "
            f"srun binds ranks to one of {', '.join(_UNITS)}"
        )
    return unit

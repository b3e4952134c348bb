"""Where the ranks of a job go, and what they are bound to there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from wulf.base.contracts import MpiJob
from wulf.base.errors import UsageError

#: What the ranks of a job are bound to, each to one.
Binding = Literal["none", "hwthread", "core", "numa", "socket"]
UNITS: tuple[Binding, ...] = get_args(Binding)

#: What a job of Open MPI 4 sets to be bound otherwise, and one of Open MPI 5, which PRRTE starts.
BINDINGS = ("OMPI_MCA_hwloc_base_binding_policy", "PRTE_MCA_hwloc_default_binding_policy")


def by_address(hosts: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Address → number of ranks there, in rank order (on one machine several nodes share an address).

    Raises
    ------
    UsageError
        When there are no hosts, or an address would mean something else in a list of hosts.
    """
    if not hosts:
        raise UsageError("an MPI job needs at least one host")
    for node, address in hosts:
        if not address or set(address) & set(",: \t\n") or address.startswith("-"):
            raise UsageError(
                f"{node}: '{address}' cannot be in a host list; MPI launchers take IPv4 or a name"
            )
    return dict(Counter(address for _, address in hosts))


def data_interfaces(job: MpiJob) -> dict[str, str]:
    """Return what tells UCX, which takes those of a list that a node has, and libfabric the interface."""
    if not job.nics:
        return {}
    found = {"UCX_NET_DEVICES": ",".join(job.nics)}
    return found if job.nic is None else found | {"FI_TCP_IFACE": job.nic, "FI_SOCKETS_IFACE": job.nic}


def bindings(env: Mapping[str, str]) -> list[str]:
    """Return what a job shall be bound to, as Open MPI calls it: two where it says one for each version."""
    return sorted({env[name] for name in BINDINGS if name in env})

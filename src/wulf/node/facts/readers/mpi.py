"""MPI and BLAS libraries, and their parameters in force. Pure."""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Sequence

from wulf.base.output_values import Absent, Unknown, optional, shown
from wulf.base.records import FactValue
from wulf.node.facts.node import Facts, NodeCapture
from wulf.node.facts.readers.machine import field
from wulf.node.facts.readers.nic import interface_address, interface_addresses

_CONFIGURATION = "/etc/openmpi/openmpi-mca-params.conf"


def add(facts: Facts, capture: NodeCapture) -> None:
    """Collect the libraries and the parameters that a job finds on the node."""
    facts.read("mpi.openmpi", lambda: _openmpi(capture))
    facts.read(
        "mpi.mpich", lambda: optional(lambda: field(capture.tree, "mpich", "MPICH Version", "mpichversion"))
    )
    facts.read("mpi.ucx", lambda: _ucx(capture))
    facts.read("mpi.openmpi_networks", lambda: _openmpi_networks(capture))
    facts.read("mpi.named_elsewhere", lambda: _named_elsewhere(capture))
    facts.read("mpi.openmpi_file", lambda: " ".join(capture.tree.lines(_CONFIGURATION)) or "empty")
    facts.read("mpi.environment", lambda: "; ".join(capture.tree.lines("environment")) or "none")
    facts.read("blas.library", lambda: blas(capture))


def parameter(capture: NodeCapture, names: str) -> FactValue:
    """Return Open MPI's parameters in force on the node, by name; one alone without its name.

    Raises
    ------
    Unknown
        When Open MPI is not there or does not know them.
    """
    if "openmpi_parameters" not in capture.tree:
        _openmpi(capture)
    found = capture.once("openmpi_parameters", lambda: _parameters(capture.tree.text("openmpi_parameters")))
    wanted = names.split()
    if not any(name in found for name in wanted):
        raise Absent("this Open MPI does not have it")
    if len(wanted) == 1:
        return found[wanted[0]] or "(empty)"
    return ", ".join(f"{name}={found[name] or '(empty)'}" for name in wanted if name in found)


@functools.lru_cache(maxsize=64)
def _parameters(text: str) -> dict[str, str]:
    """Return name → value; nodes of one kind print the same text."""
    found = {}
    for line in text.splitlines():
        match = re.fullmatch(r"mca:[^:]*:[^:]*:param:([^:]+):value:(.*)", line)
        if match:
            found[match[1]] = match[2].strip('"')
    return found


def _openmpi_networks(capture: NodeCapture) -> FactValue:
    """Return the interfaces over which Open MPI's TCP transport sends: those included, or all but those excluded.

    Source: ``split_and_resolve`` and ``mca_btl_tcp_component_create_instances`` in Open MPI's
    opal/mca/btl/tcp/btl_tcp_component.c (read): networks that no interface is in are passed over, and where nothing
    is left of the list of included ones that of excluded ones counts; a name that is excluded stands for all that
    begin with it.
    """
    found = interface_addresses(capture)
    included = _listed(capture, "btl_tcp_if_include")
    chosen = [nic for nic in found if any(_means(word, nic, found[nic]) for word in included)]
    if not chosen and all("/" in word for word in included):
        excluded = _listed(capture, "btl_tcp_if_exclude")
        chosen = [nic for nic in found if not any(_shuts_out(word, nic, found[nic]) for word in excluded)]
    return shown(" ".join(chosen), 400) or "none"


def _listed(capture: NodeCapture, name: str) -> list[str]:
    """Return the words of a parameter in force; none where this Open MPI does not have it."""
    try:
        text = str(parameter(capture, name))
    except Absent:
        return []
    return [word.strip() for word in text.split(",") if word.strip() not in ("", "(empty)")]


def _means(word: str, nic: str, addresses: Sequence[str]) -> bool:
    """Whether a name or a network stands for an interface."""
    if "/" not in word:
        return word == nic
    try:
        network = ipaddress.ip_network(word, strict=False)
    except ValueError:
        return False
    known = [interface_address(address) for address in addresses]
    return any(address.ip in network for address in known if address is not None)


def _shuts_out(word: str, nic: str, addresses: Sequence[str]) -> bool:
    return nic.startswith(word) if "/" not in word else _means(word, nic, addresses)


#: Variables that name the interfaces of a library: UCX's, libfabric's, and those of MPICH and Intel MPI.
_NAMING = (
    "UCX_NET_DEVICES",
    "FI_TCP_IFACE",
    "FI_SOCKETS_IFACE",
    "I_MPI_HYDRA_IFACE",
    "MPIR_CVAR_CH3_INTERFACE_HOSTNAME",
    "MPICH_INTERFACE_HOSTNAME",
)


def _named_elsewhere(capture: NodeCapture) -> FactValue:
    """Return the variables of jobs that name interfaces, but not the cluster's."""
    nic = capture.nic()
    said = []
    for line in capture.tree.lines("environment"):
        name, _, value = line.partition("=")
        words = [word.strip() for word in value.split(",")]
        # With a port it is an RDMA device (mlx5_0:1), which is no interface but may be the cluster's card.
        no_interface = any(re.search(r":\d+$|^\^", word) for word in words)
        if name in _NAMING and not no_interface and not {nic, "all", "", *_own_words(capture)} & {*words}:
            said.append(f"{name}={shown(value, 60)}")
    return "; ".join(said) or "none"


def _own_words(capture: NodeCapture) -> set[str]:
    """Return what else means the cluster's interface: its addresses."""
    addresses = interface_addresses(capture).get(capture.nic(), [])
    return {address.partition("/")[0] for address in addresses}


def variable(capture: NodeCapture, patterns: str) -> FactValue:
    """Return the environment variables of these names (``*`` matches) that a job on the node inherits.

    Raises
    ------
    Absent
        When none is set.
    """
    wanted = [re.compile(".*".join(map(re.escape, pattern.split("*")))) for pattern in patterns.split()]
    found = [
        line
        for line in capture.tree.lines("environment")
        if any(pattern.fullmatch(line.partition("=")[0]) for pattern in wanted)
    ]
    if not found:
        raise Absent("not set on the node: it belongs to the job")
    return "; ".join(found)


def blas(capture: NodeCapture) -> FactValue:
    """Return the file behind libblas.

    Raises
    ------
    Absent
        When the system has none.
    """
    lines = capture.tree.lines("blas")
    if not lines:
        raise Absent("the system has no libblas")
    return shown(lines[0].split(" ")[-1], 200)


def _openmpi(capture: NodeCapture) -> FactValue:
    text = optional(lambda: capture.tree.text("openmpi"))
    found = re.search(r"Open MPI v?(\S+)", text)
    if not found:
        raise Unknown("ompi_info does not say")
    return shown(found[1], 40)


def _ucx(capture: NodeCapture) -> FactValue:
    text = optional(lambda: capture.tree.text("ucx"))
    found = re.search(r"(?:Library version|Version):?\s+(\S+)", text, re.IGNORECASE)
    if not found:
        raise Unknown("ucx_info does not say")
    return shown(found[1], 40)

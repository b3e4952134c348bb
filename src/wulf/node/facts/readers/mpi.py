"""MPI and BLAS libraries, and their parameters in force. Pure."""

from __future__ import annotations

import functools
import re

from wulf.base.records import FactValue
from wulf.node.facts.node import Facts, NodeCapture
from wulf.node.facts.readers.machine import field
from wulf.node.facts.values import Absent, Unknown, optional, shown

_CONFIGURATION = "/etc/openmpi/openmpi-mca-params.conf"


def add(facts: Facts, capture: NodeCapture) -> None:
    """Collect the libraries and the parameters that a job finds on the node."""
    facts.read("mpi.openmpi", lambda: _openmpi(capture))
    facts.read(
        "mpi.mpich", lambda: optional(lambda: field(capture.tree, "mpich", "MPICH Version", "mpichversion"))
    )
    facts.read("mpi.ucx", lambda: _ucx(capture))
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

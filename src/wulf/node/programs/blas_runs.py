"""Which BLAS libraries nodes have, and which one a program uses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from wulf.base.contracts import Transport
from wulf.base.errors import ProbeError, TransportError
from wulf.base.nodeset import fold, reasons_text
from wulf.base.output_values import cpu_list
from wulf.base.records import NodeRecord
from wulf.base.records.libraries import BlasLibrary
from wulf.base.text import last_line, printable
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.programs import blas_libraries

ASK_TIMEOUT_S = 30.0


def fewest_cpus(records: Sequence[NodeRecord]) -> int:
    """Return how many CPUs the node has that has the fewest; 1 where no node says."""
    counts = [len(cpu_list(str(one.facts["cpu.allowed"]))) for one in records if "cpu.allowed" in one.facts]
    return min(counts, default=1)


def proven(
    transport: Transport,
    node: str,
    program: str,
    library: BlasLibrary,
    before: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the variables with which a program uses a library on a node; the dynamic linker has been asked.

    Parameters
    ----------
    program
        Path, or a name that the node finds.
    before
        Variables that the program has besides; its LD_LIBRARY_PATH and LD_PRELOAD stay, behind the library.

    Raises
    ------
    ProbeError
        It would use another library, or has one built in; says which and why.
    """
    variables = blas_libraries.environment(library.path, before=before)
    everything = {**(before or {}), **variables}
    answer = transport.run(
        ["sh", "-c", blas_libraries.BINDINGS, "sh", program], [node], timeout_s=ASK_TIMEOUT_S, env=everything
    )[node]
    files = blas_libraries.bound(answer.stdout.decode(errors="replace"))
    if not files:
        why = last_line(answer.stderr) or "none of its libraries, or of its own calls, is bound to dgemm"
        raise ProbeError(f"{node}: {printable(program, 200)}: its BLAS library cannot be replaced: {why}")
    wanted = PurePosixPath(library.path).parent
    others = [file for file in files if PurePosixPath(file).parent != wanted]
    if others:
        raise ProbeError(
            f"{node}: {printable(program, 200)} would use {printable(others[0], 200)}, not {library.path}: is a path "
            "built into it (RPATH), or another library in LD_PRELOAD?"
        )
    return variables


def installed(transport: Transport, nodes: Sequence[str]) -> tuple[list[BlasLibrary], dict[str, str]]:
    """Return the libraries that all nodes have, and why others are left out."""
    answers = transport.run(["sh", "-c", blas_libraries.FIND], nodes, timeout_s=ASK_TIMEOUT_S)
    bad = {node: answer.reason for node, answer in answers.items() if answer.status != "ok"}
    if bad:
        raise TransportError(reasons_text(bad))
    on_node = {
        node: blas_libraries.find(answer.stdout.decode(errors="replace")) for node, answer in answers.items()
    }
    places: dict[str, list[str]] = defaultdict(list)
    known: dict[str, BlasLibrary] = {}
    for node, libraries in on_node.items():
        for library in libraries:
            places[library.path].append(node)
            known.setdefault(library.path, library)
    missing = {
        library.name: f"it is not on {fold(set(nodes) - set(places[path]))}"
        for path, library in known.items()
        if len(places[path]) < len(nodes)
    }
    return [library for path, library in known.items() if len(places[path]) == len(nodes)], missing


def together(config: ClusterConfig, nodes: Sequence[str]) -> list[list[str]]:
    """Return sets of nodes of which no two have a CPU in common: each set is measured at the same time."""
    sets: list[list[str]] = []
    for node in nodes:
        free = next((one for one in sets if not any(_same_cpus(config, node, other) for other in one)), None)
        if free is None:
            sets.append([node])
        else:
            free.append(node)
    return sets


def _same_cpus(config: ClusterConfig, first: str, second: str) -> bool:
    return config.transport == "local" or config.shares_cpu(first, second)

"""Build a program that comes with this package, and put it where it is to run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wulf.base.contracts import Say, Transport
from wulf.base.errors import BuildError, TransportError
from wulf.base.native import build
from wulf.base.nodeset import reasons_text
from wulf.base.text import count
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.cluster.transport import open_transport
from wulf.node.fleet import install
from wulf.node.programs import shipped


def source(name: str) -> Path:
    """Return the source of a shipped program."""
    return build.source_directory() / shipped.find(name).source


def built(name: str, mpi: str | None, say: Say) -> build.Probe:
    """Build a shipped program on this machine, unless it has been built.

    Parameters
    ----------
    mpi
        Which library, as `wulf.base.native.build.find_mpi` takes it; the first one found when None.

    Raises
    ------
    UsageError
        There is no such program.
    BuildError
        It needs MPI and there is none, or it cannot be built.
    """
    program = shipped.find(name)
    if not program.mpi:
        say(f"building {program.program}")
        return build.build_program(program.program, None)
    libraries = build.find_mpi(mpi)
    if not libraries:
        raise BuildError(
            f"{name} needs an MPI library, and there is none: install one (Debian: libopenmpi-dev openmpi-bin), "
            "or name its compiler with --mpi"
        )
    say(f"building {program.program} with {libraries[0].version}")
    return build.build_program(program.program, libraries[0])


def on_nodes(
    config: ClusterConfig, transport: Transport, program: build.Probe, nodes: Sequence[str], say: Say
) -> str:
    """Put a built program on nodes, and return its path, which is the same on all of them.

    Raises
    ------
    TransportError
        It does not run on one of them; names all, with the reasons.
    """
    say(
        f"putting {program.path.name} on {count(len(nodes), 'node')}"
        if len(nodes) > 1
        else f"using {nodes[0]}"
    )
    path, lacking = install.install_program(config, transport, program, nodes)
    if path is None or lacking:
        raise TransportError(reasons_text(lacking))
    return path


def ship(name: str, config: ClusterConfig, nodes: Sequence[str], mpi: str | None, say: Say) -> str:
    """Build a shipped program and put it on nodes; returns its path there."""
    program = built(name, mpi, say)
    transport = open_transport(config)
    try:
        return on_nodes(config, transport, program, nodes, say)
    finally:
        transport.close()

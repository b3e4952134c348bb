"""Ways to start an MPI job, found by name: a module for each that is built in, a file for each that is described."""

from __future__ import annotations

from collections.abc import Sequence

from wulf.base import catalogue
from wulf.base.errors import ConfigError
from wulf.base.text import nearest
from wulf.node.cluster.launcher.described import Described, descriptions
from wulf.node.cluster.launcher.hosts import Binding
from wulf.node.cluster.launcher.mpich import Mpich
from wulf.node.cluster.launcher.openmpi import OpenMpi
from wulf.node.cluster.launcher.srun import Srun

__all__ = ["AnyLauncher", "families", "launcher_for", "names"]

AnyLauncher = OpenMpi | Mpich | Srun | Described

_LAUNCHERS: dict[str, type[OpenMpi] | type[Mpich] | type[Srun]] = {
    launcher.name: launcher for launcher in (OpenMpi, Mpich, Srun)
}


def names() -> tuple[str, ...]:
    """Return the names of all launchers.

    Raises
    ------
    ConfigError
        A file that describes one is not valid; names it.
    """
    taken = [name for name in descriptions() if name in _LAUNCHERS]
    if taken:
        raise ConfigError(
            f"{catalogue.file_of('launchers', taken[0])}: {taken[0]} is built in: give yours another id"
        )
    return (*_LAUNCHERS, *descriptions())


def families(name: str) -> tuple[str, ...]:
    """Return whose jobs a launcher starts."""
    return descriptions()[name].families if name in descriptions() else (name,)


def launcher_for(
    name: str,
    command: str | None = None,
    arguments: Sequence[str] = (),
    *,
    compiler: str = "",
    binding: Binding | None = None,
) -> AnyLauncher:
    """Return a launcher.

    Parameters
    ----------
    command
        What starts jobs, of one that is a program; None for its usual name.
    arguments
        The user's own.
    compiler
        Of the MPI library: what a described launcher starts jobs with stands beside it.
    binding
        What each rank is bound to; None for what the launcher does by itself.

    Raises
    ------
    ConfigError
        When there is none of that name.
    UsageError
        It cannot bind ranks to that.
    """
    if name not in names():
        raise ConfigError(
            f"[mpi] launcher: unknown launcher '{name}'{nearest(name, names())} (allowed: {', '.join(names())})"
        )
    if name in descriptions():
        return Described(descriptions()[name], compiler, arguments, binding)
    kind = _LAUNCHERS[name]
    if command:
        return kind(command, arguments, binding=binding)
    return kind(arguments=arguments, binding=binding)

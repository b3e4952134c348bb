"""Ways to start an MPI job. One module per launcher, found by name."""

from __future__ import annotations

from collections.abc import Sequence

from wulf.cluster.launcher.mpich import Mpich
from wulf.cluster.launcher.openmpi import OpenMpi
from wulf.cluster.launcher.srun import Srun
from wulf.errors import ConfigError

__all__ = ["AnyLauncher", "launcher_for"]

AnyLauncher = OpenMpi | Mpich | Srun

_LAUNCHERS: dict[str, type[OpenMpi] | type[Mpich] | type[Srun]] = {
    launcher.name: launcher for launcher in (OpenMpi, Mpich, Srun)
}


def launcher_for(name: str, command: str | None = None, arguments: Sequence[str] = ()) -> AnyLauncher:
    """Return the launcher called `name`, which runs `command` with the user's own `arguments`.

    Raises
    ------
    ConfigError
        When there is none of that name.
    """
    if name not in _LAUNCHERS:
        raise ConfigError(f"[mpi] launcher: unknown launcher '{name}' (allowed: {', '.join(_LAUNCHERS)})")
    kind = _LAUNCHERS[name]
    return kind(command, arguments) if command else kind(arguments=arguments)

"""Which MPI library a compiler wrapper belongs to, and what starts its jobs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import msgspec

from wulf.errors import ConfigError
from wulf.text import last_line, printable

_TIMEOUT_S = 20


class Detected(msgspec.Struct, frozen=True, kw_only=True):
    """An MPI library found by its compiler wrapper."""

    launcher: str
    #: The library's own mpirun, from beside the wrapper.
    command: str
    #: As the library says it.
    version: str


def identify(text: str) -> tuple[str, str] | None:
    """Return (launcher, version) from what a wrapper printed for ``--showme:version`` or ``-show``. Pure."""
    for line in printable(text, 20_000).splitlines():
        if "Open MPI" in line:
            return "openmpi", "Open MPI" + line.partition("Open MPI")[2].partition("(")[0].rstrip()
        if "mpich" in line.lower() or "-lmpi" in line.split():
            return "mpich", "MPICH"
    return None


def command_beside(compiler: str) -> str:
    """Return the mpirun of a compiler wrapper: ``/opt/x/bin/mpicc`` → ``/opt/x/bin/mpirun``. Pure.

    Debian's suffixes are kept: ``mpicc.mpich`` → ``mpirun.mpich``.
    """
    path = Path(compiler)
    head, found, tail = path.name.rpartition("mpicc")
    return str(path.with_name(f"{head}mpirun{tail}")) if found else "mpirun"


def detect(compiler: str) -> Detected:
    """Ask the compiler wrapper `compiler` (a path or a name) which library it is of.

    Raises
    ------
    ConfigError
        When there is no such wrapper, or it is of a library that wulf cannot start.
    """
    found = shutil.which(compiler)
    if found is None:
        raise ConfigError(f"[mpi] compiler: {compiler} is not there; give the path of the site's mpicc")
    said = ""
    for option in ("--showme:version", "-show"):
        said = _ask(found, option)
        identified = identify(said)
        if identified is not None:
            launcher, version = identified
            if launcher == "mpich":
                version = _mpich_version(found) or version
            return Detected(launcher=launcher, command=command_beside(found), version=version)
    said = last_line(said) or "nothing"
    raise ConfigError(
        f"[mpi] compiler: {found} is neither Open MPI's nor MPICH's (it says: {said}); set [mpi] launcher"
    )


def _mpich_version(compiler: str) -> str | None:
    """Version by MPICH's own mpichversion, when it lies beside the wrapper."""
    path = Path(compiler).with_name("mpichversion")
    if not path.exists():
        return None
    for line in _ask(str(path), "--version").splitlines():
        if line.startswith("MPICH Version:"):
            return f"MPICH {line.partition(':')[2].strip()}"
    return None


def _ask(program: str, option: str) -> str:
    try:
        answer = subprocess.run([program, option], capture_output=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"[mpi] compiler: {program} {option} failed: {error}") from error
    return (answer.stdout + b"\n" + answer.stderr).decode("utf-8", "replace")

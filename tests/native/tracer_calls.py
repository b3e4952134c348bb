"""That the tracer knows every call that an MPI library declares."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.native.programs import SOURCE

#: What a header declares, with the type that is returned.
_DECLARED = re.compile(r"\b(?:int|double|MPI_\w+)\s+(MPI_[A-Z][a-z]\w*)\s*\(")
_LOCAL = SOURCE / "tracer" / "local_calls.txt"


def declared(compiler: str, directory: Path) -> set[str]:
    """Return the calls that a library's mpi.h declares; those of its tools' interface (MPI_T_) are none."""
    source = directory / "header.c"
    source.write_text("#include <mpi.h>\n")
    done = subprocess.run([compiler, "-E", str(source)], capture_output=True, text=True, check=True)
    return set(_DECLARED.findall(done.stdout))


def wrapped(library: Path) -> set[str]:
    """Return the calls that have a wrapper."""
    done = subprocess.run(
        ["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True
    )
    return set(re.findall(r"\bMPI_\w+", done.stdout))


def local() -> set[str]:
    """Return the calls that are known to need none."""
    lines = [line for line in _LOCAL.read_text().splitlines() if not line.startswith("#")]
    names = [f"MPI_{name}" for line in lines for name in line.split()]
    assert len(names) == len(set(names))
    return {*names, *(f"{name}_c" for name in names)}


def unknown(compiler: str, library: Path, directory: Path) -> set[str]:
    """Return what a header declares and the tracer knows nothing of."""
    known = declared(compiler, directory)
    assert len(known) > 300, "the header was not understood"
    return known - wrapped(library) - local()

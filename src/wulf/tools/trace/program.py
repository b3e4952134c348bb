"""Which MPI library the program of a command has, and why it may have left no trace."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from wulf.base.contracts import Transport
from wulf.base.errors import BuildError
from wulf.base.native import build
from wulf.base.native.build import MpiLibrary
from wulf.node.programs import linked
from wulf.node.programs.linked import Linked

#: Looking at the programs of a command may take so long [s].
LOOK_S = 60.0
_STARTERS = ("mpirun", "mpiexec")


def library(asked: str | None, words: Sequence[str]) -> MpiLibrary:
    """Return the MPI library of a command: that which is named, whose mpirun stands first, or that a program has.

    Raises
    ------
    BuildError
        There is none.
    """
    if asked is not None:
        return build.find_mpi(asked)[0]
    found = build.find_mpi()
    chosen = _of_starter(linked.words_of(words), found) or _of_program(_look(words), found)
    if chosen is None and not found:
        raise BuildError("no MPI library was found: name that of the program with --mpi")
    return chosen or found[0]


def _of_starter(words: Sequence[str], found: Sequence[MpiLibrary]) -> MpiLibrary | None:
    starter = shutil.which(words[0]) if words else None
    if starter is None:
        return None
    path = Path(starter)
    for one in found:
        own = shutil.which(one.mpirun)
        if own is not None and Path(own).resolve() == path.resolve():
            return one
    name = next((name for name in _STARTERS if path.name.startswith(name)), None)
    return None if name is None else build.identify(str(path.with_name(path.name.replace(name, "mpicc"))))


def _of_program(programs: Sequence[Linked], found: Sequence[MpiLibrary]) -> MpiLibrary | None:
    families = [build.family_of(one.mpi) for one in programs if one.mpi]
    return next((one for one in found if families and one.family == families[0]), None)


def why(
    words: Sequence[str],
    tracer: MpiLibrary,
    exit_code: int,
    transport: Transport | None = None,
    node: str = "",
) -> str:
    """Say why no rank of a command left a stream, as far as its programs tell, here or on a node."""
    ended = [f"the command ended with exit code {exit_code}"] if exit_code else []
    return "; ".join([*ended, *_reasons(_look(words, transport, node), tracer)])


def _look(words: Sequence[str], transport: Transport | None = None, node: str = "") -> list[Linked]:
    """Return the programs that a command names, here or on a node; none where that cannot be said."""
    argv = ["sh", "-c", linked.SCRIPT, "sh", *linked.words_of(words)]
    if transport is not None:
        return linked.parse(
            transport.run(argv, [node], timeout_s=LOOK_S)[node].stdout.decode(errors="replace")
        )
    try:
        done = subprocess.run(argv, capture_output=True, timeout=LOOK_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return linked.parse(done.stdout.decode(errors="replace"))


def _reasons(programs: Sequence[Linked], tracer: MpiLibrary) -> Iterator[str]:
    told = [reason for one in programs for reason in _of_one(one, tracer)]
    yield from told
    if told:
        return
    if any(one.mpi for one in programs):
        yield (
            "the tracer saw no MPI_Init: the program ended before, begins MPI by MPI_Session_init, or its ranks were "
            "started without the variables LD_PRELOAD and WULF_TRACE"
        )
    elif any(one.is_script for one in programs):
        yield f"a script must start programs with {tracer.version} (--mpi names another library)"
    else:
        yield "the command names no program with an MPI library"


def _of_one(program: Linked, tracer: MpiLibrary) -> Iterator[str]:
    if program.is_setuid:
        yield (
            f"{program.path} is setuid or setgid: the system loads no library before it; trace a copy without that bit"
        )
    family = build.family_of(program.mpi) if program.mpi else None
    if program.is_static:
        yield f"{program.path} is linked statically: no library can be loaded before it"
    elif "not found" in program.mpi:
        yield f"{program.path} finds no MPI library: {program.mpi}"
    elif family is not None and family != tracer.family:
        yield f"{program.path} is linked with {family}, the tracer with {tracer.version}: give --mpi {family}"

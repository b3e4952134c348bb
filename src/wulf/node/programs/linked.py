"""The programs that a command names, and what they are linked with.  Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

import msgspec

#: Prints of every program that its arguments name the path, what can be said of it, and its libraries.
SCRIPT = """
for word do
    path=$(command -v -- "$word" 2>/dev/null) || continue
    case $path in */*) ;; *) continue ;; esac
    [ -f "$path" ] && [ -x "$path" ] || continue
    printf 'program %s\\n' "$path"
    if [ -u "$path" ] || [ -g "$path" ]; then echo setuid; fi
    if [ "$(head -c 2 "$path")" = '#!' ]; then echo script; continue; fi
    LC_ALL=C ldd "$path" 2>&1
done
"""
#: What starts ranks is linked with a library, too, and is not the program.
_STARTER = re.compile(r"(?:mpirun|mpiexec|orterun|prterun|prun|srun|aprun|jsrun|hydra_\w+)(?:\.\w+)*")
_MPI = re.compile(r"lib(?:mpi|mpich|mpi_abi|mpi_cray|mpifort|mpi_mpifh)\b[^ /]*\.so")


class Linked(msgspec.Struct, frozen=True, kw_only=True):
    """A program that a command names."""

    path: str
    is_setuid: bool
    is_script: bool
    is_static: bool
    #: What ldd says of its MPI library; empty without one.
    mpi: str


def words_of(words: Sequence[str]) -> list[str]:
    """Return the words of a command that may name programs: one word alone is a text for a shell."""
    if len(words) != 1:
        return list(words)
    try:
        return shlex.split(words[0].replace("\n", " ; "))
    except ValueError:
        return words[0].split()


def parse(said: str) -> list[Linked]:
    """Return what `SCRIPT` printed, without what only starts ranks."""
    return [
        one for one in map(_linked, said.split("program ")[1:]) if not _STARTER.fullmatch(_name(one.path))
    ]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _linked(block: str) -> Linked:
    path, *lines = block.splitlines()
    return Linked(
        path=path,
        is_setuid="setuid" in lines,
        is_script="script" in lines,
        is_static=any("not a dynamic executable" in line or "statically linked" in line for line in lines),
        mpi=next((line.strip() for line in lines if _MPI.search(line)), ""),
    )

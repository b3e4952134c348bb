"""The programs of ``native`` as tests want them: from wulf's own cache, those of a library made at once.

``python -m tests.native.programs`` makes them all before the tests begin. Whoever wants one that is not there makes it,
while others that want it wait.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from wulf.base.native import build, cmake

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCE = ROOT / "native"
#: Where `make test` builds with the sanitizers.
SANITIZED = ROOT / "build" / "sanitize"
#: What tests build of their own sources.
OWN = ROOT / "build" / "tests"
FAMILIES = ("openmpi", "mpich")
TIMEOUT_S = 600


@functools.cache
def library(family: str) -> build.MpiLibrary | None:
    """Return an MPI library of this machine, or None where it lacks the compiler or the launcher."""
    if shutil.which(f"mpicc.{family}") is None or shutil.which(f"mpirun.{family}") is None:
        return None
    return build.find_mpi(f"mpicc.{family}")[0]


def required(family: str) -> build.MpiLibrary:
    """Return an MPI library; skip the test where there is none."""
    found = library(family)
    if found is None:
        pytest.skip(f"{family} is not installed")
    return found


@functools.cache
def program(name: str, family: str | None = None) -> Path:
    """Return a program, of those that are for an MPI library where a family is given."""
    for tool in ("cmake", "ninja"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    mpi = None if family is None else required(family)
    return next(one for one in _all_built(mpi) if one.name == name)


@functools.cache
def sanitized(name: str) -> Path:
    """Return a program with both sanitizers; those with MPI are for the library that cmake finds by itself."""
    _build_sanitized("--target", name)
    return SANITIZED / name


def _build_sanitized(*targets: str) -> None:
    """Build with both sanitizers, one at a time: what a linker still writes cannot be run."""
    with cmake.only_one(SANITIZED):
        if not (SANITIZED / "build.ninja").is_file():
            strict = [f"-DCMAKE_{language}_FLAGS=-Werror" for language in ("C", "CXX")]
            _run(
                "cmake", "-S", str(SOURCE), "-B", str(SANITIZED), "-G", "Ninja", "-DWULF_SANITIZE=ON", *strict
            )
        _run("cmake", "--build", str(SANITIZED), *targets)


def sanitized_family() -> str:
    """Return which MPI library the programs with the sanitizers are for; skip the test where there is none."""
    if all(library(family) is None for family in FAMILIES):
        pytest.skip("no MPI library is installed")
    said = _run("ldd", str(sanitized("wulf-emulate")))
    found = build.family_of(said)
    assert found is not None, said
    return found


def made(directory: Path, target: str, *options: str) -> Path:
    """Build one program with options of its own in a directory of its own."""
    words = ["-G", "Ninja", "-DWULF_TESTS=OFF", *options]
    _run("cmake", "-S", str(SOURCE), "-B", str(directory), *words)
    _run("cmake", "--build", str(directory), "--target", target)
    return directory / target


def compiled(name: str, *command: str | Path) -> Path:
    """Return what a compiler makes of a source of these tests, made when that has changed; ``-o`` is added here."""
    digest = hashlib.sha256()
    for word in map(str, command):
        there = Path(word)
        digest.update(there.read_bytes() if there.is_absolute() and there.is_file() else word.encode())
        digest.update(b"\0")
    digest.update((_run(str(command[0]), "-v") + str(command[0])).encode())
    directory = OWN / digest.hexdigest()[:20]
    if not (directory / name).is_file():
        with cmake.only_one(directory):
            if not (directory / name).is_file():
                _run(*map(str, command), "-o", str(directory / f"{name}.new"))
                (directory / f"{name}.new").rename(directory / name)
    return directory / name


def in_two_directories(program: Path, place: Path, rank: int) -> Path:
    """Return a program that runs in `place`/there on one rank and in `place`/here on others, which are made.

    Not by two programs of one job: Open MPI 5.0.7's mpirun dies of that.
    """
    for name in ("here", "there"):
        (place / name).mkdir()
    wrapper = place / program.name
    wrapper.write_text(
        f"#!/bin/sh\ncd {place}/here\n"
        f'[ "$OMPI_COMM_WORLD_RANK$PMI_RANK" != {rank} ] || cd {place}/there\nexec {program} "$@"\n'
    )
    wrapper.chmod(0o755)
    return wrapper


def shim(name: str, family: str) -> Path:
    """Return a library of these tests that is loaded between a program and an MPI library."""
    return compiled(f"{name}.so", required(family).compiler, "-shared", "-fPIC", HERE / f"{name}.c")


def _all_built(mpi: build.MpiLibrary | None) -> list[Path]:
    """Return all programs for an MPI library or for none; warnings are refused, also those of an earlier build."""
    paths = [one.path for one in build.build_all(mpi)]
    said = (paths[0].parent / cmake.LOG).read_text(encoding="utf-8", errors="replace")
    warnings = [line for line in said.splitlines() if "warning:" in line]
    assert not warnings, "\n".join(warnings)
    return paths


def _run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


def _timed(family: str | None) -> str:
    begin = time.monotonic()
    _all_built(None if family is None else required(family))
    return f"{family or 'without MPI'}: {time.monotonic() - begin:.1f} s"


def main() -> None:
    if sys.argv[1:] == ["sanitized"]:
        _build_sanitized()
        return
    there = [family for family in FAMILIES if library(family) is not None]
    with ThreadPoolExecutor() as pool:
        for line in pool.map(_timed, (None, *there)):
            print(line)


if __name__ == "__main__":
    main()

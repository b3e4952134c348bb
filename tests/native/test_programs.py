"""Programs are built once, however many processes want them at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from wulf.base.native import build

#: Says what it was asked for, and takes its time.
CMAKE = """#!/bin/sh
if [ "$1" = -S ]; then echo configure >>{log}; sleep 0.2; exit; fi
place=$2
while [ "$1" != --target ]; do shift; done
shift
echo "$@" >>{log}
for target; do echo "$target" >"$place/$target"; done
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What cmake was asked for, which builds nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cmake = tmp_path / "cmake"
    cmake.write_text(CMAKE.format(log=tmp_path / "log"))
    cmake.chmod(0o755)
    monkeypatch.setattr(build, "_found", lambda name: str(cmake))
    return tmp_path / "log"


def test_who_comes_while_it_is_built_waits_and_takes_it(log: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: build.build_program("wulf-dgemm", None), range(4)))
    assert len({probe.path for probe in found}) == 1
    assert log.read_text().splitlines() == ["configure", "wulf-dgemm"]


def test_all_programs_of_a_library_are_built_at_once_but_those_that_are_there(log: Path) -> None:
    mpi = build.MpiLibrary(compiler="/usr/bin/mpicc", family="openmpi", version="some")
    build.build(mpi)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: build.build_all(mpi), range(4)):
            assert tuple(probe.path.name for probe in found) == build.WITH_MPI
    assert log.read_text().splitlines() == [
        "configure",
        "wulf-probe-mpi",
        "configure",
        " ".join(build.WITH_MPI[1:]),
    ]

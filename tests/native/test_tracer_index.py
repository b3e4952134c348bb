"""The tracer with the newest MPI libraries of the Python package index: Open MPI 5, MPICH 5."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.programs import made
from tests.native.tracer_calls import unknown
from tests.native.tracing import Tracer, check
from wulf.base.trace.layout import Unsound
from wulf.base.trace.summary import summary

pytestmark = [pytest.mark.mpi, pytest.mark.thorough]

INSTALL_S = 180


@pytest.fixture(scope="module", params=["openmpi", "mpich"])
def tracer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tracer:
    family = str(request.param)
    place = tmp_path_factory.mktemp(f"index-{family}")
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    pip = [str(place / "bin" / "pip"), "install", "--quiet", "--retries", "1", "--timeout", "10", family]
    try:
        done = subprocess.run(pip, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"the Python package index does not give {family} in time")
    if done.returncode != 0:
        pytest.skip(f"the Python package index does not give {family}: {done.stderr.strip()[-200:]}")
    compiler = str(place / "bin" / "mpicc")
    library = made(tmp_path_factory.mktemp(f"tracer-{family}"), "libwulf-tracer.so", f"-DWULF_MPI={compiler}")
    return Tracer(family, compiler, compiler.replace("mpicc", "mpirun"), library)


@pytest.fixture(scope="module")
def program(tracer: Tracer) -> Path:
    return tracer.compile("traced.c")


def test_every_call_of_the_library_is_known(tracer: Tracer, tmp_path: Path) -> None:
    assert not unknown(tracer.compiler, tracer.library, tmp_path)


def test_all_programs_are_recorded(tracer: Tracer, program: Path, tmp_path: Path) -> None:
    trace, expected = tracer.trace(tmp_path, program, "all")
    check(trace, expected)
    assert not trace.unsound
    version = {"openmpi": "Open MPI v5.", "mpich": "MPICH Version:"}[tracer.family]
    assert trace.streams[0].library.startswith(version)


def test_what_is_new_is_passed_through_and_counted(tracer: Tracer, program: Path, tmp_path: Path) -> None:
    trace, _ = tracer.trace(tmp_path, program, "repeated", ranks=2)
    assert trace.unsound == {Unsound.PASSED}
    calls = {one.call: one.count for one in summary(trace).calls}
    assert calls["MPI_Allreduce_init"] == 2 and calls["MPI_Wait"] == 2

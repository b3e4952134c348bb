"""The probes, built once per session: the plain ones, and the socket probe with the sanitizers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

SOURCE = Path(__file__).parents[2] / "native"


class MpiProbe(msgspec.Struct, frozen=True):
    """An MPI probe and how two ranks of it are started on this machine."""

    family: str
    path: Path
    launch: list[str]

    def argv(self, ranks: int, *arguments: str) -> list[str]:
        """Command line that runs it."""
        return [*self.launch, "-np", str(ranks), str(self.path), *arguments]


def build(directory: Path, target: str, *options: str) -> Path:
    """Build one program."""
    for tool in ("cmake", "ninja"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    configure = [
        "cmake",
        "-S",
        str(SOURCE),
        "-B",
        str(directory),
        "-G",
        "Ninja",
        "-DWULF_TESTS=OFF",
        *options,
    ]
    for argv in (configure, ["cmake", "--build", str(directory), "--target", target]):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warning:" not in done.stdout + done.stderr, done.stdout + done.stderr
    return directory / target


@pytest.fixture(scope="session")
def net_probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("net"), "wulf-probe-net")


@pytest.fixture(scope="session")
def sanitized_probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("sanitized"), "wulf-probe-net", "-DWULF_SANITIZE=ON")


@pytest.fixture(scope="session", params=["openmpi", "mpich"])
def mpi_probe(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MpiProbe:
    family = str(request.param)
    compiler, launcher = shutil.which(f"mpicc.{family}"), shutil.which(f"mpirun.{family}")
    if compiler is None or launcher is None:
        pytest.skip(f"{family} is not installed")
    path = build(tmp_path_factory.mktemp(family), "wulf-probe-mpi", f"-DWULF_MPI={compiler}")
    options = {
        # The ranks share CPUs with the rest of the tests.
        "openmpi": ["--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"],
        # Two names, so that Hydra keeps one daemon per rank, as between two nodes.
        "mpich": ["-disable-auto-cleanup", "-launcher", "fork", "-hosts", "localhost,127.0.0.2"],
    }
    return MpiProbe(family, path, [launcher, *options[family]])

"""The probes: the plain ones, those with MPI, and the socket probe with the sanitizers."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.native import programs
from tests.tiers import mostly_thorough

#: Where MPICH would only show once more what Open MPI has shown, it is for `make test-all`.
EACH_FAMILY = mostly_thorough(programs.FAMILIES, "openmpi")


class MpiProbe(msgspec.Struct, frozen=True):
    """An MPI probe and how two ranks of it are started on this machine."""

    family: str
    path: Path
    launch: list[str]

    def argv(self, ranks: int, *arguments: str) -> list[str]:
        """Command line that runs it."""
        return [*self.launch, "-np", str(ranks), str(self.path), *arguments]


# None of these is shared: what they give is made before, or by the first that asks. So tests of one file can run on
# all workers of pytest-xdist.


@pytest.fixture
def net_probe() -> Path:
    return programs.program("wulf-probe-net")


@pytest.fixture
def sanitized_probe() -> Path:
    return programs.sanitized("wulf-probe-net")


@pytest.fixture(params=EACH_FAMILY)
def mpi_probe(request: pytest.FixtureRequest) -> MpiProbe:
    return probe_of(request.param)


@pytest.fixture(params=programs.FAMILIES)
def either_mpi_probe(request: pytest.FixtureRequest) -> MpiProbe:
    """Each library's, also in `make test`: for what must not wait to be seen."""
    return probe_of(request.param)


def probe_of(family: str) -> MpiProbe:
    """Return the probe of an MPI library; skip the test where there is none."""
    options = {
        # The ranks share CPUs with the rest of the tests.
        "openmpi": ["--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"],
        # Two names, so that Hydra keeps one daemon per rank, as between two nodes.
        "mpich": ["-disable-auto-cleanup", "-launcher", "fork", "-hosts", "localhost,127.0.0.2"],
    }
    launcher = programs.required(family).mpirun
    return MpiProbe(family, programs.program("wulf-probe-mpi", family), [launcher, *options[family]])

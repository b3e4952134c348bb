"""The programs to measure with that come with this package.  Their sources are in ``native/apps``."""

from __future__ import annotations

import msgspec

from wulf.base.errors import UsageError
from wulf.base.text import choices


class Shipped(msgspec.Struct, frozen=True, kw_only=True):
    """A program that is built on each site, with the site's own MPI library where it needs one."""

    name: str
    #: The built program, and its target in ``native/CMakeLists.txt``.
    program: str
    #: One line for people.
    summary: str
    mpi: bool = True
    #: Regular expression with one group around the run time in its output [s].
    match: str = r"run_time_s (\S+)"

    @property
    def source(self) -> str:
        """Path of its source below the directory of all of them."""
        return f"apps/{self.name}.c"


_PROGRAMS = (
    Shipped(
        name="heat",
        program="wulf-heat",
        summary="the heat equation on a ring of strips, held against its analytic solution",
    ),
    Shipped(
        name="farm",
        program="wulf-farm",
        summary="a master gives tasks of drawn length to workers and checks what comes back",
    ),
    Shipped(
        name="search",
        program="wulf-search",
        summary="sequences sought in a database (Smith-Waterman in a task farm), held against known alignments",
    ),
    Shipped(
        name="start",
        program="wulf-start",
        summary="an MPI job that only starts and ends: its run time is the cost of starting one",
    ),
    Shipped(
        name="ep",
        program="wulf-ep",
        summary="pairs of Gaussian deviates: computing alone (by the specification of the NAS benchmarks' EP)",
    ),
    Shipped(
        name="is",
        program="wulf-is",
        summary="whole numbers ranked: all keys go to other ranks (by the specification of the NAS benchmarks' IS)",
    ),
    Shipped(
        name="cg",
        program="wulf-cg",
        summary="conjugate gradients: short messages and sums (by the specification of the NAS benchmarks' CG)",
    ),
    Shipped(
        name="dgemm",
        program="wulf-dgemm",
        summary="how fast a BLAS library multiplies matrices (see 'wulf bench blas')",
        mpi=False,
        match=r'"gflops":([0-9.]+)',
    ),
)
SHIPPED = {one.name: one for one in _PROGRAMS}


def find(name: str) -> Shipped:
    """Return the program of that name.

    Raises
    ------
    UsageError
        There is none.
    """
    if name not in SHIPPED:
        raise UsageError(f"there is no shipped program {name!r}{choices(name, SHIPPED)}")
    return SHIPPED[name]

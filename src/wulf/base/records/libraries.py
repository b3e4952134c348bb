"""BLAS libraries against each other."""

from __future__ import annotations

from typing import Literal

from wulf.base.records.base import Estimate, Record


class BlasLibrary(Record, frozen=True, kw_only=True):
    """A library that is installed on the nodes."""

    #: Of its directory, as Debian calls it; or of its file.
    name: str
    #: The same on all nodes.
    path: str
    #: Whether it is what programs get where nothing is said.
    default: bool = False
    #: What it says of itself; empty where it says nothing.
    version: str = ""


class BlasRank(Record, frozen=True, kw_only=True):
    """One library among those that were compared."""

    library: str
    #: Median over rounds of the rate [GFLOPS], of several nodes the geometric mean.
    rate: Estimate
    #: Its rate ÷ that of the fastest; null for the fastest.
    ratio: Estimate | None = None
    #: Of that ratio, two-sided; null for the fastest.
    p_value: float | None = None
    #: Against the fastest, as one of all comparisons between the libraries.
    verdict: Literal["fastest", "slower", "no difference", "no decision"]


class BlasComparison(Record, frozen=True, kw_only=True):
    """BLAS libraries compared by products of matrices (DGEMM)."""

    schema_version: int
    nodes: list[str]
    libraries: list[BlasLibrary]
    #: Library, or ``LIBRARY on NODE`` → why it was not compared.
    left_out: dict[str, str] = {}
    #: Rows and columns of the matrices.
    size: int
    #: That every library was allowed.
    threads: int
    #: Every library once, in an order drawn for each round.
    rounds: int
    #: A rate that is higher by less, as a share, does not matter.
    margin: float
    #: Fastest first.
    ranking: list[BlasRank]
    #: Node → the same there alone.
    by_node: dict[str, list[BlasRank]] = {}
    #: Library → CPUs that were busy with a product, as a median.
    busy_cpus: dict[str, float] = {}
    #: Library → reason → launches that failed for it; one that failed is no winner.
    failures: dict[str, dict[str, int]] = {}
    #: Whether Ctrl-C ended it; rounds that are whole were compared.
    interrupted: bool = False

    @property
    def best(self) -> list[str]:
        """Libraries that none is shown to be faster than: one where there is a winner."""
        return [one.library for one in self.ranking if one.verdict != "slower"]

"""What is asked: which libraries, on which nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from wulf.base.errors import UsageError
from wulf.base.request import Option
from wulf.node.fleet.fields import ClusterField, MarginField, NodesField, SeedField


@dataclass(frozen=True)
class BlasRequest:
    """Find the fastest BLAS library by products of matrices (DGEMM), with intervals.

    Libraries are found on the nodes and loaded from where they are: the system's default is not changed. All get
    the same number of threads; every product is checked. In each round every library has a launch, in random order;
    the fastest is compared with each of the others round by round.
    """

    cluster: ClusterField = None
    _: KW_ONLY
    nodes: NodesField = None
    libraries: Annotated[
        Sequence[str] | None,
        Option(
            "Libraries: 'all' that are found, or some by their paths. Default: all.",
            metavar="all|PATH,…",
            separator=",",
        ),
    ] = None
    threads: Annotated[
        int | None,
        Option("Threads for every library. Default: the number of CPUs of the smallest node.", least=1),
    ] = None
    size: Annotated[int, Option("Rows and columns of the matrices.", least=64, most=20000)] = 1000
    rounds: Annotated[
        int | None,
        Option(
            "Launches of each library. Default: as many as a proof needs.",
            names=("--launches", "--rounds"),
            least=1,
        ),
    ] = None
    margin: MarginField = 0.02
    seed: SeedField = None

    def __post_init__(self) -> None:
        """Refuse libraries that cannot be compared.

        Raises
        ------
        UsageError
            There are too few of them, or one is no path.
        """
        paths = self.paths
        if paths is not None and (len(paths) < 2 or not all(path.startswith("/") for path in paths)):
            raise UsageError(
                f"--libraries {','.join(paths)!r}: write 'all', or two absolute paths or more, separated by commas"
            )

    @property
    def paths(self) -> Sequence[str] | None:
        """Paths of the libraries; None for all that are found."""
        return None if self.libraries is None or list(self.libraries) == ["all"] else self.libraries

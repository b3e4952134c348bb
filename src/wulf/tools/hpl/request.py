"""What is asked: HPL on which nodes, and for how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from wulf.base.errors import UsageError
from wulf.base.request import RUNS, SECONDS, Option, PathField, RunsField
from wulf.node.fleet.fields import ClusterField, NodesField, SeedField

BUDGET_S = 1200.0


@dataclass(frozen=True)
class HplRequest:
    """Run High-Performance Linpack with the fastest settings found here, as large as time and memory allow.

    Small problems show how long a problem takes. Then process grid, threads, block size, broadcast, depth and row
    exchange are searched: first with small problems, the best of them with larger ones; launches that are much
    slower than the best are cut short, earlier where HPL reports its progress. A model of these times predicts the
    large problem, which is as large as the rest of the time and the memory allow. The chosen setting is launched
    afresh, several times: the figure is the median of these launches with its interval, not the best one. A result
    that fails HPL's own check counts as failed.

    The percentage of the theoretical peak is given for CPUs that wulf knows, with its derivation; --peak overrides
    it. --price and --watts give the price of a GFLOPS and MFLOPS/W.

    Debian has HPL within its package hpcc, which runs all its other tests at every launch, so that fewer settings
    are tried. Exit code 3 when time ran out before all launches were made, or a launch of the chosen setting
    failed.
    """

    cluster: ClusterField = None
    path: PathField = None
    _: KW_ONLY
    nodes: NodesField = None
    program: Annotated[
        str | None, Option("HPL on the nodes: xhpl or hpcc. Default: xhpl, or else hpcc.", metavar="PATH")
    ] = None
    budget_s: Annotated[
        float | None,
        Option("Total time. Default: 20m.", names=("--budget", "--time"), unit=SECONDS, goes_on=True),
    ] = None
    launches: Annotated[
        int,
        Option(
            "Fresh launches of the chosen setting; an interval needs 6.",
            names=("--launches", "--repeat"),
            least=1,
        ),
    ] = 6
    n: Annotated[
        int | None,
        Option(
            "Order of the matrix: with --nb and --grid exactly this is run, without a search.",
            names=("--n",),
            least=1,
        ),
    ] = None
    nb: Annotated[int | None, Option("Block size, with --n and --grid.", names=("--nb",), least=1)] = None
    grid: Annotated[str, Option("Process grid, with --n and --nb: 15x16.", metavar="PxQ")] = ""
    dat: Annotated[
        Path | str | None,
        Option("Run all problems of this HPL.dat, without a search.", names=("--dat",), metavar="FILE"),
    ] = None
    price: Annotated[float | None, Option("Price of the whole machine, in any currency.", least=0)] = None
    prices: Annotated[
        Sequence[str] | None,
        Option("Several prices by names: then=2490,today=2063.", separator=",", metavar="NAME=PRICE,…"),
    ] = None
    measure_power: Annotated[
        bool,
        Option(
            "Read the nodes' power every 10 s, where they measure it: CPUs by RAPL, whole nodes by IPMI (ipmitool)."
        ),
    ] = True
    watts: Annotated[float | None, Option("Power of the whole machine under load [W].", least=0)] = None
    blas_library: Annotated[
        str | None,
        Option(
            "BLAS library, by its name in 'wulf bench blas': 'all' compares, with HPL itself, those that the program "
            "is proven to use, and continues with the fastest. Default: whichever the program finds.",
            names=("--blas",),
            metavar="all|NAME|PATH",
        ),
    ] = None
    peak_gflops: Annotated[
        float | None,
        Option(
            "Theoretical peak of the nodes [GFLOPS], where it is unknown or wrong.",
            names=("--peak",),
            least=0,
        ),
    ] = None
    mpi: Annotated[
        str | None,
        Option("MPI library that starts the job: 'openmpi', 'mpich' or a compiler. Default: that of HPL."),
    ] = None
    seed: SeedField = None
    runs: RunsField = RUNS

    def __post_init__(self) -> None:
        """Refuse what costs, takes or makes nothing.

        Raises
        ------
        UsageError
            Names the option.
        """
        for name, value in (("price", self.price), ("watts", self.watts), ("peak", self.peak_gflops)):
            if value == 0:
                raise UsageError(f"--{name} 0: it must be more than 0")
        given = {"--n": self.n, "--nb": self.nb, "--grid": self.grid or None}
        lacking = [name for name, value in given.items() if value is None]
        if self.dat is not None and len(lacking) < len(given):
            raise UsageError("--dat says what is run: it takes no --n, --nb or --grid")
        if 0 < len(lacking) < len(given):
            raise UsageError(
                f"a problem without a search takes --n, --nb and --grid: {', '.join(lacking)} too"
            )
        if (self.dat is not None or not lacking) and self.blas_library == "all":
            raise UsageError("--blas all compares libraries in a search; name one where nothing is searched")
        self.named_prices()

    def named_prices(self) -> dict[str, float]:
        """Return the prices by their names.

        Raises
        ------
        UsageError
            One is not ``NAME=PRICE``.
        """
        found: dict[str, float] = {}
        for text in self.prices or ():
            name, _, price = text.partition("=")
            try:
                value = float(price)
            except ValueError:
                value = 0.0
            if not name.strip() or name.strip() in found or not 0 < value < float("inf"):
                raise UsageError(f"--prices {text!r}: NAME=PRICE, each name once, more than 0: today=2063")
            found[name.strip()] = value
        return found

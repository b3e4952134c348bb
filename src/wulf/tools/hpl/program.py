"""HPL as an experiment: which settings there are, its input files, and what a launch came to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal

import msgspec

from wulf.base import hpl_output
from wulf.base.errors import UsageError
from wulf.tools.hpl.record import HplSetting

Kind = Literal["xhpl", "hpcc"]
#: Scaled residuals that are right (HPL's own default).
THRESHOLD = 16.0
#: Share of the memory that the matrix may take: the rest is for the system and the panels (HPL's FAQ).
MEMORY_SHARE = 0.8
_WORD_BYTES = 8
BLOCKS = (32, 64, 96, 128, 192, 256, 384)
BROADCASTS = (0, 1, 2, 3, 4, 5)
DEPTHS = (0, 1)
SWAPS = (0, 1, 2)
#: Columns for each row of the flattest grid that is tried, if there is a squarer one (HPL's FAQ: 1:1 to 1:3, on a plain
#: Ethernet flat ones, too).
FLATTEST = 8
#: Variables by which BLAS libraries take the number of their threads.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "MKL_NUM_THREADS")
#: Files that the programs read and write where they are started.
INPUTS: Mapping[Kind, str] = {"xhpl": "HPL.dat", "hpcc": "hpccinf.txt"}
HPCC_OUTPUT = "hpccoutf.txt"

HOW_TO_GET = (
    "no xhpl and no hpcc on the nodes. Debian and Ubuntu have HPL within 'hpcc' (apt-get install hpcc), which makes "
    "all its tests at every launch. HPL alone: 'spack install hpl', or build it from netlib.org/benchmark/hpl "
    "(apt-get install libopenblas-dev libopenmpi-dev; ./configure; make), or from the directory hpl of HPCC's source; "
    "with -DHPL_PROGRESS_REPORT bad settings are cut short. Then name it with --program"
)


class Layout(msgspec.Struct, frozen=True):
    """A process grid and the threads of each rank."""

    p: int
    q: int
    threads: int


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a launch came to."""

    status: Literal["ok", "failed"]
    reason: str = ""
    row: hpl_output.Row | None = None


def kind_of(program: str) -> Kind:
    """Return what a program is, by its name."""
    return "hpcc" if "hpcc" in PurePosixPath(program).name else "xhpl"


def layouts(nodes: int, cpus: int) -> list[Layout]:
    """Return all ways to use the CPUs: ranks × threads is what there is, every rank of the same size.

    Parameters
    ----------
    nodes
        Their number.
    cpus
        Of each node.
    """
    found = []
    for threads in (count for count in range(1, cpus + 1) if cpus % count == 0):
        ranks = nodes * cpus // threads
        found += [Layout(p, q, threads) for p, q in _grids(ranks)]
    return found


def _grids(ranks: int) -> Iterator[tuple[int, int]]:
    """Yield rows and columns; no fewer columns than rows, but for two ranks, whose grids both are flat."""
    for p in range(1, math.isqrt(ranks) + 1):
        q, rest = divmod(ranks, p)
        if rest == 0 and (q <= FLATTEST * p or p == _squarest(ranks)):
            yield p, q
    if ranks == 2:
        yield 2, 1


def _squarest(ranks: int) -> int:
    return next(p for p in range(math.isqrt(ranks), 0, -1) if ranks % p == 0)


def space(nodes: int, cpus: int) -> dict[str, tuple[Layout | int, ...]]:
    """Return the values of every parameter that is searched; a setting has one of each."""
    return {
        "layout": tuple(layouts(nodes, cpus)),
        "nb": BLOCKS,
        "bcast": BROADCASTS,
        "depth": DEPTHS,
        "swap": SWAPS,
    }


def setting(values: Mapping[str, Layout | int]) -> HplSetting:
    """Return the setting of one value for every parameter of `space`."""
    layout = values["layout"]
    assert isinstance(layout, Layout)
    others = {name: value for name, value in values.items() if isinstance(value, int)}
    return HplSetting(p=layout.p, q=layout.q, threads=layout.threads, **others)


def largest_order(memory_bytes: float, nb: int = max(BLOCKS)) -> int:
    """Return the largest order, in whole blocks, whose matrix fits into `MEMORY_SHARE` of a memory [B].

    Raises
    ------
    UsageError
        Not even one block fits.
    """
    n = math.isqrt(int(MEMORY_SHARE * memory_bytes / _WORD_BYTES)) // nb * nb
    if n < nb:
        raise UsageError(f"{memory_bytes / 2**20:.0f} MiB of memory are too little for a block of {nb}")
    return n


def environment(chosen: HplSetting) -> dict[str, str]:
    """Return what tells the BLAS library its threads."""
    return dict.fromkeys(THREAD_VARIABLES, str(chosen.threads))


def hpl_dat(orders: Sequence[int], chosen: HplSetting) -> str:
    """Return HPL.dat: every field of it, with one value each but for the orders."""
    lists = [
        ("# of problems sizes (N)", "Ns", orders),
        ("# of NBs", "NBs", [chosen.nb]),
    ]
    lines = [
        ("HPLinpack benchmark input file", ""),
        ("written by wulf", ""),
        ("HPL.out", "output file name (if any)"),
        ("6", "device out (6=stdout,7=stderr,file)"),
        *(line for entry in lists for line in _list(*entry)),
        (chosen.pmap, "PMAP process mapping (0=Row-,1=Column-major)"),
        ("1", "# of process grids (P x Q)"),
        (chosen.p, "Ps"),
        (chosen.q, "Qs"),
        (THRESHOLD, "threshold"),
        *_list("# of panel fact", "PFACTs (0=left, 1=Crout, 2=Right)", [chosen.pfact]),
        *_list("# of recursive stopping criterium", "NBMINs (>= 1)", [chosen.nbmin]),
        *_list("# of panels in recursion", "NDIVs", [chosen.ndiv]),
        *_list("# of recursive panel fact.", "RFACTs (0=left, 1=Crout, 2=Right)", [chosen.rfact]),
        *_list("# of broadcast", "BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)", [chosen.bcast]),
        *_list("# of lookahead depth", "DEPTHs (>=0)", [chosen.depth]),
        (chosen.swap, "SWAP (0=bin-exch,1=long,2=mix)"),
        (chosen.swap_threshold, "swapping threshold"),
        (chosen.l1, "L1 in (0=transposed,1=no-transposed) form"),
        (chosen.u, "U  in (0=transposed,1=no-transposed) form"),
        (chosen.equil, "Equilibration (0=no,1=yes)"),
        (chosen.align, "memory alignment in double (> 0)"),
    ]
    return "".join(f"{value!s:<12} {meaning}".rstrip() + "\n" for value, meaning in lines)


def _list(count: str, meaning: str, values: Sequence[int]) -> list[tuple[object, str]]:
    return [(len(values), count), (" ".join(map(str, values)), meaning)]


def hpcc_input(order: int, chosen: HplSetting) -> str:
    """Return hpccinf.txt: HPL.dat, and the least that its other tests can be told (PTRANS: no further sizes)."""
    return (
        hpl_dat([order], chosen)
        + "##### This line (no. 32) is ignored (it serves as a separator). ######\n"
        + "0                               Number of additional problem sizes for PTRANS\n"
        + "1200                            values of N\n"
        + "0                               number of additional blocking sizes for PTRANS\n"
        + "40                              values of NB\n"
    )


def outcome(text: str, n: int, chosen: HplSetting) -> Outcome:
    """Judge a launch by all that it printed: only a result that is right, and of what was asked for, counts."""
    output = hpl_output.parse(text)
    if output.errors:
        return Outcome(status="failed", reason=f"HPL: {output.errors[0]}")
    if not output.rows:
        return Outcome(status="failed", reason="HPL printed no result")
    row = output.rows[-1]
    if not row.residuals:
        return Outcome(status="failed", reason="HPL did not check its result")
    if not row.passed:
        worst = max(row.residuals, key=lambda residual: residual.value)
        return Outcome(
            status="failed", reason=f"the result is wrong: residual {worst.value:g}, allowed {THRESHOLD:g}"
        )
    if wrong := _not_asked(row, n, chosen):
        return Outcome(status="failed", reason=f"HPL did not do what it was asked: {wrong}")
    return Outcome(status="ok", row=row)


def _not_asked(row: hpl_output.Row, n: int, chosen: HplSetting) -> str:
    """Return what of a result is not as it was asked for; empty when all is."""
    found = {"N": row.n, "NB": row.nb, "P": row.p, "Q": row.q}
    asked = {"N": n, "NB": chosen.nb, "P": chosen.p, "Q": chosen.q}
    said = hpl_output.variant(row.variant)
    if said is not None:
        for name in said.__struct_fields__:
            found[name], asked[name] = getattr(said, name), getattr(chosen, name)
    return ", ".join(
        f"{name} {found[name]} for {asked[name]}" for name in asked if found[name] != asked[name]
    )

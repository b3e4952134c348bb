"""HPC Challenge: its input, how it is run in a directory of its own, and how large its problem may be."""

from __future__ import annotations

import math

from wulf.tools.hpcc.request import LARGEST, SMALLEST

#: Columns of a block.
BLOCK = 128
#: Of the first scout that says how long the tests take.
SCOUT_SIZE = 1000
#: Of the time of a run, what the second scout takes by the word of the first: its data is less in the caches.
SCOUT_SHARE = 0.2
#: Part of the memory that the matrix may take: the system and the MPI library need some, too.
MEMORY_SHARE = 0.5
MISSING = "install it on every node (Debian, Ubuntu: apt install hpcc), or give its path with --program"
#: Makes a directory for each node, also where their home directories are one; the input is on standard input.
PREPARE = """
cd && mkdir -p "$1/$(uname -n)" && cd "$1/$(uname -n)" && rm -f hpccoutf.txt && cat >hpccinf.txt
"""
#: Runs there.
RUN = 'cd && cd "$1/$(uname -n)" && exec "$2"'
#: Prints what came of it.
COLLECT = 'cd && cat "$1/$(uname -n)/hpccoutf.txt"'
#: Removes all of it.
REMOVE = 'cd && rm -rf "$1"'
#: Prints the path of the program, which is run in another directory, and what it is linked with.
LOOK = """
program=$(command -v "$1") || { echo "there is no $1" >&2; exit 1; }
case $program in /*) ;; *) program=$PWD/$program ;; esac
printf '%s\n' "$program"
ldd "$program" 2>/dev/null || echo "a script, or linked statically"
"""

_INPUT = """HPLinpack benchmark input file
written by wulf
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{size}       Ns
1            # of NBs
{block}      NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
{rows}       Ps
{columns}    Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
"""


def input_file(size: int, ranks: int) -> str:
    """Return ``hpccinf.txt``: N, and as square a grid as so many ranks make."""
    rows, columns = grid(ranks)
    return _INPUT.format(size=size, block=min(BLOCK, size), rows=rows, columns=columns)


def grid(ranks: int) -> tuple[int, int]:
    """Return P ≤ Q with P × Q ranks, as near to each other as can be."""
    rows = next(p for p in range(math.isqrt(ranks), 0, -1) if ranks % p == 0)
    return rows, ranks // rows


def size_for(seconds: float, scout: tuple[int, float, float]) -> int:
    """Return the N whose run takes so long, from that of a scout.

    The time of HPL grows with the cube of N, that of the other tests with its square, as their data does. That holds
    for a scout whose data is no more in the caches than that of the run.

    Parameters
    ----------
    seconds
        Of one run.
    scout
        N of the scout, the time of the whole of it, and that of its HPL [s].
    """
    size, whole_s, hpl_s = scout
    low, high = SMALLEST, LARGEST
    while high - low > 1:
        middle = (low + high) // 2
        ratio = middle / size
        needed = hpl_s * ratio**3 + max(whole_s - hpl_s, 0.0) * ratio**2
        low, high = (middle, high) if needed <= seconds else (low, middle)
    return low


def fitting(size: int, memory_bytes: float) -> int:
    """Return N, or the largest whose matrix has room in the memory of all nodes; of two digits, as people write it."""
    largest = min(size, math.isqrt(int(memory_bytes * MEMORY_SHARE / 8)))
    step = int(10 ** max(len(str(largest)) - 2, 0))
    return largest // step * step

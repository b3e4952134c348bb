"""BLAS libraries: which are installed, what makes a program use one of them, and what proves that it does.

On Debian all of them are installed beside each other, each in a directory with its own ``libblas.so.3``, and the
alternatives system makes one the default. A directory in LD_LIBRARY_PATH comes before the default, for every library in
it: so what a ``libblas.so.3`` itself is linked with (``libopenblas.so.0``, ``libblis.so.4``), which has alternatives of
its own, is taken from the same directory.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

import msgspec

from wulf.base.errors import ProbeError
from wulf.base.records.libraries import BlasLibrary
from wulf.base.text import printable

#: What programs are linked with.
LINKED = "libblas.so.3"
#: Said where there is nothing to compare.
MORE = "apt install libopenblas0-pthread libblis4-pthread libatlas3-base libblas3"
#: What Debian calls them.
USUAL = (
    "atlas",
    "blas",
    "blis-openmp",
    "blis-pthread",
    "blis-serial",
    "openblas-openmp",
    "openblas-pthread",
    "openblas-serial",
)
#: Every library takes its number of threads from one of these; a serial one, and ATLAS, from none.
_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "GOTO_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "MKL_NUM_THREADS",
)
#: Prints 'default', a tab and the file that programs get; then for each library its file and its path.
FIND = r"""
PATH=$PATH:/sbin:/usr/sbin
tab=$(printf '\t')
default=$(ldconfig -p 2>/dev/null | sed -n 's/^[[:space:]]*libblas\.so\.3 .*=> //p' | head -n 1)
[ -z "$default" ] || printf 'default%s%s\n' "$tab" "$(readlink -f -- "$default")"
for path in /usr/lib/*/*/libblas.so.3 /usr/lib64/*/libblas.so.3 /usr/lib/*/libblas.so.3 /usr/lib64/libblas.so.3; do
    [ -e "$path" ] || continue
    printf '%s%s%s\n' "$(readlink -f -- "$path")" "$tab" "$path"
done
"""
#: Prints which file every symbol of a program is bound to, without starting it.
BINDINGS = """
program=$(command -v "$1") || { echo "there is no program $1" >&2; exit 1; }
LD_DEBUG=bindings ldd -r "$program" 2>&1
"""
_BOUND = re.compile(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: normal symbol [`'](?:cblas_dgemm|dgemm_)'")


def find(text: str) -> list[BlasLibrary]:
    """Return what `FIND` printed on a node: a library that several paths lead to is there once."""
    default = ""
    found: dict[str, str] = {}
    for line in text.splitlines():
        first, tab, second = line.partition("\t")
        if first == "default":
            default = second
        elif tab:
            found.setdefault(first, second)
    return named([(path, real == default) for real, path in found.items()])


def named(paths: Iterable[tuple[str, bool]]) -> list[BlasLibrary]:
    """Name libraries by the directory of their own, or by their file where that says nothing.

    Parameters
    ----------
    paths
        Path, and whether it is the default.
    """
    libraries: dict[str, BlasLibrary] = {}
    for path, default in paths:
        name = _name(path)
        name = path if name in libraries else name
        libraries[name] = BlasLibrary(name=name, path=path, default=default)
    return list(libraries.values())


def _name(path: str) -> str:
    place = PurePosixPath(path)
    own = place.name == LINKED and not re.fullmatch(r"lib(64)?|.*-linux-gnu.*", place.parent.name)
    return place.parent.name if own else place.name


def environment(
    path: str, threads: int | None = None, before: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the variables with which a program uses a library, whatever the system's default is.

    Parameters
    ----------
    path
        Of the library. One that is not called ``libblas.so.3`` is loaded before all others (LD_PRELOAD).
    threads
        For all libraries alike; None leaves it to them.
    before
        What the program's LD_LIBRARY_PATH and LD_PRELOAD are without this; they stay, behind it.

    Notes
    -----
    A program with an old RPATH (not RUNPATH) in it still takes the library from there: `bound` shows it.
    """
    old = before or {}
    place = PurePosixPath(path)
    variables = {"LD_LIBRARY_PATH": _joined(str(place.parent), old.get("LD_LIBRARY_PATH"))}
    if place.name != LINKED:
        variables["LD_PRELOAD"] = _joined(path, old.get("LD_PRELOAD"))
    return variables | (thread_variables(threads) if threads is not None else {})


def thread_variables(threads: int) -> dict[str, str]:
    """Return the variables from which any of the libraries takes its number of threads."""
    return dict.fromkeys(_THREADS, str(threads))


def _joined(first: str, rest: str | None) -> str:
    return f"{first}:{rest}" if rest else first


def bound(text: str) -> list[str]:
    """Return the files that a program's matrix products are bound to, from what `BINDINGS` printed.

    None where it calls no BLAS library that can be exchanged: a static one is part of it.
    """
    return list(dict.fromkeys(found[2] for found in _BOUND.finditer(text)))


class _Library(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="library"):
    path: str
    version: str


class _Product(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="product"):
    time_s: float
    gflops: float
    busy_cpus: float
    residual: float


_LINE = msgspec.json.Decoder(_Library | _Product)


class Products(msgspec.Struct, frozen=True, kw_only=True):
    """What one launch of ``wulf-dgemm`` measured; each of its products passed its check."""

    #: File that the product came from.
    file: str
    #: What the library says of itself; empty where it says nothing.
    version: str
    #: Of each product.
    gflops: list[float]
    #: Median number of CPUs that were busy with a product.
    busy_cpus: float

    @property
    def middle(self) -> float:
        """Return the median rate [GFLOPS]."""
        return statistics.median(self.gflops)


def products(text: bytes) -> Products:
    """Read what ``wulf-dgemm`` printed.

    Raises
    ------
    ProbeError
        A line is not as it should be, or there is none.
    """
    library: _Library | None = None
    found: list[_Product] = []
    for line in text.splitlines():
        try:
            said = _LINE.decode(line)
        except msgspec.DecodeError as error:
            raise ProbeError(f"wulf-dgemm printed {printable(line, 80)!r}: {error}") from error
        if isinstance(said, _Library):
            library = said
        else:
            found.append(said)
    if library is None or not found:
        raise ProbeError("wulf-dgemm printed no product")
    return Products(
        file=library.path,
        version=printable(library.version, 200).strip(),
        gflops=[product.gflops for product in found],
        busy_cpus=statistics.median(product.busy_cpus for product in found),
    )

"""What an installed library says of itself: its algorithms, and the files of rules that it reads.  Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, Literal

import msgspec

from wulf.base.errors import WulfError
from wulf.tools.collectives.rules import mpich_tree
from wulf.tools.collectives.rules.rules import Counted

#: ``cvars``: no file, one variable for each collective, whatever the size.
Format = Literal["classic-1", "classic-2", "json-3", "mpich-tree", "cvars"]
_PARAMETER = re.compile(r"mca:coll:[^:]*:param:([^:]+):value:(.*)")
_ALGORITHM = re.compile(r"mca:coll:tuned:param:coll_tuned_([a-z_]+)_algorithm:enumerator:value:([0-9]+):(.+)")
_VERSION = re.compile(r"([0-9]+)\.([0-9]+)(?:\.([0-9]+))?")
#: First versions of Open MPI that read the other formats.
_CLASSIC_2, _JSON = (5, 0, 7), (6, 0, 0)
#: First version of Open MPI that counts what gather and scatter move, and of allgatherv one message (pull requests
#: 8048 and 8209; before, of a gather the size of its type was compared, of an allgatherv the sum).
_COUNTS = (4, 1, 0)
#: What the rules of that version compare (coll_tuned_decision_dynamic.c); of a scan the size of its type alone.
_COUNTED: dict[str, Counted] = {
    **dict.fromkeys(
        ("allgather", "alltoall", "gather", "reduce_scatter", "reduce_scatter_block", "scatter"), "all ranks"
    ),
    **dict.fromkeys(("alltoallv", "barrier", "exscan", "scan"), "no size"),
}
_COUNTED_BEFORE: dict[str, Counted] = {
    **_COUNTED,
    **dict.fromkeys(("allgatherv", "gather", "scatter"), "no size"),
}
#: What a parameter of the library is called that says the children of a node.
_FANOUT = "coll_tuned_{collective}_algorithm_chain_fanout"
_SEGMENTS = "coll_tuned_{collective}_algorithm_segmentsize"
_SELECTION = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"


class LibraryError(WulfError):
    """A library that does not say what it must."""


class Algorithm(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One way to do a collective."""

    #: As the library counts them; of MPICH, which has names only, their place in alphabetical order, from 1.
    number: int
    name: str


class Library(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked from an installed library."""

    family: Literal["openmpi", "mpich"]
    #: As it calls itself.
    version: str
    format: Format
    #: Collective → what there is for it, without the library's own decision.
    algorithms: dict[str, tuple[Algorithm, ...]]
    #: Collectives whose messages can be sent in parts.
    segmented: frozenset[str] = frozenset()
    #: Collective → children of a node, which a rule must say and a forced algorithm has from a parameter.
    fanout: dict[str, int] = {}
    #: Collective → what the sizes of its rules are compared with; of those that are missing one message.
    counted: dict[str, Counted] = {}
    #: Of MPICH: key of each algorithm in a tree, and the whole tree; None where the library has none inside.
    keys: dict[str, dict[int, str]] = {}
    tree: dict[str, Any] | None = None
    #: Component → priority, of those that stand before the one that reads the rules; the collectives that they take.
    in_the_way: dict[str, int] = {}
    taken: frozenset[str] = frozenset()
    #: A file of rules that jobs read already; it wins over an algorithm that is forced.
    rules_file: str = ""

    def tells_sizes(self, collective: str) -> bool:
        """Whether what is decided for a collective can be another at another size."""
        return self.format != "cvars" and self.counted.get(collective) != "no size"

    def forced(self, collective: str, algorithm: int, segment_bytes: int) -> dict[str, str]:
        """Return the environment in which a job takes one algorithm for all messages of a collective."""
        if self.family == "openmpi":
            name = f"OMPI_MCA_coll_tuned_{collective}_algorithm"
            env = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1", name: str(algorithm)}
            # Said also where it is 0: the site's own environment may say another.
            return env | ({f"{name}_segmentsize": str(segment_bytes)} if collective in self.segmented else {})
        named = {one.number: one.name for one in self.algorithms[collective]}[algorithm]
        return {
            f"MPIR_CVAR_{collective.upper()}_INTRA_ALGORITHM": named,
            "MPIR_CVAR_COLLECTIVE_FALLBACK": "error",
        }

    def uses(self, path: str) -> dict[str, str]:
        """Return the environment in which a job reads a file of rules."""
        if self.family == "mpich":
            return {_SELECTION: path}
        return {
            "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
            "OMPI_MCA_coll_tuned_dynamic_rules_filename": path,
        }


def openmpi(version: str, listing: str) -> Library:
    """Return what ``ompi_info --param coll all --level 9 --parsable`` says.

    Raises
    ------
    LibraryError
        It says nothing of coll/tuned.
    """
    numbers = _VERSION.search(version)
    if numbers is None:
        raise LibraryError(f"Open MPI says no version: {version!r}")
    known = (int(numbers[1]), int(numbers[2]), int(numbers[3] or 0))
    found: dict[str, list[Algorithm]] = {}
    parameters: dict[str, str] = {}
    for line in listing.splitlines():
        if match := _ALGORITHM.fullmatch(line):
            if match[2] != "0":
                found.setdefault(match[1], []).append(Algorithm(number=int(match[2]), name=match[3]))
        elif match := _PARAMETER.fullmatch(line):
            parameters[match[1]] = match[2].strip('"')
    if not found:
        raise LibraryError("ompi_info names no algorithms of coll/tuned: is the component there?")
    return Library(
        family="openmpi",
        version=version,
        format="json-3" if known >= _JSON else "classic-2" if known >= _CLASSIC_2 else "classic-1",
        algorithms={collective: tuple(sorted(ways)) for collective, ways in found.items()},
        segmented=frozenset(c for c in found if _SEGMENTS.format(collective=c) in parameters),
        fanout={c: _number(parameters.get(_FANOUT.format(collective=c), "")) for c in found},
        counted=_COUNTED if known >= _COUNTS else _COUNTED_BEFORE,
        in_the_way=_in_the_way(parameters),
        taken=_taken(parameters, found),
        rules_file=parameters.get("coll_tuned_dynamic_rules_filename", ""),
    )


def mpich(version: str, texts: Sequence[str]) -> Library:
    """Return what the texts inside the library say.

    Parameters
    ----------
    texts
        Those that begin as the key of an algorithm or as a tree.

    Raises
    ------
    LibraryError
        There is no algorithm among them.
    """
    keys = mpich_tree.algorithms(list(texts))
    if not keys:
        raise LibraryError(f"{version}: no algorithms are named inside the library")
    algorithms = {
        collective: tuple(Algorithm(number=n, name=name) for n, name in enumerate(sorted(ways), 1))
        for collective, ways in keys.items()
    }
    tree = mpich_tree.whole_tree(list(texts))
    return Library(
        family="mpich",
        version=version,
        format="cvars" if tree is None else "mpich-tree",
        algorithms=algorithms,
        counted={collective: mpich_tree.counted(collective) for collective in algorithms},
        keys={c: {one.number: keys[c][one.name] for one in ways} for c, ways in algorithms.items()},
        tree=tree,
    )


def _in_the_way(parameters: dict[str, str]) -> dict[str, int]:
    """Return the components that take collectives before coll/tuned: han, since Open MPI 5, between nodes."""
    own = _number(parameters.get("coll_tuned_priority", ""))
    priority = _number(parameters.get("coll_han_priority", ""))
    return {"han": priority} if priority > own else {}


def _taken(parameters: Collection[str], collectives: Collection[str]) -> frozenset[str]:
    """Return the collectives that han has parameters for; all, where it says none of any."""
    own = frozenset(c for c in collectives if any(name.startswith(f"coll_han_{c}_") for name in parameters))
    return own or frozenset(collectives)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0

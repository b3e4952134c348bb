"""Node names and node sets: the only way from text to names that are safe to hand to other programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ClusterShell.NodeSet import NodeSet, NodeSetException
from ClusterShell.NodeUtils import GroupResolver, GroupResolverError, GroupSource

from wulf.base.errors import InventoryError
from wulf.base.nodeset import fold
from wulf.base.text import nearest, printable

#: A name can never be an option (no leading ``-``), a path, or mean anything to a shell.
_NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_GROUP = re.compile(r"@([^,!&^@\s]*)")
_RANGE = re.compile(r"(\d+)-(\d+)(?:/(\d+))?")
_BRACKET = re.compile(r"\[([^\]]*)\]")
_NUMBER = re.compile(r"[0-9]+")
#: One member of a list: a name, one with ranges, or a group.
_PART = re.compile(r"(?:[A-Za-z0-9._-]|\[[0-9,/-]*\])+|@[A-Za-z0-9._-]+")
_MAX_DIGITS = 9
#: Groups within groups.
_MAX_DEPTH = 20
#: So many numbers in one bracket are quick for ClusterShell.
_FEW = 100
#: Commas and other operators of node sets that are not within brackets.
_OUTSIDE_BRACKETS = re.compile(r"[,!&^](?![^\[]*\])")

#: More nodes than any commodity cluster has; a larger set is a typing error that would fill the memory.
MAX_NODES = 100_000
#: Longest node set with operators [characters]; ClusterShell takes a second for it at worst.
MAX_EXPRESSION = 4000


def is_node_name(name: str) -> bool:
    """Whether `name` is letters, digits, ``.``, ``_`` and ``-``, and starts with a letter or a digit."""
    return _NODE_NAME.fullmatch(name) is not None


def check_node_name(name: str) -> str:
    """Return `name`.

    Raises
    ------
    InventoryError
        When it could be taken for an option, a path or a piece of a command.
    """
    if not is_node_name(name):
        raise InventoryError(
            f"{printable(name, 80)!r} is not a node name: allowed are letters, digits, '.', '_' and '-', "
            "starting with a letter or a digit"
        )
    return name


def expand(spec: str, groups: Mapping[str, str] | None = None) -> list[str]:
    """Expand a node set (``node[01-32],gpu1``, ``@rack1``) into names, in the order in which they are written.

    Numbers within brackets, and what operators (``!``, ``&``, ``^``) leave, are in ClusterShell's order.

    Parameters
    ----------
    spec
        ClusterShell's node set syntax.
    groups
        Group name → node set; the system's own group sources are never asked.

    Raises
    ------
    InventoryError
        When the syntax is wrong, a group is unknown, or a name is not a node name.
    """
    known = dict(groups or {})
    _check_groups(spec, known, ())
    parts = _parts(spec)
    if parts is not None:
        found: dict[str, None] = {}
        for part in parts:
            members = expand(known[part[1:]], known) if part[0] == "@" else _parsed(part, known)
            found.update(dict.fromkeys(members))
        names = list(found)
    elif len(spec) <= MAX_EXPRESSION:
        _check_extent(sum(map(_extent, _OUTSIDE_BRACKETS.split(spec))), spec)
        names = _parsed(spec, known)
    else:
        raise InventoryError(
            f"'{printable(spec, 80)}' is too long for a node set with '!', '&' or '^': at most "
            f"{MAX_EXPRESSION} characters (commas and ranges alone may have more)"
        )
    for name in names:
        check_node_name(name)
    return names


def in_order(names: Iterable[str]) -> str:
    """Return a node set text that `expand` makes the same names of, in the same order."""
    stretches: list[list[str]] = []
    for name in names:
        if stretches and _order(stretches[-1][-1]) < _order(name):
            stretches[-1].append(name)
        else:
            stretches.append([name])
    return ",".join(map(_folded, stretches))


def _folded(ascending: list[str]) -> str:
    """Return the folded form where that says the same order; with several numbers in a name it may not."""
    if not all(map(is_node_name, ascending)):  # a place of an import need not be a node
        return ",".join(ascending)
    text = fold(ascending)
    return text if expand(text) == ascending else ",".join(ascending)


def _parsed(spec: str, groups: Mapping[str, str]) -> list[str]:
    if is_node_name(spec):
        return [spec]
    try:
        return [
            str(name) for name in NodeSet(spec, resolver=GroupResolver(GroupSource("wulf", dict(groups))))
        ]
    except (NodeSetException, GroupResolverError, ValueError, RecursionError) as error:
        shown, why = printable(spec, 120), printable(str(error), 200)
        raise InventoryError(f"'{shown}' is not a node set like 'node[01-32],gpu1': {why}") from error


def _parts(spec: str) -> list[str] | None:
    """Return small node sets whose union is `spec`; None where it is more than that: operators, errors.

    ClusterShell takes a time that grows with the square of the length of a node set, and more.
    """
    parts: dict[str, None] = {}
    end = -1
    while end < len(spec):
        found = _PART.match(spec, end + 1)
        if found is None or spec[found.end() : found.end() + 1] not in (",", ""):
            return None
        end = found.end()
        if found[0][0] == "@":
            parts[found[0]] = None
            continue
        check_node_name(_BRACKET.sub("0", found[0]))
        parts.update(dict.fromkeys(_small(found[0])))
    _check_extent(sum(map(_extent, parts)), spec)
    return list(parts)


def _small(part: str) -> list[str]:
    """Divide ``n[1,3,5,…]`` with many numbers, which may be there twice, into parts with few."""
    bracket = _BRACKET.search(part)
    if bracket is None or bracket[0].count(",") < _FEW:
        return [part]
    items = list(dict.fromkeys(bracket[1].split(",")))
    head, tail = part[: bracket.start()], part[bracket.end() :]
    return [f"{head}[{','.join(items[i : i + _FEW])}]{tail}" for i in range(0, len(items), _FEW)]


def _order(name: str) -> tuple[str, list[tuple[int, int]]]:
    """As ClusterShell sorts: what is not a number, then the numbers by length and value."""
    numbers = [(len(number), int(number)) for number in _NUMBER.findall(name)]
    return _NUMBER.sub("%s", name), numbers


def _extent(part: str) -> int:
    """Return how many names one member of a node set stands for, at most."""
    extent = 1
    for bracket in _BRACKET.findall(part):
        if any(len(number) > _MAX_DIGITS for number in _NUMBER.findall(bracket)):
            raise InventoryError(
                f"'{printable(part, 80)}': a range with numbers of more than {_MAX_DIGITS} digits"
            )
        ranges = _RANGE.findall(bracket)
        sizes = [max(int(high) - int(low), 0) // max(int(step or 1), 1) + 1 for low, high, step in ranges]
        extent *= sum(sizes) + bracket.count(",") + 1 - len(ranges)
    return extent


def _check_extent(total: int, spec: str) -> None:
    """Refuse a node set that is too large before it is expanded."""
    if total > MAX_NODES:
        raise InventoryError(f"'{printable(spec, 80)}' is more than {MAX_NODES} nodes")


def _check_groups(
    spec: str, groups: Mapping[str, str], path: tuple[str, ...], checked: set[str] | None = None
) -> None:
    """Refuse groups that are unknown (ClusterShell takes them for empty) or that contain themselves."""
    checked = set() if checked is None else checked
    for name in _GROUP.findall(spec):
        if name not in groups:
            known = ", ".join(sorted(groups)) or "none"
            raise InventoryError(
                f"'{printable(spec, 120)}': there is no group '{printable(name, 80)}' (groups: {known})"
                f"{nearest(name, groups)}"
            )
        if name in path:
            raise InventoryError(f"group '{name}' contains itself: {' > '.join([*path, name])}")
        if len(path) == _MAX_DEPTH:
            raise InventoryError(f"group '{path[0]}' has groups nested more than {_MAX_DEPTH} deep")
        if name not in checked:
            _check_groups(groups[name], groups, (*path, name), checked)
            checked.add(name)

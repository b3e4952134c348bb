"""Node names and node sets: the only way from text to names that are safe to hand to other programs."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

from ClusterShell.NodeSet import NodeSet, NodeSetException
from ClusterShell.NodeUtils import GroupResolver, GroupResolverError, GroupSource

from wulf.errors import InventoryError
from wulf.text import printable

#: A name can never be an option (no leading ``-``), a path, or mean anything to a shell.
_NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,14}")
_GROUP = re.compile(r"@([^,!&^@\s]*)")
_RANGE = re.compile(r"(\d+)-(\d+)(?:/(\d+))?")
_BRACKET = re.compile(r"\[([^\]]*)\]")
#: Commas and other operators of node sets that are not within brackets.
_OUTSIDE_BRACKETS = re.compile(r"[,!&^](?![^\[]*\])")

#: More nodes than any commodity cluster has; a larger set is a typing error that would fill the memory.
MAX_NODES = 100_000


def is_node_name(name: str) -> bool:
    """Whether `name` is letters, digits, ``.``, ``_`` and ``-``, and starts with a letter or a digit."""
    return _NODE_NAME.fullmatch(name) is not None


def is_interface(name: str) -> bool:
    """Whether `name` can be the name of a network interface (at most 15 characters)."""
    return _INTERFACE.fullmatch(name) is not None


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


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a half sentence that suggests the known word most like `word`; empty when none is."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.65)
    return f"; did you mean '{close[0]}'?" if close else ""


def expand(spec: str, groups: Mapping[str, str] | None = None) -> list[str]:
    """Expand a node set (``node[01-32],gpu1``, ``@rack1``) into names, in the set's own order.

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
    _check_extent(spec)
    try:
        names = [str(name) for name in NodeSet(spec, resolver=GroupResolver(GroupSource("wulf", known)))]
    except (NodeSetException, GroupResolverError, ValueError) as error:
        shown, why = printable(spec, 120), printable(str(error), 200)
        raise InventoryError(f"'{shown}' is not a node set like 'node[01-32],gpu1': {why}") from error
    for name in names:
        check_node_name(name)
    return names


def _check_extent(spec: str) -> None:
    """Refuse a node set that is too large before it is expanded."""
    shown = printable(spec, 80)
    total = 0
    for part in _OUTSIDE_BRACKETS.split(spec):
        extent = 1
        for bracket in _BRACKET.findall(part):
            ranges = _RANGE.findall(bracket)
            if any(len(number) > 9 for bounds in ranges for number in bounds):
                raise InventoryError(f"'{shown}': a range with numbers of more than 9 digits")
            sizes = [max(int(high) - int(low), 0) // max(int(step or 1), 1) + 1 for low, high, step in ranges]
            extent *= sum(sizes) + bracket.count(",") + 1 - len(ranges)
        total += extent
    if total > MAX_NODES:
        raise InventoryError(f"'{shown}' is more than {MAX_NODES} nodes")


def _check_groups(spec: str, groups: Mapping[str, str], path: tuple[str, ...]) -> None:
    """Refuse groups that are unknown (ClusterShell takes them for empty) or that contain themselves."""
    for name in _GROUP.findall(spec):
        if name not in groups:
            known = ", ".join(sorted(groups)) or "none"
            raise InventoryError(
                f"'{printable(spec, 120)}': there is no group '{printable(name, 80)}' (groups: {known})"
                f"{nearest(name, groups)}"
            )
        if name in path:
            raise InventoryError(f"group '{name}' contains itself: {' > '.join([*path, name])}")
        _check_groups(groups[name], groups, (*path, name))

"""What the interface that is measured is called on each node: one name for all, or others on some."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from wulf.base.nodeset import fold


class Interfaces(msgspec.Struct, frozen=True, kw_only=True):
    """Names that differ between nodes."""

    #: Of the nodes that are not in `of_node`; None where nothing is said of them.
    usual: str | None = None
    #: Node → its own name of the interface.
    of_node: dict[str, str]

    def __str__(self) -> str:
        """Return the names with the nodes that have them."""
        usual = [self.usual] if self.usual is not None else []
        return ", ".join([*usual, *(f"{name} on {fold(nodes)}" for name, nodes in self.sets().items())])

    def sets(self) -> dict[str, list[str]]:
        """Return name → the nodes that have it, without the usual one."""
        found: dict[str, list[str]] = {}
        for node, name in self.of_node.items():
            found.setdefault(name, []).append(node)
        return found


#: One name on all nodes, or several; None where it is not known.
Interface = str | Interfaces | None


def made(usual: str | None, of_node: dict[str, str]) -> Interface:
    """Return names as simply as they can be said."""
    others = {node: name for node, name in of_node.items() if name != usual}
    return Interfaces(usual=usual, of_node=others) if others else usual


def interface_of(interface: Interface, node: str) -> str | None:
    """Return what the interface is called on a node."""
    if isinstance(interface, Interfaces):
        return interface.of_node.get(node, interface.usual)
    return interface


def by_interface(interface: Interface, nodes: Iterable[str]) -> dict[str | None, list[str]]:
    """Return name → the nodes that have it."""
    found: dict[str | None, list[str]] = {}
    for node in nodes:
        found.setdefault(interface_of(interface, node), []).append(node)
    return found


def common(interface: Interface, nodes: Iterable[str]) -> str | None:
    """Return the one name that all of these nodes have; None where there is no such name."""
    names = by_interface(interface, nodes)
    return next(iter(names)) if len(names) == 1 else None

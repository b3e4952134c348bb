"""One node's tree with what is needed to read it, and the place where facts are collected. Pure."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TypeVar, cast

from wulf.base.output_values import Absent, Unknown, Unsupported, number, shown
from wulf.base.records import FactValue
from wulf.node.facts.tree import Tree

#: Longest value kept [characters]; only a long list of addresses or rules comes near.
LIMIT = 4000

_T = TypeVar("_T")


class NodeCapture:
    """What one node printed.

    Parameters
    ----------
    interface
        The interface that carries the cluster's traffic; None when it is not known.
    """

    def __init__(self, tree: Tree, interface: str | None) -> None:
        self.tree = tree
        self.interface = interface
        self._known: dict[str, object] = {}

    def once(self, name: str, read: Callable[[], _T]) -> _T:
        """Return what `read` returns, and do not call it again for the same name."""
        if name not in self._known:
            self._known[name] = read()
        return cast("_T", self._known[name])

    @functools.cached_property
    def links(self) -> dict[str, Link]:
        """Interface → what it is; empty when the node did not say."""
        found = {}
        if "links" in self.tree:
            for line in self.tree.lines("links"):
                words = line.split()
                if len(words) == 5:
                    name, device, driver, master, lower = (word.strip(",") for word in words)
                    found[name] = Link(
                        device=_given(device),
                        driver=_given(driver),
                        master=_given(master),
                        lower=[below for below in lower.split(",") if below not in ("", "-")],
                    )
        return found

    @functools.cached_property
    def seconds(self) -> float:
        """Time between the two looks at the counters [s].

        Raises
        ------
        Unknown
            When the node did not print both.
        """
        times = [number((self.tree.text(f"time.{n}").split() or [""])[0], "the uptime") for n in (1, 2)]
        if times[1] <= times[0]:
            raise Unknown("no time passed between the two readings")
        return times[1] - times[0]

    def nic(self) -> str:
        """Return the cluster's interface.

        Raises
        ------
        Unknown
            When it is not known, or not there.
        """
        if self.interface is None:
            raise Unknown(
                "which interface carries the cluster's traffic is not known: set it in cluster.toml"
            )
        if self.links and self.interface not in self.links:
            raise Absent(f"there is no interface {shown(self.interface, 40)}")
        return self.interface


class Link:
    """What an interface is made of."""

    def __init__(
        self, *, device: str | None, driver: str | None, master: str | None, lower: list[str]
    ) -> None:
        self.device = device
        self.driver = driver
        #: The bridge or bond it belongs to.
        self.master = master
        #: What a VLAN, bridge or bond is made of.
        self.lower = lower


class Facts:
    """Facts of one node: every one has a value, or is absent, unsupported or unknown, for a reason."""

    def __init__(self) -> None:
        self.values: dict[str, FactValue] = {}
        self.unknown: dict[str, str] = {}
        self.absent: dict[str, str] = {}
        self.unsupported: dict[str, str] = {}

    def read(self, name: str, read: Callable[[], FactValue]) -> None:
        """Take the fact that `read` returns, or the reason it raises."""
        try:
            value = read()
        except Unknown as reason:
            self.lack(name, reason)
        else:
            self.put(name, value)

    def put(self, name: str, value: FactValue) -> None:
        """Take a fact that is known."""
        if isinstance(value, str) and not (len(value) <= LIMIT and value.isprintable()):
            value = shown(value, LIMIT)
        # Thousands of nodes have the same names and mostly the same values: one copy of each is enough.
        self.values[sys.intern(name)] = sys.intern(value) if isinstance(value, str) else value

    def lack(self, name: str, reason: Unknown) -> None:
        """Take the reason why a fact is not known."""
        place = self.unknown
        if isinstance(reason, Absent):
            place = self.absent
        elif isinstance(reason, Unsupported):
            place = self.unsupported
        place[sys.intern(name)] = sys.intern(str(reason))


def _given(word: str) -> str | None:
    return None if word == "-" or not word else word

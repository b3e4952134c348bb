"""Uplinks that nodes share, from the file in which Slurm has its switches.  Pure.

::

    SwitchName=leaf1 Nodes=node[01-16] LinkSpeed=10Gbit/s
    SwitchName=leaf2 Nodes=node[17-32] LinkSpeed=10Gbit/s
    SwitchName=core  Switches=leaf[1-2]

``LinkSpeed``, which Slurm keeps and does not use, is what the uplink of a switch carries each way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from wulf.base.errors import ConfigError
from wulf.base.nodeset import unfold
from wulf.base.text import printable

_SPEED = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([kmgt])(?:bit|bps|b)?(?:/s)?", re.IGNORECASE)
_BITS = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_KEYS = ("switchname", "nodes", "switches", "linkspeed")


@dataclass
class Switch:
    """One line of the file."""

    name: str
    line: int
    nodes: list[str] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)
    #: Of its uplink [B/s]; None where the file does not say.
    bytes_per_s: float | None = None
    above: Switch | None = None


def read(text: str, origin: str) -> list[Switch]:
    """Return the switches of a file.

    Raises
    ------
    ConfigError
        A line is not understood, or switches do not fit together; names file and line.
    """
    switches: dict[str, Switch] = {}
    for number, line in _lines(text):
        one = _switch(line, f"{origin}:{number}", number)
        if one.name in switches:
            raise ConfigError(
                f"{origin}:{number}: switch {one.name} was described in line {switches[one.name].line}"
            )
        switches[one.name] = one
    if not switches:
        raise ConfigError(
            f"{origin}: no switch: lines like SwitchName=leaf1 Nodes=node[01-16] LinkSpeed=10Gbit/s"
        )
    _connect(switches, origin)
    return list(switches.values())


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines that say something, with their numbers; a backslash at the end goes on with the next."""
    begun, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        first = first if begun else number
        kept = line.partition("#")[0].rstrip()
        if kept.endswith("\\"):
            begun += kept[:-1] + " "
            continue
        whole = (begun + kept).strip()
        begun = ""
        if whole:
            yield first, whole
    if begun.strip():
        yield first, begun.strip()


def _switch(line: str, where: str, number: int) -> Switch:
    found: dict[str, str] = {}
    for word in line.split():
        key, equals, value = word.partition("=")
        if not equals or key.lower() not in _KEYS:
            raise ConfigError(
                f"{where}: {printable(word, 60)!r} is none of SwitchName=, Nodes=, Switches=, LinkSpeed="
            )
        found[key.lower()] = value
    name = found.get("switchname", "")
    if not name:
        raise ConfigError(f"{where}: SwitchName= is missing")
    if not {"nodes", "switches"} & set(found):
        raise ConfigError(f"{where}: neither Nodes= nor Switches= is at switch {printable(name, 60)}")
    speed = found.get("linkspeed")
    return Switch(
        name=name,
        line=number,
        nodes=_names(found.get("nodes", "")),
        switches=_names(found.get("switches", "")),
        bytes_per_s=_speed(speed, where) if speed is not None else None,
    )


def _names(text: str) -> list[str]:
    return unfold(text) if text else []


def _speed(text: str, where: str) -> float:
    found = _SPEED.fullmatch(text)
    speed = float(found[1]) * _BITS[found[2].lower()] / 8 if found else 0.0
    if speed <= 0:
        raise ConfigError(f"{where}: LinkSpeed={printable(text, 60)} is not a speed: write it like 10Gbit/s")
    return speed


def _connect(switches: dict[str, Switch], origin: str) -> None:
    """Find what is above each switch, and see that every uplink below another switch has a speed."""
    for one in switches.values():
        for name in one.switches:
            below = switches.get(name)
            if below is None:
                raise ConfigError(f"{origin}:{one.line}: switch {printable(name, 60)} has no line of its own")
            if below.above is not None:
                raise ConfigError(
                    f"{origin}:{one.line}: switch {name} is below {below.above.name} already: uplinks are a tree"
                )
            below.above = one
    for one in switches.values():
        if one.above is not None and one.bytes_per_s is None:
            raise ConfigError(
                f"{origin}:{one.line}: how fast the uplink of {one.name} to {one.above.name} is, is not said: add "
                "LinkSpeed=10Gbit/s, or whatever it is"
            )
        seen, at = {one.name}, one.above
        while at is not None:
            if at.name in seen:
                raise ConfigError(f"{origin}:{one.line}: what is above switch {one.name} is also below it")
            seen.add(at.name)
            at = at.above


def text(switches: Sequence[Switch], nodes: Sequence[str], origin: str) -> str:
    """Return the file that the replay reads.

    Parameters
    ----------
    nodes
        Names, by number. A name with a domain is also known without it.

    Raises
    ------
    ConfigError
        A node is at no switch, or at several.
    """
    names = {one.name: place for place, one in enumerate(switches)}
    lines = []
    for one in switches:
        # A switch below no other has no uplink that anything takes.
        speed = one.bytes_per_s if one.above is not None and one.bytes_per_s is not None else 1e15
        above = f" s{names[one.above.name]}" if one.above is not None else ""
        lines.append(f"uplink s{names[one.name]} {speed:.9g}{above}")
    at: dict[str, Switch] = {}
    for one in switches:
        for node in one.nodes:
            if node in at:
                raise ConfigError(f"{origin}:{one.line}: node {node} is at {at[node].name}, too")
            at[node] = one
    for number, node in enumerate(nodes):
        where = at.get(node) or at.get(node.partition(".")[0])
        if where is None:
            raise ConfigError(f"{origin}: node {printable(node, 60)} is at no switch")
        lines.append(f"node {number} s{names[where.name]}")
    return "\n".join(lines) + "\n"

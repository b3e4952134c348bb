"""What TuneD's active profile sets. Pure.

Source: tuned.conf of TuneD 2.20, tuned-main(5), the plugins' documentation.
"""

from __future__ import annotations

import msgspec

from wulf.base.output_values import Unknown
from wulf.node.facts.node import NodeCapture
from wulf.node.facts.readers.services import service
from wulf.node.facts.tree import Tree

_ACTIVE = "/etc/tuned/active_profile"
_DIRECTORIES = ("/etc/tuned/", "/etc/tuned/profiles/", "/usr/lib/tuned/", "/usr/lib/tuned/profiles/")


class Entry(msgspec.Struct, frozen=True):
    """One line of a profile."""

    #: Name of the profile that has it.
    profile: str
    #: Section without brackets, such as ``sysctl``.
    section: str
    name: str
    value: str


def entries(capture: NodeCapture) -> list[Entry]:
    """Return all lines of the active profile and of what it includes; empty when there is none."""
    return capture.once("tuned_entries", lambda: _entries(capture.tree))


def runs(capture: NodeCapture) -> bool:
    """Whether TuneD is at work on the node."""
    try:
        return str(service(capture, "tuned.service")).startswith("on")
    except Unknown:
        return False


def _entries(tree: Tree) -> list[Entry]:
    waiting = tree.text(_ACTIVE).split() if _ACTIVE in tree else []
    done: set[str] = set()
    found: list[Entry] = []
    while waiting:
        profile = waiting.pop()
        if profile not in done:
            done.add(profile)
            lines = _profile(tree, profile)
            found += lines
            waiting += [
                word
                for line in lines
                if line.section == "main" and line.name == "include"
                for word in line.value.replace(",", " ").split()
            ]
    return found


def _profile(tree: Tree, profile: str) -> list[Entry]:
    path = next((path for place in _DIRECTORIES if (path := f"{place}{profile}/tuned.conf") in tree), None)
    found: list[Entry] = []
    section = ""
    for line in tree.lines(path) if path else []:
        name, _, value = line.strip().partition("=")
        if name.startswith("["):
            section = name.strip("[] ")
        else:
            found.append(Entry(profile, section, name.strip(), value.strip()))
    return found

"""The table that the guard has compiled in: what there is to set, with which values, and in which order.  Pure.

``native/guard/table.inc`` is made of it (``python -m wulf.node.change.table``) and checked in, so that building the
guard takes no Python; a test says when it is old.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from wulf.base import access, catalogue
from wulf.base.catalogue import Knob

#: Stands for the name of an interface.
INTERFACE = "INTERFACE"
#: Kind of access → what its values are, where a knob has neither numbers nor a list of words.
_KINDS = {
    "tuned": "NAME",
    "module": "TEXT",
    "route": "DURATION",
    "irq_affinity": "CPUS",
    "idle_states": "STATES",
    "file": "MASKS",
    "sysctl": "NAME",
    "mpi_parameter": "LISTS",
}
#: First word of a target of ethtool → what its values are.
_GROUPS = {"channels": "PAIRS", "ring": "SIZES", "pause": "SWITCHES", "feature": "SWITCHES"}
_LEAST, _MOST = -(2**31), 2**31 - 1


def table() -> str:
    """Return the text of ``table.inc``: a line for each kind, and one for each knob that a running node can change."""
    lines = [
        "/* Made by `python -m wulf.node.change.table` from data/access.toml and data/knobs: not to be edited. */"
    ]
    return "\n".join([*lines, *_kinds(), *_knobs(), ""])


def _kinds() -> Iterator[str]:
    ranks = catalogue.ranks()
    for name, kind in access.kinds().items():
        if kind.settable:
            lasts, interface = int(kind.survives_boot), int(kind.scope == "interface")
            yield f"KIND({name}, {ranks[name]}, {lasts}, {interface})"


def _knobs() -> Iterator[str]:
    ranks = catalogue.ranks()
    for knob in sorted(catalogue.knobs().values(), key=lambda one: one.id):
        if not catalogue.unsettable(knob):
            low, high = knob.range or (_LEAST, _MOST)
            target = knob.access.target.replace("{interface}", INTERFACE)
            words = " ".join(_words(knob))
            texts = ", ".join(json.dumps(text) for text in (knob.id, knob.access.kind, target))
            yield f"KNOB({texts}, {_type(knob)}, {low}, {high}, {json.dumps(words)}, {ranks[knob.id]})"


def _type(knob: Knob) -> str:
    if knob.type == "int":
        return "NUMBER"
    if knob.type == "vector":
        return "NUMBERS"
    if knob.type in ("bool", "enum", "service") and knob.values:
        return "WORDS"
    group = knob.access.target.split(".")[0]
    return _GROUPS[group] if knob.access.kind == "ethtool" else _KINDS[knob.access.kind]


def _words(knob: Knob) -> list[str]:
    """Return the words that a value may be: all of a list, or those beside numbers."""
    if knob.type == "int":
        return [value for value in knob.values if value.isalpha()]
    return list(knob.values) if _type(knob) == "WORDS" else []


if __name__ == "__main__":
    sys.stdout.write(table())

"""The table that the guard has compiled in: what there is to set, with which values, and in which order.  Pure.

``native/guard/table.inc`` is made of it (``python -m wulf.node.change.table``) and checked in, so that building the
guard takes no Python; a test says when it is old. So is ``made.inc``, the texts of the files that keep settings.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from wulf.base import access, catalogue
from wulf.base.catalogue import Knob
from wulf.node.change import configuration_files as files
from wulf.node.change import script

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


def made() -> str:
    """Return the text of ``made.inc``: the files that keep settings, as far as their text is the same for all.

    ``@HEAD@``, ``@INTERFACE@`` and ``@LINES@`` in it are replaced by the guard.
    """
    head, interface = "@HEAD@", "@INTERFACE@"
    units = "/etc/systemd/system/"
    online = files.settings_unit(head, online=True)
    texts = [
        (files.SETTINGS_UNIT, "0644", "online", online),
        (files.SETTINGS_UNIT, "0644", "", files.settings_unit(head, online=False)),
        (files.LATENCY_UNIT, "0644", "", files.latency_unit(head)),
        *(
            (f"{units}{name}.service.d/90-wulf.conf", "0644", "", files.filter_dropin(head))
            for name in files.FILTERS
        ),
        (files.DISPATCHER, "0755", "", files.dispatcher(interface, head)),
        (files.IF_UP, "0755", "", files.if_up(interface, head)),
    ]
    lines = [
        "/* Made by `python -m wulf.node.change.table made` from the texts of files: not to be edited. */",
        f"MADE_SCRIPT({_quoted(files.SCRIPT)}, {_quoted(script.kept([], head, '@LINES@'))})",
        *(
            f"MADE_TEXT({_quoted(path)}, {mode}, {_quoted(word)}, {_quoted(text)})"
            for path, mode, word, text in texts
        ),
        *(
            f"MADE_LINK({_quoted(files.wanted(unit))}, {_quoted('../' + unit.rpartition('/')[2])})"
            for unit in (files.SETTINGS_UNIT, files.LATENCY_UNIT)
        ),
    ]
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    """Return a text as C writes it, a line of it on each line."""
    return "\n    ".join(json.dumps(line) for line in text.splitlines(keepends=True)) or '""'


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
            target = knob.access.target.replace("{interface}", INTERFACE)
            words = " ".join(_words(knob))
            texts = ", ".join(json.dumps(text) for text in (knob.id, knob.access.kind, target))
            yield f"KNOB({texts}, {_type(knob)}, {json.dumps(words)}, {ranks[knob.id]}, {_ranges(knob)})"


def _ranges(knob: Knob) -> str:
    """Return the bounds of each number that a value has, as C writes them."""
    ranges = knob.ranges or ((knob.range or (_LEAST, _MOST)) if knob.type == "int" else (0, 0),)
    return ", ".join(f"{{{low}, {high}}}" for low, high in ranges)


def _type(knob: Knob) -> str:
    if knob.type == "int":
        return "NUMBER"
    if knob.type == "vector":
        return "RISING" if knob.rising else "NUMBERS"
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
    sys.stdout.write(made() if sys.argv[1:] == ["made"] else table())

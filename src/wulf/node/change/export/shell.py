"""Settings as one POSIX shell script that stands alone: ``apply``, ``undo``, ``status``.  Pure."""

from __future__ import annotations

from collections.abc import Mapping

from wulf.node.change.export import HEAD, Chosen, groups, numbered
from wulf.node.change.script import undoable

#: Where the script keeps the state before, on the node.
STATE = "/var/lib/wulf-export/shell"


def shell(chosen: Mapping[str, Chosen], name: str = "wulf") -> dict[str, str]:
    """Return a script for each group of equal nodes: it sets everything, now and at every boot.

    Raises
    ------
    UsageError
        As `wulf.node.change.export.groups`.
    """
    found = groups(chosen)
    scripts = {}
    for index, group in enumerate(found):
        head = f"{HEAD[:-1]} for {group.title}: run it as root with apply, undo or status."
        steps = [*group.live, *group.lasting.steps]
        scripts[f"{numbered(name, index, len(found))}.sh"] = undoable(steps, head, STATE)
    return scripts

"""The settings of nodes as a TuneD profile, an Ansible playbook, or a shell script.  Pure.

Every function returns ``{relative path: text}``; a text that begins with ``#!`` is a program and must be executable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from wulf.base.nodeset import fold
from wulf.base.records import NodeRecord
from wulf.node.change.persist import Persistence, portable
from wulf.node.change.steps import KnobSetting, Step, plan

#: First line of every exported file.
HEAD = "# Written by wulf export."


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """What is right for one node."""

    wanted: Sequence[KnobSetting]
    interface: str | None
    record: NodeRecord


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes with the same settings, kept in the same files."""

    nodes: list[str]
    #: ``node[01-17]``.
    title: str
    interface: str | None
    #: Whether the interface is a device, and not a bridge, a bond, a VLAN …
    physical: bool
    wanted: list[KnobSetting]
    #: What sets everything now, in order.
    live: list[Step]
    lasting: Persistence

    def knob_settings(self) -> list[tuple[KnobSetting, Step]]:
        """Return every setting with the step that makes it, in order."""
        by_id = {knob_setting.knob.id: knob_setting for knob_setting in self.wanted}
        return [(by_id[step.knob], step) for step in self.live]


def groups(chosen: Mapping[str, Chosen]) -> list[Group]:
    """Return the nodes in groups of equal ones, the largest first.

    Raises
    ------
    UsageError
        A knob is of an interface, and it is not known which one carries the cluster's traffic.
    """
    found: dict[str, Group] = {}
    for node, choice in chosen.items():
        group = _group(node, choice)
        steps = (*group.live, *group.lasting.steps)
        key = "\n".join([str(group.physical), *(step.line() for step in steps)])
        if key in found:
            found[key].nodes.append(node)
        else:
            found[key] = group
    ordered = sorted(found.values(), key=lambda group: (-len(group.nodes), group.nodes))
    return [msgspec.structs.replace(group, title=fold(group.nodes)) for group in ordered]


def _group(node: str, choice: Chosen) -> Group:
    # No file that names this very node's interface by its address: equal nodes shall stay equal.
    lasting = portable(choice.wanted, choice.interface, choice.record, HEAD)
    wanted = sorted(choice.wanted, key=str)
    return Group(
        nodes=[node],
        title=node,
        interface=choice.interface,
        physical="nic.device" in choice.record.facts,
        wanted=wanted,
        live=plan(wanted, choice.interface, choice.record),
        lasting=lasting,
    )


def numbered(name: str, index: int, count: int) -> str:
    """Return the name of one of several groups: ``wulf``, or ``wulf-1`` … where there are more."""
    return name if count == 1 else f"{name}-{index + 1}"

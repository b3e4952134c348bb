"""What changes on nodes leave: outcomes, and what is set."""

from __future__ import annotations

from typing import Literal

from wulf.base.records.base import Record


class NodeOutcome(Record, frozen=True, kw_only=True):
    """What became of a change on one node."""

    node: str
    #: ``unknown``: it could not be reached any more; it undoes the change by itself when the time is over. ``missing``:
    #: it did not answer before anything was changed, and was left out (``--allow-missing``).
    state: Literal["confirmed", "undone", "untouched", "stuck", "unknown", "missing"]
    #: Why it is not confirmed.
    reason: str = ""
    #: Knob → value read back after setting it; a driver may have rounded.
    values: dict[str, str] = {}


class ChangeOutcome(Record, frozen=True, kw_only=True):
    """What became of a change: all nodes have it, or none."""

    #: Name of the change in the journals of the nodes; empty when none was begun.
    change: str
    #: All nodes have confirmed it.
    kept: bool
    #: Why not.
    reason: str = ""
    nodes: list[NodeOutcome]
    #: Remarks such as values that a driver rounded.
    notes: list[str] = []


class Missed(Record, frozen=True, kw_only=True):
    """What a node has missed while it was down; it is refused until it is as the others."""

    node: str
    #: When it was missing last (ISO 8601, UTC).
    at: str
    #: The changes, as the journals of the others name them.
    changes: list[str] = []
    #: Knob → value that the others have.
    values: dict[str, str] = {}
    #: Whether the others keep their settings over reboots.
    persist: bool = False
    #: Where the others went back to: ``original``, or a change; empty when they did not.
    rollback: str = ""


class SetValue(Record, frozen=True, kw_only=True):
    """One thing that confirmed changes have set on a node."""

    knob: str
    #: Kind of access.
    kind: str
    interface: str
    target: str
    #: As it was asked for last; of a stored file the beginning of its SHA-256.
    wanted: str
    #: As it is now.
    now: str
    #: Whether it differs from the state before the first change.
    differs: bool
    #: The last change that set it.
    change: str
    #: As it was read back when it was set, which may be what a driver made of it; null when that was not noted.
    after: str | None = None
    #: Whether it is as it was confirmed.
    holds: bool = True


class JournalEntry(Record, frozen=True, kw_only=True):
    """One change in the journal of a node."""

    change: str
    #: ISO 8601, UTC.
    at: str
    owner: str
    #: Whether it was made since the node was booted.
    this_boot: bool
    steps: int
    #: For a rollback: ``original``, or the change that was undone with all later ones; null for any other change.
    rollback_to: str | None = None
    #: ``confirmed``, ``undone``, ``stuck`` … with the reason behind it.
    state: str


class NodeStatus(Record, frozen=True, kw_only=True):
    """What a node's journal says; ``wulf settings status``."""

    node: str
    #: Why nothing is known of it; empty otherwise.
    error: str = ""
    #: Who has the node at the moment, for how long [s] and for how long yet [s]; null when nobody has.
    owner: str | None = None
    owned_s: int | None = None
    lease_s: int | None = None
    settings: list[SetValue] = []
    journal: list[JournalEntry] = []
    #: Last lines of the guard's log.
    log: list[str] = []
    #: Commands that bring it level after changes it was missing from; see ``--allow-missing``.
    behind: list[str] = []


class LeftValue(Record, frozen=True, kw_only=True):
    """One thing that a change which could not be put back has left on a node."""

    #: ``-`` where the journal does not say any more what it was.
    knob: str
    kind: str
    interface: str
    target: str
    #: As it is now.
    now: str
    #: As the journal has the state before.
    before: str


class Release(Record, frozen=True, kw_only=True):
    """A change that is stuck on a node, and what stays when it is given up; ``wulf rollback --abandon``."""

    node: str
    #: Empty when nothing is known of the node.
    change: str = ""
    #: Why it is stuck.
    state: str = ""
    left: list[LeftValue] = []
    #: Whether it was given up: nothing of it is tried any more.
    released: bool = False
    #: Why nothing is known, or why it was not given up; empty otherwise.
    error: str = ""

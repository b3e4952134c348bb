"""What a node says of itself, made into records.  Pure.

Every answer of a guard is read here and nowhere else. It comes from another machine, whose disk may be damaged and
whose guard may be of another version: what cannot be read is that node's error, and nobody else's.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping, Sequence

import msgspec

from wulf.base import access, catalogue
from wulf.base.errors import UsageError
from wulf.base.nodeset import fold
from wulf.base.records import JournalEntry, LeftValue, NodeStatus, SetValue
from wulf.base.text import count, printable
from wulf.node.change import steps
from wulf.node.change.guard import NONE, Answer

#: No number of a guard has more digits.
_NUMBER = re.compile(r"-?[0-9]{1,12}")
#: What a wanted value begins with that is none: what is there is to be as it was, or is made by the guard.
UNWRITTEN = ("@", "made:")


class _UnreadableError(Exception):
    """A line that is not as a guard writes it; says which, and why."""


def status(answer: Answer) -> NodeStatus:
    """Return what a guard's ``status`` says; what cannot be read is the error of that node."""
    if not answer.done:
        return NodeStatus(node=answer.node, error="" if answer.code == NONE else answer.reason)
    try:
        return _status(answer)
    except _UnreadableError as error:
        return NodeStatus(
            node=answer.node,
            error=f"what its guard says cannot be read: {error} "
            "(on the node: /var/lib/wulf/guard status, and the journal in /var/lib/wulf/tx)",
        )


def values(answer: Answer) -> dict[str, str]:
    """Return knob → value read back, from what a guard's ``apply`` says."""
    return {row[1]: row[2].strip() for row in answer.rows("step") if len(row) > 2}


def left(answers: Mapping[str, Answer]) -> list[str]:
    """Return, for people, what guards have left: somebody else has set it since, or it is not there any more."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for node, answer in answers.items():
        for word in ("left", "gone"):
            for row in answer.rows(word):
                if len(row) > 1:
                    found.setdefault((word, row[0], row[1]), []).append(node)
    return [
        f"{knob}: {what}, so nothing was put back on {fold(nodes)}"
        if word == "gone"
        else f"{knob}: somebody else has set {what} since, and it was left so on {fold(nodes)}"
        for (word, knob, what), nodes in found.items()
    ]


def leaves(answer: Answer) -> list[LeftValue]:
    """Return what a change has left on a node, from what a guard's ``leaves`` says."""
    return [
        LeftValue(
            knob=row[0],
            kind=row[1],
            interface=row[2],
            target=row[3],
            now=row[4].strip(),
            before=row[5].strip(),
        )
        for row in answer.rows("leaves")
        if len(row) > 5
    ]


def holds(value: SetValue) -> bool:
    """Whether a setting is as it was confirmed; what a driver made of the value counts as confirmed."""
    if value.after is not None and steps.same(value.after, value.now):
        return True
    if value.wanted.startswith(UNWRITTEN):
        # Put back to an earlier state, or written by the guard itself: without a note of what that was, nothing can
        # be said against it.
        return value.after is None
    if value.kind in access.keepers():
        return value.now == value.wanted
    try:
        knob = catalogue.knob(value.knob)
    except UsageError:
        return steps.same(value.wanted, value.now)
    return steps.fulfilled(steps.KnobSetting(knob=knob, value=value.wanted), value.now)


def confirmed(value: SetValue) -> str:
    """Return what a setting was when it was confirmed."""
    return value.wanted if value.after is None else value.after


def _status(answer: Answer) -> NodeStatus:
    (boot,) = _one(answer, "boot", 1)
    owner, owned_s, lease_s = _one(answer, "lock", 3, optional=True) or (None, None, None)
    return NodeStatus(
        node=answer.node,
        owner=owner,
        owned_s=None if owned_s is None else _number(owned_s, "lock"),
        lease_s=None if lease_s is None else _number(lease_s, "lock"),
        settings=[_set_value(row) for row in _rows(answer, "set", 8)],
        journal=[_entry(row, boot) for row in _rows(answer, "tx", 7)],
        log=[" ".join(row) for row in answer.rows("log")],
    )


def _set_value(row: Sequence[str]) -> SetValue:
    knob, kind, interface, target, change, differs, now, wanted = row[:8]
    if differs not in ("same", "different"):
        raise _UnreadableError(f"{_shown(differs)} where {_shown(knob)} is the same or different")
    value = SetValue(
        knob=knob,
        kind=kind,
        interface=interface,
        target=target,
        change=change,
        differs=differs == "different",
        now=now.strip(),
        wanted=_wanted(kind, wanted),
        after=(row[8].strip() or None) if len(row) > 8 else None,
    )
    return msgspec.structs.replace(value, holds=holds(value))


def _entry(row: Sequence[str], boot: str) -> JournalEntry:
    return JournalEntry(
        change=row[0],
        at=row[1],
        owner=row[2],
        this_boot=row[3] == boot,
        steps=_number(row[4], f"change {row[0]}, number of steps"),
        rollback_to=row[5] or None,
        state=": ".join(row[6:]),
    )


def _wanted(kind: str, value: str) -> str:
    """Return a wanted value as the guard shows the present one: a file by the beginning of its SHA-256."""
    if kind != "stored" or not value.startswith("file:"):
        return value
    try:
        content = base64.b64decode(value.split(":", 2)[2], validate=True)
    except (IndexError, binascii.Error, ValueError):
        raise _UnreadableError(f"a stored file that is {_shown(value)}") from None
    return hashlib.sha256(content).hexdigest()[:12]


def _one(answer: Answer, word: str, columns: int, *, optional: bool = False) -> list[str]:
    rows = _rows(answer, word, columns)
    if not rows and optional:
        return []
    if len(rows) != 1:
        raise _UnreadableError(f"{count(len(rows), 'line')} '{word}' instead of one")
    return rows[0][:columns]


def _rows(answer: Answer, word: str, columns: int) -> list[list[str]]:
    """Return the rows of a kind; a later guard may add columns at the end."""
    rows = answer.rows(word)
    for row in rows:
        if len(row) < columns:
            raise _UnreadableError(
                f"{count(len(row), 'column')} instead of {columns} in the line {_shown(' '.join([word, *row]))}"
            )
    return rows


def _number(text: str, what: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise _UnreadableError(f"{_shown(what)}: {_shown(text)} is not a number")
    return int(text)


def _shown(text: str) -> str:
    return repr(printable(text, 80))

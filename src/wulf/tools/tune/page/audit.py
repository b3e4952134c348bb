"""What the audit found before a tuning run, and what of it is left after.  Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from wulf.base.nodeset import fold
from wulf.base.records import Audit, Finding
from wulf.base.text import printable
from wulf.page.parts import Column, Item, Table
from wulf.page.words import remedy

_LIMIT = 300
_RANK = {"fail": 0, "warn": 1, "info": 2}


def findings(before: Audit, after: Audit | None) -> Table:
    """Return one row for each finding, those that were mended first."""
    old, new = _by_check(before), _by_check(after) if after is not None else {}
    names = sorted(
        {**old, **new}, key=lambda name: (name in new, _RANK[({**new, **old})[name].severity], name)
    )
    return Table(
        title="Problems that the audit found",
        columns=(
            Column("problem"),
            Column("after"),
            Column("nodes"),
            Column("found", narrow=False),
            Column("remedy", narrow=False),
        ),
        rows=tuple(_row(old.get(name), new.get(name), judged=after is not None) for name in names),
        note="Nodes and state are those before. What is worth trying and still there was tried and not proven to "
        "matter, or was left out: see below.",
        empty="none",
    )


def _by_check(audit: Audit) -> Mapping[tuple[str, str], Finding]:
    """Return the findings by what they are about and who mends them; one that is told in parts once, of all nodes."""
    parts: dict[tuple[str, str], list[Finding]] = {}
    for finding in audit.findings:
        parts.setdefault((finding.id, finding.remedy), []).append(finding)
    return {key: _whole(found) for key, found in parts.items()}


def _whole(parts: list[Finding]) -> Finding:
    """Return a finding that is told in parts as one."""
    first = parts[0]
    if len(parts) == 1:
        return first
    return msgspec.structs.replace(
        first,
        nodes=list(dict.fromkeys(node for part in parts for node in part.nodes)),
        found="; ".join(f"{part.found} ({fold(part.nodes)})" for part in parts),
        settings={knob: value for part in parts for knob, value in part.settings.items()},
        reason="; ".join(dict.fromkeys(part.reason for part in parts if part.reason)),
    )


def _row(old: Finding | None, new: Finding | None, *, judged: bool) -> tuple[Item, ...]:
    shown = old or new
    assert shown is not None, "a row is about a finding"
    return (
        Item(printable(shown.title, _LIMIT)),
        _after(old, new, judged=judged),
        Item(fold(shown.nodes)),
        Item(printable(shown.found, _LIMIT)),
        Item(printable(remedy(shown), _LIMIT)),
    )


def _after(old: Finding | None, new: Finding | None, *, judged: bool) -> Item:
    if not judged:
        return Item("not looked at")
    if new is None:
        return Item("mended", flag="good")
    if old is None:
        return Item("new", flag="error")
    return Item("still there", flag="error" if new.severity == "fail" else "warning")

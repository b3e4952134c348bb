"""What ``wulf status`` says of the changes in a journal."""

from __future__ import annotations

import io

from rich.console import Console

from wulf.cli import status
from wulf.records import JournalEntry, NodeStatus


def entry(change, state="confirmed", rollback_to=None):
    return JournalEntry(
        change=change,
        at="2026-11-21T10:00:00Z",
        owner="root@head",
        this_boot=True,
        steps=1,
        rollback_to=rollback_to,
        state=state,
    )


def lines(monkeypatch, *journal):
    out = io.StringIO()
    monkeypatch.setattr(status, "console", lambda: Console(file=out, width=300))
    status.show([NodeStatus(node="node01", journal=list(journal))], log=False)
    return [line.partition("root@head, ")[2] for line in out.getvalue().splitlines() if "root@head" in line]


def test_a_change_that_was_rolled_back_says_so(monkeypatch):
    journal = [
        entry("a"),
        entry("b"),
        entry("c", "undone: not confirmed"),
        entry("d", rollback_to="b"),
        entry("e"),
    ]
    assert lines(monkeypatch, *journal) == [
        "1 step: confirmed",
        "1 step: confirmed, rolled back by d",
        "1 step: undone: not confirmed",
        "rollback to b, 1 step: confirmed",
        "1 step: confirmed",
    ]


def test_a_rollback_to_the_original_takes_all_back_that_is_confirmed(monkeypatch):
    journal = [entry("a"), entry("b", rollback_to="a"), entry("c"), entry("d", rollback_to="original")]
    assert lines(monkeypatch, *journal) == [
        "1 step: confirmed, rolled back by b",
        "rollback to a, 1 step: confirmed, rolled back by d",
        "1 step: confirmed, rolled back by d",
        "rollback to original, 1 step: confirmed",
    ]


def test_a_rollback_that_was_undone_took_nothing_back(monkeypatch):
    journal = [entry("a"), entry("b", "undone: asked to", rollback_to="original")]
    assert lines(monkeypatch, *journal)[0] == "1 step: confirmed"

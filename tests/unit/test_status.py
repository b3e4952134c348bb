"""What ``wulf settings status`` says of the changes in a journal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from wulf.base.records import JournalEntry, NodeStatus, SetValue
from wulf.face.cli import rollback, status
from wulf.node.change import answers
from wulf.node.change.guard import Answer


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


def answered(*rows):
    """Return the status of a node whose guard prints these rows."""
    lines = [
        ["boot", "b2"],
        ["tx", "A", "2026-11-21T10:00:00Z", "root@head", "b2", "1", "", "confirmed"],
        ["tx", "B", "2026-11-21T10:00:00Z", "root@head", "b1", "1", "", "confirmed"],
        *(["set", *row] for row in rows),
    ]
    return answers.status(Answer(node="node01", code=0, lines=lines, reason=""))


VALUES = {
    "as confirmed": (("nic.mtu", "link", "eth0", "mtu", "A", "different", "1400", "1400"), "nic.mtu = 1400"),
    "rounded": (
        ("nic.ring_rx", "ethtool", "eth0", "rx", "A", "different", "512", "500", "512"),
        "nic.ring_rx = 512 (set to 500)",
    ),
    "another unit": (
        ("tcp.x", "sysctl", "-", "x", "A", "different", "5ms", "5"),
        "tcp.x = 5ms (set to 5)",
    ),
    "put back to an earlier state": (
        ("nic.mtu", "link", "eth0", "mtu", "A", "different", "1400", "@Z/saved.1", "1400"),
        "nic.mtu = 1400 (set to @Z/saved.1)",
    ),
    "a file in place": (
        ("/etc/x", "stored", "-", "/etc/x", "A", "different", "absent", "absent", "absent"),
        "/etc/x: in place",
    ),
}
BROKEN = {
    "somebody else": (
        ("nic.mtu", "link", "eth0", "mtu", "A", "different", "1300", "1400"),
        "nic.mtu does NOT hold: 1300 now, 1400 confirmed",
    ),
    "lost, and so as it was before": (
        ("cpu.cstates_pmqos", "pm_qos", "-", "/dev/x", "A", "same", "unlimited", "0", "0"),
        "cpu.cstates_pmqos does NOT hold: unlimited now, 0 confirmed",
    ),
    "lost in a boot": (
        ("nic.mtu", "link", "eth0", "mtu", "B", "same", "1500", "1400", "1400"),
        "nic.mtu does NOT hold: 1500 now, 1400 confirmed, before the last boot",
    ),
    "neither what was wanted nor what was made of it": (
        ("nic.ring_rx", "ethtool", "eth0", "rx", "A", "different", "256", "500", "512"),
        "nic.ring_rx does NOT hold: 256 now, 512 confirmed",
    ),
    "not as the earlier state was": (
        ("nic.mtu", "link", "eth0", "mtu", "A", "different", "1300", "@Z/saved.1", "1400"),
        "nic.mtu does NOT hold: 1300 now, 1400 confirmed",
    ),
    "a file that is gone": (
        ("/etc/x", "stored", "-", "/etc/x", "A", "same", "absent", "file:644:QQ==", "559aead08264"),
        "/etc/x does NOT hold: absent now, 559aead08264 confirmed",
    ),
}


@pytest.mark.parametrize(("row", "said"), VALUES.values(), ids=VALUES.keys())
def test_what_is_as_confirmed_holds(row, said):
    found = answered(row)
    assert status._lines(found) == [said]
    assert not status.needs_a_look(found)


@pytest.mark.parametrize(("row", "said"), BROKEN.values(), ids=BROKEN.keys())
def test_what_is_not_as_confirmed_does_not_hold(row, said):
    found = answered(row)
    assert status._lines(found) == [said]
    assert status.needs_a_look(found)


def test_nodes_that_do_not_answer_for_one_reason_are_one_line(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(status, "console", lambda: Console(file=out, width=300))
    down = [
        NodeStatus(
            node=f"node{n}", error=f"node{n}: ssh: connect to host 10.0.0.{n} port 22: Connection refused"
        )
        for n in range(10, 60)
    ]
    status.show([*down, NodeStatus(node="node60")], log=False)
    assert [line.strip() for line in out.getvalue().splitlines()] == [
        "node[10-59]:",
        "no usable answer: ssh: connect to host NODE port 22: Connection refused",
        "node60:",
        "nothing is set",
    ]


def test_changes_that_were_undone_one_after_the_other_are_a_line(monkeypatch):
    undone = [entry(f"t{number:02d}", "undone") for number in range(40)]
    out = io.StringIO()
    monkeypatch.setattr(status, "console", lambda: Console(file=out, width=300))
    status.show([NodeStatus(node="node01", journal=[entry("a"), *undone, entry("z")])], log=False)
    assert out.getvalue().partition("changes:\n")[2].splitlines() == [
        "  a on node01 by root@head, 1 step: confirmed",
        "  t00 to t39 on node01, 40 changes, each by root@head, 1 step: undone",
        "  z on node01 by root@head, 1 step: confirmed",
    ]


@pytest.mark.parametrize(("left_s", "said"), [(15, "for 15 s more at most"), (-15, "which ran out 15 s ago")])
def test_a_lease_that_has_run_out_says_so(monkeypatch, left_s, said):
    out = io.StringIO()
    monkeypatch.setattr(status, "console", lambda: Console(file=out, width=300))
    status.show([NodeStatus(node="node01", owner="root@head", owned_s=75, lease_s=left_s)], log=False)
    assert f"locked by root@head since 75 s, {said}" in out.getvalue()


@pytest.mark.parametrize(("to", "going"), [("original", ["net.a = 1", "net.b = 2"]), ("b", ["net.b = 2"])])
def test_a_rollback_shows_what_goes(to, going):
    values = [
        SetValue(knob=f"net.{name}", kind="sysctl", interface="", target="", wanted=value, now=value, differs=True,
                 change=name)
        for name, value in (("a", "1"), ("b", "2"))
    ]  # fmt: skip
    node = NodeStatus(node="node01", settings=values, journal=[entry("a"), entry("b")])
    assert rollback.going(node, to) == going

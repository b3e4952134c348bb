"""An audit in words: who differs and in what, and what all nodes have in common."""

from __future__ import annotations

import pytest

from tests.unit import report_fixture
from wulf.page.page import html
from wulf.page.parts import Findings
from wulf.page.sections import findings as audit_view


@pytest.fixture(scope="module")
def shown() -> Findings:
    return audit_view.build(report_fixture.cluster_audit(32))


def test_nodes_that_differ_come_first_and_name_the_facts(shown: Findings) -> None:
    rows = [(row.nodes, row.odd) for row in shown.alike.rows if row.odd]
    assert rows == [
        ("compute[005,021]", ("nic.mtu",)),
        ("compute[006,022]", ("sysctl.net.ipv4.tcp_timestamps",)),
        ("compute[008,024]", ("cpu.governor",)),
    ]
    assert [bool(row.odd) for row in shown.alike.rows] == [True, True, True, False, False]


def test_only_what_some_nodes_do_not_tell_is_a_gap_of_theirs(shown: Findings) -> None:
    gaps = {row.nodes: row.gaps for row in shown.alike.rows if row.gaps}
    assert gaps == {"compute[010,026]": ("cpu",)}
    assert "as far as they answered: blas, hpl, keep" in shown.alike.note


def test_nodes_that_are_alike_need_no_table() -> None:
    audit = report_fixture.cluster_audit(2)
    alike = audit_view.build(audit).alike
    assert alike.rows == ()
    assert alike.note.startswith("The same on all nodes: ")
    page = html(audit_view.page(audit))
    assert "No node differs from the others." in page
    assert '<table class="alike">' not in page


def test_a_long_set_of_nodes_is_counted_in_the_first_line() -> None:
    shown = audit_view.build(report_fixture.cluster_audit(500))
    finding = next(finding for finding in shown.findings if finding.id == "same.mtu")
    assert finding.where.startswith("31 nodes: compute[005,021,")
    assert len(finding.where) < 80 < len(finding.nodes)

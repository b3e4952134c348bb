"""A change meets a fault at each of its steps (`bench.faults --quick`): the node is as before or as confirmed."""

from __future__ import annotations

import pytest

from bench.faults import cases, changes, run
from tests.lab.host import Host
from wulf import lab

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.slow]


def test_every_fault_at_some_step_and_every_step_with_some_fault(spare: Host) -> None:
    raised, _ = lab.up(run.QUICK_NODES)
    verdicts, _ = run.run_quick(raised)
    assert len(verdicts) > 30
    assert {verdict.case.fault for verdict in verdicts} == {
        *cases.GUARD_FAULTS,
        *cases.WATCH_FAULTS,
        *cases.BOOTS,
    }
    assert {verdict.case.change for verdict in verdicts} == set(changes.CHANGES)
    assert [verdict for verdict in verdicts if verdict.wrong] == []
    # A watcher may come before the step that a case wanted to meet; as a rule the fault happens.
    assert sum(verdict.hit for verdict in verdicts) > 0.8 * len(verdicts)

"""A change meets a fault at each of its steps (`bench.faults --quick`): the node is as before or as confirmed."""

from __future__ import annotations

import pytest

from bench import faults
from tests.lab.host import Host
from wulf import lab

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.slow]


def test_every_fault_at_some_step_and_every_step_with_some_fault(spare: Host) -> None:
    raised, _ = lab.up(faults.QUICK_NODES)
    verdicts, _ = faults.run(raised, quick=True)
    assert len(verdicts) > 30
    assert {verdict.case.fault for verdict in verdicts} == {
        *faults.GUARD_FAULTS,
        *faults.WATCH_FAULTS,
        *faults.BOOTS,
    }
    assert {verdict.case.change for verdict in verdicts} == set(faults.CHANGES)
    assert [verdict for verdict in verdicts if verdict.wrong] == []
    # A watcher may come before the step that a case wanted to meet; as a rule the fault happens.
    assert sum(verdict.hit for verdict in verdicts) > 0.8 * len(verdicts)

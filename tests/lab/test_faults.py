"""A change meets a fault at each of its steps (`bench.faults --quick`): the node is as before or as confirmed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.faults import cases, changes, orders
from tests.lab.host import Host

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.slow, pytest.mark.alone]


def test_every_fault_at_some_step_and_every_step_with_some_fault(spare: Host, tmp_path: Path) -> None:
    # A process of its own: this one has threads and open connections, which its controllers would inherit.
    said = tmp_path / "faults"
    with said.open("w") as output:
        done = subprocess.run(
            [sys.executable, "-m", "bench.faults", "--quick"],
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=900,
            check=False,
        )
    text = said.read_text()
    assert done.returncode == 0, text
    rows = re.findall(r"^\| ([^|]+) \| (guard|watch): ([^|]+) \| \d", text, re.MULTILINE)
    assert {change for change, _, _ in rows} == set(changes.CHANGES)
    assert {fault for _, _, fault in rows} == {*cases.GUARD_FAULTS, *cases.WATCH_FAULTS, *cases.BOOTS}
    events = set(re.findall(r"^\| ([^|]+) \| order: ([^|]+) \| \d", text, re.MULTILINE))
    assert events == {(case.change, case.fault) for case in orders.few()}
    # A watcher may come before the step that a case wanted to meet; as a rule the fault happens.
    total, missed = map(int, re.findall(r"(\d+) cases in \d+ s; in (\d+) of them", text)[0])
    assert total > 30
    assert missed < 0.2 * total

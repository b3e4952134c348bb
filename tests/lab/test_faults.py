"""A change meets a fault at each of its steps (`bench.faults`): the node is as before or as confirmed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.faults import cases, changes, orders
from tests.conftest import OTHER_LAB

pytestmark = [
    pytest.mark.lab,
    pytest.mark.root,
    pytest.mark.xdist_group(OTHER_LAB),
    pytest.mark.usefixtures("spare"),
]
FAULTS = {*cases.GUARD_FAULTS, *cases.WATCH_FAULTS, *cases.BOOTS}


def table(directory: Path, how: str) -> tuple[set[tuple[str, str]], set[tuple[str, str]], str]:
    """Return changes with faults, and with orders of events, none of which failed; and all that was said."""
    # A process of its own: this one has threads and open connections, which its controllers would inherit.
    said = directory / "faults"
    with said.open("w") as output:
        done = subprocess.run(
            [sys.executable, "-m", "bench.faults", how],
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=1800,
            check=False,
        )
    text = said.read_text()
    assert done.returncode == 0, text
    met = re.findall(r"^\| ([^|]+) \| (?:guard|watch): ([^|]+) \| \d", text, re.MULTILINE)
    events = re.findall(r"^\| ([^|]+) \| order: ([^|]+) \| \d", text, re.MULTILINE)
    return set(met), set(events), text


def test_every_fault_once(tmp_path: Path) -> None:
    met, events, text = table(tmp_path, "--once")
    assert {fault for _, fault in met} == FAULTS
    assert events < {(case.change, case.fault) for case in orders.few()}
    total, missed = map(int, re.findall(r"(\d+) cases in \d+ s; in (\d+) of them", text)[0])
    # A watcher may come before the step that a case wanted to meet; as a rule the fault happens.
    assert missed < total / 2


@pytest.mark.thorough
def test_every_fault_at_some_step_and_every_step_with_some_fault(tmp_path: Path) -> None:
    met, events, text = table(tmp_path, "--quick")
    assert {change for change, _ in met} == set(changes.CHANGES)
    assert {fault for _, fault in met} == FAULTS
    assert events == {(case.change, case.fault) for case in orders.few()}
    total, missed = map(int, re.findall(r"(\d+) cases in \d+ s; in (\d+) of them", text)[0])
    assert total > 30
    assert missed < total / 2

"""Two programs at once on the virtual cluster: messages between nodes, not within one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import wulf as library
from tests.cli.command import wulf
from tests.cli.test_emulate import TWO

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.thorough]


def test_two_programs_between_nodes(lab_cluster, tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(TWO)
    words = ("--cluster", "lab", "--mpi", "openmpi", "--ranks-per-node", "1", "--passes", "1")
    done = wulf(
        tmp_path,
        *("program", "emulate", "two.toml", *words, "--repeat", "2", "--run", "two"),
        timeout=120,
        WULF_LAB_DIR=os.environ["WULF_LAB_DIR"],
    )
    assert done.returncode in (0, 3), done.stderr
    run = library.load(tmp_path / "runs" / "two")
    assert [launch.status for launch in run.launches] == ["ok", "ok"], [one.error for one in run.launches]
    for launch in run.launches:
        # Each rank was on a node of its own, and nothing of the pattern was left there.
        assert launch.probe is not None and len(set(launch.probe.hosts)) == 4
    assert all(sample.corrupt == 0 for sample in run.samples)
    performed = json.loads((tmp_path / "runs" / "two" / "emulation.json").read_text())
    assert [program["ranks"] for program in performed["programs"]] == [[0, 1], [2, 3]]
    cells = {cell.cell.op: cell.time.value for cell in run.analysis().cells}
    # No program is faster than what it computes.
    assert cells["program halo"] > 20 * 100e-6 * 0.9 and cells["program farm"] > 5 * 100e-6 * 0.9
    assert cells["run time"] > 0

"""A node that is changed and put back again and again is as before (`bench.soak --quick`), and the soak goes on."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import require_lab

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.thorough]


def soak(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "bench.soak", f"--from={directory}", *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)


def test_some_changes_and_undos_leave_a_node_as_it_was(tmp_path: Path) -> None:
    require_lab()
    done = soak(tmp_path, "--quick", "--goal=10")
    if "TuneD is not installed" in done.stderr:
        pytest.skip("TuneD is not installed")
    assert done.returncode == 0, done.stdout + done.stderr
    value = re.search(r"^soak value=(\d+) \(settings:(\d+),differences:0,", done.stdout, re.MULTILINE)
    assert value is not None, done.stdout
    assert int(value[1]) >= 10
    assert int(value[2]) >= int(value[1])

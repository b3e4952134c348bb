"""The first command of the README in a fresh clone; the second one, ``make test``, is what runs this."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import require_lab
from wulf.base.store.tuning import load_tuning
from wulf.tools.tune import apply_result

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.thorough, pytest.mark.root]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout: there is nothing to clone")
    directory = tmp_path_factory.mktemp("clone") / "wulf"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(directory)], check=True)
    return directory


def make(clone: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    # The outer `make test ARGS=…` hands its ARGS on in MAKEFLAGS, which win over the environment.
    left_out = ("WULF_", "VIRTUAL_ENV", "PYTHONPATH", "PYTEST_", "MAKE", "MFLAGS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return subprocess.run(
        ["make", *words], cwd=clone, env=kept | more, capture_output=True, text=True, timeout=900, check=False
    )


@pytest.mark.lab
def test_make_demo(clone, tmp_path):
    require_lab()
    own = {"WULF_LAB_DIR": str(tmp_path / "lab"), "WULF_DEMO_BUDGET": "90s"}
    try:
        done = make(clone, "demo", **own)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        (page,) = (clone / "runs").glob("*/report.html")
        assert f"report: {page}" in done.stdout
        run = load_tuning(page.parent)
        assert {trial.status for trial in run.trials} <= {"ok", "failed"}
        assert run.trials
        assert run.audit_before is not None
        assert any("MTU" in finding.title for finding in run.audit_before.findings)
        assert run.mended is not None
        assert run.mended.outcome is not None
        assert run.mended.outcome.kept
        assert run.audit_after is not None
        assert not [finding for finding in run.audit_after.findings if finding.remedy == "mend"]
        assert apply_result.whole(run) is not None
    finally:
        subprocess.run([clone / ".venv" / "bin" / "wulf", "lab", "down"], env=os.environ | own, check=True)

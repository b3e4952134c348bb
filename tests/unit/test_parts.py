"""The tests in two parts, and what the summary says of both."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import BOTH, TESTS, TOGETHER

SUMMARY = Path(__file__).resolve().parents[2] / "tools" / "summary.py"
TESTS_OF_ALL_KINDS = """
import pytest

def test_passes(): pass

def test_fails(): raise ValueError("no")

@pytest.mark.skip(reason="no such machine")
def test_is_skipped(): pass

@pytest.fixture
def broken(): raise OSError("broken")

def test_has_no_fixture(broken): pass
"""


def summary(*reports: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SUMMARY, *reports], capture_output=True, text=True, timeout=120, check=False
    )


def report(directory: Path, *words: str) -> Path:
    folder = directory / "tests" / "unit"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "test_kinds.py").write_text(TESTS_OF_ALL_KINDS)
    path = directory / f"{'-'.join(words) or 'all'}.xml"
    argv = [sys.executable, "-m", "pytest", "-q", f"--rootdir={directory}", f"--junitxml={path}", *words]
    subprocess.run(argv, cwd=directory, capture_output=True, timeout=120, check=False)
    return path


def test_the_summary_counts_over_all_reports(tmp_path: Path) -> None:
    said = summary(report(tmp_path), report(tmp_path, "-k", "passes or skipped"))
    assert said.returncode == 0, said.stderr
    assert "    2 × unit: no such machine" in said.stdout
    assert said.stdout.splitlines()[-1].startswith("==== 1 failed, 2 passed, 2 skipped, 1 errors in ")


def test_no_test_and_no_report_are_failures(tmp_path: Path) -> None:
    nothing = summary(report(tmp_path, "-k", "nowhere"))
    assert (nothing.returncode, "no tests ran" in nothing.stdout) == (1, True)
    missing = summary(tmp_path / "missing.xml")
    assert (missing.returncode, "no test report" in missing.stderr) == (1, True)


@pytest.mark.parametrize("folder", [path.name for path in TESTS.iterdir() if (path / "__init__.py").exists()])
def test_every_folder_is_read_for_a_part(folder: str, request: pytest.FixtureRequest) -> None:
    """A test that is in neither part would never run."""

    class Chosen:
        def __init__(self, part: str) -> None:
            self.part = part

        def getoption(self, _: str) -> str:
            return self.part

    plugin = request.config.pluginmanager.get_plugin(str(TESTS / "conftest.py"))
    read = [
        part
        for part in ("together", "alone")
        if plugin.pytest_ignore_collect(TESTS / folder, Chosen(part)) is not True
    ]
    assert read == (
        ["together", "alone"] if folder in BOTH else ["together"] if folder in TOGETHER else ["alone"]
    )

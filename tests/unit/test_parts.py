"""The tests in two parts, and what the summary says of both."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUMMARY = ROOT / "tools" / "summary.py"
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


TESTS_OF_A_GROUP = """
import pytest

@pytest.mark.parametrize("number", range(6))
@pytest.mark.xdist_group("one")
def test_shares(number): pass

def test_is_free(): pass
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


def collected(*words: str) -> set[str]:
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", *words, "tests/lab", "tests/contract"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout
    return {line for line in done.stdout.splitlines() if "::" in line}


def test_every_test_is_in_one_part() -> None:
    """A test that is in neither part would never run."""
    together, alone = collected("--part=together"), collected("--part=alone")
    assert together and alone and not together & alone
    assert together | alone == collected()


def test_a_group_stays_on_one_worker(tmp_path: Path) -> None:
    """Versions of pytest and pytest-xdist that do not go together spread it without a word."""
    (tmp_path / "test_group.py").write_text(TESTS_OF_A_GROUP)
    argv = [sys.executable, "-m", "pytest", "-v", f"--rootdir={tmp_path}", "-n", "2", "--dist", "loadgroup"]
    said = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False).stdout
    assert said.count("PASSED") == 7, said
    assert len(set(re.findall(r"\[(gw\d)\].* PASSED .*test_shares", said))) == 1, said


def test_what_failed_is_named_as_pytest_runs_it(tmp_path: Path) -> None:
    path = tmp_path / "grouped.xml"
    cases = "".join(
        f'<testcase classname="tests.lab.test_change" name="{name}"><failure message="no"/></testcase>'
        for name in ("test_a[x@y]@lab", "test_b@other lab", "test_c[5]")
    )
    path.write_text(f'<testsuites><testsuite time="1">{cases}</testsuite></testsuites>')
    argv = [sys.executable, SUMMARY, "--failed", path]
    said = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
    assert said.stdout.splitlines() == [
        f"tests/lab/test_change.py::{name}" for name in ("test_a[x@y]", "test_b", "test_c[5]")
    ]


def test_what_passes_when_it_is_run_again_is_named_and_counts_as_passed(tmp_path: Path) -> None:
    before = report(tmp_path)
    path = tmp_path / "tests" / "unit" / "test_kinds.py"
    path.write_text(TESTS_OF_ALL_KINDS.replace('raise ValueError("no")', "pass"))
    after = tmp_path / "again.xml"
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        f"--rootdir={tmp_path}",
        f"--junitxml={after}",
        "-k",
        "fails",
    ]
    subprocess.run(argv, cwd=tmp_path, capture_output=True, timeout=120, check=True)
    said = summary(before, after)
    assert (
        "failed, and passed when they were run again:\n  tests/unit/test_kinds.py::test_fails\n"
        in said.stdout
    )
    assert said.stdout.splitlines()[-1].startswith("==== 2 passed, 1 skipped, 1 errors in ")

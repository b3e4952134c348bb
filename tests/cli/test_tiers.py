"""The tiers and shards of the tests, and what the summary says of them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

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


TESTS_OF_ALL_TIERS = """
import pytest

def test_plain(): pass

@pytest.mark.root
@pytest.mark.parametrize("number", range(2))
def test_root(number): pass

@pytest.mark.thorough
@pytest.mark.xdist_group("one")
def test_thorough(): pass

@pytest.mark.thorough
@pytest.mark.xdist_group("one")
def test_thorough_too(): pass

@pytest.mark.thorough
def test_thorough_fails(): raise ValueError("no")
"""


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    """A folder of tests with the options of this one."""
    (tmp_path / "tests" / "unit").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "tests" / "conftest.py")
    (tmp_path / "tests" / "unit" / "test_tiers.py").write_text(TESTS_OF_ALL_TIERS)
    return tmp_path


#: Runs the tests of each list of options in a process of its own, that has loaded all of it already.
RUNS = """
import json, os, sys
import pytest
import wulf.node.lab
for words in json.loads(sys.argv[1]):
    print("== next", flush=True)
    if not os.fork(): sys.exit(pytest.main(words))
    os.wait()
"""


def ran(tests: Path, *options: Sequence[str]) -> list[list[str]]:
    """Names of the tests that are run with each of the options."""
    usual = ("-v", "-p", "no:cacheprovider", f"--rootdir={tests}")
    argv = [sys.executable, "-c", RUNS, json.dumps([[*usual, *words, "tests"] for words in options])]
    said = subprocess.run(argv, cwd=tests, capture_output=True, text=True, timeout=120, check=False).stdout
    names = r"^tests/unit/test_tiers.py::(\S+) (?:PASSED|FAILED)"
    return [sorted(re.findall(names, one, re.MULTILINE)) for one in said.split("== next")[1:]]


def test_every_test_is_in_one_tier(tests: Path) -> None:
    """A test that is in none would never run."""
    quick, test, all_, every = ran(tests, *([f"--tier={tier}"] for tier in ("quick", "test", "all")), [])
    assert quick == ["test_plain"]
    assert test == ["test_plain", "test_root[0]", "test_root[1]"]
    assert all_ == ["test_thorough", "test_thorough_fails", "test_thorough_too"]
    assert sorted(test + all_) == every


@pytest.mark.thorough
def test_every_test_is_in_one_shard_and_groups_stay_together(tests: Path) -> None:
    *shards, every = ran(tests, *([f"--shard={number}/3"] for number in (1, 2, 3)), [])
    assert sorted(name for shard in shards for name in shard) == every
    assert all(("test_thorough" in shard) == ("test_thorough_too" in shard) for shard in shards)
    assert all(("test_root[0]" in shard) == ("test_root[1]" in shard) for shard in shards)


@pytest.mark.thorough
def test_what_has_passed_is_left_out_when_it_is_run_again(tests: Path) -> None:
    words = ("-n", "2", "--dist", "loadgroup", "--tier=all", f"--note-passed={tests}/passed")
    argv = [sys.executable, "-m", "pytest", "-q", f"--rootdir={tests}", *words, "tests"]
    subprocess.run(argv, cwd=tests, capture_output=True, timeout=120, check=False)
    again = ["--tier=all", f"--passed-before={tests}/passed"]
    assert ran(tests, again) == [["test_thorough_fails"]]


def test_a_group_stays_on_one_worker(tmp_path: Path) -> None:
    """Versions of pytest and pytest-xdist that do not go together spread it without a word."""
    (tmp_path / "test_group.py").write_text(TESTS_OF_A_GROUP)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")  # whatever is in the directories above
    argv = [sys.executable, "-m", "pytest", "-v", f"--rootdir={tmp_path}", "-n", "2", "--dist", "loadgroup"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    said = done.stdout
    assert said.count("PASSED") == 7, said + done.stderr
    assert len(set(re.findall(r"\[(gw\d)\].* PASSED .*test_shares", said))) == 1, said

"""Say what several pytest runs were together: what was skipped and why, and pytest's closing line over all of them.

A test that failed and passed when it was run again is named; it counts as passed.

Usage: ``python tools/summary.py JUNIT.xml …``; with ``--failed`` it prints what failed, as pytest wants it named.
"""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence

#: What JUnit calls it → what pytest's closing line calls it.
OUTCOMES = {"failure": "failed", "skipped": "skipped", "error": "errors"}
_FAILED = ("failed", "errors")
_GROUP = re.compile(r"@[^@\]]*$")


def read(paths: Sequence[str]) -> list[ET.Element]:
    """Return the test suites of reports."""
    return [suite for path in paths for suite in ET.parse(path).getroot().iter("testsuite")]  # noqa: S314 - ours


def counting(suites: Sequence[ET.Element]) -> list[ET.Element]:
    """Return all cases but the failed ones of tests that were run again and passed."""
    cases = [case for suite in suites for case in suite.iter("testcase")]
    passed = {_name(case) for case in cases if _outcome(case) == "passed"}
    return [case for case in cases if _outcome(case) not in _FAILED or _name(case) not in passed]


def again(suites: Sequence[ET.Element]) -> list[str]:
    """Return one line for each test that failed and passed when it was run again; nothing when there is none."""
    cases = [case for suite in suites for case in suite.iter("testcase")]
    kept = {id(case) for case in counting(suites)}
    found = sorted(_name(case) for case in cases if id(case) not in kept)
    title = "failed, and passed when they were run again:"
    return [title, *(f"  {one}" for one in found)] if found else []


def failed(suites: Sequence[ET.Element]) -> list[str]:
    """Return the failed tests, as pytest wants them named."""
    return list(dict.fromkeys(_name(case) for case in counting(suites) if _outcome(case) in _FAILED))


def skipped(cases: Sequence[ET.Element]) -> list[str]:
    """Return one line for each folder and reason."""
    found = Counter(
        (_folder(case), skip.get("message", "")) for case in cases for skip in case.iter("skipped")
    )
    lines = [f"  {count:3d} × {folder}: {reason}" for (folder, reason), count in sorted(found.items())]
    return ["skipped:", *lines] if lines else ["skipped: nothing"]


def closing(suites: Sequence[ET.Element]) -> str:
    """Return the line with which one run of all these tests would have ended."""
    counts = Counter(_outcome(case) for case in counting(suites))
    seconds = sum(float(suite.get("time", "0")) for suite in suites)
    words = [f"{counts[name]} {name}" for name in ("failed", "passed", "skipped", "errors") if counts[name]]
    return f"==== {', '.join(words) or 'no tests ran'} in {seconds:.2f}s ===="


def _name(case: ET.Element) -> str:
    """Return the name by which pytest runs a test, without the group that pytest-xdist adds to it."""
    path = case.get("classname", "").replace(".", "/")
    return f"{path}.py::{_GROUP.sub('', case.get('name', ''))}"


def _folder(case: ET.Element) -> str:
    """Return the folder below tests/."""
    return ".".join(case.get("classname", "").split(".")[1:2])


def _outcome(case: ET.Element) -> str:
    return next((word for tag, word in OUTCOMES.items() if case.find(tag) is not None), "passed")


def main(paths: Sequence[str]) -> int:
    """Print the summary; 1 when no test ran or a report is missing."""
    wants_failed = paths[:1] == ["--failed"]
    try:
        suites = read(paths[wants_failed:])
    except (OSError, ET.ParseError) as error:
        sys.stderr.write(f"no test report: {error}\n")
        return 1
    if wants_failed:
        sys.stdout.writelines(f"{name}\n" for name in failed(suites))
        return 0
    sys.stdout.write("\n".join([*skipped(counting(suites)), *again(suites), closing(suites), ""]))
    return 0 if any(suite.find("testcase") is not None for suite in suites) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

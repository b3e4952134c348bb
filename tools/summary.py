"""Say what several pytest runs were together: where the time went, what was skipped and why, and what failed.

It ends with the line with which one run of all these tests would have ended.

Usage: ``python tools/summary.py JUNIT.xml …``
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Sequence

#: What JUnit calls it → what pytest's closing line calls it.
OUTCOMES = {"failure": "failed", "skipped": "skipped", "error": "errors"}
#: So many of the longest tests and files are named.
_LONGEST = 12


def read(paths: Sequence[str]) -> list[ET.Element]:
    """Return the test suites of reports."""
    return [suite for path in paths for suite in ET.parse(path).getroot().iter("testsuite")]  # noqa: S314 - ours


def cases_of(suites: Sequence[ET.Element]) -> list[ET.Element]:
    """Return all cases of some test suites."""
    return [case for suite in suites for case in suite.iter("testcase")]


def longest(cases: Sequence[ET.Element], title: str, name: Callable[[ET.Element], str]) -> list[str]:
    """Return a title, and one line for each of the longest: seconds, tests, name."""
    seconds: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for case in cases:
        seconds[name(case)] += float(case.get("time", "0"))  # type: ignore[assignment] - a counter adds floats as well
        tests[name(case)] += 1
    return [
        title,
        *(f"  {spent:7.1f} s {tests[one]:5d} × {one}" for one, spent in seconds.most_common(_LONGEST)),
    ]


def skipped(cases: Sequence[ET.Element]) -> list[str]:
    """Return one line for each folder and reason."""
    found = Counter(
        (_folder(case), skip.get("message", "")) for case in cases for skip in case.iter("skipped")
    )
    lines = [f"  {count:3d} × {folder}: {reason}" for (folder, reason), count in sorted(found.items())]
    return ["skipped:", *lines] if lines else ["skipped: nothing"]


def failed(cases: Sequence[ET.Element]) -> list[str]:
    """Return one line for each test that failed."""
    names = dict.fromkeys(_test(case) for case in cases if _outcome(case) in ("failed", "errors"))
    return ["failed:", *(f"  {name}" for name in names)] if names else []


def closing(suites: Sequence[ET.Element]) -> str:
    """Return the line with which one run of all these tests would have ended."""
    counts = Counter(_outcome(case) for case in cases_of(suites))
    seconds = sum(float(suite.get("time", "0")) for suite in suites)
    words = [f"{counts[name]} {name}" for name in ("failed", "passed", "skipped", "errors") if counts[name]]
    return f"==== {', '.join(words) or 'no tests ran'} in {seconds:.2f}s ===="


def _file(case: ET.Element) -> str:
    return f"{case.get('classname', '').replace('.', '/')}.py"


def _test(case: ET.Element) -> str:
    return f"{_file(case)}::{case.get('name', '')}"


def _folder(case: ET.Element) -> str:
    """Return the folder below tests/."""
    return ".".join(case.get("classname", "").split(".")[1:2])


def _outcome(case: ET.Element) -> str:
    return next((word for tag, word in OUTCOMES.items() if case.find(tag) is not None), "passed")


def main(paths: Sequence[str]) -> int:
    """Print the summary; 1 when no test ran or a report is missing."""
    try:
        suites = read(paths)
    except (OSError, ET.ParseError) as error:
        sys.stderr.write(f"no test report: {error}\n")
        return 1
    cases = cases_of(suites)
    lines = [
        *longest(cases, "longest files:", _file),
        *longest(cases, "longest tests:", _test),
        *skipped(cases),
        *failed(cases),
        closing(suites),
    ]
    sys.stdout.write("\n".join([*lines, ""]))
    return 0 if cases else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

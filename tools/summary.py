"""Say what several pytest runs were together: what was skipped and why, and pytest's closing line over all of them.

A test that failed beside others and passed with the machine to itself is named; it counts as passed.

Usage: ``python tools/summary.py JUNIT.xml …``
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence

#: What JUnit calls it → what pytest's closing line calls it.
OUTCOMES = {"failure": "failed", "skipped": "skipped", "error": "errors"}


def read(paths: Sequence[str]) -> list[ET.Element]:
    """Return the test suites of reports."""
    return [suite for path in paths for suite in ET.parse(path).getroot().iter("testsuite")]  # noqa: S314 - ours


def last(suites: Sequence[ET.Element]) -> list[ET.Element]:
    """Return the last case of each test: a test that was run again counts once."""
    cases = [case for suite in suites for case in suite.iter("testcase")]
    return list({_name(case): case for case in sorted(cases, key=_passed)}.values())


def again(suites: Sequence[ET.Element]) -> list[str]:
    """Return one line for each test that failed and passed when it was run again; nothing when there is none."""
    cases = [case for suite in suites for case in suite.iter("testcase")]
    failed = {_name(case) for case in cases if _outcome(case) in ("failed", "errors")}
    found = sorted(failed & {_name(case) for case in cases if _passed(case)})
    title = "failed beside others, passed with the machine to itself:"
    return [title, *(f"  {one}" for one in found)] if found else []


def skipped(cases: Sequence[ET.Element]) -> list[str]:
    """Return one line for each folder and reason."""
    found = Counter(
        (_folder(case), skip.get("message", "")) for case in cases for skip in case.iter("skipped")
    )
    lines = [f"  {count:3d} × {folder}: {reason}" for (folder, reason), count in sorted(found.items())]
    return ["skipped:", *lines] if lines else ["skipped: nothing"]


def closing(suites: Sequence[ET.Element]) -> str:
    """Return the line with which one run of all these tests would have ended."""
    counts = Counter(_outcome(case) for case in last(suites))
    seconds = sum(float(suite.get("time", "0")) for suite in suites)
    words = [f"{counts[name]} {name}" for name in ("failed", "passed", "skipped", "errors") if counts[name]]
    return f"==== {', '.join(words) or 'no tests ran'} in {seconds:.2f}s ===="


def _name(case: ET.Element) -> str:
    return f"{case.get('classname')}::{case.get('name')}"


def _passed(case: ET.Element) -> bool:
    return _outcome(case) == "passed"


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
    sys.stdout.write("\n".join([*skipped(last(suites)), *again(suites), closing(suites), ""]))
    return 0 if any(suite.find("testcase") is not None for suite in suites) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

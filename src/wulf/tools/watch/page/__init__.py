"""A watch, as people and other programs read it: a page, and JUnit. Pure."""

from __future__ import annotations

from xml.etree import ElementTree

from wulf.base.records.watched import WatchReport
from wulf.base.text import printable
from wulf.tools.watch.page import words
from wulf.tools.watch.page.view import build

__all__ = ["build", "junit"]


def junit(report: WatchReport) -> str:
    """Return the open alarms as JUnit XML: a test case for every node, for the links, and for all nodes together."""
    suite = ElementTree.Element("testsuite", name="wulf watch")
    cases: dict[str, list[str]] = {f"{node} has not changed": [] for node in report.nodes}
    cases |= {"no link has changed": [], "the cluster as a whole has not changed": []}
    for alarm in report.open:
        names = {"node": f"{''.join(alarm.nodes)} has not changed", "link": "no link has changed"}
        name = names.get(alarm.level, "the cluster as a whole has not changed")
        cases.setdefault(name, []).append(words.sentence([alarm], report))
    for title, failures in cases.items():
        case = ElementTree.SubElement(suite, "testcase", classname="wulf.watch", name=printable(title))
        if failures:
            ElementTree.SubElement(case, "failure", message=printable("; ".join(failures), 1000))
        elif report.learning:
            ElementTree.SubElement(case, "skipped", message=report.learning)
        elif report.untold:
            # A gate takes what is skipped for passed: while a watch learns that is right, later it is not.
            message = printable("; ".join(report.untold), 1000)
            ElementTree.SubElement(case, "error", message=message)
    suite.set("tests", str(len(cases)))
    suite.set("errors", str(len(suite.findall("testcase/error"))))
    suite.set("failures", str(sum(bool(failures) for failures in cases.values())))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"

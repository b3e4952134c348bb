"""An audit as people read it, and as JUnit XML. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from wulf.base.nodeset import fold, fold_reasons
from wulf.base.profile import Severity
from wulf.base.records import Audit, Finding, Judgement
from wulf.base.text import count, printable
from wulf.page.blocks import Page
from wulf.page.parts import Alike, AlikeRow, FindingRow, Findings
from wulf.page.words import listed, remedy

#: Characters of one text that are printed; a node can print anything.
_LIMIT = 1000
#: A longer set of nodes does not stand in the first line of a finding.
_SHORT = 60
#: So many kinds of links are described.
_FEW = 3
#: What somebody has to do something about.
SERIOUS: tuple[Severity, ...] = ("fail", "warn")
_MEANING = {"fail": "breaks or cripples", "warn": "costs", "info": "worth trying or knowing"}


def build(audit: Audit) -> Findings:
    """Return the view of an audit."""
    total = len(audit.nodes) - len(audit.unreachable)
    counts = tuple(
        (severity, sum(1 for finding in audit.findings if finding.severity == severity), _MEANING[severity])
        for severity in _MEANING
    )
    statuses: dict[str, set[str]] = {}
    for judgement in audit.judgements:
        statuses.setdefault(judgement.id, set()).add(judgement.status)
    silent = sum(found == {"not applicable"} for found in statuses.values())
    passed = sum(not found & {"finding", "unknown"} for found in statuses.values()) - silent
    return Findings(
        headline=_headline(audit, total) if total else "No node could be looked at",
        lede=f"{count(total, 'node')} looked at with the profile '{audit.profile}'"
        + (f"; {count(len(audit.unreachable), 'node')} did not answer" if audit.unreachable else "")
        + f". {count(len(statuses), 'check')}: {passed} without a finding, {silent} not applicable here."
        + _expected(audit),
        counts=counts,
        findings=tuple(_finding(finding, total) for finding in audit.findings),
        alike=_alike(audit),
        unknown=_unknown(audit),
        unreachable=_reasons(audit.unreachable),
    )


def _expected(audit: Audit) -> str:
    """Say what the links should reach, of which all that is measured falls short where all nodes share a fault."""
    said = [
        f" {fold(nodes)} should reach {printable(words, 300)}." for words, nodes in audit.expected.items()
    ]
    return "".join(said[:_FEW]) + (
        f" {count(len(said) - _FEW, 'more kind')} of links: --json." if len(said) > _FEW else ""
    )


def _headline(audit: Audit, total: int) -> str:
    """Name the worst finding and its nodes, and count the others."""
    if not any(finding.severity in SERIOUS for finding in audit.findings) and (gaps := audit.untold(SERIOUS)):
        return _cannot_tell(audit, gaps)
    if not audit.findings:
        return "Nothing was found" + (" on the nodes that answered" if audit.unreachable else "")
    worst = next(
        finding for severity in _MEANING for finding in audit.findings if finding.severity == severity
    )
    if worst.severity == "info":
        return f"Nothing is wrong; {count(len(audit.findings), 'thing')} worth trying or knowing"
    row = _finding(worst, total)
    serious = sum(finding.severity != "info" for finding in audit.findings) - 1
    rest = f", and {count(serious, 'more finding')}" if serious else ""
    return f"{row.title} on {row.where}{rest}"


def _cannot_tell(audit: Audit, gaps: Sequence[Judgement]) -> str:
    """Say that nothing is wrong as far as it was seen, and that this is not far enough."""
    checks = {gap.id for gap in gaps}
    made = {
        one.id for one in audit.judgements if one.severity in SERIOUS and one.status != "unknown"
    } - checks
    nodes = {node for gap in gaps for node in gap.nodes}
    where = fold(nodes) if len(nodes) < len(audit.nodes) else "all nodes" if len(nodes) > 1 else fold(nodes)
    return (
        f"Cannot tell whether anything is wrong: on {where} {count(len(checks), 'check')} of "
        f"{len(checks | made)} could not be made ({_reason(gaps[0])})"
    )


def _reason(judgement: Judgement) -> str:
    """Return why something is not known, without the name of the fact with which that begins."""
    return printable(judgement.reason.partition(": ")[2] or judgement.reason, _LIMIT)


def _unknown(audit: Audit) -> tuple[tuple[str, str, str], ...]:
    """Return (checks, reason, nodes): what is not known for the same reason on the same nodes is one line."""
    folded: dict[tuple[str, str], list[str]] = {}
    for judgement in audit.judgements:
        if judgement.status == "unknown":
            folded.setdefault((_reason(judgement), fold(judgement.nodes)), []).append(judgement.title)
    return tuple(
        (printable(", ".join(titles), _LIMIT), reason, nodes) for (reason, nodes), titles in folded.items()
    )


def _finding(finding: Finding, total: int) -> FindingRow:
    nodes = fold(finding.nodes)
    everywhere = len(finding.nodes) == total and total > 1
    lines = (
        ("is", finding.found),
        ("should be", finding.wanted),
        (f"costs {', '.join(finding.costs)}" if finding.costs else "why", finding.why),
        ("remedy", remedy(finding)),
        ("source", "; ".join(finding.evidence)),
        ("risk", finding.risk),
    )
    commands = (("now", finding.fix), ("to keep it", finding.keep))
    shown = tuple((label, printable(text, _LIMIT)) for label, text in lines if text)
    return FindingRow(
        id=finding.id,
        severity=finding.severity,
        title=printable(finding.title, 200),
        nodes=nodes,
        where=_where(finding, nodes, everywhere),
        everywhere=everywhere,
        lines=shown,
        commands=tuple((label, printable(text, _LIMIT)) for label, text in commands if text),
        searched=" ".join(
            [finding.id, finding.title, nodes, *finding.nodes[:200], *(t for _, t in shown)]
        ).lower(),
    )


def _where(finding: Finding, nodes: str, everywhere: bool) -> str:
    number = count(len(finding.nodes), "node")
    if everywhere:
        return f"all {number}"
    return nodes if len(nodes) <= _SHORT else f"{number}: {nodes[:_SHORT].rpartition(',')[0]},…"


def _alike(audit: Audit) -> Alike:
    """Nodes that differ in the same things share a row; the ones that differ come first."""
    by_all = _open_everywhere(audit)
    states: dict[str, tuple[list[str], list[str]]] = {}
    for row in audit.matrix:
        for node in row.nodes:
            odd, gaps = states.setdefault(node, ([], []))
            if row.state == "odd":
                odd.append(listed(row.facts))
            elif row.state == "unknown" and row.group not in by_all:
                gaps.append(row.group)
    folded: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for node, (odd, gaps) in states.items():
        folded.setdefault((tuple(odd), tuple(gaps)), []).append(node)
    rows = [
        AlikeRow(nodes=fold(nodes), count=count(len(nodes), "node"), odd=odd, gaps=gaps)
        for (odd, gaps), nodes in folded.items()
    ]
    rows.sort(key=lambda row: (not row.odd, not row.gaps, row.nodes))
    return Alike(rows=tuple(rows) if len(rows) > 1 else (), note=_common(audit) if len(states) > 1 else "")


def _open_everywhere(audit: Audit) -> set[str]:
    """Return the groups of which all nodes that do not differ leave the same facts open: no row needs to say it."""
    groups: dict[str, list[str]] = {}
    for row in audit.matrix:
        if row.state != "odd":
            groups.setdefault(row.group, []).append(row.state)
    return {group for group, found in groups.items() if found == ["unknown"]}


def _common(audit: Audit) -> str:
    """Say of which groups of facts no node differs, and which no node told fully."""
    odd = {row.group for row in audit.matrix if row.state == "odd"}
    untold = _open_everywhere(audit) - odd
    same = {row.group for row in audit.matrix} - {row.group for row in audit.matrix if row.state != "same"}
    sentences = (
        ("The same on all nodes", same),
        ("The same on all nodes, as far as they answered", untold),
    )
    return " ".join(f"{words}: {', '.join(sorted(groups))}." for words, groups in sentences if groups)


def _reasons(unreachable: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((fold(nodes), printable(reason, 200)) for nodes, reason in fold_reasons(unreachable))


def page(audit: Audit) -> Page:
    """Return the page of an audit."""
    found = build(audit)
    return Page(
        title=found.headline,
        lede=found.lede,
        kind="Audit",
        verb="audit",
        head=(found,),
        sections=(),
        run="audit",
    )


def junit(audit: Audit) -> str:
    """Return an audit as JUnit XML: one test case per check, failed where it found something."""
    ids = list(dict.fromkeys(judgement.id for judgement in audit.judgements))
    compared = list(dict.fromkeys(f.id for f in audit.findings if f.kind == "consistency"))
    suite = ElementTree.Element("testsuite", name=f"wulf audit ({audit.profile})")
    failures = skipped = errors = 0
    for name in [*ids, *compared]:
        found = [finding for finding in audit.findings if finding.id == name]
        judged = [judgement for judgement in audit.judgements if judgement.id == name]
        title = found[0].title if found else judged[0].title
        case = ElementTree.SubElement(suite, "testcase", classname="wulf.checks", name=f"{name}: {title}")
        unknown = [judgement for judgement in judged if judgement.status == "unknown"]
        if any(finding.severity != "info" for finding in found):
            failures += 1
            message = "; ".join(f"{fold(finding.nodes)}: {finding.found}" for finding in found)
            child = ElementTree.SubElement(case, "failure", message=_xml(message))
            child.text = _xml(
                "\n".join(f"{finding.wanted}\n{finding.why}\n{finding.fix}" for finding in found)
            )
        elif any(judgement.severity in SERIOUS for judgement in unknown):
            # A gate takes what is skipped for passed.
            errors += 1
            ElementTree.SubElement(case, "error", message=_reasons_of(unknown))
        elif unknown or all(judgement.status == "not applicable" for judgement in judged):
            skipped += 1
            ElementTree.SubElement(case, "skipped", message=_reasons_of(unknown or judged))
        elif found:
            ElementTree.SubElement(case, "system-out").text = _xml("; ".join(f.found for f in found))
    for nodes, reason in _reasons(audit.unreachable):
        errors += 1
        case = ElementTree.SubElement(suite, "testcase", classname="wulf.checks", name=f"{nodes} answers")
        ElementTree.SubElement(case, "error", message=_xml(reason))
    for name, number in (
        ("failures", failures),
        ("skipped", skipped),
        ("errors", errors),
        ("tests", len(suite)),
    ):
        suite.set(name, str(number))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _reasons_of(judged: Sequence[Judgement]) -> str:
    return _xml("; ".join(f"{fold(judgement.nodes)}: {judgement.reason}" for judgement in judged))


def _xml(text: str) -> str:
    return printable(text, 4 * _LIMIT)


def matches(audit: Audit, severities: Sequence[str]) -> bool:
    """Whether there is a finding of one of these severities."""
    return any(finding.severity in severities for finding in audit.findings)

"""What was mended, as people read it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from wulf.base.nodeset import fold
from wulf.base.records import Finding, Mending, Unmended
from wulf.base.text import count, printable
from wulf.page.blocks import Notes, Page, Verdict
from wulf.page.parts import Flag
from wulf.page.sections import mending
from wulf.page.words import listed, sentence

_LIMIT = 500
NOTHING = "nothing that is certainly wrong was found"


def intentions(findings: Sequence[Finding], well: Sequence[str]) -> Notes:
    """Return what is to be mended, and what was named and needs nothing."""
    lines = [f"to be mended: {_named(finding)}" for finding in findings]
    lines += [f"{printable(name, 200)}: nothing to mend, no node has this finding" for name in well]
    return Notes(tuple(lines or [NOTHING]))


def refusals(refused: Sequence[Unmended]) -> Notes:
    """Return what could be mended and is not."""
    return Notes(
        tuple(f"not mended: {_named(one.finding)}: {printable(one.reason, _LIMIT)}" for one in refused)
    )


def build(found: Mending) -> Page:
    """Return what mending brought, and what is left for others."""
    answer, flag = _answer(found)
    effects = [mending.table(found, "Change of the time, with its 95 % interval")] if found.effects else []
    return Page(
        title=answer,
        lede="",
        kind="Mending",
        verb="mend",
        head=(Verdict(flag, (*_how(found), *_left(found))), *effects),
        sections=(),
        run="mend",
    )


def _answer(found: Mending) -> tuple[str, Flag]:
    """Return what became of what was to be mended, and how it is marked."""
    outcome = found.outcome
    remaining = {(finding.id, node) for finding in found.left for node in finding.nodes}
    done = [one for one in found.findings if not remaining & {(one.id, node) for node in one.nodes}]
    mended = f"{count(len(done), 'finding') if done else 'nothing'} mended"
    if outcome is None:
        if not (found.findings or found.refused or found.left or found.unreachable or found.unseen):
            return sentence(NOTHING), "good"
        refused = f"; {count(len(found.refused), 'finding')} refused" if found.refused else ""
        return f"Nothing was changed{refused}", "warning"
    if not outcome.kept:
        return f"Not mended: {printable(outcome.reason, _LIMIT) or 'no reason was given'}", "error"
    if found.unseen:
        return f"{sentence(mended)}; what is left is not known", "unknown"
    if found.left or found.unreachable:
        silent = count(len(found.unreachable), "node")
        parts = [
            f"{count(len(found.left), 'finding')} still there" if found.left else "",
            f"{silent} did not answer" if found.unreachable else "",
        ]
        return f"{sentence(mended)}; {', '.join(filter(None, parts))}", "warning"
    return sentence(mended), "good"


def _left(found: Mending) -> list[str]:
    """Return what is left, and of which nodes nothing is known."""
    if found.unseen:
        return [f"what is left is not known (wulf audit): {printable(found.unseen, _LIMIT)}"]
    lines = [f"still there: {_named(finding)}" for finding in found.left]
    for node, reason in found.unreachable.items():
        why = printable(reason, _LIMIT).removeprefix(f"{node}: ")
        lines.append(f"{printable(node)}: not looked at, it may be wrong, too: {why}")
    return [*lines, rest(found)]


def _named(finding: Finding) -> str:
    return f"{printable(finding.title, 200)} on {fold(finding.nodes)} [{finding.id}]"


def _how(found: Mending) -> list[str]:
    """Return how it was measured what mending did, or why not."""
    if not found.blocks:
        kept = found.outcome is not None and found.outcome.kept
        said = printable(found.unmeasured, _LIMIT)
        return [f"its effect was not measured: {said}"] if kept and said else []
    pairs = listed(["–".join(map(printable, pair)) for pair in found.pairs])
    lines = [
        f"measured {count(found.blocks, 'time')} with it and as often without, alternately, between {pairs}"
    ]
    if found.failed_before or found.failed_after:
        lines.append(f"failed: {found.failed_before} without it, {found.failed_after} with it")
        lines += [printable(reason, _LIMIT) for reason in found.failures]
    return lines


def rest(found: Mending) -> str:
    """Say how many findings wulf does not mend, and who looks after them."""
    tried = sum(finding.remedy == "try" for finding in found.others)
    person = sum(finding.remedy == "person" for finding in found.others)
    parts = [
        f"{count(tried, 'finding')} worth trying (wulf tune)" if tried else "",
        f"{count(person, 'finding')} that need a manual fix (wulf audit)" if person else "",
    ]
    return f"left: {' and '.join(filter(None, parts))}" if tried or person else "no other finding is left"

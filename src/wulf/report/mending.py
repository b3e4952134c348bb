"""What was mended, as people read it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from wulf.nodeset import fold
from wulf.records import Audit, Mending, Unmended
from wulf.report.words import count, listed
from wulf.text import printable
from wulf.units import format_change

_LIMIT = 500


def refusals(refused: Sequence[Unmended], console: Console) -> None:
    """Print what could be mended and is not."""
    for one in refused:
        title = f"not mended: {one.finding.title} [{one.finding.id}]"
        console.print(Text(f"{printable(title, 200)}: {printable(one.reason, _LIMIT)}", style="yellow"))


def text(found: Mending, audit: Audit, console: Console) -> None:
    """Print what mending brought, and what is left for others.

    Parameters
    ----------
    audit
        From before.
    """
    if not found.findings and not found.refused:
        console.print("nothing that is wrong for certain was found")
    for line in effect_lines(found):
        console.print(Text(line))
    for finding in found.left:
        console.print(
            Text(f"still there: {printable(finding.title, 200)} on {fold(finding.nodes)}", style="red")
        )
    console.print(Text(rest(audit)))


def effect_lines(found: Mending) -> list[str]:
    """Return what mending did to every figure, in a line each."""
    if not found.blocks:
        return []
    pairs = listed(["–".join(pair) for pair in found.pairs])
    lines = [
        f"measured {found.blocks} times with it and {found.blocks} times without, in turn, between {pairs}; time:"
    ]
    if found.failed_before or found.failed_after:
        lines.append(f"  failed: {found.failed_before} without it, {found.failed_after} with it")
        lines += [f"    {printable(reason, _LIMIT)}" for reason in found.failures]
    lines += [
        f"  {effect.metric}: {format_change(effect.ratio)}, {effect.verdict}" for effect in found.effects
    ]
    return lines


def rest(audit: Audit) -> str:
    """Say how many findings wulf does not mend, and who looks after them."""
    tried = sum(finding.remedy == "try" for finding in audit.findings)
    person = sum(finding.remedy == "person" for finding in audit.findings)
    parts = [
        f"{count(tried, 'finding')} worth trying (wulf tune)" if tried else "",
        f"{count(person, 'finding')} for a person (wulf audit)" if person else "",
    ]
    return f"left: {' and '.join(filter(None, parts))}" if tried or person else "no other finding"

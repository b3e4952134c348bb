"""What was mended, as people read it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from wulf.base.nodeset import fold
from wulf.base.records import Finding, Mending, Unmended
from wulf.base.text import printable
from wulf.base.units import format_change
from wulf.page.words import count, listed

_LIMIT = 500
NOTHING = "nothing that is wrong for certain was found"


def intentions(findings: Sequence[Finding], well: Sequence[str], console: Console) -> None:
    """Print what is to be mended, and what was named and needs nothing."""
    for finding in findings:
        console.print(Text(f"to be mended: {_named(finding)}"))
    for name in well:
        console.print(Text(f"{printable(name, 200)}: nothing to mend, no node has this finding"))
    if not findings and not well:
        console.print(NOTHING)


def refusals(refused: Sequence[Unmended], console: Console) -> None:
    """Print what could be mended and is not."""
    for one in refused:
        console.print(
            Text(f"not mended: {_named(one.finding)}: {printable(one.reason, _LIMIT)}", style="yellow")
        )


def text(found: Mending, console: Console) -> None:
    """Print what mending brought, and what is left for others."""
    for line in effect_lines(found):
        console.print(Text(line))
    if found.unseen:
        console.print(
            Text(f"what is left is not known (wulf audit): {printable(found.unseen, _LIMIT)}", style="red")
        )
        return
    for finding in found.left:
        console.print(Text(f"still there: {_named(finding)}", style="red"))
    for node, reason in found.unreachable.items():
        why = printable(reason, _LIMIT).removeprefix(f"{node}: ")
        console.print(Text(f"{node}: not looked at, it may be wrong, too: {why}", style="red"))
    console.print(Text(rest(found)))


def _named(finding: Finding) -> str:
    return f"{printable(finding.title, 200)} on {fold(finding.nodes)} [{finding.id}]"


def effect_lines(found: Mending) -> list[str]:
    """Return what mending did to every figure, in a line each."""
    if not found.blocks:
        kept = found.outcome is not None and found.outcome.kept
        return [f"not measured what it brought: {found.unmeasured}"] if kept and found.unmeasured else []
    pairs = listed(["–".join(pair) for pair in found.pairs])
    lines = [
        f"measured {found.blocks} times with it and {found.blocks} times without, in turn, between {pairs}"
        + ("; change of the time with its 95 % interval:" if found.effects else "")
    ]
    if found.failed_before or found.failed_after:
        lines.append(f"  failed: {found.failed_before} without it, {found.failed_after} with it")
        lines += [f"    {printable(reason, _LIMIT)}" for reason in found.failures]
    lines += [
        f"  {effect.metric}: {format_change(effect.ratio)}, {effect.verdict}" for effect in found.effects
    ]
    return lines


def rest(found: Mending) -> str:
    """Say how many findings wulf does not mend, and who looks after them."""
    tried = sum(finding.remedy == "try" for finding in found.others)
    person = sum(finding.remedy == "person" for finding in found.others)
    parts = [
        f"{count(tried, 'finding')} worth trying (wulf tune)" if tried else "",
        f"{count(person, 'finding')} to be mended by hand (wulf audit)" if person else "",
    ]
    return f"left: {' and '.join(filter(None, parts))}" if tried or person else "no other finding is left"

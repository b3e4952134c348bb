"""What was set right before the search, and what that brought.  Pure."""

from __future__ import annotations

from wulf.base.nodeset import fold
from wulf.base.records import Mending
from wulf.base.text import count, printable
from wulf.page.parts import Table
from wulf.page.sections import mending
from wulf.page.words import listed

_LIMIT = 300


def table(found: Mending) -> Table:
    """Return one row for every figure that was measured with and without it."""
    return mending.table(found, "Set right before the search", _note(found))


def _note(found: Mending) -> str:
    done = [
        f"{', '.join(f'{knob}={value}' for knob, value in finding.settings.items())} on {fold(finding.nodes)} "
        f"({finding.title})"
        for finding in found.findings
    ]
    words = []
    if found.outcome is not None and not found.outcome.kept:
        words.append(f"It was put back: {found.outcome.reason}.")
    if done:
        words.append(f"{listed(done)}.")
    if found.blocks:
        pairs = listed(["–".join(pair) for pair in found.pairs])
        words.append(
            f"Measured {count(found.blocks, 'time')} with it and as often without, in turn: {pairs}."
        )
    if found.failed_before or found.failed_after:
        words.append(
            f"{found.failed_before} of them failed without it, {found.failed_after} with it: {listed(found.failures)}."
        )
    if found.unseen:
        words.append(f"What is left is not known: {found.unseen}.")
    words += [f"Not mended: {one.finding.title}: {one.reason}." for one in found.refused]
    return printable(" ".join(words), 4 * _LIMIT)

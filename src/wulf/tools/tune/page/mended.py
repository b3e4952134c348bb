"""What was set right before the search, and what that brought.  Pure."""

from __future__ import annotations

from wulf.base.nodeset import fold
from wulf.base.records import Mending
from wulf.base.text import printable
from wulf.base.units import format_change
from wulf.page.parts import Column, Item, Table
from wulf.page.words import FLAGS, listed

_LIMIT = 300


def table(found: Mending) -> Table:
    """Return one row for every figure that was measured with and without it."""
    return Table(
        title="Set right before the search",
        columns=(Column("figure"), Column("change of the time", numeric=True), Column("verdict")),
        rows=tuple(
            (
                Item(printable(effect.metric, _LIMIT)),
                Item(format_change(effect.ratio), effect.ratio.value),
                Item(effect.verdict, flag=FLAGS[effect.verdict]),
            )
            for effect in found.effects
        ),
        note=_note(found),
        empty=f"it was not measured what that brought: {found.unmeasured}"
        if found.unmeasured
        else "no figure",
    )


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
            f"Measured {found.blocks} times with it and {found.blocks} times without, in turn: {pairs}."
        )
    if found.failed_before or found.failed_after:
        words.append(
            f"{found.failed_before} of them failed without it, {found.failed_after} with it: {listed(found.failures)}."
        )
    if found.unseen:
        words.append(f"What is left is not known: {found.unseen}.")
    words += [f"Not mended: {one.finding.title}: {one.reason}." for one in found.refused]
    return printable(" ".join(words), 4 * _LIMIT)

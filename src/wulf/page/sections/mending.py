"""What mending brought, figure by figure. Pure."""

from __future__ import annotations

from wulf.base.records import Mending
from wulf.base.text import printable
from wulf.base.units import format_change
from wulf.page.parts import Column, Item, Table
from wulf.page.words import FLAGS

_LIMIT = 300


def table(found: Mending, title: str, note: str = "") -> Table:
    """Return one row for every figure that was measured with and without it."""
    return Table(
        title=title,
        columns=(Column("figure"), Column("change of the time", numeric=True), Column("verdict")),
        rows=tuple(
            (
                Item(printable(effect.metric, _LIMIT)),
                Item(format_change(effect.ratio), effect.ratio.value),
                Item(effect.verdict, flag=FLAGS[effect.verdict]),
            )
            for effect in found.effects
        ),
        note=note,
        empty=f"its effect was not measured: {printable(found.unmeasured, _LIMIT)}"
        if found.unmeasured
        else "no figure",
    )

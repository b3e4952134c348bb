"""How it is shown: text, page and the other forms are made of these blocks."""

from __future__ import annotations

from wulf.tools.goodput.record import Goodput

from wulf.base.units import format_bandwidth, format_bytes
from wulf.page.blocks import Page, Section
from wulf.page.parts import Column, Item, Table


def build(found: Goodput) -> Page:
    """Return all that is shown."""
    best = max(found.by_mtu, key=lambda one: one.share)
    table = Table(
        title="Goodput by MTU",
        columns=(
            Column("MTU", numeric=True),
            Column("goodput", numeric=True),
            Column("of line rate", numeric=True),
        ),
        rows=tuple(
            (
                Item(format_bytes(one.mtu_bytes)),
                Item(format_bandwidth(one.bytes_per_s)),
                Item(f"{one.share:.1%}"),
            )
            for one in found.by_mtu
        ),
    )
    return Page(
        title=f"An MTU of {format_bytes(best.mtu_bytes)} leaves {best.share:.1%} of the line rate",
        lede=f"Full TCP segments over Ethernet at {format_bandwidth(found.line_bytes_per_s)}.",
        kind="Goodput",
        verb="bench goodput",
        head=(),
        sections=(Section("goodput", "Goodput", (table,)),),
    )

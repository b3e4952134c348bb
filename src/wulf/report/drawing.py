"""What all drawings share: axes with our own labels, and the names of the verdicts."""

from __future__ import annotations

import json
from typing import Any

import altair as alt

from wulf.report.parts import Ticks

Layer = alt.Chart | alt.LayerChart | alt.FacetChart

VERDICTS = ("better", "no difference", "no decision", "worse")
#: A setting that helps what was asked for and hurts what must not become worse.
HARMS = "harms a guard"


def axis(ticks: Ticks, title: str | list[str], **options: Any) -> alt.Axis:
    """Return an axis whose marks and labels were made by `wulf.units`."""
    if not ticks.values:
        return alt.Axis(title=title, **options)
    values = list(ticks.values)
    lookup = (
        f"{json.dumps(list(ticks.labels), ensure_ascii=False)}[indexof({json.dumps(values)}, datum.value)]"
    )
    return alt.Axis(title=title, values=values, labelExpr=lookup, **options)

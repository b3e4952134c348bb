"""What all charts share: a figure as a Vega-Lite specification, axes with our own labels, names of the verdicts.

Charts write ``x2=alt.X2("high:Q")``, not ``x2="high:Q"``: to find the class of a text Altair goes through all that it
has, which takes 5 ms each time, and took 18 of 44 ms of a page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from wulf.page.chart_libraries import altair as alt
from wulf.page.parts import Drawing, Figure, Ticks

Layer: TypeAlias = "alt.Chart | alt.LayerChart | alt.FacetChart"

VERDICTS = ("better", "no difference", "no decision", "worse")
#: Channels of an encoding whose scale a legend explains.
_WITH_LEGEND = frozenset({"color", "shape", "strokeDash"})
#: A setting that helps what was asked for and hurts what must not become worse.
HARMS = "harms a guarded metric"


def spec(figure: Figure) -> dict[str, Any]:
    """Return the specification of a figure without data; width, datasets and theme are set where it is shown."""
    return _specification(figure, figure.chart.wide)


def narrow(figure: Figure) -> dict[str, Any] | None:
    """Return the specification for a telephone and for paper, where it is another one."""
    return _specification(figure, figure.chart.narrow) if figure.chart.narrow else None


def _specification(figure: Figure, drawing: Drawing) -> dict[str, Any]:
    # Tests hold every chart against the schema (test_pages.py): here it would take 20 ms of each page.
    drawn: dict[str, Any] = drawing.draw(figure).to_dict(validate=False)
    # Altair adds a theme of its own and a sample size; ours comes with the page.
    drawn.pop("config", None)
    _legends(drawn, _shown(figure))
    drawn["autosize"] = {"type": "fit", "contains": "padding", "resize": True}
    drawn["height"] = drawing.height(figure)
    drawn["width"] = 680
    return drawn


def _shown(figure: Figure) -> dict[str, set[Any]]:
    """Return what the columns of a figure have, in any of its datasets and variants."""
    found: dict[str, set[Any]] = {}
    for variant in figure.variants:
        for columns in variant.datasets.values():
            for column, values in columns.items():
                found.setdefault(column, set()).update(values)
    return found


def _legends(drawn: Any, shown: Mapping[str, set[Any]]) -> None:
    """Let legends name what the figure shows, and nothing else of their scales' domains."""
    if isinstance(drawn, list):
        for part in drawn:
            _legends(part, shown)
    elif isinstance(drawn, dict):
        for channel in _WITH_LEGEND & drawn.keys():
            _legend(drawn[channel], shown)
        for part in drawn.values():
            _legends(part, shown)


def _legend(encoding: Any, shown: Mapping[str, set[Any]]) -> None:
    if not isinstance(encoding, dict) or encoding.get("type") != "nominal":
        return
    domain = (encoding.get("scale") or {}).get("domain")
    if domain is None or encoding.get("field") not in shown or encoding.get("legend", {}) is None:
        return
    values = [one for one in domain if one in shown[encoding["field"]]]
    encoding["legend"] = {**encoding.get("legend", {}), "values": values}


def axis(ticks: Ticks, title: str | list[str], **options: Any) -> alt.Axis:
    """Return an axis whose marks and labels were made by `wulf.base.units`."""
    if not ticks.values:
        return alt.Axis(title=title, **options)
    values = list(ticks.values)
    lookup = (
        f"{json.dumps(list(ticks.labels), ensure_ascii=False)}[indexof({json.dumps(values)}, datum.value)]"
    )
    return alt.Axis(title=title, values=values, labelExpr=lookup, **options)

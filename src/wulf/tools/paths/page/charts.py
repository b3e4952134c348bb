"""Drawing of a fabric: nodes below, switches above by how far they are, links between, what is bad in red."""

from __future__ import annotations

from wulf.page.chart_libraries import altair as alt
from wulf.page.drawing import Layer
from wulf.page.parts import Chart, Drawing, Figure

#: As the verdicts are: nothing wrong, suffers.
_STATES, _COLOURS = ["as usual", "bad"], ["#8d8a80", "#c2360f"]
_TIER = 110
#: Names are written aslant from so many in a row on.
_CROWDED = 10


def _fabric(figure: Figure) -> Layer:
    links, places = alt.Chart(alt.NamedData("links")), alt.Chart(alt.NamedData("main"))
    x = alt.X("x:Q", axis=None, scale=alt.Scale(zero=False, padding=40))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(zero=False, padding=30))
    colour = alt.Color(
        "state:N",
        scale=alt.Scale(domain=_STATES, range=_COLOURS),
        legend=alt.Legend(title=None, orient="top"),
    )
    width = alt.condition("datum.state == 'bad'", alt.value(3), alt.value(1))
    lines = links.mark_rule().encode(
        x=x,
        x2="x2:Q",
        y=y,
        y2="y2:Q",
        color=colour,
        strokeWidth=width,
        tooltip=[alt.Tooltip("name:N", title="link"), alt.Tooltip("flows:Q", title="flows that pass it")],
    )
    marks = places.mark_point(filled=True, size=160, opacity=1).encode(
        x=x,
        y=y,
        color=colour,
        shape=alt.Shape(
            "kind:N",
            scale=alt.Scale(domain=["node", "switch"], range=["circle", "square"]),
            legend=alt.Legend(title=None, orient="top"),
        ),
        tooltip=[alt.Tooltip("name:N"), alt.Tooltip("flows:Q", title="flows that pass it")],
    )
    crowded = _widest(figure) > _CROWDED
    said = places.mark_text(
        dy=18,
        baseline="top",
        align="right" if crowded else "center",
        angle=315 if crowded else 0,
        fontSize=11,
    ).encode(x=x, y=y, text="name:N", color=colour)
    return alt.layer(lines, marks, said)


def _widest(figure: Figure) -> int:
    rows = list(figure.variants[0].datasets["main"]["y"])
    return max((rows.count(row) for row in set(rows)), default=0)


def _high(figure: Figure) -> int:
    return 90 + _TIER * len(set(figure.variants[0].datasets["main"]["y"]))


FABRIC = Chart("paths-fabric", Drawing(_fabric, _high))

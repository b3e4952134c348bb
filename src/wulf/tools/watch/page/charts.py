"""Drawings of what a watch has seen: levels over time, nodes by run."""

from __future__ import annotations

from wulf.page.chart_libraries import altair as alt
from wulf.page.drawing import Layer, axis
from wulf.page.parts import Chart, Drawing, Figure

_ROW = 18
#: Faster, as usual, slower: as in the verdicts.
_COLOURS = ["#00795a", "#e9e6de", "#c2360f"]


def _history(figure: Figure) -> Layer:
    base = alt.Chart(alt.NamedData("main"))
    x = alt.X("at:T", axis=alt.Axis(title=None, format="%d %b %y", tickCount=8))
    y = alt.Y("ratio:Q", scale=alt.Scale(zero=False), axis=axis(figure.y, figure.y_title))
    colour = alt.Color("series:N", legend=alt.Legend(title=None))
    tooltip = [
        alt.Tooltip("series:N"),
        alt.Tooltip("local:N", title="run"),
        alt.Tooltip("shown:N", title="change"),
    ]
    line = base.mark_line(strokeWidth=1, opacity=0.5).encode(x=x, y=y, color=colour)
    points = base.mark_point(filled=True, size=22).encode(x=x, y=y, color=colour, tooltip=tooltip)
    usual = base.mark_rule(strokeDash=[4, 3]).encode(y=alt.YDatum(1))
    marks = alt.Chart(alt.NamedData("marks"))
    rules = marks.mark_rule(strokeWidth=2, opacity=0.7).encode(
        x=alt.X("at:T"),
        tooltip=[alt.Tooltip("what:N"), alt.Tooltip("facts:N", title="changed then")],
    )
    said = marks.mark_text(align="left", dx=4, baseline="top", fontSize=11).encode(
        x=alt.X("at:T"), y=alt.value(2), text=alt.Text("label:N")
    )
    return alt.layer(usual, line, points, rules, said)


def _nodes(figure: Figure) -> Layer:
    most = max(0.05, *(abs(float(value or 0)) for value in figure.variants[0].datasets["main"]["change"]))
    scale = alt.Scale(domain=[-most, 0, most], range=_COLOURS)
    drawn: Layer = (
        alt.Chart(alt.NamedData("main"))
        .mark_rect()
        .encode(
            x=alt.X("run:O", axis=alt.Axis(title=figure.x_title, labelOverlap="greedy", labelAngle=0)),
            y=alt.Y("node:N", sort=None, axis=alt.Axis(title=None, labelLimit=160, labelOverlap="greedy")),
            color=alt.Color(
                "change:Q", scale=scale, legend=alt.Legend(title="against what is usual", format="+.0%")
            ),
            tooltip=[
                alt.Tooltip("node:N"),
                alt.Tooltip("local:N", title="run"),
                alt.Tooltip("shown:N", title="change"),
            ],
        )
    )
    return drawn


def _nodes_high(figure: Figure) -> int:
    return 120 + _ROW * len(set(figure.variants[0].datasets["main"]["node"]))


HISTORY = Chart("watch-history", Drawing(_history, lambda _: 260))
NODES = Chart("watch-nodes", Drawing(_nodes, _nodes_high))

"""The chart of a comparison."""

from __future__ import annotations

from wulf.page.chart_libraries import altair as alt
from wulf.page.drawing import VERDICTS, Layer, axis
from wulf.page.parts import Chart, Drawing, Figure

ROW_HEIGHT = 18


def _height(figure: Figure) -> int:
    rows = max(len(variant.datasets["main"]["ratio"]) for variant in figure.variants)
    return 110 + ROW_HEIGHT * rows


def _forest(figure: Figure) -> Layer:
    # A row is a size of one place or, of what varies nothing, a place.
    row = "place:N" if "place" in figure.variants[0].datasets["main"] else "size:N"
    labelled = alt.Axis(title=figure.y_title, grid=True, ticks=False, labelLimit=260)
    base = alt.Chart(alt.NamedData("main")).encode(y=alt.Y(row, sort=None, axis=labelled))
    low = alt.X("low:Q", scale=alt.Scale(zero=False), axis=axis(figure.x, figure.x_title, grid=True))
    limits = alt.Chart(alt.NamedData("limits"))
    margin = limits.mark_rect(opacity=0.12).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"))
    one = limits.mark_rule(strokeDash=[3, 3]).encode(x=alt.X("one:Q"))
    verdicts = [*VERDICTS, "different"]
    color = alt.Color("verdict:N", scale=alt.Scale(domain=verdicts, range="ordinal"))
    shapes = alt.Scale(domain=verdicts, range=["triangle-down", "circle", "diamond", "triangle-up", "square"])
    spans = base.mark_rule(strokeWidth=2).encode(x=low, x2=alt.X2("high:Q"), color=color)
    points = base.mark_point(filled=True, size=55, opacity=1).encode(
        x=alt.X("ratio:Q"),
        color=color,
        shape=alt.Shape("verdict:N", scale=shapes),
        tooltip=[alt.Tooltip(row), alt.Tooltip("change:N"), alt.Tooltip("verdict:N")],
    )
    return alt.layer(margin, one, spans, points)


FOREST = Chart("forest", Drawing(_forest, _height))

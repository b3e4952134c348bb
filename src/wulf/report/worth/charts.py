"""Drawings of what networks are worth: net value with intervals, and what it depends on."""

from __future__ import annotations

from wulf.report import theme
from wulf.report.drawing import Layer
from wulf.report.libraries import altair as alt
from wulf.report.parts import Chart, Drawing, Figure

_ROW = 34
_VERDICTS = ["pays", "cannot be told", "does not pay"]


def _axis(figure: Figure) -> alt.Axis:
    return alt.Axis(title=figure.x_title, format="~s")


def _net(figure: Figure) -> Layer:
    base = alt.Chart(alt.NamedData("main"))
    y = alt.Y("network:N", sort=None, axis=alt.Axis(title=None, labelLimit=220))
    legend = alt.Legend(title=None)
    color = alt.Color("verdict:N", scale=alt.Scale(domain=_VERDICTS), legend=legend)
    zero = base.mark_rule(strokeDash=[4, 3]).encode(x=alt.datum(0))
    lines = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", axis=_axis(figure)), x2="high:Q", y=y, color=color
    )
    points = base.mark_point(filled=True, size=70).encode(
        x="net:Q",
        y=y,
        color=color,
        shape=alt.Shape("verdict:N", scale=alt.Scale(domain=_VERDICTS), legend=legend),
        tooltip=[alt.Tooltip(f"{name}:N") for name in ("network", "shown", "verdict")],
    )
    return alt.layer(zero, lines, points)


def _rows_high(name: str, lines: int) -> Drawing:
    draw = {"network": _net, "input": _tornado}[name]
    return Drawing(draw, lambda figure: lines + _ROW * len(set(figure.variants[0].datasets["main"][name])))


def _tornado(figure: Figure) -> Layer:
    base = alt.Chart(alt.NamedData("main"))
    y = alt.Y("input:N", sort=None, axis=alt.Axis(title=None, labelLimit=260))
    bars = base.mark_bar(height=14).encode(
        x=alt.X("likely:Q", axis=_axis(figure), scale=alt.Scale(zero=False)),
        x2="net:Q",
        y=y,
        color=alt.Color("end:N", legend=alt.Legend(title=None)),
        tooltip=[alt.Tooltip(f"{name}:N") for name in ("input", "end", "shown")],
    )
    likely = base.mark_rule().encode(x="likely:Q")
    zero = base.mark_rule(strokeDash=[4, 3]).encode(x=alt.datum(0))
    return alt.layer(bars, likely, zero)


def _by_price(figure: Figure) -> Layer:
    color = alt.Color("network:N", legend=alt.Legend(title=None))
    x = alt.X("price:Q", axis=_axis(figure), scale=alt.Scale(nice=False))
    y = alt.Y("net:Q", axis=alt.Axis(title=figure.y_title, format="~s"))
    base = alt.Chart(alt.NamedData("main"))
    bands = base.mark_area(opacity=0.12).encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=color)
    lines = base.mark_line().encode(
        x=x,
        y=y,
        color=color,
        strokeDash=alt.StrokeDash("network:N", scale=alt.Scale(range=list(theme.DASHES)), legend=None),
    )
    zero = base.mark_rule(strokeDash=[4, 3]).encode(y=alt.datum(0))
    now = alt.Chart(alt.NamedData("now"))
    bars = now.mark_rule(strokeWidth=2).encode(x="cheapest:Q", x2="dearest:Q", y="net:Q", color=color)
    points = now.mark_point(filled=True, size=70).encode(
        x="price:Q",
        y="net:Q",
        color=color,
        tooltip=[alt.Tooltip("network:N"), alt.Tooltip("shown:N")],
    )
    return alt.layer(bands, zero, lines, bars, points)


BY_PRICE = Chart("worth-by-price", Drawing(_by_price, lambda _: 360))
NET = Chart("worth-net", _rows_high("network", 110))
TORNADO = Chart("worth-tornado", _rows_high("input", 110))

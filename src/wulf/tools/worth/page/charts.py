"""Drawings of what networks are worth: net value with intervals, and what it depends on."""

from __future__ import annotations

from collections.abc import Callable

from wulf.page.chart_libraries import altair as alt
from wulf.page.drawing import Layer
from wulf.page.parts import Chart, Drawing, Figure

_ROW = 34
#: At the places of the colours of verdicts (`wulf.page.theme`): better, no difference, no decision, worse.
_VERDICTS = ["pays", "", "cannot be told", "does not pay"]
PRICES = ("it pays at up to", "it costs today")


def _axis(figure: Figure) -> alt.Axis:
    return alt.Axis(title=figure.x_title, format="~s")


def _net(figure: Figure) -> Layer:
    base = alt.Chart(alt.NamedData("main"))
    y = alt.Y("network:N", sort=None, axis=alt.Axis(title=None, labelLimit=220))
    legend = alt.Legend(title=None)
    color = alt.Color("verdict:N", scale=alt.Scale(domain=_VERDICTS, range="ordinal"), legend=legend)
    zero = base.mark_rule(strokeDash=[4, 3]).encode(x=alt.XDatum(0))
    lines = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", axis=_axis(figure)), x2=alt.X2("high:Q"), y=y, color=color
    )
    points = base.mark_point(filled=True, size=70).encode(
        x=alt.X("net:Q"),
        y=y,
        color=color,
        shape=alt.Shape("verdict:N", scale=alt.Scale(domain=_VERDICTS), legend=legend),
        tooltip=[alt.Tooltip(f"{name}:N") for name in ("network", "shown", "verdict")],
    )
    return alt.layer(zero, lines, points)


def _rows_high(draw: Callable[[Figure], Layer], column: str) -> Drawing:
    return Drawing(draw, lambda figure: 110 + _ROW * len(set(figure.variants[0].datasets["main"][column])))


def _tornado(figure: Figure) -> Layer:
    base = alt.Chart(alt.NamedData("main"))
    y = alt.Y("input:N", sort=None, axis=alt.Axis(title=None, labelLimit=260))
    bars = base.mark_bar(height=14).encode(
        x=alt.X("likely:Q", axis=_axis(figure), scale=alt.Scale(zero=False)),
        x2=alt.X2("net:Q"),
        y=y,
        color=alt.Color("end:N", legend=alt.Legend(title=None)),
        tooltip=[alt.Tooltip(f"{name}:N") for name in ("input", "end", "shown")],
    )
    likely = base.mark_rule().encode(x=alt.X("likely:Q"))
    zero = base.mark_rule(strokeDash=[4, 3]).encode(x=alt.XDatum(0))
    return alt.layer(bars, likely, zero)


def _ports(figure: Figure) -> Layer:
    base = alt.Chart(alt.NamedData("main"))
    y = alt.Y("network:N", sort=None, axis=alt.Axis(title=None, labelLimit=220))
    offset = alt.YOffset("of:N", sort=list(PRICES))
    legend = alt.Legend(title=None)
    color = alt.Color("of:N", scale=alt.Scale(domain=PRICES), legend=legend)
    zero = base.mark_rule(strokeDash=[4, 3]).encode(x=alt.XDatum(0))
    lines = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", axis=alt.Axis(title=figure.x_title, format=",d", tickCount=10)),
        x2=alt.X2("high:Q"),
        y=y,
        yOffset=offset,
        color=color,
    )
    points = base.mark_point(filled=True, size=70).encode(
        x=alt.X("price:Q"),
        y=y,
        yOffset=offset,
        color=color,
        shape=alt.Shape("of:N", scale=alt.Scale(domain=PRICES), legend=legend),
        tooltip=[alt.Tooltip(f"{name}:N") for name in ("network", "of", "shown")],
    )
    return alt.layer(zero, lines, points)


PORTS = Chart("worth-ports", _rows_high(_ports, "network"))
NET = Chart("worth-net", _rows_high(_net, "network"))
TORNADO = Chart("worth-tornado", _rows_high(_tornado, "input"))

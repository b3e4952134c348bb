"""Drawings of a prediction: changes with intervals, parts of the longest path, time by latency."""

from __future__ import annotations

from wulf.report.drawing import Layer, axis
from wulf.report.libraries import altair as alt
from wulf.report.parts import Chart, Drawing, Figure

_ROW = 30
_VERDICTS = ["faster", "no difference", "cannot be told", "slower"]
_PARTS = ["computing", "latency", "bandwidth", "CPU of messages"]


def _names() -> alt.Axis:
    return alt.Axis(title=None, labelLimit=220)


def _changes(figure: Figure) -> Layer:
    base = alt.Chart(alt.NamedData("main"))
    y = alt.Y("network:N", sort=None, axis=_names())
    color = alt.Color(
        "verdict:N",
        scale=alt.Scale(domain=_VERDICTS, range="ordinal"),
        legend=alt.Legend(title=None),
    )
    zero = alt.Chart(alt.NamedData("main")).mark_rule(strokeDash=[4, 3]).encode(x=alt.datum(0))
    lines = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", axis=alt.Axis(title=figure.x_title)), x2="high:Q", y=y, color=color
    )
    points = base.mark_point(filled=True, size=70).encode(
        x="change:Q",
        y=y,
        color=color,
        tooltip=[alt.Tooltip(f"{name}:N") for name in ("network", "shown", "time", "verdict")],
    )
    return alt.layer(zero, lines, points)


def _rows_high(figure: Figure) -> int:
    return 110 + _ROW * len(set(figure.variants[0].datasets["main"]["network"]))


def _shares(figure: Figure) -> Layer:
    drawn: Layer = (
        alt.Chart(alt.NamedData("main"))
        .mark_bar()
        .encode(
            x=alt.X("seconds:Q", stack="zero", axis=axis(figure.x, figure.x_title)),
            y=alt.Y("network:N", sort=None, axis=_names()),
            color=alt.Color("part:N", scale=alt.Scale(domain=_PARTS), legend=alt.Legend(title=None)),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("network:N"),
                alt.Tooltip("part:N"),
                alt.Tooltip("seconds:Q", title="seconds [s]"),
            ],
        )
    )
    return drawn


def _curve(figure: Figure) -> Layer:
    x = alt.X("latency:Q", axis=axis(figure.x, figure.x_title))
    line = (
        alt.Chart(alt.NamedData("main"))
        .mark_line(point=alt.OverlayMarkDef(size=18))
        .encode(
            x=x,
            y=alt.Y("time:Q", axis=axis(figure.y, figure.y_title)),
            tooltip=[
                alt.Tooltip("latency:Q", title="latency [s]"),
                alt.Tooltip("time:Q", title="time [s]"),
                alt.Tooltip("hops:Q", title="λ from here"),
            ],
        )
    )
    marks = alt.Chart(alt.NamedData("marks"))
    rules = marks.mark_rule(strokeDash=[4, 3]).encode(x="latency:Q", tooltip=[alt.Tooltip("shown:N")])
    labels = marks.mark_text(align="left", dx=4, baseline="top").encode(
        x="latency:Q", y=alt.value(2), text="label:N"
    )
    return alt.layer(line, rules, labels)


CHANGES = Chart("predict-changes", Drawing(_changes, _rows_high))
SHARES = Chart("predict-shares", Drawing(_shares, _rows_high))
CURVE = Chart("predict-curve", Drawing(_curve, lambda _: 330))

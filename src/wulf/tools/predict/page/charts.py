"""Drawings of a prediction: changes with intervals, parts of the longest path, time by latency."""

from __future__ import annotations

from typing import Literal

from wulf.page.chart_libraries import altair as alt
from wulf.page.drawing import Layer, axis
from wulf.page.parts import Chart, Drawing, Figure

_ROW = 30
_VERDICTS = ["faster", "no difference", "cannot be told", "slower"]
#: What is marked on a curve.
MARKS = ("now", "+1%", "+2%", "+5%")
_ACTIVITIES = ["computing", "CPU of messages", "waiting"]
#: Waiting is what a network may change: it stands out. After Okabe and Ito; 3:1 against white and dark.
_ACTIVITY_COLOURS = ["#3f86c0", "#00795a", "#d9822b"]
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
    zero = alt.Chart(alt.NamedData("main")).mark_rule(strokeDash=[4, 3]).encode(x=alt.XDatum(0))
    lines = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", axis=alt.Axis(title=figure.x_title)), x2=alt.X2("high:Q"), y=y, color=color
    )
    points = base.mark_point(filled=True, size=70).encode(
        x=alt.X("change:Q"),
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
    scale = alt.Scale(type="log" if figure.logarithmic else "linear", nice=False)
    x = alt.X("x:Q", axis=axis(figure.x, figure.x_title), scale=scale)
    y = alt.Y("time:Q", axis=axis(figure.y, figure.y_title), scale=alt.Scale(zero=False))
    line = (
        alt.Chart(alt.NamedData("main"))
        .mark_line(point=alt.OverlayMarkDef(size=18))
        .encode(
            x=x,
            y=y,
            tooltip=[
                alt.Tooltip("x:Q", title=figure.x_title),
                alt.Tooltip("time:Q", title="run time [s]"),
                alt.Tooltip("shown:N"),
            ],
        )
    )
    marks = alt.Chart(alt.NamedData("marks"))
    intervals = marks.mark_rect(opacity=0.13, clip=True).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"))
    rules = marks.mark_rule(strokeDash=[4, 3]).encode(x=alt.X("x:Q"), tooltip=[alt.Tooltip("shown:N")])
    # What a program bears is more latency than now, and less bandwidth: labels stand on the side that is free.
    side: Literal["left", "right"] = "right" if figure.logarithmic else "left"
    # Each on a line of its own: marks may be close together.
    labels = [
        marks.transform_filter(f"datum.label === '{label}'")
        .mark_text(align=side, dx=3 if side == "left" else -3, baseline="top")
        .encode(x=alt.X("x:Q"), y=alt.value(2 + 13 * place), text=alt.Text("label:N"))
        for place, label in enumerate(MARKS)
    ]
    return alt.layer(intervals, line, rules, *labels)


def _timeline(figure: Figure) -> Layer:
    domain = [0, figure.x.values[-1]]
    ranks = [0, len(figure.y.values)]
    drawn: Layer = (
        alt.Chart(alt.NamedData("main"))
        .mark_rect()
        .encode(
            x=alt.X(
                "begin:Q", axis=axis(figure.x, figure.x_title), scale=alt.Scale(domain=domain, nice=False)
            ),
            x2=alt.X2("end:Q"),
            y=alt.Y(
                "low:Q",
                axis=axis(figure.y, figure.y_title, grid=False),
                scale=alt.Scale(domain=ranks, reverse=True, nice=False),
            ),
            y2=alt.Y2("high:Q"),
            color=alt.Color(
                "activity:N",
                scale=alt.Scale(domain=_ACTIVITIES, range=_ACTIVITY_COLOURS),
                legend=alt.Legend(title=None),
            ),
            tooltip=[
                alt.Tooltip("activity:N"),
                alt.Tooltip("begin:Q", title="from [s]"),
                alt.Tooltip("end:Q", title="to [s]"),
            ],
        )
    )
    return drawn


CHANGES = Chart("predict-changes", Drawing(_changes, _rows_high))
SHARES = Chart("predict-shares", Drawing(_shares, _rows_high))
CURVE = Chart("predict-curve", Drawing(_curve, lambda _: 330))
BY_BANDWIDTH = Chart("predict-by-bandwidth", Drawing(_curve, lambda _: 330))
TIMELINE = Chart("predict-timeline", Drawing(_timeline, lambda figure: 110 + 22 * len(figure.y.values)))

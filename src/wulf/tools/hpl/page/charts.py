"""Drawings of a run of HPL: search path, surface, rate by order."""

from __future__ import annotations

from wulf.page.chart_libraries import altair as alt
from wulf.page.drawing import Layer
from wulf.page.parts import Chart, Drawing, Figure

_PHASES = ["how long problems take", "search, small", "search, larger", "fresh launches"]
_SHAPES = ["square", "circle", "triangle-up", "diamond"]
_ROW = 34


def _phase() -> tuple[alt.Color, alt.Shape]:
    return (
        alt.Color("phase:N", scale=alt.Scale(domain=_PHASES)),
        alt.Shape("phase:N", scale=alt.Scale(domain=_PHASES, range=_SHAPES)),
    )


def _path(figure: Figure) -> Layer:
    color, shape = _phase()
    base = alt.Chart(alt.NamedData("main"))
    x = alt.X(
        "launch:Q", scale=alt.Scale(nice=False, padding=8), axis=alt.Axis(title=figure.x_title, format="d")
    )
    y = alt.Y("rate:Q", axis=alt.Axis(title=figure.y_title))
    searched = base.transform_filter("isValid(datum.best)")
    lines = searched.mark_line(interpolate="step-after", opacity=0.6).encode(
        x=x, y=alt.Y("best:Q"), color=color, detail=alt.Detail("N:N")
    )
    points = base.mark_point(size=34, strokeWidth=1.5).encode(
        x=x,
        y=y,
        color=color,
        shape=shape,
        opacity=alt.condition("datum.status === 'complete'", alt.value(0.95), alt.value(0.35)),
        tooltip=[alt.Tooltip(f"{name}:N") for name in ("shown", "status", "setting", "N", "phase")],
    )
    return alt.layer(lines, points)


def _surface(figure: Figure) -> Layer:
    data = figure.variants[0].datasets["main"]
    rates = [float(rate) for rate in data["rate"] if isinstance(rate, int | float)]
    middle = (min(rates) + max(rates)) / 2
    base = alt.Chart(alt.NamedData("main")).encode(
        x=alt.X("nb:O", axis=alt.Axis(title=figure.x_title, labelAngle=0)),
        y=alt.Y("layout:N", axis=alt.Axis(title=None, labelLimit=200)),
        tooltip=[alt.Tooltip(f"{name}:N") for name in ("shown", "setting", "launches")],
    )
    color = alt.Color("rate:Q", scale=alt.Scale(zero=False), legend=alt.Legend(title="best rate [GFLOPS]"))
    words = base.mark_text(fontSize=11).encode(
        text=alt.Text("rate:Q", format=".3s"),
        color=alt.condition(f"datum.rate > {middle}", alt.value("#ffffff"), alt.value("#1c2329")),
    )
    return alt.layer(base.mark_rect().encode(color=color), words)


def _surface_high(figure: Figure) -> int:
    return 130 + _ROW * len(set(figure.variants[0].datasets["main"]["layout"]))


def _orders(figure: Figure) -> Layer:
    color, shape = _phase()
    x = alt.X("N:Q", scale=alt.Scale(zero=False, padding=12), axis=alt.Axis(title=figure.x_title, format="d"))
    y = alt.Y("rate:Q", axis=alt.Axis(title=figure.y_title))
    line = alt.Chart(alt.NamedData("medians")).mark_line(opacity=0.5).encode(x=x, y=y)
    points = (
        alt.Chart(alt.NamedData("main"))
        .mark_point(size=40, strokeWidth=1.5)
        .encode(
            x=x,
            y=y,
            color=color,
            shape=shape,
            tooltip=[alt.Tooltip(f"{name}:N") for name in ("shown", "N", "phase")],
        )
    )
    return alt.layer(line, points)


PATH = Chart("hpl-path", Drawing(_path, lambda _: 330))
SURFACE = Chart("hpl-surface", Drawing(_surface, _surface_high))
ORDERS = Chart("hpl-orders", Drawing(_orders, lambda _: 300))

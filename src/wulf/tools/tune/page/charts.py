"""Drawings of a tuning run: effects, path, before and after, trials in time."""

from __future__ import annotations

from typing import Any, Literal

from wulf.page import theme
from wulf.page.chart_libraries import altair as alt
from wulf.page.drawing import HARMS, VERDICTS, Layer, axis
from wulf.page.parts import Chart, Drawing, Figure
from wulf.tools.tune.page.input import KEPT, ORIGINAL, OTHER

Align = Literal["left", "right"]
CATEGORIES = (*VERDICTS, HARMS)
SHAPES = ("triangle-down", "circle", "diamond", "triangle-up", "cross")
GROUPS = (ORIGINAL, KEPT, OTHER)
#: Actions of a path and how they are marked.
ACTIONS = {
    "start": "circle",
    "keep": "triangle-down",
    "refine": "diamond",
    "drop": "cross",
    "revert": "triangle-up",
    "confirm": "square",
}
#: Widths of the columns beside the marks [px].
_RATIO, _WORDS, _TRIALS = 172, 280, 40
_ROW, _NARROW_ROW = 26, 42
#: Up to this width of a drawing there is no room for words beside the ratio [px].
_PHONE = 520
#: How far below the middle of its row a mark stands, and its words above it [px].
_DOWN = 9


def _rows_high(figure: Figure) -> int:
    return 100 + _ROW * len(figure.variants[0].datasets["main"]["label"])


def _narrow_rows_high(figure: Figure) -> int:
    return 150 + _NARROW_ROW * len(figure.variants[0].datasets["main"]["label"])


def _effects(figure: Figure) -> Layer:
    columns = _RATIO + _WORDS + _TRIALS
    base = _rows(figure, labelled=True)
    words = [
        _beside(base, "shown", columns),
        _beside(base, "words", columns - _RATIO, limit=_WORDS - 14),
        _beside(base, "trials", 8, align="right"),
    ]
    heads = [
        _head("change (interval)", columns),
        _head("verdict", columns - _RATIO),
        _head("trials", 8, "right"),
    ]
    return alt.layer(*_marks(figure, base, columns + 16, _verdicts()), *words, *heads)


def _effects_narrow(figure: Figure) -> Layer:
    base = _rows(figure, labelled=False)
    return alt.layer(*_marks_below(figure, base, _verdicts()), *_above(base, "words"))


def _path(figure: Figure) -> Layer:
    base = _rows(figure, labelled=True)
    reason = _RATIO + _WORDS + 60
    words = [
        _beside(base, "shown", reason),
        _beside(base, "reason", reason - _RATIO, limit=reason - _RATIO),
    ]
    return alt.layer(_steps(base), *_marks(figure, base, reason + 16, _actions()), *words)


def _path_narrow(figure: Figure) -> Layer:
    base = _rows(figure, labelled=False)
    return alt.layer(*_marks_below(figure, base, _actions()), _steps(base, _DOWN), *_above(base, "reason"))


def _rows(figure: Figure, labelled: bool) -> alt.Chart:
    shown = alt.Axis(title=None, grid=True, ticks=False, labelLimit=260, labelOverlap=False)
    hidden = alt.Axis(title=None, grid=False, ticks=False, labels=False)
    labels = [str(label) for label in figure.variants[0].datasets["main"]["label"]]
    y = alt.Y("label:N", sort=labels, scale=alt.Scale(domain=labels), axis=shown if labelled else hidden)
    return alt.Chart(alt.NamedData("main")).encode(y=y)


def _marks(figure: Figure, base: alt.Chart, columns: int, encoding: dict[str, Any]) -> list[Layer]:
    """Return band, unit line, intervals and points, with `columns` pixels left free on the right."""
    x = _ratios(figure, columns, figure.x_title)
    limits = alt.Chart(alt.NamedData("limits"))
    band = limits.mark_rect(opacity=0.14).encode(x=x, x2=alt.X2("high:Q"))
    one = limits.mark_rule(strokeWidth=1.5).encode(x=alt.X("one:Q"))
    return [band, one, *_points(base, x, encoding, 0)]


def _marks_below(figure: Figure, base: alt.Chart, encoding: dict[str, Any]) -> list[Layer]:
    """Return the same for rows whose words stand above their marks: nothing crosses the words."""
    x = _ratios(figure, 0, figure.x_title.replace(" (", "\n(").split("\n"))
    limits = {key: str(values[0]) for key, values in figure.variants[0].datasets["limits"].items()}
    marked = base.transform_calculate(edge=limits["high"], one=limits["one"], begin=limits["low"])
    band = marked.mark_bar(opacity=0.14, height=18, yOffset=_DOWN).encode(
        x=alt.X("begin:Q"), x2=alt.X2("edge:Q")
    )
    one = marked.mark_tick(orient="vertical", height=18, thickness=1.5, yOffset=_DOWN).encode(
        x=alt.X("one:Q")
    )
    return [band, one, *_points(base, x, encoding, _DOWN)]


def _ratios(figure: Figure, columns: int, title: str | list[str]) -> alt.X:
    right = alt.ExprRef(f"max(80, width - {columns})")
    scale = alt.Scale(type="log", nice=False, padding=6, range=[0, right])
    return alt.X("low:Q", scale=scale, axis=axis(figure.x, title, grid=True))


def _points(base: alt.Chart, x: alt.X, encoding: dict[str, Any], down: int) -> list[Layer]:
    known = base.transform_filter("isValid(datum.ratio)")
    bounded = known.transform_filter("isValid(datum.low) && isValid(datum.high)")
    color = {"color": encoding["color"]} if "color" in encoding else {}
    spans = bounded.mark_rule(strokeWidth=2.5, yOffset=down).encode(x=x, x2=alt.X2("high:Q"), **color)
    tooltip = [alt.Tooltip("label:N"), alt.Tooltip("shown:N"), alt.Tooltip("tip:N")]
    points = known.mark_point(filled=True, size=75, opacity=1, yOffset=down).encode(
        x=alt.X("ratio:Q"), tooltip=tooltip, **encoding
    )
    return [spans, points]


def _steps(base: alt.Chart, down: int = 0) -> Layer:
    line = base.transform_filter("isValid(datum.ratio)")
    drawn: Layer = line.mark_line(
        interpolate="step-after", strokeWidth=1.25, opacity=0.7, yOffset=down
    ).encode(x=alt.X("ratio:Q"), order=alt.Order("step:Q"))
    return drawn


def _verdicts() -> dict[str, Any]:
    # Over the heads of the columns.
    legend = alt.Legend(offset=24)
    return {
        "color": alt.Color(
            "category:N", scale=alt.Scale(domain=list(CATEGORIES), range="ordinal"), legend=legend
        ),
        "shape": alt.Shape(
            "category:N", scale=alt.Scale(domain=list(CATEGORIES), range=list(SHAPES)), legend=legend
        ),
    }


def _actions() -> dict[str, Any]:
    scale = alt.Scale(domain=list(ACTIONS), range=list(ACTIONS.values()))
    return {"shape": alt.Shape("action:N", scale=scale)}


def _beside(
    base: alt.Chart, field: str, offset: int, align: Align = "left", limit: int | None = None
) -> Layer:
    drawn: Layer = base.mark_text(align=align, baseline="middle", limit=limit or alt.Undefined).encode(
        x=alt.value(alt.ExprRef(f"width - {offset}")), text=alt.Text(f"{field}:N")
    )
    return drawn


def _head(text: str, offset: int, align: Align = "left") -> Layer:
    drawn: Layer = (
        alt.Chart(alt.NamedData("limits"))
        .mark_text(align=align, baseline="bottom", fontStyle="italic")
        .encode(x=alt.value(alt.ExprRef(f"width - {offset}")), y=alt.value(-4), text=alt.value(text))
    )
    return drawn


def _above(base: alt.Chart, words: str) -> list[Layer]:
    """Return name, words and ratio of a row over its marks; a name that is too long is cut."""
    wide = f"width > {_PHONE}"
    limit = alt.ExprRef(f"width - ({wide} ? {_RATIO + _WORDS} : {_RATIO})")
    left = base.mark_text(align="left", baseline="middle", yOffset=-_DOWN, fontWeight="bold", limit=limit)
    # A telephone has no room for the words: shape and colour say them there, and the table below.
    short = f"truncate(datum.{words}, {_WORDS // 6})"
    said = f"{wide} && datum.{words} ? {short} + ': ' + datum.shown : datum.shown"
    right = base.transform_calculate(said=said).mark_text(align="right", baseline="middle", yOffset=-_DOWN)
    return [
        left.encode(x=alt.value(0), text=alt.Text("label:N")),
        right.encode(x=alt.value(alt.ExprRef("width")), text=alt.Text("said:N")),
    ]


def _curves(figure: Figure) -> Layer:
    scale = alt.Scale(type="symlog", constant=1, nice=False, zero=False, padding=10)
    x = alt.X("size_bytes:Q", scale=scale, axis=axis(figure.x, figure.x_title))
    value_scale = alt.Scale(type="log", nice=False, padding=10)
    if not figure.logarithmic:
        value_scale = alt.Scale(zero=True, nice=False)
    y = alt.Y("value:Q", scale=value_scale, axis=axis(figure.y, figure.y_title))
    domain = list(GROUPS[:2])
    color = alt.Color("setting:N", scale=alt.Scale(domain=domain))
    shape = alt.Shape("setting:N", scale=alt.Scale(domain=domain, range=["circle", "triangle-down"]))
    dash = alt.StrokeDash(
        "setting:N", scale=alt.Scale(domain=domain, range=[list(dash) for dash in theme.DASHES[1::-1]])
    )
    lines = alt.Chart(alt.NamedData("medians")).mark_line().encode(x=x, y=y, color=color, strokeDash=dash)
    points = (
        alt.Chart(alt.NamedData("main"))
        .mark_point(size=26, opacity=0.7)
        .encode(
            x=x,
            y=alt.Y("value:Q"),
            color=color,
            shape=shape,
            tooltip=[alt.Tooltip("setting:N"), alt.Tooltip("shown:N"), alt.Tooltip("trial:Q")],
        )
    )
    return alt.layer(lines, points)


def _spread(figure: Figure) -> Layer:
    domain = list(GROUPS[:2])
    y = alt.Y(
        "setting:N",
        sort=domain,
        scale=alt.Scale(domain=domain, paddingInner=0.3),
        axis=alt.Axis(title=None, ticks=False, labelFontSize=12),
    )
    # No mark lies beyond the values, so no label needs more room than this.
    scale = alt.Scale(zero=False, nice=False, padding=32)
    x = alt.X("min:Q", scale=scale, axis=axis(figure.x, figure.x_title, grid=True))
    color = alt.Color("setting:N", scale=alt.Scale(domain=domain), legend=None)
    boxes = alt.Chart(alt.NamedData("boxes")).encode(y=y, color=color)
    whole = boxes.mark_rule(strokeWidth=1).encode(x=x, x2=alt.X2("max:Q"))
    most = boxes.mark_rule(strokeWidth=3).encode(x=alt.X("p5:Q"), x2=alt.X2("p95:Q"))
    body = boxes.mark_bar(height=26, opacity=0.3, stroke=None).encode(x=alt.X("p25:Q"), x2=alt.X2("p75:Q"))
    middle = boxes.mark_tick(thickness=3, height=26, orient="vertical").encode(x=alt.X("median:Q"))
    points = (
        alt.Chart(alt.NamedData("main"))
        .mark_point(size=22, opacity=0.8, strokeWidth=1.25)
        .encode(
            y=y,
            x=alt.X("value:Q"),
            yOffset=alt.YOffset("jitter:Q", scale=alt.Scale(domain=[-1, 1])),
            color=color,
            tooltip=[alt.Tooltip("setting:N"), alt.Tooltip("shown:N"), alt.Tooltip("trial:Q")],
        )
    )
    return alt.layer(whole, most, body, middle, points)


def _trials(figure: Figure) -> Layer:
    domain = list(GROUPS)
    one = alt.Chart(alt.NamedData("limits")).mark_rule(strokeDash=[3, 3]).encode(y=alt.Y("one:Q"))
    points = (
        alt.Chart(alt.NamedData("main"))
        .mark_point(size=24, strokeWidth=1.25)
        .encode(
            x=alt.X(
                "minutes:Q",
                scale=alt.Scale(nice=False, padding=6),
                axis=axis(figure.x, figure.x_title),
            ),
            y=alt.Y(
                "ratio:Q",
                scale=alt.Scale(type="log", nice=False, padding=8),
                axis=axis(figure.y, figure.y_title),
            ),
            color=alt.Color("group:N", scale=alt.Scale(domain=domain)),
            opacity=alt.condition(f"datum.group === '{GROUPS[2]}'", alt.value(0.4), alt.value(0.9)),
            shape=alt.Shape(
                "group:N",
                scale=alt.Scale(domain=domain, range=["circle", "triangle-down", "cross"]),
            ),
            tooltip=[
                alt.Tooltip("trial:Q"),
                alt.Tooltip("phase:N"),
                alt.Tooltip("setting:N"),
                alt.Tooltip("shown:N", title="change"),
            ],
        )
    )
    return alt.layer(one, points)


EFFECTS = Chart(
    "effects", Drawing(_effects, _rows_high), Drawing(_effects_narrow, _narrow_rows_high), width=1160
)
PATH = Chart("path", Drawing(_path, _rows_high), Drawing(_path_narrow, _narrow_rows_high), width=1000)
CURVES = Chart("curves", Drawing(_curves, lambda _: 330))
SPREAD = Chart("spread", Drawing(_spread, lambda _: 150))
TRIALS = Chart("trials", Drawing(_trials, lambda _: 300))

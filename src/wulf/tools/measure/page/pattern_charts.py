"""Charts of a pattern that was performed: its graph, and what its ranks do."""

from __future__ import annotations

from typing import Any

from wulf.page.chart_libraries import altair as alt
from wulf.page.drawing import Layer, axis
from wulf.page.parts import Chart, Drawing, Figure

#: Width of the picture [px]: on a page, on a telephone.
_WIDE, _NARROW = 640, 320
#: Diameter of a rank, of the distance of two; at least and at most [px].
_DIAMETER, _SMALL, _LARGE = 0.58, 5, 26
#: With a number inside from there on [px].
_NUMBERED = 13
#: With more lines than that each is fainter.
_FEW, _FULL, _FAINTEST = 120, 0.85, 0.05
#: Sizes that differ by less are called alike.
ALIKE = 1.05
_PARTS = ["computing", "in MPI"]


def _wide(figure: Figure) -> Layer:
    return _picture(figure, _WIDE)


def _narrow(figure: Figure) -> Layer:
    return _picture(figure, _NARROW)


def _picture(figure: Figure, width: int) -> Layer:
    scale = figure.variants[0].datasets["scale"]
    across = _DIAMETER * float(scale["unit"][0] or 0) * width
    diameter = min(max(across, _SMALL), _LARGE)
    lines = int(scale["lines"][0] or 0)
    opacity = max(_FAINTEST, min(_FULL, _FULL * _FEW / max(lines, 1)))
    labels = _labels() if figure.variants[0].datasets["labels"]["text"] else []
    layers = [
        _lines(figure, opacity),
        _arrows(figure, diameter),
        *labels,
        *_ranks(figure, diameter),
        _titles(),
    ]
    return alt.layer(*layers)


def _x(field: str = "x") -> alt.X:
    return alt.X(f"{field}:Q", scale=alt.Scale(domain=[0, 1], nice=False), axis=None)


def _y(field: str = "y") -> alt.Y:
    return alt.Y(f"{field}:Q", scale=alt.Scale(domain=[0, 1], nice=False), axis=None)


def _colour(figure: Figure) -> alt.Color:
    programs = list(dict.fromkeys(figure.variants[0].datasets["ranks"]["program"]))
    return alt.Color("program:N", scale=alt.Scale(domain=programs), legend=None)


def _width(figure: Figure) -> Any:
    """Return how wide lines are: all alike, or by the size of what they carry."""
    sizes = [float(size or 0) for size in figure.variants[0].datasets["lines"]["size"]]
    if not sizes or max(sizes) <= ALIKE * min(sizes):
        return alt.value(1.5)
    scale = alt.Scale(type="sqrt", domain=[min(sizes), max(sizes)], range=[0.8, 4])
    return alt.StrokeWidth("size:Q", scale=scale, legend=None)


def _lines(figure: Figure, opacity: float) -> Layer:
    drawn: Layer = (
        alt.Chart(alt.NamedData("lines"))
        .mark_rule(strokeCap="round")
        .encode(
            x=_x(),
            y=_y(),
            x2=alt.X2("x2:Q"),
            y2=alt.Y2("y2:Q"),
            color=_colour(figure),
            opacity=alt.condition("datum.faint", alt.value(0.5 * opacity), alt.value(opacity)),
            strokeWidth=_width(figure),
            strokeDash=alt.condition("datum.dashed", alt.value([3, 3]), alt.value([1, 0])),
            tooltip=[
                alt.Tooltip("program:N"),
                alt.Tooltip("ranks:N"),
                alt.Tooltip("words:N", title="in a pass"),
            ],
        )
    )
    return drawn


def _arrows(figure: Figure, diameter: float) -> Layer:
    drawn: Layer = (
        alt.Chart(alt.NamedData("arrows"))
        .mark_point(shape="triangle-up", filled=True, opacity=1, size=(0.4 * diameter) ** 2 + 12)
        .encode(x=_x(), y=_y(), angle=alt.Angle("angle:Q", scale=None), color=_colour(figure))
    )
    return drawn


def _labels() -> list[Layer]:
    """Return sizes, and behind them what keeps lines away from them."""
    base = alt.Chart(alt.NamedData("labels")).encode(x=_x(), y=_y(), text=alt.Text("text:N"))
    paper = alt.ExprRef("background")
    behind = base.mark_text(fontSize=10, baseline="middle", stroke=paper, strokeWidth=4, strokeJoin="round")
    return [behind, base.mark_text(fontSize=10, baseline="middle")]


def _ranks(figure: Figure, diameter: float) -> list[Layer]:
    base = alt.Chart(alt.NamedData("ranks")).encode(x=_x(), y=_y())
    tooltip = [alt.Tooltip("program:N"), alt.Tooltip("rank:Q")]
    area = 3.1416 / 4 * diameter**2
    ring = (
        base.transform_filter("datum.several")
        .mark_point(filled=False, strokeWidth=1.5, size=1.9 * area, opacity=1)
        .encode(color=_colour(figure))
    )
    if diameter < _NUMBERED:
        return [ring, base.mark_circle(size=area, opacity=1).encode(color=_colour(figure), tooltip=tooltip)]
    # The lines end at their borders, on paper and on a dark screen.
    discs = base.mark_point(
        size=area, opacity=1, filled=False, strokeWidth=2, fill=alt.ExprRef("background")
    ).encode(color=_colour(figure), tooltip=tooltip)
    numbers = base.mark_text(fontSize=min(12, 0.5 * diameter), baseline="middle").encode(
        text=alt.Text("rank:N")
    )
    return [ring, discs, numbers]


def _titles() -> Layer:
    drawn: Layer = (
        alt.Chart(alt.NamedData("titles"))
        .mark_text(fontSize=12, baseline="bottom")
        .encode(x=_x(), y=_y(), text=alt.Text("text:N"))
    )
    return drawn


def _aspect(figure: Figure) -> float:
    return float(figure.variants[0].datasets["scale"]["aspect"][0] or 1)


def _shares(figure: Figure) -> Layer:
    drawn: Layer = (
        alt.Chart(alt.NamedData("main"))
        .mark_bar()
        .encode(
            x=alt.X("seconds:Q", stack="zero", axis=axis(figure.x, figure.x_title)),
            y=alt.Y("rank:N", sort=None, axis=alt.Axis(title=figure.y_title, labelLimit=160)),
            color=alt.Color("part:N", scale=alt.Scale(domain=_PARTS), legend=alt.Legend(title=None)),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("rank:N"),
                alt.Tooltip("part:N"),
                alt.Tooltip("seconds:Q", title="seconds [s]"),
            ],
        )
    )
    return drawn


def _rows_high(figure: Figure) -> int:
    rows = len(set(figure.variants[0].datasets["main"]["rank"]))
    return 90 + max(11, min(24, 900 // max(rows, 1))) * rows


PICTURE = Chart(
    "pattern",
    Drawing(_wide, lambda figure: round(_WIDE * _aspect(figure))),
    Drawing(_narrow, lambda figure: round(_NARROW * _aspect(figure))),
)
SHARES = Chart("pattern-shares", Drawing(_shares, _rows_high))

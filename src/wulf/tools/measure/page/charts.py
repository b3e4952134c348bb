"""Charts of a measured run: curves, distributions, fits, pairs, estimates without a curve."""

from __future__ import annotations

from collections.abc import Callable

from wulf.page import theme
from wulf.page.chart_libraries import altair as alt
from wulf.page.drawing import Layer, axis
from wulf.page.parts import Chart, Drawing, Figure

#: Room for a name and a value beside the marks of a row [px].
_NAME, _VALUE = 260, 130
#: How far below an estimate its launches stand; of a narrow drawing, where words and estimate of a row are [px].
_BELOW, _ABOVE, _DOWN = 10, 16, 2
_CROSS = "M-.7,-.7L.7,.7M-.7,.7L.7,-.7"


def _row_height(figure: Figure) -> int:
    rows = len(set(figure.variants[0].datasets["main"]["from"]))
    return min(640, max(170, 90 + 44 * rows))


def _sizes(figure: Figure) -> alt.X:
    scale = alt.Scale(type="symlog", constant=1, nice=False, zero=False, padding=6)
    if not figure.logarithmic:
        scale = alt.Scale(zero=True, nice=False)
    return alt.X("size_bytes:Q", scale=scale, axis=axis(figure.x, figure.x_title))


def _values(figure: Figure, field: str) -> alt.Y:
    scale = alt.Scale(type="log", nice=False, padding=8)
    if not figure.logarithmic:
        scale = alt.Scale(zero=True, nice=False)
    return alt.Y(f"{field}:Q", scale=scale, axis=axis(figure.y, figure.y_title))


def _latency(figure: Figure) -> Layer:
    curves = _curves(figure, ("time_s", "low_s", "high_s"), _values(figure, "time_s"), "time")
    known = figure.variants[0].datasets["breaks"]["left"]
    sides = [side for side in (0, 1) if side in known]
    if not sides:
        return alt.layer(*curves)
    breaks = alt.Chart(alt.NamedData("breaks"))
    rules = breaks.mark_rule(strokeDash=[3, 3], strokeWidth=1).encode(x=alt.X("size_bytes:Q"))
    # The curve rises to the right, so there is room for words at the top, on the side of the rule that is wider.
    words = [
        breaks.transform_filter(f"{'' if left else '!'}datum.left")
        .mark_text(align="right" if left else "left", baseline="top", dx=-5 if left else 5, lineBreak="\n")
        .encode(x=alt.X("size_bytes:Q"), y=alt.value(2), text=alt.Text("words:N"))
        for left in sides
    ]
    return alt.layer(rules, *curves, *words)


def _bandwidth(figure: Figure) -> Layer:
    y = alt.Y(
        "bandwidth_bytes_per_s:Q",
        scale=alt.Scale(zero=True, nice=False),
        axis=axis(figure.y, figure.y_title),
    )
    fields = ("bandwidth_bytes_per_s", "low_bytes_per_s", "high_bytes_per_s")
    return alt.layer(*_curves(figure, fields, y, "bandwidth"))


def _curves(figure: Figure, fields: tuple[str, str, str], y: alt.Y, words: str) -> list[Layer]:
    """Return a band, a line and points for each pair."""
    value, low, high = fields
    base = alt.Chart(alt.NamedData("main")).encode(x=_sizes(figure))
    pairs = list(dict.fromkeys(figure.variants[0].datasets["main"]["pair"]))
    legend = alt.Legend(symbolType="stroke", symbolOpacity=1, symbolSize=300)
    color = alt.Color("pair:N", scale=alt.Scale(domain=pairs), legend=legend)
    dashes = [list(dash) for dash in theme.DASHES[: len(pairs)]]
    dash = alt.StrokeDash("pair:N", scale=alt.Scale(domain=pairs, range=dashes))
    known = f"isValid(datum.{low}) && isValid(datum.{high})"
    band = (
        base.transform_filter(known)
        .mark_area(opacity=0.22)
        .encode(y=alt.Y(f"{low}:Q"), y2=alt.Y2(f"{high}:Q"), color=color)
    )
    line = base.mark_line().encode(y=y, color=color, strokeDash=dash)
    tooltip = [
        alt.Tooltip("pair:N"),
        alt.Tooltip("size_bytes:Q", title="size [B]"),
        alt.Tooltip(f"{words}:N"),
        alt.Tooltip("launches:Q"),
    ]
    points = base.mark_point(filled=True, size=14, opacity=1).encode(
        y=alt.Y(f"{value}:Q"), color=color, tooltip=tooltip
    )
    return [band, line, points]


def _load(figure: Figure) -> Layer:
    quantiles = list(dict.fromkeys(figure.variants[0].datasets["main"]["quantile"]))
    color = alt.Color("quantile:N", scale=alt.Scale(domain=quantiles))
    base = alt.Chart(alt.NamedData("main")).encode(
        x=alt.X("load:Q", scale=alt.Scale(domain=[0, 1], nice=False), axis=axis(figure.x, figure.x_title)),
        color=color,
    )
    y = alt.Y(
        "ratio:Q",
        scale=alt.Scale(type="log", nice=False, padding=8),
        axis=axis(figure.y, figure.y_title),
    )
    tooltip = [alt.Tooltip("quantile:N"), alt.Tooltip("text:N", title="change")]
    bars = (
        base.transform_filter("isValid(datum.low) && isValid(datum.high)")
        .mark_rule()
        .encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
    )
    points = base.mark_point(filled=True, size=40, opacity=1).encode(y=y, tooltip=tooltip)
    return alt.layer(base.mark_line().encode(y=y), bars, points)


def _box(figure: Figure) -> Layer:
    return _boxes(figure, "size")


def _launches(figure: Figure) -> Layer:
    return _boxes(figure, "launch")


def _periods(figure: Figure) -> Layer:
    return _boxes(figure, "period")


def _boxes(figure: Figure, column: str) -> Layer:
    x = alt.X(
        f"{column}:N",
        sort=None,
        scale=alt.Scale(paddingInner=0.35),
        axis=alt.Axis(title=figure.x_title, labelAngle=-50, labelOverlap="greedy"),
    )
    base = alt.Chart(alt.NamedData("main")).encode(x=x)
    names = (column, "min_s", "p5_s", "p25_s", "p50_s", "p75_s", "p95_s", "p99_s", "p99_9_s", "max_s")
    tooltip = [alt.Tooltip(f"{field}:N" if field == column else f"{field}:Q") for field in names]
    whole = base.mark_rule(strokeWidth=1).encode(
        y=_values(figure, "min_s"), y2=alt.Y2("max_s:Q"), tooltip=tooltip
    )
    most = base.mark_rule(strokeWidth=2.5).encode(y=alt.Y("p5_s:Q"), y2=alt.Y2("p95_s:Q"))
    body = base.mark_bar(minBandSize=3).encode(y=alt.Y("p25_s:Q"), y2=alt.Y2("p75_s:Q"), tooltip=tooltip)
    middle = base.mark_tick(thickness=2, orient="horizontal", bandSize=9).encode(y=alt.Y("p50_s:Q"))
    return alt.layer(whole, most, body, middle)


def _regression(figure: Figure) -> Layer:
    points = (
        alt.Chart(alt.NamedData("main"))
        .mark_point(size=16, strokeWidth=1, opacity=0.75)
        .encode(
            x=_sizes(figure),
            y=_values(figure, "median_s"),
            shape=alt.Shape(
                "kind:N",
                sort=None,
                scale=alt.Scale(domain=["clean launch", "contaminated launch"], range=["circle", "cross"]),
            ),
            tooltip=[
                alt.Tooltip("launch:N"),
                alt.Tooltip("size_bytes:Q", title="size [B]"),
                alt.Tooltip("median_s:Q", title="median [s]"),
                alt.Tooltip("kind:N"),
            ],
        )
        .transform_calculate(kind="datum.contaminated ? 'contaminated launch' : 'clean launch'")
    )
    lines = alt.Chart(alt.NamedData("lines")).encode(x=alt.X("size_bytes:Q"))
    band = (
        lines.transform_filter("datum.robust && isValid(datum.low_s) && isValid(datum.high_s)")
        .mark_area(opacity=0.13)
        .encode(y=alt.Y("low_s:Q"), y2=alt.Y2("high_s:Q"))
    )
    parts = "split(datum.label, '\\n')"
    label = f"width < 440 ? {parts} : join({parts}, '')"
    color = alt.Color("fit:N", sort=None, legend=alt.Legend(columns=1, labelExpr=label))
    dash = alt.StrokeDash("fit:N", sort=None, scale=alt.Scale(range=[[1, 0], [6, 4]]))
    fitted = lines.mark_line().encode(y=alt.Y("fitted_s:Q"), color=color, strokeDash=dash)
    return alt.layer(band, points, fitted)


def _matrix(figure: Figure) -> Layer:
    gap = alt.Scale(paddingInner=0.02)
    order = [str(node) for node in figure.variants[0].datasets["order"]["node"]]
    sort = order or alt.Undefined
    many = len(set(figure.variants[0].datasets["main"]["to"])) > 8
    angle = -90 if many else 0
    base = alt.Chart(alt.NamedData("main")).encode(
        x=alt.X(
            "to:N", sort=sort, scale=gap, axis=alt.Axis(title=figure.x_title, orient="top", labelAngle=angle)
        ),
        y=alt.Y("from:N", sort=sort, scale=gap, axis=alt.Axis(title=figure.y_title)),
    )
    tooltip = [alt.Tooltip("from:N"), alt.Tooltip("to:N"), alt.Tooltip("text:N", title="value")]
    scale = alt.Scale(domain=[0, 1], range=list(theme.HEAT))
    fields = base.mark_rect(cornerRadius=2).encode(
        color=alt.Color("badness:Q", scale=scale, legend=None), tooltip=tooltip
    )
    if many:
        return alt.layer(fields)
    ink = alt.condition("datum.badness > 0.55", alt.value("#ffffff"), alt.value("#000000"))
    return alt.layer(
        fields, base.mark_text(fontSize=12, lineBreak="\n", dy=-6).encode(text=alt.Text("label:N"), color=ink)
    )


def _detours(figure: Figure) -> Layer:
    cpus = list(dict.fromkeys(figure.variants[0].datasets["main"]["cpu"]))
    color = alt.Color(
        "cpu:N",
        scale=alt.Scale(domain=cpus),
        legend=alt.Legend(symbolType="stroke", symbolOpacity=1, symbolSize=300),
    )
    dashes = [list(dash) for dash in theme.DASHES[: len(cpus)]]
    base = alt.Chart(alt.NamedData("main")).encode(
        x=alt.X(
            "length_s:Q",
            scale=alt.Scale(type="log", nice=False, padding=12),
            axis=axis(figure.x, figure.x_title),
        ),
        y=_values(figure, "per_s"),
        color=color,
    )
    line = base.mark_line().encode(
        detail=alt.Detail("stretch:N"),
        strokeDash=alt.StrokeDash("cpu:N", scale=alt.Scale(domain=cpus, range=dashes)),
    )
    tooltip = [
        alt.Tooltip("cpu:N", title="CPU"),
        alt.Tooltip("from_s:Q", title="from [s]"),
        alt.Tooltip("per_s:Q", title="detours per second"),
    ]
    return alt.layer(line, base.mark_point(filled=True, size=26, opacity=1).encode(tooltip=tooltip))


def _estimates(figure: Figure) -> Layer:
    base = _places(figure, "main", labelled=True)
    value = base.mark_text(align="left", baseline="middle", fontSize=12).encode(
        x=alt.value(alt.ExprRef(f"width - {_VALUE}")), text=alt.Text("time:N")
    )
    return alt.layer(*_marks(figure, _VALUE + 16, labelled=True), value)


def _estimates_narrow(figure: Figure) -> Layer:
    base = _places(figure, "main", labelled=False)
    where = base.mark_text(
        align="left", baseline="middle", yOffset=-_ABOVE, limit=alt.ExprRef(f"width - {_VALUE}")
    ).encode(x=alt.value(0), text=alt.Text("place:N"))
    value = base.mark_text(align="right", baseline="middle", yOffset=-_ABOVE).encode(
        x=alt.value(alt.ExprRef("width")), text=alt.Text("time:N")
    )
    return alt.layer(*_marks(figure, 0, labelled=False), where, value)


def _places(figure: Figure, dataset: str, *, labelled: bool) -> alt.Chart:
    """Return a row for each place, with its name beside it or none."""
    labels = [str(place) for place in figure.variants[0].datasets["main"]["place"]]
    beside = alt.Axis(title=None, grid=False, ticks=False, labelLimit=_NAME, labelOverlap=False)
    row = alt.Y(
        "place:N",
        sort=labels,
        scale=alt.Scale(domain=labels),
        axis=beside if labelled else alt.Axis(title=None, grid=False, ticks=False, labels=False),
    )
    return alt.Chart(alt.NamedData(dataset)).encode(y=row)


def _marks(figure: Figure, beside: int, *, labelled: bool) -> list[Layer]:
    """Return intervals, estimates and below them launches, with `beside` pixels left free on the right."""
    down = 0 if labelled else _DOWN
    base = _places(figure, "main", labelled=labelled)
    points = base.mark_point(filled=True, size=70, opacity=1, yOffset=down).encode(
        x=_times(figure, beside),
        tooltip=[alt.Tooltip("place:N"), alt.Tooltip("time:N"), alt.Tooltip("launches:Q")],
    )
    return [_medians(figure, down, labelled=labelled), *_intervals(figure, base, down), points]


def _intervals(figure: Figure, base: alt.Chart, down: int) -> list[Layer]:
    if all(low is None for low in figure.variants[0].datasets["main"]["low_s"]):
        return []
    bounded = base.transform_filter("isValid(datum.low_s) && isValid(datum.high_s)")
    # Rules and ticks are grey in the theme; bars and points have the colour of the series.
    span = bounded.mark_bar(height=2.5, yOffset=down).encode(x=alt.X("low_s:Q"), x2=alt.X2("high_s:Q"))
    ends = bounded.mark_point(shape="M0,-.6V.6", size=110, strokeWidth=2, opacity=1, yOffset=down)
    return [span, *(ends.encode(x=alt.X(f"{field}:Q")) for field in ("low_s", "high_s"))]


def _medians(figure: Figure, down: int, *, labelled: bool) -> Layer:
    kinds = ["clean launch", "contaminated launch"]
    seen = 1 in figure.variants[0].datasets["launches"]["contaminated"]
    tooltip = [alt.Tooltip(f"{field}:N") for field in ("place", "launch", "median", "kind")]
    shape = alt.Shape(
        "kind:N",
        scale=alt.Scale(domain=kinds, range=["circle", _CROSS]),
        legend=alt.Legend() if seen else None,
    )
    drawn: Layer = (
        _places(figure, "launches", labelled=labelled)
        .transform_calculate(kind=f"datum.contaminated ? '{kinds[1]}' : '{kinds[0]}'")
        .mark_point(size=26, strokeWidth=1.25, opacity=0.7, yOffset=down + _BELOW)
        .encode(x=alt.X("median_s:Q"), shape=shape, tooltip=tooltip)
    )
    return drawn


def _times(figure: Figure, beside: int) -> alt.X:
    scale = alt.Scale(
        type="log" if figure.logarithmic else "linear",
        zero=alt.Undefined if figure.logarithmic else False,
        nice=False,
        padding=12,
        range=[0, alt.ExprRef(f"max(80, width - {beside})")],
    )
    return alt.X("time_s:Q", scale=scale, axis=axis(figure.x, figure.x_title, grid=True))


def _places_high(row: int) -> Callable[[Figure], int]:
    # Room for the axis and a legend.
    return lambda figure: 90 + row * len(figure.variants[0].datasets["main"]["place"])


LATENCY = Chart("latency", Drawing(_latency, lambda _: 380))
BANDWIDTH = Chart("bandwidth", Drawing(_bandwidth, lambda _: 340))
BOX = Chart("box", Drawing(_box, lambda _: 380))
DETOURS = Chart("detours", Drawing(_detours, lambda _: 380))
REGRESSION = Chart("regression", Drawing(_regression, lambda _: 380))
LAUNCHES = Chart("launches", Drawing(_launches, lambda _: 340))
PERIODS = Chart("periods", Drawing(_periods, lambda _: 340))
ESTIMATES = Chart(
    "estimates",
    Drawing(_estimates, _places_high(38)),
    Drawing(_estimates_narrow, _places_high(56)),
    width=760,
)
LOAD = Chart("load", Drawing(_load, lambda _: 320))
MATRIX = Chart("matrix", Drawing(_matrix, _row_height))

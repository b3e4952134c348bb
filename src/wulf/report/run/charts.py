"""Charts of a measured run: curves, distributions, fits, pairs."""

from __future__ import annotations

import altair as alt

from wulf.report import theme
from wulf.report.drawing import Layer, axis
from wulf.report.parts import Chart, Drawing, Figure


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
    rules = breaks.mark_rule(strokeDash=[3, 3], strokeWidth=1).encode(x="size_bytes:Q")
    # The curve rises to the right, so there is room for words at the top, on the side of the rule that is wider.
    words = [
        breaks.transform_filter(f"{'' if left else '!'}datum.left")
        .mark_text(align="right" if left else "left", baseline="top", dx=-5 if left else 5, lineBreak="\n")
        .encode(x="size_bytes:Q", y=alt.value(2), text="words:N")
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
        .encode(y=alt.Y(f"{low}:Q"), y2=f"{high}:Q", color=color)
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


def _box(figure: Figure) -> Layer:
    x = alt.X(
        "size:N",
        sort=None,
        scale=alt.Scale(paddingInner=0.35),
        axis=alt.Axis(title=figure.x_title, labelAngle=-50, labelOverlap="greedy"),
    )
    base = alt.Chart(alt.NamedData("main")).encode(x=x)
    names = ("size", "min_s", "p5_s", "p25_s", "p50_s", "p75_s", "p95_s", "p99_s", "p99_9_s", "max_s")
    tooltip = [alt.Tooltip(f"{field}:N" if field == "size" else f"{field}:Q") for field in names]
    whole = base.mark_rule(strokeWidth=1).encode(y=_values(figure, "min_s"), y2="max_s:Q", tooltip=tooltip)
    most = base.mark_rule(strokeWidth=2.5).encode(y=alt.Y("p5_s:Q"), y2="p95_s:Q")
    body = base.mark_bar(minBandSize=3).encode(y=alt.Y("p25_s:Q"), y2="p75_s:Q", tooltip=tooltip)
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
    lines = alt.Chart(alt.NamedData("lines")).encode(x="size_bytes:Q")
    band = (
        lines.transform_filter("datum.robust && isValid(datum.low_s) && isValid(datum.high_s)")
        .mark_area(opacity=0.13)
        .encode(y="low_s:Q", y2="high_s:Q")
    )
    parts = "split(datum.label, '\\n')"
    label = f"width < 440 ? {parts} : join({parts}, '')"
    color = alt.Color("fit:N", sort=None, legend=alt.Legend(columns=1, labelExpr=label))
    dash = alt.StrokeDash("fit:N", sort=None, scale=alt.Scale(range=[[1, 0], [6, 4]]))
    fitted = lines.mark_line().encode(y="fitted_s:Q", color=color, strokeDash=dash)
    return alt.layer(band, points, fitted)


def _matrix(figure: Figure) -> Layer:
    gap = alt.Scale(paddingInner=0.02)
    base = alt.Chart(alt.NamedData("main")).encode(
        x=alt.X("to:N", scale=gap, axis=alt.Axis(title=figure.x_title, orient="top", labelAngle=0)),
        y=alt.Y("from:N", scale=gap, axis=alt.Axis(title=figure.y_title)),
    )
    tooltip = [alt.Tooltip("from:N"), alt.Tooltip("to:N"), alt.Tooltip("text:N", title="value")]
    scale = alt.Scale(domain=[0, 1], range=list(theme.HEAT))
    fields = base.mark_rect(cornerRadius=2).encode(
        color=alt.Color("badness:Q", scale=scale, legend=None), tooltip=tooltip
    )
    if len(set(figure.variants[0].datasets["main"]["to"])) > 8:
        return alt.layer(fields)
    ink = alt.condition("datum.badness > 0.55", alt.value("#ffffff"), alt.value("#000000"))
    return alt.layer(
        fields, base.mark_text(fontSize=12, lineBreak="\n", dy=-6).encode(text="label:N", color=ink)
    )


LATENCY = Chart("latency", Drawing(_latency, lambda _: 380))
BANDWIDTH = Chart("bandwidth", Drawing(_bandwidth, lambda _: 340))
BOX = Chart("box", Drawing(_box, lambda _: 380))
REGRESSION = Chart("regression", Drawing(_regression, lambda _: 380))
MATRIX = Chart("matrix", Drawing(_matrix, _row_height))

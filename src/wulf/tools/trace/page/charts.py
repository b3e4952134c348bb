"""Drawings of a trace: a line of time for each rank, bars of calls and ranks, who sends to whom, sizes."""

from __future__ import annotations

from wulf.page import theme
from wulf.page.chart_libraries import altair as alt
from wulf.page.drawing import Layer, axis
from wulf.page.parts import Chart, Drawing, Figure

#: What time in MPI is for; the first stands lowest.
PARTS = ("messages", "waiting", "collectives", "other")
#: Fields of a heat map with numbers in them.
_NUMBERS = 12
_BAR = 30
#: So much longer is an axis with words at the ends of its bars.
_WITH_WORDS = 1.15


def _rows(figure: Figure, dataset: str, column: str) -> int:
    return len(set(figure.variants[0].datasets[dataset][column]))


def _part() -> alt.Color:
    domain = ["computing", *PARTS]
    return alt.Color(
        "part:N",
        scale=alt.Scale(domain=domain, range=[_COMPUTING, *_PART_COLOURS]),
        legend=alt.Legend(title=None, columns=len(domain)),
    )


#: Readable on white paper and on a dark screen; computing stays in the background.
_COMPUTING = "#a9b4be"
_PART_COLOURS = ("#2f7fc1", "#e07b24", "#1f9c78", "#b0609a")


def _timeline(figure: Figure) -> Layer:
    rows = _rows(figure, "lines", "ranks")
    x = alt.X("begin_s:Q", axis=axis(figure.x, figure.x_title), scale=alt.Scale(nice=False))
    y = alt.Y("low:Q", axis=None, scale=alt.Scale(domain=[0, rows], reverse=True))
    lines = alt.Chart(alt.NamedData("lines"))
    computing = lines.mark_rect().encode(
        x=x,
        x2=alt.X2("end_s:Q"),
        y=y,
        y2=alt.Y2("high:Q"),
        color=_part(),
        tooltip=[alt.Tooltip("ranks:N"), alt.Tooltip("end_s:Q", title="until [s]")],
    )
    inside = (
        alt.Chart(alt.NamedData("main"))
        .mark_rect()
        .encode(
            x=x,
            x2=alt.X2("end_s:Q"),
            y=y,
            y2=alt.Y2("high:Q"),
            color=_part(),
            tooltip=[
                alt.Tooltip("ranks:N"),
                alt.Tooltip("part:N"),
                alt.Tooltip("share:Q", format=".0%"),
                alt.Tooltip("begin_s:Q", title="from [s]"),
                alt.Tooltip("end_s:Q", title="to [s]"),
            ],
        )
    )
    names = lines.mark_text(align="right", dx=-8, baseline="middle").encode(
        x=alt.XDatum(0), y=alt.Y("middle:Q", axis=None), text=alt.Text("ranks:N")
    )
    return alt.layer(computing, inside, names)


def _timeline_high(figure: Figure) -> int:
    rows = _rows(figure, "lines", "ranks")
    return 100 + rows * (34 if rows <= 8 else 22 if rows <= 16 else 14)


def _calls(figure: Figure) -> Layer:
    base = alt.Chart(alt.NamedData("main")).encode(
        y=alt.Y("call:N", sort=None, axis=alt.Axis(title=None, labelLimit=220))
    )
    tooltip = [alt.Tooltip(f"{name}:N") for name in ("call", "shown")]
    most = max((float(value or 0.0) for value in figure.variants[0].datasets["main"]["most_s"]), default=0.0)
    room = alt.Scale(domain=[0, _WITH_WORDS * most or 1.0], nice=False)
    bars = base.mark_bar(opacity=0.75).encode(
        x=alt.X("mean_s:Q", axis=axis(figure.x, figure.x_title), scale=room), tooltip=tooltip
    )
    lines = base.mark_rule(strokeWidth=2).encode(x=alt.X("least_s:Q"), x2=alt.X2("most_s:Q"))
    words = base.mark_text(align="left", baseline="middle", dx=8).encode(
        x=alt.X("most_s:Q"), text=alt.Text("shown:N")
    )
    return alt.layer(bars, lines, words)


def _bars_high(figure: Figure) -> int:
    return 80 + _BAR * _rows(figure, "main", "call")


def _ranks(figure: Figure) -> Layer:
    drawn: Layer = (
        alt.Chart(alt.NamedData("main"))
        .mark_bar()
        .encode(
            x=alt.X("seconds:Q", stack="zero", axis=axis(figure.x, figure.x_title)),
            y=alt.Y("ranks:N", sort=None, axis=alt.Axis(title=figure.y_title)),
            color=_part(),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("ranks:N"),
                alt.Tooltip("part:N"),
                alt.Tooltip("seconds:Q", title="time [s]"),
            ],
        )
    )
    return drawn


def _ranks_high(figure: Figure) -> int:
    rows = _rows(figure, "main", "ranks")
    return 110 + rows * (26 if rows <= 16 else 16)


def _matrix(figure: Figure) -> Layer:
    names = [str(name) for name in figure.variants[0].datasets["order"]["rank"]]
    gap = alt.Scale(domain=names, paddingInner=0.02)
    base = alt.Chart(alt.NamedData("main")).encode(
        x=alt.X("to:N", scale=gap, axis=alt.Axis(title=figure.x_title, orient="top", labelAngle=0)),
        y=alt.Y("from:N", scale=gap, axis=alt.Axis(title=figure.y_title)),
    )
    fields = base.mark_rect(cornerRadius=1).encode(
        color=alt.Color("share:Q", scale=alt.Scale(domain=[0, 1], range=list(theme.HEAT)), legend=None),
        tooltip=[
            alt.Tooltip("from:N", title="from rank"),
            alt.Tooltip("to:N", title="to rank"),
            alt.Tooltip("text:N", title="sent"),
        ],
    )
    if len(names) > _NUMBERS:
        return alt.layer(fields)
    ink = alt.condition("datum.share > 0.55", alt.value("#ffffff"), alt.value("#000000"))
    return alt.layer(fields, base.mark_text(fontSize=11).encode(text=alt.Text("text:N"), color=ink))


def _matrix_high(figure: Figure) -> int:
    rows = len(figure.variants[0].datasets["order"]["rank"])
    return min(90 + 34 * rows, 480)


def _sizes(figure: Figure) -> Layer:
    order = figure.variants[0].datasets["order"]
    kinds = list(dict.fromkeys(map(str, figure.variants[0].datasets["main"]["of"])))
    base = alt.Chart(alt.NamedData("main")).encode(
        y=alt.Y(
            "size:N", sort=[str(size) for size in order["size"]], axis=alt.Axis(title=None, labelLimit=200)
        ),
        yOffset=alt.YOffset("of:N", sort=kinds),
    )
    bars = base.mark_bar().encode(
        x=alt.X("share:Q", axis=alt.Axis(title=figure.x_title)),
        color=alt.Color("of:N", scale=alt.Scale(domain=kinds), legend=alt.Legend(title=None, columns=2)),
        tooltip=[alt.Tooltip(f"{name}:N") for name in ("size", "of", "number")],
    )
    words = base.mark_text(align="left", baseline="middle", dx=4, fontSize=10).encode(
        x=alt.X("share:Q"), text=alt.Text("number:N")
    )
    return alt.layer(bars, words)


def _sizes_high(figure: Figure) -> int:
    return 100 + 34 * _rows(figure, "main", "size")


TIMELINE = Chart("trace-timeline", Drawing(_timeline, _timeline_high))
CALLS = Chart("trace-calls", Drawing(_calls, _bars_high))
RANKS = Chart("trace-ranks", Drawing(_ranks, _ranks_high))
MATRIX = Chart("trace-matrix", Drawing(_matrix, _matrix_high))
SIZES = Chart("trace-sizes", Drawing(_sizes, _sizes_high))

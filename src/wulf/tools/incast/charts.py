"""How incast is drawn: time over the number of senders, and what arrives of bursts."""

from __future__ import annotations

from wulf.page.chart_libraries import altair as alt
from wulf.page.drawing import Layer, axis
from wulf.page.parts import Chart, Drawing, Figure

HOLDS, BROKEN = "not shown to break", "broken"


def _times(figure: Figure) -> Layer:
    """Draw for each size the time that it takes, and dashed what the receiver's link explains."""
    base = alt.Chart(alt.NamedData("main"))
    x = alt.X("senders:Q", axis=alt.Axis(title=figure.x_title, tickMinStep=1, format="d"))
    scale = alt.Scale(type="log", nice=False, padding=8)
    y = alt.Y("time:Q", scale=scale, axis=axis(figure.y, figure.y_title))
    sizes = alt.Detail("size:N")
    explained = base.mark_line(strokeDash=[4, 3], color="#8d8a80").encode(
        x=x, y=alt.Y("expected:Q", scale=scale, axis=axis(figure.y, figure.y_title)), detail=sizes
    )
    lines = base.mark_line(color="#8d8a80").encode(x=x, y=y, detail=sizes)
    marks = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=x,
        y=y,
        color=alt.Color(
            "state:N",
            scale=alt.Scale(domain=[HOLDS, BROKEN], range="diverging"),
            legend=alt.Legend(title=None, orient="top"),
        ),
        shape=alt.Shape("size:N", sort=None, legend=alt.Legend(title=None, orient="top")),
        tooltip=[
            alt.Tooltip("size:N"),
            alt.Tooltip("senders:Q"),
            alt.Tooltip("shown:N", title="time"),
            alt.Tooltip("ratio:N", title="times what is explained"),
        ],
    )
    return alt.layer(explained, lines, marks)


def _bursts(figure: Figure) -> Layer:
    """Draw what arrives over what is sent; dashed all of it, and the depth of the queue."""
    scale = alt.Scale(type="log", nice=False, padding=8)
    x = alt.X("sent:Q", scale=scale, axis=axis(figure.x, figure.x_title))
    base = alt.Chart(alt.NamedData("main")).encode(x=x)
    whole = base.mark_line(strokeDash=[4, 3], color="#8d8a80").encode(
        y=alt.Y("sent:Q", scale=scale, axis=axis(figure.y, figure.y_title))
    )
    marks = base.mark_point(filled=True, size=40, opacity=0.6).encode(
        y=alt.Y("arrived:Q", scale=scale, axis=axis(figure.y, figure.y_title)),
        color=alt.Color(
            "state:N",
            scale=alt.Scale(domain=["whole", "part of it lost"], range="diverging"),
            legend=alt.Legend(title=None, orient="top"),
        ),
        tooltip=[alt.Tooltip("sent:Q", title="sent [B]"), alt.Tooltip("arrived:Q", title="arrived [B]")],
    )
    depth = (
        alt.Chart(alt.NamedData("depth"))
        .mark_rule()
        .encode(y=alt.Y("depth:Q", scale=scale, axis=axis(figure.y, figure.y_title)))
    )
    return alt.layer(whole, marks, depth)


TIMES = Chart("incast-times", Drawing(_times, lambda _: 340))
ARRIVED = Chart("incast-bursts", Drawing(_bursts, lambda _: 320))

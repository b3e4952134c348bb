"""The map of a collective: which algorithm wins where."""

from __future__ import annotations

from wulf.page.chart_libraries import altair as alt
from wulf.page.drawing import Layer
from wulf.page.parts import Chart, Drawing, Figure

ROW_HEIGHT = 64


def _height(figure: Figure) -> int:
    return 130 + ROW_HEIGHT * len(set(figure.variants[0].datasets["main"]["ranks"]))


def _map(figure: Figure) -> Layer:
    main = figure.variants[0].datasets["main"]
    names = list(dict.fromkeys(str(name) for name in main["wins"]))
    base = alt.Chart(alt.NamedData("main")).encode(
        x=alt.X("size:N", sort=None, axis=alt.Axis(title=figure.x_title, labelAngle=0)),
        y=alt.Y("ranks:N", sort=None, axis=alt.Axis(title=figure.y_title)),
    )
    color = alt.Color(
        "wins:N",
        scale=alt.Scale(domain=names),
        legend=alt.Legend(title=None, orient="top", columns=3, labelLimit=260),
    )
    tooltip = [alt.Tooltip(f"{field}:N") for field in ("size", "ranks", "wins", "change", "control", "why")]
    cells = base.mark_rect(cornerRadius=3, stroke="#ffffff", strokeWidth=2, opacity=0.45).encode(
        color=color, tooltip=tooltip
    )
    return alt.layer(cells, base.mark_text(fontSize=12).encode(text=alt.Text("gain:N")))


MAP = Chart("algorithms", Drawing(_map, _height))

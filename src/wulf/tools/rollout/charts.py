"""How the nodes of a roll-out are drawn."""

from __future__ import annotations

from wulf.page.chart_libraries import altair as alt
from wulf.page.drawing import Layer, axis
from wulf.page.parts import Chart, Drawing, Figure

#: What became of a node, as the legend has it.
KEPT, PUT_BACK = "kept", "put back"
_ENDS = (KEPT, PUT_BACK)


def _nodes(figure: Figure) -> Layer:
    base = alt.Chart(alt.NamedData("main"))
    scale = alt.Scale(zero=False, nice=False, padding=8)
    marks = base.mark_point(filled=True, size=50, opacity=0.75).encode(
        x=alt.X("step:O", axis=alt.Axis(title=figure.x_title, labelAngle=0)),
        xOffset=alt.XOffset("place:Q"),
        y=alt.Y("ratio:Q", scale=scale, axis=axis(figure.y, figure.y_title)),
        color=alt.Color("became:N", scale=alt.Scale(domain=_ENDS, range="diverging")),
        shape=alt.Shape("became:N", scale=alt.Scale(domain=_ENDS, range=["circle", "cross"])),
        tooltip=[
            alt.Tooltip("node:N"),
            alt.Tooltip("shown:N", title="change"),
            alt.Tooltip("why:N"),
        ],
    )
    return alt.layer(base.mark_rule(strokeDash=[4, 3]).encode(y=alt.YDatum(1)), marks)


NODES = Chart("rollout-nodes", Drawing(_nodes, lambda _: 320))

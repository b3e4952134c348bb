"""Colours and type of the charts, on white paper and on a dark screen."""

from __future__ import annotations

from typing import Any

#: After Okabe and Ito (colour-blind safe); each is at least 3:1 against its background.
LIGHT_SERIES = ("#0060a8", "#c24e00", "#00795a", "#a04a83", "#8a6a00", "#3f4a55")
DARK_SERIES = ("#5fb4f2", "#f0a04b", "#3ecf9f", "#e094c4", "#e8d44d", "#aab4be")
#: better, no difference, no decision, worse: as in the tables; better at the cost of something else.
LIGHT_VERDICTS = ("#00795a", "#4d565e", "#8a6a00", "#c2360f", "#a04a83")
DARK_VERDICTS = ("#5fd3aa", "#b4b2ab", "#e8d44d", "#ff9c85", "#e094c4")
#: Sequential, one hue, so that it can be read in grey.
HEAT = ("#e4eef7", "#93bfe2", "#3f86c0", "#0b4f8a", "#06294d")
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
#: Dashes tell lines apart where colours do not.
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 2], [1, 3])


def config(dark: bool) -> dict[str, Any]:
    """Return the Vega-Lite configuration of a theme; the SVG that is offered for a paper uses the light one."""
    ink, soft, grid, paper = (
        ("#e7e4dd", "#b4b2ab", "#30363c", "#171b1f") if dark else ("#1c2329", "#4d565e", "#e2e0d9", "#ffffff")
    )
    verdicts = DARK_VERDICTS if dark else LIGHT_VERDICTS
    return {
        "background": paper,
        "font": FONT,
        "padding": 8,
        "view": {"stroke": None},
        "range": {
            "category": list(DARK_SERIES if dark else LIGHT_SERIES),
            "heatmap": list(HEAT),
            "ordinal": list(verdicts),
            # Well and bad, where there is nothing between.
            "diverging": [verdicts[0], verdicts[3]],
        },
        "axis": _axis(soft, grid),
        "axisX": {"grid": False},
        "axisY": {"domain": False, "ticks": False},
        "legend": {
            "orient": "top",
            "direction": "horizontal",
            "labelColor": ink,
            "labelFontSize": 12,
            "labelLimit": 0,
            "title": None,
            "symbolSize": 120,
            "symbolStrokeWidth": 2,
            # Of symbols that stand for a shape alone.
            "symbolFillColor": soft,
            "offset": 6,
            "layout": {"top": {"anchor": "start", "direction": "vertical"}},
        },
        "mark": {"color": (DARK_SERIES if dark else LIGHT_SERIES)[0]},
        "line": {"strokeWidth": 1.75},
        "rule": {"color": soft},
        "text": {"color": soft, "fontSize": 11},
        "tick": {"color": ink},
    }


def _axis(soft: str, grid: str) -> dict[str, Any]:
    return {
        "labelColor": soft,
        "titleColor": soft,
        "titleFontWeight": "normal",
        "titleFontSize": 12,
        "labelFontSize": 11,
        "gridColor": grid,
        "domainColor": soft,
        "tickColor": soft,
        "tickSize": 4,
        "labelPadding": 4,
        "titlePadding": 10,
        "labelOverlap": "greedy",
        "labelSeparation": 6,
    }

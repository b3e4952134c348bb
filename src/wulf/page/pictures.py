"""Charts of a report as files of their own, SVG or PDF: drawn by the same Vega as on the page, without a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from wulf.page import theme
from wulf.page.chart_libraries import altair, vl_convert
from wulf.page.drawing import spec
from wulf.page.parts import Columns, Figure, Variant

Format = Literal["svg", "pdf"]
#: Wide ones first: what is measured with them is not cut where the reader has narrower ones.
FONT = "DejaVu Sans, Verdana, Arial, Helvetica, sans-serif"


def pictures(figures: Sequence[tuple[str, Figure]], form: Format) -> Iterator[tuple[str, bytes]]:
    """Yield (name of the file, its content), one for each chart and each pair that it shows.

    Parameters
    ----------
    figures
        What a chart belongs to, which the name begins with, and the chart.
    """
    taken: dict[str, int] = {}
    for owner, figure in figures:
        several = len(figure.variants) > 1
        for variant in figure.variants:
            stem = _stem(owner, figure.id.partition("-")[2] or figure.id, variant.label if several else "")
            taken[stem] = taken.get(stem, 0) + 1
            name = stem if taken[stem] == 1 else f"{stem}-{taken[stem]}"
            yield f"{name}.{form}", _drawn(_whole(figure, variant), form)


def _stem(*words: str) -> str:
    cleaned = (re.sub(r"[^A-Za-z0-9_]+", "-", word).strip("-") for word in words)
    return "-".join(word for word in cleaned if word) or "chart"


def _whole(figure: Figure, variant: Variant) -> dict[str, Any]:
    """Return the specification with its data and our colours, on white paper."""
    config = {**theme.config(dark=False), "font": FONT}
    datasets = {name: _rows(columns) for name, columns in variant.datasets.items()}
    return {
        **spec(figure),
        "width": figure.chart.width,
        "datasets": datasets,
        "config": config,
        "description": variant.summary,
    }


def _rows(columns: Columns) -> list[dict[str, Any]]:
    names = list(columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _drawn(spec: dict[str, Any], form: Format) -> bytes:
    version = ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    if form == "pdf":
        return bytes(vl_convert.vegalite_to_pdf(spec, vl_version=version))
    return str(vl_convert.vegalite_to_svg(spec, vl_version=version)).encode()

"""Heat maps over pairs of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wulf.records import CellEstimate, CurveModel, Estimate, Place
from wulf.report.parts import Columns, Figure, Variant, rounded
from wulf.report.run import charts
from wulf.report.words import Terms, estimate_item, name, place_name


def matrices(
    id_: str, terms: Terms, groups: Mapping[Place, Sequence[CellEstimate]], models: Mapping[Place, CurveModel]
) -> list[Figure]:
    """Heat maps over pairs: zero-byte latency and asymptotic bandwidth, where the models have them."""
    found = []
    for key, title, worse in (
        ("zero_byte_latency", f"Zero-byte {terms.quantity} by pair", "high"),
        ("asymptotic_bandwidth", "Asymptotic bandwidth by pair", "low"),
    ):
        known = [(pair, getattr(models[pair], key)) for pair in groups if pair in models and len(pair) == 2]
        cells = [(pair, value) for pair, value in known if value is not None]
        if len(cells) > 2:
            found.append(_matrix(f"{id_}-{key.replace('_', '-')}", title, cells, worse))
    return found


def _matrix(id_: str, title: str, cells: Sequence[tuple[Place, Estimate]], worse: str) -> Figure:
    values = [estimate.value for _, estimate in cells]
    low, high = min(values), max(values)
    badness = [(value - low) / (high - low) if high > low else 0.0 for value in values]
    if worse == "low":
        badness = [1 - bad if high > low else 0.0 for bad in badness]
    worst = cells[badness.index(max(badness))]
    main: Columns = {
        "from": [name(pair[0]) for pair, _ in cells],
        "to": [name(pair[1]) for pair, _ in cells],
        "value": rounded(values),
        "low": rounded([estimate.low for _, estimate in cells]),
        "high": rounded([estimate.high for _, estimate in cells]),
        "unit": [estimate.unit for _, estimate in cells],
        "text": [estimate_item(estimate).text for _, estimate in cells],
        "label": [estimate_item(estimate).text.replace(" ± ", "\n± ") for _, estimate in cells],
        "badness": [round(bad, 3) for bad in badness],
    }
    return Figure(
        id=id_,
        chart=charts.MATRIX,
        title=title,
        x_title="to",
        y_title="from",
        variants=(
            Variant(
                label="",
                datasets={"main": main},
                summary=f"{title}: worst {estimate_item(worst[1]).text} on {place_name(worst[0])}.",
                caption="Darker is worse, from the best pair to the worst; a blank field was not measured.",
            ),
        ),
    )

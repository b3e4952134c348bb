"""Heat maps over pairs of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wulf.base.records import CellEstimate, CurveModel, Estimate, Place
from wulf.base.records.diagnosed import Matrix
from wulf.base.units import format_bytes
from wulf.page.parts import Columns, Figure, Variant, rounded
from wulf.page.words import Terms, estimate_item, name, place_name
from wulf.tools.measure.page import charts

#: Nodes on each side of a heat map: a page with more fields is slow, and none of them is seen.
MOST_DRAWN = 64


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


def judged(matrices: Sequence[Matrix], cells: Sequence[CellEstimate]) -> Iterator[Figure]:
    """Yield a heat map of each of the matrices that a diagnosis judges; nodes that are close are neighbours."""
    for number, matrix in enumerate(matrices):
        drawn = matrix.order if len(matrix.order) <= MOST_DRAWN else _worst(matrix)
        times = {
            (cell.cell.place[0], cell.cell.place[1]): cell.time
            for cell in cells
            if (cell.cell.op, cell.cell.size_bytes) == (matrix.op, matrix.size_bytes)
            and set(drawn).issuperset(cell.cell.place)
        }
        if not times:
            continue
        # What was measured in one direction is the same in the other.
        both = {pair[::-1]: time for pair, time in times.items()} | times
        title = f"{name(matrix.op)} at {format_bytes(matrix.size_bytes)} between all pairs"
        yield _matrix(f"diagnosis-{number}", title, list(both.items()), "high", drawn)


def _worst(matrix: Matrix) -> list[str]:
    """Return as many of the worst nodes as can be drawn, in the order of the matrix."""
    worst = {score.node for score in matrix.scores[:MOST_DRAWN]}
    return [node for node in matrix.order if node in worst]


def _matrix(
    id_: str, title: str, cells: Sequence[tuple[Place, Estimate]], worse: str, order: Sequence[str] = ()
) -> Figure:
    """Return a heat map; nodes are in `order`, else in that of their names."""
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
                datasets={"main": main, "order": {"node": [name(node) for node in order]}},
                summary=f"{title}: worst {estimate_item(worst[1]).text} on {place_name(worst[0])}.",
                caption="Darker is worse, from the best pair to the worst; a blank field was not measured."
                + (" Nodes that are close to each other are neighbours." if order else ""),
            ),
        ),
    )

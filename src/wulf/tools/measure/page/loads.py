"""How times grow with the load, as a chart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from wulf.base.records import Operation, Overhead, Place
from wulf.base.units import format_bytes, format_change
from wulf.page import ticks
from wulf.page.parts import Columns, Figure, Ticks, Variant, rounded
from wulf.page.words import place_name
from wulf.tools.measure.page import charts

#: Loads that a curve has beside none.
FEWEST = 2


def curves(loads: Sequence[Overhead], operations: Mapping[str, Operation]) -> Iterator[Figure]:
    """Yield the change of each quantile against the load, of every size between the pair that changes most."""
    groups: dict[tuple[str, int], dict[Place, list[tuple[float, Overhead]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for one in loads:
        load = _load(operations.get(one.op))
        if load is not None:
            groups[one.base, one.size_bytes][one.place].append((load, one))
    for number, ((_, size), places) in enumerate(sorted(groups.items())):
        place, points = max(places.items(), key=lambda item: max(one.ratio.value for _, one in item[1]))
        if len({load for load, _ in points}) >= FEWEST:
            yield _curve(f"load-{number}", size, place, sorted(points, key=lambda point: point[0]))


def _load(operation: Operation | None) -> float | None:
    """Return the load of an operation beside its own stream, as a share; None for one that has none."""
    if operation is None or operation.beside_traffic:
        return None
    _, _, percent = (operation.asked or operation.name).partition(":")
    return float(percent) / 100 if percent else None


def _curve(id_: str, size: int, place: Place, points: Sequence[tuple[float, Overhead]]) -> Figure:
    main: Columns = {
        "load": [load for load, _ in points],
        "quantile": [one.quantile for _, one in points],
        "ratio": rounded([one.ratio.value for _, one in points]),
        "low": rounded([one.ratio.low for _, one in points]),
        "high": rounded([one.ratio.high for _, one in points]),
        "text": [format_change(one.ratio) for _, one in points],
    }
    shares = sorted({load for load, _ in points})
    worst = max((one for _, one in points), key=lambda one: one.ratio.value)
    bounds = [
        bound for _, one in points for bound in (one.ratio.low, one.ratio.high, one.ratio.value) if bound
    ]
    title = f"Round trips of {format_bytes(size)} under load"
    return Figure(
        id=id_,
        chart=charts.LOAD,
        title=title,
        x_title="load, of what the way carries",
        y_title="change against no load (logarithmic)",
        x=Ticks(tuple(shares), tuple(f"{share:.0%}".replace("%", " %") for share in shares)),
        y=ticks.changes(bounds, logarithmic=True),
        variants=(
            Variant(
                label="",
                datasets={"main": main},
                summary=f"{title} on {place_name(place)}: {worst.quantile} {format_change(worst.ratio)} at worst.",
                caption=f"{place_name(place)}, the pair that changes most. Bars: intervals.",
            ),
        ),
    )

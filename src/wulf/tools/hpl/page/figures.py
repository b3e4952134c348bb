"""The data of the charts of a run of HPL, and the words beside them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from wulf.base.text import count
from wulf.base.units import format_value
from wulf.page.parts import Columns, Figure, Variant, rounded
from wulf.tools.hpl.page import charts
from wulf.tools.hpl.record import HplLaunch, HplResult

NAMES = {
    "size": "how long problems take",
    "search": "search, small",
    "large": "search, larger",
    "confirm": "fresh launches",
}


def path(launches: Sequence[HplLaunch]) -> Figure | None:
    """Return the search: the rate of every launch in time order; None without any."""
    # BLAS libraries are compared at an order of their own, and have a table.
    shown = [launch for launch in launches if launch.gflops and launch.phase != "blas"]
    if not shown:
        return None
    best: dict[int, float] = {}
    tops = []
    for launch in shown:
        searching = launch.phase in ("search", "large")
        if launch.status == "ok" and searching:
            best[launch.n] = max(best.get(launch.n, 0.0), launch.gflops or 0.0)
        tops.append(best.get(launch.n) if searching else None)
    main: Columns = {
        "launch": [launch.index + 1 for launch in shown],
        "rate": rounded([launch.gflops for launch in shown]),
        "phase": [NAMES[launch.phase] for launch in shown],
        "status": ["cut: at most" if launch.status == "cut" else "complete" for launch in shown],
        "best": rounded(tops),
        "N": [launch.n for launch in shown],
        "setting": [launch.setting.shown for launch in shown],
        "shown": [format_value(launch.gflops or 0.0, "GFLOPS") for launch in shown],
    }
    return Figure(
        id="path",
        chart=charts.PATH,
        title="Search path",
        x_title="launch",
        y_title="rate [GFLOPS]",
        variants=(
            Variant(
                label="",
                datasets={"main": main},
                summary=f"Rates of {count(len(shown), 'launch', 'launches')} in time order.",
                caption="Every launch in time order; the lines are the best so far of each order of the search. "
                "Larger problems are faster.",
            ),
        ),
    )


def surface(launches: Sequence[HplLaunch]) -> Figure | None:
    """Return the best rate by block size and grid, at the small order; None where fewer than two were tried."""
    small = [launch for launch in launches if launch.phase == "search" and launch.gflops]
    cells: dict[tuple[str, int], list[HplLaunch]] = {}
    for launch in small:
        cells.setdefault((launch.setting.layout, launch.setting.nb), []).append(launch)
    if len(cells) < 2:
        return None
    keys = sorted(cells, key=lambda key: (key[0], key[1]))
    tops = [max(cells[key], key=lambda launch: launch.gflops or 0.0) for key in keys]
    main: Columns = {
        "layout": [layout for layout, _ in keys],
        "nb": [nb for _, nb in keys],
        "rate": rounded([top.gflops for top in tops]),
        "shown": [format_value(top.gflops or 0.0, "GFLOPS") for top in tops],
        "setting": [top.setting.shown for top in tops],
        "launches": [len(cells[key]) for key in keys],
    }
    best = max(tops, key=lambda top: top.gflops or 0.0)
    return Figure(
        id="surface",
        chart=charts.SURFACE,
        title=f"Block size and process grid at N {best.n}",
        x_title="block size NB",
        y_title="grid P×Q and threads of a rank",
        variants=(
            Variant(
                label="",
                datasets={"main": main},
                summary=f"Best rate of {count(len(keys), 'combination')} of block size and grid; "
                f"highest: {best.setting.shown}.",
                caption="Best single launch of each combination over all broadcasts, depths and exchanges that were "
                "tried with it, of one that was cut at most that rate; where there is no field it was not tried.",
            ),
        ),
    )


def orders(launches: Sequence[HplLaunch], result: HplResult) -> Figure | None:
    """Return the rate of the chosen setting by the order of the problem; None where there are not two orders."""
    mine = [
        launch
        for launch in launches
        if launch.status == "ok"
        and launch.gflops
        and launch.setting == result.setting
        and launch.phase != "blas"
    ]
    if len({launch.n for launch in mine}) < 2:
        return None
    main: Columns = {
        "N": [launch.n for launch in mine],
        "rate": rounded([launch.gflops for launch in mine]),
        "phase": [NAMES[launch.phase] for launch in mine],
        "shown": [format_value(launch.gflops or 0.0, "GFLOPS") for launch in mine],
    }
    by_order = {
        n: [launch.gflops or 0.0 for launch in mine if launch.n == n] for n in {one.n for one in mine}
    }
    medians: Columns = {
        "N": sorted(by_order),
        "rate": rounded([statistics.median(by_order[n]) for n in sorted(by_order)]),
    }
    return Figure(
        id="orders",
        chart=charts.ORDERS,
        title="Rate by the order of the problem",
        x_title="order N",
        y_title="rate [GFLOPS]",
        variants=(
            Variant(
                label="",
                datasets={"main": main, "medians": medians},
                summary=f"Rates of the chosen setting at {count(len(by_order), 'order')}.",
                caption=f"The chosen setting: {result.setting.shown if result.setting else ''}. "
                "The line goes through the medians.",
            ),
        ),
    )

"""The data of the charts of a prediction, and the words beside them."""

from __future__ import annotations

from collections.abc import Sequence

from wulf.base.records import Estimate, Prediction
from wulf.base.text import count
from wulf.base.units import format_bandwidth, format_spread, format_time
from wulf.page import ticks
from wulf.page.parts import Columns, Figure, Variant, rounded
from wulf.page.words import change_item, lines_drawn
from wulf.tools.predict.page import charts

#: Of the curve by bandwidth only so much is drawn: times the run time now.
_SLOWEST = 1.6
#: Changes up to so much are drawn at least [%], and intervals up to so many times the largest change.
_EDGE, _WIDE = 50.0, 3.0
PARTS = ("computing", "latency", "bandwidth", "CPU of messages")


def changes(found: Prediction) -> Figure | None:
    """Return the change of the run time on every network, with its interval; None where none was asked about."""
    if not found.scenarios:
        return None
    ordered = (*found.scenarios, found.bound)
    # An interval to ten times as long would leave nothing of all others to see: it goes to the edge.
    edge = max(_EDGE, _WIDE * max(abs(_percent(one.change.value)) for one in ordered))
    main: Columns = {
        "network": [one.name for one in ordered],
        "change": rounded([_percent(one.change.value) for one in ordered]),
        "low": rounded([_percent(_known(one.change.low, one.change.value)) for one in ordered]),
        "high": rounded([min(_percent(_known(one.change.high, one.change.value)), edge) for one in ordered]),
        "verdict": [one.verdict for one in ordered],
        "shown": [change_item(one.change).text for one in ordered],
        "time": [format_spread(one.time) for one in ordered],
    }
    best = min(found.scenarios, key=lambda one: one.change.value)
    return Figure(
        id="changes",
        chart=charts.CHANGES,
        title="Change of the run time",
        x_title="change of the run time [%]",
        y_title="network",
        variants=(
            Variant(
                label="",
                datasets={"main": main},
                summary=f"Change of the run time on {count(len(found.scenarios), 'network')}; the largest gain is on "
                f"{best.name}: {change_item(best.change).text}.",
                caption=f"Points are what is likely{lines_drawn(one.change for one in ordered)}; left of zero is "
                "faster. The last line is what no network is better than: messages between nodes take no time."
                + (
                    f" Intervals beyond {edge:.0f} % end there; the table has them whole."
                    if any(_percent(_known(one.change.high, one.change.value)) > edge for one in ordered)
                    else ""
                ),
            ),
        ),
    )


def _percent(ratio: float) -> float:
    return 100 * (ratio - 1)


def _known(bound: float | None, value: float) -> float:
    return value if bound is None else bound


def shares(found: Prediction) -> Figure:
    """Return what the longest path goes through on every network."""
    everywhere = (found.base, *found.scenarios)
    main: Columns = {
        "network": [one.name for one in everywhere for _ in PARTS],
        "part": [part for _ in everywhere for part in PARTS],
        "order": [place for _ in everywhere for place in range(len(PARTS))],
        "seconds": rounded(
            [
                seconds
                for one in everywhere
                for seconds in (
                    one.path.compute_s,
                    one.path.latency_s,
                    one.path.bandwidth_s,
                    one.path.overhead_s,
                )
            ]
        ),
    }
    longest = max(one.model_s for one in everywhere)
    return Figure(
        id="shares",
        chart=charts.SHARES,
        title="What the longest path goes through",
        x_title="time of the longest path",
        y_title="network",
        x=ticks.linear_times([longest]),
        variants=(
            Variant(
                label="",
                datasets={"main": main},
                summary=f"Parts of the longest path on {count(len(everywhere), 'network')}.",
                caption="The model's time with likely parameters: computing, messages on their way, messages that take "
                "the interface, the CPU's time of messages. A network changes all but the first.",
            ),
        ),
    )


def curve(found: Prediction) -> Figure | None:
    """Return the run time by the latency between nodes, with what the program bears; None without a curve."""
    if not found.curve:
        return None
    last = found.tolerance[-1].beyond_s if found.tolerance else found.curve[-1].latency_s
    reached = [one.latency.value for one in found.tolerance if one.latency is not None]
    end = min(last, 2 * max(reached)) if reached else last
    lines = [one for one in found.curve if one.latency_s < end] or found.curve[:1]
    end = max(end, lines[-1].latency_s)
    if end <= lines[0].latency_s:
        return None
    tail = lines[-1]
    xs = [one.latency_s for one in lines] + [end]
    ys = [one.time_s for one in lines] + [tail.time_s + tail.hops * (end - tail.latency_s)]
    main: Columns = {
        "x": rounded(xs),
        "time": rounded(ys),
        "shown": [f"λ from here {one.hops:,.0f}" for one in lines] + [""],
    }
    marks = _marks(
        [(one.slower, one.latency) for one in found.tolerance],
        now=found.latency_s if found.latency_s < end and "latency" not in found.not_told else None,
    )
    return Figure(
        id="curve",
        chart=charts.CURVE,
        title="Run time by latency",
        x_title="latency between nodes",
        y_title="run time, by the model",
        x=ticks.linear_times(xs),
        y=ticks.between(ys, "s"),
        logarithmic=False,
        variants=(
            Variant(
                label="",
                datasets={"main": main, "marks": marks},
                summary=f"Run time for latencies up to {format_time(end)}: {count(len(lines), 'straight piece')}.",
                caption="Exact for the calibrated network with likely parameters, all else as it is; its slope is λ."
                + _marked(marks, "latency", "up"),
            ),
        ),
    )


def by_bandwidth(found: Prediction) -> Figure | None:
    """Return the run time by the bandwidth between nodes, with what the program bears; None without a curve."""
    if found.bandwidth is None or not found.bandwidth_curve:
        return None
    now = min(found.bandwidth_curve, key=lambda one: abs(one.factor - 1)).time_s
    points = [one for one in found.bandwidth_curve if one.time_s <= _SLOWEST * now]
    if len(points) < 2:
        return None
    xs, ys = [one.bandwidth for one in points], [one.time_s for one in points]
    main: Columns = {
        "x": rounded(xs),
        "time": rounded(ys),
        "shown": [f"{one.factor:.3g} times the calibrated bandwidth" for one in points],
    }
    marks = _marks(
        [(one.slower, one.bandwidth) for one in found.bandwidth_need],
        now=None if "bandwidth" in found.not_told else found.bandwidth,
    )
    return Figure(
        id="by-bandwidth",
        chart=charts.BY_BANDWIDTH,
        title="Run time by bandwidth",
        x_title="bandwidth of large messages between nodes",
        y_title="run time, by the model",
        x=ticks.times(xs, "B/s"),
        y=ticks.between(ys, "s"),
        variants=(
            Variant(
                label="",
                datasets={"main": main, "marks": marks},
                summary=f"Run time for bandwidths from {format_bandwidth(xs[0])} to {format_bandwidth(xs[-1])}.",
                caption="Each point is the calibrated network with likely parameters and that bandwidth, all else as "
                "it is." + _marked(marks, "bandwidth", "down"),
            ),
        ),
    )


def _marks(borne: Sequence[tuple[float, Estimate | None]], now: float | None) -> Columns:
    """Return where something is now, and where the program takes so much longer."""
    known = [(slower, one) for slower, one in borne if one is not None]
    here = [] if now is None else [now]
    return {
        "x": rounded([*here, *(one.value for _, one in known)]),
        "low": rounded([*here, *(one.low for _, one in known)]),
        "high": rounded([*here, *(one.high for _, one in known)]),
        "label": ["now"] * len(here) + [f"+{slower:.0%}" for slower, _ in known],
        "shown": ["now"] * len(here) + [format_spread(one) for _, one in known],
    }


def _marked(marks: Columns, parameter: str, way: str) -> str:
    """Say what the marks of a curve are, of those that it has; empty without any."""
    told = []
    if "now" in marks["label"]:
        told.append(f"the {parameter} now")
    if any(label != "now" for label in marks["label"]):
        told.append(f"{way} to where the program takes so much longer")
    if not told:
        return ""
    shaded = any(low != high for low, high in zip(marks["low"], marks["high"], strict=True))
    return f" Marks: {', and '.join(told)}{'; shaded: their 95 % intervals' if shaded else ''}."

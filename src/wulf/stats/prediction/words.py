"""What a prediction comes to, in words.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from wulf.base.records import Predicted, Prediction
from wulf.base.units import format_change, format_spread, format_time, format_value
from wulf.stats.prediction.launches import FEWEST, Launches


def conclusion(of: Prediction) -> Iterator[str]:
    """Say what it comes to: the answer first, then what each network brings, then why."""
    yield _answer(of) if of.explains else _caution(of)
    for one in sorted(of.scenarios, key=lambda one: one.change.value):
        yield _of_one(one) if of.explains else _by_model(one)
    yield _path(of.base)
    if not of.explains:
        return
    yield f"No network brings more than {format_change(of.bound.change)}: that is where messages take no time at all."
    yield from _bears(of)


def _caution(of: Prediction) -> str:
    """Say that what follows is not known; only where the program's own time is."""
    return (
        "Cannot tell what another network does to this program: on the network as it is the model takes "
        f"{format_spread(of.base.time)}, and the program took {format_value(of.own_s or 0.0, 's')}. What makes the "
        "difference is not in the model: CPUs that ranks share, or another network than that of the calibration. "
        "Trace it on idle nodes with a CPU for each rank, and calibrate these: wulf measure --suite calibrate."
    )


def _by_model(one: Predicted) -> str:
    return f"{one.name}: {format_change(one.change)} by a model that does not explain this program."


def _answer(of: Prediction) -> str:
    helping = [one for one in of.scenarios if one.verdict == "faster"]
    if helping:
        best = min(helping, key=lambda one: one.change.value)
        return f"A faster network helps: {best.name} changes the run time by {format_change(best.change)}."
    if of.bound.verdict == "no difference":
        return "Do not buy a network for this program: it hardly waits for the one it has."
    if any(one.verdict == "cannot be told" for one in of.scenarios):
        return "It cannot be told yet whether another network helps: the intervals reach from a gain to none."
    return "None of the networks asked about helps this program."


def _of_one(one: Predicted) -> str:
    change = format_change(one.change)
    if one.verdict == "faster":
        return f"{one.name}: the run time changes by {change}, to {format_spread(one.time)}."
    if one.verdict == "no difference":
        return f"Do not buy {one.name} for this program: {change} of the run time."
    if one.verdict == "slower":
        return f"{one.name} is worse: {change} of the run time."
    # Of a change of the calibrated network there are no parameters that somebody could measure better.
    help_ = ": narrow its parameters by measuring such a network" if one.source else ""
    return f"{one.name}: the interval, {change}, does not tell a gain from none{help_}."


def _path(base: Predicted) -> str:
    path = base.path
    parts = (path.compute_s, path.overhead_s, path.latency_s, path.bandwidth_s)
    computing, cpu, latency, bandwidth = (part / base.model_s if base.model_s else 0.0 for part in parts)
    return (
        f"Of the longest path {computing:.0%} is computing, {cpu:.0%} CPU time of messages, {latency:.0%} latency "
        f"(λ = {path.hops:,.0f}), {bandwidth:.0%} bandwidth (the model's likely values, no interval)."
    )


def _bears(of: Prediction) -> Iterator[str]:
    latency = next(iter(of.tolerance), None)
    if latency is not None:
        reached = latency.latency
        until = (
            f"more than {format_value(latency.beyond_s, 's')}" if reached is None else format_spread(reached)
        )
        yield (
            f"It bears a latency of {until} before it takes {latency.slower:.0%} longer; it is "
            f"{format_value(of.latency_s, 's')} now."
        )
    need = next(iter(of.bandwidth_need), None)
    if need is not None and of.bandwidth is not None:
        least = need.bandwidth
        down = f"less than {format_value(need.below, 'B/s')}" if least is None else format_spread(least)
        yield (
            f"It bears a bandwidth of {down} before it takes {need.slower:.0%} longer; it is "
            f"{format_value(of.bandwidth, 'B/s')} now."
        )


def notes(
    fit: float | None, spread: float, own: Launches | None, buffered: tuple[int, int], wildcards: int
) -> Iterator[str]:
    """Say what must be known of the figures.

    Parameters
    ----------
    fit
        The program's own time ÷ the model's, on the network as it is; None where it is not known.
    spread
        Relative standard deviation of what the program computes.
    own
        Run times of the program's traces.
    buffered
        How many messages only a buffer lets through, and the largest of them [B].
    wildcards
        Receives from anybody.
    """
    if fit is None:
        yield "The trace does not say how long the program ran: times are the model's alone."
    elif abs(1 / fit - 1) > 0.1:
        yield (
            f"On the network as it is the model is off by {1 / fit - 1:+.0%}: CPUs that ranks share, "
            "contention or another state of the network than that of the calibration. Changes are applied to the "
            "program's own time, and their intervals are wider for it."
        )
    yield (
        f"Compute times vary by ±{1.96 * spread:.2g} of their sum (95 %), as blocks of the trace differ."
        if spread > 0
        else "Compute times are taken as they were traced: the trace is too short to say how they vary."
    )
    yield _of_launches(own)
    count, largest = buffered
    if count:
        yield (
            f"{count} messages of up to {largest} B are sent by both sides before any of them receives: only buffers "
            "let the program go on, and where they are smaller it would wait for ever."
        )
    if wildcards:
        yield (
            f"{wildcards} receives take a message from anybody: they get those that they got when the program was "
            "traced. On another network others may come first."
        )


#: So many calls on files are named.
_NAMED = 3


def files(calls: Mapping[str, float], own_s: float | None) -> Iterator[str]:
    """Say what calls on files take, and what a prediction makes of it.

    Parameters
    ----------
    calls
        Name → time, the mean of the ranks [s]; those with most first.
    own_s
        Run time of the program [s]; None where it is not known.
    """
    if not calls:
        return
    total_s = sum(calls.values())
    share = f", {total_s / own_s:.0%} of the run time" if own_s else ""
    named = ", ".join(list(calls)[:_NAMED])
    yield (
        f"Calls on files take {format_time(total_s)} of each rank{share} ({named}). This is kept as it was traced, "
        "with what ranks waited for each other in collective ones. Where files come over the changed network it would "
        "change, too; wulf measure --suite files measures them."
    )


def _of_launches(own: Launches | None) -> str:
    if own is not None and own.is_told:
        return (
            f"{len(own.times)} traces: launches differ by ±{1.96 * own.spread:.2g} (95 %). Run times are those of a "
            "usual launch, the median; 'one launch' is where a single one lies. They are taken to differ as much "
            "elsewhere."
        )
    return (
        "How far a launch differs from the next is not in one trace: --again gives more traces of the same "
        f"program, {FEWEST} in all at least."
    )

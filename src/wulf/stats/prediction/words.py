"""What a prediction comes to, in words.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from wulf.base.records import Predicted, Prediction
from wulf.base.text import IS, count
from wulf.base.units import format_change, format_spread, format_time, format_value
from wulf.stats.prediction.launches import FEWEST, TESTED, Launches


def conclusion(of: Prediction) -> Iterator[str]:
    """Say what it comes to: what the program would gain on what, or why that cannot be said; then why."""
    yield _answer(of) if of.explains else _caution(of)
    yield from (f"{why}." for why in of.refused.values())
    yield _path(of.base, tells_latency="latency" not in of.not_told)
    if of.explains:
        most = format_change(of.bound.change)
        yield f"No network brings more than {most}: that is where messages take no time at all."


def _caution(of: Prediction) -> str:
    """Say that what follows is not known; only where the program's own time is."""
    return (
        "Cannot tell what another network does to this program: on the network as it is the model takes "
        f"{format_spread(of.base.time)}, and the program took {format_value(of.own_s or 0.0, 's')}. What makes the "
        "difference is not in the model: CPUs that ranks share, or another network than that of the calibration. "
        "Trace it on idle nodes with a CPU for each rank, and calibrate these: wulf measure --suite calibrate."
    )


def _answer(of: Prediction) -> str:
    helping = [one for one in of.scenarios if one.verdict == "faster"]
    if helping:
        best = min(helping, key=lambda one: one.change.value)
        now = f" instead of {format_value(of.own_s, 's')}" if of.own_s else ""
        return (
            f"A faster network helps: on {best.name} the program takes {format_spread(best.time)}{now}, "
            f"{format_change(best.change)}."
        )
    if of.bound.verdict == "no difference":
        return (
            "Do not buy a network for this program: it hardly waits for the one it has, and none brings more than "
            f"{format_change(of.bound.change)}."
        )
    unsure = [one for one in of.scenarios if one.verdict == "cannot be told"]
    if unsure:
        best = min(unsure, key=lambda one: one.change.value)
        # Of a change of the calibrated network there are no parameters that somebody could measure better.
        help_ = ": measure such a network" if best.source else ""
        return (
            f"Cannot tell whether another network helps: on {best.name} the run time changes by "
            f"{format_change(best.change)}{help_}."
        )
    if not of.scenarios:
        return "No network was asked about."
    best = min(of.scenarios, key=lambda one: one.change.value)
    these = (
        "None of those networks asked about that can be told"
        if of.refused
        else "None of the networks asked about"
    )
    return (
        f"{these} helps this program: the best of them, {best.name}, changes its run time by "
        f"{format_change(best.change)}."
    )


def _path(base: Predicted, *, tells_latency: bool) -> str:
    path = base.path
    parts = (path.compute_s, path.overhead_s, path.latency_s, path.bandwidth_s)
    computing, cpu, latency, bandwidth = (part / base.model_s if base.model_s else 0.0 for part in parts)
    if not tells_latency:
        return (
            f"On the longest path {computing:.0%} of the time is computing, {bandwidth:.0%} bandwidth, "
            f"{latency + cpu:.0%} latency (λ = {path.hops:,.0f} of them, one after the other) and the CPU's time of "
            "messages, which the calibration does not tell apart (the model's likely values, no interval)."
        )
    return (
        f"On the longest path {computing:.0%} of the time is computing, {latency:.0%} latency (λ = {path.hops:,.0f} of "
        f"them, one after the other), {bandwidth:.0%} bandwidth, {cpu:.0%} the CPU's time of messages (the model's "
        "likely values, no interval)."
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
    messages, largest = buffered
    if messages:
        yield (
            f"{count(messages, 'message', verbs=IS)} sent by both sides, of up to {largest} B, before any of them "
            "receives: only buffering lets the program go on: with smaller buffers it would deadlock."
        )
    if wildcards:
        yield (
            f"{count(wildcards, 'receive', verbs=('takes', 'take'))} a message from any source (MPI_ANY_SOURCE): here "
            "the one received when the program was traced. On another network others may arrive first."
        )


#: So many calls on files are named.
_NAMED = 3


def lost(messages: int, source: int, destination: int) -> Iterator[str]:
    """Say that messages are never received; `source` and `destination` are those of one of them."""
    if messages:
        yield (
            f"{count(messages, 'message', verbs=IS)} never received, such as from rank {source} to rank "
            f"{destination}: by a receive that the trace does not tell, or that the program does not make. "
            "That takes time of the sender only."
        )


def threads(overlaps: Mapping[int, float]) -> Iterator[str]:
    """Say what a prediction makes of threads that call MPI at the same time for a little.

    Parameters
    ----------
    overlaps
        Rank → part of its run that such calls took, of all its threads together.
    """
    if overlaps:
        worst = max(overlaps, key=overlaps.__getitem__)
        yield (
            f"Threads called MPI at the same time in calls that took {100 * overlaps[worst]:.2g} % of the run of "
            f"rank {worst}{' at most' if len(overlaps) > 1 else ''}: they are replayed one after the other."
        )


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
            f"{count(len(own.times), 'trace')}: launches differ by ±{1.96 * own.spread:.2g} (95 %). Run times are "
            "those of a usual launch, the median; 'one launch' is where a single one lies. They are assumed to differ "
            "as much elsewhere."
            + (
                f" Fewer than {TESTED} do not tell whether launches resemble those before them: such intervals hold "
                "for traces that were made at different times."
                if len(own.times) < TESTED
                else ""
            )
        )
    return (
        "One trace does not show how launches differ: give more of the same program with "
        f"--again, {FEWEST} in all at least."
    )

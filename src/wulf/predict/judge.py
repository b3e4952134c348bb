"""From replays to a prediction: figures with intervals, and what they mean in words.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wulf.predict import replayed, uncertainty
from wulf.predict.draws import Sample
from wulf.predict.network import Network
from wulf.predict.scenario import Scenario
from wulf.records import CurveLine, Estimate, HopSource, PathShares, Predicted, Tolerance
from wulf.units import format_change, format_spread, format_time

AS_IT_IS = "as it is"
#: Changes of the run time within this part do not matter.
MARGIN = 0.02
SLOWER = (0.01, 0.02, 0.05)
#: Ranks that a line about hops names.
_RANKS = 4


@dataclass(frozen=True)
class Asked:
    """Networks in the order in which they are replayed: likely ones first, then each sample of all.

    `columns` counts the calibrated network, too.
    """

    networks: list[Network]
    columns: int

    @property
    def samples(self) -> int:
        """How many samples there are."""
        return len(self.networks) // self.columns - 1


def asked(
    base: Network, sampled: Sequence[Network], scenarios: Sequence[Scenario], draws: Sequence[Sample]
) -> Asked:
    """Return the networks to replay: each scenario is paired with the calibrated network of its sample."""
    rows = [[base, *(one.network(base) for one in scenarios)]]
    rows += [
        [network, *(one.network(network, draw) for one in scenarios)]
        for network, draw in zip(sampled, draws, strict=True)
    ]
    return Asked([network for row in rows for network in row], len(scenarios) + 1)


@dataclass(frozen=True)
class Figures:
    """What the replay of all networks came to."""

    #: Model's times: a row for the likely networks, then one of each sample; a column of each network [s].
    times: NDArray[np.float64]
    paths: list[PathShares]
    own_s: float | None
    #: Standard normal numbers of each sample, for the misfit.
    numbers: NDArray[np.float64]

    @property
    def anchor_s(self) -> float:
        """The time that changes are applied to: the program's own, or else the model's."""
        return self.own_s or float(self.times[0, 0])

    def likely(self, column: int) -> float:
        """Run time on another network ÷ that on the network as it is, with likely parameters."""
        return float(self.times[0, column] / self.times[0, 0])

    def changes(self, column: int) -> NDArray[np.float64]:
        """Return the same of every sample, with how well the model fits."""
        changes = self.times[1:, column] / self.times[1:, 0]
        return changes * uncertainty.misfit(self.fit, changes, self.numbers)

    @property
    def fit(self) -> float:
        """The program's own time ÷ the model's; 1 where it is not known."""
        return self.anchor_s / float(self.times[0, 0])


def figures(found: replayed.Replayed, of: Asked, own_s: float | None, draws: Sequence[Sample]) -> Figures:
    """Return what the replay of all networks came to."""
    times = np.array([one.time_ns for one in found.results]).reshape(-1, of.columns) * 1e-9
    paths = [
        one.path(network)
        for one, network in zip(found.results[: of.columns], of.networks[: of.columns], strict=True)
    ]
    return Figures(times, paths, own_s, np.array([draw.of("misfit") for draw in draws]))


def as_it_is(of: Figures, source: str) -> Predicted:
    """Return what the model says of the network as it is."""
    samples = of.times[1:, 0]
    value = float(of.times[0, 0])
    time = uncertainty.estimate(
        value, samples, "s", "model alone; parameters and compute times from their intervals"
    )
    change = uncertainty.estimate(value / of.anchor_s, samples / of.anchor_s, "ratio", time.method)
    return Predicted(
        name=AS_IT_IS,
        title="the network that was measured",
        time=time,
        change=change,
        model_s=value,
        path=of.paths[0],
        source=source,
        verdict="the model's own time, which need not be that of the program",
    )


def on(scenario: Scenario, column: int, of: Figures) -> Predicted:
    """Return what the program takes on another network: its own time, times the model's change."""
    likely, factors = of.likely(column), of.changes(column)
    method = "program's own time × the model's change, both networks of one sample; misfit as on the network as it is"
    change = uncertainty.estimate(likely, factors, "ratio", method)
    return Predicted(
        name=scenario.name,
        title=scenario.title,
        time=uncertainty.estimate(of.anchor_s * likely, of.anchor_s * factors, "s", method),
        change=change,
        model_s=float(of.times[0, column]),
        path=of.paths[column],
        source="; ".join(f"{e.source} ({e.how_known})" for one in scenario.of for e in one.evidence),
        verdict=verdict(change),
    )


def verdict(change: Estimate) -> str:
    """Return what a change of the run time means."""
    low, high = change.low or change.value, change.high or change.value
    if high < 1 - MARGIN:
        return "faster"
    if low > 1 + MARGIN:
        return "slower"
    if low >= 1 - MARGIN and high <= 1 + MARGIN:
        return "no difference"
    return "cannot be told"


def tolerances(
    curve: Sequence[CurveLine],
    beyond_s: float,
    base: Network,
    sampled: Sequence[Network],
    times: NDArray[np.float64],
) -> list[Tolerance]:
    """Return how much latency the program bears; nothing without a curve, which ends at `beyond_s`."""
    if not curve:
        return []
    here = base.between.latency_ns * 1e-9
    found = []
    for slower in SLOWER:
        reached = replayed.tolerated(curve, here, slower)
        latency = None
        if reached is not None and reached <= beyond_s:
            slack = reached - here
            samples = np.array(
                [
                    one.between.latency_ns * 1e-9 + slack * time / times[0]
                    for one, time in zip(sampled, times[1:], strict=True)
                ]
            )
            latency = uncertainty.estimate(
                reached, samples, "s", "exact for the likely network; interval by its latency and run time"
            )
        found.append(Tolerance(slower=slower, latency=latency, beyond_s=beyond_s))
    return found


def hop_sources(found: Sequence[replayed.Hops]) -> list[HopSource]:
    """Return where the latencies of the longest path come from, most first; ranks of one call and size together."""
    groups: dict[tuple[str, int], list[replayed.Hops]] = {}
    for one in found:
        groups.setdefault((one.call, one.bytes), []).append(one)
    sources = [
        HopSource(
            call=call,
            ranks=[one.from_rank for one in sorted(group, key=lambda one: -one.latencies)[:_RANKS]],
            size_bytes=size,
            hops=sum(one.latencies for one in group),
        )
        for (call, size), group in groups.items()
    ]
    return sorted(sources, key=lambda one: -one.hops)


def conclusion(
    base: Predicted, scenarios: Sequence[Predicted], tolerance: Sequence[Tolerance], here_s: float
) -> Iterator[str]:
    """Say what it comes to, most important first."""
    helping = [one for one in scenarios if one.verdict == "faster"]
    for one in sorted(helping, key=lambda one: one.change.value):
        yield f"{one.name}: the run time changes by {format_change(one.change)}, to {format_spread(one.time)}."
    for one in scenarios:
        if one.verdict == "no difference":
            yield f"Do not buy {one.name} for this program: {format_change(one.change)} of the run time."
        elif one.verdict == "slower":
            yield f"{one.name} is worse: {format_change(one.change)} of the run time."
        elif one.verdict == "cannot be told":
            yield (
                f"{one.name}: the interval, {format_change(one.change)}, does not tell a gain from none: "
                "narrow its parameters by measuring such a network."
            )
    whole = base.model_s
    path = base.path
    yield (
        f"Of the longest path {path.compute_s / whole:.0%} is computing, {path.overhead_s / whole:.0%} CPU time of "
        f"messages, {path.latency_s / whole:.0%} latency (λ = {path.hops:.0f}), {path.bandwidth_s / whole:.0%} "
        f"bandwidth: no network brings more than {format_time(max(whole - path.compute_s, 0.0))} of it (the model's "
        "likely values, no interval)."
    )
    one_percent = next(iter(tolerance), None)
    if one_percent is not None:
        reached = one_percent.latency
        until = (
            f"more than {format_time(one_percent.beyond_s)}" if reached is None else format_spread(reached)
        )
        yield (
            f"It bears a latency of {until} before it takes {one_percent.slower:.0%} longer; "
            f"it is {format_time(here_s)} now."
        )


def notes(fit: float | None, spread: float, buffered: tuple[int, int]) -> Iterator[str]:
    """Say what must be known of the figures.

    Parameters
    ----------
    fit
        The program's own time ÷ the model's, on the network as it is; None where it is not known.
    spread
        Relative standard deviation of what the program computes.
    buffered
        How many messages only a buffer lets through, and the largest of them [B].
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
        f"Compute times vary by ±{1.96 * spread:.2g} of their sum (95 %), as blocks of the trace differ; how far a run "
        "differs from the next is not in one trace."
        if spread > 0
        else "Compute times are taken as they were traced: the trace is too short to say how they vary."
    )
    count, largest = buffered
    if count:
        yield (
            f"{count} messages of up to {largest} B are sent by both sides before any of them receives: only buffers "
            "let the program go on, and where they are smaller it would wait for ever."
        )

"""From replays to a prediction: figures with intervals, and what each of them means.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from wulf.base.errors import UsageError
from wulf.base.records import Estimate, HopSource, PathShares, Predicted
from wulf.stats.prediction import replayed, scenario, uncertainty
from wulf.stats.prediction.draws import Sample
from wulf.stats.prediction.launches import Launches
from wulf.stats.prediction.network import Network
from wulf.stats.prediction.scenario import Scenario

AS_IT_IS = "as it is"
#: Changes of the run time within this part do not matter.
MARGIN = 0.02
#: What is said where the interval reaches from a gain to none, or the model explains little of the program.
UNTOLD = "cannot be told"
#: Ranks that a line about hops names.
_RANKS = 4


@dataclass(frozen=True)
class Asked:
    """Networks in the order in which they are replayed: likely ones first, then each sample of all, then a grid.

    Behind them are for each likely one what it cannot take less than, by bandwidth and by computing alone. Last is the
    calibrated one as single launches find it. `columns` counts the calibrated network, too.
    """

    networks: list[Network]
    columns: int
    #: How many networks of the grid there are.
    grid: int = 0
    #: … and how many of single launches.
    launches: int = 0

    def rates(self) -> NDArray[np.float64]:
        """Return for how long a byte takes each network [ns], and times what the program computes: [row, column, 2]."""
        rows = [
            [one.between.wire[-1].per_byte_ns, one.compute]
            for one in self.networks[: len(self.networks) - self.grid - self.launches - 2 * self.columns]
        ]
        return np.array(rows).reshape(-1, self.columns, 2)


def asked(
    base: Network,
    sampled: Sequence[Network],
    scenarios: Sequence[Scenario],
    draws: Sequence[Sample],
    grid: Sequence[Network],
    launches: Sequence[Network] = (),
) -> Asked:
    """Return the networks to replay: each scenario is paired with the calibrated network of its sample."""
    rows = [[base, *(one.network(base) for one in scenarios)]]
    rows += [
        [network, *(one.network(network, draw) for one in scenarios)]
        for network, draw in zip(sampled, draws, strict=True)
    ]
    networks = [network for row in rows for network in row]
    floors = [alone(one) for one in rows[0] for alone in scenario.ALONE]
    return Asked([*networks, *grid, *floors, *launches], len(scenarios) + 1, len(grid), len(launches))


@dataclass(frozen=True)
class Figures:
    """What the replay of all networks came to."""

    #: Model's times: a row for the likely networks, then one of each sample; a column of each network [s].
    times: NDArray[np.float64]
    paths: list[PathShares]
    own_s: float | None
    #: Standard normal numbers of each sample, for the misfit.
    numbers: NDArray[np.float64]
    #: Of the grid's networks [s].
    grid: list[float]
    #: The model's times of single launches on the calibrated network [s].
    launches: NDArray[np.float64] = field(default_factory=lambda: np.array([]))
    #: How launches of the program differ; None where its traces do not say how long it ran.
    own: Launches | None = None
    #: Standard normal numbers of each sample: for the median of launches, and for one of them.
    usual_numbers: NDArray[np.float64] = field(default_factory=lambda: np.array([]))
    single: NDArray[np.float64] = field(default_factory=lambda: np.array([]))
    #: What each likely network cannot take less than, by bandwidth and by computing alone: [column, 2] [s].
    floors: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 2)))
    #: The same for each of `times`, in times of the program's own: [row, column, 2] [s].
    least: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    @property
    def anchor_s(self) -> float:
        """The time that changes are applied to: the program's own, or else the model's."""
        return self.own_s or float(self.times[0, 0])

    def likely(self, column: int) -> float:
        """Run time on another network ÷ that on the network as it is, with likely parameters."""
        return float(max(self._fitted(column)[0], self.least_ratios(column)[0]))

    def changes(self, column: int) -> NDArray[np.float64]:
        """Return the same of every sample, with how well the model fits."""
        changes = self.times[1:, column] / self.times[1:, 0]
        fitted = self._fitted(column)[1:] * uncertainty.misfit(self.fit, changes, self.numbers)
        return np.maximum(fitted, self.least_ratios(column)[1:])

    def _fitted(self, column: int) -> NDArray[np.float64]:
        """Return changes, of the likely networks and of each sample, that agree with the program's own time."""
        here, there = self.times[:, 0], self.times[:, column]
        if self.own_s is None:
            return there / here
        common = uncertainty.in_common(self.times[0, column] / self.times[0, 0], here[1:], there[1:])
        changed: NDArray[np.float64] = (
            there / self.own_s * uncertainty.carried_over(self.own_s / here, common)
        )
        return changed

    def least_ratios(self, column: int) -> NDArray[np.float64]:
        """Return what no run time is below, of each row, ÷ that on the network as it is."""
        if not self.least.size:
            return np.zeros(len(self.times))
        least: NDArray[np.float64] = self.least[:, column].max(axis=1) / self.anchor_s
        return least

    def usual(self, column: int) -> NDArray[np.float64]:
        """Return run times of a usual launch of every sample [s].

        Launches differ in what they compute, too; the median of none is below what its bytes take at the bandwidth.
        """
        times = self.anchor_s * self.changes(column)
        if self.own is None or not self.own.is_told:
            return times
        times = times * self.own.usual(self.usual_numbers)
        return np.maximum(times, self.least[1:, column, 0]) if self.least.size else times

    def modelled(self) -> NDArray[np.float64]:
        """Return the model's run times of every sample on the network as it is [s]."""
        return np.maximum(self.times[1:, 0], self.anchor_s * self.least_ratios(0)[1:])

    def floor(self, column: int) -> Estimate | None:
        """Return what the run time is not below [s], with the interval of bandwidth and computing; None if unknown."""
        if not self.least.size:
            return None
        least = self.least[:, column].max(axis=1)
        return uncertainty.estimate(
            float(least[0]), least[1:], "s", "bandwidth and computing alone; the greater"
        )

    @property
    def fit(self) -> float:
        """The program's own time ÷ the model's; 1 where it is not known."""
        return self.anchor_s / float(self.times[0, 0])


def figures(found: replayed.Replayed, of: Asked, own: Launches | None, draws: Sequence[Sample]) -> Figures:
    """Return what the replay of all networks came to."""
    every = np.array([one.time_ns for one in found.results]) * 1e-9
    if not every[0] > 0:
        raise UsageError("nothing that the trace holds takes any time: it computes nothing and sends nothing")
    last = len(every) - of.launches
    times, grid, alone, launches = np.split(
        every, (last - 2 * of.columns - of.grid, last - 2 * of.columns, last)
    )
    floors = alone.reshape(of.columns, 2)
    own_s = own.median_s if own is not None else None
    paths = [
        one.path(network)
        for one, network in zip(found.results[: of.columns], of.networks[: of.columns], strict=True)
    ]
    misfit, usual, single = (
        np.array([draw.of(name) for draw in draws]) for name in ("misfit", "usual launch", "one launch")
    )
    return Figures(
        times=times.reshape(-1, of.columns),
        paths=paths,
        own_s=own_s,
        numbers=misfit,
        grid=grid.tolist(),
        launches=launches,
        own=own,
        usual_numbers=usual,
        single=single,
        floors=floors,
        least=_least(floors, of.rates(), own_s),
    )


def _least(
    floors: NDArray[np.float64], rates: NDArray[np.float64], own_s: float | None
) -> NDArray[np.float64]:
    """Return what no prediction is below, by bandwidth and by computing alone: [row, column, 2] [s].

    Floors are of likely networks; those of a sample have its bandwidth and computing. Of a program that was faster than
    its own floor they are less by that.
    """
    likely = np.where(rates[:1] > 0, rates[:1], 1.0)
    least: NDArray[np.float64] = floors * np.where(rates[:1] > 0, rates / likely, 1.0)
    here = float(floors[0].max())
    return least * min(1.0, own_s / here) if own_s is not None and here > 0 else least


def as_it_is(of: Figures, source: str) -> Predicted:
    """Return what the model says of the network as it is."""
    samples = of.modelled()
    value = float(of.times[0, 0])
    time = uncertainty.estimate(
        value, samples, "s", "model alone; parameters and compute times from their intervals"
    )
    change = uncertainty.estimate(value / of.anchor_s, samples / of.anchor_s, "ratio", time.method)
    return Predicted(
        name=AS_IT_IS,
        title="the network that was measured",
        time=time,
        launch=_one_launch_by_model(value, of),
        change=change,
        model_s=value,
        path=of.paths[0],
        source=source,
        verdict="the model's own time, which need not be that of the program",
    )


def _one_launch_by_model(value: float, of: Figures) -> Estimate | None:
    if not len(of.launches):
        return None
    method = "model alone; one launch, as those of the calibration differ"
    return uncertainty.estimate(value, of.launches, "s", method)


def on(asked: Scenario, column: int, of: Figures) -> Predicted:
    """Return what the program takes on another network, its own time on the network as it is being known."""
    likely, factors = of.likely(column), of.changes(column)
    method = (
        "the model's time there, with as much of its misfit here as samples of both networks have in common"
    )
    change = uncertainty.estimate(likely, factors, "ratio", method)
    value, launch = of.anchor_s * likely, None
    if of.own is not None and of.own.is_told:
        single = of.anchor_s * factors * of.own.single(of.single)
        launch = uncertainty.estimate(value, single, "s", f"{method}; one launch")
    return Predicted(
        name=asked.name,
        title=asked.title,
        time=uncertainty.estimate(value, of.usual(column), "s", method),
        launch=launch,
        change=change,
        model_s=float(of.times[0, column]),
        path=of.paths[column],
        source="; ".join(f"{e.source} ({e.how_known})" for one in asked.of for e in one.evidence),
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
    return UNTOLD


def hop_sources(found: Sequence[replayed.Hops]) -> list[HopSource]:
    """Return where the latencies of the longest path come from, most first; ranks of one call and size together."""
    groups: dict[tuple[str, int, str], list[replayed.Hops]] = {}
    for one in found:
        groups.setdefault((one.call, one.bytes, one.where), []).append(one)
    sources = [
        HopSource(
            call=call,
            ranks=[one.from_rank for one in sorted(group, key=lambda one: -one.latencies)[:_RANKS]],
            size_bytes=size,
            hops=sum(one.latencies for one in group),
            between=where == "between",
        )
        for (call, size, where), group in groups.items()
    ]
    return sorted(sources, key=lambda one: (-one.between, -one.hops))

"""The search for the quickest setting: cheap small problems first, then the best of them at the large one.

The logarithm of the time is a Gaussian process over the parameters, with the noise of single launches. Parameters that
do not matter are found out by their likelihood, so that what is learnt of one setting counts for many others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
import scipy
from numpy.typing import NDArray

from wulf.tools.hpl.program import Layout

Values = Mapping[str, Layout | int]
Order = Literal["small", "large"]
_ORDERS: tuple[Order, Order] = ("small", "large")
Floats = NDArray[np.float64]

#: Share of the budget after which no further setting is tried at the small order.
SMALL_SHARE = 0.5
#: A launch at the small order says less than one at the large order: it must cost no more than this share of one.
CHEAP = 0.2
#: Settings that are tried at the large order first.
FINALISTS = 4
#: A launch is cut when it is slower than the best by this factor: what was learnt by then is enough.
CUT = 1.5
#: The scales are fitted anew after so many launches.
_FIT_EVERY = 4
#: Rates: threads, shape of the grid, NB, depth, swap, broadcast, order. All columns of the broadcast share theirs.
_RATES = 7
_RATE_OF = [0, 1, 2, 3, 4]
#: Where the logarithms of the scales are likely to be, and how far from it: parameters do about 30 %, launches scatter
#: by 3 %.
_PRIOR = np.array([math.log(0.3), math.log(0.03), *[-2.0] * _RATES])
_PRIOR_WIDTH = np.array([0.7, 0.7, *[1.5] * _RATES])
_BOUNDS = [(-4.0, 1.0), (-9.0, -1.0), *[(-7.0, 2.0)] * _RATES]


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """What to launch next."""

    #: Of the settings of the space.
    index: int
    order: Order
    #: Time of the solution after which it is cut; None as long as nothing is known [s].
    limit_s: float | None


class Search:
    """Proposes launches and learns from them.

    Parameters
    ----------
    settings
        All that can be tried.
    budget_s
        Time for all launches [s].
    seed
        Of the first settings, and of ties.
    """

    def __init__(self, settings: Sequence[Values], budget_s: float, seed: int) -> None:
        self._places = coordinates(settings)
        self._budget_s = budget_s
        self._spent_s = 0.0
        self._rng = np.random.default_rng(seed)
        self._first = _covering(settings, self._rng)
        #: (setting, logarithm of the time) of every launch of each order.
        self._seen: dict[Order, list[tuple[int, float]]] = {"small": [], "large": []}
        self._costs: dict[Order, list[float]] = {"small": [], "large": []}
        self._failed: set[int] = set()
        self._scales = _Scales(_PRIOR)
        #: Launches behind the scales.
        self._fitted = 0

    def propose(self) -> Proposal | None:
        """Return what to launch next; None when the budget is spent, or nothing is left to learn."""
        # Where all have failed so far, nothing is known of the large order.
        blind = not any(self._seen.values())
        if self._screens(blind):
            index = self._next_small()
            if index is not None:
                return Proposal(index=index, order="small", limit_s=self._limit_s("small"))
        if blind or self._spent_s + self._expected_s("large") > self._budget_s:
            return None
        index = self._next_large()
        return None if index is None else Proposal(index=index, order="large", limit_s=self._limit_s("large"))

    def _screens(self, blind: bool) -> bool:
        """Whether another setting is tried at the small order.

        After the first settings one launch at the large order says what those cost.
        """
        after_s = self._spent_s + self._expected_s("small")
        if blind or after_s >= SMALL_SHARE * self._budget_s:
            return blind and after_s < self._budget_s
        if not self._costs["large"]:
            return bool(self._first)
        return self._expected_s("small") <= CHEAP * self._expected_s("large")

    def add(self, index: int, order: Order, time_s: float | None, cost_s: float) -> None:
        """Learn from a launch.

        Parameters
        ----------
        time_s
            Of the solution [s]; of one that was cut what it would have taken at least; None when it failed.
        cost_s
            Of the whole launch [s].
        """
        self._spent_s += cost_s
        self._costs[order].append(cost_s)
        if time_s is None:
            self._failed.add(index)
        else:
            self._seen[order].append((index, math.log(time_s)))

    def best(self) -> int | None:
        """Return the setting that is expected to be the quickest at the large order; None before any was launched.

        Only settings that were launched there count, unless none was.
        """
        order: Order = "large" if self._seen["large"] else "small"
        measured = sorted({index for index, _ in self._seen[order]} - self._failed)
        if not measured:
            return None
        means, _ = self._predict(order, measured)
        return measured[int(np.argmin(means))]

    def _limit_s(self, order: Order) -> float | None:
        seen = self._seen[order]
        if not seen:
            return None
        # What the best is expected to take: the quickest launch may have been lucky.
        launched = sorted({index for index, _ in seen})
        means, _ = self._predict(order, launched)
        return CUT * math.exp(float(means.min()))

    def _expected_s(self, order: Order) -> float:
        """Return what a launch costs; at first that of the large order is as much dearer as its time is longer."""
        costs = self._costs[order] or self._costs["small"]
        return float(np.median(costs)) if costs else 0.0

    def _next_small(self) -> int | None:
        tried = {index for index, _ in self._seen["small"]} | self._failed
        while self._first:
            index = self._first.pop()
            if index not in tried:
                return index
        left = [index for index in range(len(self._places)) if index not in tried]
        if not left or not self._seen["small"]:
            return left[0] if left else None
        means, deviations = self._predict("small", left)
        return left[int(np.argmax(_improvement(means, deviations, min(v for _, v in self._seen["small"]))))]

    def _next_large(self) -> int | None:
        launches = [index for index, _ in self._seen["large"]]
        usable = [index for index in range(len(self._places)) if index not in self._failed]
        if not usable:
            return None
        if len(set(launches)) < min(FINALISTS, len(usable)):
            fresh = [index for index in usable if index not in launches]
            means, _ = self._predict("small" if not launches else "large", fresh)
            return fresh[int(np.argmin(means))]
        means, deviations = self._predict("large", usable)
        return usable[int(np.argmin(self._rng.normal(means, deviations)))]

    def _predict(self, order: Order, wanted: Sequence[int]) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the logarithm of the time of settings."""
        seen = [(index, value, name) for name in _ORDERS for index, value in self._seen[name]]
        rows = np.concatenate([self._at([index], name) for index, _, name in seen])
        values = np.array([value for _, value, _ in seen])
        offsets = np.array(_means(rows, values))
        centred = values - offsets[rows[:, -1].astype(int)]
        if len(seen) - self._fitted >= _FIT_EVERY:
            self._fitted = len(seen)
            self._scales = _fit(rows, centred, self._scales.point)
        means, deviations = _posterior(self._scales, rows, centred, self._at(wanted, order))
        return means + offsets[_ORDERS.index(order)], deviations

    def _at(self, wanted: Sequence[int], order: Order) -> Floats:
        column = np.full(len(wanted), float(_ORDERS.index(order)))
        return np.column_stack([self._places[list(wanted)], column])


def coordinates(settings: Sequence[Values]) -> Floats:
    """Return each setting as numbers whose distances say how alike two settings are. Shape (settings, dimensions).

    What does nothing in a grid is no difference: panels are broadcast along its rows, rows swapped along its columns.
    """
    kinds = sorted({int(str(values["bcast"])) for values in settings})
    rows = []
    for values in settings:
        layout = values["layout"]
        assert isinstance(layout, Layout)
        numbers = {name: value for name, value in values.items() if isinstance(value, int)}
        row = [math.log2(layout.threads), math.log2(layout.q / layout.p), math.log2(numbers["nb"])]
        row += [float(numbers["depth"]), float(numbers["swap"]) * (layout.p > 1)]
        rows.append(row + [0.5 * (numbers["bcast"] == kind) * (layout.q > 1) for kind in kinds])
    return np.array(rows)


def _covering(settings: Sequence[Values], rng: np.random.Generator) -> list[int]:
    """Return a few settings that have every value of every parameter among them, in random order."""
    missing = {(name, value) for values in settings for name, value in values.items()}
    order = [int(index) for index in rng.permutation(len(settings))]
    chosen: list[int] = []
    while missing:
        index = max(order, key=lambda index: len(missing.intersection(settings[index].items())))
        chosen.append(index)
        missing -= set(settings[index].items())
    return chosen


def _improvement(means: Floats, deviations: Floats, best: float) -> Floats:
    """Return the expected improvement over the best (Jones, Schonlau, Welch 1998)."""
    gain = best - means
    score = gain / deviations
    return np.asarray(
        gain * scipy.stats.norm.cdf(score) + deviations * scipy.stats.norm.pdf(score), dtype=np.float64
    )


class _Scales(msgspec.Struct, frozen=True):
    """How much the parameters do, how soon it changes with each of them, and the noise; as logarithms."""

    point: Floats

    @property
    def signal(self) -> float:
        """Variance of what parameters do."""
        return math.exp(2 * self.point[0])

    @property
    def noise(self) -> float:
        """Variance of single launches."""
        return math.exp(2 * self.point[1])

    def kernel(self, first: Floats, second: Floats) -> Floats:
        """Return the covariance of points. Shape (first, second)."""
        rates = np.exp(self.point[2:])[_RATE_OF + [_RATES - 2] * (first.shape[1] - _RATES + 1) + [_RATES - 1]]
        distances = np.abs(first[:, None, :] - second[None, :, :]) @ rates
        return np.asarray(self.signal * np.exp(-distances), dtype=np.float64)


def _fit(rows: Floats, centred: Floats, start: Floats) -> _Scales:
    """Return the scales that make values most likely, near what is usual: few launches make nothing certain."""

    def cost(point: Floats) -> float:
        scales = _Scales(point)
        factor = scipy.linalg.cho_factor(
            scales.kernel(rows, rows) + scales.noise * np.eye(len(rows)), lower=True
        )
        likelihood = -0.5 * float(centred @ scipy.linalg.cho_solve(factor, centred)) - float(
            np.log(np.diag(factor[0])).sum()
        )
        return 0.5 * float((((point - _PRIOR) / _PRIOR_WIDTH) ** 2).sum()) - likelihood

    return _Scales(
        scipy.optimize.minimize(cost, start, method="L-BFGS-B", bounds=_BOUNDS, options={"maxiter": 15}).x
    )


def _posterior(scales: _Scales, rows: Floats, centred: Floats, wanted: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation at points.

    Rasmussen and Williams (2006), "Gaussian processes for machine learning", section 2.2.
    """
    factor = scipy.linalg.cho_factor(scales.kernel(rows, rows) + scales.noise * np.eye(len(rows)), lower=True)
    across = scales.kernel(wanted, rows)
    spare = scales.signal - np.einsum("ij,ji->i", across, scipy.linalg.cho_solve(factor, across.T))
    means = across @ scipy.linalg.cho_solve(factor, centred)
    return np.asarray(means, dtype=np.float64), np.sqrt(np.maximum(spare, 1e-12))


def _means(rows: Floats, values: Floats) -> tuple[float, float]:
    """Return the mean at the small and at the large order; the step between them by settings launched at both."""
    at: tuple[dict[bytes, list[float]], dict[bytes, list[float]]] = ({}, {})
    for row, value in zip(rows, values, strict=True):
        at[int(row[-1])].setdefault(row[:-1].tobytes(), []).append(float(value))
    small, large = (float(np.mean(values[rows[:, -1] == flag])) if at[flag] else math.nan for flag in (0, 1))
    steps = [np.median(at[1][key]) - np.median(at[0][key]) for key in at[1] if key in at[0]]
    if steps:
        large = small + float(np.median(steps))
    return (small, large) if at[1] else (small, small)

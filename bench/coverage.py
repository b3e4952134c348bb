"""How often the printed 95 % interval contains the true time, over worlds of launches as clusters have them.

Every simulated run goes the way of a real one: iterations in a launch → histogram of three digits → launch median →
launches added until there are enough of them to test whether they depend on each other (24), they seem not to, and
the interval is ±2 %; or 40 launches are made → printed interval.

Goal: in every world, at every spread between launches, 93 to 97 % of the intervals cover; or, where they cover less, at
least 95 % of its runs are *warned*. The opposite stands beside it: at most 6 % of the runs are warned in worlds whose
launches are independent. A *found* warning is that launches in a row resemble each other. A *told* one is the sentence
that every run ends with: what no run can show of itself, which is an offset that it has as a whole, and states of the
machine that last for many launches. The last worlds are counted by it, and shown with all that was found.

Covering more than 97 % is no fault in two worlds: of what is rounded to ticks any closed interval covers more, and a
drift is found as dependence, which widens an interval whose truth here is the median over the launches made.

The true value is stated for each world. Where it is not obvious: for two modes between launches it is the
median of the mixture; under drift it is the median over the launches made; with contamination it is the clean
median (a contaminated launch is recognised in 9 of 10 cases, as other load is, and then not used). Where launches
depend on each other, it is the median that many runs have together.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from wulf.stats.core.intervals import median_bounds
from wulf.stats.core.sequential import interim_confidence
from wulf.stats.core.trend import DEPENDENT_P, DOUBTFUL_P, TESTABLE, dependences, inflation

Floats = NDArray[np.float64]
FIRST, LAST = 6, 40
PRECISION = 0.02
ITERATIONS = 101
SPREADS = (0.005, 0.01, 0.02, 0.03, 0.05)
COVERS = (0.93, 0.97)
WARNED = 0.95
FALSE_WARNINGS = 0.06
MAY_COVER_MORE = ("quantised", "drift")


class Launches(msgspec.Struct, frozen=True):
    """Launch medians of many runs, what is known about each launch, and the truth."""

    #: Shape (runs, LAST).
    medians: Floats
    #: True value by number of launches made, shape (LAST + 1,).
    truth: Floats
    #: Shape (runs, LAST).
    contaminated: NDArray[np.bool_]


Make = Callable[[np.random.Generator, int, float], Launches]


def _within(rng: np.random.Generator, centres: Floats, shape: str) -> Floats:
    """Medians of launches whose iterations scatter around a centre, after a histogram of three digits."""
    noise = rng.standard_normal((*centres.shape, ITERATIONS))
    if shape == "heavy":
        noise = np.clip(rng.standard_t(2, noise.shape), -60, 60)
    iterations = centres[..., None] * np.exp(0.1 * noise)
    if shape == "bimodal":
        iterations = np.where(rng.random(noise.shape) < 0.2, 1.5 * iterations, iterations)
    return _three_digits(np.median(iterations, axis=-1))


def _three_digits(values: Floats) -> Floats:
    """Round as the histogram does: 2048 steps in the range up to the next power of two."""
    step = 2.0 ** (np.floor(np.log2(values)) - 10)
    return np.asarray(np.floor(values / step) * step + step / 2, dtype=np.float64)


def _plain(medians: Floats, truth: float) -> Launches:
    return Launches(medians, np.full(LAST + 1, truth), np.zeros(medians.shape, dtype=bool))


def _around(draw: Callable[[np.random.Generator, tuple[int, int]], Floats], shape: str = "normal") -> Make:
    def make(rng: np.random.Generator, runs: int, spread: float) -> Launches:
        centres = np.exp(spread * draw(rng, (runs, LAST)))
        return _plain(_within(rng, centres, shape), 1.0)

    return make


def _skewed(rng: np.random.Generator, runs: int, spread: float) -> Launches:
    # What scatters within a launch, and evenly, moves the middle of what scatters to one side between launches.
    long_run = _within(
        np.random.default_rng(1), _skewed_centres(np.random.default_rng(2), (500, 400), spread), "normal"
    )
    medians = _within(rng, _skewed_centres(rng, (runs, LAST), spread), "normal")
    return _plain(medians, float(np.median(long_run)))


def _skewed_centres(rng: np.random.Generator, shape: tuple[int, int], spread: float) -> Floats:
    return np.asarray(np.exp(spread * (np.exp(rng.standard_normal(shape)) - 1)), dtype=np.float64)


def _bimodal_within(rng: np.random.Generator, runs: int, spread: float) -> Launches:
    centres = np.exp(spread * rng.standard_normal((runs, LAST)))
    # Of a fifth that takes 1.5 times as long; found once from ten million iterations of this distribution.
    population = np.exp(0.1 * norm.ppf((np.arange(400_000) + 0.5) / 400_000))
    mixed = np.concatenate([np.repeat(population, 4), 1.5 * population])
    return _plain(_within(rng, centres, "bimodal"), float(np.median(mixed)))


def _bimodal_between(rng: np.random.Generator, runs: int, spread: float) -> Launches:
    slow = rng.random((runs, LAST)) < 0.3
    centres = np.where(slow, 1.15, 1.0) * np.exp(spread * rng.standard_normal((runs, LAST)))
    total = np.hypot(spread, 0.1 * 1.2533 / np.sqrt(ITERATIONS))
    grid = np.linspace(-0.5, 0.8, 200_001)
    mixture = 0.7 * norm.cdf(grid / total) + 0.3 * norm.cdf((grid - np.log(1.15)) / total)
    return _plain(_within(rng, centres, "normal"), float(np.exp(np.interp(0.5, mixture, grid))))


def _drift(rng: np.random.Generator, runs: int, spread: float) -> Launches:
    """Times rise by twice the spread over 40 launches."""
    path = 2 * spread * np.arange(LAST) / LAST
    centres = np.exp(path + spread * rng.standard_normal((runs, LAST)))
    truth = np.concatenate([[1.0], np.exp([np.mean(path[:n]) for n in range(1, LAST + 1)])])
    return Launches(_within(rng, centres, "normal"), truth, np.zeros((runs, LAST), dtype=bool))


def _quantised(rng: np.random.Generator, runs: int, spread: float) -> Launches:
    """A clock whose ticks are a quarter of the spread between launches; coarser ones cover more, never less."""
    medians = _within(rng, np.exp(spread * rng.standard_normal((runs, LAST))), "normal")
    tick = spread / 4
    return _plain(np.round(medians / tick) * tick, float(np.round(1.0 / tick) * tick))


def _contaminated(rng: np.random.Generator, runs: int, spread: float) -> Launches:
    """One launch in seven runs beside something that slows it by a tenth to a half."""
    foreign = rng.random((runs, LAST)) < 1 / 7
    slower = np.where(foreign, 1 + rng.uniform(0.1, 0.5, foreign.shape), 1.0)
    medians = _within(rng, slower * np.exp(spread * rng.standard_normal((runs, LAST))), "normal")
    recognised = foreign & (rng.random(foreign.shape) < 0.9)
    return Launches(medians, np.ones(LAST + 1), recognised)


def _autoregression(rho: float) -> Make:
    """Each launch resembles the one before it: an autoregression of first order."""

    def make(rng: np.random.Generator, runs: int, spread: float) -> Launches:
        level = np.empty((runs, LAST))
        level[:, 0] = rng.standard_normal(runs)
        for index in range(1, LAST):
            level[:, index] = rho * level[:, index - 1] + np.sqrt(1 - rho**2) * rng.standard_normal(runs)
        return _plain(_within(rng, np.exp(spread * level), "normal"), 1.0)

    return make


def regimes(rng: np.random.Generator, runs: int, last: int, *, lasting: bool = False) -> Floats:
    """Levels of launches, of variance 1, that stay the same for 4 to 12 launches and then are others.

    `lasting` ones end after every launch with a chance of 1/8: they, too, last 8 launches on average, and one in
    twenty goes on for more than 24.
    """
    index = np.arange(last)
    if lasting:
        switches = rng.random((runs, last)) < 1 / 8
    else:
        # The first one has begun before the run: length-biased, so that where a run begins does not matter.
        lengths = np.arange(4, 13)
        first = rng.choice(lengths, runs, p=lengths / lengths.sum())
        begun = rng.integers(1, first + 1)[:, None]
        ends = begun + np.cumsum(rng.integers(4, 13, (runs, last // 4)), axis=1)
        ends = np.concatenate([begun, ends], axis=1)
        switches = (ends[:, None, :] == index[None, :, None]).any(axis=2)
    number = np.cumsum(switches, axis=1, dtype=np.intp)
    levels = rng.standard_normal((runs, last + 1))
    return np.asarray(np.take_along_axis(levels, number, axis=1), dtype=np.float64)


def _regimes(*, lasting: bool) -> Make:
    """Within a regime launches scatter by half of what regimes differ by."""

    def make(rng: np.random.Generator, runs: int, spread: float) -> Launches:
        levels = regimes(rng, runs, LAST, lasting=lasting) + 0.5 * rng.standard_normal((runs, LAST))
        return _plain(_within(rng, np.exp(spread * levels), "normal"), 1.0)

    return make


def _offset(rng: np.random.Generator, runs: int, spread: float) -> Launches:
    """Every run is as a whole faster or slower, by 3 % (one standard deviation)."""
    centres = np.exp(spread * rng.standard_normal((runs, LAST)) + 0.03 * rng.standard_normal((runs, 1)))
    return _plain(_within(rng, centres, "normal"), 1.0)


#: Worlds whose launches are independent (under drift but for what they drift by).
DISTRIBUTIONS: dict[str, Make] = {
    "normal": _around(lambda rng, shape: rng.standard_normal(shape)),
    "log-normal, skewed": _skewed,
    "heavy tail (t, 2 degrees)": _around(lambda rng, shape: rng.standard_t(2, shape), "heavy"),
    "bimodal within launch": _bimodal_within,
    "bimodal between launches": _bimodal_between,
    "drift": _drift,
    "quantised": _quantised,
    "contaminated": _contaminated,
}


#: Worlds whose launches depend on each other, by as much as launches of a run can show.
DEPENDENT: dict[str, Make] = {"AR(1) 0.3": _autoregression(0.3), "AR(1) 0.5": _autoregression(0.5)}
#: Worlds of which a run sees too little.
HIDDEN: dict[str, Make] = {
    "regimes of 4 to 12": _regimes(lasting=False),
    "regimes of about 8": _regimes(lasting=True),
    "offset of a run": _offset,
}


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the runs of a world."""

    #: Share of the runs whose interval contains the truth.
    covered: float
    #: Share that is warned of launches that resemble each other.
    warned: float
    #: Share that is warned, or has a wider interval than independent launches would have.
    widened: float
    #: Mean number of launches made.
    made: float

    def covers(self, most: float = COVERS[1]) -> bool:
        """Whether the intervals are what they say."""
        return COVERS[0] <= round(self.covered, 3) <= most


def coverage(launches: Launches) -> Shares:
    """Simulate runs to their ends."""
    runs = launches.medians.shape[0]
    covered, warned, widened = (np.zeros(runs, dtype=bool) for _ in range(3))
    made = np.full(runs, LAST)
    open_runs = np.arange(runs)
    for n in range(TESTABLE, LAST + 1):
        look = _look(launches.medians[open_runs, :n], launches.contaminated[open_runs, :n])
        narrow = (look.high - look.low) / 2 <= PRECISION * look.value
        stop = narrow & (look.used >= TESTABLE) & (look.dependence > DOUBTFUL_P) | (n == LAST)
        stopped = open_runs[stop]
        covered[stopped] = (look.low[stop] <= launches.truth[n]) & (launches.truth[n] <= look.high[stop])
        warned[stopped] = look.dependence[stop] < DEPENDENT_P
        widened[stopped] = warned[stopped] | (look.inflation[stop] > 1)
        made[stopped] = n
        open_runs = open_runs[~stop]
        if not open_runs.size:
            break
    return Shares(
        covered=float(covered.mean()),
        warned=float(warned.mean()),
        widened=float(widened.mean()),
        made=float(made.mean()),
    )


class _Look(msgspec.Struct, frozen=True):
    """What is known of every run after so many launches; all of shape (runs,)."""

    low: Floats
    high: Floats
    value: Floats
    #: Launches that the interval is made of.
    used: NDArray[np.intp]
    inflation: Floats
    #: p value of the test for dependence.
    dependence: Floats


def _look(medians: Floats, contaminated: NDArray[np.bool_]) -> _Look:
    """Interval of every run after so many launches, by the rule of `wulf.stats.estimate.cells`."""
    clean = (~contaminated).sum(axis=1)
    used = np.where(clean >= FIRST, clean, medians.shape[1])
    low, high, value, wider, p_value = (np.empty(len(medians)) for _ in range(5))
    # Recognised launches go to the end and are cut off; where too few clean ones are left, all are used.
    order = np.argsort(contaminated & (clean >= FIRST)[:, None], axis=1, kind="stable")
    ordered = np.take_along_axis(medians, order, axis=1)
    for count in np.unique(used):
        rows = used == count
        values = ordered[rows][:, :count]
        wider[rows] = inflation(values)
        bounds = median_bounds(values, interim_confidence(int(count), TESTABLE), wider[rows])
        assert bounds is not None
        low[rows], high[rows] = bounds
        value[rows] = np.median(values, axis=1)
        p_value[rows] = dependences(values)
    return _Look(low, high, value, used, wider, p_value)


def table(runs: int, worlds: dict[str, Make], seed: int = 20) -> dict[str, list[Shares]]:
    """What becomes of the runs of each world, for each of `SPREADS`."""
    rng = np.random.default_rng(seed)
    return {name: [coverage(make(rng, runs, spread)) for spread in SPREADS] for name, make in worlds.items()}


def _show(title: str, found: dict[str, list[Shares]]) -> None:
    print(f"\n{title}: coverage, warned / warned or widened (launches) at spreads between launches of")
    print(f"{'':25s}" + "".join(f"{spread:>22.1%}" for spread in SPREADS))
    for name, row in found.items():
        cells = (f"{s.covered:.1%}, {s.warned:3.0%} / {s.widened:4.0%} ({s.made:2.0f})" for s in row)
        print(f"{name:25s}" + "".join(f"{cell:>22s}" for cell in cells))


def _range(shares: list[Shares]) -> str:
    return f"{min(s.covered for s in shares):.3f}..{max(s.covered for s in shares):.3f}"


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    runs = 500 if "--quick" in arguments else 6000
    independent, dependent = table(runs, DISTRIBUTIONS), table(runs, DEPENDENT)
    hidden = table(runs, HIDDEN)
    print(f"{runs} simulated runs each")
    _show("independent launches", independent)
    _show("dependent launches", dependent)
    _show("told with every run, as no run can show it (or only at times)", hidden)
    calm, bound, told = (
        [shares for row in found.values() for shares in row] for found in (independent, dependent, hidden)
    )
    even = {name: 1.0 if name in MAY_COVER_MORE else COVERS[1] for name in independent}
    held = [shares.covers(even[name]) for name, row in independent.items() for shares in row]
    warned = max(shares.warned for name, row in independent.items() if name != "drift" for shares in row)
    # What covers too often is as wrong, and no warning makes it right.
    said = [s.covers() or (s.covered < COVERS[0] and s.warned >= WARNED) for s in bound]
    passed = all(held) and all(said) and round(warned, 3) <= FALSE_WARNINGS
    print(
        f"\ncoverage value=independent:{_range(calm)},AR(1):{_range(bound)},falsely-warned:{warned:.3f},"
        f"regimes-and-offset:told({_range(told)}) goal={COVERS[0]:.3f}..{COVERS[1]:.3f},{COVERS[0]:.3f}.."
        f"{COVERS[1]:.3f},{FALSE_WARNINGS:g},told {'pass' if passed else 'short'}"
    )
    return 0 if passed else 1


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))

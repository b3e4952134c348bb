"""Whether many series that are looked at again and again have just changed their level.

The model of a series, in logarithms: a level that stays until it changes, a pattern of the week, and noise that depends
on the value before (an autoregression), has heavy tails, and single values that stand far out. Values at the end are
held against the level before them, in windows of several lengths. What is the same in all series of a kind (how noise
depends on the value before, how heavy its tails are, how strong it is as a rule) is learned from all of them together.

* A value counts no more than `CLIP` standard deviations, and without the most extreme one of a window half of the
  threshold must still be reached: no single value is a change.
* The scale is a winsorised standard deviation, moderated: the fewer values a series has, the more it has the scale of
  the others (Smyth 2004, Statistical Applications in Genetics and Molecular Biology 3, article 3).
* The threshold is Student's quantile at the chance that is allowed for one look, shared among the windows
  (Bonferroni), times how much further out the windows of the history lie than normal ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

Values = NDArray[np.float64]
Numbers = NDArray[np.int64]

#: Lengths of the windows at the end of a series.
WINDOWS = (2, 3, 4, 6, 9, 14)
#: Values before a window that its level is made of.
BASE = 60
#: Standard deviations that a value counts at most.
CLIP = 6.0
#: The window by whose end a step is to be found, and with which chance.
SOON, POWER = 3, 0.95
#: Degrees of freedom that the scale of all series together is worth beside a series' own: where they are too few to
#: tell, and the bounds of what they tell. It is the less the more their scales differ.
_PRIOR, _PRIOR_LEAST, _PRIOR_MOST = 20.0, 20.0, 60.0
#: One with so many times the scale of all together has its own alone.
_NOISY = 2.0
#: So many series of so many values tell it.
_PRIOR_SERIES, _PRIOR_VALUES = 8, 8
#: Values further from the middle than so many median absolute deviations are moved there, which makes a normal standard
#: deviation smaller by the factor below.
_WINSOR, _CONSISTENT = 2.5, 1.06
#: What a winsorised standard deviation's values are worth beside those of a plain one, for normal noise.
_EFFICIENCY = 0.85
#: Variance of a median beside that of a mean: between normal (π/2) and heavy-tailed noise.
_OF_MEDIAN = 1.4
#: Added to the dependence that is found, which is too small as a rule.
_CAUTION = 0.02
#: The scale is not made of the last values: they may have changed.
_FRESH = 3
#: With fewer windows their tails are taken to be at least so much wider than normal.
_FEW_WINDOWS, _UNKNOWN_TAIL = 300, 1.2
_TAIL_MOST, _TAIL_LEAST = 0.01, 0.001
_SEEN_FOR_TAIL = 30


@dataclass(frozen=True)
class Found:
    """What the ends of series say; shapes (s,)."""

    #: Largest statistic of a window ÷ its threshold: from 1 on the level has changed. 0 where nothing can be said.
    evidence: Values
    #: Values since the change.
    since: Numbers
    #: Change of the level, and its standard error.
    change: Values
    error: Values
    #: Change that is found by its third value with a chance of 95 %; infinite where nothing can be said.
    smallest: Values
    #: Last value − level, in standard deviations.
    latest: Values


@dataclass(frozen=True)
class _Noise:
    """What the noise of series of a kind is."""

    #: Of each series (s,).
    scale: Values
    #: Degrees of freedom of these.
    freedom: Values
    dependence: float
    #: Length of a window → how much further out windows lie than normal ones.
    tails: dict[int, float]


@dataclass(frozen=True)
class _Window:
    """What the windows of one length say; shapes (s,), fields as of `Found`."""

    evidence: Values
    change: Values
    error: Values
    smallest: Values
    latest: Values


def middle(values: Values) -> Values:
    """Median of each row of (s, w) without the missing values (NaN); NaN where all are missing."""
    if not values.shape[-1]:
        return np.full(values.shape[0], np.nan)
    ordered = np.sort(values, axis=1)
    count = np.sum(np.isfinite(values), axis=1)
    rows = np.arange(values.shape[0])
    low, high = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, values.shape[1] - 1)
    return np.where(count > 0, (ordered[rows, low] + ordered[rows, high]) / 2, np.nan)


def residuals(values: Values, segments: Numbers) -> Values:
    """Each value of (s, w) − the median of its segment; NaN where a segment has fewer than 4 values."""
    found = np.full_like(values, np.nan)
    for number in np.unique(segments):
        mine = np.where(segments == number, values, np.nan)
        levels = middle(mine)
        enough = np.sum(np.isfinite(mine), axis=1) > 3
        rows = np.where(enough, levels, np.nan)
        found = np.where(segments == number, values - rows[:, None], found)
    return found


def without_pattern(values: Values, segments: Numbers, keys: Numbers) -> Values:
    """Values of (s, w) without what those of the same key (weekend, part of the day) have in common.

    The effect of a key is the median of its residuals, drawn to zero the more the fewer there are.
    """
    left = residuals(values, segments)
    cleaned = values.copy()
    for key in np.unique(keys[np.isfinite(left)]):
        mine = np.where(keys == key, left, np.nan)
        count = np.sum(np.isfinite(mine), axis=1)
        effect = np.where(count > 1, np.nan_to_num(middle(mine)) * count / (count + 1), 0.0)
        cleaned -= np.where(keys == key, effect[:, None], 0.0)
    return cleaned


def changes(
    values: Values,
    segments: Numbers,
    fewest: Numbers,
    alpha: float,
    *,
    windows: tuple[int, ...] = WINDOWS,
    anchor: int | None = None,
) -> Found:
    """Look at the ends of series of a kind.

    Parameters
    ----------
    values
        Shape (s, w): logarithms in time order, the newest last; NaN (on the left) where a series has fewer.
    segments
        Shape (s, w): 0 since the last change of a level, other numbers before.
    fewest
        Shape (s,): values that the level before a window needs at least.
    alpha
        Chance that one look at one series finds a change where there is none.
    anchor
        The level is that of so many first values since the last change, not of the `BASE` ones before the window:
        finds what changes slowly.
    """
    if anchor is None:
        kept = BASE + max(windows)
        values, segments = values[:, -kept:], segments[:, -kept:]
    noise = _noise(values, segments, windows, slow=anchor is not None)
    here = (segments == 0) & np.isfinite(values)
    quantile = _quantile(alpha / 2 / len(windows), noise.freedom)
    best = np.zeros(values.shape[0])
    change, error, latest = (np.zeros(values.shape[0]) for _ in range(3))
    smallest = np.full(values.shape[0], np.inf)
    for length in windows:
        if length >= values.shape[1]:
            continue
        seen = _window(values, here, length, noise, quantile, fewest, anchor)
        better = seen.evidence > best
        best = np.where(better, seen.evidence, best)
        change = np.where(better, seen.change, change)
        error = np.where(better, seen.error, error)
        if length == min(SOON, max(windows)):
            smallest = seen.smallest
        if length == min(windows):
            latest = seen.latest
    since = np.zeros(values.shape[0], dtype=np.int64)
    for row in np.flatnonzero(best >= 1):
        since[row] = _located(values[row][here[row]], float(noise.scale[row]), max(windows), int(fewest[row]))
    return Found(best, since, change, error, smallest, latest)


def _window(
    values: Values,
    here: NDArray[np.bool_],
    length: int,
    noise: _Noise,
    quantile: Values,
    fewest: Numbers,
    anchor: int | None,
) -> _Window:
    """Hold the last `length` values of each series against the level before them."""
    end = values.shape[1] - length
    first = np.cumsum(here, axis=1)[:, :end] <= anchor if anchor is not None else np.arange(end) >= end - BASE
    of_level = here[:, :end] & first
    count = np.sum(of_level, axis=1)
    level = middle(np.where(of_level, values[:, :end], np.nan))
    able = (count >= np.maximum(fewest, 1)) & np.all(here[:, end:], axis=1) & (noise.scale > 0)
    scale = np.where(able, noise.scale, 1.0)
    apart = np.where(able[:, None], values[:, end:] - level[:, None], 0.0)
    clipped = np.clip(apart / scale[:, None], -CLIP, CLIP)
    mean = np.mean(clipped, axis=1)
    spread = np.sqrt(
        inflation(noise.dependence, length) / length
        + _OF_MEDIAN * _inflations(noise.dependence, count) / np.maximum(count, 1)
    )
    threshold = quantile * noise.tails[length]
    evidence = np.where(able, np.abs(mean) / spread / threshold, 0.0)
    needed = (threshold + scipy.stats.norm.ppf(POWER) * noise.tails[length]) * spread
    return _Window(
        evidence=np.minimum(evidence, _of_others(clipped, mean, spread, threshold)),
        change=np.median(apart, axis=1),
        error=scale * spread * noise.tails[length],
        smallest=np.where(able & (needed < CLIP), needed * scale, np.inf),
        latest=np.where(able, apart[:, -1] / scale, 0.0),
    )


def _of_others(clipped: Values, mean: Values, spread: Values, threshold: Values) -> Values:
    """Return the evidence that a window's values allow without the most extreme one: twice their own."""
    length = clipped.shape[1]
    signed = clipped * np.sign(mean)[:, None]
    others = (np.sum(signed, axis=1) - np.max(signed, axis=1)) / (length - 1)
    wider = np.sqrt(length / (length - 1))
    return np.asarray(np.maximum(2 * others / spread / wider / threshold, 0.0), dtype=np.float64)


def _located(values: Values, scale: float, longest: int, fewest: int) -> int:
    """Return how many values at the end lie best apart from those before, in the sense of least squares."""
    best, since = 0.0, 1
    for length in range(1, min(longest, values.size - fewest) + 1):
        before = values[: values.size - length][-BASE:]
        clipped = np.clip((values[-length:] - np.median(before)) / scale, -CLIP, CLIP)
        # What one value may count more than others must not decide where the change is: their sum has to go one way.
        gain = abs(float(np.mean(clipped))) * np.sqrt(length * before.size / (length + before.size))
        if gain > best:
            best, since = gain, length
    return since


def inflation(dependence: float, length: int) -> float:
    """How much larger the variance of a mean of neighbours is than that of as many independent values."""
    lags = np.arange(1, length)
    return float(1 + 2 * np.sum((1 - lags / max(length, 1)) * dependence**lags))


def _quantile(chance: float, freedom: Values) -> Values:
    """Return Student's quantile for each number of degrees of freedom."""
    distinct, places = np.unique(freedom, return_inverse=True)
    return np.asarray(scipy.stats.t.isf(chance, distinct), dtype=np.float64)[places]


def _inflations(dependence: float, counts: Numbers) -> Values:
    """Return `inflation` for each count."""
    distinct, places = np.unique(counts, return_inverse=True)
    return np.array([inflation(dependence, int(count)) for count in distinct])[places]


def _noise(values: Values, segments: Numbers, windows: tuple[int, ...], *, slow: bool) -> _Noise:
    """Learn the noise from all but the last values.

    Parameters
    ----------
    slow
        Levels may go on changing slowly: scales are made of the differences of neighbours, and values are taken to be
        medians of many, whose tails are nearly normal.
    """
    left = residuals(values, segments)
    known = left[:, : max(left.shape[1] - _FRESH, 0)]
    scale, freedom = _scales(known)
    if slow:
        steps = np.diff(values[:, : known.shape[1]], axis=1)
        steps[segments[:, 1 : known.shape[1]] != segments[:, : known.shape[1] - 1]] = np.nan
        scale, freedom = _scales(steps)
        dependence = _dependence_of_steps(_scored(steps, scale))
        scale = scale / np.sqrt(2 * (1 - dependence))
        return _Noise(scale, freedom, dependence, dict.fromkeys(windows, _UNKNOWN_TAIL))
    scores = _scored(known, scale)
    dependence = _dependence(scores)
    return _Noise(
        scale, freedom, dependence, {length: _tail(scores, length, dependence) for length in windows}
    )


def _scored(values: Values, scale: Values) -> Values:
    return np.asarray(values / np.where(scale > 0, scale, np.inf)[:, None], dtype=np.float64)


def _scales(centred: Values) -> tuple[Values, Values]:
    """Return the scale of each series and its degrees of freedom, moderated by that of all together."""
    far = 1.4826 * middle(np.abs(centred))
    moved = np.clip(centred, -_WINSOR * far[:, None], _WINSOR * far[:, None])
    squares = _CONSISTENT**2 * np.nansum(moved**2, axis=1)
    free = np.maximum(np.sum(np.isfinite(centred), axis=1) - 1.0, 0.0)
    together = float(np.sum(squares) / np.sum(free)) if np.sum(free) else 0.0
    # A series that is clearly noisier than the others has a scale of its own.
    noisy = (free + 1 >= _PRIOR_VALUES) & (squares > _NOISY**2 * together * free)
    prior = np.where(noisy, 0.0, _prior(squares, free))
    freedom = np.maximum(prior + _EFFICIENCY * free, 1.0)
    return np.sqrt((prior * together + _EFFICIENCY * squares) / freedom), freedom


def _prior(squares: Values, free: Values) -> float:
    """Return how many degrees of freedom the common scale is worth, by how much the series' own ones differ.

    The logarithm of a variance varies by trigamma(d / 2) by itself; what it varies beyond that is the scales' own
    (Smyth 2004, section 6.2), here with a winsorised variance, so that a few noisy series do not decide it.
    """
    some = (free + 1 >= _PRIOR_VALUES) & (squares > 0)
    if np.sum(some) < _PRIOR_SERIES:
        return _PRIOR
    half = _EFFICIENCY * free[some] / 2
    logs = np.log(squares[some] / free[some]) - scipy.special.digamma(half) + np.log(half)
    apart = logs - np.median(logs)
    far = _WINSOR * 1.4826 * np.median(np.abs(apart))
    beyond = _CONSISTENT**2 * np.mean(np.clip(apart, -far, far) ** 2) - np.mean(
        scipy.special.polygamma(1, half)
    )
    if beyond <= float(scipy.special.polygamma(1, _PRIOR_MOST / 2)):
        return _PRIOR_MOST
    return max(_PRIOR_LEAST, 2 * _inverse_trigamma(float(beyond)))


def _inverse_trigamma(value: float) -> float:
    """Return x of trigamma(x) = value, by Newton's method on its reciprocal, which is nearly straight."""
    x = 0.5 + 1 / value
    for _ in range(20):
        at = float(scipy.special.polygamma(1, x))
        x += at * (1 - at / value) / float(scipy.special.polygamma(2, x))
    return x


def _dependence(scores: Values) -> float:
    """Return the correlation of neighbours, over all series; 0 where they are not alike."""
    return float(np.clip(_correlation(scores), 0.0, 0.9)) + _CAUTION


def _correlation(scores: Values) -> float:
    """Return the same as it is, below zero, too."""
    near = np.clip(scores, -_WINSOR, _WINSOR)
    both = near[:, 1:] * near[:, :-1]
    square = np.where(np.isfinite(both), (near[:, 1:] ** 2 + near[:, :-1] ** 2) / 2, np.nan)
    total = float(np.nansum(square))
    return float(np.nansum(both)) / total if total > 0 else 0.0


def _dependence_of_steps(scores: Values) -> float:
    """Return the correlation of neighbours by that of their differences, which a slow change does not move.

    Of an autoregression with the coefficient r neighbouring differences have the correlation (r − 1) / 2.
    """
    return float(np.clip(1 + 2 * _correlation(scores), 0.0, 0.9)) + _CAUTION


def _tail(scores: Values, length: int, dependence: float) -> float:
    """Return how much further from zero windows of the history lie than normal ones; 1 at least."""
    clipped = np.clip(scores, -CLIP, CLIP)
    if clipped.shape[1] < length:
        return _UNKNOWN_TAIL
    whole = _slid(np.isfinite(clipped).astype(np.float64), length) > length - 0.5
    sums = _slid(np.nan_to_num(clipped), length)[whole]
    known = np.abs(sums) / np.sqrt(length * inflation(dependence, length))
    # Windows that overlap are not as many as they seem.
    apart = known.size / length
    if apart < _FEW_WINDOWS:
        return _UNKNOWN_TAIL
    beyond = float(np.clip(_SEEN_FOR_TAIL / apart, _TAIL_LEAST, _TAIL_MOST))
    return max(1.0, float(np.quantile(known, 1 - beyond) / scipy.stats.norm.isf(beyond / 2)))


def _slid(values: Values, length: int) -> Values:
    """Return the sums of so many neighbours in each row."""
    total = np.cumsum(values, axis=1)
    total[:, length:] -= total[:, :-length].copy()
    return total[:, length - 1 :]

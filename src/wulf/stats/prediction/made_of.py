"""What the interval of a prediction is made of: which part of it comes from what, and what would narrow it.  Pure.

All that is not known is drawn independently, so each source has a part of the variance of the logarithm of the run
time: as much as its numbers alone explain by least squares over the samples, less what as many numbers without any
meaning would (Ezekiel 1930). Nothing is replayed for it. What sources do to each other belongs to none of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wulf.base.records import Estimate, IntervalPart
from wulf.base.text import count
from wulf.stats.prediction.draws import Sample

#: A smaller part is not told: with so few samples as there may be, chance explains as much.
LEAST, FEWEST = 0.1, 100
#: Intervals that are narrower on either side are narrow enough to need no reason.
_NARROW = 0.02
#: So many times the launches of a calibration are proposed.
_MORE = 3
_MORE_LAUNCHES = "a calibration of more launches: --min-launches"
_CALIBRATE = "calibrate such a network (two nodes do) and ask with @RUN"
_NOTHING = "nothing that is measured narrows it"
#: What is drawn by name → what it is, and what would narrow it.
_NAMED = {
    "compute": (
        "what the program computes",
        "blocks of its trace differ: trace a longer run, on idle nodes",
    ),
    "usual launch": ("how launches of the program differ", "more traces of it: --again"),
    "misfit": (
        "how the model fits the program",
        "trace and calibrate one after the other, on idle nodes with a CPU for each rank",
    ),
    "making": ("by which call communicators are made", f"a trace does not say it: {_NOTHING}"),
    "connecting": ("the wait for a first connection", "a longer run, of which it is less"),
    "leaves": ("when within its call a message leaves", _CALIBRATE),
    "held by the wire": (
        "whether calls and messages that meet wait for the wire or keep the CPU busy",
        _CALIBRATE,
    ),
    "small messages meet": ("what small messages that meet take longer for", _CALIBRATE),
    "held bursts": ("how much the link lets through at once", f"the calls hide it: {_NOTHING}"),
    "large messages meet": (
        "whether large messages meet",
        f"how far ranks are apart decides, in each run anew: {_NOTHING}",
    ),
}
#: Drawn for the interval of one launch, which is not what is taken apart.
_ONE_LAUNCH = "launch"


class Calibration(NamedTuple):
    """What a calibrated run took."""

    origin: str
    #: Launches of each operation, the fewest; 0 where that is not kept.
    launches: int
    #: All of it [s].
    time_s: float


class _Source(NamedTuple):
    what: str
    narrower: str


def parts(
    draws: Sequence[Sample], times: NDArray[np.float64], intervals: Sequence[Estimate], base: Calibration
) -> list[list[IntervalPart]]:
    """Return what intervals are made of, the largest part first; nothing of narrow ones, or by few samples.

    Parameters
    ----------
    times
        Of each sample on each network [s].
    intervals
        Of each network.
    base
        The run that is the network as it is.
    """
    if len(draws) < FEWEST:
        return [[] for _ in intervals]
    spans = {source: _span(draws, names) for source, names in _sources(draws[0].names, base).items()}
    columns = np.log(np.maximum(times, 1e-300)).T
    return [_of(one, column - column.mean(), spans) for one, column in zip(intervals, columns, strict=True)]


def _of(
    interval: Estimate, logs: NDArray[np.float64], spans: Mapping[_Source, NDArray[np.float64]]
) -> list[IntervalPart]:
    """Return what one interval is made of: the largest source first, then that of what it leaves."""
    half, whole = interval.half_width_ratio, float(np.sum(logs**2))
    found: list[IntervalPart] = []
    if half is None or half < _NARROW or not whole:
        return []
    while len(found) < len(spans):
        shares = {source: _explained(span, logs) / whole for source, span in spans.items()}
        source = max(shares, key=shares.__getitem__)
        if shares[source] < LEAST:
            break
        found.append(
            IntervalPart(
                what=source.what,
                share=shares[source],
                without=half * math.sqrt(1 - shares[source]),
                narrower=source.narrower,
            )
        )
        logs = logs - spans[source] @ (spans[source].T @ logs)
    return sorted(found, key=lambda one: -one.share)


def _span(draws: Sequence[Sample], names: Sequence[str]) -> NDArray[np.float64]:
    """Return what the numbers of a source can explain, as orthonormal columns; of a single one with its sign.

    The sign is all that counts of what is drawn at either end of a span.
    """
    drawn = np.array([[draw.of(name) for name in names] for draw in draws])
    numbers = np.hstack([drawn, np.sign(drawn)]) if len(names) == 1 else drawn
    return np.asarray(np.linalg.qr(numbers - numbers.mean(axis=0))[0], dtype=np.float64)


def _explained(span: NDArray[np.float64], logs: NDArray[np.float64]) -> float:
    """Return how much of the sum of squares a source explains, less what chance does."""
    whole, free = float(np.sum(logs**2)), len(logs) - span.shape[1] - 1
    if free < len(logs) / 2:
        return 0.0
    left = max(whole - float(np.sum((span.T @ logs) ** 2)), 0.0)
    return max(whole - left * float((len(logs) - 1) / free), 0.0)


def _sources(names: Iterable[str], base: Calibration) -> dict[_Source, list[str]]:
    found: dict[_Source, list[str]] = {}
    for name in names:
        source = _source(name, base)
        if source is not None:
            found.setdefault(source, []).append(name)
    return found


def _source(name: str, base: Calibration) -> _Source | None:
    """Return what a number that is drawn by this name says of; None of one launch only."""
    if name in _NAMED:
        return _Source(*_NAMED[name])
    words = name.split(" ")
    if words[-1] == _ONE_LAUNCH:
        return None
    if (ending := " ".join(words[-3:])) in _NAMED:
        return _Source(*_NAMED[ending])
    kind = words[-2] if words[-1].isdigit() else words[-1]
    origin, separator, _ = name.rpartition(f" between {kind}")
    if not separator:
        origin, separator, _ = name.rpartition(f" within {kind}")
    if not separator:
        return _Source(f"the parameters of {words[0]}", _CALIBRATE)
    return _of_operation(kind, origin, base)


def _of_operation(kind: str, origin: str, base: Calibration) -> _Source:
    if origin != base.origin:
        return _Source(f"{kind} of the calibration {origin.rpartition('/')[2]}", _MORE_LAUNCHES)
    what = f"{kind} of the calibration"
    if not base.launches:
        return _Source(what, _MORE_LAUNCHES)
    minutes = math.ceil(_MORE * base.time_s / 60)
    told = count(base.launches, "launch", verbs=("tells", "tell"))
    return _Source(what, f"{told} it: --min-launches {_MORE * base.launches} --budget {minutes}m")

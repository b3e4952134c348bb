"""Several ways to do the same, measured in rounds of random order: which is fastest, and which is as fast.  Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

from wulf.base.records.base import Estimate
from wulf.base.records.libraries import BlasRank
from wulf.stats.core import intervals
from wulf.stats.core.paired import paired_shift, paired_verdict
from wulf.stats.estimate.cells import as_estimate

CONFIDENCE = 0.95
#: Chance that anything is called faster where all are alike.
SIGNIFICANCE = 0.05
#: Rounds beyond those without which nothing can be proven.
SPARE = 2
FEWEST = 8
_VERDICTS: dict[str, Literal["slower", "no difference", "no decision"]] = {
    "better": "slower",
    "worse": "no decision",
    "no difference": "no difference",
    "no decision": "no decision",
}

#: Place → rate, of one way in one round; without the places where it failed.
Round = Mapping[str, float]


def rounds_needed(ways: int) -> int:
    """Return how many rounds it takes so that the p value of so many ways' comparisons can be small enough.

    The smallest one of n pairs is 2^(1 − n).
    """
    comparisons = max(ways * (ways - 1) // 2, 1)
    return max(math.ceil(1 + math.log2(comparisons / SIGNIFICANCE)) + SPARE, FEWEST)


def rank(rates: Mapping[str, Sequence[Round]], margin: float, families: int = 1) -> list[BlasRank]:
    """Rank ways by their rates, the fastest first; each of the others is compared with it round by round.

    Which one is compared with is known only from the same figures, so every comparison counts as one of all that there
    are between two of the ways (Bonferroni).

    Parameters
    ----------
    rates
        Way → rounds, in the same order for all. A round counts for a way that has a rate at every place of that round.
    margin
        A rate that is higher by less, as a share, does not matter.
    families
        Number of rankings that this is one of.
    """
    places = sorted({place for rounds in rates.values() for one in rounds for place in one})
    logs = {way: [_log(one, places) for one in rounds] for way, rounds in rates.items()}
    middles = {way: _middle(values) for way, values in logs.items() if any(v is not None for v in values)}
    ordered = sorted(middles, key=lambda way: -middles[way].value)
    comparisons = max(len(ordered) * (len(ordered) - 1) // 2, 1) * families
    return [
        BlasRank(library=way, rate=middles[way], verdict="fastest")
        if way == ordered[0]
        else _against(way, middles[way], logs[ordered[0]], logs[way], (margin, comparisons))
        for way in ordered
    ]


def _log(one: Round, places: Sequence[str]) -> float | None:
    """Mean of the logarithms over the places; None where one is missing."""
    if any(place not in one for place in places):
        return None
    return statistics.fmean(math.log(one[place]) for place in places)


def _middle(logs: Sequence[float | None]) -> Estimate:
    found = intervals.median([math.exp(log) for log in logs if log is not None], CONFIDENCE)
    return as_estimate(found, "GFLOPS")


def _against(
    way: str,
    rate: Estimate,
    best: Sequence[float | None],
    own: Sequence[float | None],
    judged: tuple[float, int],
) -> BlasRank:
    margin, comparisons = judged
    pairs = [(a, b) for a, b in zip(best, own, strict=True) if a is not None and b is not None]
    if not pairs:
        return BlasRank(library=way, rate=rate, verdict="no decision")
    found = paired_shift([b - a for a, b in pairs], CONFIDENCE)
    return BlasRank(
        library=way,
        rate=rate,
        ratio=as_estimate(found.ratio, "ratio"),
        p_value=found.p_value,
        # A cost below 1 is better; here it is a rate. What is called fastest by its median may yet be slower pair by
        # pair: nothing is decided then.
        verdict=_VERDICTS[paired_verdict(found, comparisons, margin, SIGNIFICANCE)],
    )

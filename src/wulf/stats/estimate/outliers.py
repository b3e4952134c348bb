"""Which nodes differ from the others in what each does alone, measured in rounds.  Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import scipy

from wulf.base.records import Estimate

#: Chance that any node is named where all are alike.
FALSE_ALARM = 0.01
#: Rounds without which there is no scatter to judge by.
FEWEST_ROUNDS = 3
#: Scatter that is assumed at least: that of the digits in which results are printed.
_LEAST = 1e-6


def differing(
    times: Mapping[str, Sequence[float]], margin: float, chance: float = FALSE_ALARM
) -> Iterator[tuple[str, Estimate]]:
    """Yield the nodes whose times are proven to differ from those of the others by more than a margin.

    In each round a node is held against the median of all; of two, against the other one. So what slows down all nodes
    of a round falls out, and a node that is slow makes no other one look quick.

    Parameters
    ----------
    times
        Node → time in each round [s]: the same rounds in the same order for all.
    margin
        A difference by less does not matter, as a share.
    chance
        That any node is named where all are alike.

    Yields
    ------
    tuple
        Node, and its time ÷ that of the others.
    """
    nodes = list(times)
    logs = np.log(np.array([times[node] for node in nodes], dtype=np.float64))
    if len(nodes) < 2 or logs.shape[1] < FEWEST_ROUNDS:
        return
    usual = logs[::-1] if len(nodes) == 2 else np.median(logs, axis=0)
    apart = logs - usual
    rounds = apart.shape[1]
    quantile = float(scipy.stats.t.isf(chance / len(nodes) / 2, rounds - 1))
    for node, own in zip(nodes, apart, strict=True):
        middle = float(np.mean(own))
        width = quantile * max(float(np.std(own, ddof=1)) / math.sqrt(rounds), _LEAST)
        if abs(middle) - width > math.log1p(margin):
            yield (
                node,
                Estimate(
                    value=math.exp(middle),
                    low=math.exp(middle - width),
                    high=math.exp(middle + width),
                    confidence=1 - chance / len(nodes),
                    unit="ratio",
                    n=rounds,
                    method="mean over rounds of the logarithm, against the median of all nodes (Student's t)",
                ),
            )

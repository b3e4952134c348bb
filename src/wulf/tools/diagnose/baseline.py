"""Which node does worse than in an earlier run of the same pairs.  Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import scipy

from wulf.base.records import Estimate, Pair

#: Chance that any node is named where none has changed.
FALSE_ALARM = 0.01
#: Partners without which a node is not told from its links.
FEWEST_PARTNERS = 3


def worse_nodes(
    before: Mapping[Pair, float], now: Mapping[Pair, float], margin: float, chance: float = FALSE_ALARM
) -> Iterator[tuple[str, Estimate]]:
    """Yield the nodes whose messages are proven to take longer by more than a margin, and the ratio of the times.

    Runs at different times differ as a whole, by a few percent also where nothing was changed: what the pairs without
    the node have in common, their median, is taken out.

    Parameters
    ----------
    before, now
        Pair → time [s]. Pairs that only one of them has do not count.
    margin
        Longer by less does not matter, as a share.
    chance
        That any node is named where none has changed.
    """
    logs = {pair: math.log(now[pair] / before[pair]) for pair in before.keys() & now.keys()}
    nodes = sorted({node for pair in logs for node in pair})
    for node in nodes:
        others = [log for pair, log in logs.items() if node not in pair]
        own = np.array([log for pair, log in logs.items() if node in pair])
        if len(own) < FEWEST_PARTNERS or len(others) < FEWEST_PARTNERS:
            continue
        own -= np.median(others)
        middle, error = float(np.mean(own)), float(np.std(own, ddof=1)) / math.sqrt(len(own))
        width = float(scipy.stats.t.isf(chance / len(nodes), len(own) - 1)) * max(error, 1e-6)
        if middle - width > math.log1p(margin):
            yield (
                node,
                Estimate(
                    value=math.exp(middle),
                    low=math.exp(middle - width),
                    high=math.exp(middle + width),
                    confidence=1 - 2 * chance / len(nodes),
                    unit="ratio",
                    n=len(own),
                    method="mean over the node's pairs, against the median of the others",
                ),
            )

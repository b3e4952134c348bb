"""What runs have measured between pairs, taken apart: what all have in common, what each node adds, what is left.

Logarithm of a time = base of the pair + cluster at that time + both nodes at that time + what is left. Each part is the
median of what the others leave, again and again (Tukey's median polish), so that a pair that changes does not move its
nodes, and a node that changes does not move its partners.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wulf.stats.core.changes import middle

Values = NDArray[np.float64]
Numbers = NDArray[np.int64]

#: With fewer nodes what a node adds cannot be told from what its pairs do: each pair is judged as it is.
FEWEST_NODES = 5
#: Pairs that a node needs in a run.
FEWEST_PAIRS = 3
#: Runs that must have measured a pair before it says anything of its nodes.
FEWEST_VISITS = 3
_POLISHES = 4
NOBODY = -1


@dataclass(frozen=True)
class Parts:
    """The parts of all that was measured of one operation at one size."""

    #: Shape (runs,): what all have in common; NaN where it is not told apart.
    cluster: Values
    #: Shape (nodes, runs).
    nodes: Values
    #: Shape (entries,): what is left of a pair.
    left: Values


class Groups:
    """Which of many values belong together; those of groups of about the same size are sorted at once."""

    def __init__(self, groups: Numbers, count: int) -> None:
        self.sizes = np.bincount(groups, minlength=count)
        order = np.argsort(groups, kind="stable")
        starts = np.cumsum(self.sizes) - self.sizes
        #: For groups of a size: which they are, and where their values are; one place beyond the end is for none.
        self._classes: list[tuple[Numbers, Numbers]] = []
        widths = 2 ** np.ceil(np.log2(np.maximum(self.sizes, 1))).astype(np.int64)
        for width in np.unique(widths[self.sizes > 0]):
            mine = np.flatnonzero((widths == width) & (self.sizes > 0))
            columns = np.arange(width)
            here = np.minimum(starts[mine][:, None] + columns, groups.size - 1)
            places = np.where(columns < self.sizes[mine][:, None], order[here], groups.size)
            self._classes.append((mine, places))

    def medians(self, values: Values) -> Values:
        """Median of the values of each group; NaN for one that has none."""
        found = np.full(self.sizes.size, np.nan)
        padded = np.append(values, np.nan)
        for mine, places in self._classes:
            found[mine] = middle(padded[places])
        return found


class _Polish:
    """The groups of the entries of one operation at one size."""

    def __init__(self, runs: Numbers, places: Numbers, ends: Numbers) -> None:
        self.shape = int(ends.max()) + 1, int(runs.max()) + 1
        self.alone = bool(np.all(ends[:, 1] == NOBODY))
        self.first, self.second = ends[places].T
        self.by_place = Groups(places, len(ends))
        #: Entries of pairs that have been measured often enough to say something of their nodes.
        self.told = np.flatnonzero(self.by_place.sizes[places] >= FEWEST_VISITS)
        first, second, when = self.first[self.told], self.second[self.told], runs[self.told]
        self.by_run = Groups(when, self.shape[1])
        at = first * self.shape[1] + when
        if not self.alone:
            at = np.concatenate([at, second * self.shape[1] + when])
        self.by_node = Groups(at, self.shape[0] * self.shape[1])
        self._when = when
        self._runs = runs

    def nodes(self, left: Values, before: Values) -> Values:
        """Return what each node adds in each run (nodes, runs); NaN where that is not told.

        Parameters
        ----------
        left
            What the pairs and the cluster leave of each entry.
        before
            What each node was found to add before: its partners' values are freed from it.
        """
        told = left[self.told]
        if not self.alone:
            first, second = self.first[self.told], self.second[self.told]
            told = np.concatenate([told - before[second, self._when], told - before[first, self._when]])
        found = self.by_node.medians(told)
        found[self.by_node.sizes < (1 if self.alone else FEWEST_PAIRS)] = np.nan
        nodes = found.reshape(self.shape)
        # A level of its own is the pairs': only what changes is the node's.
        return np.asarray(nodes - middle(nodes)[:, None], dtype=np.float64)

    def of_both(self, added: Values) -> Values:
        """Return what the nodes of each entry add together."""
        one = np.asarray(added[self.first, self._runs], dtype=np.float64)
        return one if self.alone else one + added[self.second, self._runs]


def decompose(runs: Numbers, places: Numbers, ends: Numbers, values: Values) -> Parts:
    """Take apart what was measured.

    Parameters
    ----------
    runs, places
        Shape (entries,): numbers of the run and of the place, from 0.
    ends
        Shape (places, 2): nodes of each place; the second is `NOBODY` where a node was measured alone.
    values
        Shape (entries,): logarithms.
    """
    polish = _Polish(runs, places, ends)
    if np.unique(ends[ends != NOBODY]).size < FEWEST_NODES:
        return Parts(np.full(polish.shape[1], np.nan), np.full(polish.shape, np.nan), values.copy())
    cluster, nodes = np.zeros(polish.shape[1]), np.zeros(polish.shape)
    of_both = np.zeros(values.size)
    for _ in range(_POLISHES):
        base = polish.by_place.medians(values - np.nan_to_num(cluster)[runs] - of_both)
        cluster = polish.by_run.medians((values - base[places] - of_both)[polish.told])
        left = values - base[places] - cluster[runs]
        nodes = polish.nodes(left, np.nan_to_num(nodes))
        of_both = polish.of_both(np.nan_to_num(nodes))
    return Parts(cluster, nodes, left - of_both)

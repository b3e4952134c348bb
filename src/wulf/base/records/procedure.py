"""Effect of the whole procedure: mending and tuning together."""

from __future__ import annotations

from wulf.base.records.base import Estimate, Pair, Record, Verdict


class Change(Record, frozen=True, kw_only=True):
    """What became of a figure in one part of the procedure, or in all of it."""

    #: After ÷ before of a time: below 1 is faster; null where it is not known.
    ratio: Estimate | None
    #: Counts that there are several figures (Bonferroni).
    verdict: Verdict
    #: Why it is not known; empty where it is.
    reason: str = ""


class FigureChange(Record, frozen=True, kw_only=True):
    """What became of one figure."""

    #: Such as ``mpi_pingpong 1 B mean``.
    metric: str
    mending: Change
    #: Null where the tuning kept nothing.
    tuning: Change | None
    #: From as found to as left.
    whole: Change


class Whole(Record, frozen=True, kw_only=True):
    """What mending and tuning brought together."""

    #: Pairs of nodes between which both were measured.
    pairs: list[Pair]
    figures: list[FigureChange]

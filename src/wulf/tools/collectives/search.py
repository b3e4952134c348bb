"""The search for one collective and number of ranks: halve the candidates, then judge who is left in fresh launches."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from wulf.base.contracts import Say
from wulf.base.records import Estimate
from wulf.base.text import count
from wulf.stats.core.paired import paired_shift, paired_verdict
from wulf.stats.core.shift import Shift
from wulf.tools.collectives.bench import LaunchError, Unit
from wulf.tools.collectives.record import StruckOut, TunedCell
from wulf.tools.collectives.rules import halving
from wulf.tools.collectives.rules.decision import Found
from wulf.tools.collectives.rules.halving import Candidate, Ratios
from wulf.tools.collectives.rules.installed import Library

#: Part of a unit's time in which candidates are halved; the rest judges.
SEARCH_SHARE = 0.5
#: Blocks of fresh launches: fewer prove nothing, more are not needed.
FEWEST, MOST = 8, 16
#: Of all sizes of a collective and number of ranks together (Bonferroni).
SIGNIFICANCE = 0.05
#: The library's own decision may fail so often in a row before nothing can be compared with it.
PATIENCE = 3
#: Why a candidate has no figures that did not fail.
UNTRIED = "not tried: there was no time left"
#: Parts in which long messages are sent [B]: those that Open MPI's own decision has are among them.
SEGMENTS = (8 << 10, 32 << 10, 128 << 10)
#: Messages shorter than this are never sent in parts: a part has a cost of its own [B].
SEGMENTED_FROM = 8 << 10


class Times(Protocol):
    """Measures: `wulf.tools.collectives.bench.Bench.times`."""

    def __call__(
        self, collective: str, ranks: int, sizes: Sequence[int], env: Mapping[str, str]
    ) -> dict[int, float]:
        """Return the time of each size [s]; raises LaunchError."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What was found for one unit."""

    cells: list[TunedCell]
    found: list[Found]
    struck_out: list[StruckOut]


class Search:
    """One unit's search; what has been measured stays when it is interrupted."""

    def __init__(self, unit: Unit, library: Library, times: Times, seed: int) -> None:
        self._unit = unit
        self._library = library
        self._times = times
        self._order = random.Random(f"{seed}:{unit}")  # noqa: S311 - reproducible, not secret
        self._ratios: Ratios = {}
        #: Size, candidate → rounds that were gone through.
        self._rounds: Counter[tuple[int, Candidate]] = Counter()
        #: In fresh launches: size → candidate (None: the default itself) → logarithms of ratios to the default.
        self._fresh: dict[int, dict[Candidate | None, list[float]]] = {}
        self._alive: dict[int, list[Candidate]] = {
            size: [one for one in self._candidates() if _fits(one, size)] for size in unit.sizes
        }
        self._struck: dict[Candidate, str] = {}
        self._begin_s, self._budget_s = 0.0, 0.0
        #: Launches so far, and how long they took together [s].
        self._launches, self._launches_s = 0, 0.0
        #: Blocks of fresh launches so far, and those that can prove something.
        self._blocks, self._enough = 0, fewest(len(unit.sizes))

    def run(self, budget_s: float, say: Say) -> None:
        """Halve until one is left at every size, or what is left of the time has to judge; judge in fresh launches."""
        self._begin_s, self._budget_s = time.monotonic(), budget_s
        number = 0
        while not halving.settled(self._alive) and not self._to_judge():
            number += 1
            left = len({one for ways in self._alive.values() for one in ways})
            self._say(say, f"round {number}, {count(left, 'candidate')}", max(self._left_s(), 0))
            if not self._round():
                break
            self._rounds.update((size, one) for size, ways in self._alive.items() for one in ways)
            self._alive = halving.halve(self._alive, self._ratios)
        self._alive = {size: self._promising(size) for size in self._unit.sizes}
        for block in range(MOST):
            if not any(self._alive.values()) or self._left_s() < self._block_s():
                break
            left_s = min(self._left_s(), (MOST - block) * self._block_s())
            self._say(say, f"judging, block {block + 1} of {MOST}", left_s)
            self._judge()
            self._blocks += 1

    def result(self) -> Result:
        """Return what is known so far."""
        controls = {size: self._shift(size, None) for size in self._unit.sizes}
        limit = widest([shift for shift in controls.values() if shift is not None])
        cells, found = [], []
        for size in self._unit.sizes:
            best = self._best(size)
            shift = self._shift(size, best) if best is not None else None
            at_first = halving.typical(self._ratios[size][best]) if best is not None else math.nan
            reason = _why_not(at_first, self._blocks, shift, limit, len(self._unit.sizes))
            told = at_first >= 1 or (at_first < 1 and self._blocks >= self._enough)
            cells.append(
                TunedCell(
                    collective=self._unit.collective,
                    ranks=self._unit.ranks,
                    size_bytes=size,
                    algorithm=best.name if best else "",
                    segment_bytes=best.segment_bytes if best else 0,
                    ratio=estimate_of(shift),
                    control=estimate_of(controls[size]),
                    limit=limit,
                    judged=told and (not reason or not self._untried(size)),
                    kept=not reason,
                    reason=reason,
                )
            )
            choice = best if not reason else None
            found.append(Found(size_bytes=size, choice=choice, holds_at=self._holds(choice, limit)))
        return Result(cells=cells, found=found, struck_out=self._struck_out())

    def _candidates(self) -> list[Candidate]:
        collective = self._unit.collective
        segments: tuple[int, ...] = (0,)
        long = max(self._unit.sizes) >= SEGMENTED_FROM and self._library.tells_sizes(collective)
        if collective in self._library.segmented and long:
            segments = (0, *SEGMENTS)
        return [
            Candidate(number=way.number, name=way.name, segment_bytes=segment)
            for way in self._library.algorithms[collective]
            for segment in segments
        ]

    def _left_s(self) -> float:
        return self._begin_s + self._budget_s - time.monotonic()

    def _block_s(self) -> float:
        """Return how long a block takes with those that are best now [s]; 0 before anything was launched."""
        finalists = {one for size in self._unit.sizes for one in self._promising(size)}
        return (2 + len(finalists)) * self._launches_s / max(self._launches, 1)

    def _to_judge(self) -> bool:
        """Return whether it is time to judge: half of it is over, or all were tried and what is left is needed."""
        needed_s = self._enough * self._block_s() if self._rounds else 0.0
        return self._left_s() <= max((1 - SEARCH_SHARE) * self._budget_s, needed_s)

    def _round(self) -> bool:
        """Launch all that are left once, in random order, the default among them; False where there was no time."""
        launches = sorted({one for ways in self._alive.values() for one in ways})
        self._order.shuffle(launches)
        done = True
        times: dict[Candidate, dict[int, float]] = {}
        base = self._launch(None, self._unit.sizes)
        for place, one in enumerate(launches):
            if place and self._to_judge():
                done = False
                break
            if place and place % 8 == 0:
                self._compare(times, base)
                times, base = {}, self._launch(None, self._unit.sizes)
            sizes = [size for size, ways in self._alive.items() if one in ways and _fits(one, size)]
            if sizes and one not in self._struck:
                times[one] = self._try(one, sizes)
        self._compare(times, base)
        return done

    def _compare(self, times: Mapping[Candidate, Mapping[int, float]], base: Mapping[int, float]) -> None:
        for one, by_size in times.items():
            for size in by_size.keys() & base.keys():
                self._ratios.setdefault(size, {}).setdefault(one, []).append(by_size[size] / base[size])

    def _judge(self) -> None:
        """Launch the default twice and everyone who is left once, in random order."""
        for size, ways in self._alive.items():
            if self._struck.keys() & set(ways):
                self._alive[size] = self._promising(size)  # the next best takes its place
        finalists = {one for ways in self._alive.values() for one in ways}
        arms: list[Candidate | str] = ["base", "control", *sorted(finalists)]
        self._order.shuffle(arms)
        times: dict[Candidate | str, dict[int, float]] = {}
        for arm in arms:
            if isinstance(arm, str):
                times[arm] = self._launch(None, self._unit.sizes)
            else:
                times[arm] = self._try(arm, self._around(arm))
        base = times.pop("base")
        for arm, by_size in times.items():
            who = None if isinstance(arm, str) else arm
            for size in by_size.keys() & base.keys():
                found = self._fresh.setdefault(size, {}).setdefault(who, [])
                found.append(math.log(by_size[size] / base[size]))

    def _try(self, one: Candidate, sizes: Sequence[int]) -> dict[int, float]:
        """Measure a candidate; one that fails is struck out."""
        try:
            return self._launch(one, sizes)
        except LaunchError as failure:
            self._struck[one] = str(failure)
            return {}

    def _launch(self, one: Candidate | None, sizes: Sequence[int]) -> dict[int, float]:
        collective = self._unit.collective
        if one is not None:
            return self._timed(sizes, self._library.forced(collective, one.number, one.segment_bytes))
        for _ in range(PATIENCE - 1):
            with suppress(LaunchError):
                return self._timed(sizes, {})
        return self._timed(sizes, {})

    def _timed(self, sizes: Sequence[int], env: Mapping[str, str]) -> dict[int, float]:
        begin_s = time.monotonic()
        try:
            return self._times(self._unit.collective, self._unit.ranks, sizes, env)
        finally:
            self._launches += 1
            self._launches_s += time.monotonic() - begin_s

    def _best(self, size: int) -> Candidate | None:
        known = {one: ratios for one, ratios in self._ratios.get(size, {}).items() if one not in self._struck}
        # Who went through more rounds has beaten others; one that was cut short beats nobody.
        return min(
            known, key=lambda one: (-self._rounds[size, one], halving.typical(known[one])), default=None
        )

    def _promising(self, size: int) -> list[Candidate]:
        """Return the best one of a size if it was faster than the default on first sight."""
        best = self._best(size)
        return [best] if best is not None and halving.typical(self._ratios[size][best]) < 1 else []

    def _around(self, one: Candidate) -> list[int]:
        """Return the sizes at which somebody is left, and the others to which a rule may reach.

        These are the neighbours; all, where the library cannot tell sizes apart.
        """
        sizes = self._unit.sizes
        if not self._library.tells_sizes(self._unit.collective):
            return [size for size in sizes if _fits(one, size)]
        own = [place for place, size in enumerate(sizes) if one in self._alive.get(size, ())]
        near = {place + step for place in own for step in (-1, 0, 1)}
        return [size for place, size in enumerate(sizes) if place in near and _fits(one, size)]

    def _holds(self, one: Candidate | None, limit: float | None) -> frozenset[int]:
        """Return the sizes at which it is not slower by more than the default differs from itself."""
        if one is None or limit is None:
            return frozenset()
        highest = {
            size: shift.ratio.high
            for size in self._unit.sizes
            if (shift := self._shift(size, one)) is not None
        }
        return frozenset(size for size, high in highest.items() if high is not None and high <= limit)

    def _shift(self, size: int, one: Candidate | None) -> Shift | None:
        logs = self._fresh.get(size, {}).get(one)
        return paired_shift(logs) if logs else None

    def _struck_out(self) -> list[StruckOut]:
        tried = {one for by_size in self._ratios.values() for one in by_size}
        untried = [one for one in self._candidates() if one not in tried and self._wanted(one)]
        reasons = dict.fromkeys(untried, UNTRIED) | self._struck
        return [
            StruckOut(
                collective=self._unit.collective,
                ranks=self._unit.ranks,
                algorithm=one.name,
                segment_bytes=one.segment_bytes,
                reason=reason,
            )
            for one, reason in sorted(reasons.items())
        ]

    def _untried(self, size: int) -> list[Candidate]:
        """Return the candidates of a size that were not launched, for want of time."""
        seen = self._ratios.get(size, {}).keys() | self._struck.keys()
        return [one for one in self._candidates() if _fits(one, size) and one not in seen]

    def _wanted(self, one: Candidate) -> bool:
        return any(_fits(one, size) for size in self._unit.sizes)

    def _say(self, say: Say, what: str, left_s: float) -> None:
        say(f"{self._unit}: {what}; about {left_s:.0f} s left for it")


def fewest(comparisons: int) -> int:
    """Return how many blocks can prove something where two small differences say the contrary.

    Wilcoxon's sum of ranks is then 2 at most, which 3 of 2^n orders of signs give, on either side.
    """
    return max(math.ceil(math.log2(6 * comparisons / SIGNIFICANCE)), FEWEST)


def _fits(one: Candidate, size: int) -> bool:
    return one.segment_bytes == 0 or (size >= SEGMENTED_FROM and one.segment_bytes < size)


def widest(controls: Sequence[Shift]) -> float | None:
    """Return the ratio beyond which none of these intervals of nothing reaches; None where one has no bounds."""
    bounds = [
        max(shift.ratio.high, 1 / shift.ratio.low)
        for shift in controls
        if shift.ratio.low is not None and shift.ratio.high is not None
    ]
    return max(bounds) if bounds and len(bounds) == len(controls) else None


def estimate_of(shift: Shift | None) -> Estimate | None:
    """Return a shift as a record."""
    if shift is None:
        return None
    found = shift.ratio
    return Estimate(
        value=found.value,
        low=found.low,
        high=found.high,
        confidence=found.confidence,
        unit="ratio",
        n=found.n,
        method=found.method,
    )


def _why_not(at_first: float, blocks: int, shift: Shift | None, limit: float | None, comparisons: int) -> str:
    """Return why the best one is not kept; empty where it is.

    Parameters
    ----------
    at_first
        Its time ÷ that of the default in the search; NaN where there was none.
    blocks
        Blocks of fresh launches.
    """
    if math.isnan(at_first):
        return "no algorithm was measured"
    if at_first >= 1:
        return "none was faster at first sight"
    if blocks < fewest(comparisons):
        return f"{count(blocks, 'block')} of launches, {fewest(comparisons)} can prove it"
    if shift is None or limit is None:
        return "not enough launches to tell it from chance"
    if paired_verdict(shift, comparisons, 0.0, SIGNIFICANCE) != "better":
        return "not proven to be faster"
    alike = shift.ratio.high is None or shift.ratio.high >= 1 / limit
    return f"within what the default differs from itself (±{limit - 1:.1%})" if alike else ""

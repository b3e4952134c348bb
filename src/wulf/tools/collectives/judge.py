"""The file at sizes that nothing was decided by: launches with it and without, in turn."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from wulf.base.contracts import Say
from wulf.base.records import Estimate
from wulf.node.fleet.allocation import Rounds
from wulf.stats.core.paired import paired_shift
from wulf.tools.collectives.bench import LaunchError, Unit
from wulf.tools.collectives.record import HeldOut, HeldOutFailure
from wulf.tools.collectives.search import MOST, Times, estimate_of, widest

#: Launches of a block: without the file, with it, and without it again.
BASE, FILED, AGAIN = range(3)
#: Logarithms of ratios by unit and size, one for each block.
Logs = dict[tuple[Unit, int], list[float]]
#: Of one block, by unit and size: with the file against without it, and without it against itself.
Block = dict[tuple[Unit, int], tuple[float, float]]


class Judge:
    """Measures all units in blocks; what has been measured stays when it is interrupted."""

    def __init__(self, units: Sequence[Unit], times: Times, env: Mapping[str, str], seed: int) -> None:
        self._units = [unit for unit in units if unit.held_out]
        self._times = times
        self._env = env
        self._order = random.Random(f"{seed}:held out")  # noqa: S311 - reproducible, not secret
        self._ratios: Logs = {}
        self._controls: Logs = {}
        #: Of each block in which all units gave all times, so that a mean is always over the same sizes.
        self._whole: list[Block] = []
        self._failed: Counter[tuple[Unit, bool]] = Counter()
        self._reasons: dict[tuple[Unit, bool], str] = {}

    def run(self, end_s: float, say: Say) -> None:
        """Measure as many blocks as end before the clock says `end_s`; a unit that fails with the file only once."""
        budget_s = end_s - time.monotonic()
        rounds = Rounds(budget_s)
        for block in range(MOST):
            if not self._left() or not rounds.another():
                break
            left_s = budget_s - rounds.passed_s
            say(
                f"held-out sizes with the file in effect: block {block + 1} of {MOST}, at most {left_s:.0f} s"
            )
            seen = {key: logs for unit in self._left() for key, logs in self._block(unit).items()}
            if len(seen) == sum(len(unit.held_out) for unit in self._units):
                self._whole.append(seen)

    def mean(self, ruled: Callable[[Unit, int], bool] | None = None) -> Estimate | None:
        """Return time with the file ÷ time without, geometric mean over sizes; None where no block has all.

        Parameters
        ----------
        ruled
            Whether the file has a rule for a unit at a size: the mean is over these; without it over all.
        """
        return self._mean(0, ruled)

    def mean_control(self, ruled: Callable[[Unit, int], bool] | None = None) -> Estimate | None:
        """Return the same of the library's own decision against itself: what of it may be chance."""
        return self._mean(1, ruled)

    def _mean(self, place: int, ruled: Callable[[Unit, int], bool] | None) -> Estimate | None:
        chosen = [
            [logs[place] for key, logs in block.items() if ruled is None or ruled(*key)]
            for block in self._whole
        ]
        means = [sum(logs) / len(logs) for logs in chosen if logs]
        return estimate_of(paired_shift(means)) if means else None

    def held_out(self, ruled: Callable[[Unit, int], bool]) -> list[HeldOut]:
        """Return the sizes of the units that can be judged.

        Parameters
        ----------
        ruled
            Whether the file has a rule for a unit at a size.
        """
        return [
            one
            for unit in self._units
            if (limit := self._limit(unit)) is not None
            for one in self._judged(unit, limit, ruled)
        ]

    def failures(self) -> list[HeldOutFailure]:
        """Return the units of which launches failed, or were too few to be judged."""
        found = []
        for unit in self._units:
            filed, bare = self._failed[unit, True], self._failed[unit, False]
            judged = self._limit(unit) is not None
            if judged and not filed and not bare:
                continue
            reasons = [self._reasons[unit, way] for way in (True, False) if (unit, way) in self._reasons]
            found.append(
                HeldOutFailure(
                    collective=unit.collective,
                    ranks=unit.ranks,
                    with_file=filed,
                    without_file=bare,
                    judged=judged,
                    reason=(reasons or ["too few blocks were measured to tell what may be chance"])[0],
                )
            )
        return found

    def _left(self) -> list[Unit]:
        """Return the units that the file did not make fail: that is known then, and to hang takes long."""
        return [unit for unit in self._units if not self._failed[unit, True]]

    def _block(self, unit: Unit) -> Block:
        """Measure a unit once each way, in random order; return its logarithms, none where a launch failed."""
        arms: dict[int, dict[int, float]] = {}
        places = [BASE, FILED, AGAIN]
        self._order.shuffle(places)
        for arm in places:
            try:
                arms[arm] = self._times(
                    unit.collective, unit.ranks, unit.held_out, self._env if arm == FILED else {}
                )
            except LaunchError as failure:
                self._failed[unit, arm == FILED] += 1
                self._reasons.setdefault((unit, arm == FILED), str(failure))
                return {}
        return {
            (unit, size): self._note(unit, size, *(arms[arm][size] for arm in range(3)))
            for size in unit.held_out
            if all(size in by_size for by_size in arms.values())
        }

    def _note(self, unit: Unit, size: int, base: float, filed: float, again: float) -> tuple[float, float]:
        # Both launches without the file tell what it takes without: their mean scatters less than one of them.
        ratio, control = math.log(filed / math.sqrt(base * again)), math.log(again / base)
        self._ratios.setdefault((unit, size), []).append(ratio)
        self._controls.setdefault((unit, size), []).append(control)
        return ratio, control

    def _limit(self, unit: Unit) -> float | None:
        """Return what may be chance; None where a size was measured too seldom to know."""
        controls = [self._controls[unit, size] for size in unit.held_out if (unit, size) in self._controls]
        known = len(controls) == len(unit.held_out)
        return widest([paired_shift(one) for one in controls]) if known else None

    def _judged(self, unit: Unit, limit: float, ruled: Callable[[Unit, int], bool]) -> list[HeldOut]:
        found = []
        for size in unit.held_out:
            ratio = estimate_of(paired_shift(self._ratios[unit, size]))
            control = estimate_of(paired_shift(self._controls[unit, size]))
            assert ratio is not None
            assert control is not None
            found.append(
                HeldOut(
                    collective=unit.collective,
                    ranks=unit.ranks,
                    size_bytes=size,
                    ratio=ratio,
                    control=control,
                    limit=limit,
                    ruled=ruled(unit, size),
                )
            )
        return found

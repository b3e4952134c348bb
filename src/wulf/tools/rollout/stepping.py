"""One step of a roll-out on real nodes: measured under the guards, then set for good or put back."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import msgspec

from wulf.base.errors import SchedulerError
from wulf.base.nodeset import fold
from wulf.base.records import ChangeOutcome
from wulf.base.store.files import timestamp
from wulf.base.text import count
from wulf.base.tool import Progress
from wulf.node.fleet import allocation, change
from wulf.node.trials.open_bench import CONFIRM_WITHIN_S
from wulf.tools.rollout.evidence import Match, StepTest, changing
from wulf.tools.rollout.measuring import SilentError, Where, opened
from wulf.tools.rollout.record import CheckRun, RolledNode, RolloutStep
from wulf.tools.rollout.schedule import Course, HaltError, measure
from wulf.tools.rollout.site_check import SiteCheck, checks_s
from wulf.tools.rollout.store import RolloutWriter


class Stepping:
    """Takes steps, and writes down each before and after it is set."""

    def __init__(
        self, where: Where, writer: RolloutWriter, course: Course, check: SiteCheck | None, say: Progress
    ) -> None:
        self._where = where
        self._writer = writer
        self._course = course
        self._check = check
        self._say = say

    def begin(self, number: int, matches: Sequence[Match]) -> RolloutStep:
        """Write down that a step begins, and return it: as what it stays if it is interrupted."""
        step = RolloutStep(
            number=number,
            nodes=changing(matches),
            pairs=[match.pair for match in matches],
            started_at=timestamp(),
            state="interrupted",
        )
        self._writer.append(step)
        self._say.note(f"step {number}: {count(len(step.nodes), 'node')}, {fold(step.nodes)}")
        return step

    def take(self, step: RolloutStep, matches: Sequence[Match]) -> RolloutStep:
        """Take a step that has begun, and return what became of it.

        Raises
        ------
        KeyboardInterrupt
            With its nodes put back.
        """
        test = StepTest(self._writer.manifest.plan, matches)
        begin = time.monotonic()
        checks: list[CheckRun] = []
        try:
            self._measure(test, matches, checks, step.number)
        except HaltError as error:
            step = self._halted(step, test, error)
        else:
            step = self._set(msgspec.structs.replace(step, rounds=test.rounds), test)
        step = msgspec.structs.replace(step, duration_s=time.monotonic() - begin, checks=checks)
        self._writer.append(step)
        if step.halted:
            self._course.halt(step.outcomes)
        else:
            self._course.take(step.outcomes)
        return step

    def _measure(self, test: StepTest, matches: Sequence[Match], checks: list[CheckRun], number: int) -> None:
        plan = self._writer.manifest.plan
        with opened(self._where, matches, plan.seed + 1000 * number, self._say) as bench:
            measure(test, bench, plan.rounds, allocation.Rounds(self._left_s(checks_s(plan))).another)
            if self._check is not None and test.passed:
                self._say(f"the site's check with the change on {fold(test.passed)}")
                self._check.between(bench, test.passed, checks)

    def _left_s(self, reserved_s: float) -> float:
        """Return the time for measuring [s]: when the nodes' Slurm job has ended, other jobs may run there.

        Raises
        ------
        SchedulerError
            It ends too soon.
        """
        left_s = allocation.capped(math.inf, lambda _: None) - reserved_s
        if left_s <= 0:
            raise SchedulerError(
                f"the Slurm job ends too soon: the checks of a step may take {reserved_s:.0f} s"
            )
        return left_s

    def _set(self, step: RolloutStep, test: StepTest) -> RolloutStep:
        """Set the change for good on the nodes that it does not harm."""
        outcomes = test.outcomes(step.number, self._course.kind_of)
        passed = test.passed
        if not passed:
            return msgspec.structs.replace(step, state="done", outcomes=outcomes)
        # Should this program end now, the next one sees on the nodes whether they were set.
        self._writer.append(msgspec.structs.replace(step, state="proven", outcomes=outcomes))
        where = self._where
        self._say(f"{fold(passed)}: setting it for good")
        made = change.make(
            where.guards, where.config, where.plan(passed), deadline_s=CONFIRM_WITHIN_S, watch=self._say
        )
        if not made.kept:
            return self._halted(step, test, HaltError(f"it could not be set for good: {made.reason}"))
        return msgspec.structs.replace(
            step, state="done", outcomes=[_set_by(one, made) for one in outcomes], notes=made.notes
        )

    def _halted(self, step: RolloutStep, test: StepTest, error: HaltError) -> RolloutStep:
        """Return a step of which nothing was kept, with what is known of its nodes."""
        silent = error.nodes if isinstance(error, SilentError) else {}
        outcomes = [
            msgspec.structs.replace(one, state="silent", reason=silent[one.node])
            if one.node in silent
            else _put_back(one)
            for one in test.outcomes(step.number, self._course.kind_of)
        ]
        return msgspec.structs.replace(
            step, rounds=test.rounds, state="halted", halted=str(error), outcomes=outcomes
        )


def _set_by(one: RolledNode, made: ChangeOutcome) -> RolledNode:
    return msgspec.structs.replace(one, change=made.change) if one.state == "kept" else one


def _put_back(one: RolledNode) -> RolledNode:
    """Return a node of a halted step: what was shown to harm stays shown, what was not is open."""
    if one.state in ("harmed", "refused"):
        return one
    reason = "put back, as the roll-out was halted in this step"
    return msgspec.structs.replace(one, state="cannot tell", reason=reason)

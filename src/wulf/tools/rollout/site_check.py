"""The site's own command between the steps of a roll-out."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from wulf.base.errors import WulfError
from wulf.base.nodeset import fold
from wulf.base.text import printable
from wulf.node.change.transaction import NotRestoredError
from wulf.node.probe import command
from wulf.stats.core.evalues import Positive
from wulf.tools.rollout.measuring import NodeBench, Where
from wulf.tools.rollout.record import CheckRun, RolloutPlan
from wulf.tools.rollout.schedule import HaltError

#: How often it runs with the change and without it in a step.
PAIRS = 2
#: More runs at most: before anything is changed, and after it has failed, without the step and without any.
_MORE_RUNS = 3
#: A change is held for longer than a check may take: its end is waited for, whether its node still answers is asked,
#: and the nodes may have been told so long ago that we are here [s].
_BESIDE_S = 90.0
#: Evidence at which its run time is called longer with the change, over all steps: by chance in one of a hundred.
LONGER = 100.0


def checks_s(plan: RolloutPlan, *, whole: bool = False) -> float:
    """Return how long the checks of a step may take [s], of the `whole` step with those before and after it."""
    runs = 2 * PAIRS + _MORE_RUNS * whole
    return runs * (plan.check_within_s + _BESIDE_S) if plan.check else 0.0


def words(run: CheckRun) -> str:
    """Say what a run that has not passed says of the change."""
    if run.passed is None:
        return f"the check could not be run: {run.reason}"
    return f"the check fails {'with' if run.changed else 'without'} the change of this step: {run.reason}"


class SiteCheck:
    """Runs the command on the first node of a step, and remembers how long it took with the change and without."""

    def __init__(self, where: Where, plan: RolloutPlan) -> None:
        self._where = where
        self._plan = plan
        self._line = command.placed(plan.check, where.config.transport)
        self._order = random.Random(plan.seed)  # noqa: S311 - reproducible, not secret
        self._longer = Positive()
        #: The nodes for which it ran last.
        self._nodes: list[str] = []

    def run(self, nodes: Sequence[str], *, changed: bool) -> CheckRun:
        """Run it once for the nodes of a step, on the first of them; what gives no result in time has failed."""
        self._nodes = list(nodes)
        node, limit_s = nodes[0], self._plan.check_within_s
        try:
            ran = command.run(
                self._where.transport, node, self._line, {"WULF_NODES": fold(nodes)}, limit_s=limit_s
            )
        except WulfError as error:
            return _not_run(str(error), changed=changed)
        if ran.exit_code in command.NOT_STARTED or (ran.exit_code is None and self._where.silent([node])):
            return _not_run(ran.error, changed=changed)
        # Where the node's clock went back, there is no run time.
        time_s = ran.nanoseconds * 1e-9 if ran.nanoseconds is not None and ran.nanoseconds > 0 else None
        return CheckRun(
            changed=changed, passed=not ran.error, run_time_s=time_s, reason=printable(ran.error, 300)
        )

    def again(self) -> CheckRun:
        """Run it once more for the same nodes, without the change."""
        return self.run(self._nodes, changed=False)

    def between(self, bench: NodeBench, nodes: Sequence[str], done: list[CheckRun]) -> None:
        """Run it with the change on these nodes and without it, in random order; append to `done`.

        Raises
        ------
        HaltError
            It failed, could not be run, or takes longer with the change.
        """
        for _ in range(PAIRS):
            found: dict[bool, float | None] = {}
            for changed in self._order.sample((False, True), 2):
                done.append(run := self._under(bench, nodes, changed=changed))
                if not run.passed:
                    raise HaltError(words(run))
                found[changed] = run.run_time_s
            if (with_it := found[True]) and (without := found[False]):
                self._longer.take(math.log(with_it / without))
        if self._longer.e_value >= LONGER:
            raise HaltError("the check takes longer with the change")

    def _under(self, bench: NodeBench, nodes: Sequence[str], *, changed: bool) -> CheckRun:
        try:
            bench.have(nodes if changed else [])
            with bench.held(self._plan.check_within_s + _BESIDE_S):
                return self.run(nodes, changed=changed)
        except NotRestoredError:
            raise
        except WulfError as error:
            return _not_run(str(error), changed=changed)


def _not_run(reason: str, *, changed: bool) -> CheckRun:
    return CheckRun(changed=changed, passed=None, run_time_s=None, reason=printable(reason, 300))

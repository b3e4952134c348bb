"""The site's own command between the steps of a roll-out."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from wulf.base.errors import WulfError
from wulf.base.nodeset import fold
from wulf.base.text import printable
from wulf.node.change.transaction import NotRestoredError, StepError
from wulf.node.probe import command
from wulf.stats.core.evalues import Positive
from wulf.tools.rollout.measuring import NodeBench, Where
from wulf.tools.rollout.record import CheckRun, RolloutPlan
from wulf.tools.rollout.schedule import HaltError

#: How often it runs with the change and without it in a step.
PAIRS = 2
#: Evidence at which its run time is called longer with the change, over all steps: by chance in one of a hundred.
LONGER = 100.0


def checks_s(plan: RolloutPlan) -> float:
    """Return how long the checks of a step may take [s]."""
    return 2 * PAIRS * plan.check_within_s if plan.check else 0.0


class SiteCheck:
    """Runs the command on the first node that answers, and remembers how long it took with the change and without."""

    def __init__(self, where: Where, plan: RolloutPlan) -> None:
        self._where = where
        self._plan = plan
        self._node = next(record.node for record in where.records if record.reachable)
        self._line = command.placed(plan.check, where.config.transport)
        self._order = random.Random(plan.seed)  # noqa: S311 - reproducible, not secret
        self._longer = Positive()

    def run(self, nodes: Sequence[str], *, changed: bool) -> CheckRun:
        """Run it once; what gives no result in time has failed."""
        env = {"WULF_NODES": fold(nodes)} if nodes else {}
        limit_s = self._plan.check_within_s
        try:
            ran = command.run(self._where.transport, self._node, self._line, env, limit_s=limit_s)
            time_s = command.run_time_s(ran)
        except WulfError as error:
            return CheckRun(
                changed=changed, passed=False, run_time_s=None, reason=printable(str(error), 300) or "it died"
            )
        return CheckRun(changed=changed, passed=True, run_time_s=time_s)

    def between(self, bench: NodeBench, nodes: Sequence[str], done: list[CheckRun]) -> None:
        """Run it with the change on these nodes and without it, in random order; append to `done`.

        Raises
        ------
        HaltError
            It failed, or takes longer with the change.
        """
        for _ in range(PAIRS):
            found: dict[bool, float] = {}
            for changed in self._order.sample((False, True), 2):
                done.append(self._under(bench, nodes, changed=changed))
                if not done[-1].passed:
                    with_it = "with" if changed else "without"
                    raise HaltError(f"the check fails {with_it} the change of this step: {done[-1].reason}")
                found[changed] = done[-1].run_time_s or math.nan
            self._longer.take(math.log(found[True] / found[False]))
        if self._longer.e_value >= LONGER:
            raise HaltError("the check takes longer with the change")

    def _under(self, bench: NodeBench, nodes: Sequence[str], *, changed: bool) -> CheckRun:
        try:
            bench.have(nodes if changed else [])
            with bench.held(self._plan.check_within_s):
                return self.run(nodes, changed=changed)
        except NotRestoredError:
            raise
        except (StepError, WulfError) as error:
            return CheckRun(changed=changed, passed=False, run_time_s=None, reason=printable(str(error), 300))

"""A simulated cluster small enough to read, for the tests of the search."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from wulf.base.records import Candidate, Metric, Trial, TunePlan, Values
from wulf.node.trials.experiment import Search, TrialRequest

LATENCY = Metric(name="latency", pattern="ping-pong", unit="s", better="lower", weight=1.0)
TAIL = Metric(name="tail", pattern="ping-pong", unit="s", better="lower", weight=0.0, guard=True)
#: Setting → metric → factor on its value; None: the trial fails.
Truth = Callable[[Values], dict[str, float] | None]


def knob(name, values=("on",), **other):
    return Candidate(knob=name, original=other.pop("original", "off"), values=list(values), **other)


def make_plan(*candidates, **other):
    given = {
        "objective": "latency",
        "metrics": [LATENCY, TAIL],
        "candidates": list(candidates),
        "budget_s": 800.0,
        "trial_s": 2.0,
        "margin": 0.01,
        "false_discovery": 0.05,
        "confidence": 0.95,
        "seed": 1,
    }
    return TunePlan(**{**given, **other})


def factors(**effects):
    """Truth in which every knob multiplies the latency."""
    return lambda setting: {"latency": math.prod(effects.get(name, 1.0) for name in setting)}


class Simulation:
    """Answers requests; the noise of a trial depends on its index only, so that a run can be repeated."""

    def __init__(self, truth: Truth, spread: float = 0.01, seed: int = 1) -> None:
        self.truth = truth
        rng = np.random.default_rng(seed)
        self.noise = spread * rng.standard_normal(3000)

    def trial(self, request: TrialRequest, index: int) -> Trial:
        found = self.truth(request.setting)
        noise = math.exp(self.noise[index])
        values = {} if found is None else {"latency": 1.0, "tail": 2.0, **found}
        return Trial(
            index=index,
            phase=request.phase,
            round=request.round,
            block=request.block,
            setting=request.setting,
            started_at="2025-01-01T00:00:00Z",
            duration_s=2.0,
            status="failed" if found is None else "ok",
            error="no answer" if found is None else None,
            values={name: value * noise for name, value in values.items()},
        )

    def run(
        self, search: Search, trials: list[Trial] | None = None, left_s: float | None = None
    ) -> list[Trial]:
        """Go on to the end; `trials` are those of before."""
        made = list(trials or [])
        left = search.plan.budget_s - 2.0 * len(made) if left_s is None else left_s
        while (request := search.ask(left)) is not None:
            made.append(self.trial(request, len(made)))
            search.tell(made[-1])
            left -= 2.0
        return made


def tuned(plan, truth, **other):
    """Conclusion of a whole run."""
    search = Search(plan)
    Simulation(truth, **other).run(search)
    return search.tuning("run", "complete")

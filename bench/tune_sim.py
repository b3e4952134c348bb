"""The tuner's experiment on synthetic clusters: does it find the right settings, and keep no others?

Each cluster has 5 to 10 candidate knobs, a true effect for every combination of them, and a kind of noise; every
kind of effects meets every kind of noise. The plan is that of a real run: ten minutes of trials of two seconds.

What the words mean, exactly:

effect
    Difference of the logarithm of the true objective (two metrics of half the weight each, one of them better
    when higher). Unless the kind says otherwise, a knob that helps does so by 1.2 to 4 times `visible`: what ten
    blocks can show under this noise, at least 3 %; so what is asked is possible. Useless knobs do exactly nothing,
    harmful ones twice `visible`. One knob in ten takes longer to change than a trial.
best set
    Of all combinations of all levels, that which has the lowest true objective, does not fail, and does not make
    the guard metric worse by more than the margin. Numeric knobs may take any whole number in their range, not only
    those listed: to find them is what refinement is for.
exact
    Nothing was lost against the best set, and nothing more is kept than it takes: within the margin, as changes within
    it count as none.
gain
    Of what the best set gains, the share that the kept set does; only clusters where something can be gained.
false keep
    A kept knob without which the kept set would truly be as good or better. Goal over all kept knobs, and over
    runs that keep any such knob: ≤ 5 %.
harm
    Runs whose kept set makes the guard worse.
factorial
    Trials of every combination of all listed levels (and the original), each once. The median run's share is shown
    ("of full").
"""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray

from wulf.base.records import Candidate, Metric, Trial, TunePlan, Tuning, Values
from wulf.node.trials.experiment import Search

Floats = NDArray[np.float64]
TRIAL_S = 2.0
BUDGET_S = 600.0
MARGIN = 0.01
FALSE_DISCOVERY = 0.02
SEED = 4
GOAL_GAIN = 0.85
GOAL_FALSE = 0.05
METRICS = [
    Metric(name="latency", pattern="ping-pong", unit="s", better="lower", weight=0.5),
    Metric(name="bandwidth", pattern="stream", unit="B/s", better="higher", weight=0.5),
    Metric(name="tail", pattern="ping-pong", unit="s", better="lower", weight=0.0, guard=True),
]
SWEEP = [8, 16, 32, 64, 128]
SWEEP_ORIGINAL = 4


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """How trials scatter."""

    name: str
    #: Standard deviation of a trial (relative); degrees of freedom of Student's t, 0 for normal.
    spread: float
    degrees: int = 0
    #: Share of the trials that take longer, and by how much.
    slow_share: float = 0.0
    slow: float = 0.0
    #: Change over 300 trials, and standard deviation of a step of a random walk per trial.
    drift: float = 0.0
    walk: float = 0.0
    #: Share of slow trials that are recognised as contaminated.
    recognised: float = 0.0

    def series(self, rng: np.random.Generator, trials: int) -> tuple[Floats, NDArray[np.bool_]]:
        """Log noise of trials in time order, and which of them are recognised as contaminated."""
        scatter = rng.standard_t(self.degrees, trials) if self.degrees else rng.standard_normal(trials)
        slow = rng.random(trials) < self.slow_share
        path = self.drift * np.arange(trials) / 300 + np.cumsum(self.walk * rng.standard_normal(trials))
        known = slow & (rng.random(trials) < self.recognised)
        return self.spread * scatter + self.slow * slow + path, known

    @property
    def visible(self) -> float:
        """Effect that ten blocks can show; its constant is that of a t test at 0.5 % with a power of 90 %."""
        modes = self.slow if self.slow_share > 0.15 else 0.0
        walk = self.walk * math.sqrt(4)
        scatter = math.sqrt(2) * math.hypot(self.spread * (1.3 if self.degrees else 1.0), 0.5 * modes)
        return max(0.03, 1.6 * math.hypot(scatter, walk))


NOISES = (
    Noise(name="quiet 0.3 %", spread=0.003),
    Noise(name="usual 1 %", spread=0.01),
    Noise(name="noisy 5 %", spread=0.05),
    Noise(name="very noisy 20 %", spread=0.2),
    Noise(name="heavy tail", spread=0.02, degrees=2),
    Noise(name="outliers", spread=0.01, slow_share=0.08, slow=0.5, recognised=0.5),
    Noise(name="two modes", spread=0.01, slow_share=0.3, slow=0.08),
    Noise(name="drift", spread=0.01, drift=0.3),
    Noise(name="random walk", spread=0.01, walk=0.01),
)


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """A synthetic cluster and what is true of it."""

    kind: str
    noise: Noise
    candidates: list[Candidate]
    #: Knob → value → effect of it alone; numeric knobs have an optimum instead.
    main: dict[str, float]
    #: Numeric knob → (position of the optimum, effect there).
    optima: dict[str, tuple[float, float]] = {}
    #: Knobs that are set together → effect on top of theirs.
    joint: list[tuple[tuple[str, ...], float]] = []
    #: Knob → what it does to the guard.
    guard: dict[str, float] = {}
    #: Knob → probability that a trial fails.
    fails: dict[str, float] = {}

    def effect(self, setting: Values) -> float:
        """True effect of a setting."""
        total = sum(self._main(knob, value) for knob, value in setting.items())
        return total + sum(effect for knobs, effect in self.joint if all(knob in setting for knob in knobs))

    def _main(self, knob: str, value: str) -> float:
        if knob not in self.optima:
            return self.main.get(knob, 0.0)
        return sweep_effect(float(value), *self.optima[knob])

    def harm(self, setting: Values) -> float:
        """True effect of a setting on the guard."""
        return sum(self.guard.get(knob, 0.0) for knob in setting)

    def works(self, setting: Values) -> bool:
        return not any(knob in self.fails for knob in setting)

    def best(self) -> float:
        """Effect of the best set."""
        # Numeric knobs add up with all others: each is at its own optimum.
        numeric = sum(
            min(sweep_effect(float(v), *found) for v in range(SWEEP_ORIGINAL, SWEEP[-1] + 1))
            for found in self.optima.values()
        )
        plain = [candidate for candidate in self.candidates if candidate.knob not in self.optima]
        sets = (
            {candidate.knob: candidate.values[0] for candidate in chosen}
            for count in range(len(plain) + 1)
            for chosen in itertools.combinations(plain, count)
        )
        allowed = (s for s in sets if self.works(s) and self.harm(s) <= math.log1p(MARGIN))
        return numeric + min(self.effect(s) for s in allowed)


def sweep_effect(value: float, optimum: float, effect: float) -> float:
    """A parabola over the logarithm of the value: nothing at the original, `effect` at the optimum."""
    width = math.log(optimum / SWEEP_ORIGINAL)
    return effect * (1 - (math.log(value / optimum) / width) ** 2)


def _useful(rng: np.random.Generator, noise: Noise) -> float:
    return -noise.visible * float(np.exp(rng.uniform(math.log(1.2), math.log(4))))


Parts = dict[str, object]


def _additive(rng: np.random.Generator, noise: Noise) -> Parts:
    return {"main": {f"good{i}": _useful(rng, noise) for i in range(rng.integers(1, 5))}}


def _natural(rng: np.random.Generator, _noise: Noise) -> Parts:
    """Whatever the noise: effects from 1 to 30 %, so that some are too small to be seen."""
    effects = -np.exp(rng.uniform(math.log(0.01), math.log(0.3), int(rng.integers(1, 4))))
    return {"main": {f"good{i}": float(effect) for i, effect in enumerate(effects)}}


def _sub_additive(rng: np.random.Generator, noise: Noise) -> Parts:
    main = {f"good{i}": _useful(rng, noise) for i in range(2)}
    return {"main": main, "joint": [(tuple(main), -0.4 * max(main.values()))]}


def _super_additive(rng: np.random.Generator, noise: Noise) -> Parts:
    main = {f"good{i}": _useful(rng, noise) for i in range(2)}
    return {"main": main, "joint": [(tuple(main), 0.7 * min(main.values()))]}


def _conditional(rng: np.random.Generator, noise: Noise) -> Parts:
    """The second helps only on top of the first."""
    main = {"good": _useful(rng, noise), "follower": 0.0}
    return {"main": main, "joint": [(("good", "follower"), _useful(rng, noise))]}


def _antagonistic(rng: np.random.Generator, noise: Noise) -> Parts:
    """Two good ones that together are no better than the better one, or worse."""
    main = {f"good{i}": _useful(rng, noise) for i in range(2)}
    lost = -max(main.values()) * (1.0 if rng.random() < 0.5 else 1.5)
    return {"main": main, "joint": [(tuple(main), lost)]}


def _guarded(rng: np.random.Generator, noise: Noise) -> Parts:
    main = {"good": _useful(rng, noise), "harmful to the tail": 1.5 * _useful(rng, noise)}
    return {"main": main, "guard": {"harmful to the tail": 2 * noise.visible}}


def _failing(rng: np.random.Generator, noise: Noise) -> Parts:
    main = {"good": _useful(rng, noise), "broken": 0.0, "flaky": 2 * _useful(rng, noise)}
    return {"main": main, "fails": {"broken": 1.0, "flaky": 0.6}}


def _numeric(rng: np.random.Generator, noise: Noise) -> Parts:
    optimum = float(np.exp(rng.uniform(math.log(12), math.log(100))))
    return {"main": {"good": _useful(rng, noise)}, "optima": {"sweep": (optimum, 1.5 * _useful(rng, noise))}}


def _nothing(_rng: np.random.Generator, _noise: Noise) -> Parts:
    return {"main": {}}


KINDS: dict[str, Callable[[np.random.Generator, Noise], Parts]] = {
    "additive": _additive,
    "natural sizes": _natural,
    "sub-additive": _sub_additive,
    "super-additive": _super_additive,
    "helps only on top": _conditional,
    "antagonistic": _antagonistic,
    "harms a guard": _guarded,
    "fails": _failing,
    "numeric": _numeric,
    "nothing": _nothing,
}


def cluster(kind: str, noise: Noise, rng: np.random.Generator) -> Cluster:
    """Draw a cluster: the knobs of its kind among useless and harmful ones."""
    parts = KINDS[kind](rng, noise)
    main: dict[str, float] = parts["main"]  # type: ignore[assignment]
    optima: dict[str, tuple[float, float]] = parts.get("optima", {})  # type: ignore[assignment]
    total = int(rng.integers(max(5, len(main) + len(optima) + 1), 11))
    others = {
        f"other{i}": 2 * noise.visible if rng.random() < 0.25 else 0.0
        for i in range(total - len(main) - len(optima))
    }
    main = {**main, **others}
    names = [*main, *optima]
    candidates = [
        Candidate(
            knob=name,
            original=str(SWEEP_ORIGINAL) if name in optima else "off",
            values=[str(v) for v in SWEEP] if name in optima else ["on"],
            numeric=name in optima,
            effect=float(rng.uniform(0, 0.2)),
            toggle_s=float(rng.choice([0.0, 0.1, 0.3, 3.0], p=[0.4, 0.3, 0.2, 0.1])),
        )
        for name in (names[i] for i in rng.permutation(len(names)))
    ]
    return Cluster(kind=kind, noise=noise, candidates=candidates, **{**parts, "main": main})  # type: ignore[arg-type]


def plan(world: Cluster, seed: int) -> TunePlan:
    return TunePlan(
        objective="simulated",
        metrics=METRICS,
        candidates=world.candidates,
        budget_s=BUDGET_S,
        trial_s=TRIAL_S,
        margin=MARGIN,
        false_discovery=FALSE_DISCOVERY,
        confidence=0.95,
        seed=seed,
    )


def run(world: Cluster, seed: int) -> tuple[Tuning, float]:
    """Tune a cluster; also the time that was left [s]."""
    rng = np.random.default_rng([seed, 1])
    most = 2000
    common, contaminated = world.noise.series(rng, most)
    own = 0.3 * world.noise.spread * rng.standard_normal((most, len(METRICS)))
    failures = rng.random(most)
    search = Search(plan(world, seed))
    left = BUDGET_S
    before: Values = {}
    toggles = {candidate.knob: candidate.toggle_s for candidate in world.candidates}
    for index in range(most):
        request = search.ask(left)
        if request is None:
            break
        changed = {knob for knob, _ in set(before.items()) ^ set(request.setting.items())}
        duration = TRIAL_S + sum(toggles[knob] for knob in changed)
        before, left = request.setting, left - duration
        failed = any(failures[index] < world.fails.get(knob, 0.0) for knob in request.setting)
        effect = world.effect(request.setting) + common[index]
        logs = own[index] + [effect, -effect, world.harm(request.setting) + common[index]]
        search.tell(
            Trial(
                index=index,
                phase=request.phase,
                round=request.round,
                block=request.block,
                setting=request.setting,
                started_at="2025-01-01T00:00:00Z",
                duration_s=duration,
                status="failed" if failed else "ok",
                values={} if failed else {m.name: math.exp(x) for m, x in zip(METRICS, logs, strict=True)},
                contamination=["load"] if contaminated[index] else [],
            )
        )
    return search.tuning("simulated", "complete"), left


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended."""

    kind: str
    noise: str
    exact: bool
    #: Share of the possible gain; None where nothing can be gained.
    gain: float | None
    kept: int
    false: int
    harms: bool
    trials: int
    factorial: float
    status: str
    #: Smallest effect, as the run says.
    smallest: float


def judge(world: Cluster, tuning: Tuning) -> Outcome:
    reached, best = world.effect(tuning.kept), world.best()
    harms = world.harm(tuning.kept) > math.log1p(MARGIN)
    without = ({k: v for k, v in tuning.kept.items() if k != knob} for knob in tuning.kept)
    false = sum(world.effect(setting) <= reached + 1e-12 for setting in without)
    return Outcome(
        kind=world.kind,
        noise=world.noise.name,
        exact=reached - best <= math.log1p(MARGIN) and not false and not harms,
        gain=(reached / best if world.works(tuning.kept) else 0.0) if best < 0 else None,
        kept=len(tuning.kept),
        false=false,
        harms=harms,
        trials=tuning.trials_used,
        factorial=tuning.trials_used / tuning.trials_factorial,
        status=tuning.status,
        smallest=tuning.control.smallest_effect if tuning.control else 1.0,
    )


def gain(outcomes: list[Outcome]) -> float:
    """Mean share of what could be gained."""
    known = [outcome.gain for outcome in outcomes if outcome.gain is not None]
    return float(np.mean(known)) if known else math.nan


def simulate(clusters: int, seed: int) -> list[Outcome]:
    """Run so many clusters: kinds of effects and of noise in turn."""
    crossed = list(itertools.product(KINDS, NOISES))
    order = np.random.default_rng(seed).permutation(len(crossed))
    outcomes = []
    for number in range(clusters):
        kind, noise = crossed[order[number % len(crossed)]]
        rng = np.random.default_rng([seed, number])
        world = cluster(kind, noise, rng)
        outcomes.append(judge(world, run(world, seed * 100_000 + number)[0]))
    return outcomes


def row(name: str, outcomes: list[Outcome]) -> str:
    runs, kept = len(outcomes), sum(outcome.kept for outcome in outcomes)
    false = sum(outcome.false for outcome in outcomes)
    return (
        f"  {name:18s} {runs:5d} {sum(o.exact for o in outcomes) / runs:7.1%} {gain(outcomes):7.1%} {kept:5d} "
        f"{false / max(kept, 1):7.1%} {sum(o.false > 0 for o in outcomes) / runs:7.1%} "
        f"{sum(o.harms for o in outcomes):5d} {np.median([o.trials for o in outcomes]):6.0f} "
        f"{np.median([o.factorial for o in outcomes]):8.3f} {sum(o.status == 'budget' for o in outcomes):5d} "
        f"{np.median([o.smallest for o in outcomes]):8.1%}"
    )


def table(outcomes: list[Outcome]) -> str:
    """Rows by kind of effects, by kind of noise, and over all."""
    head = (
        f"  {'':18s} {'runs':>5s} {'exact':>7s} {'gain':>7s} {'kept':>5s} {'false':>7s} {'any':>7s} {'harm':>5s} "
        f"{'trials':>6s} {'of full':>8s} {'short':>5s} {'smallest':>8s}"
    )
    lines = [head]
    for name in KINDS:
        lines += [row(name, part)] if (part := [o for o in outcomes if o.kind == name]) else []
    lines.append("")
    for noise in NOISES:
        lines += [row(noise.name, part)] if (part := [o for o in outcomes if o.noise == noise.name]) else []
    return "\n".join([*lines, "", row("all", outcomes)])


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    clusters = 20 if "--quick" in arguments else 450
    begin = time.monotonic()
    outcomes = simulate(clusters, seed=SEED)
    print(table(outcomes))
    kept = max(sum(o.kept for o in outcomes), 1)
    false = sum(o.false for o in outcomes) / kept
    some = sum(o.false > 0 for o in outcomes) / clusters
    exact = sum(o.exact for o in outcomes) / clusters
    print(f"\n{clusters} clusters in {time.monotonic() - begin:.0f} s")
    passed = gain(outcomes) >= GOAL_GAIN and max(false, some) <= GOAL_FALSE
    print(
        f"tune-sim value=gain:{gain(outcomes):.3f},exact:{exact:.3f},false-keeps:{false:.3f},runs-with-one:{some:.3f} "
        f"goal=gain:{GOAL_GAIN},false-keeps:{GOAL_FALSE},runs-with-one:{GOAL_FALSE} {'pass' if passed else 'short'}"
    )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Worlds for the search of `wulf tune`: settings that harm, knobs that deceive, effects that stay behind."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from bench.worlds.line import Count, World
from wulf.base.records import Candidate, Metric, Operation, Trial, TunePlan, Tuning, Values
from wulf.node.trials.experiment import Search, objective

BUDGET_S, TRIAL_S, CHANGE_S = 330.0, 2.2, 1.2
MARGIN = 0.02
#: How much a trial's figures have in common with its node-local reference, as measured on a virtual host.
CORRELATION = 0.94


class Cluster(msgspec.Struct, kw_only=True):
    """What is true of a cluster: effects are differences of logarithms, below zero where they help."""

    knobs: list[str]
    #: Scatter of a trial as a whole, and of each figure in it.
    scatter: float
    own: float
    #: Setting, setting before, metric → effect.
    effect: Callable[[Values, Values, Metric], float]
    #: Setting → what it adds to the reference; None: there is no reference.
    reference: Callable[[Values], float] | None = None
    #: Setting and generator → what befalls a trial as a whole.
    accident: Callable[[Values, np.random.Generator], float] = lambda _setting, _rng: 0.0
    #: The scatter is so many times as large from this share of the budget on.
    storm: tuple[float, float] = (1.0, 1.0)
    budget_s: float = BUDGET_S


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """How a search ended."""

    tuning: Tuning
    left_s: float
    plan: TunePlan


def _operation() -> Operation:
    return Operation(
        name="mpi_pingpong",
        transport="mpi",
        ranks=2,
        pattern="ping-pong",
        axis="size",
        axis_unit="B",
        quantity="half round trip",
        better="lower",
        moves_bytes=True,
        usual=1,
        divisor=2.0,
        timing="iteration",
        min_size_bytes=0,
        max_size_bytes=2**30,
        lossy=False,
        summary="half round trip",
    )


def run(cluster: Cluster, seed: int) -> Run:
    """Tune a cluster by the metrics of `--objective latency`."""
    rng = np.random.default_rng([seed, 7])
    plan = TunePlan(
        objective="latency",
        metrics=objective.named("latency", _operation, lambda _: _operation()).metrics,
        candidates=[
            Candidate(knob=knob, original="off", values=["on"], toggle_s=0.3) for knob in cluster.knobs
        ],
        budget_s=cluster.budget_s,
        trial_s=TRIAL_S,
        margin=MARGIN,
        false_discovery=0.02,
        confidence=0.95,
        seed=seed,
    )
    search = Search(plan)
    left_s, index, before = cluster.budget_s, 0, Values()
    while (request := search.ask(left_s)) is not None:
        change_s = CHANGE_S if request.setting != before else 0.0
        stormy = left_s < (1 - cluster.storm[0]) * cluster.budget_s
        trial = _trial(
            cluster, request.setting, before, rng, plan.metrics, cluster.storm[1] if stormy else 1.0
        )
        search.tell(
            msgspec.structs.replace(
                trial,
                index=index,
                phase=request.phase,
                round=request.round,
                block=request.block,
                duration_s=TRIAL_S + change_s,
                change_s=change_s,
            )
        )
        before = request.setting
        left_s -= TRIAL_S + change_s
        index += 1
    return Run(tuning=search.tuning("simulated", "complete"), left_s=left_s, plan=plan)


def _trial(
    cluster: Cluster,
    setting: Values,
    before: Values,
    rng: np.random.Generator,
    metrics: Sequence[Metric],
    louder: float,
) -> Trial:
    common = float(rng.standard_t(4)) / math.sqrt(2)
    level = louder * cluster.scatter * common + cluster.accident(setting, rng)
    reference = None
    if cluster.reference is not None:
        other = CORRELATION * common + math.sqrt(1 - CORRELATION**2) * float(rng.standard_normal())
        reference = math.exp(louder * cluster.scatter * other + cluster.reference(setting))
    values = {
        metric.name: math.exp(
            level + cluster.effect(setting, before, metric) + cluster.own * float(rng.standard_normal())
        )
        for metric in metrics
    }
    return Trial(
        index=0,
        phase="control",
        round=0,
        block=0,
        setting=setting,
        started_at="2026-01-01T00:00:00Z",
        duration_s=0.0,
        status="ok",
        values=values,
        reference=reference,
    )


def _names(count: int) -> list[str]:
    return [f"knob{index:02d}" for index in range(count)]


def _size(metric: Metric) -> int:
    return metric.figure.size_bytes if metric.figure is not None else 0


def _searches(
    make: Callable[[np.random.Generator], Cluster], counted: Callable[[Run], bool | None]
) -> Callable[[Sequence[int], int], Count]:
    """Return a world that counts searches; those of which there is nothing to say are left out."""

    def world(seed: Sequence[int], times: int) -> Count:
        rng = np.random.default_rng(seed)
        found = [counted(run(make(rng), int(rng.integers(2**31)))) for _ in range(times)]
        known = [one for one in found if one is not None]
        return Count(hits=sum(known), of=len(known))

    return world


def _small_for_large(rng: np.random.Generator, *, healer: bool) -> Cluster:
    """Small messages for large ones: two knobs help these and harm those; another one heals, or nothing does."""
    helps, harms = rng.uniform(0.08, 0.14, 2), rng.uniform(0.04, 0.12, 2)
    heals = float(rng.uniform(0.10, 0.18)) if healer else 0.0

    def effect(setting: Values, _before: Values, metric: Metric) -> float:
        on = [f"knob{index:02d}" in setting for index in range(3)]
        if _size(metric) <= 1024:
            return -float(helps[0] * on[0] + helps[1] * on[1])
        return float(harms[0] * on[0] + harms[1] * on[1]) - heals * on[2]

    return Cluster(
        knobs=_names(int(rng.integers(9, 14))),
        scatter=0.04,
        own=float(rng.uniform(0.02, 0.08)),
        effect=effect,
    )


def _largest(rng: np.random.Generator) -> Cluster:
    """A knob helps up to 64 KiB, and harms 256 KiB."""
    helps, harms = float(rng.uniform(0.08, 0.14)), float(rng.uniform(0.14, 0.22))

    def effect(setting: Values, _before: Values, metric: Metric) -> float:
        if "knob00" not in setting:
            return 0.0
        return harms if _size(metric) > 65536 else -helps

    return Cluster(knobs=_names(10), scatter=0.04, own=0.02, effect=effect)


def _keeps(*knobs: str) -> Callable[[Run], bool]:
    return lambda done: any(knob in done.tuning.kept for knob in knobs)


def _deceived(rng: np.random.Generator) -> Cluster:
    """A useless knob slows the reference."""
    slows = float(rng.uniform(0.04, 0.06))
    return Cluster(
        knobs=_names(10),
        scatter=float(rng.uniform(0.05, 0.11)),
        own=0.005,
        effect=lambda *_: 0.0,
        reference=lambda setting: slows * ("knob00" in setting),
    )


def _modest(effect: float, scatter: tuple[float, float]) -> Callable[[np.random.Generator], Cluster]:
    """A knob helps by so much, and there is a reference that nothing moves."""

    def make(rng: np.random.Generator) -> Cluster:
        return Cluster(
            knobs=_names(10),
            scatter=float(rng.uniform(*scatter)),
            own=0.005,
            effect=lambda setting, *_: math.log1p(-effect) * ("knob00" in setting),
            reference=lambda _setting: 0.0,
        )

    return make


def _bad_placement(rng: np.random.Generator) -> Cluster:
    """A knob helps by 8 %, but one placement in six falls badly: on average it harms by 2 to 4 %."""
    helps = math.log1p(-0.08)
    falls = 6 * float(rng.uniform(0.02, 0.04)) - 6 * helps

    def accident(setting: Values, own: np.random.Generator) -> float:
        return falls * float("knob00" in setting and own.random() < 1 / 6)

    return Cluster(
        knobs=_names(10),
        scatter=float(rng.uniform(0.01, 0.03)),
        own=0.005,
        effect=lambda setting, *_: helps * ("knob00" in setting),
        accident=accident,
    )


def _storm(rng: np.random.Generator) -> Cluster:
    """A knob helps; from the middle of the budget on trials scatter three to five times as much."""
    helps = float(rng.uniform(0.15, 0.25))
    return Cluster(
        knobs=_names(10),
        scatter=float(rng.uniform(0.01, 0.03)),
        own=0.005,
        effect=lambda setting, *_: math.log1p(-helps) * ("knob00" in setting),
        storm=(0.25, float(rng.uniform(3, 5))),
        budget_s=600.0,
    )


def _stormy(seed: Sequence[int], times: int) -> Count:
    """Count the confirmations whose interval holds the truth."""
    rng = np.random.default_rng(seed)
    hits = of = 0
    for _ in range(times):
        cluster = _storm(rng)
        found = run(cluster, int(rng.integers(2**31))).tuning
        ratio = found.confirmation.ratio if found.confirmation is not None else None
        if ratio is None or ratio.low is None or ratio.high is None or list(found.kept) != ["knob00"]:
            continue
        truth = math.exp(
            cluster.effect(
                found.kept, {}, objective.named("latency", _operation, lambda _: _operation()).metrics[0]
            )
        )
        hits += ratio.low <= truth <= ratio.high
        of += 1
    return Count(hits=hits, of=of)


def _delayed(rng: np.random.Generator) -> Cluster:
    """A knob helps from the trial after that in which it was set."""
    helps = float(rng.uniform(0.12, 0.25))
    return Cluster(
        knobs=_names(10),
        scatter=float(rng.uniform(0.02, 0.05)),
        own=0.005,
        effect=lambda _setting, before, _metric: math.log1p(-helps) * ("knob00" in before),
        budget_s=600.0,
    )


def _prompt(rng: np.random.Generator) -> Cluster:
    """Knobs help at once, or there are none; trials resemble those before them in nothing that is set."""
    helps = rng.uniform(0.05, 0.25, 2) * (rng.random() < 0.7)

    def effect(setting: Values, _before: Values, _metric: Metric) -> float:
        return sum(
            math.log1p(-float(one)) * (f"knob{index:02d}" in setting) for index, one in enumerate(helps)
        )

    return Cluster(knobs=_names(10), scatter=float(rng.uniform(0.02, 0.08)), own=0.005, effect=effect)


def _xor(rng: np.random.Generator) -> Cluster:
    """Either of two knobs helps alone; both together do not."""
    helps = math.log1p(-float(rng.uniform(0.12, 0.25)))

    def effect(setting: Values, *_: object) -> float:
        return helps * (("knob00" in setting) != ("knob01" in setting))

    return Cluster(
        knobs=_names(10), scatter=float(rng.uniform(0.02, 0.05)), own=0.005, effect=effect, budget_s=600.0
    )


def _one_of_two(done: Run) -> bool:
    return ("knob00" in done.tuning.kept) != ("knob01" in done.tuning.kept)


def _warned(done: Run) -> bool:
    return any("previous trial" in note for note in done.tuning.notes)


WORLDS = (
    World(
        item="B1",
        name="tune-guard-set",
        says="searches that keep a knob which harms large messages, no matter what it gives small ones",
        at_most=0.05,
        times=60,
        run=_searches(lambda rng: _small_for_large(rng, healer=False), _keeps("knob00", "knob01")),
    ),
    World(
        item="B1",
        name="tune-guard-healed",
        says="the same where another knob heals what it harms",
        at_most=0.05,
        times=60,
        run=_searches(lambda rng: _small_for_large(rng, healer=True), _keeps("knob00", "knob01")),
    ),
    World(
        item="B1",
        name="tune-guard-largest",
        says="searches that keep a knob which makes the largest size (256 KiB) 15 to 25 % slower",
        at_most=0.05,
        times=40,
        run=_searches(_largest, _keeps("knob00")),
    ),
    World(
        item="B2",
        name="tune-reference-moved",
        says="searches that keep a useless knob which slows the reference by 4 to 6 %",
        at_most=0.05,
        times=60,
        run=_searches(_deceived, _keeps("knob00")),
    ),
    World(
        item="B2",
        name="tune-three-percent",
        says="searches that find an effect of 3 % where trials scatter by 4 % and a reference says why",
        at_least=0.85,
        times=60,
        run=_searches(_modest(0.03, (0.04, 0.04)), _keeps("knob00")),
    ),
    World(
        item="B2",
        name="tune-six-percent-loud",
        says="the same of an effect of 6 % where they scatter by 11 %: the reference has to be believed",
        at_least=0.85,
        times=60,
        run=_searches(_modest(0.06, (0.11, 0.11)), _keeps("knob00")),
    ),
    World(
        item="B3",
        name="tune-bad-placement",
        says="searches that keep a knob with which one trial in six goes so badly that it harms on average",
        at_most=0.05,
        times=60,
        run=_searches(_bad_placement, _keeps("knob00")),
    ),
    World(
        item="B3",
        name="tune-storm",
        says="confirmations in a storm whose interval holds the true effect",
        at_least=0.90,
        times=80,
        run=_stormy,
    ),
    World(
        item="B4",
        name="tune-delayed-told",
        says="searches that say that the setting of the previous trial matters, where it does",
        at_least=0.95,
        times=40,
        run=_searches(_delayed, _warned),
    ),
    World(
        item="B4",
        name="tune-prompt-told",
        says="the same where it does not",
        at_most=0.05,
        times=80,
        run=_searches(_prompt, _warned),
    ),
    World(
        item="B4",
        name="tune-delayed-found",
        says="searches that find a knob whose effect comes a trial late",
        at_least=0.80,
        times=30,
        run=_searches(_delayed, _keeps("knob00")),
    ),
    World(
        item="B5",
        name="tune-xor",
        says="searches that keep one of two knobs that help alone and not together",
        at_least=0.70,
        times=30,
        run=_searches(_xor, _one_of_two),
    ),
)

"""A whole made-up tuning run: a seeded cluster with good, useless, harmful and failing settings, searched honestly."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from scipy import stats

from tests.unit.make_records import operation
from wulf.base import catalogue
from wulf.base.records import (
    SCHEMA_VERSION,
    Candidate,
    Control,
    Effect,
    Estimate,
    Metric,
    Part,
    PathStep,
    Phase,
    ProbeFigure,
    Trial,
    TuneManifest,
    TunePlan,
    Tuning,
    Values,
    Verdict,
    Workload,
    command_operation,
)
from wulf.base.store.tuning import TuningWriter
from wulf.node.trials.experiment.objective import metric_name
from wulf.tools.tune.page import ChangeRow, TuningReport

START = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
BLOCKS = 8
HOSTILE = "\x1b[31mred\x1b[0m </script><img src=x onerror=alert(2)> {{7*7}}"


def _metric(
    op: str, size: int, pattern: str, *, weight: float = 0.0, guard: bool = False, rate: bool = False
) -> Metric:
    unit, better = ("B/s", "higher") if rate else ("s", "lower")
    figure = ProbeFigure(op=op, size_bytes=size)
    return Metric(
        name=metric_name(figure),
        pattern=pattern,
        unit=unit,
        better=better,
        weight=weight,
        guard=guard,
        figure=figure,
    )


#: Metric → value under the original settings.
METRICS = {
    _metric("mpi_pingpong", 1, "ping-pong", weight=2.0): 47.2e-6,
    _metric("mpi_pingpong", 64, "ping-pong", weight=2.0): 47.9e-6,
    _metric("mpi_pingpong", 1024, "ping-pong", weight=1.0): 61.5e-6,
    _metric("mpi_pingpong", 8192, "ping-pong", weight=1.0): 131e-6,
    _metric("mpi_bcast", 1024, "broadcast", guard=True): 118e-6,
    _metric("mpi_stream", 1 << 20, "stream", guard=True, rate=True): 112.4e6,
}
RISKS = {
    "nic.rx_usecs": "more interrupts: one core may be busy with them",
    "cpu.cstates_pmqos": "more power and heat while idle",
    "nic.mtu": "a switch port with a smaller MTU cuts the node off",
    "net.conntrack": "the cluster interface is no longer filtered",
}
CANDIDATES = [
    Candidate(knob="nic.rx_usecs", original="3", values=["0", "50"], numeric=True, effect=0.3),
    Candidate(knob="cpu.cstates_pmqos", original="unset", values=["0"], effect=0.2),
    Candidate(knob="sysctl.net.core.busy_read", original="0", values=["50"], effect=0.1),
    Candidate(knob="net.conntrack", original="tracked", values=["exempt"], effect=0.1),
    Candidate(knob="nic.gro", original="on", values=["off"], effect=0.05),
    Candidate(knob="svc.irqbalance", original="active", values=["inactive"], effect=0.02),
    Candidate(knob="sysctl.net.ipv4.tcp_low_latency", original="0", values=["1"], effect=0.01),
    Candidate(knob="nic.mtu", original="1500", values=["9000"], effect=0.01),
]
TITLES = {
    "nic.rx_usecs": "Receive interrupt moderation",
    "cpu.cstates_pmqos": "Deep sleep states of the processor",
    "net.conntrack": "Connection tracking on the cluster interface",
}
STORED = {
    "nic.rx_usecs": "/etc/systemd/network/10-wulf-host0.link",
    "net.conntrack": "/etc/nftables.d/wulf.nft",
}


def _latency(setting: Values) -> float:
    factor = {"0": 0.70, "50": 1.42}.get(setting.get("nic.rx_usecs", ""), 1.0)
    factor *= 0.83 if "cpu.cstates_pmqos" in setting else 1.0
    exempt = "net.conntrack" in setting
    # Effects do not add up: the exemption gains more on a core that is awake, and polling then gains nothing.
    factor *= (0.84 if "cpu.cstates_pmqos" in setting else 0.93) if exempt else 1.0
    factor *= 0.90 if "sysctl.net.core.busy_read" in setting and not exempt else 1.0
    factor *= 0.955 if "nic.gro" in setting else 1.0
    return factor


def simulated(metric: Metric, setting: Values) -> float:
    """Cost of a metric under a setting, relative to the original settings."""
    if metric.pattern == "stream":
        return 1.27 if "nic.gro" in setting else 1.0
    return _latency(setting) ** (0.6 if metric.pattern == "broadcast" else 1.0)


@dataclass
class Cluster:
    """Makes trials in time order, with a slow drift that blocks take out."""

    metrics: dict[Metric, float]
    cost: Callable[[Metric, Values], float] = simulated
    noise: float = 0.012
    failing: tuple[str, ...] = ("nic.mtu",)
    trials: list[Trial] = field(default_factory=list)
    random: random.Random = field(default_factory=lambda: random.Random(20261121))
    now: datetime = START

    def block(self, phase: Phase, number: int, block: int, settings: list[Values]) -> list[Trial]:
        order = list(range(len(settings)))
        self.random.shuffle(order)
        level = self.random.gauss(0, self.noise / 2)
        made = {at: self._trial(phase, number, block, settings[at], level) for at in order}
        return [made[at] for at in range(len(settings))]

    def _trial(self, phase: Phase, number: int, block: int, setting: Values, level: float) -> Trial:
        failed = any(knob in setting for knob in self.failing)
        values: dict[str, float] = {}
        whole = self.random.gauss(level, self.noise)
        for metric, value in self.metrics.items():
            cost = self.cost(metric, setting) * math.exp(whole + self.random.gauss(0, self.noise / 3))
            values[metric.name] = value * cost if metric.better == "lower" else value / cost
        duration = self.random.uniform(10, 13)
        trial = Trial(
            index=len(self.trials),
            phase=phase,
            round=number,
            block=block,
            setting=setting,
            started_at=self.now.isoformat().replace("+00:00", "Z"),
            duration_s=duration,
            status="failed" if failed else "ok",
            error="node07 did not answer within 5 s" if failed else None,
            values={} if failed else values,
            contamination=["node03: the hypervisor took 1.1% of the CPU time"]
            if len(self.trials) == 9
            else [],
        )
        self.trials.append(trial)
        self.now += timedelta(seconds=duration + 3)
        return trial


def _objective(plan: TunePlan, base: Trial, tried: Trial) -> float:
    weighted = [(m.weight, _log_ratio(m, base, tried)) for m in plan.metrics if m.weight]
    return sum(weight * ratio for weight, ratio in weighted) / sum(weight for weight, _ in weighted)


def _log_ratio(metric: Metric, base: Trial, tried: Trial) -> float:
    ratio = math.log(tried.values[metric.name] / base.values[metric.name])
    return ratio if metric.better == "lower" else -ratio


def _estimate(logs: list[float]) -> Estimate:
    middle, n = statistics.fmean(logs), len(logs)
    half = float(stats.t.ppf(0.975, n - 1)) * statistics.stdev(logs) / math.sqrt(n)
    low, value, high = (math.exp(middle + sign * half) for sign in (-1, 0, 1))
    return Estimate(
        value=value, low=low, high=high, confidence=0.95, unit="ratio", n=n, method="paired t of logarithms"
    )


def _verdict(ratio: Estimate, margin: float) -> Verdict:
    assert ratio.low is not None and ratio.high is not None
    if ratio.high < 1 and ratio.value < 1 - margin:
        return "better"
    if ratio.low > 1 and ratio.value > 1 + margin:
        return "worse"
    within = ratio.low > 1 / (1 + 2 * margin) and ratio.high < 1 + 2 * margin
    return "no difference" if within else "no decision"


@dataclass
class Search:
    """Screening, forward selection, backward elimination, confirmation; stops where it is told to."""

    plan: TunePlan
    cluster: Cluster
    effects: list[Effect] = field(default_factory=list)
    path: list[PathStep] = field(default_factory=list)
    kept: Values = field(default_factory=dict)
    confirmation: Effect | None = None

    def control(self) -> Control:
        blocks = [self.cluster.block("control", 0, block, [{}, {}]) for block in range(12)]
        logs = [_objective(self.plan, first, second) for first, second in blocks]
        spread = 1.4826 * statistics.median(abs(log) for log in logs) / math.sqrt(2)
        return Control(
            blocks=12,
            trials=24,
            ratio=_estimate(logs),
            spread=spread,
            smallest_effect=2.8 * spread * math.sqrt(2 / BLOCKS),
            effect_blocks=BLOCKS,
            drifting=False,
        )

    def compare(
        self, phase: Phase, number: int, change: tuple[str, str], base: Values, tried: Values
    ) -> Effect:
        blocks = [self.cluster.block(phase, number, block, [base, tried]) for block in range(BLOCKS)]
        pairs = [(b, t) for b, t in blocks if t.status == "ok" and b.status == "ok"]
        if not pairs:
            return self._failed(phase, number, change, base, tried)
        logs = [_objective(self.plan, b, t) for b, t in pairs]
        metrics = {m.name: _estimate([_log_ratio(m, b, t) for b, t in pairs]) for m in self.plan.metrics}
        verdicts = {name: _verdict(estimate, self.plan.margin) for name, estimate in metrics.items()}
        ratio = _estimate(logs)
        p_value = float(stats.ttest_1samp(logs, 0).pvalue)
        harmed = [m.name for m in self.plan.metrics if m.guard and verdicts[m.name] == "worse"]
        return Effect(
            phase=phase,
            round=number,
            knob=change[0],
            value=change[1],
            base=base,
            tried=tried,
            ratio=ratio,
            p_value=p_value,
            p_adjusted=min(1.0, 3 * p_value),
            verdict=_verdict(ratio, self.plan.margin),
            blocks=len(pairs),
            trials=len(pairs),
            metrics=metrics,
            patterns=self._patterns(verdicts),
            harmed=harmed,
            note=f"harms {', '.join(harmed)}" if harmed else "",
        )

    def _patterns(self, verdicts: dict[str, Verdict]) -> dict[str, Verdict]:
        found: dict[str, set[Verdict]] = {}
        for metric in self.plan.metrics:
            found.setdefault(metric.pattern, set()).add(verdicts[metric.name])
        return {
            pattern: next(iter(seen))
            if len(seen) == 1
            else "mixed"
            if {"better", "worse"} <= seen
            else "better"
            if "better" in seen
            else "worse"
            if "worse" in seen
            else "no decision"
            for pattern, seen in found.items()
        }

    def _failed(
        self, phase: Phase, number: int, change: tuple[str, str], base: Values, tried: Values
    ) -> Effect:
        nothing = Estimate(value=1.0, low=None, high=None, confidence=0.95, unit="ratio", n=0, method="none")
        return Effect(
            phase=phase,
            round=number,
            knob=change[0],
            value=change[1],
            base=base,
            tried=tried,
            ratio=nothing,
            p_value=1.0,
            p_adjusted=1.0,
            verdict="no decision",
            blocks=0,
            trials=0,
            failed=BLOCKS,
            note="nothing could be measured: node07 did not answer within 5 s",
        )

    def screen(self) -> None:
        self.path.append(PathStep(phase="screening", round=0, action="start", setting={}))
        for candidate in self.plan.candidates:
            for value in candidate.values:
                change = (candidate.knob, value)
                self.effects.append(self.compare("screening", 0, change, {}, dict([change])))

    def forward(self) -> None:
        """The best is kept first; a setting is taken out of the race once it is not better any more."""
        hopeful = [e for e in self.effects if e.verdict == "better" and not e.harmed]
        done = 1.0
        for number, effect in enumerate(sorted(hopeful, key=lambda e: e.ratio.value)):
            change = (effect.knob, effect.value)
            found = self.compare(
                "forward", number, change, self.kept, {**self.kept, effect.knob: effect.value}
            )
            self.effects.append(found)
            if found.verdict != "better":
                continue
            self.kept = found.tried
            done *= found.ratio.value
            self._step("forward", number, "keep", change, self._chained(done, found.ratio))

    def backward(self) -> None:
        whole = self.path[-1].ratio
        for number, knob in enumerate(list(self.kept)):
            without = {name: value for name, value in self.kept.items() if name != knob}
            found = self.compare("backward", number, (knob, self.kept[knob]), self.kept, without)
            self.effects.append(found)
            if found.verdict == "no difference" and whole:
                change = (knob, self.kept[knob])
                self.kept = without
                self._step("backward", number, "drop", change, self._chained(whole.value, found.ratio))

    def confirm(self) -> None:
        if self.kept:
            self.confirmation = self.compare("confirmation", 0, ("", ""), {}, self.kept)
            self._step("confirmation", 0, "confirm", ("", ""), self.confirmation.ratio)

    def _chained(self, value: float, last: Estimate) -> Estimate:
        assert last.low is not None and last.high is not None
        wide = math.sqrt(len(self.path))
        half = math.log(last.high / last.low) / 2 * wide
        return Estimate(
            value=value,
            low=value * math.exp(-half),
            high=value * math.exp(half),
            confidence=0.95,
            unit="ratio",
            n=last.n,
            method="chained",
        )

    def _step(
        self,
        phase: Phase,
        number: int,
        action: Literal["keep", "drop", "confirm"],
        change: tuple[str, str],
        ratio: Estimate,
    ) -> None:
        reasons = {
            "keep": "best of what was left",
            "drop": "leaving it out costs nothing",
            "confirm": "fresh blocks against the original settings",
        }
        self.path.append(
            PathStep(
                phase=phase,
                round=number,
                action=action,
                knob=change[0],
                value=change[1],
                setting=dict(self.kept),
                ratio=ratio,
                reason=reasons[action],
            )
        )


def plan(
    objective: str = "latency", metrics: list[Metric] | None = None, candidates: list[Candidate] | None = None
) -> TunePlan:
    chosen = CANDIDATES if candidates is None else candidates
    return TunePlan(
        objective=objective,
        metrics=list(METRICS) if metrics is None else metrics,
        candidates=[
            Candidate(
                knob=c.knob,
                original=c.original,
                values=c.values,
                numeric=c.numeric,
                effect=c.effect,
                toggle_s=0.4,
                risk=c.risk or RISKS.get(c.knob, ""),
            )
            for c in chosen
        ],
        budget_s=7200,
        trial_s=12,
        margin=0.02,
        false_discovery=0.05,
        confidence=0.95,
        seed=20261121,
    )


def _changed(search: Search) -> list[ChangeRow]:
    original = {candidate.knob: candidate.original for candidate in search.plan.candidates}
    return [
        ChangeRow(
            knob=knob,
            title=TITLES.get(knob, knob),
            original=original[knob],
            value=value,
            nodes="node[01-16]",
            risk=RISKS.get(knob, ""),
            stored=STORED.get(knob, ""),
            undo=f"wulf rollback tune-1121 --only {knob}",
        )
        for knob, value in search.kept.items()
    ]


def _report(
    search: Search,
    control: Control | None,
    status: Literal["complete", "budget", "interrupted", "failed", "search"] = "complete",
    notes: tuple[str, ...] = (),
) -> TuningReport:
    tuning = Tuning(
        schema_version=SCHEMA_VERSION,
        run_id="tune-1121",
        status=status,
        control=control,
        effects=search.effects,
        path=search.path,
        kept=search.kept,
        confirmation=search.confirmation,
        trials_used=len(search.cluster.trials),
        trials_factorial=BLOCKS * math.prod(len(c.values) + 1 for c in search.plan.candidates),
        notes=list(notes),
    )
    return TuningReport(
        plan=search.plan,
        trials=search.cluster.trials,
        tuning=tuning,
        nodes="node[01-16]",
        undo="wulf rollback tune-1121" if search.kept else "",
        changed=_changed(search),
    )


def make() -> TuningReport:
    """Four kept, one of them dropped again, one that harms a guard, one that fails."""
    search = Search(plan(), Cluster(METRICS))
    control = search.control()
    search.screen()
    search.forward()
    search.backward()
    search.confirm()
    return _report(search, control, notes=("nic.rings was left out: the driver has no rings.",))


def stored(
    path: Path,
    *,
    cluster: str = "",
    nodes: Sequence[str] = ("n1", "n2"),
    status: Literal["complete", "interrupted"] = "complete",
    trials: int = 2,
) -> Path:
    """Write a tuning run that has results, of a control that could be measured and of a trial that could not.

    With one trial there is only the control, with none nothing was measured.
    """
    report = make()
    head = TuneManifest(
        schema_version=SCHEMA_VERSION,
        id=path.name,
        created_at="2026-11-21T08:00:00+00:00",
        updated_at="2026-11-21T08:00:00+00:00",
        status=status,
        wulf_version="0.1.0",
        command_line=["wulf", "tune"],
        plan=report.plan,
        workload=Workload(
            parts=[
                Part(op="mpi_pingpong", sizes_bytes=[1, 64], places=[("n1", "n2")]),
                Part(op="result", sizes_bytes=[0], places=[("n1",)], group=True),
            ],
            sweeps=5,
            visit_us=1000,
        ),
        profile="latency",
        cluster=cluster,
        nodes=list(nodes),
        records=[],
        operations=[operation(), command_operation("./solve", name="result", match="(.*)")],
        software={},
    )
    with TuningWriter.create(path, head) as writer:
        for index in range(trials):
            writer.append(
                Trial(
                    index=index,
                    phase="control",
                    round=0,
                    block=0,
                    setting={"nic.mtu": "9000"} if index else {},
                    started_at="2026-11-21T08:00:00+00:00",
                    duration_s=1.0,
                    status="failed" if index else "ok",
                    error="no" if index else None,
                    values={} if index else {"a": 1.0, "b": 2.0},
                )
            )
        if status == "complete":
            writer.conclude(report.tuning)
    return path


def many() -> TuningReport:
    """Many values with long names, and everything that is known to be risky about them."""
    own = {candidate.knob for candidate in CANDIDATES}
    knobs = [knob for knob in catalogue.knobs().values() if knob.values and knob.id not in own]
    more = [
        Candidate(
            knob=knob.id, original=knob.default or "unset", values=list(knob.values[:2]), risk=knob.risk
        )
        for knob in knobs[:24]
    ]
    search = Search(plan(candidates=[*CANDIDATES, *more]), Cluster(METRICS))
    control = search.control()
    search.screen()
    search.forward()
    search.backward()
    search.confirm()
    return _report(search, control)


def nothing() -> TuningReport:
    """Nothing helps."""
    useless = [c for c in CANDIDATES if c.knob in ("svc.irqbalance", "sysctl.net.ipv4.tcp_low_latency")]
    search = Search(plan(candidates=useless), Cluster(METRICS))
    control = search.control()
    search.screen()
    search.forward()
    return _report(search, control)


def interrupted() -> TuningReport:
    """Stopped after the forward selection: something is kept, nothing is confirmed."""
    search = Search(plan(), Cluster(METRICS))
    control = search.control()
    search.screen()
    search.forward()
    return _report(search, control, "interrupted", ("Interrupted by the user; the nodes were restored.",))


def failing() -> TuningReport:
    """Every setting that was tried made measuring impossible."""
    search = Search(plan(candidates=[c for c in CANDIDATES if c.knob == "nic.mtu"]), Cluster(METRICS))
    control = search.control()
    search.screen()
    return _report(search, control)


def application() -> TuningReport:
    """One metric with a unit of its own, of which more is better."""
    metric = Metric(name="HPL", pattern="application", unit="GFLOPS", better="higher", weight=1.0)
    chosen = [c for c in CANDIDATES if c.knob in ("nic.rx_usecs", "svc.irqbalance")]
    search = Search(
        plan("app: xhpl", [metric], chosen), Cluster({metric: 11.45}, lambda _, s: _latency(s) ** 0.4)
    )
    control = search.control()
    search.screen()
    search.forward()
    search.backward()
    search.confirm()
    return _report(search, control)


def empty() -> TuningReport:
    """Ended before anything was measured."""
    search = Search(plan(), Cluster(METRICS))
    return _report(search, None, "failed", ("No node answered.",))


def hostile() -> TuningReport:
    """Texts that came from somewhere and mean harm."""
    bad = [Candidate(knob="nic.rx_usecs", original=HOSTILE, values=["0"], numeric=True)]
    search = Search(plan(f"app: {HOSTILE}", candidates=bad), Cluster(METRICS))
    control = search.control()
    search.screen()
    search.forward()
    search.backward()
    search.confirm()
    made = _report(search, control, notes=(HOSTILE,))
    changed = [
        ChangeRow(
            knob="nic.rx_usecs",
            title=HOSTILE,
            original=HOSTILE,
            value="0",
            nodes=HOSTILE,
            risk=HOSTILE,
            stored=HOSTILE,
            undo=HOSTILE,
        )
    ]
    return TuningReport(
        plan=made.plan, trials=made.trials, tuning=made.tuning, nodes=HOSTILE, changed=changed
    )

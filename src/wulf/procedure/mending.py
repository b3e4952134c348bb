"""Set right what is certainly wrong: in one guarded step, measured before and after in turn, and kept or undone."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from scipy.stats import fisher_exact

from wulf import catalogue
from wulf.catalogue import Profile
from wulf.change import steps
from wulf.change.guard import Guards
from wulf.change.transaction import StepError
from wulf.cluster.inventory import ClusterConfig
from wulf.errors import UsageError
from wulf.experiment.power import estimate
from wulf.nodeset import fold
from wulf.ports import Transport
from wulf.procedure import change, look, site
from wulf.procedure.tuning.prepare import Say, goal, tools_for
from wulf.procedure.tuning.runner import TrialError, TrialRunner, open_runner
from wulf.procedure.tuning.session import CONFIRM_WITHIN_S, runner_for
from wulf.records import (
    Audit,
    ChangeOutcome,
    Finding,
    MendEffect,
    Mending,
    NodeRecord,
    Pair,
    Unmended,
    Verdict,
    Workload,
)
from wulf.stats.paired import paired_shift
from wulf.text import nearest

#: Times that it is measured before and after: the fewest whose p value can stand out among all figures.
BLOCKS = 9
#: Pairs of nodes that are measured at most.
MAX_PAIRS = 4
#: Significance of "worse", over all figures; and a change that does not matter.
SIGNIFICANCE = 0.05
MARGIN = 0.02


class MendRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be set right, and how."""

    config: ClusterConfig
    nodes: list[str]
    #: Ids of findings; none for all that can be mended.
    names: list[str]
    profile: Profile
    permissions: change.Permissions
    mpi: str | None
    seed: int
    #: Whether what it brings is measured; what makes something worse is then undone.
    measured: bool = True


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What is mended of an audit's findings."""

    findings: list[Finding]
    refused: list[Unmended]
    #: Node → what it is to have.
    wanted: dict[str, list[steps.KnobSetting]]


def choose(
    audit: Audit, records: Sequence[NodeRecord], names: Sequence[str], permissions: change.Permissions
) -> Choice:
    """Return which findings are mended, and by what.

    Raises
    ------
    UsageError
        A name is none of a finding that can be mended; says who does it instead.
    """
    _require_mendable(audit, names)
    known = {record.node: record for record in records}
    taken: list[Finding] = []
    refused: list[Unmended] = []
    wanted: dict[str, dict[str, steps.KnobSetting]] = {}
    for finding in audit.findings:
        if finding.remedy != "mend" or (names and finding.id not in names):
            continue
        try:
            settings = [steps.check(catalogue.knob(name), value) for name, value in finding.settings.items()]
            reason = _refusal(finding, settings, known, permissions, wanted)
        except UsageError as error:  # what most nodes have is no value that could be set
            reason = str(error)
        if reason:
            refused.append(Unmended(finding=finding, reason=reason))
            continue
        taken.append(finding)
        for node in finding.nodes:
            wanted.setdefault(node, {}).update({one.knob.id: one for one in settings})
    lists = {node: list(settings.values()) for node, settings in wanted.items()}
    return Choice(findings=taken, refused=refused, wanted=lists)


def _require_mendable(audit: Audit, names: Sequence[str]) -> None:
    # Of a rule that is broken in several ways, some nodes may be mendable.
    found = {one.id: one.remedy for one in sorted(audit.findings, key=lambda one: one.remedy == "mend")}
    known = {*catalogue.checks(), *catalogue.consistencies(), *catalogue.knobs()}
    for name in names:
        if name not in known:
            raise UsageError(f"there is no finding {name!r}{nearest(name, known)} ('wulf audit' names them)")
        if name not in found:
            continue  # all is well
        if found[name] == "try":
            raise UsageError(
                f"{name}: what is right depends on the cluster: 'wulf tune' measures what it is worth"
            )
        if found[name] == "person":
            raise UsageError(
                f"{name}: no setting that wulf can take back mends it: 'wulf audit' says what to do"
            )


def _refusal(
    finding: Finding,
    settings: Sequence[steps.KnobSetting],
    records: Mapping[str, NodeRecord],
    permissions: change.Permissions,
    wanted: Mapping[str, Mapping[str, steps.KnobSetting]],
) -> str:
    """Return why a finding is not mended; empty when it is."""
    reasons: dict[str, list[str]] = {}
    for node in finding.nodes:
        for one in settings:
            other = wanted.get(node, {}).get(one.knob.id)
            reason = steps.obstacle(
                one, records[node], take_over=permissions.take_over, relax=permissions.relax
            )
            if other is not None and other.value != one.value:
                reason = f"another finding wants {other} there"
            if reason:
                reasons.setdefault(reason, []).append(node)
    return "; ".join(f"{fold(nodes)}: {reason}" for reason, nodes in reasons.items())


def planned(
    request: MendRequest, audit: Audit, records: Sequence[NodeRecord]
) -> tuple[Choice, change.ChangePlan]:
    """Return what is mended, and the change that does it; raises as `choose`."""
    choice = choose(audit, records, request.names, request.permissions)
    plan = change.plan(records, request.config.interface, choice.wanted, request.permissions)
    return choice, plan


def mend(
    request: MendRequest, choice: Choice, plan: change.ChangePlan, records: Sequence[NodeRecord], say: Say
) -> Mending:
    """Make the change of `planned`, and say what that brought.

    Everything is put back where it makes a figure worse, or where nothing can be measured with it that could be
    without.

    Parameters
    ----------
    records
        Facts that the audit was made from.

    Raises
    ------
    KeyboardInterrupt
        With the nodes put back.
    """
    found = Mending(findings=choice.findings, refused=choice.refused)
    if not plan.plans:
        return found
    there = [record.node for record in records if record.reachable]
    with (
        site.connect(request.config, there, say) as (transport, now),
        change.guarded(request.config, transport) as guards,
    ):
        if request.measured:
            found = _measure(found, request, plan, guards, now, transport, say)
            if reason := spoiled(found):
                outcome = ChangeOutcome(change="", kept=False, reason=reason, nodes=[])
                return msgspec.structs.replace(found, outcome=outcome)
        say("setting right what is wrong")
        outcome = change.make(guards, request.config, plan, deadline_s=CONFIRM_WITHIN_S, watch=say)
    say("looking again")
    after = look.judge(look.look(request.config, there), request.profile)
    left = [finding for finding in after.findings if finding.remedy == "mend"]
    return msgspec.structs.replace(found, outcome=outcome, left=left)


def spoiled(found: Mending) -> str:
    """Return what became worse; empty where nothing is proven to be."""
    worse = [
        f"{effect.metric} ({effect.ratio.value:.2f} ×)"
        for effect in found.effects
        if effect.verdict == "worse"
    ]
    if worse:
        return f"worse with it: {', '.join(worse)}"
    counts = np.array([[n, found.blocks - n] for n in (found.failed_after, found.failed_before)])
    if found.blocks and fisher_exact(counts, alternative="greater").pvalue <= SIGNIFICANCE:
        return (
            f"{found.failed_after} of {found.blocks} measurements failed with it, {found.failed_before} without: "
            + "; ".join(found.failures)
        )
    return ""


def _measure(
    found: Mending,
    request: MendRequest,
    plan: change.ChangePlan,
    guards: Guards,
    records: list[NodeRecord],
    transport: Transport,
    say: Say,
) -> Mending:
    """Measure before and after in turn, in pairs of random order: what changes slowly falls out of a pair."""
    target = goal("latency", request.mpi, say)
    nodes = [record.node for record in records]
    pairs = pairs_with(list(plan.plans), nodes)
    if not pairs:
        return found  # with whom?
    workload = target.workload(nodes, pairs)
    tools = tools_for(target, request.mpi, say)
    ready = runner_for(request.config, transport, guards, records, tools, [], say)
    order = random.Random(request.seed)  # noqa: S311 - reproducible, not secret
    before: list[dict[str, float]] = []
    after: list[dict[str, float]] = []
    failures: dict[str, None] = {}
    with open_runner(ready.bench):
        begin = time.monotonic()
        for block in range(BLOCKS):
            left = (
                f", about {(time.monotonic() - begin) / block * (BLOCKS - block):.0f} s left" if block else ""
            )
            say(f"measuring with and without it: {block + 1} of {BLOCKS}{left}")
            arms = [False, True] if order.random() < 0.5 else [True, False]
            for mended in arms:
                values: dict[str, float] = {}
                try:
                    values = _trial(ready.bench, plan if mended else None, workload, request.seed + block)
                except (TrialError, StepError) as failure:
                    failures[str(failure)] = None
                    ready.bench.restore()
                (after if mended else before).append(values)
    return msgspec.structs.replace(
        found,
        pairs=pairs,
        blocks=BLOCKS,
        failed_before=sum(not values for values in before),
        failed_after=sum(not values for values in after),
        failures=list(failures),
        effects=list(effects(before, after)),
    )


def _trial(
    bench: TrialRunner, plan: change.ChangePlan | None, workload: Workload, seed: int
) -> dict[str, float]:
    """Return what was measured with the change, or without one."""
    if plan is None:
        bench.restore()
    else:
        bench.make(plan)
    return bench.measure(workload, seed).values


def effects(
    before: Sequence[Mapping[str, float]], after: Sequence[Mapping[str, float]]
) -> Iterator[MendEffect]:
    """Yield what became of every figure that has a value in some block before and after."""
    names = list(dict.fromkeys(name for values in (*before, *after) for name in values))
    for name in names:
        pairs = [
            (old[name], new[name])
            for old, new in zip(before, after, strict=True)
            if name in old and name in new
        ]
        if not pairs:
            continue
        differences = np.array([math.log(new / old) for old, new in pairs])
        found = paired_shift(differences)
        p_value = min(1.0, found.p_value * len(names))
        ratio = estimate(found.ratio)
        yield MendEffect(
            metric=name,
            ratio=ratio,
            p_value=p_value,
            verdict=_verdict(found.ratio.low, found.ratio.high, p_value),
        )


def _verdict(low: float | None, high: float | None, p_value: float) -> Verdict:
    if low is None or high is None:
        return "no decision"
    if low >= 1 - MARGIN and high <= 1 + MARGIN:
        return "no difference"
    if p_value <= SIGNIFICANCE and high < 1:
        return "better"
    if p_value <= SIGNIFICANCE and low > 1:
        return "worse"
    return "no decision"


def pairs_with(changed: Sequence[str], nodes: Sequence[str]) -> list[Pair]:
    """Return pairs in which every changed node is, with one that is not changed where there is one; of many some."""
    others = [node for node in nodes if node not in changed]
    found: list[Pair] = []
    for number, node in enumerate(changed):
        partners = others or [other for other in nodes if other != node]
        if partners:
            found.append((node, partners[number % len(partners)]))
    step = -(-len(found) // MAX_PAIRS) if found else 1
    return found[::step]

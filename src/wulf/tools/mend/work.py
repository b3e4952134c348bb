"""Set right what is certainly wrong: in one guarded step, measured before and after in turn, and kept or undone."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec
import numpy as np
import scipy

from wulf.base import catalogue
from wulf.base.contracts import Say, Transport
from wulf.base.errors import BuildError, ProbeError, TransportError, UsageError
from wulf.base.nodeset import fold
from wulf.base.profile import Profile
from wulf.base.records import (
    Audit,
    ChangeOutcome,
    Finding,
    MendEffect,
    Mending,
    NodeRecord,
    Pair,
    ProbeFigure,
    Unmended,
    Workload,
)
from wulf.base.text import count, nearest
from wulf.base.tool import Progress
from wulf.base.units import format_change
from wulf.node.change import apply, steps
from wulf.node.change.guard import Guards
from wulf.node.change.transaction import NotRestoredError, StepError
from wulf.node.change.trial import DEADLINE_S
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.fleet import change, look, preparation
from wulf.node.fleet.clusters import config_of
from wulf.node.fleet.new_run import new_seed
from wulf.node.trials.alternation import in_turn
from wulf.node.trials.bench import TrialError, TrialRunner, open_runner
from wulf.node.trials.experiment import objective
from wulf.node.trials.experiment.power import estimate
from wulf.node.trials.loop import WARM_UP
from wulf.node.trials.open_bench import CONFIRM_WITHIN_S, runner_for
from wulf.node.trials.prepare import goal, tools_for
from wulf.stats.core.paired import paired_shift, paired_verdict
from wulf.tools.mend.request import MendRequest

#: Times that it is measured before and after: the fewest whose p value can stand out among all figures.
BLOCKS = 9
#: Where some fail it is done again, up to so often in all; and so often at least where one way never works (the
#: fewest whose p value can stand out).
MAX_BLOCKS = 2 * BLOCKS
FEW = 4
#: Pairs of nodes that are measured at most.
MAX_PAIRS = 4
#: Significance of "worse", over all figures; and a change that does not matter: a remedy that is certain is not undone
#: for what may be less.
SIGNIFICANCE = 0.05
_WITHOUT = "'wulf mend --no-measure' goes without measuring"
MARGIN = 0.02


class MendTask(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be set right, where and how."""

    config: ClusterConfig
    #: What is to be set right; the audit may be of more.
    nodes: list[str]
    #: Ids of findings; none for all that can be mended.
    names: list[str]
    profile: Profile
    permissions: change.Permissions
    mpi: str | None
    seed: int
    #: Whether what it brings is measured; what makes something worse is then undone.
    measured: bool = True
    #: What is measured; None for the usual sizes of a ping-pong.
    goal: objective.Objective | None = None


def task_of(request: MendRequest) -> MendTask:
    """Return what a request comes to on the cluster that it names."""
    config = config_of(request.cluster)
    return MendTask(
        config=config,
        nodes=config.select(request.nodes),
        names=list(request.findings),
        profile=request.profile,
        permissions=change.Permissions(take_over=request.take_over, relax=request.relax),
        mpi=request.mpi or config.mpi.compiler,
        seed=new_seed(request.seed),
        measured=request.measured,
    )


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What is mended of an audit's findings."""

    #: What they were chosen from.
    audit: Audit
    findings: list[Finding]
    refused: list[Unmended]
    #: Node → what it is to have.
    wanted: dict[str, list[steps.KnobSetting]]
    #: What was named and is found nowhere.
    well: list[str]


class MendingInterrupted(KeyboardInterrupt):
    """Ctrl-C after nodes were changed, with what became of them."""

    def __init__(self, found: Mending) -> None:
        super().__init__()
        self.found = found


def narrowed(audit: Audit, nodes: Sequence[str]) -> Audit:
    """Return what an audit of more nodes says of these."""
    chosen = set(nodes)
    findings = [
        msgspec.structs.replace(finding, nodes=there)
        for finding in audit.findings
        if (there := [node for node in finding.nodes if node in chosen])
    ]
    unreachable = {node: why for node, why in audit.unreachable.items() if node in chosen}
    return msgspec.structs.replace(audit, findings=findings, unreachable=unreachable)


def choose(
    audit: Audit, records: Sequence[NodeRecord], names: Sequence[str], permissions: change.Permissions
) -> Choice:
    """Return which findings are mended, and by what.

    What is not allowed on a node is refused there; the finding's other nodes and settings are mended.

    Raises
    ------
    UsageError
        A name is none of a finding that can be mended; says who does it instead.
    """
    well = _require_mendable(audit, names)
    known = {record.node: record for record in records}
    taken: list[Finding] = []
    refused: list[Unmended] = []
    wanted: dict[str, dict[str, steps.KnobSetting]] = {}
    for finding in audit.findings:
        if finding.remedy != "mend":
            continue
        if names and finding.id not in names:
            refused.append(Unmended(finding=finding, reason="it was not named"))
            continue
        allowed: dict[tuple[str, ...], list[str]] = {}
        reasons: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for node in finding.nodes:
            settings, refusals = _allowed(finding, known[node], permissions, wanted.get(node, {}))
            if settings:
                allowed.setdefault(tuple(settings), []).append(node)
                wanted.setdefault(node, {}).update(settings)
            for reason, knobs in refusals.items():
                reasons.setdefault((reason, tuple(knobs)), []).append(node)
        taken += [_part(finding, nodes, knobs) for knobs, nodes in allowed.items()]
        refused += [
            Unmended(finding=_part(finding, nodes, knobs), reason=f"{fold(nodes)}: {reason}")
            for (reason, knobs), nodes in reasons.items()
        ]
    lists = {node: list(settings.values()) for node, settings in wanted.items()}
    return Choice(audit=audit, findings=taken, refused=refused, wanted=lists, well=well)


def _require_mendable(audit: Audit, names: Sequence[str]) -> list[str]:
    """Return the names of what is well."""
    # Of a rule that is broken in several ways, some nodes may be mendable.
    found = {one.id: one for one in sorted(audit.findings, key=lambda one: one.remedy == "mend")}
    by_knob = {knob: one.id for one in audit.findings for knob in one.settings}
    known = {*catalogue.checks(), *catalogue.consistencies(), *catalogue.knobs()}
    well = []
    for name in names:
        if name not in known:
            raise UsageError(f"there is no finding {name!r}{nearest(name, known)} ('wulf audit' names them)")
        who = found[name].remedy if name in found else ""
        if who != "mend" and name in by_knob:
            raise UsageError(f"{name} is a setting: name the finding that it mends, {by_knob[name]}")
        if not who:
            well.append(name)
        if who == "try":
            raise UsageError(f"{name}: {found[name].reason}; 'wulf tune' measures what settings are worth")
        if who == "person":
            raise UsageError(f"{name}: {found[name].reason}; 'wulf audit' says what to do")
    return well


def _allowed(
    finding: Finding,
    record: NodeRecord,
    permissions: change.Permissions,
    others: Mapping[str, steps.KnobSetting],
) -> tuple[dict[str, steps.KnobSetting], dict[str, list[str]]]:
    """Return what may be set on a node (by knob), and the knobs that may not (by reason)."""
    settings: dict[str, steps.KnobSetting] = {}
    refused: dict[str, list[str]] = {}
    for name, value in finding.settings.items():
        try:
            wanted = steps.check(catalogue.knob(name), value)
        except UsageError as error:  # what most nodes have is no value that could be set
            refused.setdefault(str(error), []).append(name)
            continue
        reason = steps.obstacle(wanted, record, take_over=permissions.take_over, relax=permissions.relax)
        other = others.get(name)
        if other is not None and other.value != value:
            reason = f"another finding wants {other} there"
        if reason:
            refused.setdefault(reason, []).append(name)
        else:
            settings[name] = wanted
    return settings, refused


def _part(finding: Finding, nodes: list[str], knobs: Sequence[str]) -> Finding:
    """Return a finding as it is about these nodes and these of its settings."""
    settings = {knob: finding.settings[knob] for knob in knobs}
    return msgspec.structs.replace(finding, nodes=nodes, settings=settings)


def planned(task: MendTask, audit: Audit, records: Sequence[NodeRecord]) -> tuple[Choice, change.ChangePlan]:
    """Return what is mended, and the change that does it; raises as `choose`."""
    choice = choose(narrowed(audit, task.nodes), records, task.names, task.permissions)
    plan = change.plan(records, task.config.interface, choice.wanted, task.permissions)
    return choice, plan


def mend(
    task: MendTask, choice: Choice, plan: change.ChangePlan, records: Sequence[NodeRecord], say: Say
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
    MendingInterrupted
        The change was begun; says what became of it.
    """
    found = _unmended(task, choice)
    if not plan.plans:
        return found
    change.require_right(task.config, list(plan.plans))
    there = [record.node for record in records if record.reachable and not record.error]
    pairs = pairs_with(list(plan.plans), there, [set(nodes) for nodes in plan.rows.values()])
    if task.measured and not pairs:
        found = msgspec.structs.replace(found, unmeasured="there is no other node to measure with")
    taking_part = [node for node in there if node in plan.plans or any(node in pair for pair in pairs)]
    with (
        preparation.connect(task.config, taking_part, say) as (transport, now),
        change.guarded(task.config, transport) as guards,
    ):
        if not found.unmeasured:
            found = _measure(found, task, plan, pairs, guards, now, transport, say)
            if reason := spoiled(found):
                outcome = ChangeOutcome(change="", kept=False, reason=reason, nodes=[])
                return msgspec.structs.replace(found, outcome=outcome)
        say("setting right what is wrong")
        try:
            outcome = change.make(guards, task.config, plan, deadline_s=CONFIRM_WITHIN_S, watch=say)
        except apply.Interrupted as stop:
            raise MendingInterrupted(msgspec.structs.replace(found, outcome=stop.outcome)) from stop
    found = msgspec.structs.replace(found, outcome=outcome)
    return _look_again(found, task, [record.node for record in records], say)


def run(request: MendRequest, progress: Progress) -> Mending:
    """Look at the nodes, and set right what a request asks for; see `mend`."""
    task = task_of(request)
    # What most nodes have only all of them tell.
    records = look.look(task.config, list(task.config.nodes))
    choice, plan = planned(task, look.judge(records, task.profile), records)
    return mend(task, choice, plan, records, progress)


def _unmended(task: MendTask, choice: Choice) -> Mending:
    """Return what is said before anything was done."""
    return Mending(
        findings=choice.findings,
        refused=choice.refused,
        left=[finding for finding in choice.audit.findings if finding.remedy == "mend"],
        others=[finding for finding in choice.audit.findings if finding.remedy != "mend"],
        unreachable=choice.audit.unreachable,
        unmeasured="" if task.measured else "--no-measure",
    )


def _look_again(found: Mending, task: MendTask, nodes: Sequence[str], say: Say) -> Mending:
    """Say what is left; the change stands, whatever becomes of the look."""
    try:
        say("looking again")
        after = narrowed(look.judge(look.look(task.config, nodes), task.profile), task.nodes)
    except TransportError as error:
        return msgspec.structs.replace(found, unseen=str(error))
    except KeyboardInterrupt as stop:
        raise MendingInterrupted(msgspec.structs.replace(found, unseen="interrupted")) from stop
    return msgspec.structs.replace(
        found,
        left=[finding for finding in after.findings if finding.remedy == "mend"],
        others=[finding for finding in after.findings if finding.remedy != "mend"],
        unreachable=after.unreachable,
    )


def spoiled(found: Mending) -> str:
    """Return why it must not be kept: worse, or not to be seen whether it is; empty where nothing speaks against it."""
    worse = [
        f"{effect.metric} ({format_change(effect.ratio)})"
        for effect in found.effects
        if effect.verdict == "worse" and (effect.ratio.low or 0.0) > 1 + MARGIN
    ]
    if worse:
        alone = "; 'wulf mend FINDING' mends one of them alone" if len(found.findings) > 1 else ""
        return f"worse with it by more than {MARGIN:.0%}: {', '.join(worse)}{alone}"
    if not found.blocks:
        return ""
    of = count(found.blocks, "measurement")
    failed = f"{found.failed_after} of {of} failed with it, {found.failed_before} without"
    why = "; ".join(found.failures)
    if found.failed_before == found.failed_after == found.blocks:
        return f"nothing can be measured: {failed}: {why}; {_WITHOUT}"
    if found.failed_after == found.blocks or _more(found.failed_after, found.failed_before, found.blocks):
        return f"{failed}: {why}"
    whole = max((effect.ratio.n for effect in found.effects), default=0)
    if whole < BLOCKS and not _more(found.failed_before, found.failed_after, found.blocks):
        return f"too few to see whether it makes anything worse: {failed}: {why}; {_WITHOUT}"
    return ""


def _more(many: int, few: int, of: int) -> bool:
    """Whether more fail in one way than in the other, for sure (Fisher's exact test, one-sided)."""
    counts = np.array([[many, of - many], [few, of - few]])
    return bool(scipy.stats.fisher_exact(counts, alternative="greater").pvalue <= SIGNIFICANCE)


def _measure(
    found: Mending,
    task: MendTask,
    plan: change.ChangePlan,
    pairs: list[Pair],
    guards: Guards,
    records: list[NodeRecord],
    transport: Transport,
    say: Say,
) -> Mending:
    """Measure before and after in turn, in pairs of random order: what changes slowly falls out of a pair."""
    target = task.goal or goal("latency", task.mpi, say)
    workload = target.workload([record.node for record in records], pairs)
    paired = {node for pair in pairs for node in pair}
    try:
        tools = tools_for(target, task.mpi, say)
        ready = runner_for(task.config, transport, guards, records, tools, [], say, among=paired)
    except (BuildError, ProbeError, TransportError) as error:
        raise ProbeError(
            f"{error}\nnothing was changed: it cannot be measured what mending brings ({_WITHOUT})"
        ) from error
    with open_runner(ready.bench):
        before, after, failures = _blocks(ready.bench, plan, workload, target.figures, task.seed, say)
    return msgspec.structs.replace(
        found,
        pairs=pairs,
        blocks=len(before),
        failed_before=sum(not values for values in before),
        failed_after=sum(not values for values in after),
        failures=failures,
        effects=list(effects(before, after)),
    )


def _blocks(
    bench: TrialRunner,
    plan: change.ChangePlan,
    workload: Workload,
    figures: Sequence[ProbeFigure],
    seed: int,
    say: Say,
) -> tuple[list[dict[str, float]], list[dict[str, float]], list[str]]:
    """Return what was measured without and with the change, nothing where that failed, and why it failed."""
    before: list[dict[str, float]] = []
    after: list[dict[str, float]] = []
    failures: dict[str, None] = {}

    def measure(mended: int, block: int) -> dict[str, float]:
        try:
            return _trial(bench, plan if mended else None, workload, figures, seed + block)
        except (TrialError, StepError) as failure:
            failures[str(failure)] = None
            say("a measurement failed; putting the nodes back, and waiting for those that do not answer")
            _restore(bench)
            return {}

    def announce(_: int, passed_s: float) -> None:
        say(f"measuring with and without it: {_standing(before, after, passed_s)}")

    say("measuring what is not counted: caches and connections settle")
    for number in range(WARM_UP):
        measure(0, -1 - number)
    failures.clear()
    turns = in_turn(measure, seed, announce)
    while not enough(before, after):
        without, with_it = next(turns)
        before.append(without)
        after.append(with_it)
    return before, after, list(failures)


def _restore(bench: TrialRunner) -> None:
    try:
        bench.restore()
    except NotRestoredError as stuck:
        raise NotRestoredError(
            f"{stuck}\nnothing is kept; nodes that are up undo it within {DEADLINE_S} s: 'wulf settings status' "
            "shows them, 'wulf rollback' undoes the rest"
        ) from None


def enough(before: Sequence[Mapping[str, float]], after: Sequence[Mapping[str, float]]) -> bool:
    """Whether it was measured often enough with and without it.

    That is until `BLOCKS` pairs are whole, or so many were tried that they will not be; and no longer than `FEW` where
    one of the two never works, or neither does any more: nothing is there to be compared.
    """
    if len(before) >= FEW and not (any(before) and any(after) and any([*before[-FEW:], *after[-FEW:]])):
        return True
    return _whole(before, after) >= BLOCKS or len(before) >= MAX_BLOCKS


def _whole(before: Sequence[Mapping[str, float]], after: Sequence[Mapping[str, float]]) -> int:
    return sum(bool(old and new) for old, new in zip(before, after, strict=True))


def _standing(
    before: Sequence[Mapping[str, float]], after: Sequence[Mapping[str, float]], spent_s: float
) -> str:
    """Say how far it is, and how long it takes yet."""
    done = len(before)
    lost = done - _whole(before, after)
    total = min(BLOCKS + lost, MAX_BLOCKS)
    again = f" ({lost} again, as something failed)" if lost else ""
    left = f", about {spent_s / done * (total - done):.0f} s left" if done else ""
    return f"{done + 1} of {total}{again}{left}"


def _trial(
    bench: TrialRunner,
    plan: change.ChangePlan | None,
    workload: Workload,
    figures: Sequence[ProbeFigure],
    seed: int,
) -> dict[str, float]:
    """Return what was measured with the change, or without one."""
    if plan is None:
        bench.restore()
    else:
        bench.make(plan)
    return bench.measure(workload, figures, seed).values


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
        yield MendEffect(
            metric=name,
            ratio=estimate(found.ratio),
            p_value=min(1.0, found.p_value * len(names)),
            verdict=paired_verdict(found, len(names), MARGIN, SIGNIFICANCE),
        )


def pairs_with(
    changed: Sequence[str], nodes: Sequence[str], alike: Sequence[Collection[str]] = ()
) -> list[Pair]:
    """Return pairs in which changed nodes are, with others that are not changed where there are such.

    Parameters
    ----------
    alike
        Nodes with a change in common, for each change: two of them make a pair, too. None for one of all.
    """
    pairs = objective.pairs_for(nodes, alike or [set(changed)], MAX_PAIRS)
    return [pair for pair in pairs if not set(pair).isdisjoint(changed)]

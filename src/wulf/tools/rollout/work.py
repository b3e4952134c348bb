"""Roll a change out: look, tell the nodes apart, and go on in steps until all have it, or something halts it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from wulf.base import catalogue
from wulf.base.errors import (
    EXIT_ERROR,
    EXIT_FINDINGS,
    SchedulerError,
    TransportError,
    UsageError,
)
from wulf.base.native import build
from wulf.base.nodeset import fold, reasons_text
from wulf.base.records import SCHEMA_VERSION, NodeRecord, Values
from wulf.base.store import write_atomically
from wulf.base.store.kinds import find_run
from wulf.base.store.tuning import HEAD as TUNED
from wulf.base.store.tuning import TuningRun, load_tuning
from wulf.base.text import count, printable
from wulf.base.tool import Progress
from wulf.node.change import steps
from wulf.node.change.guard import Guards
from wulf.node.cluster import inventory, slurm_nodes
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.fleet import change, exclusive_nodes, preparation
from wulf.node.fleet.clusters import config_of
from wulf.node.fleet.new_run import head, new_seed, place_of
from wulf.node.trials.bench import job_line, on_nodes
from wulf.node.trials.open_bench import CONFIRM_WITHIN_S
from wulf.page.page import html
from wulf.tools.rollout import page
from wulf.tools.rollout.evidence import Match, changing
from wulf.tools.rollout.hardware_kinds import hardware, in_common, made_of
from wulf.tools.rollout.measuring import LOSSY, Where, without_name
from wulf.tools.rollout.record import (
    Hardware,
    RolledNode,
    Rollout,
    RolloutManifest,
    RolloutPlan,
    RolloutStatus,
    RolloutStep,
)
from wulf.tools.rollout.request import RolloutRequest
from wulf.tools.rollout.schedule import Course, still_known
from wulf.tools.rollout.site_check import SiteCheck, checks_s
from wulf.tools.rollout.stepping import Stepping
from wulf.tools.rollout.store import HEAD, PAGE, RolloutWriter, load_rollout

#: Chance that harm by the margin is kept, and that a harmless node is called harmed; share of
#: lost datagrams that is harm.
MISSED, FALSE_ALARM, LOSS = 0.01, 0.002, 0.002
#: States of Slurm's nodes that may be changed: nobody computes there, and in the first case they have to be held.
_IDLE, _DRAINED = "idle", "drain"
#: An allocation for a step lasts so long at most, and as long as its checks may take [s].
_STEP_S = 3600.0


def rollout(request: RolloutRequest, progress: Progress) -> Rollout:
    """Roll out what a request asks for.

    Raises
    ------
    UsageError
        There is nothing to roll out, or nothing that could be gone on with.
    KeyboardInterrupt
        The step was put back; --resume goes on.
    """
    if request.resume is not None:
        return _go_on(request.resume, request.runs, progress)
    return _start(request, progress)


def exit_code(found: Rollout) -> int:
    """Return the exit code: whether all nodes have the change, or it was halted."""
    if found.status == "halted":
        return EXIT_ERROR
    return 0 if all(one.state in ("kept", "had it") for one in found.nodes) else EXIT_FINDINGS


def plan_of(request: RolloutRequest, settings: Mapping[str, str], source: str, seed: int) -> RolloutPlan:
    """Return the rules of a roll-out."""
    return RolloutPlan(
        settings=dict(settings),
        source=source,
        canary=request.canary,
        growth=request.growth,
        margin=request.margin,
        tolerate=request.tolerate,
        rounds=request.rounds,
        missed=MISSED,
        false_alarm=FALSE_ALARM,
        loss=LOSS,
        check=request.check,
        check_within_s=request.check_within_s,
        other_hardware=request.other_hardware,
        take_over=request.take_over,
        relax=request.relax,
        seed=seed,
    )


def _start(request: RolloutRequest, say: Progress) -> Rollout:
    config = config_of(request.cluster)
    nodes = config.select(request.nodes)
    if config.transport == "local":
        raise UsageError("a roll-out takes nodes of their own: on this machine, 'wulf settings set' does it")
    settings, tuned = _settings(request, say)
    permissions = change.Permissions(take_over=request.take_over, relax=request.relax)
    mpi = request.mpi or config.mpi.compiler
    with _where(config, nodes, settings, mpi, say) as where:
        made = {made_of(record) for record in tuned.manifest.records} if tuned is not None else set()
        there = [record for record in where.records if record.reachable]
        kinds = hardware(there, made, others=request.other_hardware)
        settled = [*_silent(where.records), *_settled(there, where.wanted, kinds, permissions)]
        path = place_of(request.path, request.runs)
        source = str(tuned.path) if tuned is not None else ""
        manifest = RolloutManifest(
            **head(path.name, config, where.tools.operations, preparation.software(where.tools)),
            plan=plan_of(request, settings, source, new_seed(request.seed)),
            nodes=nodes,
            hardware=kinds,
            settled=settled,
            slurm=exclusive_nodes.by_slurm(config, "auto"),
        )
        with RolloutWriter.create(path, manifest) as writer:
            say.note(f"run: {path}")
            return Rolling(where, writer, Course(manifest.plan, kinds, settled), [], say).run()


def _go_on(name: str, runs: Path, say: Progress) -> Rollout:
    path = find_run(name, runs, HEAD)
    run = load_rollout(path)
    writer = RolloutWriter(path, run.manifest)
    with writer:
        manifest = run.manifest
        if manifest.status == "complete":
            raise UsageError(f"{path} is complete; there is nothing to go on with")
        config = inventory.parse(manifest.cluster, str(path / HEAD))
        mpi = manifest.software.get("mpi_compiler")
        with _where(config, manifest.nodes, manifest.plan.settings, str(mpi) if mpi else None, say) as where:
            there = [record for record in where.records if record.reachable]
            tested = {made_of(r) for r in there if _tried(manifest.hardware, r.node)}
            kinds = hardware(there, tested, others=manifest.plan.other_hardware)
            done = still_known(run.steps, {r.node for r in there if not _lacking(r, where.wanted)})
            permissions = change.Permissions(take_over=manifest.plan.take_over, relax=manifest.plan.relax)
            known = {one.node for some in done for one in some}
            settled = [
                one
                for one in [*_silent(where.records), *_settled(there, where.wanted, kinds, permissions)]
                if one.node not in known
            ]
            course = Course(manifest.plan, kinds, settled)
            for outcomes in done:
                course.take([_now(one, course) for one in outcomes if one.node in course.kind_of])
            writer.update(status="running", hardware=kinds, settled=settled, message=None)
            say.note(f"run: {path}, going on after {count(len(done), 'step')}")
            return Rolling(where, writer, course, run.steps, say).run()


def _now(one: RolledNode, course: Course) -> RolledNode:
    """Return what became of a node, under the name that its hardware has now."""
    return msgspec.structs.replace(one, hardware=course.kind_of[one.node])


def _tried(kinds: Sequence[Hardware], node: str) -> bool:
    return any(kind.tried and node in kind.nodes for kind in kinds)


def _settings(request: RolloutRequest, say: Progress) -> tuple[Values, TuningRun | None]:
    """Return what is set on the nodes, and the tuning run that found it; None where it was given."""
    if request.settings:
        return {one.knob.id: one.value for one in steps.parse(request.settings)}, None
    path = find_run(request.tuned or "latest", request.runs, TUNED)
    run = load_tuning(path)
    kept = run.result.kept if run.result is not None else {}
    jobs = job_line(kept)
    if jobs:
        say.note(f"not of the nodes, but of every job: {jobs}")
    settings = {
        name: value
        for name, value in on_nodes(kept).items()
        if not catalogue.unsettable(catalogue.knob(name))
    }
    if not settings:
        raise UsageError(f"{path} has kept nothing that is set on nodes: there is nothing to roll out")
    return settings, run


@contextmanager
def _where(
    config: ClusterConfig, nodes: Sequence[str], settings: Mapping[str, str], mpi: str | None, say: Progress
) -> Iterator[Where]:
    """Look at the nodes, and build what they are measured with; refuse those of them that may not be changed."""
    wanted = [steps.check(catalogue.knob(name), value) for name, value in settings.items()]
    with ExitStack() as stack:
        transport, records = stack.enter_context(preparation.connect(config, list(nodes), say))
        there = [record.node for record in records if record.reachable]
        if not there:
            down = {record.node: record.error or "does not answer" for record in records}
            raise TransportError(f"no node answers: {reasons_text(down)}")
        guards: Guards = stack.enter_context(change.guarded(config, transport))
        guards.require_right(there)
        ping_pong = "mpi_pingpong" if build.find_mpi(mpi) else "tcp_rr"
        tools = preparation.toolbox([ping_pong, LOSSY], mpi, say)
        yield Where(
            config=config, transport=transport, guards=guards, records=records, tools=tools, wanted=wanted
        )


def _silent(records: Sequence[NodeRecord]) -> list[RolledNode]:
    return [
        RolledNode(node=record.node, state="silent", reason=without_name(record.node, record.error or ""))
        for record in records
        if not record.reachable
    ]


def _settled(
    records: Sequence[NodeRecord],
    wanted: Sequence[steps.KnobSetting],
    kinds: Sequence[Hardware],
    permissions: change.Permissions,
) -> Iterator[RolledNode]:
    """Yield nodes that have all of it already, and those that may not have it."""
    names = {node: kind.name for kind in kinds for node in kind.nodes}
    for record in records:
        name = names[record.node]
        obstacles = [reason for one in wanted if (reason := _obstacle(one, record, permissions))]
        if not _lacking(record, wanted):
            yield RolledNode(node=record.node, state="had it", hardware=name)
        elif obstacles:
            yield RolledNode(
                node=record.node, state="refused", reason=printable("; ".join(obstacles), 300), hardware=name
            )


def _obstacle(one: steps.KnobSetting, record: NodeRecord, permissions: change.Permissions) -> str:
    unknown = record.unknown.get(one.knob.id)
    return (
        f"{one.knob.id} is not known there: {unknown}"
        if unknown
        else steps.obstacle(one, record, take_over=permissions.take_over, relax=permissions.relax)
    )


def _lacking(record: NodeRecord, wanted: Sequence[steps.KnobSetting]) -> list[steps.KnobSetting]:
    return [one for one in wanted if not steps.fulfilled(one, record.facts.get(one.knob.id))]


class Rolling:
    """A roll-out that goes on, step by step."""

    def __init__(
        self,
        where: Where,
        writer: RolloutWriter,
        course: Course,
        earlier: Sequence[RolloutStep],
        say: Progress,
    ) -> None:
        self._where = where
        self._writer = writer
        self._course = course
        self._steps = {step.number: step for step in earlier}
        self._say = say
        #: Nodes that Slurm did not give; and with them all that are busy now; node → why.
        self._given_up: dict[str, str] = {}
        self._busy: dict[str, str] = {}
        #: Slurm's nodes and their states.
        self._states: dict[str, str] = {}
        plan = writer.manifest.plan
        self._check = SiteCheck(where, plan) if plan.check else None
        self._is_checked = False

    def run(self) -> Rollout:
        """Go on until all nodes have the change, or nothing more can be done now.

        Raises
        ------
        KeyboardInterrupt
            With the step put back, and what was kept stored.
        """
        try:
            halted = self._go()
        except KeyboardInterrupt:
            self._conclude("interrupted", "interrupted")
            self._say.note(f"'wulf settings rollout --resume {self._writer.path.name}' goes on")
            raise
        except BaseException as error:
            self._conclude("halted", printable(str(error), 500) or type(error).__name__)
            raise
        if halted:
            return self._conclude("halted", halted)
        # Nodes without a partner stay without one: only those that are busy now may be tried later.
        waits = not self._busy.keys().isdisjoint(self._course.waiting)
        return self._conclude("waiting" if waits else "complete", "")

    def _go(self) -> str:
        """Take one step after the other; return what halted it."""
        number = max(self._steps, default=0)
        while matches := self._course.next(self._free()):
            number += 1
            if halted := self._step(number, matches):
                return halted
        return ""

    def _step(self, number: int, matches: Sequence[Match]) -> str:
        """Take a step; return why it halts the roll-out, empty where it does not."""
        members = list(dict.fromkeys(node for match in matches for node in match.pair))
        to_hold = [node for node in members if self._states.get(node) == _IDLE]
        limit_s = _STEP_S + checks_s(self._writer.manifest.plan, whole=True)
        stepping = Stepping(self._where, self._writer, self._course, self._check, self._say)
        try:
            with exclusive_nodes.held(to_hold, limit_s, [], slurm=bool(to_hold)):
                if failed := self._check_first(matches):
                    return failed
                self._steps[number] = begun = stepping.begin(number, matches)
                self._steps[number] = step = stepping.take(begun, matches)
                return self._after_halt(step) if step.halted else ""
        except SchedulerError as error:
            self._given_up |= dict.fromkeys(members, printable(str(error), 300))
            self._say.note(f"step {number} waits: {error}")
            return ""

    def _check_first(self, matches: Sequence[Match]) -> str:
        """Run the site's check on the nodes of the first step as they are; return why that halts the roll-out."""
        if self._check is None or self._is_checked:
            return ""
        self._say("the site's check, before anything is changed")
        first = self._check.run(changing(matches), changed=False)
        self._is_checked = True
        how = "could not be run" if first.passed is None else "fails"
        return "" if first.passed else f"the check {how} before the change: {first.reason}"

    def _after_halt(self, step: RolloutStep) -> str:
        """Put earlier steps back, too, where the site's check fails without this one; return why it halts.

        A check that cannot be run says nothing of them: they stay.
        """
        if self._check is None or not step.checks or step.checks[-1].passed is not False:
            return step.halted
        if self._check.again().passed is not False:
            return step.halted
        earlier = [one for one in reversed(self._steps.values()) if one.state == "done"]
        if not earlier:
            return f"{step.halted}; with the step put back, it fails, too"
        self._say.note("the check still fails: the earlier steps are put back, too")
        for one in earlier:
            self._take_back(one)
        said = f"{step.halted}; with the step put back, it fails, too: the earlier steps were put back"
        return said + ("; it still fails" if self._check.again().passed is False else "")

    def _take_back(self, step: RolloutStep) -> None:
        kept = {one.node: one.change for one in step.outcomes if one.state == "kept" and one.change}
        for name in dict.fromkeys(kept.values()):
            nodes = [node for node, change_name in kept.items() if change_name == name]
            outcome = change.roll_back(
                self._where.transport,
                self._where.guards,
                self._where.config,
                nodes,
                name,
                deadline_s=CONFIRM_WITHIN_S,
                watch=self._say,
            )
            if outcome.kept:
                step = _taken_back(step, nodes)
                self._course.halt([one for one in step.outcomes if one.node in nodes])
            else:
                left = f"{fold(nodes)} still have change {name}: {outcome.reason}"
                self._say.note(left)
                step = msgspec.structs.replace(step, notes=[*step.notes, left])
            self._steps[step.number] = step
            self._writer.append(step)

    def _free(self) -> list[str]:
        """Return the nodes that may be changed now: of Slurm's nodes, those where no job runs."""
        nodes = [record.node for record in self._where.records if record.reachable]
        if self._writer.manifest.slurm:
            self._states = slurm_nodes.states()
        self._busy = self._given_up | {
            node: f"Slurm says {self._states.get(node, 'nothing of it')}"
            for node in nodes
            if self._writer.manifest.slurm and self._states.get(node) not in (_IDLE, _DRAINED)
        }
        return [node for node in nodes if node not in self._busy]

    def _conclude(self, status: RolloutStatus, halted: str) -> Rollout:
        known = list(self._steps.values())
        done = [one for step in known if step.state == "done" for one in step.outcomes]
        nodes = self._course.nodes(self._busy, halted)
        named = {state: {one.node for one in nodes if one.state == state} for state in ("harmed", "kept")}
        found = Rollout(
            schema_version=SCHEMA_VERSION,
            run_id=self._writer.manifest.id,
            status=status,
            reason=halted,
            plan=self._writer.manifest.plan,
            hardware=self._course.hardware(),
            nodes=nodes,
            steps=known,
            in_common=in_common(self._where.records, named["harmed"], named["kept"]),
            changes=list(dict.fromkeys(one.change for one in done if one.change)),
        )
        self._writer.conclude(found)
        write_atomically(self._writer.path / PAGE, html(page.build(found)).encode())
        stored = {"complete": "complete", "halted": "failed"}.get(status, "interrupted")
        self._writer.update(status=stored, message=halted or None)
        return found


def _taken_back(step: RolloutStep, nodes: Sequence[str]) -> RolloutStep:
    """Return a step that was done, with the change put back on these nodes."""
    why = "put back: the check fails without the steps after it"
    outcomes = [
        msgspec.structs.replace(one, state="cannot tell", reason=why, change="") if one.node in nodes else one
        for one in step.outcomes
    ]
    return msgspec.structs.replace(step, state="halted", halted=why, outcomes=outcomes)

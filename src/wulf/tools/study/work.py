"""From a study file to its table: a new run, one that goes on, or only what would be done."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from wulf.base.errors import UsageError
from wulf.base.records import SCHEMA_VERSION
from wulf.base.store.files import timestamp
from wulf.base.store.kinds import find_run
from wulf.base.text import count, printable
from wulf.base.tool import Progress
from wulf.node.cluster import inventory
from wulf.node.fleet import allocation, change
from wulf.node.fleet.clusters import config_of
from wulf.node.fleet.new_run import head, new_seed, place_of
from wulf.tools.study import checking, design, file
from wulf.tools.study.conclude import conclude
from wulf.tools.study.performing import Asked, Hpl, Performer, conditions, missing, opened
from wulf.tools.study.record import (
    Study,
    StudyForecast,
    StudyManifest,
    StudyPlan,
    StudyTrial,
)
from wulf.tools.study.request import BUDGET_S, MARGIN, StudyRequest
from wulf.tools.study.store import HEAD, JOBS, StudyRun, StudyWriter, create_study, load_study

#: A combination that failed so often, and never worked, is not run again.
GIVE_UP = 3
#: What a launch of an operation takes beside its visits, and the visits that do not count [s].
_START_S, _WARM_UP = 1.5, 5


def study(request: StudyRequest, progress: Progress, hpl: Hpl) -> Study:
    """Do what is asked of studies.

    Raises
    ------
    ConfigError
        The file is not as it should be; names the line and the key.
    KeyboardInterrupt
        After the run has been marked as interrupted; what was measured is kept.
    """
    if request.list:
        return Study(schema_version=SCHEMA_VERSION, known=file.known())
    begin_s = time.monotonic()
    if request.resume is not None:
        return _go_on(request, begin_s, progress, hpl)
    written = file.named(str(request.study), short=request.short)
    if request.dry_run:
        return _foretold(request, written, progress)
    return _start(request, written, begin_s, progress, hpl)


def _foretold(request: StudyRequest, written: file.Written, progress: Progress) -> Study:
    """Return what would be done, as far as it can be told without the nodes."""
    config = _config_if_any(request)
    mpi = request.mpi or (config.mpi.compiler if config is not None else None)
    wanted = checking.reduced(written, checking.here(written, config, request.nodes, mpi, progress.note))
    plan = _plan(request, written, wanted, config.select(request.nodes) if config is not None else [])
    return Study(schema_version=SCHEMA_VERSION, plan=plan, forecast=forecast(plan))


def _config_if_any(request: StudyRequest) -> inventory.ClusterConfig | None:
    """Return the cluster; None where none is named and none is there: a study can be looked at without."""
    try:
        return config_of(request.cluster)
    except UsageError:
        if request.cluster is not None or request.nodes is not None:
            raise
        return None


def shown(run: StudyRun) -> Study:
    """Return what a stored run has found."""
    result = conclude(run.manifest, run.trials)
    return Study(schema_version=SCHEMA_VERSION, plan=run.manifest.plan, result=result, run=str(run.path))


def _plan(
    request: StudyRequest,
    written: file.Written,
    wanted: checking.Wanted,
    nodes: Sequence[str],
) -> StudyPlan:
    factors, kind = wanted.factors, written.design.kind
    if kind == "fractional" and (
        len(factors) < len(written.factors) or any(len(factor.levels) != 2 for factor in factors)
    ):
        # One whose levels cannot all be had is none of a fraction.
        kind = "full"
    made = design.combinations(factors, kind, written.design.runs)
    return StudyPlan(
        study=written.name,
        title=written.title,
        source=written.source,
        factors=factors,
        metrics=wanted.metrics,
        design=kind,
        cells=made.cells,
        aliases=made.aliases,
        replications=request.replications or written.design.replications,
        budget_s=request.budget_s or BUDGET_S,
        margin=request.margin if request.margin is not None else MARGIN,
        seed=new_seed(request.seed),
        published=written.published,
        prices=written.prices,
        watts=written.watts,
        left_out=wanted.left_out,
        nodes=list(nodes),
        mpi=request.mpi,
        sweeps=written.design.sweeps,
        visit_us=written.visit_us,
    )


def forecast(plan: StudyPlan) -> StudyForecast:
    """Return how many runs there are, and how long those of known length take."""
    runs = design.runs_of(len(plan.cells), plan.replications)
    each = 0.0
    unknown = []
    for metric in plan.metrics:
        if metric.kind == "operation":
            each += _START_S + len(metric.sizes_bytes) * (plan.sweeps + _WARM_UP) * plan.visit_us * 1e-6
        elif metric.takes_s is not None:
            each += metric.takes_s
        else:
            unknown.append(metric.name)
    return StudyForecast(
        runs=runs,
        time_s=runs * each,
        unknown=unknown,
        at_the_run=checking.at_the_run(plan.factors, plan.metrics),
    )


def _asked(
    request: StudyRequest,
    config: inventory.ClusterConfig,
    nodes: str | None,
    mpi: str | None,
    hpl: Hpl,
    path: Path,
) -> Asked:
    permissions = change.Permissions(take_over=request.take_over, relax=request.relax)
    return Asked(config, nodes, mpi or config.mpi.compiler, permissions, hpl, path / JOBS)


def _start(
    request: StudyRequest, written: file.Written, begin_s: float, progress: Progress, hpl: Hpl
) -> Study:
    path = place_of(request.path, request.runs)
    config = config_of(request.cluster)
    asked = _asked(request, config, request.nodes, request.mpi, hpl, path)
    known = checking.here(written, config, request.nodes, asked.mpi, progress.note)
    with opened(asked, progress) as performer:
        wanted = checking.reduced(written, missing(written.factors, written.metrics, known, asked, performer))
        for what, why in wanted.left_out.items():
            progress.note(f"left out: {printable(what, 100)}: {printable(why, 300)}")
        plan = _plan(request, written, wanted, config.select(request.nodes))
        manifest = StudyManifest(**head(path.name, config, [], {}), plan=plan)
        with create_study(path, manifest, written.text) as writer:
            progress.note(f"run: {path}")
            return _carry_out(writer, [], performer, begin_s, progress)


def _go_on(request: StudyRequest, begin_s: float, progress: Progress, hpl: Hpl) -> Study:
    path = find_run(str(request.resume), request.runs, HEAD)
    manifest = load_study(path).manifest
    if manifest.status == "complete":
        raise UsageError(f"{path} is complete; there is nothing to go on with")
    config = inventory.parse(manifest.cluster, str(path / HEAD))
    # On the nodes that it was begun on: others would be another study.
    asked = _asked(request, config, ",".join(manifest.plan.nodes), manifest.plan.mpi, hpl, path)
    with opened(asked, progress) as performer:
        # What a level or a build makes is made again: the nodes may be others than they were.
        missing(manifest.plan.factors, manifest.plan.metrics, {}, asked, performer)
        run = load_study(path)
        with StudyWriter(path, run.manifest) as writer:
            budget_s = request.budget_s or run.manifest.plan.budget_s
            writer.resumed(msgspec.structs.replace(run.manifest.plan, budget_s=budget_s))
            progress.note(f"run: {path}, going on after {count(len(run.trials), 'run')}")
            return _carry_out(writer, run.trials, performer, begin_s, progress)


def _carry_out(
    writer: StudyWriter,
    earlier: Sequence[StudyTrial],
    performer: Performer,
    begin_s: float,
    progress: Progress,
) -> Study:
    trials = list(earlier)
    status, message = "failed", None
    try:
        budget_s = writer.manifest.plan.budget_s
        rounds = allocation.rounds_left(budget_s, begin_s, "the study", progress.note)
        status = _turns(writer, trials, performer, rounds, progress)
    except KeyboardInterrupt:
        status = "interrupted"
        progress.note(f"interrupted; the runs so far are kept: wulf study --resume {writer.path}")
        raise
    except Exception as error:
        message = str(error)
        raise
    finally:
        writer.update(status=status, message=message)
    return shown(StudyRun(path=writer.path, manifest=writer.manifest, trials=trials))


def _turns(
    writer: StudyWriter,
    trials: list[StudyTrial],
    performer: Performer,
    rounds: allocation.Rounds,
    progress: Progress,
) -> str:
    """Make the runs that there are not yet; return how it ended."""
    plan = writer.manifest.plan
    done = _done(trials, plan)
    numbers = itertools.count(len(trials))
    wanted = [
        turn
        for turn in design.turns(len(plan.cells), plan.replications, plan.seed)
        if (turn.replication, turn.cell) not in done
    ]
    for place, turn in enumerate(wanted):
        if _is_hopeless(trials, turn.cell):
            continue
        if not rounds.another():
            return "budget"
        left = f", about {rounds.passed_s / place * (len(wanted) - place):.0f} s left" if place else ""
        progress(f"turn {place + 1} of {len(wanted)}: {_named(plan, turn.cell)}{left}")
        sides = [turn.base_first, not turn.base_first] if turn.cell else [True]
        made = [_trial(plan, turn, is_base, next(numbers), performer) for is_base in sides]
        for trial in made:
            writer.append(trial)
        trials += made
        if not any(trial.values for trial in trials):
            _require_any(plan, trials)
    return "complete"


def _is_hopeless(trials: Sequence[StudyTrial], cell: int) -> bool:
    """Whether a combination has never worked, so often that it need not be tried again."""
    own = [trial for trial in trials if trial.cell == cell and not trial.is_base]
    return len(own) >= GIVE_UP and not any(trial.values for trial in own)


def _require_any(plan: StudyPlan, trials: Sequence[StudyTrial]) -> None:
    """Refuse to go on where nothing has ever worked."""
    if len(trials) >= GIVE_UP or len(plan.cells) == 1:
        reasons = list(dict.fromkeys(reason for trial in trials for reason in trial.failures.values()))
        raise UsageError(f"no metric could be measured: {printable('; '.join(reasons), 500)}")


def _done(trials: Sequence[StudyTrial], plan: StudyPlan) -> set[tuple[int, int]]:
    """Return the turns whose runs were all made; a turn that was interrupted is made again."""
    needed = 2 if len(plan.cells) > 1 else 1
    made: dict[tuple[int, int], set[bool]] = {}
    for trial in trials:
        made.setdefault((trial.replication, trial.cell), set()).add(trial.is_base)
    return {turn for turn, sides in made.items() if len(sides) == needed}


def _named(plan: StudyPlan, cell: int) -> str:
    levels = plan.levels_of(cell)
    return ", ".join(f"{name} {level}" for name, level in levels.items()) or "as it is"


def _trial(plan: StudyPlan, turn: design.Turn, is_base: bool, index: int, performer: Performer) -> StudyTrial:
    started_at, begin = timestamp(), time.monotonic()
    wanted = conditions(plan.factors, plan.levels_of(0 if is_base else turn.cell))
    seed = plan.seed + turn.replication * len(plan.cells) + turn.cell
    found = performer.run(plan, wanted, seed)
    return StudyTrial(
        index=index,
        replication=turn.replication,
        cell=turn.cell,
        is_base=is_base,
        started_at=started_at,
        wall_s=time.monotonic() - begin,
        values=found.values,
        failures={name: printable(reason, 300) for name, reason in found.failures.items()},
        contamination=list(dict.fromkeys(found.contamination)),
    )

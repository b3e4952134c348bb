"""From what is asked to a measured run."""

from __future__ import annotations

import sys
from pathlib import Path

from wulf.base.contracts import Say
from wulf.base.errors import BuildError
from wulf.base.request import SECONDS
from wulf.node.cluster import inventory
from wulf.node.fleet import preparation
from wulf.node.fleet.clusters import config_of
from wulf.node.fleet.new_run import new_seed
from wulf.node.measuring import session
from wulf.node.probe import ladder, suites
from wulf.tools.measure.request import MeasureRequest


def measurement(request: MeasureRequest) -> session.MeasureRequest:
    """Return what a request comes to on the cluster that it names.

    Raises
    ------
    UsageError
        A number is out of its range, or there is no such suite or ladder.
    """
    config = config_of(request.cluster)
    suite = _suite(request)
    largest = request.max_size_bytes
    name = request.ladder or ladder.ADAPTIVE
    return session.MeasureRequest(
        config=config,
        ops=list(request.ops) if request.ops is not None else None,
        command=request.command,
        mpi=request.mpi or config.mpi.compiler,
        pairs=inventory.pairs(request.pairs, config.select(request.nodes)),
        experiments=tuple(suite.experiment) if suite is not None else (),
        ladder=name if suite is None else _origin(request),
        sizes_bytes=ladder.base_sizes(name, largest) if suite is None else [largest or sys.maxsize],
        precision=request.precision,
        budget_s=_budget_s(request, suite),
        every_s=request.every_s,
        min_launches=min(6, request.max_launches) if request.min_launches is None else request.min_launches,
        max_launches=request.max_launches,
        sweeps=request.sweeps,
        visit_us=round(_visit_s(request, suite) * 1e6),
        reference=request.reference,
        seed=new_seed(request.seed),
        at_once=request.at_once,
        all_needed=suite is not None and suite.all_needed,
        ranks_per_node=request.ranks_per_node,
        directory=request.directory,
        thread_level=request.thread_level,
    )


def require_known(request: MeasureRequest, say: Say) -> None:
    """Refuse now what a job would only refuse when its turn has come: there is no such operation, suite or ladder.

    Raises
    ------
    UsageError
        Names what there is not.
    """
    suite = _suite(request)
    if suite is None:
        ladder.base_sizes(request.ladder or ladder.ADAPTIVE, request.max_size_bytes)
    ops = [one.op for one in suite.experiment] if suite is not None else request.ops
    try:
        preparation.toolbox(ops or [], request.mpi, say, request.directory)
    except BuildError as failure:
        say(f"operations are checked by the job, not here: {failure}")


def _suite(request: MeasureRequest) -> suites.Suite | None:
    if request.suite is not None:
        return suites.named(request.suite)
    return suites.from_file(Path(request.plan)) if request.plan is not None else None


def _origin(request: MeasureRequest) -> str:
    return f"suite {request.suite}" if request.suite is not None else str(request.plan)


def _budget_s(request: MeasureRequest, suite: suites.Suite | None) -> float:
    if request.budget_s is not None or request.every_s is not None or suite is None or not suite.budget:
        return request.time_s
    budget_s: float = SECONDS.parse(suite.budget)
    return budget_s


def _visit_s(request: MeasureRequest, suite: suites.Suite | None) -> float:
    if request.visit_s is not None:
        return request.visit_s
    visit_s: float = SECONDS.parse(suite.visit if suite is not None else suites.VISIT)
    return visit_s

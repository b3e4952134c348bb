"""Studies with all that their files may ask for: HPL is a tool of its own."""

from __future__ import annotations

from collections.abc import Mapping

from wulf.base.errors import UsageError
from wulf.base.output_values import cpu_list
from wulf.base.store.files import timestamp
from wulf.base.text import count
from wulf.base.tool import Progress
from wulf.node.trials.bench import TrialError
from wulf.tools.hpl import installation, launching
from wulf.tools.hpl import program as hpl
from wulf.tools.hpl.record import HplPlan, HplSetting
from wulf.tools.study import work
from wulf.tools.study.performing import HplPlace
from wulf.tools.study.record import Study, StudyProblem
from wulf.tools.study.request import StudyRequest

#: A problem of a study may take so long [s].
LIMIT_S = 86400.0


def study(request: StudyRequest, progress: Progress) -> Study:
    """Do what is asked of studies; raises as `wulf.tools.study.work.study`."""
    return work.study(request, progress, _Hpl())


class _Hpl:
    """HPL, as studies solve problems with it."""

    def solve(self, place: HplPlace, problem: StudyProblem, program: str) -> float:
        """Solve a problem once; return the rate [GFLOPS]. Raises TrialError where that failed."""
        site = _site(place, program)
        with launching.workplace(site):
            launch = launching.launch(site, 0, "confirm", problem.n, _setting(place, problem), LIMIT_S)
        if launch.status != "ok" or launch.gflops is None:
            raise TrialError(launch.reason or "HPL gave no rate")
        return launch.gflops

    def require(self, place: HplPlace, problem: StudyProblem, program: str) -> None:
        """Raise WulfError where the nodes have no HPL, or too few CPUs for the grid."""
        installation.program(place.transport, _nodes(place), program or None)
        ranks, cpus = problem.p * problem.q, _cpus(place) * len(_nodes(place))
        if ranks > cpus:
            raise UsageError(
                f"a grid of {problem.p}×{problem.q} takes {count(ranks, 'CPU')}, and there are {cpus}"
            )


def _nodes(place: HplPlace) -> list[str]:
    nodes = [record.node for record in place.records]
    return nodes[:1] if place.config.transport == "local" else nodes


def _site(place: HplPlace, program: str) -> launching.HplSite:
    nodes = _nodes(place)
    found = installation.program(place.transport, nodes, program or None)
    plan = HplPlan(
        program=found,
        kind=hpl.kind_of(found),
        nodes=nodes,
        cpus=1,
        memory_bytes=None,
        largest_n=None,
        time_s=LIMIT_S,
        repeats=1,
        seed=0,
        values={},
        mpi=place.mpi,
        env=dict(place.environment),
    )
    run_id = f"study-{timestamp('milliseconds')}".replace(":", "")
    return installation.site(place.config, place.transport, plan, place.records, run_id, _ignored)


def _ignored(_text: str) -> None:
    """Take what a launcher has to say: it has said it when the study began."""


def _setting(place: HplPlace, problem: StudyProblem) -> HplSetting:
    nodes = _nodes(place)
    each = place.ranks_per_node or _cpus(place)
    p, q = (problem.p, problem.q) if problem.p else _squarest(len(nodes) * each)
    if p * q % len(nodes):
        raise TrialError(f"a grid of {p}×{q} cannot be spread evenly over {count(len(nodes), 'node')}")
    return HplSetting(p=p, q=q, nb=problem.nb, threads=1, bcast=1, depth=1, swap=2)


def _squarest(ranks: int) -> tuple[int, int]:
    p = max(rows for rows in range(1, ranks + 1) if ranks % rows == 0 and rows * rows <= ranks)
    return p, ranks // p


def _cpus(place: HplPlace) -> int:
    """Return how many ranks each node has: as many as the one with the fewest CPUs; nodes on one host share them."""
    counts = [_allowed(record.facts) for record in place.records]
    nodes = _nodes(place)
    shared = len(nodes) if place.config.shares_cpu(*nodes) else 1
    return max(min(counts) // shared, 1)


def _allowed(facts: Mapping[str, object]) -> int:
    return len(cpu_list(str(facts["cpu.allowed"]))) if "cpu.allowed" in facts else 1

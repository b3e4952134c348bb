"""Every subject that has a page, with records to show: what tests all of them takes a new one from here.

A function of `wulf` that returns a `Page` and is not here is a failure (`test_pages.py`).
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from tests.unit import (
    incast_fixture,
    paths_fixture,
    predict_fixture,
    report_fixture,
    study_fixture,
    test_hpl_result,
    test_report_collectives,
    test_rfc2544,
    test_scaling,
    test_timeline,
    tuning_fixture,
    whole_fixture,
)
from wulf.base.records import SCHEMA_VERSION, ChangeOutcome, Estimate, Mending
from wulf.base.records.base import Record
from wulf.base.records.diagnosed import Diagnosis, Matrix, Score, Suspect, Symptom
from wulf.base.records.libraries import BlasComparison, BlasLibrary, BlasRank
from wulf.base.records.profiled import Character, Characters, Gain
from wulf.base.records.watched import Alarm, Coverage, FactChange, Shown, WatchedSeries, WatchReport, WatchRun
from wulf.base.trace.reader import read
from wulf.base.trace.summary import summary
from wulf.base.trace.writer import write_container
from wulf.page.blocks import Page
from wulf.tools.hpcc.record import HpccDifference, HpccFigure, HpccResult
from wulf.tools.hpl import session as linpack
from wulf.tools.rollout.record import (
    CheckRun,
    Hardware,
    NodeState,
    RolledFigure,
    RolledNode,
    Rollout,
    RolloutPlan,
    RolloutStep,
)
from wulf.tools.study.record import KnownStudy, Study

Sample = Callable[[], Sequence[Any]]


def estimate(value: float, unit: str) -> Estimate:
    return Estimate(
        value=value, low=0.97 * value, high=1.04 * value, confidence=0.95, unit=unit, n=12, method="x"
    )


def hpcc() -> HpccResult:
    figures = [
        HpccFigure(name="HPL_Tflops", value=estimate(0.081, "Tflop/s"), better="higher"),
        HpccFigure(name="MaxPingPongLatency_usec", value=estimate(31.0, "µs"), better="lower"),
        HpccFigure(name="StarSTREAM_Triad", value=estimate(6.2, "GB/s"), better="higher"),
    ]
    return HpccResult(
        schema_version=SCHEMA_VERSION,
        run_id="hpcc-1",
        status="budget",
        nodes=[f"node{number:02}" for number in range(1, 9)],
        ranks_per_node=4,
        sizes={"together": 8000, "alone": 3000},
        figures=figures,
        by_node={f"node{number:02}": figures[2:] for number in range(1, 9)},
        different=[
            HpccDifference(node="node05", name="StarSTREAM_Triad", ratio=estimate(1.31, "ratio")),
        ],
        compared=["StarSTREAM_Triad", "HPL_Tflops"],
        margin=0.05,
        false_alarm=0.01,
        launches_ok=6,
        failures={"node07: the residual is too large": 1},
    )


def blas() -> BlasComparison:
    rate = estimate(41.2, "GFLOPS")
    return BlasComparison(
        schema_version=SCHEMA_VERSION,
        nodes=["node01", "node02"],
        libraries=[
            BlasLibrary(
                name="openblas-pthread", path="/usr/lib/openblas/libblas.so.3", version="OpenBLAS 0.3.21"
            ),
            BlasLibrary(name="blis", path="/usr/lib/blis/libblas.so.3"),
            BlasLibrary(name="blas", path="/usr/lib/blas/libblas.so.3", default=True),
        ],
        left_out={"atlas on node02": "it is not installed there"},
        size=1000,
        threads=4,
        rounds=12,
        margin=0.02,
        ranking=[
            BlasRank(library="openblas-pthread", rate=rate, verdict="fastest"),
            BlasRank(library="blis", rate=rate, ratio=estimate(0.99, "ratio"), verdict="no difference"),
            BlasRank(
                library="blas", rate=estimate(2.1, "GFLOPS"), ratio=estimate(0.05, "ratio"), verdict="slower"
            ),
        ],
        busy_cpus={"openblas-pthread": 1.2, "blis": 4.4},
        failures={"blas": {"a wrong product": 2}},
    )


def characters() -> Characters:
    ratio = estimate(0.9, "ratio")
    gains = [
        Gain(setting="nic.rx_usecs=0", ratio=ratio, verdict="better", reason=""),
        Gain(setting="nic.mtu=9000", ratio=None, verdict="no decision", reason="every launch failed"),
        Gain(setting="nic.rx_usecs=0", what="FFT", ratio=ratio, verdict="worse", reason="its rate is lower"),
    ]
    programs = [
        Character(
            run=run,
            command="mpirun ./heat",
            ranks=8,
            program_class=class_,
            share=(0.3, 0.2, 0.41),
            imbalance=0.07,
            collective=0.6,
            messages_per_s=1234.5,
            median_bytes=median,
            partners=2.0,
            gains=gains,
        )
        for run, class_, median in (("heat", "uneven ranks", 800), ("cg", "small collectives", None))
    ]
    failed = {"farm": "mpirun -np 2 farm: exit code 213"}
    return Characters(schema_version=SCHEMA_VERSION, programs=programs, failed=failed)


def mending() -> Mending:
    audit = report_fixture.audit()
    return whole_fixture.mending(
        findings=audit.findings[:1],
        outcome=ChangeOutcome(change="c", kept=True, nodes=[]),
        left=audit.findings[:1],
        others=audit.findings[1:],
        unreachable={"node04": "node04: no route to host"},
    )


def diagnosis() -> Diagnosis:
    nodes = [f"node{number:02}" for number in range(1, 21)]
    scores = [
        Score(
            node=node,
            ratio=estimate(1.0 if node != "node05" else 3.2, "ratio"),
            rate_bits_per_s=9e8 if node != "node05" else 3e8,
            link_bits_per_s=1e9,
        )
        for node in nodes
    ]
    suspects = [
        Suspect(kind="node", nodes=["node05"], slower=2.2, scatter=0.01, p_value=1e-9),
        Suspect(kind="link", nodes=["node01", "node02"], slower=0.4, scatter=0.01, p_value=1e-5),
        Suspect(kind="group", nodes=["node06", "node07"], slower=0.3, scatter=0.01, p_value=1e-4),
    ]
    matrix = Matrix(
        op="mpi_pingpong",
        size_bytes=262144,
        typical_s=3e-3,
        scatter=0.01,
        pairs=190,
        missing=1,
        scores=scores,
        suspects=suspects,
    )
    symptom = Symptom(
        id="loss",
        title="Packets are lost",
        op="mpi_pingpong",
        pairs=[("node05", "node06")],
        of_pairs=190,
        evidence="40 retransmitted segments in 2 s.",
        why="Each lost packet costs 200 ms.",
        next="wulf audit --nodes node05",
    )
    return Diagnosis(run_id="all-pairs", nodes=nodes, margin=0.05, matrices=[matrix], symptoms=[symptom])


ROLLOUT_PLAN = RolloutPlan(
    settings={"nic.rx_usecs": "0"},
    source="runs/tuned",
    canary=4,
    growth=3.0,
    margin=0.05,
    tolerate=0.5,
    rounds=60,
    missed=0.01,
    false_alarm=0.002,
    loss=0.002,
    check="/opt/site/check.sh",
    seed=1,
)


def watch() -> tuple[WatchReport, list[WatchRun], list[WatchedSeries]]:
    nodes = ["node01", "node05"]
    at = "2026-03-23T01:30:00+00:00"
    runs = [
        WatchRun(number=number, at=at, utc_offset_s=3600, status=status, reason=reason, seconds=61.0, pairs=4)
        for number, status, reason in ((1, "measured", ""), (2, "skipped", "a job runs"), (3, "measured", ""))
    ]
    report = WatchReport(
        schema_version=SCHEMA_VERSION,
        name="lab",
        nodes=nodes,
        history="/var/lib/wulf/lab",
        runs={"measured": 2, "skipped": 1},
        first_at=at,
        last=runs[-1],
        learning="",
        new=[1],
        open=[_alarm(at)],
        closed=[],
        shown=[Shown(level="node", op="mpi_pingpong", size_bytes=64, smallest=0.08)],
        coverage=Coverage(pairs=1, measured=1, oldest_days=3.2),
        findings={"warn": 2},
        false_alarms_a_month=0.1,
    )
    series = [
        WatchedSeries(
            level="node", op="mpi_pingpong", size_bytes=64, nodes=[node], runs=[1, 3], change=[0.0, 0.25]
        )
        for node in nodes
    ]
    return report, runs, series


def _alarm(at: str) -> Alarm:
    return Alarm(
        id=1,
        level="node",
        op="mpi_pingpong",
        size_bytes=64,
        nodes=["node05"],
        kind="step",
        direction="slower",
        change=estimate(1.25, "ratio"),
        before_run=1,
        before_at=at,
        after_run=3,
        after_at=at,
        found_run=3,
        found_at=at,
        state="open",
        changed=[
            FactChange(
                fact="nic.speed_bits_per_s",
                nodes=["node05"],
                before="10000000000",
                after="1000000000",
                run=3,
                times=1,
            )
        ],
    )


def _rolled_node(number: int, state: NodeState, reason: str, ratio: float, step: int | None) -> RolledNode:
    figures = [
        RolledFigure(metric=f"mpi_pingpong {size} mean", ratio=estimate(ratio, "ratio"), harmless=900.0)
        for size in ("64 B", "1 MiB")
    ]
    return RolledNode(
        node=f"node{number:02}",
        state=state,
        reason=reason,
        hardware="A",
        step=step,
        change="20261126T101500-0a1b2c" if state == "kept" else "",
        figures=figures if step else [],
    )


def _hardware(nodes: Sequence[RolledNode]) -> list[Hardware]:
    return [
        Hardware(
            name="A",
            nodes=[one.node for one in nodes[:17]],
            facts={"nic.firmware": "1.2"},
            tried=True,
            figures=nodes[0].figures,
        ),
        Hardware(name="B", nodes=["node18"], facts={"nic.firmware": "1.3"}, tried=False),
    ]


def rolled(status: Literal["complete", "halted"]) -> Rollout:
    nodes = [
        *(_rolled_node(number, "kept", "", 0.88 + number / 1000, 1 + number // 5) for number in range(1, 14)),
        _rolled_node(14, "harmed", "mpi_pingpong 1 MiB mean +31 % (27 to 36)", 1.31, 3),
        _rolled_node(
            15, "cannot tell", "it is not shown that it costs less than 5 %, after 60 rounds", 1.02, 3
        ),
        _rolled_node(16, "silent", "node16: no route to host", 1.0, None),
        _rolled_node(17, "busy", "Slurm says allocated", 1.0, None),
        _rolled_node(18, "other hardware", "it was not tested on such nodes", 1.0, None),
    ]
    halted = "node16 did not answer while the change was tried there" if status == "halted" else ""
    steps = [
        RolloutStep(
            number=number,
            nodes=[one.node for one in nodes if one.step == number],
            pairs=[("node01", "node02")],
            rounds=11,
            started_at="2026-11-26T10:15:00+00:00",
            duration_s=131.0,
            state="halted" if halted and number == 3 else "done",
            halted=halted if number == 3 else "",
            outcomes=[one for one in nodes if one.step == number],
            checks=[CheckRun(changed=True, passed=True, run_time_s=3.1)],
            notes=["nic.ring_rx: asked for 4000, the driver made 4096 of it on node02"]
            if number == 1
            else [],
        )
        for number in (1, 2, 3)
    ]
    return Rollout(
        schema_version=SCHEMA_VERSION,
        run_id="roll-1",
        status=status,
        reason=halted,
        plan=ROLLOUT_PLAN,
        hardware=_hardware(nodes),
        nodes=nodes,
        steps=steps,
        in_common={"nic.firmware": "1.1"},
        changes=["20261126T101500-0a1b2c"],
    )


def trace() -> Record:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "a.wtrace"
        write_container(file, {}, [test_timeline.stream(rank, 3, 200) for rank in range(3)])
        return summary(read(file))


def hpl() -> tuple[Any, Any, Any]:
    head, launches = test_hpl_result.manifest(), test_hpl_result.launches()
    return head, launches, linpack.conclude(head, launches)


#: Who makes the page → what of. A subject with several is one that looks different then.
SUBJECTS: dict[str, tuple[Sample, ...]] = {
    "wulf.page.sections.findings.page": (
        lambda: (report_fixture.audit(),),
        lambda: (report_fixture.cluster_audit(32),),
    ),
    "wulf.page.sections.diagnosis.page": (lambda: (diagnosis(),),),
    "wulf.tools.application.page.build": (lambda: (characters(),),),
    "wulf.tools.blas.page.build": (lambda: (blas(),),),
    "wulf.tools.collectives.page.view.build": (lambda: (test_report_collectives.FOUND,),),
    "wulf.tools.compare.page.view.build": (lambda: (report_fixture.comparison(),),),
    "wulf.tools.fabric.page.build": (
        lambda: (paths_fixture.inferred(),),
        lambda: (paths_fixture.inferred(told=False),),
    ),
    "wulf.tools.hpcc.page.build": (lambda: (hpcc(),),),
    "wulf.tools.hpl.page.view.build": (hpl,),
    "wulf.tools.incast.page.build": (
        lambda: (incast_fixture.broken(),),
        lambda: (incast_fixture.clean(),),
        lambda: (incast_fixture.nothing(),),
    ),
    "wulf.tools.measure.page.view.build": (
        lambda: report_fixture.make(ops=("mpi_pingpong", "udp_rr"), sizes=12),
        report_fixture.empty,
    ),
    "wulf.tools.mend.page.build": (lambda: (mending(),), lambda: (Mending(findings=[], refused=[]),)),
    "wulf.tools.paths.page.view.build": (lambda: (paths_fixture.bad(),), lambda: (paths_fixture.nothing(),)),
    "wulf.tools.predict.page.view.build": (
        lambda: (predict_fixture.prediction(),),
        lambda: (predict_fixture.prediction(predict_fixture.contention()),),
    ),
    "wulf.tools.rollout.page.build": (lambda: (rolled("complete"),), lambda: (rolled("halted"),)),
    "wulf.tools.rfc2544.page.build": (lambda: (test_rfc2544.made(),), lambda: (test_rfc2544.failed(),)),
    "wulf.tools.run.page.build": (
        lambda: (test_scaling.made(),),
        lambda: (test_scaling.made(weak=True),),
        lambda: (test_scaling.failing(),),
        lambda: (test_scaling.split(),),
    ),
    "wulf.tools.study.page.build": (
        lambda: (study_fixture.done(),),
        lambda: (study_fixture.failing(),),
        lambda: (study_fixture.planned(),),
        lambda: (Study(schema_version=SCHEMA_VERSION, known=[KnownStudy(name="a", title="b", source="")]),),
    ),
    "wulf.tools.trace.page.view.build": (lambda: (trace(),),),
    "wulf.tools.tune.page.view.build": (
        lambda: (tuning_fixture.make(),),
        lambda: (whole_fixture.make(),),
        lambda: (tuning_fixture.failing(),),
        lambda: (tuning_fixture.empty(),),
    ),
    "wulf.tools.watch.page.view.build": (watch,),
    "wulf.tools.worth.page.view.build": (lambda: (predict_fixture.valued(),),),
}
CASES = [(name, place) for name, samples in SUBJECTS.items() for place in range(len(samples))]


@functools.cache
def sample(name: str, place: int) -> Sequence[Any]:
    """Return what a page is made of."""
    return SUBJECTS[name][place]()


def page(name: str, records: Sequence[Any]) -> Page:
    """Return the page of records."""
    module, _, function = name.rpartition(".")
    made = getattr(importlib.import_module(module), function)(*records)
    assert isinstance(made, Page)
    return made


def makers() -> Iterator[str]:
    """Yield every public function of `wulf` that returns a page."""
    for package in ("wulf.page", "wulf.tools", "wulf.compose"):
        root = importlib.import_module(package)
        for found in pkgutil.walk_packages(root.__path__, f"{package}."):
            module = importlib.import_module(found.name)
            for name, function in inspect.getmembers(module, inspect.isfunction):
                returns = function.__annotations__.get("return")
                if (
                    function.__module__ == found.name
                    and returns in ("Page", Page)
                    and not name.startswith("_")
                ):
                    yield f"{found.name}.{name}"

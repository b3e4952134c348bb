"""False "better" or "worse" when nothing has changed: in simulation, and in 100 real pairs of runs.

A pair is two runs of the same operation between the same two virtual nodes, compared exactly as
``wulf compare`` does. Goal: at most 5 % of the pairs get a verdict "better" or "worse" (overall), in the
simulation and for real.
"""

from __future__ import annotations

from collections import Counter

from bench import aa_sim, common
from wulf.base.records import Analysis, LaunchResult, Operation, Part, Plan, Workload
from wulf.node.fleet import preparation
from wulf.node.measuring.analysis import analyze_results
from wulf.node.probe import schedule
from wulf.node.probe.execute import RunLaunch
from wulf.stats import estimate

OPS = ("tcp_rr", "mpi_pingpong")
SIZES = [1, 1024, 65536]
LAUNCHES = 6


def _plan(op: str) -> Plan:
    return Plan(
        workload=Workload(
            parts=[Part(op=op, sizes_bytes=SIZES, places=[common.PAIR])], sweeps=5, visit_us=1000
        ),
        ladder="named",
        max_size_bytes=max(SIZES),
        precision=0.02,
        confidence=0.95,
        budget_s=60,
        min_launches=LAUNCHES,
        max_launches=LAUNCHES,
        seed=1,
    )


def run(plan: Plan, operation: Operation, launch: RunLaunch, name: str, first: int) -> Analysis:
    """Measure one run of a few launches."""
    results: list[LaunchResult] = []
    for index in range(first, first + LAUNCHES):
        wanted = schedule.launch_plan(plan, operation, [common.PAIR], SIZES, index, "measure")
        results.append(launch(wanted))
        if results[-1].launch.error:
            raise SystemExit(f"bench: {results[-1].launch.error}")
    return analyze_results(name, plan, [operation], [], results)


def real(pairs: int) -> Counter[str]:
    """Verdicts of so many real A/A pairs."""
    verdicts: Counter[str] = Counter()
    with common.pair() as where:
        tools = preparation.toolbox(OPS, "openmpi", print)
        with preparation.connect(where.config, common.PAIR, print) as (transport, nodes):
            launch = preparation.ready(where.config, transport, nodes, tools, print).launch
            for number in range(pairs):
                operation = tools.operations[number % len(OPS)]
                plan = _plan(operation.name)
                first = 2 * LAUNCHES * number
                base = run(plan, operation, launch, "base", first)
                candidate = run(plan, operation, launch, "candidate", first + LAUNCHES)
                comparison = estimate.compare(base, candidate, [], [])
                verdicts[comparison.verdict] += 1
                if (number + 1) % 10 == 0:
                    print(f"  {number + 1} pairs: {dict(verdicts)}", flush=True)
    return verdicts


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    quick = "--quick" in arguments
    simulated = aa_sim.worst_rate(aa_sim.false_rates(300 if quick else 1000))
    print(f"  simulation: worst false better/worse rate {simulated:.3f}")
    pairs = 10 if quick else 100
    verdicts = real(pairs)
    false = sum(count for verdict, count in verdicts.items() if verdict in ("better", "worse", "mixed"))
    print(f"  real: {dict(verdicts)}; false better/worse: {false} of {pairs}")
    return common.finish(
        "aa",
        [
            common.Figure(name="simulation", value=simulated, goal=0.05),
            common.Figure(name="real", value=false / pairs, goal=0.05),
        ],
    )

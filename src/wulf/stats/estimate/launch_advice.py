"""What the reader of a run must be told of its nodes and launches, each with what to do about it.  Pure."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from wulf.base.nodeset import fold, fold_reasons, impersonal
from wulf.base.records import Advice, Launch, LaunchResult, NodeRecord, Plan, Sample
from wulf.base.text import count, printable
from wulf.base.units import format_bytes, format_time
from wulf.stats.estimate import advice_words as words
from wulf.stats.estimate.advice_words import Stream

#: The probe's clock may cost this much of what it measures; the probe itself aims at 0.05.
CLOCK_SHARE = 0.08
#: Noise alone leaves some series unsettled; more than this share of them is worth a word.
WARMUP_SHARE = 0.1


def unreachable(nodes: Iterable[NodeRecord]) -> Iterator[Advice]:
    """Name the nodes that do not answer."""
    lost = {
        node.node: node.error or f"{node.node} does not answer"
        for node in nodes
        if not node.reachable or node.error
    }
    for names, reason in fold_reasons(lost):
        yield Advice(
            kind="unreachable_node",
            severity="error",
            subject=fold(names),
            text=printable(reason, 300),
            advice=f"Nothing was measured with it. Try 'ssh {names[0]} true', then measure again.",
        )


def left_out(plan: Plan) -> Iterator[Advice]:
    """Name the nodes that operations were measured without."""
    groups: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for absent in plan.left_out:
        groups[tuple(absent.ops)][absent.node] = absent.reason
    for ops, names, reason in ((ops, *found) for ops, of in groups.items() for found in fold_reasons(of)):
        yield Advice(
            kind="left_out_node",
            severity="error",
            subject=f"{', '.join(ops)} {fold(names)}",
            text=printable(reason, 300),
            advice="The others were measured without it. Fix that there, then measure again.",
        )


def failed(results: Iterable[LaunchResult], plan: Plan) -> Iterator[Advice]:
    """Streams whose launches failed for the same reason share one advice; a node's name is no other reason."""
    failed: dict[str, list[tuple[Stream, str]]] = defaultdict(list)
    for result in results:
        if result.launch.status == "failed":
            error = result.launch.error or "no reason is known"
            cases = [((result.launch.op, place), error) for place in result.launch.measured]
            failed[impersonal(error, result.launch.place)] += cases
    for alike, cases in failed.items():
        errors = {error for _, error in cases}
        yield Advice(
            kind="failed_launch",
            severity="error",
            subject=words.subjects(list(dict.fromkeys(stream for stream, _ in cases)), plan),
            text=f"{count(len(cases), 'launch')} failed: {printable(errors.pop() if len(errors) == 1 else alike, 300)}",
            advice="Failed launches are not in any figure. A failure that comes back needs its cause removed.",
        )


def not_begun(results: Sequence[LaunchResult], plan: Plan) -> Iterator[Advice]:
    """Operations that the run did not come to; what failed, or had lost its node, is said elsewhere."""
    tried = {
        (result.launch.op, place)
        for result in results
        if result.launch.purpose == "measure"
        for place in result.launch.measured
    }
    out = {(op, absent.node) for absent in plan.left_out for op in absent.ops}
    out |= {
        (op, node) for result in results for node in result.launch.unreachable for op in plan.workload.ops
    }
    deserted = ", or no other pair was left to measure at the same time" if plan.workload.at_once else ""
    for part in plan.workload.parts:
        op = part.op
        able = [place for place in part.places if not any((op, node) in out for node in place)]
        missing = [place for place in able if (op, place) not in tried]
        some = f" {len(missing)} of {len(able)} "
        between = f" between{some}pairs" if not part.group else f" on{some}nodes" if len(able) > 1 else ""
        if missing:
            yield Advice(
                kind="not_begun",
                severity="warning",
                subject=op,
                text=f"not measured{between}: the run ended before{deserted}",
                advice="The budget is spent in the order of --ops. To measure the rest: "
                "wulf measure --resume latest.",
            )


def contaminated(results: Iterable[LaunchResult]) -> Iterator[Advice]:
    """Say how many launches ran under other load."""
    counted = [result.launch for result in results if result.launch.purpose == "measure"]
    suspect = [launch for launch in counted if launch.contamination]
    if suspect:
        reasons = Counter(reason for launch in suspect for reason in launch.contamination)
        yield Advice(
            kind="contaminated",
            severity="warning",
            subject=", ".join(sorted({node for launch in suspect for node in launch.place})[:8]),
            text=f"{len(suspect)} of {count(len(counted), 'launch')} contaminated; most often: "
            f"{printable(reasons.most_common(1)[0][0], 200)}",
            advice="Stop other work on the nodes and measure again; clean launches are preferred where there "
            "are enough.",
        )


def one_machine(results: Sequence[LaunchResult]) -> Iterator[Advice]:
    """Say what was measured where no network was between the two ends."""
    launches = [result.launch for result in results if result.launch.probe is not None]
    inside = sorted({x.op for x in launches if x.probe is not None and x.probe.mpi and _hosts(x) == 1})
    # mpirun's --host is 127.0.0.1, too, whatever its ranks talk over.
    loopback = sorted(
        {x.op for x in launches if any(word.startswith("127.") for word in x.argv)} - set(inside)
    )
    if inside:
        yield Advice(
            kind="one_machine",
            severity="note",
            subject=", ".join(inside),
            text="all ranks were on one machine: this is the MPI library's shared memory, not a network, unless "
            "the library was configured otherwise",
            advice="With OMPI_MCA_btl=self,tcp before the command Open MPI goes over loopback there, too.",
        )
    if loopback:
        yield Advice(
            kind="one_machine",
            severity="note",
            subject=", ".join(loopback),
            text="both ends were on one machine: this is its loopback, not a network",
            advice="It shows what the kernel's part costs; measure between two nodes for the rest.",
        )


def _hosts(launch: Launch) -> int:
    """How many machines the ranks of a launch were on; 0 when fewer than two ranks said so."""
    hosts = launch.probe.hosts if launch.probe is not None else []
    return len(set(hosts)) if len(hosts) > 1 else 0


def shared_cpu(results: Iterable[LaunchResult]) -> Iterator[Advice]:
    """Say whose ranks share a CPU."""
    sharing = [r.launch for r in results if r.launch.probe is not None and r.launch.probe.yields]
    pairs = sorted({place for launch in sharing for place in launch.measured})
    if pairs:
        yield Advice(
            kind="shared_cpu",
            severity="note",
            subject=", ".join("–".join(pair) if len(pair) < 3 else words.group(pair) for pair in pairs[:8]),
            text="ranks share a CPU and yield it while they wait",
            advice="These figures contain the switch from one process to the other; do not compare them with "
            "those of nodes that have a CPU each.",
        )


def company(results: Iterable[LaunchResult]) -> Iterator[Advice]:
    """Tell that pairs were measured beside more others in one launch than in another."""
    beside: dict[str, set[int]] = defaultdict(set)
    for result in results:
        if result.launch.pairs and result.launch.status == "ok":
            beside[result.launch.op].add(len(result.launch.pairs) - 1)
    for op, counts in beside.items():
        if len(counts) > 1:
            yield Advice(
                kind="company",
                severity="note",
                subject=op,
                text=f"a pair was measured at the same time as {min(counts)} to {count(max(counts), 'other')}",
                advice="Its figures hold for all of these together. Name pairs with every node in exactly one "
                "(--pairs) to have the same ones in every launch.",
            )


def clock_cost(results: Iterable[LaunchResult]) -> Iterator[Advice]:
    """Warn of a clock that costs much of what was timed singly; the probe times whole visits where it can tell."""
    shares: dict[str, tuple[float, float]] = {}
    for result in results:
        if result.launch.probe is None:
            continue
        cost_ns = result.launch.probe.clock.cost_ns
        for sample in result.samples:
            if sample.timing == "iteration" and sample.batch_medians_ns:
                share = cost_ns / max(statistics.median(sample.batch_medians_ns), 1.0)
                shares[sample.cell.op] = max(shares.get(sample.cell.op, (0.0, 0.0)), (share, cost_ns))
    for op, (share, cost_ns) in shares.items():
        if share >= CLOCK_SHARE:
            yield Advice(
                kind="clock_cost",
                severity="warning",
                subject=op,
                text=f"reading the clock takes {format_time(cost_ns * 1e-9)}, {share:.0%} of the fastest message",
                advice="Check the clock source of the nodes (it should be tsc).",
            )


def warmup(results: Iterable[LaunchResult], plan: Plan) -> Iterator[Advice]:
    """Say whose times had not settled when the measurement began."""
    samples: dict[Stream, list[Sample]] = defaultdict(list)
    for result in results:
        if result.launch.purpose == "measure" and result.launch.status == "ok":
            for sample in result.samples:
                samples[result.launch.op, sample.cell.place].append(sample)
    for stream, group in samples.items():
        restless = {sample.cell.size_bytes for sample in group if not sample.warmup_settled}
        unsettled = sum(not sample.warmup_settled for sample in group)
        if unsettled > WARMUP_SHARE * len(group):
            yield Advice(
                kind="warmup",
                severity="note",
                subject=words.subject(stream, plan),
                text=f"times had not settled at the end of the warm-up in {unsettled} of "
                f"{count(len(group), 'series', 'series')}{_span(restless)}",
                advice="Some of the warm-up may be in the figures. Longer visits (--visit) settle it; a cluster that "
                "never settles is noisy or its clock frequency moves.",
            )


def _span(sizes: Collection[int]) -> str:
    """Return the smallest and the largest size in parentheses; nothing where there is none but zero."""
    ends = dict.fromkeys((min(sizes), max(sizes)))
    return f" ({' to '.join(map(format_bytes, ends))})" if any(ends) else ""

"""A run from its first launch to its last, on a clock that only its launches move."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from tests.unit.make_records import manifest, operation, plan, result, sample, workload
from wulf.base import store
from wulf.base.errors import UsageError
from wulf.base.records import LaunchResult, LeftOut, NodeRecord, command_operation
from wulf.base.records.measured import Parameter
from wulf.node.measuring import loop as procedure
from wulf.node.measuring import participants
from wulf.node.measuring.analysis import measuring
from wulf.node.measuring.participants import Task, places
from wulf.node.measuring.session import MeasureRequest, _called, _experiments, _on_each_cpu, _require_possible
from wulf.node.probe import ladder
from wulf.node.probe.suites import Experiment
from wulf.stats.estimate import advise

OPS = ["mpi_pingpong", "tcp_rr", "udp_rr", "tcp_stream"]
PAIRS = [("n0", "n1"), ("n1", "n2"), ("n2", "n0")]
SIZES = ladder.base_sizes("adaptive", 32)


class Clock:
    """Stands still but for launches."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


class Watcher:
    def __init__(self):
        self.said = []
        self.states = []
        self.stages = []

    def stage(self, text):
        self.stages.append(text)

    def launched(self, state):
        self.states.append(state)

    def fits(self, plan, fit, spent_s):
        self.said.append(fit)


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(procedure.time, "monotonic", found.monotonic)
    return found


def measured(tmp_path, clock, launch_s, earlier=(), **changes):
    values = dict(ops=OPS, pairs=PAIRS, ladder="adaptive", sizes_bytes=SIZES, max_size_bytes=32)
    wanted = plan(**values | changes)
    head = manifest(plan=wanted, operations=[operation(op, "net", 32) for op in OPS])

    def launch(what):
        clock.now += launch_s(what)
        samples = [
            sample(what.index, size, 10 + size / 100, what.place, what.op) for size in what.sizes_bytes
        ]
        made = result(what.index, pair=what.place, op=what.op, purpose=what.purpose).launch
        return LaunchResult(
            launch=msgspec.structs.replace(made, sizes_bytes=what.sizes_bytes), samples=samples
        )

    watcher = Watcher()
    with store.create(tmp_path / f"run{len(earlier)}", head) as writer:
        session = procedure.Session(writer, list(earlier), launch, watcher)
        session.announce()
        session.scout()
        complete = session.measure()
    return session, watcher, complete


def launches_of(session):
    return Counter((r.launch.op, r.launch.place) for r in measuring(session.results))


@pytest.mark.parametrize("launch_s", [1.0, 2.0, 3.0, 5.0, 8.0])
@pytest.mark.parametrize("fixed", ["adaptive", "imb"])
def test_what_is_begun_gets_an_interval(tmp_path, clock, launch_s, fixed):
    session, _, _ = measured(tmp_path, clock, lambda what: launch_s, budget_s=120.0, ladder=fixed)
    counts = launches_of(session)
    assert counts
    assert min(counts.values()) >= 6, counts
    assert clock.now <= 120 + launch_s
    begun = {op for op, _ in counts}
    assert begun == set(OPS[: len(begun)])


def test_an_operation_that_costs_more_than_was_thought_does_not_take_the_others_intervals(tmp_path, clock):
    session, watcher, complete = measured(
        tmp_path, clock, lambda what: 9.0 if what.op == "tcp_rr" else 1.0, budget_s=120.0, ladder="imb"
    )
    counts = launches_of(session)
    short = {stream: count for stream, count in counts.items() if count < 6}
    assert all(op == "tcp_rr" for op, _ in short), counts
    assert all(counts["mpi_pingpong", pair] >= 6 for pair in PAIRS)
    assert not complete
    assert watcher.said[0].complete, "before the first launch all seemed to fit"
    assert not watcher.said[-1].complete, "and then it was said what does not"


def test_what_was_not_come_to_is_told_and_comes_when_the_run_goes_on(tmp_path, clock):
    session, watcher, complete = measured(tmp_path, clock, lambda what: 3.0, budget_s=60.0)
    assert not complete
    assert watcher.said[-1].left_out
    first = launches_of(session)
    told = {
        advice.subject
        for advice in advise([], session.results, [], session.plan, [])
        if advice.kind == "not_begun"
    }
    assert told == {op for op in OPS for pair in PAIRS if (op, pair) not in first}
    sizes = {r.launch.op: r.launch.sizes_bytes for r in measuring(session.results)}
    again, _, _ = measured(tmp_path, clock, lambda what: 3.0, session.results, budget_s=1200.0)
    assert set(launches_of(again)) == {(op, pair) for op in OPS for pair in PAIRS}
    later = {(r.launch.op, tuple(r.launch.sizes_bytes)) for r in measuring(again.results)}
    assert all((op, tuple(size)) in later for op, size in sizes.items())
    assert len(later) == len(OPS), "an operation keeps its sizes when a run goes on"


def test_scouts_only_take_time_that_nothing_else_needs(tmp_path, clock):
    tight, _, _ = measured(tmp_path, clock, lambda what: 1.4, budget_s=120.0)
    scouts = Counter(r.launch.op for r in tight.results if r.launch.purpose == "scout")
    assert set(scouts) == set(OPS)
    assert sum(scouts.values()) <= 5
    assert Counter(launches_of(tight).values()).keys() >= {6}
    assert len(launches_of(tight)) == 12


def test_progress_never_promises_less_than_the_intervals_take(tmp_path, clock):
    _, watcher, _ = measured(tmp_path, clock, lambda what: 1.0, budget_s=60.0, ladder="imb", ops=OPS[:1])
    lacking = [state for state in watcher.states if state.streams_with_interval < state.streams]
    assert all(state.left.intervals_s > 0 for state in lacking)
    assert all(state.left.most_s <= 60.0 - state.spent_s + 1e-9 for state in watcher.states)
    assert watcher.states[-1].streams_with_interval == 3


def test_who_takes_part_in_what_is_not_between_pairs():
    ring = [("n0", "n1"), ("n1", "n2"), ("n2", "n0")]
    group = msgspec.structs.replace(operation("mpi_bcast"), ranks=0)
    absent = LeftOut(node="n1", ops=["mpi_bcast"], reason="n1: no MPI")
    assert places(Task(operation(), []), ring, [absent]) == ring
    assert places(Task(operation(), [], inside=True), ring, []) == [(n, n) for n in ("n0", "n1", "n2")]
    assert places(Task(group, [], ranks_per_node=2), ring[:1], []) == [("n0", "n0", "n1", "n1")]
    assert places(Task(group, []), ring, []) == [("n0", "n1", "n2")]
    assert places(Task(group, []), ring, [absent]) == [("n0", "n2")]
    assert places(Task(group, [], ranks=3, ranks_per_node=2), ring, []) == [("n0", "n0", "n1")]
    assert places(Task(group, [], ranks=2, ranks_per_node=2), ring, []) == [], "both are on one node"
    assert places(Task(group, []), ring[:1], [absent]) == [], "a group is more than one"
    assert places(Task(command_operation("./solve"), []), ring, [absent]) == [("n0",)]


class Notes:
    """A watcher that keeps what it is told."""

    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


def on_cpu(name="noise_on", number="CPU"):
    return msgspec.structs.replace(
        operation(name, "none", 0), ranks=1, parameter=Parameter(name=number, usual=0, low=0, high=8191)
    )


def each_cpu(op="noise_on"):
    return Experiment(op=op, name="noise_cpu{cpu}", sizes=[0], each_cpu=True)


def test_an_experiment_for_each_cpu_is_made_where_the_cpu_is():
    request = MeasureRequest(
        config=None,
        pairs=[("a", "b"), ("c", "a")],
        ladder="suite",
        sizes_bytes=[0],
        experiments=(each_cpu(),),
    )
    tasks = list(_experiments(request, {"noise_on": on_cpu()}))
    records = [
        NodeRecord(node=node, reachable=True, facts={"cpu.allowed": cpus} if cpus else {})
        for node, cpus in (("a", "0-1"), ("b", "1,3"), ("c", ""))
    ]
    watcher = Notes()
    found = list(_on_each_cpu(tasks, records, watcher))
    assert [(task.operation.name, task.operation.asked) for task in found] == [
        ("noise_cpu0", "noise_on:0"),
        ("noise_cpu1", "noise_on:1"),
        ("noise_cpu3", "noise_on:3"),
    ]
    assert [places(task, request.pairs, []) for task in found] == [
        [("a",)],
        [("a",), ("b",)],
        [("b",)],
    ]
    assert watcher.notes == ["noise_cpu{cpu} is not measured on c: no CPUs are known there"]


@pytest.mark.parametrize("made", [on_cpu(number="µs of work"), operation("noise_on", "none", 0)])
def test_what_is_not_made_on_one_cpu_is_not_made_on_each(made):
    request = MeasureRequest(
        config=None, pairs=[("a", "b")], ladder="my.toml", sizes_bytes=[0], experiments=(each_cpu(),)
    )
    with pytest.raises(
        UsageError, match=r"my.toml: experiment 1 \(noise_on\): each_cpu: noise_on is not performed on"
    ):
        list(_experiments(request, {"noise_on": made}))


def test_too_few_free_nodes_leave_nothing_beside_traffic():
    beside = msgspec.structs.replace(operation("tcp_rr", "net"), beside_traffic=True)
    ring = [("n0", "n1"), ("n1", "n2"), ("n2", "n3"), ("n3", "n0")]
    wanted = workload(ops=["tcp_rr", "mpi_pingpong"], pairs=ring)
    known = [beside, operation()]
    assert participants.absent(wanted, known, []) == []
    gone = LeftOut(node="n3", ops=["tcp_rr"], reason="n3: no probe")
    found = participants.absent(wanted, known, [gone])
    assert found[0] == gone
    assert [(one.node, one.ops) for one in found[1:]] == [(f"n{i}", ["tcp_rr"]) for i in range(3)]
    assert "leaves 1 of 3 nodes free, and background traffic needs two" in found[1].reason
    assert participants.absent(wanted, [operation("tcp_rr", "net"), operation()], [gone]) == [gone]


def test_what_is_beside_traffic_has_a_name_of_its_own():
    plain = operation("tcp_rr", "net")
    assert _called(plain, None, False) == plain
    beside = _called(plain, None, True)
    assert (beside.name, beside.asked, beside.beside_traffic) == ("tcp_rr_beside_traffic", "tcp_rr", True)
    named = _called(plain, "crowded", True)
    assert (named.name, named.asked, named.beside_traffic) == ("crowded", "tcp_rr", True)
    incast = _called(plain, None, "incast")
    assert (incast.name, incast.beside_traffic, incast.beside_pattern) == (
        "tcp_rr_beside_incast",
        True,
        "incast",
    )
    request = MeasureRequest(
        config=None, pairs=[("a", "b"), ("c", "d")], ladder="imb", sizes_bytes=[1], at_once=True
    )
    with pytest.raises(UsageError, match="takes the other nodes for its own traffic"):
        _require_possible(request, [beside])


FOUR = ["a", "b", "c", "d"]
RING = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]


def at_once(tmp_path, clock, fails=lambda what: False, **changes):
    """Measure a ring of four nodes, opposite pairs at the same time."""
    wanted = plan(ops=["mpi_pingpong"], pairs=RING, at_once=True, ladder="imb", sizes_bytes=[1, 8], **changes)
    head = manifest(plan=wanted, operations=[operation("mpi_pingpong", "mpi", 8)])

    def launch(what):
        clock.now += 1.0
        status = "failed" if fails(what) else "ok"
        made = result(what.index, pair=what.place, op=what.op, purpose=what.purpose, status=status).launch
        samples = [
            sample(what.index, size, 10 + size / 100, pair, what.op)
            for pair in what.pairs or [what.place]
            for size in what.sizes_bytes
        ]
        return LaunchResult(
            launch=msgspec.structs.replace(made, pairs=what.pairs, sizes_bytes=what.sizes_bytes),
            samples=[] if fails(what) else samples,
        )

    with store.create(tmp_path / "run", head) as writer:
        session = procedure.Session(writer, [], launch, Watcher())
        complete = session.measure()
    return session, complete


def test_pairs_at_once_share_a_launch(tmp_path, clock):
    session, complete = at_once(tmp_path, clock, budget_s=100.0)
    assert complete
    assert {frozenset(r.launch.pairs) for r in session.results} == {
        frozenset(RING[::2]),
        frozenset(RING[1::2]),
    }
    assert all(len(r.launch.place) == 4 for r in session.results)
    counts = Counter(
        sample.cell.place for r in session.results for sample in r.samples if sample.cell.size_bytes == 1
    )
    assert set(counts) == set(RING) and min(counts.values()) >= 6
    assert 2 * len(session.results) == sum(counts.values())


def test_a_pair_that_fails_leaves_those_without_other_company_unmeasured(tmp_path, clock):
    bad = RING[0]
    session, complete = at_once(
        tmp_path, clock, lambda what: bad in (what.pairs or [what.place]), budget_s=200.0
    )
    assert complete
    evidence = measuring(session.results)
    assert all(len(r.launch.pairs) == 2 for r in evidence), "what is measured alone is no evidence"
    assert {s.cell.place for r in evidence for s in r.samples} == {RING[1], RING[3]}
    assert clock.now < 40, "it is not tried for ever"


def test_a_node_that_is_gone_leaves_no_figures_of_pairs_alone(tmp_path, clock):
    session, _ = at_once(
        tmp_path, clock, lambda what: clock.now > 5 and "d" in what.place, budget_s=200.0, max_launches=12
    )
    assert all(len(r.launch.pairs) == 2 for r in measuring(session.results))


@pytest.mark.parametrize("pairs", [[("a", "b"), ("b", "c")], [("a", "b"), ("c", "d"), ("b", "c")]])
def test_pairs_without_company_cannot_be_measured_at_once(pairs):
    request = MeasureRequest(config=None, pairs=pairs, ladder="imb", sizes_bytes=[1], at_once=True)
    with pytest.raises(UsageError, match=r"--at-once: .*b:c"):
        _require_possible(request, [operation()])
    with pytest.raises(UsageError, match=r"--at-once: .*b:c"):
        _require_possible(request, [operation("tcp_rr", "net")])
    alone = msgspec.structs.replace(operation("wake", "none"), ranks=1)
    with pytest.raises(UsageError, match="wake is not measured between two nodes"):
        _require_possible(request, [alone])


@pytest.mark.parametrize(("largest", "bends"), [(0, False), (32, True)])
def test_no_bend_is_looked_for_where_no_size_is_varied(tmp_path, largest, bends):
    head = manifest(
        plan=plan(
            ladder="adaptive",
            sizes_bytes=ladder.sizes_of(operation(largest=largest), SIZES),
            max_size_bytes=32,
            min_launches=2,
            max_launches=2,
        ),
        operations=[operation("mpi_pingpong", "mpi", largest)],
    )

    def launch(what):
        samples = [sample(what.index, size) for size in what.sizes_bytes]
        made = result(what.index, purpose=what.purpose).launch
        return LaunchResult(
            launch=msgspec.structs.replace(made, sizes_bytes=what.sizes_bytes), samples=samples
        )

    watcher = Watcher()
    with store.create(tmp_path / "run", head) as writer:
        procedure.measure(writer, [], launch, watcher)
    assert [text for text in watcher.stages if "bends" in text] == (
        ["finding the sizes at which the curve bends"] if bends else []
    )
    assert watcher.stages[-1] == "measuring"

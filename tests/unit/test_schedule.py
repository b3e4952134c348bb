"""Which launch comes next."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.make_records import PAIR, operation, plan, result, sample
from wulf.base.records import LaunchResult, LeftOut
from wulf.node.probe import schedule
from wulf.node.probe.ladder import base_sizes, sizes_of

PAIRS = [PAIR, ("node03", "node04")]
OPS = {name: operation(name) for name in ("mpi_pingpong", "tcp_rr")}


def progress(launches, clean=None, missing=3):
    return schedule.Progress(launches=launches, clean=launches if clean is None else clean, missing=missing)


def test_a_block_has_every_stream_once_and_its_order_changes():
    wide = plan(ops=list(OPS), pairs=PAIRS)
    every = schedule.streams(wide)
    blocks = [schedule.next_block(wide, every, {}, block) for block in range(20)]
    assert all(Counter(block) == Counter((op, pair) for op in OPS for pair in PAIRS) for block in blocks)
    assert len({tuple(block) for block in blocks}) > 5
    assert blocks[3] == schedule.next_block(wide, every, {}, 3)


def test_a_stream_ends_when_it_is_precise_or_has_had_its_launches():
    assert not schedule.enough(plan(), None)
    assert not schedule.enough(plan(), progress(5, missing=0))
    assert schedule.enough(plan(), progress(6, missing=0))
    assert not schedule.enough(plan(), progress(39))
    assert schedule.enough(plan(), progress(40))


def test_contaminated_launches_are_repeated():
    assert not schedule.enough(plan(), progress(8, clean=4, missing=0))
    assert schedule.enough(plan(), progress(24, missing=500)), "there is no hope"
    assert not schedule.enough(plan(), progress(23, missing=500)), "groups of launches do not show in fewer"


def test_a_stream_that_keeps_failing_is_given_up():
    failed = [result(index, status="failed").launch for index in range(3)]
    assert schedule.Endings(failed).give_up(("mpi_pingpong", PAIR))
    assert not schedule.Endings([*failed, result(4).launch]).give_up(("mpi_pingpong", PAIR))


def test_a_node_that_is_gone_is_left_out_and_its_neighbours_are_not():
    def lost(index, pair, *nodes):
        launch = result(index, status="failed", pair=pair).launch
        return msgspec.structs.replace(launch, unreachable=list(nodes))

    gone = [lost(0, ("a", "b"), "b"), lost(1, ("b", "c"), "b")]
    endings = schedule.Endings(gone)
    assert endings.give_up(("tcp_rr", ("d", "b")))
    assert not endings.give_up(("tcp_rr", ("a", "c")))
    assert not schedule.Endings(gone[:1]).give_up(("tcp_rr", ("d", "b")))
    assert endings.add(result(2, pair=("a", "b")).launch), "it is there again"
    assert not endings.give_up(("tcp_rr", ("d", "b")))
    assert not endings.add(result(3, pair=("a", "b")).launch), "nothing is new"


def test_sizes_an_operation_cannot_do_are_left_out():
    assert sizes_of(operation(largest=128), [64, 128, 256]) == [64, 128]
    assert sizes_of(operation(largest=32), [64, 128]) == [0]


def scout(index, sizes, time_of):
    samples = [sample(index, size, time_of(size), spread=0.0) for size in sizes]
    return LaunchResult(launch=result(index, tuple(sizes), purpose="scout").launch, samples=samples)


def test_scouts_find_a_step_to_the_byte_and_end():
    adaptive = plan(ladder="adaptive", sizes_bytes=base_sizes("adaptive"))
    base = adaptive.workload.part("mpi_pingpong").sizes_bytes

    def time_of(size):
        return (10 + size / 1000) * (1.5 if size >= 40_000 else 1.0)

    results = []
    while (sizes := schedule.next_scout_sizes(adaptive, base, "mpi_pingpong", results)) is not None:
        results.append(scout(len(results), sizes, time_of))
    known = schedule.ladders(adaptive, results)["mpi_pingpong"]
    assert {39_999, 40_000} <= set(known)
    assert len(results) <= schedule.MAX_SCOUTS
    assert len(known) <= len(base) + schedule.MAX_ADDED


def test_a_fixed_ladder_has_no_scouts():
    assert schedule.next_scout_sizes(plan(), [64], "mpi_pingpong", []) is None


def test_seeds_differ_between_launches_and_repeat_between_runs():
    make = lambda index: schedule.launch_plan(plan(), OPS["tcp_rr"], [PAIR], [1], index, "measure")  # noqa: E731
    assert make(1).seed != make(2).seed
    assert make(1) == make(1)


def test_the_nodes_that_a_pair_leaves_free_stream_two_by_two_in_the_order_of_the_run():
    ring = [("n3", "n1"), ("n1", "n2"), ("n2", "n5"), ("n5", "n4"), ("n4", "n6"), ("n6", "n3")]
    beside = msgspec.structs.replace(OPS["tcp_rr"], beside_traffic=True)
    wanted = plan(ops=["tcp_rr"], pairs=ring)

    def streams(place, of=beside, run=wanted):
        return schedule.launch_plan(run, of, [place], [1], 0, "measure").beside

    assert streams(("n1", "n2")) == [("n3", "n5"), ("n4", "n6")]
    assert streams(("n3", "n1")) == [("n2", "n5"), ("n4", "n6")]
    assert streams(("n1", "n2"), OPS["tcp_rr"]) == []
    absent = LeftOut(node="n5", ops=["tcp_rr"], reason="n5: no probe")
    assert streams(("n1", "n2"), run=plan(ops=["tcp_rr"], pairs=ring, left_out=[absent])) == [("n3", "n4")]


def test_streams_that_lack_an_interval_come_before_those_that_narrow_theirs():
    wide = plan(pairs=PAIRS)
    ready, behind = [("mpi_pingpong", pair) for pair in PAIRS]
    state = {ready: progress(6, missing=9), behind: progress(5, missing=1)}
    assert schedule.next_block(wide, [ready, behind], state, 0) == [behind]
    assert schedule.next_block(wide, [ready], state, 0) == [ready]
    assert set(schedule.next_block(wide, [ready, behind], state | {behind: progress(6)}, 0)) == {
        ready,
        behind,
    }


def outlook(of, states, done=()):
    found = schedule.Outlook(of)
    for stream, state in states.items():
        found.put(stream, None, done=False)
        found.put(stream, state, done=stream in done)
    return found


def test_the_forecast_is_bounded_by_the_budget_and_by_the_most_launches():
    wide = plan(pairs=PAIRS, max_launches=10)
    ready, behind = [("mpi_pingpong", pair) for pair in PAIRS]
    states = {ready: progress(9, missing=7), behind: progress(4, missing=1)}
    left = outlook(wide, states).forecast({"mpi_pingpong": 2.0}, 100.0)
    assert (left.intervals_s, left.least_s, left.most_s) == (4.0, 6.0, 14.0)
    left = outlook(wide, states).forecast({"mpi_pingpong": 2.0}, 5.0)
    assert (left.intervals_s, left.least_s, left.most_s) == (4.0, 5.0, 5.0)
    # A forecast of one more launch, again and again, is not the time that is left.
    left = outlook(plan(), {ready: progress(8, missing=1)}).forecast({"mpi_pingpong": 1.0}, 60.0)
    assert (left.least_s, left.most_s) == (1.0, 32.0)


def test_the_outlook_counts_what_has_an_interval_and_what_is_done():
    ready, behind = [("mpi_pingpong", pair) for pair in PAIRS]
    both = outlook(
        plan(pairs=PAIRS), {ready: progress(9, missing=0), behind: progress(4, missing=1)}, {ready}
    )
    assert (both.streams, both.with_interval, both.done) == (2, 1, 1)
    assert both.forecast({"mpi_pingpong": 1.0}, 100.0).most_s == 36.0


ALL_PAIRS = list(combinations([f"n{number}" for number in range(7)], 2))


@given(st.lists(st.sampled_from(ALL_PAIRS), min_size=1, unique=True), st.sets(st.sampled_from(ALL_PAIRS)))
def test_pairs_at_once_have_no_node_in_common_and_no_room_for_another(pairs, failing):
    wide = plan(pairs=pairs, at_once=True)
    every = schedule.streams(wide)
    block = schedule.next_block(wide, every, {}, 0)
    made = schedule.jobs(wide, block, every, lambda stream: stream[1] in failing)
    assert {stream for job in made for stream in job} == set(every)
    for job in made:
        busy = [node for _, pair in job for node in pair]
        assert len(busy) == len(set(busy))
        if len(job) > 1 or job[0][1] not in failing:
            assert not failing & {pair for _, pair in job}
            assert all(pair in failing or set(pair) & set(busy) for pair in pairs)
    assert schedule.jobs(plan(pairs=pairs), block, every, lambda _: False) == [[stream] for stream in block]


@given(st.lists(st.sampled_from(ALL_PAIRS), min_size=1, unique=True))
def test_over_sockets_each_pair_has_a_launch_of_its_own_with_company_of_other_nodes(pairs):
    wide = plan(ops=["tcp_rr"], pairs=pairs, at_once=True)
    wide = msgspec.structs.replace(
        wide, workload=msgspec.structs.replace(wide.workload, accompanied=["tcp_rr"])
    )
    every = schedule.streams(wide)
    made = schedule.jobs(wide, every, every, lambda _: False)
    assert [job[0] for job in made] == every
    for job in made:
        first, *others = [pair for _, pair in job]
        launch = schedule.launch_plan(wide, OPS["tcp_rr"], [first, *others], [64], 0, "measure")
        assert (launch.place, launch.pairs, launch.beside) == (first, [], others)
        assert launch.beside_op == ("tcp_rr" if others else "")
        busy = [node for pair in (first, *others) for node in pair]
        assert len(busy) == len(set(busy))
        assert all(set(pair) & set(busy) for pair in pairs)


def test_other_nodes_stream_in_pairs_to_one_or_each_to_each():
    wide = plan(ops=["tcp_rr"], pairs=[("a", "b"), ("c", "d"), ("e", "f")])
    made = {
        pattern: schedule.free_pairs(
            wide, msgspec.structs.replace(OPS["tcp_rr"], beside_pattern=pattern), ("a", "b")
        )
        for pattern in ("", "incast", "all-to-all")
    }
    assert made[""] == [("c", "d"), ("e", "f")]
    assert made["incast"] == [("d", "c"), ("e", "c"), ("f", "c")]
    assert len(made["all-to-all"]) == len(set(made["all-to-all"])) == 12


def test_operations_are_not_mixed_in_one_job():
    wide = plan(ops=["mpi_pingpong", "mpi_other"], pairs=PAIRS, at_once=True)
    every = schedule.streams(wide)
    made = schedule.jobs(wide, every, every, lambda _: False)
    assert [{op for op, _ in job} for job in made] == [{"mpi_pingpong"}, {"mpi_other"}]
    assert schedule.width(wide, "mpi_pingpong") == 2


def test_a_job_of_pairs_that_fails_counts_for_each_of_them():
    launch = msgspec.structs.replace(
        result(0, status="failed").launch, place=(*PAIRS[0], *PAIRS[1]), pairs=PAIRS
    )
    endings = schedule.Endings([launch])
    assert all(endings.failing(("mpi_pingpong", pair)) for pair in PAIRS)
    endings.add(result(1, pair=PAIRS[1]).launch)
    assert endings.failing(("mpi_pingpong", PAIRS[0])) and not endings.failing(("mpi_pingpong", PAIRS[1]))


@given(st.lists(st.sampled_from([*ALL_PAIRS, *((b, a) for a, b in ALL_PAIRS)]), unique=True))
def test_who_is_alone_is_counted_as_it_is_looked_for(pairs):
    among = [(op, pair) for op in ("x", "y") for pair in pairs]
    looked_for = [
        (op, pair)
        for op, pair in among
        if not any(set(pair).isdisjoint(other) for o, other in among if o == op)
    ]
    assert schedule.alone(among) == looked_for


def test_what_fails_only_in_company_is_given_up():
    together = msgspec.structs.replace(
        result(0, status="failed").launch, place=(*PAIRS[0], *PAIRS[1]), pairs=PAIRS
    )
    endings = schedule.Endings()
    for _ in range(schedule.MAX_FAILURES):
        assert not endings.give_up(("mpi_pingpong", PAIRS[0]))
        endings.add(together)
        endings.add(result(1, pair=PAIRS[0], purpose="scout").launch)
    assert endings.give_up(("mpi_pingpong", PAIRS[0]))

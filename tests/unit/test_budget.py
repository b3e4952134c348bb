"""What fits into a budget, and what is said of it."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.make_records import operation, plan, result
from wulf.base.records import LeftOut
from wulf.face.cli.measure_progress import time_left, what_fits
from wulf.node.fleet import allocation
from wulf.node.measuring.fitting import assumed, choices, fit_of, forecast
from wulf.node.probe import budget, ladder, schedule, suites

OPS = ["mpi_pingpong", "tcp_rr", "udp_rr", "tcp_stream"]
OPERATIONS = [operation(name, "mpi" if name == "mpi_pingpong" else "net", 1 << 20) for name in OPS]
SIZES = ladder.base_sizes("adaptive")


def ring(count):
    return [(f"n{k}", f"n{(k + 1) % count}") for k in range(count)]


def wanted(nodes, budget_s, **changes):
    values = dict(
        ops=OPS,
        pairs=ring(nodes),
        ladder="adaptive",
        sizes_bytes=SIZES,
        max_size_bytes=SIZES[-1],
        budget_s=budget_s,
        visit_us=1000,
    )
    return plan(**values | changes)


def fit(run, look_s=0.3):
    return forecast(run, OPERATIONS, look_s)


def needs(run, answer, look_s=0.3):
    """Time of what was chosen, added up here."""
    total = 0.0
    for op, _ in answer.streams:
        transport = "mpi" if op == "mpi_pingpong" else "net"
        each = budget.assumed(run, transport, SIZES, look_s).launch_s(answer.sizes[op])
        total += run.min_launches * each
    return total


def test_everything_fits_when_there_is_time():
    run = wanted(3, 3600.0)
    answer = fit(run)
    assert answer.complete
    assert answer.streams == schedule.streams(run)
    assert {op: len(sizes) for op, sizes in answer.sizes.items()} == dict.fromkeys(OPS, len(SIZES))


def test_fewer_sizes_come_before_fewer_operations_and_those_before_fewer_pairs():
    seen = []
    for budget_s in range(2000, 0, -5):
        answer = fit(wanted(3, float(budget_s)))
        assert {op for op, _ in answer.streams} == set(OPS[: len(answer.sizes)]), (
            "in the order they were named"
        )
        shape = (len(answer.sizes), len({pair for _, pair in answer.streams}), len(answer.sizes[OPS[0]]))
        if shape not in seen:
            seen.append(shape)
    fewest = len(ladder.ever_fewer(SIZES)[-1])
    assert [shape[0] for shape in seen] == sorted((shape[0] for shape in seen), reverse=True)
    assert seen[0] == (4, 3, len(SIZES))
    assert (4, 3, fewest) in seen
    assert (1, 3, fewest) in seen
    assert seen[-1] == (1, 1, fewest)
    assert all(pairs == 3 for ops, pairs, _ in seen if ops > 1)


@pytest.mark.parametrize("budget_s", [60.0, 120.0, 600.0])
def test_what_is_chosen_gets_its_launches_within_the_budget(budget_s):
    run = wanted(3, budget_s)
    answer = fit(run)
    assert answer.expected_s == pytest.approx(needs(run, answer))
    assert answer.expected_s <= budget.SAFE * budget_s


@given(nodes=st.integers(2, 64), budget_s=st.floats(1, 1e4), look_s=st.floats(0, 3))
def test_the_budget_that_is_named_is_enough(nodes, budget_s, look_s):
    run = wanted(nodes, budget_s)
    answer = fit(run, look_s)
    assert answer.streams
    assert set(answer.streams) | set(answer.left_out) == set(schedule.streams(run))
    enough = msgspec.structs.replace(run, budget_s=budget.budget_for(answer.whole_s))
    assert fit(enough, look_s).complete


def test_pairs_that_fit_are_spread():
    answer = fit(wanted(32, 120.0))
    indices = [int(first[1:]) for _, (first, _) in answer.streams]
    assert 1 < len(indices) < 32
    assert max(indices) >= 16


def test_what_has_begun_comes_first():
    run = wanted(3, 60.0)
    answer = fit(run)
    last = schedule.streams(run)[-1]
    costs = {op: budget.Cost(start_s=2.0, visits_s={0: 0.0}, timed=True) for op in OPS}
    ladders = {op: [[0]] for op in OPS}
    answer = budget.fit(schedule.streams(run), ladders, costs, {last: 3}, 6, 10.0)
    assert answer.streams == [last]
    answer = budget.fit(schedule.streams(run), ladders, costs, {last: 3}, 6, 1.0)
    assert answer.streams == [last], "nobody knows better what would be done with the last second"


def test_nothing_new_begins_when_it_cannot_come_to_an_interval():
    costs = {op: budget.Cost(start_s=2.0, visits_s={0: 0.0}, timed=True) for op in OPS}
    ladders = {op: [[0]] for op in OPS}
    open_ = [("tcp_rr", pair) for pair in ring(3)]
    done = {("mpi_pingpong", pair): 6 for pair in ring(3)}
    assert budget.fit(open_, ladders, costs, done, 6, 11.0).streams == []
    assert len(budget.fit(open_, ladders, costs, done, 6, 14.0).streams) == 1


def test_what_lacks_an_interval_comes_before_what_would_narrow_one():
    costs = {op: budget.Cost(start_s=2.0, visits_s={0: 0.0}, timed=True) for op in OPS}
    ladders = {op: [[0]] for op in OPS}
    measured = [("mpi_pingpong", pair) for pair in ring(3)]
    new = [("tcp_rr", pair) for pair in ring(3)]
    answer = budget.fit([*measured, *new], ladders, costs, dict.fromkeys(measured, 6), 6, 30.0)
    assert answer.streams == [*measured, *new[:2]]
    answer = budget.fit([*measured, *new], ladders, costs, dict.fromkeys(measured, 6), 6, 10.0)
    assert answer.streams == measured


def test_a_number_that_a_command_prints_is_no_time_of_a_visit():
    ran = result(0)
    number = msgspec.structs.replace(ran.samples[0], batch_medians_ns=[1e14])
    number = msgspec.structs.replace(number, cell=msgspec.structs.replace(number.cell, op="result"))
    more = msgspec.structs.replace(ran, samples=[*ran.samples, number])
    assert budget.timing(more, 3.0) == budget.timing(ran, 3.0)


def test_cost_is_refined_by_what_launches_took():
    before = {"mpi_pingpong": budget.assumed(plan(), "mpi", [64, 128, 256], 0.1)}
    assert budget.costs({}, before) == before
    timing = budget.timing(result(0), 3.0)
    after = budget.costs({"mpi_pingpong": [timing]}, before)
    cost = after["mpi_pingpong"]
    assert cost.timed
    assert cost.launch_s([64, 128, 256]) == pytest.approx(3.0)
    assert cost.launch_s([64]) < cost.launch_s([64, 128]) < 3.0
    failed = budget.timing(result(1, status="failed"), 60.0)
    assert budget.costs({"mpi_pingpong": [failed]}, before) == before
    assert budget.costs({"mpi_pingpong": [timing, failed]}, before) == after


def test_an_operation_that_was_not_timed_is_as_much_slower_as_the_others_are():
    before = {op: budget.assumed(plan(), "net", [64], 0.1) for op in ("tcp_rr", "udp_rr")}
    timing = budget.Timing(wall_s=6.0, visits_s={64: 0.0})
    after = budget.costs({"tcp_rr": [timing]}, before)
    assert after["udp_rr"].start_s == pytest.approx(6.0)
    assert not after["udp_rr"].timed


def test_a_size_that_was_not_timed_takes_as_long_as_the_next_larger_one():
    cost = budget.Cost(start_s=1.0, visits_s={64: 0.25, 256: 0.5}, timed=True)
    assert cost.launch_s([100]) == 1.5
    assert cost.launch_s([512]) == 1.5
    assert cost.launch_s([1]) == 1.25


def test_ever_fewer_sizes_keep_their_ends():
    many, two, four = ladder.ever_fewer([1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 30])
    assert len(many) == 12
    assert two == [1, 2, 4, 8, 16, 30]
    assert four == [1, 4, 16, 30]
    assert ladder.ever_fewer([8]) == [[8]]


def test_what_does_not_fit_is_said_with_the_budget_that_would_do():
    run = wanted(32, 600.0)
    first, second = what_fits(run, fit(run))
    assert first.startswith("fits into 10 min: mpi_pingpong")
    assert "on 32 pairs" in first
    assert "6 launches each" in first
    assert "tcp_stream" in second
    enough = budget.budget_for(fit(run).whole_s)
    assert f"--budget {enough / 60:.0f}m" in second
    assert len(what_fits(run, fit(wanted(32, enough)))) == 1
    short = wanted(3, 2.0)
    assert what_fits(short, fit(short))[0].startswith("2 s are hardly enough for mpi_pingpong on 1 pair")


@given(budget_s=st.floats(1.0, 400.0), nodes=st.integers(4, 9))
def test_pairs_that_tell_together_get_fewer_launches_before_any_gets_none(budget_s, nodes):
    run = wanted(nodes, budget_s, ops=OPS[:1], at_once=True)
    answer = fit(run)
    all_of_them, room_s = schedule.streams(run), budget.SAFE * budget_s
    one_each_s = answer.expected_s / answer.launches / len(answer.streams) * len(all_of_them)
    if answer.left_out:
        assert one_each_s > room_s and len(answer.sizes[OPS[0]]) == len(ladder.ever_fewer(SIZES)[-1])
    else:
        assert answer.streams == all_of_them and answer.expected_s <= room_s
        assert answer.launches == run.min_launches or one_each_s * (answer.launches + 1) > room_s


@given(budget_s=st.floats(1.0, 400.0), nodes=st.integers(3, 5), done=st.integers(0, 6))
def test_operations_that_say_nothing_without_each_other_get_fewer_launches_before_any_gets_none(
    budget_s, nodes, done
):
    run = wanted(nodes, budget_s, ladder="imb", all_needed=True)
    streams, known = schedule.streams(run), {operation.name: operation for operation in OPERATIONS}
    ladders = choices(run, [], {})
    costs = assumed(run, known, ladders, 0.3, dict.fromkeys(OPS, 1.0))
    answer = fit_of(run, streams, ladders, costs, dict.fromkeys(streams, done), budget_s)
    one_each_s = sum(costs[op].launch_s(ladders[op][0]) for op, _ in streams)
    room_s = budget.SAFE * budget_s
    if answer.left_out:
        assert done == 0 and one_each_s > room_s
    else:
        assert answer.streams == streams
        more = min(answer.launches + 1, run.min_launches)
        assert answer.launches == run.min_launches or one_each_s * (more - done) > room_s
        assert answer.expected_s == pytest.approx(one_each_s * max(answer.launches - done, 0))


@given(budget_s=st.floats(1.0, 100.0), nodes=st.integers(3, 5), begun=st.integers(0, 6))
def test_one_launch_of_what_there_is_time_for_comes_before_many_of_the_first(budget_s, nodes, begun):
    run = wanted(nodes, budget_s, ladder="imb", all_needed=True)
    streams, known = schedule.streams(run), {operation.name: operation for operation in OPERATIONS}
    ladders = choices(run, [], {})
    costs = assumed(run, known, ladders, 0.3, dict.fromkeys(OPS, 1.0))
    done = dict.fromkeys(streams[:begun], 1)
    answer = fit_of(run, streams, ladders, costs, done, budget_s)
    each_s = {stream: costs[stream[0]].launch_s(ladders[stream[0]][0]) for stream in streams}
    room_s = budget.SAFE * budget_s
    new = [stream for stream in answer.streams if stream not in done]
    if answer.left_out and min(each_s[stream] for stream in streams[begun:]) <= room_s:
        assert answer.launches == 1 and set(done) <= set(answer.streams)
        assert answer.expected_s == pytest.approx(sum(each_s[stream] for stream in new))
        assert answer.expected_s <= room_s < answer.expected_s + min(each_s[s] for s in answer.left_out)


def test_a_calibration_has_all_of_its_operations_before_it_has_many_launches_of_any():
    assert suites.named("calibrate").all_needed
    assert not any(suites.named(name).all_needed for name in suites.names() if name != "calibrate")


def test_fewer_launches_are_said_with_the_budget_that_is_enough_for_all():
    run = wanted(4, 60.0, ops=OPS[:1], at_once=True)
    whole = fit(run)
    run = msgspec.structs.replace(run, budget_s=whole.expected_s * 0.4)
    first, second = what_fits(run, fit(run))
    assert "launches each" in first and not first.startswith(f"fits into {run.budget_s:.0f} s: 6 launches")
    assert "6 launches each; --budget" in second and "no launch of" not in second


def test_what_fits_says_who_takes_part_and_sizes_where_there_are_some():
    places = {"mpi_bcast": [("n0", "n1")], "command": [("n0",)]}
    run = wanted(2, 60.0, ops=["mpi_bcast", "command"], places=places)
    streams = [("mpi_bcast", ("n0", "n1")), ("command", ("n0",))]
    every = budget.Fit(
        streams=streams,
        sizes={"mpi_bcast": [0, 1], "command": [0]},
        expected_s=6.0,
        left_out=[],
        all_sizes={"mpi_bcast": 2, "command": 1},
        whole_s=6.0,
        launches=6,
    )
    (said,) = what_fits(run, every)
    assert said.startswith(
        "fits into 60 s: mpi_bcast on 2 nodes; command on 1 node, 1 to 2 sizes: 6 launches"
    )
    alone = msgspec.structs.replace(every, streams=streams[1:], sizes={"command": [0]})
    (said,) = what_fits(run, alone)
    assert said.startswith("fits into 60 s: command on 1 node: 6 launches each")


def test_a_node_that_cannot_take_part_is_out_of_its_operations_only():
    run = wanted(3, 60.0, left_out=[LeftOut(node="n1", ops=["mpi_pingpong"], reason="n1: no MPI")])
    streams = schedule.streams(run)
    assert [pair for op, pair in streams if op == "mpi_pingpong"] == [("n2", "n0")]
    assert [pair for op, pair in streams if op == "tcp_rr"] == ring(3)


def test_time_left_counts_to_the_next_decision_and_to_the_end():
    left = schedule.Forecast(intervals_s=30.0, least_s=31.0, most_s=60.0)
    assert time_left(left) == "intervals in about 30 s, ends within 60 s"
    left = schedule.Forecast(intervals_s=0.0, least_s=1.0, most_s=60.0)
    assert time_left(left) == "done in 1 s at the earliest, ends within 60 s"
    assert time_left(schedule.Forecast(intervals_s=0.0, least_s=9.0, most_s=9.0)) == "ends within 9 s"


def test_preparing_is_part_of_a_budget_and_leaves_half_of_it():
    said = []
    assert allocation.left_of(300.0, 40.0, "the search", said.append) == 260.0
    assert said == []
    assert allocation.left_of(300.0, 200.0, "the search", said.append) == 150.0
    assert said == [
        "preparing took 200 s of the budget of 300 s; the search still gets 150 s, so all of it takes about 350 s"
    ]


def test_the_first_round_is_always_begun_and_none_that_would_end_too_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = iter([0.0, 5.0, 25.0, 35.0, 75.0, 100.0])
    monkeypatch.setattr(allocation, "time", SimpleNamespace(monotonic=lambda: next(now)))
    rounds = allocation.Rounds(100.0)
    # Begun at 5, 25 and 35 s; the longest took 40 s, so that one begun at 75 s would end at 115 s.
    assert [rounds.another() for _ in range(4)] == [True, True, True, False]
    assert rounds.passed_s == 100.0


def test_a_budget_that_is_over_before_the_first_round_allows_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 1.0, 2.0])
    monkeypatch.setattr(allocation, "time", SimpleNamespace(monotonic=lambda: next(now)))
    rounds = allocation.Rounds(0.001)
    assert [rounds.another(), rounds.another()] == [True, False]

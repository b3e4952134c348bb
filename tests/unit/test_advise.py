import random

import msgspec
import pytest

from tests.unit import make_records as make
from tests.unit.test_cells import cells, launch
from wulf.base.records import IMPORTED, Clock, Exits, LeftOut, NodeRecord, ProbeInfo
from wulf.stats import estimate
from wulf.stats.estimate.figure_advice import tick_multiple

replace = msgspec.structs.replace


def advise(results, nodes=(), plan=None, operation=None):
    plan = plan or make.plan()
    return estimate.advise(cells(results, plan), results, list(nodes), plan, [operation or make.operation()])


def kinds(results, **more):
    return {advice.kind for advice in advise(results, **more)}


def only(results, kind, **more):
    (advice,) = [advice for advice in advise(results, **more) if advice.kind == kind]
    return advice


def quiet(count=8, time_ns=20_000):
    return [launch(index, time_ns + (index * 37) % 11) for index in range(count)]


def with_probe(result, **changes):
    clock = Clock(source="tsc", resolution_ns=1.0, cost_ns=changes.pop("cost_ns", 20.0))
    hosts = changes.pop("hosts", list(make.PAIR))
    mpi = changes.pop("mpi", "Open MPI")
    probe = ProbeInfo(version="1", protocol=1, mpi=mpi, hosts=hosts, cpus=[[0], [1]], clock=clock, **changes)
    return replace(result, launch=replace(result.launch, probe=probe))


def test_a_quiet_run_is_told_only_what_no_run_can_show():
    found = advise([with_probe(result) for result in quiet()], nodes=[make.node()])
    assert [advice.kind for advice in found] == ["not_tested", "one_run"]
    assert "another day" in found[-1].text


def test_enough_launches_are_tested():
    found = advise([with_probe(result) for result in quiet(24)], nodes=[make.node()])
    assert [advice.kind for advice in found] == ["one_run"]


def test_few_launches():
    advice = only(quiet(4), "few_launches")
    assert "4 launches" in advice.text
    assert "64 B" in advice.text


def test_precision_not_reached_names_both_figures():
    results = [launch(index, 20_000 + 700 * (index * 5 % 12)) for index in range(12)]
    advice = only(results, "not_reached")
    half = cells(results)[0].time.half_width_ratio
    assert f"±{half:.1%}" in advice.text
    assert "target ±2.0%" in advice.text


@pytest.mark.parametrize("kind", ["few_launches", "not_reached", "not_tested"])
def test_more_launches_of_a_run_of_files_are_more_files(kind):
    times = (
        [20_000] * 4 if kind == "few_launches" else [20_000 + 700 * (index * 5 % 12) for index in range(12)]
    )
    results = [launch(index, time_ns) for index, time_ns in enumerate(times)]
    advice = only(results, kind, plan=replace(make.plan(), ladder=IMPORTED)).advice
    assert "wulf measure import" in advice
    assert "--" not in advice
    assert "--max-launches" in only(results, kind).advice


def test_a_failed_launch_is_an_error_with_its_reason_and_comes_first():
    results = [*quiet(4), make.result(9, sizes=(64,), status="failed")]
    found = advise(results)
    assert found[0].kind == "failed_launch"
    assert found[0].severity == "error"
    assert "node02: it is gone" in found[0].text


def test_control_characters_of_a_node_do_not_reach_the_reader():
    failed = make.result(9, sizes=(64,), status="failed")
    failed = replace(failed, launch=replace(failed.launch, error="\x1b[31mgone"))
    assert "\x1b" not in only([*quiet(), failed], "failed_launch").text


def test_an_unreachable_node_is_named():
    down = NodeRecord(node="node03", reachable=False, error="node03: connection timed out")
    advice = only(quiet(), "unreachable_node", nodes=[make.node(), down])
    assert (advice.subject, advice.severity) == ("node03", "error")


def test_contaminated():
    results = [*quiet(), launch(8, 20_000, contaminated=True)]
    advice = only(results, "contaminated")
    assert "1 of 9 launches" in advice.text
    assert "another process" in advice.text


def test_lost_and_corrupt():
    results = [launch(index, 20_000, lost=1, corrupt=int(index == 0)) for index in range(8)]
    assert "8 of 808" in only(results, "lost").text
    assert only(results, "corrupt").severity == "error"


def started(late, tolerance_ns, time_ns=20_000):
    """Launches of a collective by the clock: 100 iterations that count, and some that do not."""
    exits = Exits(
        medians_ns=[[time_ns], [time_ns]], late=late, tolerances_ns=[tolerance_ns], clock_errors_ns=[50.0]
    )
    return [launch(index, time_ns + index, exits=exits) for index in range(8)]


def test_ranks_that_did_not_begin_together_are_told():
    assert "late_starts" not in kinds(started(late=5, tolerance_ns=2000))
    assert "up to 50% of the iterations" in only(started(late=100, tolerance_ns=2000), "late_starts").text
    assert "up to 8.00 µs late" in only(started(late=5, tolerance_ns=8000), "late_starts").text


def test_two_groups_of_launches():
    results = [launch(index, (20_000 if index % 2 else 30_000) + 10 * index) for index in range(20)]
    assert "2 groups" in only(results, "bimodal").text


def with_modes(index, *modes):
    """A launch whose round trips form clusters: (time [ns], count)."""
    spread = [
        (round(time * (1 + 0.002 * step)), count // 5) for time, count in modes for step in range(-2, 3)
    ]
    result = launch(index, modes[0][0])
    return replace(result, samples=[replace(result.samples[0], histogram=spread)])


def test_modes_within_launches_are_named_with_their_times_and_shares():
    mixed = [with_modes(index, (80_000, 800), (272_000, 200)) for index in range(6)]
    advice = only([*quiet(6, 80_000), *mixed], "modes")
    assert advice.text.startswith("two modes in 6 of 12 launches: 40.0 µs")
    assert "80% of the messages" in advice.text
    assert "136 µs" in advice.text
    assert "20% of the messages" in advice.text
    assert "interrupt moderation" in advice.advice


@pytest.mark.parametrize(
    "results",
    [
        [*quiet(19), with_modes(19, (20_000, 800), (60_000, 200))],
        [with_modes(index, (20_000, 500), (21_500, 500)) for index in range(12)],
    ],
    ids=["in one launch of twenty", "closer than a reader cares for"],
)
def test_modes_that_are_rare_or_close_are_not_worth_a_word(results):
    assert any(point.modes > 1 for point in cells(results)[0].launches)
    assert "modes" not in kinds(results)


def series(noise, seed):
    rng = random.Random(seed)
    state, results = 0.0, []
    for index in range(24):
        state = noise * state + rng.gauss(0, (1 - noise**2) ** 0.5)
        results.append(launch(index, round(20_000 * (1 + 0.02 * state))))
    return results


def test_launches_that_resemble_those_before_them_are_told():
    found = {noise: [kinds(series(noise, seed)) for seed in range(60)] for noise in (0.0, 0.7)}
    told = {noise: sum(bool(run & {"dependent", "drift"}) for run in runs) for noise, runs in found.items()}
    assert told[0.0] <= 8, "at a significance of 5 % each"
    assert told[0.7] >= 45
    first = next(seed for seed, run in enumerate(found[0.7]) if "dependent" in run)
    assert "narrower than they should be" in only(series(0.7, first), "dependent").text


def test_drift_says_how_much():
    results = [launch(index, 20_000 + 200 * index) for index in range(20)]
    assert "+17." in only(results, "drift").text


@pytest.mark.parametrize(
    ("time_s", "expected"),
    [
        (4.0e-3, (1, 250, False)),
        (4.1e-3, (1, 250, False)),
        (2.0e-3, (1, 250, True)),
        (10e-3, (1, 100, False)),
        (0.5e-3, (1, 1000, True)),
        (11.9e-6, None),
        (0.7e-3, None),
        (0.0, None),
    ],
)
def test_tick_multiple(time_s, expected):
    assert tick_multiple(time_s) == expected


def test_a_scheduler_tick_is_explained():
    advice = only(quiet(time_ns=8_000_000), "scheduler_tick")
    assert "250 Hz" in advice.text
    assert advice.severity == "error"


def test_a_program_may_run_as_long_as_a_tick():
    program = replace(make.operation(), pattern="application")
    assert "scheduler_tick" not in kinds(quiet(time_ns=8_000_000), operation=program)


def test_a_clock_that_costs_too_much():
    dear = [with_probe(result, cost_ns=2500.0) for result in quiet()]
    assert "% of the fastest" in only(dear, "clock_cost").text
    assert "clock_cost" not in kinds([with_probe(result, cost_ns=900.0) for result in quiet()])


def test_where_nobody_sends_the_clock_is_what_is_measured():
    dear = [with_probe(result, cost_ns=2500.0) for result in quiet()]
    assert "clock_cost" not in kinds(dear, operation=replace(make.operation(), pattern="none"))


def without_sizes(results):
    """Return the same results of an operation that varies nothing."""
    return [
        replace(
            result,
            samples=[replace(sample, cell=replace(sample.cell, size_bytes=0)) for sample in result.samples],
        )
        for result in results
    ]


@pytest.mark.parametrize(
    ("results", "kind", "end"),
    [
        (quiet(4), "few_launches", "interval takes 6"),
        ([launch(i, 20_000 + 700 * (i * 5 % 12)) for i in range(12)], "not_reached", ")"),
        ([launch(i, (20_000 if i % 2 else 30_000) + 10 * i) for i in range(20)], "bimodal", "groups"),
        ([launch(i, 20_000 + 200 * i) for i in range(20)], "drift", "to the last"),
    ],
)
def test_what_varies_nothing_names_no_size(results, kind, end):
    assert only(without_sizes(results), kind).text.endswith(end)
    assert only(results, kind).text.endswith(": 64 B")
    tick = only(without_sizes(quiet(time_ns=8_000_000)), "scheduler_tick")
    assert tick.text.startswith("4.00 ms is 1 scheduler tick")


def test_an_unsettled_warmup_names_sizes_where_there_are_some():
    restless = [
        replace(result, samples=[replace(sample, warmup_settled=False) for sample in result.samples])
        for result in quiet()
    ]
    assert only(restless, "warmup").text.endswith("8 of 8 series (64 B)")
    assert only(without_sizes(restless), "warmup").text.endswith("8 of 8 series")


def test_a_group_is_no_pair():
    among = make.plan(places={"mpi_pingpong": [make.PAIR]})
    assert only(quiet(4), "few_launches").subject == "mpi_pingpong node01–node02"
    assert only(quiet(4), "few_launches", plan=among).subject == "mpi_pingpong node01,node02"


def test_ranks_that_share_a_cpu():
    assert "shared_cpu" in kinds([with_probe(result, yields=True) for result in quiet()])


def test_shared_memory_and_loopback_are_called_what_they_are():
    assert "one_machine" not in kinds([with_probe(result) for result in quiet()])
    advice = only([with_probe(result, hosts=["here", "here"]) for result in quiet()], "one_machine")
    assert advice.subject == "mpi_pingpong"
    assert "shared memory" in advice.text
    near = [with_probe(result, hosts=["here"], mpi=None) for result in quiet()]
    argv = ["wulf-probe", "--connect", "127.0.0.1:4711"]
    near = [replace(r, launch=replace(r.launch, op="tcp_rr", argv=argv)) for r in near]
    found = [
        a for a in estimate.advise([], near, [], make.plan(ops=["tcp_rr"]), []) if a.kind == "one_machine"
    ]
    assert [(advice.subject, "loopback" in advice.text) for advice in found] == [("tcp_rr", True)]
    mpirun = ["mpirun", "-np", "2", "--host", "127.0.0.1:2", "wulf-probe-mpi"]
    local = [with_probe(result, hosts=["here", "here"]) for result in quiet()]
    local = [replace(r, launch=replace(r.launch, argv=mpirun)) for r in local]
    assert "shared memory" in only(local, "one_machine").text


def test_a_node_that_is_left_out_is_an_error_with_its_reason():
    absent = LeftOut(node="node03", ops=["mpi_pingpong"], reason="node03: there is no libmpi.so.40")
    advice = only(quiet(), "left_out_node", plan=make.plan(left_out=[absent]))
    assert advice.severity == "error"
    assert "node03" in advice.subject
    assert "libmpi" in advice.text


def test_what_the_run_did_not_come_to_is_named():
    pairs = [make.PAIR, ("node02", "node03"), ("node03", "node01")]
    wide = make.plan(ops=["mpi_pingpong", "tcp_rr"], pairs=pairs)
    found = [advice for advice in advise(quiet(), plan=wide) if advice.kind == "not_begun"]
    assert [(advice.subject, advice.text.split(":")[0]) for advice in found] == [
        ("mpi_pingpong", "not measured between 2 of 3 pairs"),
        ("tcp_rr", "not measured between 3 of 3 pairs"),
    ]
    everybody = make.plan(ops=["mpi_bcast"], places={"mpi_bcast": [("node01", "node02", "node03")]})
    (advice,) = [advice for advice in advise(quiet(), plan=everybody) if advice.kind == "not_begun"]
    assert advice.text.startswith("not measured: ")
    absent = LeftOut(node="node03", ops=["mpi_pingpong", "tcp_rr"], reason="node03: no")
    found = kinds(quiet(), plan=make.plan(ops=["mpi_pingpong"], pairs=pairs, left_out=[absent]))
    assert "not_begun" not in found, "why it was not measured is said once"


def test_pairs_that_were_measured_at_once_are_spoken_of_one_by_one():
    other = ("node03", "node04")
    wide = make.plan(pairs=[make.PAIR, other, ("node01", "node03")], at_once=True)

    def together(index, **changes):
        one = launch(index, 20_000, **changes)
        two = [replace(found, cell=replace(found.cell, place=other)) for found in one.samples]
        made = replace(one.launch, place=(*make.PAIR, *other), pairs=[make.PAIR, other])
        return replace(one, launch=made, samples=[*one.samples, *two])

    found = advise([together(index, warmup_settled=False) for index in range(8)], plan=wide)
    subjects = {(one.kind, one.subject) for one in found}
    assert ("warmup", "mpi_pingpong node01–node02") in subjects
    assert ("warmup", "mpi_pingpong node03–node04") in subjects
    (late,) = [one for one in found if one.kind == "not_begun"]
    assert late.text.startswith("not measured between 1 of 3 pairs")
    failed = together(9)
    failed = replace(failed, launch=replace(failed.launch, status="failed", error="lost"), samples=[])
    (said,) = [one for one in advise([failed], plan=wide) if one.kind == "failed_launch"]
    assert "node01–node02" in said.subject and "node03–node04" in said.subject


def test_a_warm_up_that_does_not_settle():
    settled, restless = quiet(), [launch(index, 20_000, warmup_settled=False) for index in range(8, 11)]
    assert "3 of 11 series" in only([*settled, *restless], "warmup").text
    assert "warmup" not in kinds([*quiet(19), launch(19, 20_000, warmup_settled=False)])


def refused(number):
    return f"node{number}: ssh: connect to host 10.0.0.{number} port 22: Connection refused"


def test_nodes_that_fail_alike_share_one_advice():
    down = [NodeRecord(node=f"node{n}", reachable=False, error=refused(n)) for n in range(10, 40)]
    odd = NodeRecord(node="node40", reachable=False, error="node40: no route to host")
    found = [a for a in advise(quiet(), nodes=[*down, odd]) if a.kind == "unreachable_node"]
    assert [advice.subject for advice in found] == ["node[10-39]", "node40"]
    assert found[0].text == "ssh: connect to host NODE port 22: Connection refused"
    assert found[1].text == "no route to host"


def test_launches_that_fail_alike_share_one_advice():
    failed = []
    for number in range(10, 30):
        result = make.result(number, sizes=(64,), status="failed")
        pair = ("node01", f"node{number}")
        failed.append(replace(result, launch=replace(result.launch, place=pair, error=refused(number))))
    advice = only([*quiet(), *failed], "failed_launch")
    assert advice.subject.endswith("(20 pairs)")
    assert advice.text == "20 launches failed: ssh: connect to host NODE port 22: Connection refused"


def test_nodes_that_are_left_out_alike_share_one_advice():
    absent = [
        LeftOut(node=f"node{n}", ops=["mpi_pingpong"], reason=f"node{n}: there is no mpirun")
        for n in range(10, 14)
    ]
    advice = only(quiet(), "left_out_node", plan=make.plan(left_out=absent))
    assert (advice.subject, advice.text) == ("mpi_pingpong node[10-13]", "there is no mpirun")

"""Plans of several experiments."""

from __future__ import annotations

import pytest

from tests.unit import make_records
from wulf.base.errors import ConfigError, UsageError
from wulf.base.units import parse_duration
from wulf.node.measuring import participants
from wulf.node.probe import suites

PLAN = """
title = "two"
[[experiment]]
op = "mpi_pingpong"
sizes = ["0", "4KiB", 17]
[[experiment]]
name = "b{ranks}"
op = "mpi_bisection"
sizes = "short"
ranks = "doubling from 4"
"""


def test_a_plan_says_sizes_and_ranks():
    first, second = suites.parse(PLAN, "plan.toml").experiment
    assert first.sizes_bytes() == [0, 17, 4096]
    assert list(first.companies(8)) == [(None, 0, 1)]
    assert list(second.companies(17)) == [("b4", 4, 1), ("b8", 8, 1), ("b16", 16, 1), ("b17", 0, 1)]
    assert list(second.companies(4, 2)) == [("b4", 4, 2), ("b8", 0, 2)]
    assert list(second.companies(3)) == [("b3", 0, 1)]


def test_ranks_of_each_node_are_an_experiment_each():
    some, named, inside = suites.parse(
        """
        title = "some"
        [[experiment]]
        op = "mpi_bisection"
        per_node = [1, 2, 4]
        [[experiment]]
        name = "b{ranks}of{per_node}"
        op = "mpi_bisection"
        per_node = [2]
        ranks = "doubling from 4"
        [[experiment]]
        op = "mpi_pingpong"
        inside = true
        """,
        "plan.toml",
    ).experiment
    assert list(some.companies(3)) == [(f"mpi_bisection_{n}_per_node", 0, n) for n in (1, 2, 4)]
    assert list(named.companies(3)) == [("b4of2", 4, 2), ("b6of2", 0, 2)]
    assert list(inside.companies(3)) == [("mpi_pingpong_inside", 0, 1)]


@pytest.mark.parametrize("name", suites.names())
def test_every_suite_is_one(name):
    suite = suites.named(name)
    for experiment in suite.experiment:
        assert experiment.sizes_bytes()
    called = [one.name for e in suite.experiment for one in e.companies(32)]
    suites.require_different([name or str(index) for index, name in enumerate(called)], name)


def test_mpptest_has_its_names():
    called = {one.name for e in suites.named("mpptest").experiment for one in e.companies(8)}
    assert called == {
        "short",
        "long",
        "longnb",
        "shortc",
        "shortv",
        "bshort4",
        "bshort8",
        "blong4",
        "blong8",
    } | {
        "bcast",
        "dsum",
    }


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('title = "two"\n', "", "title"),
        ('"4KiB"', '"4 KiX"', r"plan.toml:3: experiment\[0\]: mpi_pingpong: .*KiX"),
        ('"short"', '"shorts"', r"experiment\[1\]: mpi_bisection: .*did you mean 'short'"),
        ('"short"', '"adaptive"', "sizes are fixed"),
        ("doubling from 4", "some", "neither a number, 'all' nor 'doubling from N'"),
        ('op = "mpi_pingpong"', 'opp = "mpi_pingpong"', "opp"),
        ('sizes = ["0", "4KiB", 17]', "ranks = 1", "ranks"),
        ("[[experiment]]", "[[experiment", "plan.toml"),
    ],
)
def test_what_is_no_plan_names_the_file_and_the_experiment(old, new, complaint):
    with pytest.raises(ConfigError, match=complaint) as caught:
        suites.parse(PLAN.replace(old, new, 1), "plan.toml")
    assert "plan.toml" in str(caught.value)


def test_names_that_are_there_twice_are_refused():
    with pytest.raises(UsageError, match="two experiments are called short"):
        suites.require_different(["short", "long", "short"], "plan.toml")


def test_an_unknown_suite_is_named_with_those_there_are():
    with pytest.raises(UsageError, match=r"mpptests.*did you mean 'mpptest'"):
        suites.named("mpptests")


def test_an_experiment_may_be_made_beside_foreign_traffic():
    text = 'title = "x"\nvisit = "20ms"\n[[experiment]]\nop = "tcp_rr"\nforeign = true\n'
    suite = suites.parse(text, "x")
    assert suite.experiment[0].foreign and suite.visit == "20ms"
    assert not suites.parse(text.replace("foreign = true\n", ""), "x").experiment[0].foreign
    with pytest.raises(ConfigError, match=r"x:2: visit: .*fortnight"):
        suites.parse(text.replace("20ms", "1 fortnight"), "x")


def test_load_has_everything_beside_traffic_without_it_too():
    experiments = suites.named("load").experiment
    free = {one.op for one in experiments if not one.foreign}
    assert (
        {one.op for one in experiments if one.foreign} == {"tcp_loaded:0", "tcp_rr", "mpi_pingpong"} <= free
    )


def test_more_ranks_than_there_are():
    (experiment,) = suites.parse('title = "x"\n[[experiment]]\nop = "mpi_ring"\nranks = 8\n', "x").experiment
    with pytest.raises(UsageError, match="takes 8, and there are 4"):
        list(experiment.companies(4))


EACH = """
title = "each"
[[experiment]]
op = "noise_on"
name = "noise_cpu{cpu}"
sizes = [0]
each_cpu = true
"""


def test_an_experiment_for_each_cpu_has_a_name_for_each():
    (experiment,) = suites.parse(EACH, "x").experiment
    assert [experiment.on_cpu(cpu) for cpu in (0, 11)] == [
        ("noise_cpu0", "noise_on:0"),
        ("noise_cpu11", "noise_on:11"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("noise_cpu{cpu}", "noise", r"x:3: experiment\[0\]: noise_on: each_cpu: its name must have \{cpu\}"),
        ('name = "noise_cpu{cpu}"', "", "each_cpu: its name must have"),
        ('"noise_on"', '"noise_on:1"', "named without one"),
        ("each_cpu = true", "", "takes each_cpu = true"),
    ],
)
def test_what_does_not_go_with_each_cpu(old, new, complaint):
    with pytest.raises(ConfigError, match=complaint):
        suites.parse(EACH.replace(old, new), "x")


def test_of_many_cpus_some_of_each_part_are_chosen():
    assert suites.chosen_cpus([[0, 1], [1, 2, 8]]) == [0, 1, 2, 8]
    assert suites.chosen_cpus([]) == []
    many = suites.chosen_cpus([range(256)])
    assert len(many) == suites.MOST_CPUS == 64
    assert many == list(range(0, 256, 4))


def test_what_is_alike_everywhere_is_measured_at_some_places_only():
    op = make_records.operation("mpi_pingpong")
    ring = [(f"n{i}", f"n{(i + 1) % 8}") for i in range(8)]
    assert participants.places(participants.Task(op, [1]), ring, []) == ring
    some = participants.places(participants.Task(op, [1], most_places=2), ring, [])
    assert some == [("n0", "n1"), ("n4", "n5")]
    assert participants.places(participants.Task(op, [1], most_places=20), ring, []) == ring
    inside = participants.places(participants.Task(op, [1], inside=True, most_places=1), ring, [])
    assert inside == [("n0", "n0")]


def test_a_calibration_has_the_time_that_it_takes():
    """Twelve experiments between two pairs and eight in one node, six launches of about two seconds each."""
    suite = suites.named("calibrate")
    launches = sum(6 * one.places for one in suite.experiment)
    assert 0 < launches * 2 <= parse_duration(suite.budget) == 600

"""Plans of several experiments."""

from __future__ import annotations

import pytest

from wulf.errors import ConfigError, UsageError
from wulf.probe import suites

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
    assert list(first.with_ranks(8)) == [(None, 0)]
    assert list(second.with_ranks(17)) == [("b4", 4), ("b8", 8), ("b16", 16), ("b17", 0)]
    assert list(second.with_ranks(8)) == [("b4", 4), ("b8", 0)]
    assert list(second.with_ranks(3)) == [("b3", 0)]


@pytest.mark.parametrize("name", suites.names())
def test_every_suite_is_one(name):
    suite = suites.named(name)
    for experiment in suite.experiment:
        assert experiment.sizes_bytes()
    called = [name for e in suite.experiment for name, _ in e.with_ranks(32)]
    suites.require_different([name or str(index) for index, name in enumerate(called)], name)


def test_mpptest_has_its_names():
    called = {name for e in suites.named("mpptest").experiment for name, _ in e.with_ranks(8)}
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
        ('"4KiB"', '"4 KiX"', r"experiment 1 \(mpi_pingpong\): .*KiX"),
        ('"short"', '"shorts"', r"experiment 2 \(mpi_bisection\): .*did you mean 'short'"),
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
    with pytest.raises(ConfigError, match=r"x: visit: .*fortnight"):
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
        list(experiment.with_ranks(4))

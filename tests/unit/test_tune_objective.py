from __future__ import annotations

import pytest

from tests.unit.make_records import operation
from wulf.base.errors import ConfigError, UsageError
from wulf.base.records import ProbeFigure
from wulf.node.trials.experiment import objective

PING_PONG = operation("mpi_pingpong")
KNOWN = {"mpi_pingpong": PING_PONG, "tcp_rr": operation("tcp_rr"), "tcp_stream": operation("tcp_stream")}


def known(op):
    if op not in KNOWN:
        raise UsageError(f"there is no operation {op!r}")
    return KNOWN[op]


@pytest.mark.parametrize("name", ["latency", "bandwidth"])
def test_named_objectives_have_weights_and_guards(name):
    goal = objective.named(name, lambda: PING_PONG, known)
    assert any(metric.weight > 0 for metric in goal.metrics)
    assert any(metric.guard and metric.weight == 0 for metric in goal.metrics)
    (sizes,) = goal.probes.values()
    measured = [ProbeFigure(op="mpi_pingpong", size_bytes=size, statistic="mean") for size in sizes]
    measured.append(ProbeFigure(op="mpi_pingpong", size_bytes=min(sizes), statistic=objective.TAIL))
    # What is never measured would silently be out of the objective, or guard nothing.
    assert all(metric.figure in measured for metric in goal.metrics)
    assert all(metric.name == objective.metric_name(metric.figure) for metric in goal.metrics)


def test_the_tail_that_guards_is_measured_at_the_smallest_size():
    for name in ("latency", "bandwidth"):
        goal = objective.named(name, lambda: KNOWN["tcp_rr"], known)
        (tail,) = [metric.figure for metric in goal.metrics if metric.pattern == "tail"]
        smallest = min(goal.probes["tcp_rr"])
        assert tail == ProbeFigure(op="tcp_rr", size_bytes=smallest, statistic=objective.TAIL)


def test_many_to_one_is_measured_with_all_nodes_at_once():
    known = {"tcp_incast": operation("tcp_incast"), "tcp_rr": operation("tcp_rr")}.__getitem__
    goal = objective.named("incast", None, known)
    nodes = ["a", "b", "c", "d", "e"]
    together, alone = goal.workload(nodes).parts
    assert (together.op, together.places, together.group) == ("tcp_incast", [tuple(nodes)], True)
    assert (alone.op, alone.group) == ("tcp_rr", False)
    assert all(len(place) == 2 for place in alone.places)
    assert [metric.name for metric in goal.metrics if metric.guard] == ["tcp_rr 64 B mean"]


def test_an_application_is_an_objective():
    goal = objective.named("app: ./solve --fast", None, None)
    (part,) = goal.commands
    assert (part.command, part.match) == ("./solve --fast", "")
    assert goal.metrics[0].unit == "s"
    (measured,) = goal.workload(["a", "b"]).parts
    assert (measured.op, measured.places) == ("run time", [("a",)])
    rate = objective.application("./hpl", r"([0-9.]+) GFLOPS", "higher", "GFLOP/s")
    assert rate.metrics[0].better == "higher"


@pytest.mark.parametrize("match", ["(", "no group", "(a)(b)"])
def test_a_pattern_needs_one_group(match):
    with pytest.raises(UsageError, match="--match"):
        objective.application("x", match, "lower", "")


@pytest.mark.parametrize("name", ["speed", "app:", "app:  "])
def test_what_is_no_objective(name):
    with pytest.raises(UsageError, match="--objective"):
        objective.named(name, None, None)


FILE = b"""
profile = "latency"
[[metric]]
op = "mpi_pingpong"
size = "64B"
weight = 3
[[metric]]
op = "tcp_stream"
size = "64KiB"
weight = 0
guard = true
[[metric]]
command = "./app"
match = "([0-9.]+) steps/s"
better = "higher"
unit = "steps/s"
name = "steps"
"""


def test_a_file_is_an_objective():
    goal = objective.from_toml(FILE, "goal.toml", known)
    assert goal.profile == "latency"
    assert [(metric.name, metric.weight, metric.guard) for metric in goal.metrics] == [
        ("mpi_pingpong 64 B mean", 3.0, False),
        ("tcp_stream 64 KiB mean", 0.0, True),
        ("steps", 1.0, False),
    ]
    assert list(goal.probes) == ["mpi_pingpong", "tcp_stream"]


def test_a_file_says_which_statistic_counts():
    text = b"".join(
        b"[[metric]]\nop = 'tcp_rr'\nsize = '64B'\nstatistic = '%s'\n" % statistic
        for statistic in (b"median", b"mean", b"p99")
    )
    goal = objective.from_toml(text, "goal.toml", known)
    names = ["tcp_rr 64 B", "tcp_rr 64 B mean", "tcp_rr 64 B p99"]
    assert [metric.name for metric in goal.metrics] == names
    assert [figure.statistic for figure in goal.figures] == ["median", "mean", "p99"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"[[metric]]\nop = 'x'\ncommand = 'y'\n", r"goal.toml:1: metric\[0\]: give 'op'"),
        (b"[[metric]]\nop = 'tcp_r'\n", r"goal.toml:1: metric\[0\]: there is no operation"),
        (b"[[metric]]\nop = 'tcp_rr'\nweight = 0\n", "no .* has a weight"),
        (b"[[metric]]\nop = 'tcp_rr'\nweight = -1\n", "zero or more"),
        (b"[[metric]]\nop = 'tcp_rr'\n[[metric]]\nop = 'tcp_rr'\n", "same name"),
        (b"[[metric]]\nop = 'tcp_rr'\nspeed = 1\n", r"goal.toml:3: metric\[0\].speed: unknown key"),
        (b"[[metric]]\nop = 'tcp_rr'\nstatistic = 'max'\n", "statistic"),
        (
            b"[[metric]]\ncommand = './app'\nstatistic = 'mean'\n",
            r"goal.toml:1: metric\[0\]: 'statistic' is for an 'op'",
        ),
        (b"[[metric", "goal.toml"),
        (b"\xff", "goal.toml"),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(text, said):
    with pytest.raises(ConfigError, match=said):
        objective.from_toml(text, "goal.toml", known)


@pytest.mark.parametrize("count", range(2, 40))
def test_pairs_touch_every_node_as_far_as_they_reach(count):
    names = [f"n{index:02d}" for index in range(count)]
    pairs = objective.pairs_for(names)
    assert 1 <= len(pairs) <= objective.MAX_PAIRS
    assert all(first != second for first, second in pairs)
    if count <= 2 * objective.MAX_PAIRS:
        assert {name for pair in pairs for name in pair} == set(names)


def test_a_single_node_has_no_pair():
    assert objective.pairs_for(["n01"]) == []


def test_nodes_that_are_changed_are_measured_with_those_that_are_not():
    names = ["a", "b", "c", "d"]
    assert objective.pairs_for(names, [{"a", "b"}]) == [("a", "c"), ("b", "d"), ("a", "b")]
    assert objective.pairs_for(names, [{"c"}]) == [("a", "c"), ("b", "d")]
    # What changes all nodes, or none, tells no pair from another.
    assert objective.pairs_for(names, [set(names)]) == objective.pairs_for(names)


@pytest.mark.parametrize("count", range(4, 40, 3))
@pytest.mark.parametrize("some", [{"n01"}, {"n00", "n03"}, {"n00", "n01", "n02"}])
def test_pairs_of_many_nodes_tell_what_few_changed_ones_gain(count, some):
    names = [f"n{index:02d}" for index in range(count)]
    pairs = objective.pairs_for(names, [some, {"n03"}])
    assert len(pairs) <= objective.MAX_PAIRS
    assert len(set(pairs)) == len(pairs)
    assert all(first != second for first, second in pairs)
    for node in some if 2 * len(some) <= count else ():
        assert any(node in pair and not set(pair) <= some for pair in pairs)
    if count <= objective.MAX_PAIRS:
        assert {name for pair in pairs for name in pair} == set(names)

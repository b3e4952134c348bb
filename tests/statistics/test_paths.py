"""Which path is bad: every planted kind is named in a few draws; ``make bench NAME=paths`` counts how often."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import paths
from tests.unit.paths_fixture import bad, fabric
from wulf.node.lab import fabric_faults, topology
from wulf.stats.core import tomography
from wulf.tools.paths import judging
from wulf.tools.paths.record import Paths, exit_code


@pytest.mark.parametrize("kind", paths.KINDS)
def test_names_what_is_planted(kind: str) -> None:
    world = fabric(kind, 3)
    assert paths.is_right(world, paths.named(world))


def test_names_nothing_where_all_paths_are_alike() -> None:
    world = fabric("", 4)
    assert paths.named(world) == []


def test_says_which_flows_suffer_and_one_that_shows_it() -> None:
    found = bad()
    (culprit,) = found.culprits
    (way,) = culprit.ways
    assert 0 < culprit.share < 1
    flow, well = judging.examples(found.seen, culprit, "loss")
    assert flow is not None
    assert well is not None
    assert way.hops[0] in [*flow.out, *flow.back]
    assert exit_code(found) == 3


def test_what_lost_everything_is_named_by_loss() -> None:
    world = fabric("", 5)
    sick = "spine0"
    seen = [
        msgspec.structs.replace(flow, lost_out=flow.sent, lost_back=0, time_s=None, error_s=None)
        if sick in flow.out
        else flow
        for flow in paths.seen(world)
    ]
    culprits = judging.judge(seen, []).culprits
    assert [way.hops for way in culprits[0].ways] == [[sick]]
    assert culprits[0].effects[0].metric == "loss"


def test_too_little_is_no_all_clear() -> None:
    flows = [flow for flow in paths.seen(fabric("", 6)) if flow.port < 20001]
    assert not all(sight.is_clear for sight in judging.judge(flows, []).sights)


def test_flows_that_are_worse_once_only_are_not_named() -> None:
    world = fabric("latency bond", 3)
    seen = paths.seen(world)
    clean = [msgspec.structs.replace(flow, time_s=4e-5, error_s=1e-7) for flow in seen]
    assert judging.unexplained(judging.judge(seen))
    assert not any(one.effects[0].metric == "latency" for one in judging.judge(seen, clean).culprits)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 40))
def test_a_part_is_named_by_what_it_adds(seed: int, pairs: int, each: int) -> None:
    rng = np.random.default_rng(seed)
    strata = np.repeat(np.arange(pairs), each)
    passes = np.eye(4)[rng.integers(4, size=len(strata))]
    values = rng.standard_normal(len(strata)) + 100 * strata
    values[rng.random(len(values)) < 0.05] = np.nan
    found = tomography.parts(values + 1000 * passes[:, 2], strata, passes, false_alarm=1e-6)
    assert [part.columns[0] for part in found] in ([], [2])
    if pairs * each > 100 and each > 20:
        assert found
        assert abs(found[0].effect - 1000) < 5


def test_the_bench_in_a_lab_tells_right_from_wrong_and_from_what_cannot_be_told() -> None:
    def said(found: Paths, part: tuple[str, ...]) -> str:
        return paths.said_of(part, msgspec.to_builtins(found))

    whole = bad()
    (spine,) = whole.culprits[0].ways[0].names
    assert said(whole, (spine,)) == "right"
    assert said(whole, ("spine99",)).startswith("wrong")
    assert said(whole, ()).startswith("wrong")
    clean = msgspec.structs.replace(whole, culprits=[], missing={})
    assert (said(clean, ()), said(clean, (spine,))) == ("right", "nothing")
    blind = msgspec.structs.replace(clean, missing={"a–b": "silent"})
    assert (said(blind, ()), said(blind, (spine,))) == ("right, blind", "cannot tell")


@pytest.mark.parametrize("kind", [kind for kind in paths.LAB_KINDS if kind != "clean"])
def test_what_the_bench_plants_in_a_lab_can_be_planted(kind: str) -> None:
    shape = topology.parse_fabric(paths.LAB_SHAPE)
    for number in range(20):
        fault, part = paths.planted(kind, np.random.default_rng(number))
        made = fabric_faults.parse(fault, shape)
        assert made.kind in fault and all(name in fault for name in part)


def test_the_bench_plants_nothing_in_a_clean_lab() -> None:
    assert paths.planted("clean", np.random.default_rng(1)) == ("", ())

"""Causes that figures look like; ``make bench NAME=confusion`` tells all of them from each other, many times."""

from __future__ import annotations

import pytest

from bench.confusion import CASES, PAIRS, World, named
from wulf.base import catalogue
from wulf.base.errors import ConfigError
from wulf.base.records import NodeRecord
from wulf.stats.estimate.features import FEATURES, of_pair
from wulf.stats.estimate.signatures import Rule, rules, symptoms

#: Of ten sizes of which each lies anywhere, some lie on a line by chance.
UNCERTAIN = {"network.shared_medium"}


@pytest.mark.parametrize("case", [case for case in CASES if case.name not in UNCERTAIN], ids=lambda c: c.name)
def test_what_is_planted_is_named_and_nothing_else(case):
    world = World(1)
    case.plant(world)
    found = named(world)
    assert case.name in found
    assert found <= {case.name, *case.brings}


def test_every_signature_has_a_case():
    planted = {case.name for case in CASES}
    assert {signature.id for signature in catalogue.signatures().values()} <= planted


def test_on_a_clean_cluster_nothing_is_named():
    assert not any(named(World(seed)) for seed in range(100, 103))


def test_a_symptom_says_where_why_and_what_next():
    world = World(1)
    next(case for case in CASES if case.name == "network.mtu_host").plant(world)
    analysis, records = world.analysis()
    (found,) = symptoms(analysis.cells, analysis.models, records)
    assert found.pairs == [pair for pair in PAIRS if "node03" in pair]
    assert found.of_pairs == len(PAIRS)
    assert found.evidence == "MTU 1500 B and 9000 B"
    assert found.next == "wulf mend --nodes 'node[01-06]'"


def test_without_facts_there_is_no_cause_to_be_found_in_them():
    analysis, _ = World(1).analysis()
    assert symptoms(analysis.cells, analysis.models, []) == []


def test_all_evidence_can_be_written():
    for rule in rules():
        assert "{" not in rule.evidence({})
        assert "unknown" in rule.evidence({})


def test_a_signature_that_speaks_of_no_feature_is_refused():
    known = next(iter(catalogue.signatures().values()))
    wrong = type(known)(
        **{field: getattr(known, field) for field in known.__struct_fields__} | {"when": "smal_s > 1"}
    )
    with pytest.raises(ConfigError, match=r"data/signatures/.*toml: smal_s is not a feature of a pair"):
        Rule(wrong)


def test_features_are_those_that_are_described():
    world = World(1)
    analysis, records = world.analysis()
    cells = [cell for cell in analysis.cells if cell.cell.place == PAIRS[0]]
    found = of_pair(cells, analysis.models[0], (records[0], records[1]))
    plain = {name for name in found if name.partition(".")[0] not in ("one", "other", "least", "most")}
    assert plain <= FEATURES.keys()
    assert found["transport"] == "mpi" and found["sizes"] == 6
    assert 0.9 < found["link_ratio"] < 1.01
    assert found["least.nic.rx_usecs"] == found["most.nic.rx_usecs"] == 3
    assert found["window_bytes"] == 4194304


def test_a_node_of_which_nothing_is_known_takes_no_side():
    analysis, records = World(1).analysis()
    cells = [cell for cell in analysis.cells if cell.cell.place == PAIRS[0]]
    found = of_pair(cells, None, (records[0], NodeRecord(node="node02", reachable=False)))
    assert found["one.nic.duplex"] == "full"
    assert not any(name.startswith(("other.", "least.", "most.")) for name in found)

from __future__ import annotations

import pytest

from wulf import catalogue
from wulf.change import steps
from wulf.errors import UsageError
from wulf.experiment import candidates
from wulf.records import NodeRecord


def nodes(*values, knob):
    return [
        NodeRecord(node=f"n{index}", reachable=True, facts={knob: value})
        for index, value in enumerate(values)
    ]


def choose(records, knob, profile="latency", refusals=None, wanted=()):
    known = {knob: catalogue.knob(knob)}
    return candidates.choose(records, known, profile, refusals or {}, steps.may_have, wanted)


def only(records, knob, **more):
    (found,), _ = choose(records, knob, **more)
    return found


def test_what_is_not_as_recommended_is_tried():
    found = only(nodes("64", "64", knob="nic.rx_usecs"), "nic.rx_usecs")
    assert found.values == ["10"]
    assert found.original == "64"
    assert found.effect == catalogue.knob("nic.rx_usecs").effect


def test_what_is_as_recommended_is_left_alone():
    found, left_out = choose(nodes("0", "0", knob="nic.rx_usecs"), "nic.rx_usecs")
    assert found == []
    assert "as recommended" in left_out["nic.rx_usecs"]


def test_where_nodes_differ_the_value_of_most_is_tried():
    found = only(nodes("1500", "1500", "1400", knob="nic.mtu"), "nic.mtu")
    assert found.values == ["1500"]
    assert found.original == "1500 (2×), 1400"
    assert found.effect >= 0.1


def test_a_value_that_cannot_be_set_is_not_tried():
    found = only(nodes("tracked", "off", knob="net.conntrack"), "net.conntrack")
    assert found.values == ["notrack"]


def test_a_knob_that_can_cut_a_node_off_is_tried_only_when_named():
    records = nodes("1500", "1500", knob="nic.mtu")
    found, left_out = choose(records, "nic.mtu")
    assert found == []
    assert "--knobs" in left_out["nic.mtu"]
    named = only(records, "nic.mtu", wanted=["nic.mtu"])
    assert named.values == ["3000", "4500", "6000", "7500", "9000"]
    assert named.numeric
    assert only(records, "nic.mtu", wanted=["mtu=9000"]).values == ["9000"]


def test_a_refusal_is_told():
    _, left_out = choose(nodes("1400", knob="nic.mtu"), "nic.mtu", refusals={"nic.mtu": "somebody's"})
    assert left_out == {"nic.mtu": "somebody's"}


def test_a_pattern_that_matches_nothing_is_an_error():
    with pytest.raises(UsageError, match="no knob"):
        choose(nodes("1500", knob="nic.mtu"), "nic.mtu", wanted=["nic.foo"])


def test_the_most_promising_comes_first():
    known = {name: catalogue.knob(name) for name in ("nic.rx_usecs", "nic.gro", "svc.irqbalance")}
    records = [
        NodeRecord(
            node="n", reachable=True, facts={"nic.rx_usecs": "64", "nic.gro": "off", "svc.irqbalance": "on"}
        )
    ]
    found, _ = candidates.choose(records, known, "hpc", {}, steps.may_have)
    assert [candidate.knob for candidate in found] == ["nic.rx_usecs", "nic.gro", "svc.irqbalance"]

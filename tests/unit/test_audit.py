"""Findings: on the right nodes, in the right order, and nothing passes silently."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import msgspec
import pytest

from wulf.base import catalogue
from wulf.base.catalogue import Check, Consistency
from wulf.base.checks.evaluate import evaluate
from wulf.base.profile import PROFILES
from wulf.base.records import Audit, NodeRecord
from wulf.base.units import format_fact
from wulf.page import formats
from wulf.page.page import html
from wulf.page.sections import findings as shown

EVIDENCE = {"source": "a book", "how_known": "read"}


def check(**changes) -> Check:
    plain = {
        "id": "nic.half",
        "title": "Half duplex",
        "severity": "fail",
        "costs": ["bandwidth"],
        "effect": 0.9,
        "holds": 'nic.duplex == "full"',
        "found": "{nic.name} is {nic.duplex}",
        "wanted": "full",
        "why": "because",
        "fix": "ethtool -s {interface} autoneg on",
        "risk": "none",
        "evidence": [EVIDENCE],
    }
    return msgspec.convert(plain | changes, Check)


def rule(**changes) -> Consistency:
    plain = {
        "id": "same.mtu",
        "title": "MTU differs",
        "severity": "warn",
        "costs": ["bandwidth"],
        "effect": 0.5,
        "facts": ["nic.mtu_bytes"],
        "why": "because",
        "advice": "the same",
        "risk": "none",
    }
    return msgspec.convert(plain | changes, Consistency)


def node(name: str, unknown: dict[str, str] | None = None, **facts) -> NodeRecord:
    named = {key.replace("__", "."): value for key, value in facts.items()}
    return NodeRecord(node=name, reachable=True, facts={"nic.name": "eth0"} | named, unknown=unknown or {})


def audit(nodes, checks=(), rules=(), knobs=(), profile="hpc") -> Audit:
    return evaluate(nodes, checks, knobs, rules, profile)


def test_a_finding_names_its_nodes_and_fills_its_words() -> None:
    nodes = [node("n1", nic__duplex="full"), node("n2", nic__duplex="half"), node("n3", nic__duplex="half")]
    (finding,) = audit(nodes, [check()]).findings
    assert (finding.nodes, finding.found) == (["n2", "n3"], "eth0 is half")
    assert finding.fix == "ethtool -s eth0 autoneg on"


def test_nothing_passes_silently() -> None:
    nodes = [
        node("n1", nic__duplex="full"),
        node("n2", nic__duplex="half"),
        node("n3", {"nic.duplex": "no ethtool"}),
        node("n4"),
        NodeRecord(node="n5", reachable=False, error="n5: no route"),
    ]
    found = audit(nodes, [check()])
    said = {name: judgement.status for judgement in found.judgements for name in judgement.nodes}
    assert said == {"n1": "ok", "n2": "finding", "n3": "unknown", "n4": "not applicable"}
    assert found.unreachable == {"n5": "n5: no route"}
    assert next(j.reason for j in found.judgements if j.status == "unknown") == "nic.duplex: no ethtool"


def test_what_cannot_be_looked_at_is_not_fine() -> None:
    found = audit(
        [node("a", unknown={"nic.duplex": "no ethtool"}), node("b", unknown={"nic.duplex": "no ethtool"})],
        [check()],
    )
    assert [gap.nodes for gap in found.untold(("fail", "warn"))] == [["a", "b"]]
    assert found.untold(("info",)) == []
    title = shown.page(found).title
    assert title == (
        "Cannot tell whether anything is wrong: on all nodes 1 check of 1 could not be made (no ethtool)"
    )
    assert 'errors="1"' in shown.junit(found)


def test_a_check_is_silent_where_it_makes_no_sense() -> None:
    only = check(when='nic.driver != "veth"')
    found = audit([node("n1", nic__driver="veth", nic__duplex="half")], [only])
    assert not found.findings
    assert found.judgements[0].status == "not applicable"


def test_checks_of_another_profile_are_left_out() -> None:
    assert not audit(
        [node("n1", nic__duplex="half")], [check(profiles=["latency"])], profile="throughput"
    ).judgements


def test_findings_come_by_severity_then_effect() -> None:
    bad = node("n1", nic__duplex="half")
    checks = [
        check(id="a.info", severity="info", effect=1.0),
        check(id="b.warn", severity="warn", effect=0.1),
        check(id="c.warn", severity="warn", effect=0.4),
        check(id="d.fail", effect=0.0),
    ]
    assert [finding.id for finding in audit([bad], checks).findings] == [
        "d.fail",
        "c.warn",
        "b.warn",
        "a.info",
    ]


def test_a_recommended_value_is_worth_trying_unless_a_check_says_it_already() -> None:
    knob = catalogue.knobs()["nic.eee"]
    on = node("n1", nic__eee="on")
    (finding,) = audit([on], knobs=[knob]).findings
    assert (finding.kind, finding.severity, finding.wanted) == ("knob", "info", "off")
    assert finding.fix == "ethtool --set-eee eth0 eee off"
    both = audit([on], [check(id="nic.eee", holds='nic.eee == "off"')], knobs=[knob])
    assert [finding.kind for finding in both.findings] == ["check"]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_node_with_all_recommended_values_has_no_findings_of_knobs(profile) -> None:
    facts = {
        knob.id: catalogue.preferred(knob.recommend[profile])
        for knob in catalogue.knobs().values()
        if profile in knob.recommend
    }
    perfect = NodeRecord(
        node="n1", reachable=True, facts={"nic.name": "eth0", "cpu.idle_exit_us": 100, **facts}
    )
    assert not audit([perfect], knobs=catalogue.knobs().values(), profile=profile).findings


def test_the_odd_ones_are_shown_against_the_most() -> None:
    nodes = [node(f"n{i}", nic__mtu_bytes=9000 if i in (3, 7) else 1500) for i in range(1, 9)]
    (finding,) = audit(nodes, rules=[rule()]).findings
    assert (finding.nodes, finding.found) == (["n3", "n7"], "nic.mtu_bytes: 9000 B")
    assert finding.wanted == "as on most nodes: nic.mtu_bytes: 1500 B"


def test_the_odd_ones_are_told_what_would_make_them_alike() -> None:
    facts = [{"nic.mtu": "1500", "sysctl.net.ipv4.tcp_sack": "1"}] * 3 + [{"nic.mtu": "1400"}]
    nodes = [
        NodeRecord(
            node=f"n{i}", reachable=True, facts={"nic.name": "eth0", "sysctl.net.ipv4.tcp_sack": "0"} | own
        )
        for i, own in enumerate(facts)
    ]
    rules = [rule(facts=["nic.mtu"]), rule(id="same.rest", facts=["sysctl.*"])]
    first, second = audit(nodes, rules=rules, knobs=catalogue.knobs().values()).findings[:2]
    assert first.fix.startswith("ip link set eth0 mtu 1500")
    assert second.fix == "sysctl -w net.ipv4.tcp_sack=1"


def test_the_name_of_an_interface_is_no_difference_where_nodes_call_theirs_otherwise() -> None:
    names = {"n1": "eno1", "n2": "eno1", "n3": "enp3s0"}
    rules = [rule(facts=["mpi.*"])]
    alike = [node(n, nic__name=nic, mpi__networks=f"{nic},docker0") for n, nic in names.items()]
    assert not audit(alike, rules=rules).findings
    other = [node(n, nic__name=nic, mpi__networks="eno1") for n, nic in names.items()]
    (finding,) = audit(other, rules=rules).findings
    assert (finding.nodes, finding.found) == (["n3"], "mpi.networks: eno1")


def test_not_knowing_is_a_gap_and_no_difference() -> None:
    nodes = [
        node("n1", nic__mtu_bytes=1),
        node("n2", nic__mtu_bytes=1),
        node("n3", {"nic.mtu_bytes": "gone"}),
    ]
    assert not audit(nodes, rules=[rule()]).findings


def test_a_group_that_a_node_did_not_tell_is_no_difference() -> None:
    told = {"service__cron": "on", "service__ssh": "on"}
    nodes = [node("n1", **told), node("n2", **told), node("n3"), node("n4", service__ssh="on")]
    (finding,) = audit(nodes, rules=[rule(facts=["service.*"])]).findings
    assert (finding.nodes, finding.found) == (["n4"], "service.cron: absent")


def test_a_tie_has_no_reference_and_no_command() -> None:
    nodes = [node("n1", nic__mtu="1500"), node("n2", nic__mtu="9000")]
    (finding,) = audit(nodes, rules=[rule(facts=["nic.mtu"])], knobs=catalogue.knobs().values()).findings[:1]
    assert finding.wanted.startswith("the same everywhere; as many other nodes have: ")
    assert finding.fix == ""


def test_facts_that_differ_on_the_same_nodes_are_one_finding() -> None:
    nodes = [node("n1", nic__a=1, nic__b=2), node("n2", nic__a=1, nic__b=2), node("n3", nic__a=5, nic__b=6)]
    (finding,) = audit(nodes, rules=[rule(facts=["nic.*"])]).findings
    assert finding.found == "nic.a: 5; nic.b: 6"


def test_a_fact_belongs_to_the_first_rule_that_names_it() -> None:
    nodes = [node("n1", nic__mtu_bytes=1), node("n2", nic__mtu_bytes=1), node("n3", nic__mtu_bytes=2)]
    found = audit(nodes, rules=[rule(), rule(id="same.rest", facts=["nic.*"])])
    assert [finding.id for finding in found.findings] == ["same.mtu"]


def test_numbers_within_the_tolerance_are_equal() -> None:
    nodes = [
        node("n1", memory__total_bytes=100),
        node("n2", memory__total_bytes=100),
        node("n3", memory__total_bytes=99),
    ]
    close = rule(facts=["memory.*"], tolerance=0.02)
    assert not audit(nodes, rules=[close]).findings
    assert audit(nodes, rules=[rule(facts=["memory.*"], tolerance=0.005)]).findings


def test_the_newest_is_right_however_few_have_it() -> None:
    versions = ["5.15.2", "5.15.2", "5.15.10"]
    nodes = [node(f"n{i}", nic__driver_version=version) for i, version in enumerate(versions)]
    (finding,) = audit(nodes, rules=[rule(facts=["nic.driver_version"], newest=True)]).findings
    assert finding.nodes == ["n0", "n1"]
    assert finding.wanted == "the newest on the cluster: nic.driver_version: 5.15.10"


def test_what_belongs_to_a_node_alone_is_never_compared() -> None:
    nodes = [node(f"n{i}", nic__addresses=f"10.0.0.{i}/8", node__load1=i) for i in range(4)]
    assert not audit(nodes, rules=[rule(facts=["*"], but=["nic.name"])]).findings


def test_the_matrix_shows_groups_that_differ() -> None:
    nodes = [
        node("n1", cpu__model="a"),
        node("n2", cpu__model="a"),
        node("n3", {"cpu.smt": "no"}, cpu__model="b"),
    ]
    found = audit(nodes, rules=[rule(facts=["cpu.model"])])
    cpu = {name: row.state for row in found.matrix if row.group == "cpu" for name in row.nodes}
    assert cpu == {"n1": "same", "n2": "same", "n3": "odd"}


HOSTILE = "<script>alert(1)</script>\x1b[2J]]>`|*"


@pytest.fixture
def judged() -> Audit:
    nodes = [
        node("n1", nic__duplex="full", nic__mtu_bytes=1500),
        node("n2", nic__duplex=HOSTILE, nic__mtu_bytes=1500),
        node("n3", {"nic.duplex": HOSTILE}, nic__mtu_bytes=9000),
        NodeRecord(node="n4", reachable=False, error=f"n4: {HOSTILE}"),
    ]
    return audit(nodes, [check(), check(id="ok.one", holds="True")], [rule()])


def test_junit(judged: Audit) -> None:
    suite = ElementTree.fromstring(shown.junit(judged))
    assert suite.attrib["failures"] == "2"
    assert (suite.attrib["errors"], suite.attrib["tests"]) == ("1", "4")
    failed = {case.attrib["name"] for case in suite if case.find("failure") is not None}
    assert failed == {"nic.half: Half duplex", "same.mtu: MTU differs"}


def test_markdown_and_page_are_safe(judged: Audit) -> None:
    text = formats.markdown(shown.page(judged))
    assert "\x1b" not in text and "<script>" not in text.replace("\\<script\\>", "")
    page = html(shown.page(judged))
    assert "<script>alert" not in page
    assert "n[1-" in page or "n2" in page


def test_json_has_all_of_it(judged: Audit) -> None:
    again = msgspec.json.decode(msgspec.json.encode(judged), type=Audit)
    assert again == judged
    assert json.loads(msgspec.json.encode(judged))["unreachable"]["n4"].startswith("n4: ")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("nic.mtu_bytes", 1500, "1500 B"),
        ("nic.speed_bits_per_s", 10**9, "1 Gbit/s"),
        ("nic.speed_bits_per_s", 10**8, "100 Mbit/s"),
        ("nic.pci_speed_gt_per_s", 8.0, "8 GT/s"),
        ("cpu.steal_ratio", 0.0123, "1.23%"),
        ("cpu.idle_exit_us", 133.0, "133 µs"),
        ("node.ok", True, "yes"),
        ("kernel.release", "6.1", "6.1"),
    ],
)
def test_facts_in_words(name: str, value, words: str) -> None:
    assert format_fact(name, value) == words


def test_values_of_the_moment_make_no_findings_of_their_own() -> None:
    stolen = [node(f"n{number:02}", **{"cpu.steal_ratio": 0.02 + number / 500}) for number in range(20)]
    clean = node("n99", **{"cpu.steal_ratio": 0.001})
    steal = check(
        id="cpu.steal",
        holds="cpu.steal_ratio <= 0.01",
        found="{cpu.steal_ratio} was taken",
        wanted="less",
        fix="",
    )
    (finding,) = audit([*stolen, clean], [steal]).findings
    assert finding.nodes == [f"n{number:02}" for number in range(20)]
    assert finding.found == "2.00% to 5.80% was taken"

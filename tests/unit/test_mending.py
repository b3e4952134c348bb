"""What is mended for certain, what is not, and what mending is said to have brought."""

from __future__ import annotations

import io
import math
import re

import numpy as np
import pytest
from rich.console import Console

from wulf.base import catalogue
from wulf.base.errors import UsageError
from wulf.base.records import Audit, ChangeOutcome, Mending, NodeRecord
from wulf.node.fleet.change import Permissions, plan
from wulf.node.fleet.look import judge
from wulf.page import words
from wulf.page.terminal import print_page
from wulf.tools.mend import page as shown
from wulf.tools.mend import work
from wulf.tools.tune.page import mended as section
from wulf.tools.tune.page.audit import findings as findings_table

MTU, IDLE = "nic.mtu", "sysctl.net.ipv4.tcp_slow_start_after_idle"


def nodes(count: int = 4, **odd: dict[str, object]) -> list[NodeRecord]:
    """Nodes that are alike but for the facts in `odd`."""
    alike = {"nic.name": "eth0", MTU: 1500, IDLE: "0", "cpu.model": "a"}
    names = [f"node{number:02}" for number in range(1, count + 1)]
    return [NodeRecord(node=name, reachable=True, facts=alike | odd.get(name, {})) for name in names]


def found_on(records: list[NodeRecord]) -> Audit:
    return judge(records, "hpc")


def remedies(audit: Audit) -> dict[tuple[str, str], dict[str, str]]:
    return {(one.id, one.remedy): one.settings for one in audit.findings if one.kind == "consistency"}


def choose(records: list[NodeRecord], *names: str, **said: bool) -> work.Choice:
    return work.choose(found_on(records), records, list(names), Permissions(**said))


def test_a_node_unlike_most_others_is_made_like_them() -> None:
    records = nodes(node03={MTU: 1400})
    assert remedies(found_on(records))["same.mtu", "mend"] == {MTU: "1500"}
    choice = choose(records)
    change = plan(records, "eth0", choice.wanted, Permissions())
    assert {node: [step.value for step in steps] for node, steps in change.plans.items()} == {
        "node03": ["1500"]
    }
    assert change.rows == {(MTU, "1400", "1500"): ["node03"]}


def test_what_cannot_be_set_is_left_to_a_person_and_the_rest_is_mended() -> None:
    records = nodes(node02={IDLE: "1", "cpu.isolated": "1"})
    assert remedies(found_on(records)) == {
        ("same.knobs", "mend"): {IDLE: "0"},
        ("same.knobs", "person"): {},
    }


@pytest.mark.parametrize("odd", [("node01", "node02"), ("node01", "node02", "node03")])
def test_without_a_majority_nothing_is_certain(odd: tuple[str, ...]) -> None:
    values = {"node01": 1400, "node02": 1300, "node03": 1200}
    audit = found_on(nodes(**{name: {MTU: values[name]} for name in odd}))
    assert not any(one.remedy == "mend" for one in audit.findings if one.id == "same.mtu")


def test_a_node_that_alone_has_what_is_recommended_is_not_made_like_the_others() -> None:
    records = nodes(node01={IDLE: "1"}, node03={IDLE: "1"}, node04={IDLE: "1"})
    assert catalogue.knob(IDLE).recommend["hpc"] == "0"
    assert remedies(found_on(records)) == {("same.knobs", "try"): {}}
    assert not choose(records).findings


def test_two_nodes_have_no_majority() -> None:
    assert not choose(nodes(2, node01={MTU: 1400})).findings


def test_other_hardware_is_for_a_person() -> None:
    assert remedies(found_on(nodes(node02={"cpu.model": "b"})))["same.hardware", "person"] == {}


def test_folklore_is_mended_wherever_it_is() -> None:
    name = "sysctl.net.ipv4.tcp_sack"
    choice = choose(nodes(**{f"node0{number}": {name: "0"} for number in range(1, 5)}), "tcp.sack_folklore")
    assert [str(one) for one in choice.wanted["node04"]] == [f"{name}=1"]


def test_a_setting_of_two_owners_is_refused_unless_it_is_asked_for() -> None:
    records = nodes(node03={MTU: 1400, f"owner.{MTU}": "NetworkManager"})
    choice = choose(records)
    assert not choice.findings
    assert not choice.wanted
    assert "node03" in choice.refused[0].reason
    assert "NetworkManager" in choice.refused[0].reason
    assert choose(records, take_over=True).wanted


def test_a_value_that_most_nodes_have_and_that_cannot_be_set_is_refused() -> None:
    odd = {f"node0{number}": {"nic.rx_usecs": "?"} for number in range(1, 4)}
    choice = choose(nodes(**odd, node04={"nic.rx_usecs": "50"}), "same.knobs")
    assert not choice.wanted
    assert "nic.rx_usecs" in choice.refused[0].reason


def test_what_is_wrong_is_not_made_so_because_most_nodes_have_it() -> None:
    name = "sysctl.net.ipv4.tcp_sack"
    wrong = {f"node0{number}": {name: "0"} for number in range(1, 4)}
    choice = choose(nodes(**wrong, node04={name: "1"}))
    assert {node: str(one) for node, [one] in choice.wanted.items()} == dict.fromkeys(wrong, f"{name}=1")


@pytest.mark.parametrize(
    ("name", "words"),
    [("same.mut", "did you mean"), ("same.hardware", "wulf audit"), ("firewall.conntrack", "wulf tune")],
)
def test_who_names_another_finding_is_told_who_does_it(name: str, words: str) -> None:
    records = nodes(node03={MTU: 1400, "net.conntrack": "tracked"}, node02={"cpu.model": "b"})
    with pytest.raises(UsageError, match=words):
        choose(records, name)


def test_what_is_named_and_well_needs_nothing() -> None:
    assert not choose(nodes(), "same.mtu").wanted


def test_only_what_is_named_is_mended() -> None:
    records = nodes(node03={MTU: 1400}, node02={IDLE: "1"})
    assert set(choose(records, "same.mtu").wanted) == {"node03"}
    assert set(choose(records).wanted) == {"node02", "node03"}


def test_every_check_that_mends_names_a_knob_and_a_value_it_can_have() -> None:
    from wulf.node.change import steps

    for check in catalogue.checks().values():
        for name, value in check.mend.items():
            steps.check(catalogue.knob(name), value)


def readings(times: float, noise: float, count: int = work.BLOCKS, seed: int = 1) -> list[dict[str, float]]:
    rng = np.random.default_rng(seed)
    return [{"ping": times * math.exp(noise * rng.standard_normal())} for _ in range(count)]


@pytest.mark.parametrize(
    ("factor", "verdict"), [(0.8, "better"), (1.2, "worse"), (1.0, "no difference"), (1.03, "no decision")]
)
def test_what_mending_brought(factor: float, verdict: str) -> None:
    noise = {1.0: 0.005, 1.03: 0.1}.get(factor, 0.03)
    effect = next(work.effects(readings(1e-5, noise), readings(factor * 1e-5, noise, seed=2)))
    assert effect.verdict == verdict
    found = Mending(findings=[], refused=[], blocks=work.BLOCKS, effects=[effect])
    assert bool(work.spoiled(found)) == (verdict == "worse")


def test_what_only_works_mended_spoils_nothing_and_the_opposite_does() -> None:
    some = readings(1e-5, 0.01)
    none: list[dict[str, float]] = [{}] * len(some)
    assert list(work.effects(none, some)) == []
    worked = Mending(findings=[], refused=[], blocks=9, failed_before=9, failed_after=0)
    broke = Mending(findings=[], refused=[], blocks=9, failed_before=0, failed_after=9, failures=["lost"])
    assert not work.spoiled(worked)
    assert "9 of 9 measurements failed with it, 0 without: lost" in work.spoiled(broke)
    # One failure more proves nothing, where enough was measured beside it.
    seen = list(work.effects(some, some))
    assert not work.spoiled(
        Mending(findings=[], refused=[], blocks=12, failed_before=1, failed_after=2, effects=seen)
    )
    assert work.spoiled(Mending(findings=[], refused=[], blocks=9, failed_before=0, failed_after=4))


def test_what_could_not_be_measured_is_not_kept() -> None:
    failed: list[dict[str, float]] = [{}]
    dead = Mending(findings=[], refused=[], blocks=4, failed_before=4, failed_after=4, failures=["no way"])
    assert "4 of 4 measurements failed with it, 4 without: no way" in work.spoiled(dead)
    some = readings(1e-5, 0.01)
    few = list(work.effects(some[:2] + 16 * failed, some[:2] + 16 * failed))
    lost = Mending(findings=[], refused=[], blocks=18, failed_before=16, failed_after=16, effects=few)
    assert "too few to see" in work.spoiled(lost)
    # Fewer failures are what was wanted, though little is left to be compared.
    healed = Mending(findings=[], refused=[], blocks=18, failed_before=16, failed_after=2, effects=few)
    assert not work.spoiled(healed)


def test_what_failed_is_measured_again_so_that_worse_can_be_proven() -> None:
    old, new = readings(1e-5, 0.01, 18), readings(2e-5, 0.01, 18, seed=2)
    # Of seven figures, as there are in reality.
    old, new = ([{f"{size} B": one["ping"] for size in range(7)} for one in arm] for arm in (old, new))
    new[3] = {}
    assert work.enough(old[:9], [*new[:3], *new[4:10]])
    assert not work.enough(old[:9], new[:9])
    assert work.enough(old[:10], new[:10])
    assert all(effect.verdict == "worse" for effect in work.effects(old[:10], new[:10]))
    assert all(effect.verdict == "no decision" for effect in work.effects(old[:9], new[:9]))


def test_what_never_works_is_not_tried_to_the_end() -> None:
    good, bad = readings(1e-5, 0.01, 18), [dict[str, float]() for _ in range(18)]
    for before, after in ((good, bad), (bad, good), (bad, bad)):
        assert not work.enough(before[:3], after[:3])
        assert work.enough(before[:4], after[:4])
    # A node that dies on the way takes both with it.
    assert not work.enough([*good[:2], *bad[:3]], [*good[:2], *bad[:3]])
    assert work.enough([*good[:2], *bad[:4]], [*good[:2], *bad[:4]])
    assert not work.enough(good[:17], [*good[:8], *bad[:9]])
    assert work.enough(good, [*good[:8], *bad[8:]]), "not for ever"


@pytest.mark.parametrize("lost", ["node01", "node04"])
def test_a_node_that_does_not_answer_counts_against_a_majority(lost: str) -> None:
    records = [
        NodeRecord(node=one.node, reachable=False, facts={}, error="no answer") if one.node == lost else one
        for one in nodes(node03={MTU: 1400})
    ]
    choice = choose(records)
    assert not choice.wanted, "two of four are not more than half"
    assert choice.audit.unreachable == {lost: "no answer"}
    out = io.StringIO()
    found = Mending(findings=[], refused=[], unreachable=choice.audit.unreachable)
    print_page(shown.build(found), Console(file=out, width=200))
    assert f"{lost}: not looked at, it may be wrong, too: no answer" in out.getvalue()


def test_of_the_nodes_that_are_chosen_the_others_say_what_is_right() -> None:
    audit = work.narrowed(found_on(nodes(node03={MTU: 1400}, node02={IDLE: "1"})), ["node03"])
    assert {(one.id, tuple(one.nodes)) for one in audit.findings if one.remedy == "mend"} == {
        ("same.mtu", ("node03",))
    }
    assert all(one.nodes == ["node03"] for one in audit.findings)


def test_what_one_node_refuses_does_not_keep_the_rest_from_being_mended() -> None:
    name, held = "sysctl.net.ipv4.tcp_sack", "TuneD"
    records = nodes(
        **{f"node0{number}": {name: "0"} for number in (1, 2, 4)},
        node03={name: "0", IDLE: "1", f"owner.{IDLE}": held},
    )
    choice = choose(records)
    assert {node: [str(one) for one in settings] for node, settings in choice.wanted.items()} == {
        f"node0{number}": [f"{name}=1"] for number in range(1, 5)
    }
    [refused] = choice.refused
    assert refused.finding.nodes == ["node03"]
    assert refused.finding.settings == {IDLE: "0"}
    assert held in refused.reason


def test_who_names_a_setting_is_told_which_finding_mends_it() -> None:
    with pytest.raises(UsageError, match=r"name the finding that it mends, same\.mtu"):
        choose(nodes(node03={MTU: 1400}), MTU)


def test_every_finding_that_is_not_mended_says_why() -> None:
    odd = nodes(node01={MTU: 1400}, node02={MTU: 1400, "cpu.model": "b"})
    findings = found_on(odd).findings
    assert {one.id: one.reason for one in findings}["same.mtu"].startswith("no majority of the nodes agrees")
    assert all(bool(one.reason) == (one.remedy != "mend") for one in findings)
    assert "wulf settings set nic.mtu=VALUE" in words.remedy(
        next(one for one in findings if one.id == "same.mtu")
    )


def test_what_was_kept_and_then_not_looked_at_is_told() -> None:
    outcome = ChangeOutcome(change="c", kept=True, nodes=[])
    found = Mending(findings=[], refused=[], outcome=outcome, unseen="interrupted", unmeasured="--no-measure")
    out = io.StringIO()
    print_page(shown.build(found), Console(file=out, width=200))
    assert "what is left is not known (wulf audit): interrupted" in out.getvalue()
    assert "its effect was not measured: --no-measure" in out.getvalue()


def test_what_was_only_refused_is_on_the_page_too() -> None:
    records = nodes(node03={MTU: 1400, f"owner.{MTU}": "NetworkManager"})
    table = section.table(Mending(findings=[], refused=choose(records).refused))
    assert table.note.startswith("Not mended: MTU differs from the other nodes: node03: nic.mtu is held by")


def test_every_changed_node_is_measured_with_one_that_is_not() -> None:
    assert work.pairs_with(["c"], ["a", "b", "c"]) == [("a", "c")]
    assert work.pairs_with(["a", "b"], ["a", "b"]) == [("a", "b")]
    assert work.pairs_with(["a", "b"], ["a", "b", "c", "d"]) == [("a", "c"), ("b", "d"), ("a", "b")]
    assert len(work.pairs_with([str(number) for number in range(40)], [str(n) for n in range(80)])) <= 4
    assert work.pairs_with(["a"], ["a"]) == []


def test_what_was_mended_is_told() -> None:
    records = nodes(node03={MTU: 1400}, node02={"cpu.model": "b"})
    audit = found_on(records)
    effect = next(work.effects(readings(1e-5, 0.01), readings(0.8e-5, 0.01, seed=2)))
    findings = [one for one in audit.findings if one.remedy == "mend"]
    found = Mending(
        findings=findings,
        refused=[],
        others=[one for one in audit.findings if one.remedy != "mend"],
        pairs=[("node03", "node01")],
        blocks=9,
        effects=[effect],
        failed_before=1,
        outcome=ChangeOutcome(change="c", kept=True, nodes=[]),
    )
    out = io.StringIO()
    print_page(shown.build(found), Console(file=out, width=200))
    assert re.search("ping +−20", out.getvalue())
    assert "better" in out.getvalue()
    assert "that need a manual fix (wulf audit)" in out.getvalue()
    table = section.table(found)
    assert table.rows[0][2].flag == "good"
    assert "nic.mtu=1500 on node03" in table.note


def test_a_finding_that_is_told_in_parts_has_all_its_nodes_on_the_page() -> None:
    audit = found_on(nodes(5, node03={MTU: 1400}, node04={MTU: 1300}))
    [row] = [row for row in findings_table(audit, None).rows if row[0].text.startswith("MTU differs")]
    assert row[2].text == "node[03-04]"
    assert "1400" in row[3].text
    assert "1300" in row[3].text

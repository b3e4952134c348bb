"""What bonds of nodes do with flows, as their facts say, and what a verdict on paths makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pytest

from bench import paths as simulated
from wulf.base import catalogue
from wulf.base.records import NodeRecord
from wulf.node.facts.parse import parse
from wulf.node.measuring.flows import Taken
from wulf.node.probe.start import Site
from wulf.tools.paths import bonds, judging, work
from wulf.tools.paths.page import view
from wulf.tools.paths.record import Paths

GOLDEN = Path(__file__).parents[1] / "golden" / "nodes"


def node(name: str = "node01", mode: str = "", policy: str = "", **more: str) -> NodeRecord:
    facts = {"nic.kind": "bond" if mode else "device", "nic.bond_mode": mode, "nic.bond_hash": policy, **more}
    absent = {} if mode else {"nic.bond_mode": "there is no bond in it"}
    return NodeRecord(node=name, reachable=True, facts={k: v for k, v in facts.items() if v}, absent=absent)


@pytest.mark.parametrize(
    ("record", "bond", "spreads", "said"),
    [
        (node(), "", False, ""),
        (node(mode="802.3ad", policy="layer3+4"), "802.3ad, layer3+4", True, ""),
        (node(mode="balance-xor", policy="encap3+4"), "balance-xor, encap3+4", True, ""),
        (node(mode="802.3ad", policy="layer2"), "802.3ad, layer2", False, "by layer2, not by ports"),
        (node(mode="802.3ad", policy="layer2+3"), "802.3ad, layer2+3", False, "not by ports"),
        (node(mode="802.3ad", policy="encap2+3"), "802.3ad, encap2+3", False, "not by ports"),
        # One node's packets of one VLAN have all the same of both.
        (node(mode="802.3ad", policy="vlan+srcmac"), "802.3ad, vlan+srcmac", False, "not by ports"),
        (node(mode="802.3ad"), "802.3ad", False, "is not known"),
        (node(mode="active-backup"), "active-backup", False, "one member"),
        (node(mode="balance-rr"), "balance-rr", False, "packets, not flows"),
        (node(mode="broadcast"), "broadcast", False, "by all members"),
        # Its hash counts only where tlb_dynamic_lb is 0.
        (node(mode="balance-tlb", policy="layer3+4"), "balance-tlb", False, "may choose"),
        (node(mode="balance-alb"), "balance-alb", False, "for each node"),
        (node(mode="new\x1b[2J"), "new�[2J", False, "in a way that is not known here"),
        (node(**{"nic.kind": "team"}), None, False, "its team"),
        (node(**{"nic.kind": "vlan", "nic.stack": "t0.7 (vlan 7) on t0 (team) on a, b"}), None, False, "its team"),
        (NodeRecord(node="node01", reachable=True), None, False, ""),
    ],
)  # fmt: skip
def test_what_a_bond_does_with_flows(record: NodeRecord, bond: str | None, spreads: bool, said: str) -> None:
    assert (bonds.bond(record), bonds.spreads(record)) == (bond, spreads)
    assert said in bonds.remark(record)
    assert bool(said) == bool(bonds.remark(record))


@pytest.mark.parametrize("capture", sorted(GOLDEN.glob("*.tree")), ids=lambda path: path.stem)
def test_bonds_of_real_nodes(capture: Path) -> None:
    interface = msgspec.json.decode(capture.with_suffix(".json").read_bytes())["interface"]
    record = parse("node01", capture.read_text(encoding="utf-8"), interface, list(catalogue.knobs().values()))
    has = "(bond" in str(record.facts.get("nic.stack", ""))
    mode = record.facts.get("nic.bond_mode")
    assert bonds.bond(record) == ("" if not has else None if mode is None else mode)


def found(records: list[NodeRecord]) -> Paths:
    """Return what is found where one node's bond has a sick member, and nothing routes."""
    world = simulated.fabric("rate bond", np.random.default_rng(3))
    seen = simulated.seen(world)
    verdict = judging.judge(seen, seen)
    (sick,) = world.sick
    records = [msgspec.structs.replace(one, node=sick) for one in records]
    site = cast("Any", Site)(**{name: {} for name in Site.__struct_fields__})
    pairs = sorted({flow.nodes for flow in seen})
    return work.judged(world.nodes, pairs, Taken(seen=list(seen)), verdict, (site, records))


OF_SWITCH = "an uplink of its switch"


@pytest.mark.parametrize(
    ("record", "said", "spread"),
    [
        (node(mode="802.3ad", policy="layer3+4"), f"a member of its bond: 802.3ad, layer3+4; or {OF_SWITCH}", True),
        (node(mode="active-backup"), f"its bond uses one member, active-backup: {OF_SWITCH}", False),
        (node(), f"it has no bond: {OF_SWITCH}", False),
        (NodeRecord(node="node01", reachable=True), "a member of its bond, or its uplink", False),
    ],
)  # fmt: skip
def test_a_verdict_says_what_the_paths_of_a_node_are(record: NodeRecord, said: str, spread: bool) -> None:
    first, *more = view.verdict(found([record]))
    assert f"({said})" in first
    assert any("over members of a bond" in line for line in more) == spread
    assert any("no switch that routes has answered" in line for line in more) != spread

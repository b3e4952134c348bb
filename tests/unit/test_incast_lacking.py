"""Remedies that cannot be tried on some nodes are named with what these lack."""

from __future__ import annotations

import msgspec
import pytest

from tests.unit import incast_fixture
from wulf.base.records import NodeRecord
from wulf.node.change import steps
from wulf.node.cluster.config import ClusterConfig
from wulf.node.cluster.transport.local import LocalTransport
from wulf.page.terminal import page_text
from wulf.tools.incast import lacking, page
from wulf.tools.incast.remedies import SETTINGS, remedies

NODES = ("node01", "node02", "node03")
NODE = NodeRecord(node="node01", reachable=True)


def nodes(**other: object) -> list[NodeRecord]:
    """Return three nodes of which the second is another."""
    records = [msgspec.structs.replace(NODE, node=name) for name in NODES]
    return [records[0], msgspec.structs.replace(records[1], **other), records[2]]


def asked(records: list[NodeRecord]) -> dict[str, str]:
    return dict(
        lacking.lacking(LocalTransport(ClusterConfig(name="t", nodes=NODES, transport="local")), records)
    )


def test_every_remedy_that_sets_something_is_looked_for() -> None:
    made = incast_fixture.broken()
    tried = [one for one in made.remedies if "--knobs" in one.command]
    assert {one.kind for one in tried} == set(SETTINGS)
    for one in tried:
        knob = SETTINGS[one.kind].partition("=")[0]
        assert knob in one.command and steps.parse([SETTINGS[one.kind]])


@pytest.mark.parametrize("algorithm", ["reno", "nosuch"])
def test_a_kernel_is_asked_for_its_algorithms(monkeypatch: pytest.MonkeyPatch, algorithm: str) -> None:
    setting = f"sysctl.net.ipv4.tcp_congestion_control={algorithm}"
    monkeypatch.setattr(lacking, "SETTINGS", {"ECN": setting})
    said = {"reno": {}, "nosuch": {"ECN": "node[01-03]: the kernel offers no nosuch there"}}
    assert asked(nodes()) == said[algorithm]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"unsupported": {"nic.pause": "Operation not supported"}}, "node02: nic.pause is unsupported there"),
        ({"absent": {"nic.pause": "no such interface"}}, "node02: nic.pause is absent there"),
        ({"reachable": False, "error": "node02: no route"}, "node02: no route"),
        ({"facts": {"owner.nic.pause": "tuned"}}, "node02: nic.pause is held by tuned"),
    ],
)
def test_what_a_node_cannot_do_is_named(monkeypatch: pytest.MonkeyPatch, other, said: str) -> None:
    monkeypatch.setattr(lacking, "SETTINGS", {"pause frames": "nic.pause=on on"})
    assert asked(nodes(**other))["pause frames"].startswith(said)


def test_what_all_have_is_not_tried_and_what_one_has_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lacking, "SETTINGS", {"shorter timeout": "route.rto_min=5"})
    has = {"facts": {"route.rto_min": "5"}}
    assert asked(nodes(**has)) == {}
    every = [msgspec.structs.replace(one, **has) for one in nodes()]
    assert asked(every) == {"shorter timeout": "all nodes have route.rto_min=5 already"}


def test_what_cannot_be_tried_has_no_command_and_says_why() -> None:
    made = incast_fixture.broken()
    found = remedies(made.cells, made.cliffs, made.depth, {"ECN": "node[01-06]: the kernel offers no dctcp"})
    assert [one.kind for one in found] == [one.kind for one in made.remedies]
    without = {one.kind for one in found if not one.command}
    assert without == {"ECN"}
    text = page_text(page.build(msgspec.structs.replace(made, remedies=found)))
    assert "the kernel offers no dctcp" in text and 'dctcp"' not in text

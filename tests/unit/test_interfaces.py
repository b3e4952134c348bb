"""Interfaces that a job is told to use are those that the nodes have."""

from __future__ import annotations

import pytest

from wulf.base.errors import UsageError
from wulf.base.records import NodeRecord
from wulf.node.fleet import interfaces

KNOB = "ompi.btl_tcp_if_include"
NODES = [
    NodeRecord(node=name, reachable=True, facts={"network.addresses": addresses})
    for name, addresses in (
        ("n1", "eth0=10.0.0.1/24 eth1=10.1.0.1/24"),
        ("n2", "eth0=10.0.0.2/24 enp3s0=10.1.0.2/24 eth0=fd00::2/64"),
    )
]


@pytest.mark.parametrize(
    "value",
    ["eth0", "10.1.0.0/24", "eth1,enp3s0", "lo", "127.0.0.0/8", "eth1, 10.0.0.0/16", "fd00::/16,eth1"],
)
def test_what_every_node_has_is_tried(value: str) -> None:
    interfaces.require({KNOB: value, "nic.mtu": "9000"}, NODES)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("eth9", r"=eth9: no node has eth9; there are eth0 \(10\.0\.0\.1/24 …\), eth1"),
        ("eth0,eht1", "no node has eht1"),
        ("192.168.0.0/16", "no node has 192.168.0.0/16"),
        ("eth1", r"n2 would have no interface; a network .* means the same on every node; there are eth0"),
        ("10.0.0.300/24", "does not appear to be an IPv4 or IPv6 network"),
    ],
)
def test_what_nodes_have_not_is_refused_by_name(value: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        interfaces.require({KNOB: value}, NODES)


def test_of_nodes_whose_addresses_are_not_known_nothing_is_said() -> None:
    interfaces.require({KNOB: "eth9"}, [NodeRecord(node="n1", reachable=True, facts={})])
    interfaces.require({"nic.mtu": "9000"}, NODES)

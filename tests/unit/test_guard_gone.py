"""Devices that have come under another's name, and what is not there any more."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit import guard_states as states
from tests.unit.guard_states import Node

pytestmark = pytest.mark.root

# --- another device under the same name ----------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["apply", "part"])
def test_a_name_that_goes_to_another_device_is_not_followed(node: Node, verb: str) -> None:
    _, value = states.link(node)
    node.done("begin", "A", "me", "600", stdin="nic.mtu\tlink\teth0\tmtu\t1400\n")
    if verb == "part":
        node.done("apply", "A")
        node.done("part", "A", "0")
    node.inside("ip", "link", "del", "eth0")
    states.veth(node)
    said = node.guard(verb, "A", *(["1"] if verb == "part" else []))
    assert "another device has the name eth0 now" in said.stdout
    assert "mtu 1500" in value()


#: What happens to a bridge, whose address is that of its first port, while a change is open.
BRIDGED = {
    "a port": "ip link add port0 address 02:00:00:00:00:01 type veth peer name port1; ip link set port0 master eth0",
    "a failover": "ip link set eth0 address 02:00:00:00:00:77",
    "made anew": "ip link del eth0; ip link add eth0 address 02:00:00:00:00:99 mtu 1400 type bridge",
}


@pytest.mark.parametrize("before", ["apply", "undo"])
@pytest.mark.parametrize("what", ["a port", "a failover"])
def test_a_bridge_is_the_same_whatever_address_it_takes(node: Node, what: str, before: str) -> None:
    _, value = states.link(node)
    node.inside("ip", "link", "del", "eth0")
    node.inside("ip", "link", "add", "eth0", "mtu", "1500", "type", "bridge")
    first = value().split("link/ether ")[1].split()[0]
    node.done("begin", "A", "me", "600", stdin="nic.mtu\tlink\teth0\tmtu\t1400\n")
    if before == "undo":
        node.done("apply", "A")
    node.inside("sh", "-c", BRIDGED[what])
    assert first not in value()
    if before == "apply":
        node.done("apply", "A")
        assert "mtu 1400" in value()
    node.done("undo", "A")
    assert "mtu 1500" in value()


@pytest.mark.parametrize("another_boot", [False, True])
def test_a_bridge_that_was_made_anew_is_another_but_for_a_boot(node: Node, another_boot: bool) -> None:
    _, value = states.link(node)
    node.inside("ip", "link", "del", "eth0")
    node.inside("sh", "-c", "ip link add eth0 address 02:00:00:00:00:07 mtu 1500 type bridge")
    node.keep("A", "nic.mtu link eth0 mtu=1400")
    node.inside("sh", "-c", BRIDGED["made anew"])
    if another_boot:
        node.boot_anew()
        node.done("lock", "me", "600")
    said = node.done("rollback", "B", "me", "600", "original")
    assert ("another device has the name eth0 now" in said) is not another_boot
    if another_boot:
        node.done("apply", "B")
    assert f"mtu {1500 if another_boot else 1400}" in value()


# --- what is not there any more ------------------------------------------------------------------------------


def _interface_goes(node: Node) -> str:
    step, _ = states.link(node)
    node.keep("A", step)
    node.inside("ip", "link", "del", "eth0")
    return "eth0 ("


def _another_device_comes(node: Node) -> str:
    _interface_goes(node)
    states.veth(node)
    return "another device has the name eth0 now"


def _cpu_goes(node: Node) -> str:
    first, second = (states.write(node, f"cpu{number}/governor", "old\n") for number in (0, 1))
    node.keep("A", f"k file - {node.directory}/cpu*/governor=new")
    second.unlink()
    assert first.read_text() == "new\n"
    return f"{second} is not there any more"


def _parameter_goes(node: Node) -> str:
    file = states.write(node, "parameter", "old\n")
    node.keep("A", f"k file - {file}=new")
    file.unlink()
    return "it is not there any more"


@pytest.mark.parametrize("goes", [_interface_goes, _another_device_comes, _cpu_goes, _parameter_goes])
def test_what_is_gone_is_told_and_keeps_nothing_else_from_going_back(
    node: Node, goes: Callable[[Node], str]
) -> None:
    why = goes(node)
    file = states.write(node, "other", "old\n")
    node.keep("B", f"other file - {file}=new")
    said = node.done("rollback", "C", "me", "600", "original") + node.done("apply", "C")
    assert why in said.partition("gone\t")[2]
    node.done("confirm", "C")
    assert file.read_text() == "old\n"
    assert node.differs() == {}


def test_where_all_is_gone_there_is_nothing_to_put_back(node: Node) -> None:
    _interface_goes(node)
    said = node.done("rollback", "B", "me", "600", "original")
    assert said.startswith("gone\tnic.mtu\teth0 (")
    assert said.endswith("\nnothing\n")
    assert (node.shown("A"), node.differs()) == ("abandoned: its values were left as they were", {})


def test_what_is_set_on_the_next_device_of_a_name_goes_back_by_itself(node: Node) -> None:
    why = _another_device_comes(node)
    step, value = "nic.mtu link eth0 mtu=1300", lambda: node.inside("ip", "-o", "link", "show", "eth0")
    node.keep("B", step)
    assert why not in node.done("rollback", "C", "me", "600", "original")
    node.done("apply", "C")
    node.done("confirm", "C")
    assert ("mtu 1500" in value(), node.differs()) == (True, {})


def test_what_cannot_be_seen_is_not_gone(node: Node) -> None:
    _parameter_goes(node)
    node.inside("mount", "-t", "tmpfs", "none", "/sys")
    assert "there is no" in node.guard("rollback", "B", "me", "600", "original").stdout


def test_a_device_is_known_when_its_change_is_condensed(node: Node) -> None:
    step, value = states.link(node)
    node.keep("A", step)
    file = states.write(node, "other", "old\n")
    for number in range(60):
        node.keep(f"B{number}", f"other file - {file}={number}")
    assert not (node.state / "tx/A").exists()
    node.inside("sh", "-c", "ip link del eth0; ip link add eth0 mtu 1400 type veth")
    said = node.done("rollback", "C", "me", "600", "original") + node.done("apply", "C")
    assert "gone\tnic.mtu\tanother device has the name eth0 now" in said
    assert (file.read_text(), "mtu 1400" in value()) == ("old\n", True)


@pytest.mark.parametrize("comes", [False, True], ids=["no device", "another device"])
@pytest.mark.parametrize("confirmed", [False, True])
def test_an_exemption_goes_whatever_device_has_the_name(node: Node, confirmed: bool, comes: bool) -> None:
    """It is by the name, and would hold for any device that gets it."""
    states.link(node)
    node.inside("nft", "table inet f { chain in { type filter hook input priority 0; policy accept; }; }")
    before = states.rules(node)
    node.make("A", "net.conntrack firewall eth0 tracking=exempt")
    if confirmed:
        node.done("confirm", "A")
    node.inside("ip", "link", "del", "eth0")
    if comes:
        states.veth(node)
    if confirmed:
        node.roll_back("B")
    else:
        node.done("undo", "A")
    assert states.rules(node) == before


@pytest.mark.parametrize("confirmed", [False, True])
def test_an_exemption_of_which_somebody_has_taken_a_part_goes_whole(node: Node, confirmed: bool) -> None:
    node.inside("nft", "table inet f { chain in { type filter hook input priority 0; policy accept; }; }")
    before = states.rules(node)
    node.make("A", "net.conntrack firewall eth0 tracking=notrack")
    if confirmed:
        node.done("confirm", "A")
    node.inside("nft", "delete table inet wulf_eth0")
    assert 'iifname "eth0" accept' in states.rules(node)
    if confirmed:
        node.roll_back("B")
    else:
        node.done("undo", "A")
    assert states.rules(node) == before


def test_routes_that_cannot_be_told_apart_are_not_changed(node: Node) -> None:
    _, value = states.route(node)
    node.inside("sh", "-c", "ip route append 10.9.0.0/24 dev eth0 scope link proto static rto_min 7ms")
    before = value()
    said = node.guard("begin", "A", "me", "600", stdin="route.rto_min\troute\teth0\trto_min\t5\n")
    assert "eth0 has several routes to 10.9.0.0/24" in said.stdout
    assert (said.returncode, value()) == (11, before)


def test_no_exemption_comes_back_for_another_device(node: Node) -> None:
    states.link(node)
    node.inside("nft", "table inet f { chain in { type filter hook input priority 0; policy accept; }; }")
    node.keep("A", "net.conntrack firewall eth0 tracking=exempt")
    node.make("B", "net.conntrack firewall eth0 tracking=tracked")
    node.inside("ip", "link", "del", "eth0")
    states.veth(node)
    assert "another device has the name eth0 now" in node.guard("undo", "B").stdout
    assert "wulf" not in states.rules(node)

"""Routes over direct links: four namespaces, a switch and a ring of cables between them; real guards, real pings."""

from __future__ import annotations

import subprocess

import msgspec
import pytest

from tests.unit.network import Network
from wulf.base.errors import TransportError, UsageError
from wulf.node.change import live, routes
from wulf.node.change.guard import Guards
from wulf.node.cluster.inventory import parse
from wulf.node.fleet import change, missed_changes, persist, routing

pytestmark = pytest.mark.root

#: The cables of a ring: (node, interface), the same of the other end; their networks are 10.1.0.0/31, .2/31 …
CABLES = [
    ((1, "eth1"), (2, "eth1")),
    ((2, "eth2"), (3, "eth1")),
    ((3, "eth2"), (4, "eth1")),
    ((4, "eth2"), (1, "eth2")),
]


class Ring(Network):
    """Four nodes."""

    def __init__(self, directory) -> None:
        super().__init__(directory, 4)
        for number, ends in enumerate(CABLES):
            self._connect(number, *ends)

    def _connect(self, number, one, other) -> None:
        first, second = (self._keepers[f"node{node:02d}"].pid for node, _ in (one, other))
        words = f"ip link add {one[1]} netns {first} type veth peer name {other[1]} netns {second}"
        subprocess.run(words.split(), check=True)
        for place, (node, interface) in enumerate((one, other)):
            address = f"10.1.0.{2 * number + place}/31"
            self.on(f"node{node:02d}", f"ip addr add {address} dev {interface} && ip link set {interface} up")


def cluster(more: str = "", links: str | None = None):
    ends = [
        "[{}]".format(
            ", ".join(
                f'"node{node:02d}:{interface}=10.1.0.{2 * number + place}/31"'
                for place, (node, interface) in enumerate(cable)
            )
        )
        for number, cable in enumerate(CABLES)
    ]
    listed = ", ".join(ends) if links is None else links
    text = f'[cluster]\nnodes = "node[01-04]"\ninterface = "eth0"\nlinks = [{listed}]\n{more}'
    return parse(text, "cluster.toml")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    network = Ring(tmp_path_factory.mktemp("ring"))
    yield network
    network.close()


@pytest.fixture
def network(made, monkeypatch, tmp_path):
    """A ring with nothing set, in which what does not come need not be waited for."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    text = live.script()
    monkeypatch.setattr(live, "script", lambda: text.replace("WAIT_S=10", "WAIT_S=1"))
    before = {name: state(made, name) for name in made.names}
    yield made
    guards = Guards(made, "test")
    back = change.roll_back(made, guards, cluster(), made.names, "original", deadline_s=30)
    assert (back.kept, back.notes) == (True, [])
    assert {name: state(made, name) for name in made.names} == before


@pytest.fixture
def strict(network):
    """Nodes that drop what did not come the way on which they would answer."""
    names = ("all", "default", "eth0", "eth1", "eth2")
    for value in (1, 0):
        words = " ".join(f"net.ipv4.conf.{name}.rp_filter={value}" for name in names)
        for node in network.names:
            network.on(node, f"sysctl -qw {words}")
        if value:
            yield


def state(network, node):
    return network.on(
        node, "ip -4 route; cd /proc/sys/net/ipv4/conf; grep -H . */forwarding; cat ../ip_forward"
    )


def route(network, config, hops):
    guards = Guards(network, "test")
    plan = routing.intend(network, guards, config, hops)
    return plan, routing.make(network, guards, plan, deadline_s=30)


def way(network, node, target):
    """The interface over which a node reaches another, and the address that it takes."""
    words = network.on(node, f"ip route get {network.addresses[target]}").split()
    return words[words.index("dev") + 1], words[words.index("src") + 1]


def reaches(network, node, target):
    return network.on(
        node, f"ping -q -n -c 1 -W 1 {network.addresses[target]} >/dev/null && echo yes || echo no"
    ).strip()


def test_neighbours_use_the_cable_and_the_others_the_switch(network):
    plan, outcome = route(network, cluster(), 1)
    assert outcome.kept, outcome.reason
    assert plan.hops == {1: 8}
    assert plan.forwarding == {}
    assert way(network, "node01", "node02") == ("eth1", network.addresses["node01"])
    assert way(network, "node01", "node04") == ("eth2", network.addresses["node01"])
    assert way(network, "node01", "node03") == ("eth0", network.addresses["node01"])
    assert {reaches(network, "node01", other) for other in network.names[1:]} == {"yes"}


def test_two_links_away_is_over_a_node_that_forwards_and_back_the_same_way(network, strict):
    plan, outcome = route(network, cluster(), 2)
    assert outcome.kept, outcome.reason
    assert plan.hops == {1: 8, 2: 4}
    # The switch is not there any more: what is reached is reached over cables, both ways, with the paths checked.
    network.on("switch", "ip link set br0 down")
    try:
        answers = {
            (node, other): reaches(network, node, other)
            for node in network.names
            for other in network.names
            if node != other
        }
    finally:
        network.on("switch", "ip link set br0 up")
    assert set(answers.values()) == {"yes"}
    for node in network.names:
        on = network.on(node, "cd /proc/sys/net/ipv4/conf; grep -l 1 */forwarding || true").split()
        assert sorted(on) == [f"{name}/forwarding" for name in plan.forwarding.get(node, [])]


def test_fewer_links_take_the_longer_routes_away(network):
    assert route(network, cluster(), 2)[1].kept
    _, outcome = route(network, cluster(), 1)
    assert outcome.kept, outcome.reason
    assert way(network, "node01", "node03")[0] == "eth0"
    assert way(network, "node01", "node02")[0] == "eth1"
    assert network.on("node02", "cat /proc/sys/net/ipv4/conf/eth1/forwarding").strip() == "0"
    again, outcome = route(network, cluster(), 1)
    assert (again.plans, outcome.kept, outcome.change) == ({}, True, "")


def test_what_is_set_holds_and_is_not_kept_over_boots(network):
    _, outcome = route(network, cluster(), 1)
    found = change.status(Guards(network, "test"), ["node01"])[0]
    shown = {value.knob: (value.now, value.holds) for value in found.settings if value.differs}
    assert shown[f"direct.route.{network.addresses['node02']}"] == (
        f"via 10.1.0.1 dev eth1 src {network.addresses['node01']}",
        True,
    )
    assert found.settings[0].change == outcome.change
    assert persist.settings(found) == []
    with pytest.raises(UsageError, match="nothing is set on these nodes that could be kept"):
        persist.lasting([found], [], "eth0")


def test_ends_are_completed_from_the_nodes(network):
    links = '["node01:eth1", "node02:eth1"], ["node02=10.1.0.2/31", "node03=10.1.0.3/31"]'
    plan, outcome = route(network, cluster(links=links), 1)
    assert outcome.kept, outcome.reason
    assert plan.hops == {1: 4}
    assert way(network, "node03", "node02")[0] == "eth1"


def test_a_cable_that_carries_nothing_is_put_back(network):
    network.on(
        "node01", "ip link set eth1 down; ip addr add 10.1.0.0/31 dev eth1 2>/dev/null; ip link set eth1 up"
    )
    network.on(
        "node02", "nft 'table ip t { chain c { type filter hook input priority 0; iifname eth1 drop; }; }'"
    )
    before = {name: network.on(name, "ip -4 route") for name in network.names}
    try:
        _, outcome = route(network, cluster(), 1)
    finally:
        network.on("node02", "nft delete table ip t")
    assert not outcome.kept
    assert "is not reached over eth1" in outcome.reason
    assert {one.state for one in outcome.nodes} == {"undone"}
    assert {name: network.on(name, "ip -4 route") for name in network.names} == before


@pytest.mark.parametrize(
    ("links", "error", "said"),
    [
        ('["node01", "node02:eth1"]', UsageError, "link 1: give node01 an interface or an address"),
        (
            '["node01:eth7", "node02:eth1"]',
            change.RefusedError,
            "link 1: node01 has no address eth7 (it has lo ",
        ),
        (
            '["node01:eth1=10.1.0.6/31", "node02"]',
            change.RefusedError,
            "node01 has no address 10.1.0.6/31 on eth1",
        ),
        ('["node01:eth1", "node03:eth1"]', change.RefusedError, "which are not in one network"),
    ],
)
def test_nodes_that_are_not_as_the_file_says_are_not_changed(network, links, error, said):
    with pytest.raises(error) as caught:
        routing.intend(network, Guards(network, "test"), cluster(links=links), 1)
    assert said in str(caught.value)


def test_a_wrong_address_of_the_switch_is_refused(network):
    with pytest.raises(
        change.RefusedError, match=r"node02 has no address 198\.18\.7\.99, as \[addresses\] says"
    ):
        routing.intend(network, Guards(network, "t"), cluster('[addresses]\nnode02 = "198.18.7.99"\n'), 1)
    bare = msgspec.structs.replace(cluster(), interface=None)
    with pytest.raises(UsageError, match="the IPv4 address of node01 behind the switch is not known"):
        routing.intend(network, Guards(network, "t"), bare, 1)


def test_a_node_that_does_not_answer_stops_it(network):
    network.down.add("node03")
    try:
        with pytest.raises(TransportError, match="node03"):
            routing.intend(network, Guards(network, "t"), cluster(), 1)
    finally:
        network.down.clear()


def test_a_node_that_missed_a_change_is_refused(network, monkeypatch):
    config = cluster()
    missed_changes.remember(
        config, ["node02"], "20260101T000000-abcdef", values={"sysctl.net.ipv4.tcp_sack": "0"}
    )
    with pytest.raises(missed_changes.BehindError, match="node02 missed a change"):
        routing.intend(network, Guards(network, "t"), config, 1)
    missed_changes.forget(config, ["node02"])


def test_the_dry_run_prints_what_ip_would_be_told(network):
    plan = routing.intend(network, Guards(network, "t"), cluster(), 2)
    lines = {node: text for text, (node,) in change.explain(network, plan.plans).items()}
    own, other = network.addresses["node01"], network.addresses["node02"]
    assert f"ip -4 route replace {other}/32 via 10.1.0.1 dev eth1 src {own}" in lines["node01"]
    forwarding = [line for text in lines.values() for line in text if "forwarding" in line]
    assert "echo '1' >/proc/sys/net/ipv4/conf/eth1/forwarding" in forwarding
    assert way(network, "node01", "node02")[0] == "eth0"


def test_what_a_node_says_is_read():
    text = (
        "address 1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever\n"
        "address 4: eth1.7@eth1    inet 10.1.0.0/31 scope global eth1.7\\       valid_lft forever\n"
        "route default via 198.18.7.254 dev eth0\n"
        "route 198.18.7.2 via 10.1.0.1 dev eth1.7 src 198.18.7.1 \n"
        "route 198.18.7.3 via 10.1.0.9 dev eth2 src 198.18.7.1 metric 100\n"
        "forwarding /proc/sys/net/ipv4/conf/eth1.7/forwarding 1\n"
        "forwarding /proc/sys/net/ipv4/conf/eth0/forwarding 0\n"
    )
    found = routes.read(text)
    assert found.addresses == {"lo": ["127.0.0.1/8"], "eth1.7": ["10.1.0.0/31"]}
    assert found.forwarding == {"eth1.7"}
    assert "198.18.7.3" not in found.routes
    wanted = routes.HostRoute(
        target="198.18.7.2", gateway="10.1.0.1", interface="eth1.7", source="198.18.7.1"
    )
    assert found.has(wanted)

"""The pure part of the virtual cluster: layout, options of links, and the texts that follow."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wulf.base.errors import UsageError
from wulf.node.cluster import inventory
from wulf.node.lab import fabric_faults, port_faults, slurm, topology
from wulf.node.lab.topology import Link


@given(st.integers(1, 64), st.lists(st.integers(0, 1023), min_size=1, max_size=64, unique=True))
def test_nodes_have_cpus_of_their_own_while_there_are_any(count: int, cpus: list[int]) -> None:
    layout = topology.plan(count, cpus, Link())
    used = [cpu for node in layout.nodes for cpu in node.cpus]
    assert all(node.cpus for node in layout.nodes)
    assert set(used) <= set(cpus)
    assert bool(layout.shared_cpus()) == (len(used) != len(set(used))) == (count > len(cpus))


def test_four_nodes_on_two_cpus_share_in_pairs() -> None:
    layout = topology.plan(4, [0, 1], Link())
    assert layout.shared_cpus() == [["node01", "node03"], ["node02", "node04"]]


def test_without_cpu_sets_all_nodes_share() -> None:
    layout = topology.Topology(nodes=topology.plan(2, [0, 1], Link()).nodes, isolated=False)
    assert layout.shared_cpus() == [["node01", "node02"]]


def test_addresses_are_distinct_and_of_the_benchmarking_range() -> None:
    addresses = [node.address for node in topology.plan(64, [0], Link()).nodes]
    assert len({*addresses, topology.gateway()}) == 65
    assert all(address.startswith("198.18.0.") for address in addresses)


@pytest.mark.parametrize("count", [0, 65, -1])
def test_count_out_of_range(count: int) -> None:
    with pytest.raises(UsageError, match="1 to 64 nodes"):
        topology.plan(count, [0], Link())


def test_override_changes_only_what_it_names() -> None:
    layout = topology.plan(2, [0], Link(mtu=9000, rate="1gbit"), {"node02": Link(rate="100mbit")})
    assert [node.link for node in layout.nodes] == [
        Link(mtu=9000, rate="1gbit"),
        Link(mtu=9000, rate="100mbit"),
    ]


def test_override_of_no_node() -> None:
    with pytest.raises(
        UsageError, match="--link node03: there is no such node; the nodes are node01 to node02"
    ):
        topology.plan(2, [0], Link(), {"node03": Link(mtu=1400)})


def test_parse_override() -> None:
    assert topology.parse_override("node03:rate=100mbit,mtu=9000,delay=50us") == (
        "node03",
        Link(rate="100mbit", mtu=9000, delay="50us"),
    )


@pytest.mark.parametrize(
    "what", ["", ":", ":speed=1", ":mtu", ":mtu=big", ":mtu=1", ":mtu=1500,", ":rate=0mbit"]
)
def test_parse_override_refuses_what_is_not_an_option(what: str) -> None:
    with pytest.raises(UsageError):
        topology.parse_override(f"node03{what}")


@pytest.mark.parametrize(
    "text", ["node03:rate=1 gbit", "node03:rate=1gbit;reboot", "node03:delay=-1ms", ":mtu=1500"]
)
def test_parse_override_refuses(text: str) -> None:
    with pytest.raises(UsageError):
        topology.parse_override(text)


def test_delay_goes_below_rate() -> None:
    rate, delay = topology.shaping(Link(rate="1gbit", delay="50us"), "host0")
    assert "root handle 1: tbf rate 1gbit" in rate
    assert "parent 1: netem delay 50us" in delay
    assert topology.shaping(Link(), "host0") == []


def test_without_netem_a_program_holds_frames_back_between_node_and_switch() -> None:
    link = Link(rate="1gbit", delay="1.5ms", mtu=9000)
    assert not any("netem" in command for command in topology.shaping(link, "host0", has_netem=False))
    assert topology.plugging(link, "node02", "wulf0", "/opt/my programs/wulf-delay") == [
        "ip link set vb-node02 arp off up",
        "'/opt/my programs/wulf-delay' vb-node02 tap-node02 1500000 &",
        "await tap-node02",
        "ip link set tap-node02 mtu 9000",
        "ip link set tap-node02 master wulf0 up",
    ]
    direct = ["ip link set vb-node02 master wulf0 up"]
    assert topology.plugging(link, "node02", "wulf0", "") == direct
    assert topology.plugging(Link(rate="1gbit"), "node02", "wulf0", "/opt/wulf-delay") == direct


@pytest.mark.parametrize("count", [1, 4, 12])
def test_cluster_file_is_one_that_wulf_reads(count: int, tmp_path: Path) -> None:
    config = str(tmp_path / "ssh_config")
    Path(config).touch()
    layout = topology.plan(count, [0, 1], Link())
    read = inventory.parse(topology.cluster_toml(layout, config), "lab")
    assert list(read.nodes) == layout.names()
    assert read.ssh.config == config
    assert read.addresses == {node.name: node.address for node in layout.nodes}
    assert [list(group) for group in read.shared_cpus] == layout.shared_cpus()


def test_ssh_never_asks_and_never_trusts_a_stranger() -> None:
    text = topology.ssh_config(topology.plan(2, [0], Link()), "/a b", "connect")
    assert "StrictHostKeyChecking yes" in text
    assert 'IdentityFile "/a b/key"' in text
    assert "ProxyCommand connect %h %p" in text


def test_units_of_the_host_are_masked_except_what_a_node_needs() -> None:
    enabled = ["ssh.service", "postgresql.service", "apt-daily.timer", "irqbalance.service"]
    masked = topology.units_to_mask(enabled)
    assert {"postgresql.service", "apt-daily.timer"} <= set(masked)
    assert not {"ssh.service", "irqbalance.service"} & set(masked)
    assert topology.units_to_disable(enabled) == ["irqbalance.service"]


RING = [(0, 1), (1, 2), (2, 3), (0, 3)]


def test_direct_cables_are_in_the_cluster_file(tmp_path: Path) -> None:
    config = str(tmp_path / "ssh_config")
    Path(config).touch()
    layout = topology.plan(4, [0, 1], Link(rate="100mbit"), cables=RING)
    read = inventory.parse(topology.cluster_toml(layout, config), "lab")
    names = layout.names()
    assert [link.nodes for link in read.links] == [(names[one], names[other]) for one, other in RING]
    ends = [end for link in read.links for end in link.ends]
    assert len({end.address for end in ends}) == len({(end.node, end.interface) for end in ends}) == 8
    assert all(end.address is not None and end.address.startswith("198.19.") for end in ends)
    assert {end.interface for end in ends} == {"cable1", "cable2"}
    assert topology.plan(4, [0, 1], Link()).cables == []


def test_a_node_gives_its_cables_their_addresses_and_the_switch_alone_is_slow() -> None:
    layout = topology.plan(4, [0], Link(rate="100mbit"), cables=RING)
    unit = topology.network_unit(layout.nodes[0], [end for _, end in layout.plugs("node01")])
    assert "ip address replace 198.19.0.0/31 dev cable1\n" in unit
    assert "ip link set dev cable2 up\n" in unit
    assert "ip address replace 198.18.0.10/16 dev host0\n" in unit
    assert unit.count("tbf") == 1
    assert all(len(end.outside()) <= 15 for cable in layout.cables for end in cable.ends)


def test_cables_need_their_nodes() -> None:
    with pytest.raises(UsageError, match="the cables are those of 4 nodes: say --nodes 4 or more"):
        topology.plan(3, [0], Link(), cables=RING)


def test_a_cluster_of_64_nodes_has_addresses_for_all_cables_of_a_hypercube() -> None:
    pairs = [(one, one ^ 1 << bit) for one in range(64) for bit in range(6) if not one >> bit & 1]
    layout = topology.plan(64, [0], Link(), cables=pairs)
    addresses = [end.address for cable in layout.cables for end in cable.ends]
    assert len(set(addresses)) == 384
    assert all(len(end.outside()) <= 15 for cable in layout.cables for end in cable.ends)


def test_slurm_knows_every_node_with_its_own_cpus() -> None:
    layout = topology.plan(3, [0, 1, 2, 3, 4, 5], Link())
    lines = slurm.configuration(layout).splitlines()
    assert "SlurmctldHost=node01(198.18.0.10)" in lines
    assert "NodeName=node03 NodeAddr=198.18.0.12 CPUs=2 State=UNKNOWN" in lines
    assert "slurmctld.service" in slurm.units(layout, layout.nodes[0])
    assert "slurmctld.service" not in slurm.units(layout, layout.nodes[1])


def test_a_host_that_runs_slurm_itself_does_not_run_its_controller_in_every_node() -> None:
    layout = topology.plan(2, [0], Link())
    enabled = ["munge.service", "slurmd.service", "slurmctld.service", "cron.service"]
    masked = topology.units_to_mask(enabled, slurm.units(layout, layout.nodes[1]))
    assert set(enabled) & set(masked) == {"slurmctld.service", "cron.service"}
    assert set(enabled) <= set(topology.units_to_mask(enabled))


def test_the_cluster_file_inside_the_nodes_names_no_ssh_configuration() -> None:
    layout = topology.plan(4, [0, 1], Link())
    config = inventory.parse(topology.cluster_toml(layout, None), "cluster.toml")
    assert config.ssh.config is None
    assert config.shared_cpus == (("node01", "node03"), ("node02", "node04"))


def test_a_fabric_gives_each_leaf_its_nodes_and_a_network_of_its_own() -> None:
    layout = topology.plan(5, [0], Link(), fabric=topology.parse_fabric("leaf-spine:2x4"))
    assert [node.leaf for node in layout.nodes] == [1, 1, 1, 2, 2]
    networks = {
        node.leaf: ipaddress.ip_network(f"{node.address}/{node.prefix}", strict=False)
        for node in layout.nodes
    }
    assert not networks[1].overlaps(networks[2])
    assert all(ipaddress.ip_address(node.address) in networks[node.leaf] for node in layout.nodes)


@given(st.integers(2, 16), st.integers(1, 16))
def test_addresses_of_a_fabric_are_different(leaves: int, spines: int) -> None:
    layout = topology.plan(64, [0], Link(), fabric=topology.parse_fabric(f"leaf-spine:{leaves}x{spines}"))
    lines = topology.hosts_file(layout).splitlines()
    addresses = [line.split()[0] for line in lines]
    assert len(addresses) == len(set(addresses)) == 2 + 64 + leaves + spines
    assert all(ipaddress.ip_address(address) in topology.NETWORK for address in addresses[2:])


@pytest.mark.parametrize(
    "text", ["leaf-spine:1x4", "leaf-spine:2x0", "leaf-spine:17x2", "clos:2x2", "leaf-spine:2"]
)
def test_refuses_what_is_no_fabric(text: str) -> None:
    with pytest.raises(UsageError, match="--fabric"):
        topology.parse_fabric(text)


@pytest.mark.parametrize(
    ("text", "exits"),
    [
        ("spine3:loss=1%", [("spine3", "leaf1"), ("spine3", "leaf2")]),
        ("spine3>leaf2:rate=100mbit", [("spine3", "leaf2")]),
        ("leaf1>spine4:loss=0.5%", [("leaf1", "spine4")]),
    ],
)
def test_a_fault_of_a_switch_is_of_what_it_sends(text: str, exits: list[tuple[str, str]]) -> None:
    assert list(fabric_faults.parse(text, topology.parse_fabric("leaf-spine:2x4")).exits) == exits


@pytest.mark.parametrize(
    "text",
    ["spine5:loss=1%", "spine1>spine2:loss=1%", "spine1:loss=0.01%", "spine1:delay=fast", "spine1:mtu=9000"],
)
def test_refuses_faults_that_a_fabric_cannot_have(text: str) -> None:
    with pytest.raises(UsageError):
        fabric_faults.parse(text, topology.parse_fabric("leaf-spine:2x4"))


def test_a_port_is_made_as_it_is_written_and_as_it_was() -> None:
    port = port_faults.parse("node01:queue=64KiB,rate=1gbit", ["node01"])
    (command,) = port.commands(topology.Link(), has_netem=True)
    assert command[command.index("limit") + 1] == str(64 * 1024)
    assert command[command.index("rate") + 1] == "1gbit"
    well = port_faults.parse("node01:none", ["node01"])
    assert well.commands(topology.Link(), has_netem=True) == []
    (usual,) = well.commands(topology.Link(rate="1gbit"), has_netem=True)
    assert "128kb" in usual


@pytest.mark.parametrize(
    "text", ["node09:queue=64KiB", "node01:queue=1KiB", "node01:queue=much", "node01:queue="]
)
def test_refuses_what_a_port_cannot_be(text: str) -> None:
    with pytest.raises(UsageError):
        port_faults.parse(text, ["node01"])

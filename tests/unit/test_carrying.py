"""Effects on the wire, and that data still pass: real interfaces in namespaces, names with and without [addresses]."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.network import Network
from wulf.base.contracts import NodeResult
from wulf.node.change import connectivity, live, steps
from wulf.node.change.guard import Guards
from wulf.node.change.steps import Step
from wulf.node.cluster.inventory import parse
from wulf.node.fleet import change

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    network = Network(tmp_path_factory.mktemp("network"))
    yield network
    network.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch, request):
    """What does not come need not be waited for."""
    if "needs_a_while" not in request.node.name:
        text = live.script()
        assert "WAIT_S=10" in text
        monkeypatch.setattr(live, "script", lambda: text.replace("WAIT_S=10", "WAIT_S=1"))


@pytest.fixture
def network(made):
    yield made
    made.down.clear()
    for name in made.names:
        made.names_mean(name)
        made.on(name, "ip link set eth0 up mtu 1500; sysctl -qw net.ipv4.icmp_echo_ignore_all=0")
        made.on("switch", f"ip link set p-{name} up mtu 1500")


def cluster(interface: str | None = "eth0", addresses: str = ""):
    line = f'interface = "{interface}"' if interface else ""
    return parse(f'[cluster]\nnodes = "node[01-03]"\n{line}\n[addresses]\n{addresses}', "cluster.toml")


def debian_names(network: Network) -> None:
    """As Debian's installer does it: a node's own name means 127.0.1.1 to itself."""
    for own in network.names:
        others = [f"{address} {name}" for name, address in network.addresses.items() if name != own]
        network.names_mean(own, f"127.0.1.1 {own}", *others)


def mtu(network: Network, config, nodes=None):
    where = change.effect_probe(network, config, nodes or network.names)
    return live.checks(where, steps.parse(["nic.mtu=1500"]))()


def test_nodes_find_their_neighbours_without_addresses_by_their_own(network):
    assert mtu(network, cluster()) == {}
    network.on("switch", "ip link set p-node02 mtu 1400")
    lost = mtu(network, cluster())
    assert "a packet of 1500 B does not reach 198.18.7.2" in lost["node01"]


def test_names_are_looked_up_on_the_nodes_where_no_interface_is_known(network):
    debian_names(network)
    assert mtu(network, cluster(interface=None)) == {}
    assert mtu(network, cluster(interface=None), ["node02"]) == {}
    counted = live.checks(
        change.effect_probe(network, cluster(interface=None), network.names),
        steps.parse(["net.conntrack=notrack"]),
    )
    assert counted() == {}


def test_a_neighbour_that_is_not_changed_is_found_too(network):
    assert mtu(network, cluster(), ["node03"]) == {}
    where = change.effect_probe(network, cluster(), ["node03"])
    assert set(where.addresses) == {"node01", "node02", "node03"}


def test_names_that_mean_nothing_on_the_nodes_are_named_with_what_to_do(network):
    for node in network.names:
        network.names_mean(node, f"127.0.1.1 {node}")
    lost = mtu(network, cluster(interface=None))
    assert set(lost) == set(network.names)
    assert "it does not know the address of node02 node03" in lost["node01"]
    assert "[addresses] in cluster.toml" in lost["node01"]
    assert "HostName of your ssh configuration is not known to the nodes" in lost["node01"]


def test_addresses_of_the_file_come_before_all_others(network):
    text = "\n".join(f'{name} = "{address}"' for name, address in network.addresses.items())
    assert mtu(network, cluster(interface=None, addresses=text)) == {}


def look(network: Network, config=None, **more):
    config = config or cluster()
    return connectivity.Carrying(change.effect_probe(network, config, network.names), **more).look()


def test_what_passes_as_before_is_no_reason(network):
    seen = look(network)
    assert seen.reasons() == {}
    assert seen.notes() == []


def test_an_interface_that_carries_nothing_any_more_is_a_reason(network):
    seen = look(network)
    network.on("switch", "ip link set p-node02 down")
    lost = seen.reasons()
    # The others have each other.
    assert set(lost) == {"node02"}
    assert lost["node02"].startswith("eth0 carried packets of 1500 B to node03 before the change")
    assert lost["node02"].endswith("carries nothing now")


def test_an_interface_that_carries_only_small_packets_is_a_reason(network):
    seen = look(network)
    network.on("switch", "ip link set p-node03 mtu 1000")
    assert seen.reasons()["node03"].endswith("carries only small ones now, none of 1500 B")
    back = look(network, whole=False)
    assert back.reasons() == {}


def test_on_the_way_back_whole_frames_are_only_remarked(network):
    seen = look(network, whole=False)
    network.on("switch", "ip link set p-node03 mtu 1000")
    assert seen.reasons() == {}
    assert seen.notes() == ["node03: eth0 carries only small packets now, none of 1500 B"]


def test_what_did_not_pass_before_is_not_blamed_on_the_change(network):
    network.on("switch", "ip link set p-node01 down")
    seen = look(network)
    assert seen.reasons() == {}
    (note,) = seen.notes()
    assert note.startswith("node01: eth0 carried nothing to a neighbour before the change either")


def test_a_link_that_needs_a_while_is_waited_for(network):
    seen = look(network)
    network.on("node02", "ip link set eth0 down; (sleep 2; ip link set eth0 up) >/dev/null 2>&1 &")
    assert seen.reasons() == {}


def test_without_neighbours_nothing_is_asked(network):
    local = parse('[cluster]\nnodes = "node[01-03]"\ntransport = "local"\n', "test")
    assert look(network, local)._before == {}
    alone = parse('[cluster]\nnodes = "node01"\ninterface = "eth0"\n', "test")
    seen = connectivity.Carrying(change.effect_probe(network, alone, ["node01"])).look()
    assert (seen._before, seen.reasons(), seen.notes()) == ({}, {}, [])


@pytest.fixture
def bare(tmp_path):
    network = Network(tmp_path)
    yield network
    network.close()


def test_where_ping_is_missing_what_is_there_is_used_and_unknown_is_said(bare):
    bare.without("node01", "ping")
    bare.without("node02", "ping", "bash", "python3")
    seen = look(bare)
    assert [seen._before[node].level for node in bare.names] == [1, 0, 2]
    assert seen.notes() == [
        "node02: whether eth0 still carries data to a neighbour is not known: ping cannot be used there, nor bash "
        "or python3 instead"
    ]
    bare.on("switch", "ip link set p-node01 down")
    assert seen.reasons()["node01"].endswith("carries nothing now")


def intention(network: Network, target: str, value: str):
    step = Step(knob=f"sysctl.{target}", kind="sysctl", interface="-", target=target, value=value)
    return change.ChangePlan(
        wanted={name: [] for name in network.names}, plans={node: [step] for node in network.names}, rows={}
    )


def test_a_change_after_which_nothing_passes_is_put_back_whatever_it_is(network):
    config = cluster()
    silent = intention(network, "net.ipv4.icmp_echo_ignore_all", "1")
    outcome = change.make(Guards(network, "me"), config, silent, deadline_s=300)
    assert not outcome.kept
    assert "node[01-03]: eth0 carried packets of 1500 B" in outcome.reason.replace(
        "node01", "node[01-03]", 1
    ) or ("carries nothing now" in outcome.reason)
    assert {node.state for node in outcome.nodes} == {"undone"}
    assert network.on("node01", "sysctl -n net.ipv4.icmp_echo_ignore_all").strip() == "0"


def test_a_change_that_harms_nothing_is_kept_and_rolled_back(network):
    config = cluster()
    harmless = intention(network, "net.ipv4.tcp_slow_start_after_idle", "0")
    guards = Guards(network, "me")
    outcome = change.make(guards, config, harmless, deadline_s=300)
    assert (outcome.kept, outcome.notes) == (True, []), outcome
    back = change.roll_back(network, guards, config, network.names, "original", deadline_s=300)
    assert (back.kept, back.notes) == (True, []), back
    assert network.on("node02", "sysctl -n net.ipv4.tcp_slow_start_after_idle").strip() == "1"


def result(said: bytes) -> NodeResult:
    return NodeResult(node="n", status="ok", exit_code=0, stdout=said, stderr=b"")


@given(st.one_of(st.binary(max_size=60), st.text(max_size=30).map(lambda text: f"passes\t{text}".encode())))
def test_any_bytes_are_an_answer(said):
    seen = connectivity.passing({"n": result(said)})["n"]
    assert seen.level == 0 or said.strip().rpartition(b"\n")[2].startswith(b"passes\t")
    assert live._numbers({"n": result(said)}).keys() <= {"n"}

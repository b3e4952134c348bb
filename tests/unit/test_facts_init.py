"""What `wulf init` makes of a first look: which interface, which addresses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wulf.base.errors import InventoryError
from wulf.base.interfaces import Interfaces
from wulf.base.records import NodeRecord
from wulf.node.cluster.inventory import local
from wulf.node.cluster.transport import open_transport
from wulf.node.facts.init import choose, read_resolved, resolve_argv, seen


def node(name: str, addresses: str) -> NodeRecord:
    return NodeRecord(node=name, reachable=True, facts={"network.addresses": addresses})


TWO = [
    node("n1", "eth0=192.0.2.1/24 ib0=10.0.0.1/24 eth0=2001:db8::1/64"),
    node("n2", "eth0=192.0.2.2/24 ib0=10.0.0.2/24 eth0=2001:db8::2/64"),
]
NAMED = {"n1": "192.0.2.1", "n2": "192.0.2.2"}


def test_the_interface_that_names_lead_to() -> None:
    choice = choose(TWO, NAMED, None)
    assert (choice.interface, choice.addresses, choice.notes) == ("eth0", {}, [])


def test_the_users_interface_and_its_addresses() -> None:
    choice = choose(TWO, NAMED, "ib0")
    assert (choice.interface, choice.addresses) == ("ib0", {"n1": "10.0.0.1", "n2": "10.0.0.2"})
    assert "names do not resolve to ib0 on n1, n2" in choice.notes[0]


def test_the_only_interface_there_is() -> None:
    choice = choose([node("n1", "e=10.0.0.1/8"), node("n2", "e=10.0.0.2/8 x=fd00::1/64")], {}, None)
    assert (choice.interface, choice.addresses) == ("e", {"n1": "10.0.0.1", "n2": "10.0.0.2"})


def test_no_guess_when_nothing_stands_out() -> None:
    choice = choose(TWO, {}, None)
    assert (choice.interface, choice.addresses) == (None, {})
    assert "cannot choose an interface among eth0, ib0" in choice.notes[0]


def test_an_interface_that_some_nodes_lack_is_refused() -> None:
    with pytest.raises(InventoryError, match=r"n3 has no address on ib0, and no one other"):
        choose([*TWO, node("n3", "eth0=192.0.2.3/24")], NAMED, "ib0")


def test_nodes_that_do_not_answer() -> None:
    down = NodeRecord(node="n3", reachable=False, error="n3: ssh could not connect")
    choice = choose([*TWO, down], NAMED, None)
    assert choice.interface == "eth0"
    assert choice.notes == ["does not answer: n3: ssh could not connect"]
    with pytest.raises(InventoryError, match="no node answered; the first says: n3: ssh could not connect"):
        choose([down], {}, None)


@given(st.lists(st.text(max_size=60), min_size=1, max_size=4), st.text(max_size=100))
def test_any_addresses_are_a_choice_or_a_clear_error(addresses: list[str], resolved: str) -> None:
    records = [node(f"n{index}", text) for index, text in enumerate(addresses)]
    try:
        choice = choose(records, read_resolved(resolved), None)
    except InventoryError:
        return
    assert choice.interface is not None or choice.notes


def test_resolving_on_a_real_node() -> None:
    transport = open_transport(local())
    argv = resolve_argv(["localhost", "192.0.2.7", "no-such-host.invalid", "$(id)"])
    answer = transport.run(argv, ["local1"], timeout_s=30)["local1"]
    found = read_resolved(answer.stdout.decode())
    assert found["localhost"] in ("127.0.0.1", "::1")
    assert found["192.0.2.7"] == "192.0.2.7"
    assert set(found) == {"localhost", "192.0.2.7"}


def test_two_names_of_one_machine_are_refused() -> None:
    records = [
        node("dune", "e=10.0.0.1/8"),
        node("dune.hpc.example", "e=10.0.0.1/8"),
        node("amber", "e=10.0.0.2/8"),
    ]
    with pytest.raises(InventoryError, match=r"dune, dune\.hpc\.example have the same address 10\.0\.0\.1"):
        choose(records, {}, None)


def test_each_node_may_call_the_interface_in_its_own_way() -> None:
    records = [
        node("n1", "eno1=10.0.0.1/24 ib0=10.9.0.1/24"),
        node("n2", "enp3s0=10.0.0.2/24 docker0=172.17.0.1/16"),
        node("n3", "eno1=10.0.0.3/24"),
    ]
    choice = choose(records, {"n1": "10.0.0.1", "n2": "10.0.0.2", "n3": "10.0.0.3"}, None)
    assert choice.interface == Interfaces(usual="eno1", of_node={"n2": "enp3s0"})
    assert (choice.addresses, choice.notes) == (
        {},
        ["the interface is eno1, enp3s0 on n2: written down below [interfaces]"],
    )
    # Without names that lead anywhere the only network that all are in says it.
    assert choose(records, {}, None).interface == choice.interface


def test_of_two_interfaces_in_the_network_none_is_guessed() -> None:
    records = [node("n1", "eno1=10.0.0.1/24"), node("n2", "a=10.0.0.2/24 b=10.0.0.3/24")]
    with pytest.raises(InventoryError, match=r"n2 has no address on eno1, and no one other interface"):
        choose(records, {"n1": "10.0.0.1"}, None)


def test_nodes_with_addresses_of_ipv6_alone() -> None:
    records = [node("n1", "eno1=fd00:1::1/64"), node("n2", "enp3s0=fd00:1::2/64")]
    choice = choose(records, {"n1": "fd00:1::1"}, None)
    assert choice.interface == Interfaces(usual="eno1", of_node={"n2": "enp3s0"})
    assert choice.addresses == {"n2": "fd00:1::2"}


def test_what_stands_in_the_way_of_jobs_is_said() -> None:
    facts = {
        "amber": {
            "path.ssh": "10.88.0.2: Host key verification failed.",
            "path.ports": "works",
            "mpi.mpich": "4.0.2",
        },
        "coral": {
            "path.ssh": "works",
            "path.ports": "dune (port 43000: no answer in time)",
            "mpi.mpich": "4.0.2",
        },
        "dune": {"path.ssh": "works", "path.loopback_names": "amber (127.0.1.1)", "mpi.openmpi": "4.1.4"},
    }
    records = [NodeRecord(node=name, reachable=True, facts=has) for name, has in facts.items()]
    assert seen(records) == [
        "amber cannot ssh to 10.88.0.2: Host key verification failed.",
        "coral cannot reach dune (port 43000: no answer in time)",
        "dune means itself by amber (127.0.1.1)",
        "jobs between nodes with different MPI libraries fail: MPICH 4.0.2 on amber,coral; Open MPI 4.1.4 on dune",
    ]
    assert seen(records[:0]) == []

"""``--allow-missing``: nodes that do not answer are left out, remembered, and refused until they are as the others."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer

from tests.unit.network import Network
from wulf.base.errors import EXIT_ERROR, TransportError, UsageError
from wulf.base.store import missing_nodes as book
from wulf.face.cli import rollback, set_values, status
from wulf.node.change.guard import Guards
from wulf.node.cluster import inventory
from wulf.node.cluster.transport import shell
from wulf.node.fleet import change, missed_changes, preparation

pytestmark = pytest.mark.root

KNOB = "sysctl.net.ipv4.tcp_slow_start_after_idle"
OTHER = "sysctl.net.ipv4.tcp_autocorking"
CLUSTER = '[cluster]\nnodes = "node[01-03]"\ninterface = "eth0"\n[groups]\nall = "node[01-03]"\n'


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    network = Network(tmp_path_factory.mktemp("network"))
    yield network
    network.close()


@pytest.fixture
def network(made, tmp_path, monkeypatch):
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    @contextmanager
    def open_guards(_):
        yield made, Guards(made, "me")

    monkeypatch.setattr(change, "open_guards", open_guards)
    monkeypatch.setattr(preparation, "open_transport", lambda _: made)
    monkeypatch.setattr(made, "close", lambda: None)
    yield made
    made.down.clear()
    guards = Guards(made, "me")
    change.roll_back(made, guards, config(), made.names, "original", deadline_s=300)


def config():
    return inventory.load(Path("cluster.toml"))


def run_set(capsys, *words, allow_missing=0, nodes=None):
    """Run ``wulf settings set``: (exit code, outcome)."""
    code = 0
    capsys.readouterr()
    try:
        set_values.command(
            list(words),
            nodes=nodes,
            confirm_within="300s",
            allow_missing=allow_missing,
            json=True,
            cluster=None,
        )
    except typer.Exit as end:
        code = end.exit_code
    said = capsys.readouterr().out
    return code, json.loads(said)


def states(outcome):
    return {node["node"]: node["state"] for node in outcome["nodes"]}


def value(network, node, knob=KNOB):
    return network.on(node, f"sysctl -n {knob.removeprefix('sysctl.')}").strip()


def test_a_node_that_is_down_is_left_out_and_refused_until_it_is_equal(network, capsys):
    network.down.add("node03")
    with pytest.raises(change.RefusedError, match="node03"):
        run_set(capsys, f"{KNOB}=0")
    code, outcome = run_set(capsys, f"{KNOB}=0", allow_missing=1)
    assert (code, outcome["kept"]) == (0, True)
    assert states(outcome) == {"node01": "confirmed", "node02": "confirmed", "node03": "missing"}
    command = f"wulf settings set {KNOB}=0 --nodes node03"
    assert outcome["nodes"][-1]["reason"].endswith(f"refused until: {command}")
    assert [value(network, node) for node in network.names] == ["0", "0", "1"]
    network.down.clear()
    for late in (lambda: run_set(capsys, f"{OTHER}=0"), lambda: look(network)):
        with pytest.raises(missed_changes.BehindError) as refused:
            late()
        assert command in str(refused.value)
        assert "node03 missed a change" in str(refused.value)
    assert value(network, "node01", OTHER) == "1"
    look(network, ["node01", "node02"])
    assert run_status(capsys) == (3, [command])
    code, outcome = run_set(capsys, f"{KNOB}=0", nodes="node03")
    assert (code, states(outcome)) == (0, {"node03": "confirmed"})
    assert run_status(capsys) == (0, [])
    look(network)
    assert run_set(capsys, f"{OTHER}=0")[0] == 0


def look(network, nodes=None):
    with preparation.connect(config(), nodes or network.names, lambda _: None) as (_, records):
        assert all(record.reachable for record in records)


def run_status(capsys):
    capsys.readouterr()
    code = 0
    try:
        status.command(cluster=None, nodes=None, log=False, json=True)
    except typer.Exit as end:
        code = end.exit_code
    found = json.loads(capsys.readouterr().out)
    return code, [command for node in found for command in node["behind"]]


def test_a_node_that_was_made_equal_by_hand_is_not_refused(network, capsys):
    network.down.add("node02")
    assert run_set(capsys, f"{KNOB}=0", allow_missing=2)[0] == 0
    network.down.clear()
    network.on("node02", f"sysctl -qw {KNOB.removeprefix('sysctl.')}=0")
    look(network)
    assert book.missed(missed_changes.key(config())) == {}
    network.on("node02", f"sysctl -qw {KNOB.removeprefix('sysctl.')}=1")


def test_a_new_value_for_all_brings_a_node_level_too(network, capsys):
    network.down.add("node01")
    assert run_set(capsys, f"{KNOB}=0", allow_missing=1)[0] == 0
    network.down.clear()
    assert run_set(capsys, f"{KNOB}=1", f"{OTHER}=0")[0] == 0
    assert run_status(capsys) == (0, [])


def test_more_nodes_than_allowed_stop_the_change(network, capsys):
    network.down |= {"node02", "node03"}
    with pytest.raises(TransportError, match=r"2 nodes do not answer, node\[02-03\] \(--allow-missing 1\)"):
        run_set(capsys, f"{KNOB}=0", allow_missing=1)
    network.down.add("node01")
    with pytest.raises(TransportError, match="nothing was changed"):
        run_set(capsys, f"{KNOB}=0", allow_missing=3)
    with pytest.raises(UsageError):
        run_set(capsys, f"{KNOB}=0", allow_missing=-1)
    network.down.clear()
    assert {value(network, node) for node in network.names} == {"1"}
    assert book.missed(missed_changes.key(config())) == {}


def test_a_node_that_goes_midway_still_stops_all(network, capsys, monkeypatch):
    guard_calls = network.run

    def run(argv, nodes, **more):
        if "apply" in argv:
            network.down.add("node02")
        return guard_calls(argv, nodes, **more)

    with monkeypatch.context() as patch:
        patch.setattr(network, "run", run)
        code, outcome = run_set(capsys, f"{KNOB}=0", allow_missing=1)
    assert (code, outcome["kept"]) == (EXIT_ERROR, False)
    assert states(outcome) == {"node01": "undone", "node02": "unknown", "node03": "undone"}
    assert book.missed(missed_changes.key(config())) == {}
    network.down.clear()
    network.on("node02", f"/var/lib/wulf/guard undo {outcome['change']} test")


def test_who_missed_the_way_back_goes_back_alone(network, capsys):
    assert run_set(capsys, f"{KNOB}=0")[0] == 0
    network.down.add("node03")
    rollback.command(
        to="original", nodes=None, cluster=None, confirm_within="300s", allow_missing=1, json=False
    )
    said = capsys.readouterr().out
    assert "put back on node[01-02]" in said
    assert "refused until: wulf rollback --nodes node03" in " ".join(said.split())
    network.down.clear()
    with pytest.raises(missed_changes.BehindError, match="wulf rollback --nodes node03"):
        run_set(capsys, f"{OTHER}=0")
    rollback.command(to="original", nodes="node03", cluster=None, confirm_within="300s", json=True)
    assert json.loads(capsys.readouterr().out)["kept"]
    assert run_status(capsys) == (0, [])
    assert value(network, "node03") == "1"


def test_files_that_were_missed_are_part_of_what_brings_a_node_level(network):
    here = config()
    missed_changes.remember(here, ["node02"], "T", values={"nic.tso_gso": "on off"}, persist=True)
    missed_changes.remember(here, ["node02"], "U", values={"nic.mtu": "9000"})
    entry = missed_changes.behind(here, ["node02"])["node02"]
    assert entry.changes == ["T", "U"]
    assert missed_changes.commands(here, entry) == [
        "wulf settings set 'nic.tso_gso=on off' nic.mtu=9000 --nodes node02",
        "wulf settings persist --nodes node02",
    ]
    missed_changes.caught_up(here, ["node02"], values=["nic.tso_gso", "nic.mtu"])
    assert missed_changes.commands(here, missed_changes.behind(here, ["node02"])["node02"]) == [
        "wulf settings persist --nodes node02"
    ]
    missed_changes.caught_up(here, ["node02"], persist=True)
    assert missed_changes.behind(here, ["node02"]) == {}


def test_missing_nodes_are_nobodys_neighbours():
    whole = inventory.parse(
        '[cluster]\nnodes = "n[1-4]"\nshared_cpus = [["n1", "n2"], ["n3", "n4"]]\n'
        '[ssh]\ngateways = { n4 = "n[1-2]" }\n[addresses]\nn2 = "198.18.0.2"\nn3 = "198.18.0.3"\n',
        "test",
    )
    left = whole.without(["n2", "n1"])
    assert (left.nodes, left.addresses) == (("n3", "n4"), {"n3": "198.18.0.3"})
    assert (left.shared_cpus, left.ssh.gateways) == ((("n3", "n4"),), {})
    assert inventory.parse(inventory.render(left), "test").nodes == left.nodes


@pytest.mark.parametrize(
    ("stderr", "silent"),
    [
        (b"ssh: connect to host n1 port 22: No route to host", True),
        (b"ssh: connect to host n1 port 22: Connection refused", True),
        (b"n1: Permission denied (publickey).", False),
        (b"Host key verification failed.", False),
    ],
)
def test_who_answers_is_not_missing(stderr, silent):
    raw = shell.Raw(stdout=b"", stderr=stderr, code=shell.SSH_FAILED)
    assert shell.judge("n1", raw, "0123456789abcdef", 5).silent is silent

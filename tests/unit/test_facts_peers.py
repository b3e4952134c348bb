"""What nodes see of each other: names that mean loopback, one machine under two names, ssh between nodes."""

import shutil
import subprocess
from importlib import resources

import pytest

from wulf.base.contracts import NodeResult
from wulf.base.interfaces import Interfaces
from wulf.base.records import NodeRecord
from wulf.node.facts import peers
from wulf.node.fleet.look import judge

NAMES = ("amber", "coral", "dune")


class Answering:
    """A transport on which each node prints a given text."""

    def __init__(self, texts):
        self.texts = texts

    def run(self, argv, nodes, *, timeout_s, stdin, each):
        for node in nodes:
            text = "#date 0\n 1000.5\n#path.1 0\n peer 1500\n" + self.texts.get(node, "")
            each(NodeResult(node=node, status="ok", stdout=text.encode(), stderr=b"", exit_code=0))


def looked_around(texts, addresses=None):
    addresses = addresses or {name: f"10.88.0.{n}/24" for n, name in enumerate(NAMES, 1)}
    facts = {name: {"nic.addresses": address, "nic.name": "eth0"} for name, address in addresses.items()}
    records = [NodeRecord(node=name, reachable=True, facts=facts[name]) for name in addresses]
    return peers.look_around(Answering(texts), records, "eth0")


def said(records, id_):
    return [(one.found, one.nodes) for one in judge(records, "hpc").findings if one.id == id_]


def test_the_reason_of_ssh_is_said_by_name_and_address():
    texts = {
        "amber": "#ssh.coral 0\n\n#ssh.10.88.0.2 255\n Warning: x\n Host key verification failed.\n",
        "coral": "#ssh.dune 0\n#ssh.10.88.0.3 0\n",
        "dune": "#ssh.10.88.0.1 124\n",
    }
    found = said(looked_around(texts), "path.ssh")
    assert found == [
        ("ssh from this node to 10.88.0.2: Host key verification failed.", ["amber"]),
        ("ssh from this node to 10.88.0.1: no answer in time", ["dune"]),
    ]


def test_where_ssh_was_not_tried_nothing_is_said_of_it():
    (amber, *_) = looked_around({"amber": "!ssh ssh is not installed\n"})
    assert amber.unknown["path.ssh"] == "ssh is not installed"
    assert said([amber], "path.ssh") == []


def test_names_of_others_that_mean_loopback_are_found_and_the_own_one_is_not():
    texts = {"amber": "#name.amber 0\n 127.0.1.1\n#name.coral 0\n 127.0.1.1\n"}
    records = looked_around(texts)
    assert said(records, "path.loopback_names") == [("on this node coral (127.0.1.1)", ["amber"])]


def test_one_machine_under_two_names_is_found():
    records = looked_around(
        {}, {"dune": "10.88.0.3/24", "dune.hpc.example": "10.88.0.3/24", "amber": "10.88.0.1/24"}
    )
    found = said(records, "path.same_machine")
    assert [nodes for _, nodes in found] == [["dune"], ["dune.hpc.example"]]


def test_a_firewall_that_lets_only_ssh_through_is_named():
    texts = {
        "amber": "#ports 0\n coral\n#port.43003 124\n\n#port.50000 1\n bash: /dev/tcp/x/50000: No route to host\n",
        "coral": "#ports 0\n dune\n#port.43003 1\n bash: connect: Connection refused\n#port.50000 0\n",
        "dune": "!ports amber does not answer on port 22 either\n",
    }
    records = looked_around(texts)
    assert said(records, "path.ports") == [
        (
            "TCP from this node gets through to port 22, and not to others, of coral "
            "(port 43003: no answer in time; port 50000: No route to host)",
            ["amber"],
        )
    ]
    assert records[2].unknown["path.ports"] == "amber does not answer on port 22 either"


def test_each_node_is_asked_about_its_own_interface():
    asked = {}

    class Asked(Answering):
        def run(self, argv, nodes, **rest):
            asked.update(dict.fromkeys(nodes, argv[3]))
            super().run(argv, nodes, **rest)

    records = [NodeRecord(node=name, reachable=True, facts={"nic.addresses": "10.0.0.1/8"}) for name in NAMES]
    names = Interfaces(usual="eno1", of_node={"coral": "enp3s0"})
    assert [one.node for one in peers.look_around(Asked({}), records, names)] == list(NAMES)
    assert asked == {"amber": "eno1", "coral": "enp3s0", "dune": "eno1"}


@pytest.mark.skipif(not shutil.which("ssh"), reason="there is no ssh")
def test_the_script_tries_the_next_node_and_says_why_not():
    script = resources.files("wulf.node.facts").joinpath("peers.sh").read_text(encoding="utf-8")
    # Nobody listens there: reserved for documentation (RFC 5737), refused or lost at once.
    argv = ["sh", "-s", "--", "lo", "wulf.invalid=127.0.0.1", "next.invalid=127.255.255.254"]
    out = subprocess.run(argv, input=script, capture_output=True, text=True, check=True, timeout=120).stdout
    codes = [line for line in out.splitlines() if line.startswith("#ssh.")]
    assert len(codes) == 1
    assert codes[0].startswith("#ssh.127.255.255.254 ")

"""What a guard leaves because it is somebody else's: parts of groups, lines of files, rules of the packet filter."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest

from tests.unit import guard_states as states
from tests.unit.guard_place import wait
from tests.unit.guard_states import Node
from tests.unit.test_access import SYSTEMCTL

pytestmark = pytest.mark.root

# --- what is somebody else's ---------------------------------------------------------------------------------


@pytest.mark.parametrize("confirmed", [False, True])
def test_of_a_group_only_what_the_change_has_set_is_put_back(node: Node, confirmed: bool) -> None:
    states.ethtool(node)
    states.nic(node, "-C", "eth0", "adaptive-rx", "on")
    before = states.nic(node)
    node.make("A", "nic.rx_usecs ethtool eth0 coalesce.rx-usecs=4")
    if confirmed:
        node.done("confirm", "A")
    states.nic(node, "-C", "eth0", "tx-usecs", "200")
    if confirmed:
        node.done("rollback", "B", "me", "600", "original")
        said = node.done("apply", "B")
        node.done("confirm", "B")
        assert "set\t" not in node.done("status")
    else:
        said = node.done("undo", "A")
        assert "left as somebody else has set it: nic.rx_usecs: tx-usecs 200" in node.log()
    assert said.count("left\tnic.rx_usecs\ttx-usecs 200\n") == 1
    # Adaptive moderation, which the fixed delay had ended, is on again.
    assert states.nic(node) == before.replace("tx-usecs:\t30", "tx-usecs:\t200")


def test_what_an_adaptive_driver_moves_later_on_is_put_back_too(node: Node) -> None:
    card = states.ethtool(node)
    before = states.nic(node)
    node.make("A", "nic.adaptive_rx ethtool eth0 coalesce.adaptive-rx=on")
    card.write_text(card.read_text().replace("coalesce_rx_frames=16", "coalesce_rx_frames=64"))
    node.done("undo", "A")
    assert states.nic(node) == before


def test_of_a_pattern_only_the_files_that_the_change_has_set_are_put_back(node: Node) -> None:
    files = [
        states.write(node, f"cpu{cpu}/governor", f"{value}\n") for cpu, value in enumerate(("a", "new", "b"))
    ]
    node.make("A", f"k file - {node.directory}/cpu*/governor=new")
    files[1].write_text("theirs\n")
    files[2].write_text("theirs\n")
    node.done("undo", "A")
    assert [file.read_text() for file in files] == ["a\n", "theirs\n", "theirs\n"]
    assert "left as somebody else has set it: k" in node.log()


def test_what_somebody_sets_between_begin_and_apply_is_theirs(node: Node) -> None:
    files = [states.write(node, f"cpu{cpu}/governor", "old\n") for cpu in (0, 1)]
    node.done("begin", "A", "me", "600", stdin=f"k\tfile\t-\t{node.directory}/cpu*/governor\tnew\n")
    files[1].write_text("theirs\n")
    node.done("apply", "A")
    node.done("undo", "A")
    assert [file.read_text() for file in files] == ["old\n", "theirs\n"]


@pytest.mark.parametrize("first", [True, False], ids=["after ours", "before ours"])
@pytest.mark.parametrize("kind", ["sysctl", "stored"])
def test_what_somebody_sets_while_another_step_is_at_work_is_theirs(
    node: Node, kind: str, first: bool
) -> None:
    slow, _ = node.slowly(2)
    sysctl = Path("/proc/sys/net/ipv4/tcp_keepalive_time")
    file = sysctl if kind == "sysctl" else states.write(node, "x.rule", "7200\n")
    ours = {"sysctl": "k\tsysctl\t-\tnet.ipv4.tcp_keepalive_time\t7100\n"}.get(
        kind, f"k\tstored\t-\t{file}\tfile:644:NzEwMAo=\n"
    )
    node.done("begin", "A", "me", "600", stdin=ours + slow if first else slow + ours)
    with subprocess.Popen(node.argv("apply", "A"), stdout=subprocess.DEVNULL) as applying:
        wait(lambda: f"put {1 + first}" in node.log())
        node.inside("sh", "-c", f"echo 7300 >{file}")
        assert applying.wait(30) == 0
    assert node.inside("cat", str(file)) == ("7300\n" if first else "7100\n")
    node.done("undo", "A")
    assert node.inside("cat", str(file)) == "7300\n"


def test_two_changes_of_a_group_with_somebody_else_between_them(node: Node) -> None:
    states.ethtool(node)
    node.keep("A", "nic.rx_usecs ethtool eth0 coalesce.rx-usecs=4")
    states.nic(node, "-C", "eth0", "tx-usecs", "200")
    before = states.nic(node)
    node.keep("B", "nic.rx_usecs ethtool eth0 coalesce.rx-usecs=2")
    assert node.differs() == {"nic.rx_usecs": "different"}
    node.roll_back("C", "B")
    assert states.nic(node) == before
    node.roll_back("D")
    assert "rx-usecs:\t8" in states.nic(node)
    assert "tx-usecs:\t200" in states.nic(node)


def test_without_the_state_after_it_all_that_was_saved_comes_back(node: Node) -> None:
    states.ethtool(node)
    before = states.nic(node)
    node.make("A", "nic.rx_usecs ethtool eth0 coalesce.rx-usecs=4")
    (node.state / "tx/A/after.1").unlink()
    node.done("undo", "A")
    assert (states.nic(node), node.journal("A")) == (before, "undone")
    node.keep("B", "nic.rx_usecs ethtool eth0 coalesce.rx-usecs=4")
    (node.state / "tx/B/after.1").unlink()
    assert node.differs() == {"nic.rx_usecs": "different"}
    node.roll_back("C")
    assert states.nic(node) == before


NEW = "# Written by wulf\na = 1\nb = 2\n"


#: What was there before, what somebody else makes of it meanwhile, and what is then there in the end.
EDITS = [
    (None, NEW, None),
    (None, NEW + "c = 3\n", "c = 3\n"),
    (None, NEW.replace("a = 1", "a = 7"), "a = 7\n"),
    (None, None, None),
    ("b = 9\nz = 8\n", NEW, "b = 9\nz = 8\n"),
    ("b = 9\nz = 8\n", NEW + "c = 3\n", "b = 9\nc = 3\nz = 8\n"),
    ("b = 9\nz = 8\n", NEW.replace("b = 2", "b = 7"), "b = 7\nz = 8\n"),
    (None, NEW + "; theirs\n", "; theirs\n"),
    ("b = 9\n", NEW + "blacklist theirs\n", "b = 9\nblacklist theirs\n"),
]


@pytest.mark.parametrize("confirmed", [False, True])
@pytest.mark.parametrize(("before", "meanwhile", "after"), EDITS)
def test_of_a_file_of_lines_those_of_others_stay(
    node: Node, before: str | None, meanwhile: str | None, after: str | None, confirmed: bool
) -> None:
    file = node.directory / "etc/90-wulf.conf"
    if before is not None:
        states.write(node, "etc/90-wulf.conf", before)
    node.make("A", f"k stored - {file}=file:644:{base64.b64encode(NEW.encode()).decode()}")
    if confirmed:
        node.done("confirm", "A")
    if meanwhile is None:
        file.unlink()
    elif meanwhile != NEW:
        file.write_text(meanwhile)
    if confirmed:
        node.roll_back("B")
    else:
        node.done("undo", "A")
    assert (file.read_text() if file.exists() else None) == after
    assert ("left as somebody else has set it: k" in node.log()) == (meanwhile != NEW)


@pytest.mark.parametrize("name", ["secret", "secret.conf"])
def test_what_others_have_written_into_a_file_is_not_shown(node: Node, name: str) -> None:
    file = node.directory / name
    node.make("A", f"k stored - {file}=file:600:d29yZCA9IDEK")
    file.write_text("word = theirs\n")
    said = node.done("undo", "A") + node.log()
    assert "left\tk\t" in said
    assert "theirs" not in said
    assert base64.b64encode(b"word = theirs\n").decode() not in said


def test_a_line_that_comes_between_begin_and_apply_stays(node: Node) -> None:
    node.program("ompi_info", f'#!/bin/sh\n[ -z "$HOME" ] || echo "path:sysconfdir:{node.directory}"\n')
    file = states.write(node, "openmpi-mca-params.conf", "btl_tcp_links = 2\n")
    node.done("begin", "A", "me", "600", stdin="k\tmpi_parameter\t-\tbtl_tcp_links\t4\n")
    file.write_text("btl_tcp_links = 2\ntheirs = 1\n")
    node.done("apply", "A")
    assert "btl_tcp_links = 4" in file.read_text()
    node.done("undo", "A")
    assert file.read_text() == "btl_tcp_links = 2\ntheirs = 1\n"


# --- the packet filter ---------------------------------------------------------------------------------------


RULES = """\
table inet f {
	set ban { type ipv4_addr; flags timeout; elements = { 192.0.2.1 timeout 1h, 192.0.2.2 timeout 1s, 192.0.2.3 } }
	set seen { type ipv4_addr; flags dynamic,timeout; timeout 1h; }
	set listed { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 192.168.0.0/16 comment "a, { b }" } }
	chain in { type filter hook input priority 0; policy accept; ip saddr @ban counter drop; ip saddr @listed accept; }
}
"""


FILTER = "svc.nftables service - nftables.service=off"


@pytest.fixture
def filtering(node: Node) -> Node:
    node.program("systemctl", SYSTEMCTL)
    states.write(node, "nftables.service.active", "active\n")
    states.write(node, "nftables.conf", "flush ruleset\ntable inet boot { }\n")
    node.inside("nft", "-f", "-", stdin=RULES)
    return node


def test_rules_with_elements_that_time_out_come_back(filtering: Node) -> None:
    filtering.keep("Z", FILTER)
    assert states.rules(filtering) == ""
    filtering.inside("sleep", "2")
    filtering.roll_back("Y")
    assert filtering.differs() == {}
    filtering.make("A", FILTER)
    filtering.done("undo", "A")
    assert filtering.journal("A") == "undone"
    rules = states.rules(filtering)
    # What would be over by now is over, and no time was won.
    assert "192.0.2.2" not in rules
    assert "192.0.2.3" in rules
    assert 'elements = { 10.0.0.0/8, 192.168.0.0/16 comment "a, { b }" }' in rules
    assert int(rules.split("192.0.2.1 timeout 3600s expires ")[1].partition("s")[0]) < 3599


def test_rules_that_come_while_a_service_does_not_start_stay(filtering: Node) -> None:
    filtering.inside("nft", "table inet other { }")
    filtering.make("A", FILTER)
    filtering.inside("nft", "table inet other { }")
    filtering.program("systemctl", SYSTEMCTL.replace("broken.service", "nftables.service"))
    assert "not put back" in filtering.guard("undo", "A").stdout
    filtering.inside("nft", "table inet theirs { }")
    filtering.program("systemctl", SYSTEMCTL)
    filtering.done("undo", "A")
    assert "table inet theirs" in states.rules(filtering)
    assert "table inet f" in states.rules(filtering)


def test_rules_that_somebody_else_has_made_meanwhile_stay(filtering: Node) -> None:
    filtering.make("A", FILTER)
    filtering.inside("nft", "add table ip theirs")
    filtering.done("undo", "A")
    rules = states.rules(filtering)
    assert "table ip theirs" in rules
    assert "table inet f" in rules
    assert "inet boot" not in rules


def test_a_table_that_somebody_else_has_made_anew_is_not_removed_unasked(filtering: Node) -> None:
    filtering.make("A", FILTER)
    filtering.inside("nft", "add table inet f; add chain inet f theirs")
    stuck = filtering.guard("undo", "A")
    assert "'nft delete table inet f' lets the former one come back" in stuck.stdout
    assert "chain theirs" in states.rules(filtering)
    assert filtering.journal("A") == "stuck"
    filtering.inside("nft", "delete table inet f")
    filtering.done("undo", "A")
    assert filtering.journal("A") == "undone"
    assert "192.0.2.3" in states.rules(filtering)


@pytest.mark.parametrize("exempt_first", [True, False])
def test_own_rules_that_came_or_went_meanwhile_are_nobody_elses(filtering: Node, exempt_first: bool) -> None:
    exempt = "net.conntrack firewall eth0 tracking=exempt"
    filtering.keep("A", exempt if exempt_first else FILTER)
    filtering.keep("B", FILTER if exempt_first else exempt)
    filtering.roll_back("C", "A")
    filtering.keep("D", exempt)
    # Both have been changed since the original state, and the filter comes first.
    filtering.roll_back("E")
    assert "wulf" not in states.rules(filtering)
    assert "ip saddr @listed accept" in states.rules(filtering)
    assert filtering.differs() == {}


def test_settings_of_a_queue_go_with_it(node: Node) -> None:
    node.inside("mount", "-t", "sysfs", "sysfs", "/sys")  # that of the own network
    queues = ["numrxqueues", "2", "numtxqueues", "2"]
    node.inside("ip", "link", "add", "eth0", *queues, "type", "veth", "peer", "name", "peer0", *queues)
    node.inside("ethtool", "-L", "eth0", "rx", "1", "tx", "1")
    masks = "/sys/class/net/eth0/queues/rx-*/rps_cpus"
    node.keep("A", "nic.channels ethtool eth0 channels=rx 2 tx 2")
    node.keep("B", f"nic.rps file - {masks}=1")
    assert node.inside("sh", "-c", f"cat {masks} | tr -d ,0").split() == ["1", "1"]
    # The second queue, which B had something to put back on, is not there any more when its turn comes.
    node.roll_back("C")
    assert node.inside("sh", "-c", f"ls {masks}").split() == [masks.replace("*", "0")]
    assert node.inside("sh", "-c", f"cat {masks} | tr -d ,0").split() == []
    assert node.differs() == {}
    # An interface that is gone is another matter.
    node.make("D", f"nic.rps file - {masks}=1")
    node.inside("ip", "link", "del", "eth0")
    assert "error\tnot put back" in node.guard("undo", "D").stdout


def test_a_retry_comes_later_and_later(node: Node) -> None:
    file = states.write(node, "value", "old\n")
    node.make("A", f"k file - {file}=new")
    file.unlink()
    file.mkdir()
    found = []
    for _ in range(4):
        node.guard("undo", "A")
        until = int((node.run / "retry.A").read_text().split()[0])
        now = float(Path("/proc/uptime").read_text().split()[0])
        found.append((until - now) / 60)
    assert [round(minutes) for minutes in found] == sorted({round(minutes) for minutes in found})
    assert found[-1] > 4 * found[0]


@pytest.mark.parametrize("confirmed", [False, True])
def test_the_exemption_of_the_cluster_s_interface_goes(node: Node, confirmed: bool) -> None:
    rules = (
        "table inet f { chain in { type filter hook input priority 0; policy accept; tcp dport 9 drop; }; }"
    )
    node.inside("nft", rules)
    before = node.inside("nft", "-s", "list", "ruleset")
    node.make("A", "net.conntrack firewall eth0 tracking=notrack")
    assert "notrack" in states.rules(node)
    if confirmed:
        node.done("confirm", "A")
        assert node.differs() == {"net.conntrack": "different"}
        node.roll_back("B")
    else:
        node.done("undo", "A")
    assert node.inside("nft", "-s", "list", "ruleset") == before

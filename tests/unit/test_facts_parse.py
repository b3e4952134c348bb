"""Facts of a node: every one has a value or a reason, whatever the node prints."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wulf.base import catalogue
from wulf.base.contracts import NodeResult
from wulf.base.errors import UsageError
from wulf.base.output_values import Absent, Unknown, Unsupported, cpu_list, number, whole
from wulf.base.records import NodeRecord
from wulf.node.cluster.inventory import local
from wulf.node.cluster.transport import open_transport
from wulf.node.facts.capture import capture
from wulf.node.facts.parse import interfaces, parse, record
from wulf.node.facts.tree import Tree

KNOBS = list(catalogue.knobs().values())
#: Captured from a node of the virtual cluster: Debian 12, veth.
CAPTURED = (Path(__file__).parents[1] / "golden" / "lab-node.tree").read_text(encoding="utf-8")
KINDS = ("facts", "unknown", "absent", "unsupported")

TREE = """\
Welcome to node01
#hostname 0
 node01
#kernel 0
 6.1.0-18-amd64
/etc/os-release:PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
/etc/os-release:NAME="Debian GNU/Linux"
#lscpu 0
 Architecture:            x86_64
 CPU(s):                  8
   On-line CPU(s) list:   0-7
 Model name:              AMD EPYC 7302P 16-Core Processor
   Thread(s) per core:    2
 Socket(s):               1
/proc/self/status:Name:\tcat
/proc/self/status:Cpus_allowed_list:\t0-3,8
!/sys/devices/system/cpu/cpu*/cpufreq/scaling_* No such file or directory
/proc/meminfo:MemTotal:       24682904 kB
/proc/loadavg:0.15 0.10 0.05 1/123 4711
#container 0
 systemd-nspawn
#addresses 0
 1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever
 2: eth0@if9    inet6 fe80::1/64 scope link \\       valid_lft forever preferred_lft forever
 2: eth0@if9    inet 198.18.0.11/24 brd 198.18.0.255 scope global eth0\\       valid_lft forever
 3: eth0.7@eth0    inet 10.7.0.11/16 scope global eth0.7\\       valid_lft forever
#links 0
 eth0 0000:01:00.0 mlx5_core - -
/sys/class/net/eth0/mtu:9000
-
/sys/class/net/eth0/mtu:1500
/sys/class/net/eth0/speed:25000
#ethtool-i.eth0 0
 driver: mlx5_core
 version: 6.1.0
 firmware-version:
#ethtool-c.eth0 161
 netlink error: Operation not supported
#nft 1
 Operation not permitted (you must be root)
#openmpi 0
 Open MPI v4.1.4
!mpich mpichversion is not installed
"""


def read(text: str, interface: str | None = "eth0") -> NodeRecord:
    return parse("n1", text, interface, KNOBS)


def answer(stdout: bytes, status: str = "ok", reason: str = "") -> NodeResult:
    return msgspec.convert(
        {"node": "n1", "status": status, "exit_code": 0, "stdout": stdout, "stderr": b"", "reason": reason},
        NodeResult,
    )


def test_values_are_typed_and_in_their_units() -> None:
    facts = read(TREE).facts
    expected = {
        "node.hostname": "node01",
        "kernel.os": "Debian GNU/Linux 12 (bookworm)",
        "cpu.model": "AMD EPYC 7302P 16-Core Processor",
        "cpu.count": 8,
        "cpu.threads_per_core": 2,
        "cpu.allowed": "0-3,8",
        "cpu.hypervisor": "none",
        "node.container": "systemd-nspawn",
        "memory.total_bytes": 24682904 * 1024,
        "node.load1": 0.15,
        "network.addresses": "eth0=198.18.0.11/24 eth0.7=10.7.0.11/16",
        "nic.addresses": "198.18.0.11/24",
        "nic.subnet": "198.18.0.0/24",
        "nic.speed_bits_per_s": 25_000_000_000,
        "nic.driver": "mlx5_core",
        "mpi.openmpi": "4.1.4",
    }
    assert {name: facts.get(name) for name in expected} == expected


def test_a_file_that_comes_twice_counts_once() -> None:
    assert read(TREE).facts["nic.mtu_bytes"] == 9000


def test_absent_unsupported_and_unknown_are_told_apart() -> None:
    node = read(TREE)
    assert node.absent["cpu.governor"].startswith("there is no /sys/devices/system/cpu/cpu*/cpufreq")
    assert node.absent["mpi.mpich"] == "mpichversion is not installed"
    assert node.absent["hpl.N"] == "it belongs to a job (HPL.dat), not to the node"
    assert node.unsupported["nic.firmware"] == "the driver has no firmware-version"
    assert node.unsupported["nic.rx_usecs"] == "the kernel or the driver does not support it"
    assert node.unknown["firewall.rules"] == "only root may see it"
    assert node.unknown["nic.duplex"] == "the node did not print it"


def test_without_ethtool_it_is_said_that_it_is_not_installed() -> None:
    node = read("!ethtool ethtool is not installed\n")
    for name in ("nic.driver", "nic.rx_usecs", "nic.eee", "nic.speed_max_bits_per_s"):
        assert node.unknown[name] == "ethtool is not installed"


def test_without_an_interface_nothing_is_said_about_one() -> None:
    node = read(TREE, None)
    assert not [name for name in node.facts if name.startswith("nic.")]
    assert "set it in cluster.toml" in node.unknown["nic.mtu_bytes"]


def test_an_interface_that_is_not_there() -> None:
    assert read(TREE, "eth9").absent["nic.mtu_bytes"] == "there is no interface eth9"


def test_a_virtual_link_has_no_speed() -> None:
    node = read("/sys/class/net/eth0/speed:-1\n")
    assert node.unsupported["nic.speed_bits_per_s"] == "the driver does not say"


def test_many_addresses_are_not_cut() -> None:
    lines = [f" {i}: eth{i}    inet 10.0.{i}.1/24 scope global eth{i}\\  valid" for i in range(100)]
    facts = read("\n".join(["#addresses 0", *lines])).facts
    assert interfaces(facts)["eth99"] == ["10.0.99.1/24"]
    assert len(interfaces(facts)) == 100


@pytest.mark.parametrize(
    ("status", "reachable"), [("unreachable", False), ("timeout", False), ("exit", True), ("garbage", True)]
)
def test_a_node_that_failed_says_why(status: str, reachable: bool) -> None:
    node = record(answer(b"", status, "n1: broken"), None, KNOBS)
    assert (node.reachable, node.error, node.facts) == (reachable, "n1: broken", {})


FIXED = {name for kind in KINDS for name in getattr(read(""), kind)}


def check_whole(node: NodeRecord) -> None:
    """Each fact once, as a value or a reason, safe to store and to show."""
    named = [name for kind in KINDS for name in getattr(node, kind)]
    assert len(named) == len(set(named))
    assert set(named) >= FIXED
    assert None not in node.facts.values()
    assert all(reason for kind in KINDS[1:] for reason in getattr(node, kind).values())
    assert msgspec.json.decode(msgspec.json.encode(node), type=NodeRecord) == node
    for kind in KINDS:
        for text in getattr(node, kind).values():
            assert not isinstance(text, str) or "\x1b" not in text


def test_a_captured_node_is_whole() -> None:
    node = read(CAPTURED, "host0")
    check_whole(node)
    assert len(node.facts) > 200


@given(st.binary(max_size=300))
def test_garbage_is_never_an_exception(noise: bytes) -> None:
    node = record(answer(noise), "eth0", KNOBS)
    assert node.error == "n1: its output does not hold the facts of a node"
    check_whole(parse("n1", noise.decode("utf-8", "replace"), "eth0", KNOBS))


BLOCKS = re.findall(r"^(?:[#!]\S+|/[^:\n]+)", CAPTURED + TREE, re.MULTILINE)
LINES = [line for line in (CAPTURED + TREE).splitlines() if line]
PIECE = st.one_of(
    st.sampled_from(LINES),
    st.tuples(st.sampled_from(BLOCKS), st.text(max_size=60)).map(lambda pair: f"{pair[0]}:{pair[1]}"),
    st.tuples(st.sampled_from(BLOCKS), st.integers()).map(lambda pair: f"{pair[0]} {pair[1]}"),
    st.text(max_size=80).map(lambda text: " " + text),
    st.integers().map(lambda n: f" {n}"),
    st.sampled_from(
        [" 1: eth0 inet 1.2.3.4/99 ", " 1: eth0 inet 999.1.1.1/8 ", " \x1b[2J", " [{", ' [{"a":1}]']
    ),
)


@given(st.lists(PIECE, max_size=60))
def test_wrong_content_is_never_an_exception(pieces: list[str]) -> None:
    check_whole(read("\n".join(pieces), "host0"))


@given(st.data())
def test_a_torn_tree_is_never_an_exception(data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(CAPTURED)))
    last = data.draw(st.integers(first, min(len(CAPTURED), first + 4000)))
    noise = data.draw(st.text(max_size=8))
    check_whole(read(CAPTURED[:first] + noise + CAPTURED[last:], "host0"))


@given(st.data())
def test_a_changed_line_is_never_an_exception(data: st.DataObject) -> None:
    lines = CAPTURED.split("\n")
    for _ in range(data.draw(st.integers(1, 20))):
        index = data.draw(st.integers(0, len(lines) - 1))
        cut = data.draw(st.integers(0, len(lines[index])))
        lines[index] = lines[index][:cut] + data.draw(st.text(max_size=30))
    check_whole(read("\n".join(lines), "host0"))


def test_megabytes_of_garbage_are_read_quickly() -> None:
    node = read("#hostname 0\n " + "x" * (16 << 20) + "\n!kernel " + "y" * (1 << 20), None)
    assert len(str(node.facts["node.hostname"])) < 5000
    assert len(node.unknown["kernel.release"]) <= 201


@pytest.mark.parametrize("text", ["", "x", "nan", "inf", "-1", "1e999"])
def test_what_is_not_a_number(text: str) -> None:
    with pytest.raises(Unknown, match="the load is not a number"):
        number(text, "the load")


@pytest.mark.parametrize("text", ["", "1.5", "-1", "1e3", "９", "9" * 19, "9" * 10_000])
def test_what_is_not_a_whole_number(text: str) -> None:
    with pytest.raises(Unknown, match="the MTU is not a whole number"):
        whole(text, "the MTU")


def test_lists_of_cpus() -> None:
    assert cpu_list("0-2,8\n") == [0, 1, 2, 8]
    for text in ("", "a", "0-9999999", ",".join(["0-65535"] * 9)):
        with pytest.raises(Unknown):
            cpu_list(text)


def test_a_line_cannot_pose_as_a_section() -> None:
    tree = Tree("#os 0\n #hostname\n  evil\n!kernel\n")
    assert tree.lines("os") == ["#hostname", " evil"]
    for name in ("hostname", "kernel"):
        with pytest.raises(Unknown):
            tree.text(name)


@pytest.mark.parametrize("interface", ["../x", "-e", "", ".", "a/b"])
def test_an_interface_cannot_be_a_path(interface: str) -> None:
    with pytest.raises(UsageError, match="is not the name of an interface"):
        capture(open_transport(local()), ["local1"], interface, KNOBS)


CHAIN = (
    "#nft 0\n table inet t {\n chain c {\n type filter hook input priority 0; policy accept;\n"
    " ct state established accept\n }\n"
)


@pytest.mark.parametrize(
    ("hooks", "rule", "expected"),
    [
        (("prerouting", "output"), "notrack", "notrack"),
        (("prerouting", "output"), 'iifname "eth0" counter notrack', "notrack"),
        (("prerouting",), "notrack", "tracked"),
        (("prerouting", "output"), 'iifname "eth0" tcp dport 9 notrack', "tracked"),
        (("prerouting", "output"), 'iifname "eth1" notrack', "tracked"),
        ((), "", "tracked"),
    ],
)
def test_only_what_exempts_all_packets_both_ways_is_notrack(hooks, rule: str, expected: str) -> None:
    chains = "".join(
        f" chain {h} {{\n type filter hook {h} priority -300; policy accept;\n {rule}\n }}\n" for h in hooks
    )
    assert read(CHAIN + chains + " }\n").facts["net.conntrack"] == expected


@pytest.mark.parametrize(
    ("hook", "rules", "expected"),
    [
        ("input", ("tcp dport 9 drop",) * 3, "filtered"),
        ("forward", ("tcp dport 9 drop",) * 3, "off"),  # of others' packets
        ("input", (), "off"),
        ("input", ('iifname "eth0" accept comment "wulf"', "tcp dport 9 drop"), "exempt"),
    ],
)
def test_rules_that_do_not_track_are_a_filter_to_be_exempt_from(hook, rules, expected: str) -> None:
    body = "".join(f" {rule}\n" for rule in rules)
    chain = f" chain c {{\n type filter hook {hook} priority 0; policy accept;\n{body} }}\n"
    assert read(f"#nft 0\n table inet t {{\n{chain} }}\n").facts["net.conntrack"] == expected


def test_an_output_that_was_cut_is_unknown() -> None:
    node = read(CHAIN + "!nft is longer than 4000 lines\n")
    for name in ("firewall.rules", "firewall.rules_on_path", "net.conntrack"):
        assert node.unknown[name] == "is longer than 4000 lines"


def test_a_file_that_came_and_is_refused_is_one_fact_still() -> None:
    check_whole(read("/proc/sys/net/core/busy_read:50\n!/proc/sys/net/core/busy_read Permission denied\n"))


def test_a_dead_name_server_is_slow_not_unknown() -> None:
    assert read("#resolve 124\n 123\n").facts["network.resolve_s"] == 3.0


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        ("#resolve.again 0\n 500000000\n 192.0.2.1 STREAM n1\n 502000000\n", 0.002),
        ("#resolve.again 0\n 500000000\n 192.0.2.1 STREAM n1\n 900000000\n", 0.3),
        ("#resolve.again 124\n 500000000\n 3500000000\n", 0.3),
        ("#resolve.again 0\n 500000000\n", 0.3),
        ("#resolve.again 0\n 500000000\n 192.0.2.1 STREAM n1\n 100000000\n", 0.3),
        ("", 0.3),
    ],
)
def test_a_name_is_slow_where_it_is_slow_each_time(again: str, expected: float) -> None:
    first = "#resolve 0\n 100000000\n 192.0.2.1 STREAM n1\n 400000000\n"
    assert read(first + again).facts["network.resolve_s"] == expected


def test_a_clock_that_is_set_back_tells_no_time() -> None:
    node = read("#resolve 0\n 500000000\n 192.0.2.1 STREAM n1\n 100000000\n")
    assert node.unknown["network.resolve_s"] == "the node's clock was set back meanwhile"


def test_what_tuned_sets_is_kept() -> None:
    live = "/proc/sys/net/core/busy_poll:50\n/proc/sys/net/core/busy_read:50\n/proc/sys/net/ipv4/tcp_sack:1\n"
    tuned = (
        "/etc/tuned/active_profile:mine\n/etc/tuned/mine/tuned.conf:[main]\n"
        "/etc/tuned/mine/tuned.conf:include=network-latency, mine\n"
        "/usr/lib/tuned/network-latency/tuned.conf:[sysctl]\n"
        "/usr/lib/tuned/network-latency/tuned.conf:net.core.busy_read=50\n"
    )
    link = "#links 0\n eth0 - - - -\n-\n/sys/class/net/eth0/mtu:1500\n"
    assert "busy_poll is 50" in str(read(live + link).facts["settings.unkept"])
    assert "busy_read" not in str(read(live + tuned + link).facts["settings.unkept"])
    assert "busy_poll is 50" in str(read(live + tuned + link).facts["settings.unkept"])


def test_an_mtu_that_only_root_can_see_is_not_called_unkept() -> None:
    text = "/sys/class/net/eth0/mtu:9000\n!/etc/NetworkManager/system-connections/e.nmconnection Permission denied\n"
    node = read(text)
    assert node.unknown["settings.mtu"] == "only root may read NetworkManager's connections"
    assert node.facts["settings.unkept"] == "none"


def test_reasons_say_what_kind_of_gap_it_is() -> None:
    tree = Tree(
        "!/a No such file or directory\n!/b Permission denied\n#c 1\n x: Operation not supported\n#d 124\n"
    )
    for name, kind in (("/a", Absent), ("/b", Unknown), ("c", Unsupported), ("d", Unknown), ("/e", Unknown)):
        with pytest.raises(Unknown) as caught:
            tree.text(name)
        assert isinstance(caught.value, kind)
        assert isinstance(caught.value, (Absent, Unsupported)) == (kind is not Unknown)


def test_this_machine() -> None:
    transport = open_transport(local())
    first, second = capture(transport, ["local1", "local2"], "lo", KNOBS)
    assert (first.node, second.node, first.error) == ("local1", "local2", None)
    check_whole(first)
    assert isinstance(first.facts["cpu.count"], int) and first.facts["cpu.count"] >= 1
    (absent,) = capture(transport, ["local1"], "nosuch0", KNOBS)
    assert absent.absent["nic.name"] == "there is no interface nosuch0"

"""Facts of a node: every one has a value or a reason, whatever the node prints."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wulf.cluster.inventory import local
from wulf.cluster.transport import open_transport
from wulf.errors import UsageError
from wulf.facts.capture import capture
from wulf.facts.parse import interfaces, parse, record
from wulf.facts.sections import Sections, Unknown, cpu_list, number, whole
from wulf.ports import NodeResult
from wulf.records import NodeRecord

TREE = """\
Welcome to node01
#hostname
 node01
#kernel
 6.1.0-18-amd64
#os
 PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
 NAME="Debian GNU/Linux"
#lscpu
 Architecture:            x86_64
 CPU(s):                  8
   On-line CPU(s) list:   0-7
 Model name:              AMD EPYC 7302P 16-Core Processor
   Thread(s) per core:    2
 Socket(s):               1
#cpu_status
 Name:\tcat
 Cpus_allowed_list:\t0-3,8
!governor the kernel offers no cpufreq
#meminfo
 MemTotal:       24682904 kB
#uptime
 98.41 180.02
#loadavg
 0.15 0.10 0.05 1/123 4711
#container
 systemd-nspawn
#addresses
 1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever
 2: eth0@if9    inet6 fe80::1/64 scope link \\       valid_lft forever preferred_lft forever
 2: eth0@if9    inet 198.18.0.11/24 brd 198.18.0.255 scope global eth0\\       valid_lft forever
 3: eth0.7@eth0    inet 10.7.0.11/16 scope global eth0.7\\       valid_lft forever
#nic
 eth0
#nic_mtu
 9000
#nic_speed
 25000
#ethtool
 driver: mlx5_core
 version: 6.1.0
 firmware-version:
#openmpi
 Open MPI v4.1.4
!mpich mpichversion is not installed
"""


def answer(stdout: bytes, status: str = "ok", reason: str = "") -> NodeResult:
    return msgspec.convert(
        {"node": "n1", "status": status, "exit_code": 0, "stdout": stdout, "stderr": b"", "reason": reason},
        NodeResult,
    )


def test_values_are_typed_and_in_their_units() -> None:
    facts = parse("node01", TREE, "eth0").facts
    expected = {
        "hostname": "node01",
        "os": "Debian GNU/Linux 12 (bookworm)",
        "cpu_model": "AMD EPYC 7302P 16-Core Processor",
        "cpus": 8,
        "threads_per_core": 2,
        "cpus_allowed": "0-3,8",
        "hypervisor": "none",
        "container": "systemd-nspawn",
        "memory_bytes": 24682904 * 1024,
        "uptime_s": 98.41,
        "load1": 0.15,
        "addresses": "eth0=198.18.0.11/24 eth0.7=10.7.0.11/16",
        "nic_addresses": "198.18.0.11/24 fe80::1/64",
        "nic_subnet": "198.18.0.0/24",
        "nic_mtu_bytes": 9000,
        "nic_speed_bits_per_s": 25_000_000_000,
        "nic_driver": "mlx5_core",
        "openmpi_version": "4.1.4",
    }
    assert {name: facts.get(name) for name in expected} == expected


def test_what_is_unknown_has_its_reason() -> None:
    unknown = parse("node01", TREE, "eth0").unknown
    assert unknown["governor"] == "the kernel offers no cpufreq"
    assert unknown["mpich_version"] == "mpichversion is not installed"
    assert unknown["nic_firmware"] == "the driver does not say"
    assert unknown["nic_duplex"] == "the node did not print it"


def test_without_an_interface_nothing_is_said_about_one() -> None:
    node = parse("node01", TREE, None)
    assert not [name for name in (*node.facts, *node.unknown) if name.startswith(("nic", "interface"))]


def test_a_virtual_link_has_no_speed() -> None:
    node = parse("node01", "#nic_speed\n -1\n", "eth0")
    assert "nic_speed_bits_per_s" not in node.facts
    assert node.unknown["nic_speed_bits_per_s"] == "the driver does not say"


def test_many_addresses_are_not_cut() -> None:
    lines = [f" {i}: eth{i}    inet 10.0.{i}.1/24 scope global eth{i}\\  valid" for i in range(100)]
    facts = parse("n1", "\n".join(["#addresses", *lines]), None).facts
    assert interfaces(facts)["eth99"] == ["10.0.99.1/24"]
    assert len(interfaces(facts)) == 100


@pytest.mark.parametrize(
    ("status", "reachable"), [("unreachable", False), ("timeout", False), ("exit", True), ("garbage", True)]
)
def test_a_node_that_failed_says_why(status: str, reachable: bool) -> None:
    node = record(answer(b"", status, "n1: broken"), None)
    assert (node.reachable, node.error, node.facts) == (reachable, "n1: broken", {})


def check_whole(node: NodeRecord) -> None:
    """Each fact once, as a value or a reason, safe to store and to show."""
    known = parse("n1", "", "eth0").unknown
    assert set(node.facts) | set(node.unknown) == set(known)
    assert not set(node.facts) & set(node.unknown)
    assert all(node.unknown.values())
    assert None not in node.facts.values()
    assert msgspec.json.decode(msgspec.json.encode(node), type=NodeRecord) == node
    for text in (*node.unknown.values(), *node.facts.values()):
        assert not isinstance(text, str) or "\x1b" not in text


@given(st.binary(max_size=300))
def test_garbage_is_never_an_exception(noise: bytes) -> None:
    check_whole(record(answer(noise), "eth0"))


NAMES = st.sampled_from([line[1:].split()[0] for line in TREE.splitlines() if line.startswith(("#", "!"))])
CONTENT = st.one_of(
    st.text(max_size=60),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(["CPU(s): ", "MemTotal: ", "Cpus_allowed_list:\t"]).flatmap(
        lambda key: st.one_of(st.integers().map(str), st.text(max_size=20)).map(lambda text: key + text)
    ),
    st.sampled_from(
        ["1: eth0 inet 1.2.3.4/99 ", "1: eth0 inet 999.1.1.1/8 ", "1: a@b inet6 ::/0 ", "\x1b[2J"]
    ),
)


@given(st.lists(st.tuples(NAMES, CONTENT, st.booleans()), max_size=30))
def test_wrong_content_is_never_an_exception(sections: list[tuple[str, str, bool]]) -> None:
    text = "".join(f"#{name}\n {body}\n" if there else f"!{name} {body}\n" for name, body, there in sections)
    check_whole(parse("n1", text, "eth0"))


@given(st.integers(0, len(TREE)), st.integers(0, len(TREE)), st.text(max_size=5))
def test_a_torn_tree_is_never_an_exception(first: int, last: int, noise: str) -> None:
    check_whole(parse("n1", TREE[:first] + noise + TREE[last:], "eth0"))


def test_megabytes_of_garbage_are_read_quickly() -> None:
    node = parse("n1", "#hostname\n " + "x" * (16 << 20) + "\n!kernel " + "y" * (1 << 20), None)
    assert len(str(node.facts["hostname"])) < 5000
    assert len(node.unknown["kernel"]) <= 201


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
    sections = Sections("#os\n #hostname\n  evil\n!kernel\n")
    assert sections.lines("os") == ["#hostname", " evil"]
    for name in ("hostname", "kernel"):
        with pytest.raises(Unknown):
            sections.text(name)


@pytest.mark.parametrize("interface", ["../x", "-e", "", ".", "a/b"])
def test_an_interface_cannot_be_a_path(interface: str) -> None:
    with pytest.raises(UsageError, match="is not the name of an interface"):
        capture(open_transport(local()), ["local1"], interface)


def test_this_machine() -> None:
    transport = open_transport(local())
    first, second = capture(transport, ["local1", "local2"], "lo")
    assert (first.node, second.node, first.error) == ("local1", "local2", None)
    check_whole(first)
    assert isinstance(first.facts["cpus"], int) and first.facts["cpus"] >= 1
    assert first.facts["nic_subnet"] == "127.0.0.0/8"
    (absent,) = capture(transport, ["local1"], "nosuch0")
    assert absent.unknown["interface"] == "there is no interface nosuch0"

"""What the nodes of a virtual cluster are, and that nothing gets in or out of their network."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.conftest import OTHER_LAB
from wulf.base.errors import LabError
from wulf.node import lab

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.xdist_group(OTHER_LAB)]


def on(cluster: lab.Lab, node: str, script: str, timeout_s: float = 120) -> str:
    argv = cluster.ssh_argv(node, ["sh", "-c", script])
    done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def in_network(cluster: lab.Lab, *argv: str) -> str:
    command = ["ip", "netns", "exec", cluster.state.namespace, *argv]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_all_nodes_run(lab_cluster: lab.Lab) -> None:
    assert [node.state for node in lab_cluster.status()] == ["running"] * 4


def test_each_node_has_its_own_name(lab_cluster: lab.Lab) -> None:
    assert [on(lab_cluster, node, "hostname") for node in lab_cluster.layout.names()] == [
        "node01",
        "node02",
        "node03",
        "node04",
    ]


def test_exit_code_and_words_come_through(lab_cluster: lab.Lab) -> None:
    done = subprocess.run(lab_cluster.ssh_argv("node01", ["sh", "-c", "exit 7"]), check=False)
    assert done.returncode == 7
    done = subprocess.run(
        lab_cluster.ssh_argv("node01", ["echo", "a  b", "$HOME"]), capture_output=True, check=False
    )
    assert done.stdout == b"a  b $HOME\n"


def test_unknown_node_is_refused(lab_cluster: lab.Lab) -> None:
    with pytest.raises(LabError, match="no node 'node09' in the lab; it has node01, node02"):
        lab_cluster.ssh_argv("node09")


def test_nodes_reach_each_other_without_a_question(lab_cluster: lab.Lab) -> None:
    assert (
        on(lab_cluster, "node01", "ssh -o BatchMode=yes node02 ssh -o BatchMode=yes node03 hostname")
        == "node03"
    )


@pytest.mark.thorough
def test_programs_cannot_leave_their_nodes_cpus(lab_cluster: lab.Lab) -> None:
    for node in lab_cluster.layout.nodes:
        listed = on(
            lab_cluster, node.name, "taskset -c 0-1023 grep Cpus_allowed_list /proc/self/status || true"
        )
        if listed:
            assert _cpus(listed.split()[1]) <= set(node.cpus)
        assert _cpus(on(lab_cluster, node.name, "taskset -cp $$").rpartition(": ")[2]) == set(node.cpus)


def _cpus(text: str) -> set[int]:
    ranges = [part.partition("-") for part in text.split(",")]
    return {cpu for first, _, last in ranges for cpu in range(int(first), int(last or first) + 1)}


def test_no_way_out_of_the_network(lab_cluster: lab.Lab) -> None:
    routes = on(lab_cluster, "node01", "ip route show table all; ip -6 route")
    assert "default" not in routes
    refused = on(lab_cluster, "node01", "ping -c 1 -W 1 192.0.2.1 2>&1 || true")
    assert "Network is unreachable" in refused
    # The only devices in the lab's namespace are its bridge and the nodes' cables, and it routes nowhere.
    devices = [
        line.split(":")[1].strip().split("@")[0]
        for line in in_network(lab_cluster, "ip", "-o", "link").splitlines()
    ]
    assert set(devices) == {"lo", "wulf0", *(f"vb-{name}" for name in lab_cluster.layout.names())}
    assert "default" not in in_network(lab_cluster, "ip", "route")


def test_no_way_in_from_the_host(lab_cluster: lab.Lab) -> None:
    links = subprocess.run(["ip", "-o", "addr"], capture_output=True, text=True, check=True).stdout
    routes = subprocess.run(["ip", "route"], capture_output=True, text=True, check=True).stdout
    assert "198.18." not in links + routes
    assert "198.19." not in links + routes


def test_homes_and_keys_of_the_host_are_hidden(lab_cluster: lab.Lab) -> None:
    assert on(lab_cluster, "node01", "ls /home /srv /mnt | grep -v : | tr -d '\\n'") == ""
    assert set(on(lab_cluster, "node01", "ls -A /root").split()) - {".cache"} == {".ssh"}
    host_key = Path("/etc/ssh/ssh_host_ed25519_key.pub")
    if host_key.exists():
        assert on(lab_cluster, "node01", "ssh-keygen -yf /etc/ssh/ssh_host_ed25519_key").split()[1] not in (
            host_key.read_text()
        )


def test_cluster_file_names_every_node(lab_cluster: lab.Lab) -> None:
    document = tomllib.loads(lab_cluster.cluster_file.read_text())
    assert document["cluster"]["nodes"] == "node[01-04]"
    assert document["cluster"]["interface"] == "host0"
    assert list(document["addresses"]) == lab_cluster.layout.names()
    assert on(lab_cluster, "node04", "ip -br -4 address show host0").split()[2] == (
        document["addresses"]["node04"] + "/16"
    )


@pytest.mark.mpi
@pytest.mark.parametrize(
    "command",
    [
        pytest.param("mpirun.openmpi --allow-run-as-root -np 2 --host node01,node02", id="openmpi"),
        pytest.param("mpirun.mpich -np 2 -hosts node01,node02", id="mpich", marks=pytest.mark.thorough),
    ],
)
def test_mpi_starts_on_two_nodes(lab_cluster: lab.Lab, command: str) -> None:
    if not on(lab_cluster, "node01", f"command -v {command.split(maxsplit=1)[0]} || true"):
        pytest.skip(f"{command.split(maxsplit=1)[0]} is not installed")
    assert sorted(on(lab_cluster, "node01", f"{command} hostname").split()) == ["node01", "node02"]


@pytest.mark.thorough
def test_reboot_keeps_the_disk_and_nothing_else(lab_cluster: lab.Lab) -> None:
    before = on(lab_cluster, "node04", "cat /proc/sys/kernel/random/boot_id")
    was = on(lab_cluster, "node04", "sysctl -n net.ipv4.tcp_slow_start_after_idle")
    on(lab_cluster, "node04", "echo kept > /etc/wulf-test")
    on(lab_cluster, "node04", f"sysctl -w net.ipv4.tcp_slow_start_after_idle={1 - int(was)}")
    lab_cluster.reboot("node04")
    assert on(lab_cluster, "node04", "cat /etc/wulf-test") == "kept"
    assert on(lab_cluster, "node04", "sysctl -n net.ipv4.tcp_slow_start_after_idle") == was
    assert on(lab_cluster, "node04", "cat /proc/sys/kernel/random/boot_id") != before


@pytest.mark.thorough
def test_reboot_from_inside(lab_cluster: lab.Lab) -> None:
    from tests.lab.host import wait_until

    before = on(lab_cluster, "node03", "cat /proc/sys/kernel/random/boot_id; echo x > /run/wulf-test")
    subprocess.run(lab_cluster.ssh_argv("node03", ["systemctl", "reboot"]), capture_output=True, check=False)

    def is_back() -> bool:
        argv = lab_cluster.ssh_argv("node03", ["cat", "/proc/sys/kernel/random/boot_id"])
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        return done.returncode == 0 and done.stdout.strip() != before

    wait_until(is_back)
    assert on(lab_cluster, "node03", "ip -br -4 address show host0").split()[2].startswith("198.18.")
    assert on(lab_cluster, "node02", "ssh node03 hostname") == "node03"


def test_a_node_without_power_is_off_and_comes_back(lab_cluster: lab.Lab) -> None:
    lab_cluster.kill("node02")
    try:
        assert {node.node: node.state for node in lab_cluster.status()}["node02"] == "off"
        done = subprocess.run(
            lab_cluster.ssh_argv("node02", ["true"]), capture_output=True, text=True, timeout=20, check=False
        )
        assert done.returncode == 255
        assert "does not answer" in done.stderr
    finally:
        # The same `up` again switches on what is off.
        again, was_up = lab.up(4)
    assert was_up
    assert [node.state for node in again.status()] == ["running"] * 4

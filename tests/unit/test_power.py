"""What nodes take while something runs: trees of /sys as they are on nodes with two packages, and readings of DCMI."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from wulf.base.output_values import Unknown
from wulf.node.cluster.inventory import local
from wulf.node.cluster.transport import open_transport
from wulf.node.fleet import power

#: As `ipmitool dcmi power reading` prints it.
DCMI = """
    Instantaneous power reading:                   220 Watts
    Minimum during sampling period:                 10 Watts
    Maximum during sampling period:                446 Watts
    Average power reading over sample period:      219 Watts
    IPMI timestamp:                           Thu Nov 26 10:00:00 2026
    Sampling period:                          00000005 Seconds.
    Power reading state is:                   activated
"""
TREE = {
    "intel-rapl:0": ("package-0", 1_000_000, 262_143_328_850),
    "intel-rapl:0:0": ("core", 600_000, 262_143_328_850),
    "intel-rapl:0:1": ("dram", 200_000, 65_712_999_613),
    "intel-rapl:1": ("package-1", 262_143_000_000, 262_143_328_850),
    "intel-rapl:2": ("psys", 5_000_000, 262_143_328_850),
}


def _tree(directory: Path, added_uj: int = 0) -> None:
    for domain, (name, energy, span) in TREE.items():
        place = directory / "sys/class/powercap" / domain
        place.mkdir(parents=True, exist_ok=True)
        (place / "name").write_text(name + "\n")
        (place / "energy_uj").write_text(f"{(energy + added_uj) % span}\n")
        (place / "max_energy_range_uj").write_text(f"{span}\n")


def _printed(root: Path, path: str = "") -> str:
    words = ["sh", "-s", "--", str(root)]
    env = os.environ | ({"PATH": f"{path}:{os.environ['PATH']}"} if path else {})
    said = subprocess.run(words, input=power.script(), capture_output=True, check=True, env=env, timeout=60)
    return said.stdout.decode()


def test_a_tree_of_two_packages_is_read_and_adds_up(tmp_path):
    _tree(tmp_path)
    before = power.parse(_printed(tmp_path))
    # 100 J more in each domain; the counter of the second package comes round.
    _tree(tmp_path, 100_000_000)
    after = power.parse(_printed(tmp_path))
    assert before is not None and after is not None
    assert set(before.joules) == {"0", "0:1", "1"}, "what a package has within it is not counted twice"
    later = after._replace(at_s=before.at_s + 10)
    assert power.cpu_watts([before, later]) == pytest.approx(30.0, rel=1e-3)
    assert before.node_w is None and before.lack == ""


def test_whole_nodes_are_read_by_dcmi(tmp_path):
    own = tmp_path / "bin"
    own.mkdir()
    (own / "ipmitool").write_text(f"#!/bin/sh\ncat <<'END'{DCMI}END\n")
    (own / "ipmitool").chmod(0o755)
    found = power.parse(_printed(tmp_path, str(own)))
    assert found is not None and found.node_w == 220.0
    assert found.joules == {} and "there is no /sys/class/powercap" in found.lack and found.node_lack == ""


def test_what_was_looked_at_in_vain_is_told(tmp_path):
    """Another control type of powercap, no tool; then a tool that cannot reach its controller, or prints no figure."""
    (tmp_path / "sys/class/powercap/dtpm").mkdir(parents=True)
    own = tmp_path / "bin"
    own.mkdir()
    found = power.parse(_printed(tmp_path, str(own)))
    assert found is not None and found.joules == {} and found.node_w is None
    assert "/sys/class/powercap has no intel-rapl" in found.lack
    for said, told in (
        ("Could not open device at /dev/ipmi0", "Could not open device at /dev/ipmi0"),
        ("", "reading: nothing"),
        ("\n    Instantaneous power reading:    n/a", "Instantaneous power reading: n/a"),
    ):
        (own / "ipmitool").write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{said}\nEND\nexit 1\n")
        (own / "ipmitool").chmod(0o755)
        found = power.parse(_printed(tmp_path, str(own)))
        assert found is not None and found.node_w is None and told in " ".join(found.node_lack.split())


@pytest.mark.parametrize(
    "said",
    [
        DCMI.replace("activated", "deactivated"),
        DCMI.replace("220 Watts", "  0 Watts"),
        DCMI.replace("220 Watts", "  0 Watts").replace("activated", "deactivated"),
    ],
)
def test_a_controller_that_does_not_measure_says_nothing_of_power(tmp_path, said):
    own = tmp_path / "bin"
    own.mkdir()
    (own / "ipmitool").write_text(f"#!/bin/sh\ncat <<'END'{said}END\n")
    (own / "ipmitool").chmod(0o755)
    found = power.parse(_printed(tmp_path, str(own)))
    assert found is not None and found.node_w is None and "does not measure" in found.node_lack


def test_a_counter_that_stands_still_counts_nothing(tmp_path):
    """As virtual machines have them: one domain of all is enough, as the sum would be short by what it takes."""
    _tree(tmp_path)
    before = power.parse(_printed(tmp_path))
    _tree(tmp_path, 100_000_000)
    (tmp_path / "sys/class/powercap/intel-rapl:0:1/energy_uj").write_text("200000\n")
    after = power.parse(_printed(tmp_path))
    assert before is not None and after is not None
    readings = {"n1": [before, after._replace(at_s=before.at_s + 10)]}
    assert power.of_nodes(readings).cpu_w is None
    with pytest.raises(Unknown, match=r"n1: .*stands still"):
        power.joules(readings, "cpu", 10.0)


def test_the_energy_of_a_run_is_its_mean_power_for_as_long_as_it_ran(tmp_path, monkeypatch):
    """A node whose controller says 220 W, looked at by a real shell while something runs."""
    own = tmp_path / "bin"
    own.mkdir()
    (own / "ipmitool").write_text(f"#!/bin/sh\ncat <<'END'{DCMI}END\n")
    (own / "ipmitool").chmod(0o755)
    monkeypatch.setenv("PATH", f"{own}:{os.environ['PATH']}")
    monkeypatch.setattr(power, "EVERY_S", 0.05)
    transport = open_transport(local())
    try:
        with power.Meter(transport, ["local1"]) as meter:
            while len(meter.readings["local1"]) < power.FEWEST:
                time.sleep(0.05)
    finally:
        transport.close()
    readings = meter.readings["local1"]
    lasted_s = readings[-1].at_s - readings[0].at_s
    assert power.joules(meter.readings, "node", lasted_s) == pytest.approx(220.0 * lasted_s)
    with pytest.raises(Unknown, match="between the first and the last look"):
        power.joules(meter.readings, "node", 0.5 * lasted_s)


def test_the_energy_of_a_run_that_is_not_known_names_node_and_reason():
    def reading(at_s, spent, node_w=None, lack="", node_lack=""):
        return power.Reading(at_s, {} if lack else {"0": (spent, 1e5)}, node_w, lack, node_lack)

    told = [reading(0.0, 5.0, 100.0), reading(10.0, 205.0, 120.0)]
    assert power.joules({"a": told, "b": told}, "cpu", 9.0) == pytest.approx(2 * 20.0 * 9.0)
    with pytest.raises(Unknown, match="2 readings of a node's power"):
        power.joules({"a": told}, "node", 9.0)
    silent = [reading(0.0, 0.0, None, "no energy counters (RAPL): …", "ipmitool is not installed")] * 2
    for of, why in (("cpu", "b: no energy counters"), ("node", "b: ipmitool is not installed")):
        with pytest.raises(Unknown, match=why):
            power.joules({"a": told, "b": silent}, of, 9.0)
    with pytest.raises(Unknown, match="no node was looked at"):
        power.joules({}, "cpu", 9.0)


def test_counters_that_only_root_may_read_are_told():
    found = power.parse(
        "#energy\n intel-rapl:0 package-0 unreadable 262143328850\n#time\n 1790000000000000000\n"
    )
    assert found is not None
    with pytest.raises(Unknown, match="only root may read"):
        power.cpu_watts([found, found])


def test_silence_is_no_power():
    assert power.parse("#energy\n intel-rapl:0 package-0 1 2\n") is None
    with pytest.raises(Unknown, match="fewer than two readings"):
        power.cpu_watts([])
    one = power.Reading(at_s=1.0, joules={"0": (1.0, 1e5)}, node_w=100.0)
    two = power.Reading(at_s=2.0, joules={"0": (3.0, 1e5)}, node_w=120.0)
    whole = power.of_nodes({"a": [one, two], "b": [one, two]})
    assert (whole.cpu_w, whole.node_w, whole.lacks) == (4.0, 220.0, {})
    part = power.of_nodes({"a": [one, two], "b": [one], "c": []})
    assert part.cpu_w is None and part.node_w is None
    assert set(part.lacks) == {"b", "c"} and set(part.node_lacks) == {"c"}

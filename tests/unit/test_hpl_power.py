"""What nodes take while HPL runs: trees of /sys as they are on nodes with two packages, and readings of DCMI."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from wulf.tools.hpl import power

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
    words = ["sh", "-c", power.SCRIPT, "sh", str(root)]
    env = os.environ | ({"PATH": f"{path}:{os.environ['PATH']}"} if path else {})
    return subprocess.run(words, capture_output=True, text=True, check=True, env=env, timeout=60).stdout


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
    assert found.joules == {} and "no energy counters" in found.lack


def test_counters_that_only_root_may_read_are_told():
    found = power.parse("rapl intel-rapl:0 package-0 unreadable 262143328850\ntime 1790000000000000000\n")
    assert (
        found is not None and "only root may read" in found.lack and power.cpu_watts([found, found]) is None
    )


def test_silence_is_no_power():
    assert power.parse("rapl intel-rapl:0 package-0 1 2\n") is None
    assert power.cpu_watts([]) is None
    one = power.Reading(at_s=1.0, joules={"0": (1.0, 1e5)}, node_w=100.0, lack="")
    two = power.Reading(at_s=2.0, joules={"0": (3.0, 1e5)}, node_w=120.0, lack="")
    whole = power.of_nodes({"a": [one, two], "b": [one, two]})
    assert (whole.cpu_w, whole.node_w, whole.lacks) == (4.0, 220.0, {})
    part = power.of_nodes({"a": [one, two], "b": [one], "c": []})
    assert part.cpu_w is None and part.node_w is None and set(part.lacks) == {"b", "c"}

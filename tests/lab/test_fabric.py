"""A virtual fabric with a sick spine: its flows say which one."""

from __future__ import annotations

import json

import pytest

from tests.cli.command import wulf
from wulf.base.errors import EXIT_FINDINGS
from wulf.node import lab
from wulf.node.lab import topology

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.thorough]


@pytest.fixture
def run(spare, tmp_path):
    lab.up(4, cables=topology.parse_fabric("leaf-spine:2x2"))

    def command(*words):
        return wulf(tmp_path, *words, timeout=600, WULF_LAB_DIR=str(spare.directory))

    return command


def test_a_spine_that_loses_much_is_named(run):
    planted = run("lab", "plant", "spine2:loss=20%")
    assert planted.returncode == 0, planted.stderr
    said = run("diagnose", "paths", "--cluster", "lab", "--budget", "120s", "--json")
    assert said.returncode == EXIT_FINDINGS, said.stderr
    found = json.loads(said.stdout)
    # Every switch answers, with one address and by its name.
    assert {"leaf1", "leaf2", "spine1", "spine2"} <= {switch["name"] for switch in found["switches"]}
    assert found["spread"] == "ECMP"
    losing = [
        one for one in found["culprits"] if any(effect["metric"] == "loss" for effect in one["effects"])
    ]
    named = [way["names"] for one in losing for way in one["ways"]]
    # Beside other work the time may be over before enough pairs were measured: that is said.
    assert ["spine2"] in named or any("time ran out" in why for why in found["missing"].values())
    assert run("lab", "plant", "spine2:none").returncode == 0

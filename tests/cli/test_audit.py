"""facts, audit and knob on this machine, and with wrong input."""

import json

import pytest

from tests.cli.command import wulf
from wulf.base import catalogue


def test_facts_of_this_machine(tmp_path):
    done = wulf(tmp_path, "audit", "facts", "--cluster", "local", "--json", "cpu.*")
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)
    assert first["facts"]["cpu.count"] >= 1
    assert not [name for name in first["facts"] if not name.startswith("cpu.")]
    assert second["node"] == "local2"


def test_facts_are_folded(tmp_path):
    done = wulf(tmp_path, "audit", "facts", "--cluster", "local", "kernel.release")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1


def test_knob_list_and_show(tmp_path):
    listed = wulf(tmp_path, "settings", "list")
    lines = [line.split()[0] for line in listed.stdout.splitlines() if not line.startswith(" ")]
    assert set(catalogue.knobs()) <= set(lines)
    page = wulf(tmp_path, "settings", "show", "nic.rx_usecs").stdout
    for section in (
        "NAME",
        "DESCRIPTION",
        "EFFECT",
        "RECOMMENDED",
        "READ",
        "SET NOW",
        "KEEP",
        "UNDO",
        "RISK",
    ):
        assert f"\n{section}\n" in page
    assert (
        json.loads(wulf(tmp_path, "settings", "show", "nic.mtu", "--json").stdout)["lockout"]
        == "connectivity"
    )
    of_layer = json.loads(wulf(tmp_path, "settings", "list", "--layer", "irq", "--json").stdout)
    assert {row["id"] for row in of_layer} == {
        name for name, knob in catalogue.knobs().items() if knob.layer == "irq"
    }


WRONG = {
    "an unknown profile": (["audit", "--profile", "speed"], 2, "'latency', 'throughput', 'hpc'"),
    "an unknown severity": (["audit", "--fail-on", "never"], 2, "'fail', 'warn', 'info'"),
    "an unknown knob": (["settings", "show", "nic.rx"], 2, "there is no knob 'nic.rx'; did you mean nic.rx_"),
    "an unknown layer": (["settings", "list", "--layer", "x"], 2, "kernel_net"),
    "a look that is not there": (["audit", "--from", "no.tar"], 1, "there is no no.tar"),
    "a look that is none": (
        ["audit", "facts", "--from", "/etc/hostname"],
        1,
        "does not hold facts saved with",
    ),
    "a directory": (["audit", "facts", "--from", "/etc"], 1, "/etc does not hold facts"),
    "saving and reading": (["audit", "facts", "--from", "a", "--save", "b"], 2, "give one of them"),
    "a cluster and a file": (
        ["audit", "facts", "--from", "a", "--cluster", "local"],
        2,
        "takes no --cluster",
    ),
    "an unknown fact": (
        ["audit", "facts", "--cluster", "local", "nic.colour"],
        2,
        "no fact is called 'nic.colour'",
    ),
    "nowhere to save": (
        ["audit", "facts", "--cluster", "local", "--save", "no/such/x.tar"],
        1,
        "cannot write no/such/x.tar",
    ),
    "a directory to save to": (["audit", "facts", "--cluster", "local", "--save", "/"], 1, "cannot write /"),
    "nowhere for the page": (["audit", "--cluster", "local", "--html", "no/such.html"], 1, "no/such.html"),
    "nowhere for JUnit": (["audit", "--cluster", "local", "--junit", "/proc/x.xml"], 1, "/proc/x.xml"),
    "a node that is not there": (
        ["audit", "facts", "--cluster", "local", "--nodes", "n9"],
        1,
        "n9 is not a node of this cluster",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_usage_is_explained(tmp_path, name):
    words, code, said = WRONG[name]
    done = wulf(tmp_path, *words)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == code
    assert list(tmp_path.iterdir()) == []

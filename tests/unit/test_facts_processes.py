"""What a look costs a node: processes, which a slow one starts slowly; and what it says of its own time."""

from __future__ import annotations

import subprocess
from importlib import resources
from pathlib import Path

import pytest

from wulf.base import catalogue
from wulf.base.catalogue import parameters, paths
from wulf.base.contracts import NodeResult
from wulf.base.records import PASSING_FACTS
from wulf.face.cli.progress import waiting_for
from wulf.node.cluster.inventory import local
from wulf.node.cluster.transport import open_transport
from wulf.node.facts.capture import capture, scripts
from wulf.node.facts.parse import record

FACTS = Path(str(resources.files("wulf.node.facts")))


def processes(script, *words):
    """Return how many processes a script starts, its own shell included."""
    inside = ["sh", "-c", 'script=$1; shift; sh -s -- "$@" <"$script" >/dev/null 2>&1; sh -c "echo \\$\\$"']
    argv = [
        "unshare",
        "--map-root-user",
        "--pid",
        "--fork",
        "--mount-proc",
        *inside,
        "sh",
        str(script),
        *words,
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        pytest.skip(f"no process namespace here: {done.stderr.strip()}")
    # The first is the outer shell, the last the one that says its number.
    return int(done.stdout) - 2


def interface():
    """Return an interface that is not physical: what is asked of the cards of this machine is not counted on."""
    return "lo"


def test_a_look_starts_few_processes():
    knobs = list(catalogue.knobs().values())
    words = [path.replace("{interface}", interface()) for path in paths(knobs)]
    cards = [path for path in Path("/sys/class/net").iterdir() if (path / "device").exists()]
    # It was 250 with one card; each has nine calls of ethtool, and two looks at its counters.
    limit = 100 + 16 * len(cards)
    assert processes(FACTS / "capture.sh", interface(), *words, *parameters(knobs)) <= limit


def test_counters_around_a_launch_cost_one_process_beside_the_shell(tmp_path):
    (tmp_path / "look.sh").write_bytes(scripts("energy.sh", "context.sh"))
    # Two where the kernel keeps no pressure information.
    assert processes(tmp_path / "look.sh", interface()) <= 3


@pytest.fixture(scope="module")
def looked():
    transport = open_transport(local())
    try:
        (found,) = capture(transport, ["local1"], None, [])
    finally:
        transport.close()
    return found


def test_a_look_says_what_it_took(looked):
    parts = {name for name in looked.facts if name.startswith("look.")}
    assert {"look.services_s", "look.mpi_s", "look.counters_s"} <= parts
    assert all(0 <= looked.facts[name] < 60 for name in parts)
    assert parts <= PASSING_FACTS, "that two looks take differently long is no difference between nodes"


def test_a_node_whose_time_is_over_says_how_far_it_had_come():
    text = b"#section.counters 0\n 100.25 50\n#section.services 0\n 112.75 60\n#units 0\n"
    late = NodeResult(
        node="n3", status="timeout", exit_code=None, stdout=text, stderr=b"", reason="n3: not done in 60 s"
    )
    found = record(late, None, [])
    assert found.error == "n3: not done in 60 s: it had come to 'services', 12 s after it began"
    silent = NodeResult(
        node="n3", status="timeout", exit_code=None, stdout=b"", stderr=b"", reason="n3: no answer"
    )
    assert record(silent, None, []).error == "n3: no answer"


def test_the_nodes_that_are_waited_for_are_named_when_they_are_few():
    assert waiting_for(["n1", "n2", "n7"]) == "waiting for n[1-2,7]"
    assert waiting_for([]) == ""
    assert waiting_for([f"n{k}" for k in range(100)]) == ""

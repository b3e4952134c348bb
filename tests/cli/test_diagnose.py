"""``wulf diagnose`` on stored runs: the verdict first, its exit codes, and the gate."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from tests.cli.command import wulf
from tests.unit.test_diagnosing import NODES, measured


def test_the_verdict_stands_first_and_decides_the_exit_code(tmp_path):
    measured(tmp_path / "runs", ["node05"], 2.0)
    done = wulf(tmp_path, "diagnose", "run")
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith(
        "node05 is slow: 2 × the time of others at 256 KiB\n"
        "of 8 nodes, node[01-08] these are slower than comparable nodes:\n  node05: slow with"
    )
    assert "next: wulf audit --nodes node05" in done.stdout
    for node in NODES:
        assert f"\n{node} " in done.stdout
    found = json.loads(wulf(tmp_path, "diagnose", "run", "--json").stdout)
    assert found["matrices"][1]["suspects"][0]["nodes"] == ["node05"]
    assert {score["node"] for score in found["matrices"][1]["scores"]} == set(NODES)


def test_it_is_a_gate(tmp_path):
    measured(tmp_path / "runs", ["node05"], 1.3)
    (tmp_path / "runs" / "run").rename(tmp_path / "runs" / "now")
    measured(tmp_path / "runs", seed=2)
    file = tmp_path / "gate.xml"
    done = wulf(
        tmp_path, "diagnose", "now", "--baseline", "run", "--fail-if", "worse > 5%", "--junit", str(file)
    )
    assert done.returncode == 3, done.stderr
    assert "against test: 1 figure proven to be worse by more than 5 %" in done.stdout
    assert ElementTree.parse(file).getroot().get("failures") == "2"
    same = wulf(tmp_path, "diagnose", "run", "--baseline", "run", "--junit", str(file))
    assert same.returncode == 0, same.stdout
    assert same.stdout.startswith("fine: of 8 nodes")
    assert "no figure proven to be worse" in same.stdout
    assert ElementTree.parse(file).getroot().get("failures") == "0"


def test_what_it_cannot_do_is_said(tmp_path):
    measured(tmp_path / "runs", pairs=[("node01", "node02"), ("node02", "node03")])
    ring = wulf(tmp_path, "diagnose", "run")
    assert (ring.returncode, "wulf measure --pairs all" in ring.stderr) == (1, True)
    gate = wulf(tmp_path, "diagnose", "run", "--baseline", "run", "--fail-if", "slower")
    assert (gate.returncode, "write it as 'worse > 5%'" in gate.stderr) == (2, True)
    alone = wulf(tmp_path, "diagnose", "run", "--fail-if", "worse > 5%")
    assert (alone.returncode, "--fail-if needs --baseline" in alone.stderr) == (2, True)
    missing = wulf(tmp_path, "diagnose", "run", "--baseline", "nothing")
    assert missing.returncode != 0 and "nothing" in missing.stderr

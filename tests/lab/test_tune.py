"""``wulf tune`` on virtual nodes; see also ``make bench NAME=tune-lab``."""

from __future__ import annotations

import math
import os
import signal
import time

import pytest

from tests.cli.command import start, wulf
from tests.lab.test_nodes import on
from wulf.base.store.tuning import load_tuning

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.thorough]

MTU = "cat /sys/class/net/host0/mtu"
RULES = (
    "{ echo 'table inet planted {'; echo 'chain in { type filter hook input priority 0; policy accept;'; "
    'for i in $(seq 4000); do echo "ip saddr 203.0.113.$((i % 250)) tcp dport $((20000 + i)) drop"; done; '
    "echo 'ct state invalid drop'; echo '}'; echo '}'; } | nft -f -"
)


@pytest.fixture
def run(lab_cluster, tmp_path):
    def command(*words):
        return wulf(tmp_path, *words, timeout=300, WULF_LAB_DIR=os.environ["WULF_LAB_DIR"])

    yield command
    assert command("rollback", "--cluster", "lab").returncode == 0


def test_a_firewall_is_found_by_experiment_and_mended(run, lab_cluster, tmp_path):
    for node in lab_cluster.layout.names():
        on(lab_cluster, node, RULES)
    try:
        words = (
            "--knobs",
            # The command is begun over a TCP connection: nothing may be named that could make that faster.
            "net.conntrack=notrack tcp_sack=0",
            "--objective",
            # Long enough that beginning a command, milliseconds that come and go, weighs nothing.
            "app: ping -qfc 4000 node02",
        )
        done = run("tune", "--run", "t", "--cluster", "lab", "--budget", "100s", *words)
        assert done.returncode in (0, 3), done.stderr
        found = load_tuning(tmp_path / "runs" / "t")
        assert found.result is not None
        # A busy machine may leave it undecided; nothing else can be proven to help, and what is kept is in effect.
        assert found.result.kept in ({}, {"net.conntrack": "notrack"}), done.stdout
        kept = bool(found.result.kept)
        assert ("notrack" in on(lab_cluster, "node03", "nft list ruleset")) == kept
        assert (found.manifest.change is not None) == kept
        for form in ("--text", "--json", "--csv", "--markdown", "--latex"):
            assert run("report", "t", form).returncode == 0
        assert run("report", "t").returncode == 0
        assert (tmp_path / "runs" / "t" / "report.html").stat().st_size > 100_000
        assert ("net.conntrack = notrack" in run("settings", "status", "--cluster", "lab").stdout) == kept
        if kept:
            assert run("settings", "export", "t", "--shell", str(tmp_path / "x.sh")).returncode == 0
            assert (tmp_path / "x.sh").exists()
    finally:
        run("rollback", "--cluster", "lab")
        for node in lab_cluster.layout.names():
            on(lab_cluster, node, "nft delete table inet planted")


def test_an_interrupted_search_puts_the_nodes_back_and_goes_on(run, lab_cluster, tmp_path):
    words = ["tune", "--run", "t", "--cluster", "lab", "--budget", "10m", "--knobs", "nic.mtu=1400"]
    words += ["--objective", "app: ping -qfc 500 node02"]
    process = start(tmp_path, *words, WULF_LAB_DIR=os.environ["WULF_LAB_DIR"])
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and on(lab_cluster, "node02", MTU).strip() != "1400":
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 130, out + err
    assert [on(lab_cluster, node, MTU).strip() for node in lab_cluster.layout.names()] == ["1500"] * 4
    before = load_tuning(tmp_path / "runs" / "t")
    assert before.manifest.status == "interrupted"
    assert before.trials
    assert before.result is not None
    done = run("tune", "--resume", "t", "--budget", "60s")
    assert done.returncode in (0, 3), done.stderr
    after = load_tuning(tmp_path / "runs" / "t")
    assert len(after.trials) > len(before.trials)
    assert after.trials[: len(before.trials)] == before.trials


def test_what_some_nodes_lack_is_measured_with_these_pair_by_pair(run, lab_cluster, tmp_path):
    name = "net.ipv4.tcp_autocorking"
    for node in ("node01", "node02"):
        on(lab_cluster, node, f"sysctl -q -w {name}=0")
    goal = tmp_path / "goal.toml"
    goal.write_text("[[metric]]\nop = 'tcp_rr'\nsize = '64B'\n", encoding="utf-8")
    try:
        words = ("--knobs", "tcp_autocorking=1", "--objective", str(goal), "--budget", "25s", "--only-search")
        done = run("tune", "--run", "t", "--cluster", "lab", *words)
        assert done.returncode in (0, 3), done.stderr
        found = load_tuning(tmp_path / "runs" / "t")
        (candidate,) = found.manifest.plan.candidates
        assert candidate.nodes == "node[01-02]"
        (part,) = found.manifest.workload.parts
        assert part.places == [("node01", "node03"), ("node02", "node04"), ("node01", "node02")]
        measured = [trial for trial in found.trials if trial.status == "ok"]
        assert measured
        for trial in measured:
            assert set(trial.by_place) == {"node[01,03]", "node[02,04]", "node[01-02]"}
            logs = [math.log(values["tcp_rr 64 B mean"]) for values in trial.by_place.values()]
            assert math.exp(sum(logs) / 3) == pytest.approx(trial.values["tcp_rr 64 B mean"])
        assert [on(lab_cluster, node, f"sysctl -n {name}") for node in lab_cluster.layout.names()] == list(
            "0011"
        )
    finally:
        for node in ("node01", "node02"):
            on(lab_cluster, node, f"sysctl -q -w {name}=1")


def test_a_dry_run_says_what_would_be_tried(run, lab_cluster):
    done = run("tune", "--cluster", "lab", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "sysctl.net.ipv4.tcp_autocorking: 1" in done.stdout
    assert "not tried:" in done.stdout
    assert "nothing was changed" in done.stdout


def test_nothing_to_try_is_said_with_the_reasons(run, lab_cluster):
    done = run("tune", "--cluster", "lab", "--knobs", "nic.rx_usecs cpu.isolcpus")
    assert done.returncode == 2
    assert "nic.rx_usecs" in done.stderr
    assert "set at boot" in done.stderr

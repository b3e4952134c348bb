"""``wulf settings rollout`` on virtual nodes, one of which a setting harms."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time

import pytest

from tests.cli.command import start, wulf
from tests.lab.host import wait_until
from tests.lab.test_nodes import on
from wulf.tools.rollout.store import load_rollout

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.thorough]

KNOB = "sysctl.net.ipv4.tcp_slow_start_after_idle"
NOW = "cat /proc/sys/net/ipv4/tcp_slow_start_after_idle"
#: As a driver might: where the setting is 0, the interface carries 200 Mbit/s.
HARMED = (
    "cat >/run/harm.sh <<'E'\n"
    "while :; do case $(cat /proc/sys/net/ipv4/tcp_slow_start_after_idle) in\n"
    "0) [ -e /run/harm.on ] || { tc qdisc replace dev host0 root tbf rate 200mbit burst 64k latency 50ms; "
    ">/run/harm.on; } ;;\n"
    "*) [ -e /run/harm.on ] && { tc qdisc del dev host0 root; rm -f /run/harm.on; } ;;\n"
    "esac; sleep 0.05; done\nE\n"
    "setsid sh /run/harm.sh >/dev/null 2>&1 </dev/null & echo $! >/run/harm.pid"
)
WELL = "kill $(cat /run/harm.pid); tc qdisc del dev host0 root 2>/dev/null; rm -f /run/harm.*"


@pytest.fixture
def roll(lab_cluster, tmp_path):
    names = lab_cluster.layout.names()
    on(lab_cluster, names[-1], HARMED)

    def command(*words):
        return wulf(tmp_path, "rollout", *words, timeout=3600, WULF_LAB_DIR=os.environ["WULF_LAB_DIR"])

    yield command
    on(lab_cluster, names[-1], WELL)
    done = wulf(tmp_path, "rollback", "--cluster", "lab", "--yes", WULF_LAB_DIR=os.environ["WULF_LAB_DIR"])
    assert done.returncode == 0


#: On a busy machine a launch takes ten times as long, and nothing can be told: the rounds are bounded.
WORDS = (
    *(f"{KNOB}=0", "--cluster", "lab", "--canary", "2", "--margin", "60%", "--rounds", "16"),
    *("--run", "r", "--check", "true"),
)


def test_a_node_that_a_setting_harms_never_keeps_it(roll, lab_cluster, tmp_path):
    *others, harmed = lab_cluster.layout.names()
    done = roll(*WORDS)
    assert done.returncode == 3, done.stdout + done.stderr
    found = load_rollout(tmp_path / "runs" / "r").result
    states = {one.node: one.state for one in found.nodes}
    assert states[harmed] in ("harmed", "cannot tell")
    # A busy machine may leave it open of others: then they do not have it either.
    kept = {node for node in others if states[node] == "kept"}
    assert {node for node in lab_cluster.layout.names() if on(lab_cluster, node, NOW) == "0"} == kept
    assert (tmp_path / "runs" / "r" / "rollout.html").stat().st_size > 100_000


def test_a_dead_node_keeps_nobody_waiting(roll, lab_cluster, tmp_path):
    first, dead, *others = lab_cluster.layout.names()
    for node in (first, *others):
        on(lab_cluster, node, f"echo 0 > {NOW.split()[1]}")
    lab_cluster.kill(dead)
    try:
        done = roll(*WORDS)
    finally:
        lab_cluster.start(dead)
        for node in (first, *others):
            on(lab_cluster, node, f"echo 1 > {NOW.split()[1]}")
    assert done.returncode == 3, done.stdout + done.stderr
    states = {one.node: one.state for one in load_rollout(tmp_path / "runs" / "r").result.nodes}
    assert states == {dead: "silent"} | dict.fromkeys((first, *others), "had it")


def test_a_check_that_dies_halts_it_and_nothing_stays(roll, lab_cluster, tmp_path):
    done = roll(*WORDS[:-1], f'test "$({NOW})" = 1 || kill -9 $$')
    found = load_rollout(tmp_path / "runs" / "r").result
    assert all(one.state != "kept" for one in found.nodes)
    if any(step.checks for step in found.steps):
        assert done.returncode == 1, done.stdout + done.stderr
        assert found.status == "halted"
    assert {on(lab_cluster, node, NOW) for node in lab_cluster.layout.names()} == {"1"}


def test_a_check_that_fails_for_good_takes_earlier_steps_back(roll, lab_cluster, tmp_path):
    # Before the first step and in it (1 + 4 times) it passes, and never again.
    check = "n=$(($(cat /shared/checks 2>/dev/null || echo 0) + 1)); echo $n >/shared/checks; test $n -le 5"
    try:
        done = roll(*WORDS[:-1], check)
    finally:
        on(lab_cluster, lab_cluster.layout.names()[0], "rm -f /shared/checks")
    found = load_rollout(tmp_path / "runs" / "r").result
    if any(not run.passed for step in found.steps for run in step.checks):
        assert done.returncode == 1, done.stdout + done.stderr
        assert "put back" in {one.node: one.reason for one in found.nodes}[found.steps[0].nodes[0]]
        assert {on(lab_cluster, node, NOW) for node in lab_cluster.layout.names()} == {"1"}


def test_ctrl_c_puts_the_step_back_and_it_goes_on(roll, lab_cluster, tmp_path):
    process = start(tmp_path, "rollout", *WORDS, WULF_LAB_DIR=os.environ["WULF_LAB_DIR"])
    log = tmp_path / "runs" / "r" / "steps.jsonl"
    end = time.monotonic() + 300
    while not (log.exists() and log.stat().st_size) and time.monotonic() < end:
        time.sleep(0.2)
    time.sleep(5)
    process.send_signal(signal.SIGINT)
    assert process.wait(300) == 130
    assert {on(lab_cluster, node, NOW) for node in lab_cluster.layout.names()} == {"1"}
    assert load_rollout(tmp_path / "runs" / "r").manifest.status == "interrupted"
    assert roll("--resume", "r").returncode in (0, 3)


def test_under_slurm_a_busy_node_waits_and_no_job_is_left(slurm_lab):
    command = ["sbatch", "--exclusive", "--nodelist=node03", "--output=/dev/null", "--wrap=sleep 3600"]
    on(slurm_lab, "node01", shlex.join(command))
    try:
        wait_until(lambda: on(slurm_lab, "node01", "squeue -h -t running -o %N") == "node03", timeout_s=60)
        words = f"{KNOB}=0 --canary 2 --margin 60% --rounds 8 --run r"
        argv = slurm_lab.ssh_argv("node01", ["sh", "-c", f"cd /shared && wulf rollout {words}"])
        done = subprocess.run(argv, capture_output=True, text=True, timeout=3600, check=False)
        assert done.returncode == 3, done.stdout + done.stderr
        states = {
            one.node: one.state for one in load_rollout(slurm_lab.directory / "shared/runs/r").result.nodes
        }
        assert states["node03"] == "busy"
        assert set(states.values()) <= {"busy", "kept", "cannot tell"}
        kept = {node for node, state in states.items() if state == "kept"}
        assert {node for node in slurm_lab.layout.names() if on(slurm_lab, node, NOW) == "0"} == kept
        assert on(slurm_lab, "node01", "squeue -h -o %N") == "node03"
    finally:
        on(slurm_lab, "node01", "scancel --user=root; cd /shared && wulf rollback --yes; rm -rf /shared/runs")

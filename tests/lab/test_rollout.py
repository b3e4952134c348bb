"""``wulf settings rollout`` on virtual nodes, one of which a setting harms."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.command import environment, start, wulf
from tests.conftest import OTHER_LAB
from tests.lab.host import wait_until
from tests.lab.test_nodes import on
from wulf.tools.rollout.store import load_rollout

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.thorough, pytest.mark.xdist_group(OTHER_LAB)]

KNOB = "sysctl.net.ipv4.tcp_slow_start_after_idle"
NOW = "cat /proc/sys/net/ipv4/tcp_slow_start_after_idle"
#: As a driver might: where the setting has one value, the interface carries 200 Mbit/s.
LIMITED = (
    "cat >/run/limit.sh <<'E'\n"
    "while :; do case $(cat /proc/sys/net/ipv4/tcp_slow_start_after_idle) in\n"
    "VALUE) [ -e /run/limit.on ] || { tc qdisc replace dev host0 root tbf rate 200mbit burst 64k latency 50ms; "
    ">/run/limit.on; } ;;\n"
    "*) [ -e /run/limit.on ] && { tc qdisc del dev host0 root; rm -f /run/limit.on; } ;;\n"
    "esac; sleep 0.05; done\nE\n"
    "setsid sh /run/limit.sh >/dev/null 2>&1 </dev/null & echo $! >/run/limit.pid"
)
WELL = "kill $(cat /run/limit.pid); tc qdisc del dev host0 root 2>/dev/null; rm -f /run/limit.*"


#: Starts a roll-out without the checks of the command line.
SURELY = """
import pathlib, unittest.mock
from wulf.tools.rollout.request import RolloutRequest
from wulf.tools.rollout.work import rollout
rollout(RolloutRequest(**{!r}, path=pathlib.Path("runs/r")), unittest.mock.Mock())
"""


class Rolls:
    """Roll-outs of a setting that one value of limits some nodes."""

    def __init__(self, lab, directory):
        self.lab, self.directory = lab, directory
        self.environment = {"WULF_LAB_DIR": os.environ["WULF_LAB_DIR"]}

    def __call__(self, *words):
        return self.wulf("rollout", *words)

    def wulf(self, *words):
        return wulf(self.directory, *words, timeout=3600, **self.environment)

    def start(self, *words):
        return start(self.directory, "rollout", *words, **self.environment)

    def surely(self, **more):
        """Start one by a margin that nothing on a busy machine comes near, larger than a user may give."""
        given = {"cluster": "lab", "settings": [f"{KNOB}=0"], "canary": 2, "margin": 4.0} | more
        return subprocess.Popen(
            [sys.executable, "-c", SURELY.format(given)],
            cwd=self.directory,
            env=environment(self.directory, **self.environment),
        )

    def reach(self, process, step):
        """Wait until a step has begun, or all has ended."""
        log = self.directory / "runs" / "r" / "steps.jsonl"
        begun = f'"number":{step},'
        wait_until(lambda: process.poll() is not None or (log.exists() and begun in log.read_text()), 3600)

    @property
    def run(self):
        return load_rollout(self.directory / "runs" / "r")

    def limit(self, value, nodes):
        for node in nodes:
            on(self.lab, node, LIMITED.replace("VALUE", value))

    @property
    def having(self):
        return {node for node in self.lab.layout.names() if on(self.lab, node, NOW) == "0"}


@pytest.fixture
def rolls(lab_cluster, tmp_path):
    made = Rolls(lab_cluster, tmp_path)
    yield made
    done = made.wulf("rollback", "--cluster", "lab", "--yes")
    assert done.returncode == 0, done.stderr
    for node in lab_cluster.layout.names():
        on(lab_cluster, node, f"if [ -e /run/limit.pid ]; then {WELL}; fi")


@pytest.fixture
def roll(rolls, lab_cluster):
    rolls.limit("0", lab_cluster.layout.names()[-1:])
    return rolls


#: On a busy machine a launch takes ten times as long, and nothing can be told: the rounds are bounded.
WORDS = (
    *(f"{KNOB}=0", "--cluster", "lab", "--canary", "2", "--margin", "60%", "--rounds", "16"),
    *("--run", "r", "--check", "true"),
)


def test_a_node_that_a_setting_harms_never_keeps_it(roll, lab_cluster, tmp_path):
    *others, harmed = lab_cluster.layout.names()
    done = roll(*WORDS)
    assert done.returncode == 3, done.stdout + done.stderr
    found = roll.run.result
    states = {one.node: one.state for one in found.nodes}
    assert states[harmed] in ("harmed", "cannot tell")
    # A busy machine may leave it open of others: then they do not have it either.
    assert roll.having == {node for node in others if states[node] == "kept"}
    assert (tmp_path / "runs" / "r" / "rollout.html").stat().st_size > 100_000


def test_a_dead_node_keeps_nobody_waiting(roll, lab_cluster):
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
    states = {one.node: one.state for one in roll.run.result.nodes}
    assert states == {dead: "silent"} | dict.fromkeys((first, *others), "had it")


def test_a_check_that_dies_halts_it_and_nothing_stays(rolls):
    process = rolls.surely(check=f'test "$({NOW})" = 1 || kill -9 $$')
    assert process.wait(3600) == 0
    found = rolls.run.result
    assert found.status == "halted" and "SIGKILL" in found.reason
    assert all(one.state != "kept" for one in found.nodes)
    assert rolls.having == set()


def test_a_check_that_hangs_in_the_second_step_halts_it_and_the_first_stays(rolls):
    hang = rolls.lab.directory / "shared" / "hang"
    check = f'test "$({NOW})" = 1 || test ! -e /shared/hang || sleep 3456'
    process = rolls.surely(check=check, check_within_s=10.0)
    rolls.reach(process, 2)
    hang.touch()
    try:
        assert process.wait(3600) == 0
    finally:
        hang.unlink()
    found = rolls.run.result
    first, second = found.steps
    assert "the check fails with the change of this step" in found.reason
    assert rolls.having == set(first.nodes)
    assert {one.state for one in second.outcomes} == {"cannot tell"}
    left = [on(rolls.lab, node, "pgrep -f '^sleep 3456' || true") for node in rolls.lab.layout.names()]
    assert not any(left)


def test_a_check_that_fails_for_good_takes_earlier_steps_back(rolls):
    # Before the first step and in it (1 + 4 times) it passes, and never again.
    check = "n=$(($(cat /shared/checks 2>/dev/null || echo 0) + 1)); echo $n >/shared/checks; test $n -le 5"
    try:
        assert rolls.surely(check=check).wait(3600) == 0
    finally:
        (rolls.lab.directory / "shared" / "checks").unlink(missing_ok=True)
    found = rolls.run.result
    assert found.status == "halted"
    assert found.reason.endswith("the earlier steps were put back; it still fails")
    first = {one.node: one.reason for one in found.nodes}[found.steps[0].nodes[0]]
    assert first.startswith("put back: the check fails")
    assert rolls.having == set()


def test_ctrl_c_puts_the_step_back_and_it_goes_on(roll):
    with roll.start(*WORDS) as process:
        roll.reach(process, 1)
        time.sleep(5)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=600)
    assert process.returncode == 130
    assert roll.having == set()
    assert roll.run.manifest.status == "interrupted"
    assert roll("--resume", "r").returncode in (0, 3)


def test_a_setting_that_helps_stays_through_an_interruption_and_a_boot(rolls, lab_cluster):
    names = lab_cluster.layout.names()
    rolls.limit("1", names)
    process = rolls.surely(check="true")
    rolls.reach(process, 2)
    process.send_signal(signal.SIGINT)
    assert process.wait(600) != 0
    first = rolls.run.steps[0]
    assert rolls.having == set(first.nodes)
    assert rolls.run.manifest.status == "interrupted"
    done = rolls("--resume", "r")
    assert done.returncode == 0, done.stdout + done.stderr
    found = rolls.run.result
    assert {one.node: one.state for one in found.nodes} == dict.fromkeys(names, "kept")
    assert rolls.having == set(names)
    # Nobody who has it is measured once more.
    assert {one.node for one in found.nodes if one.step == 1} == set(first.nodes)
    # With the change on both of a pair, 1 MiB is carried in a tenth of the time, with that on one in half of it.
    gains = [figure.ratio.value for one in found.nodes for figure in one.figures if "MiB" in figure.metric]
    assert all(gain < 0.8 for gain in gains)
    done = rolls.wulf("settings", "persist", "--cluster", "lab")
    assert done.returncode == 0, done.stdout + done.stderr
    lab_cluster.reboot(names[0])
    assert on(lab_cluster, names[0], "systemctl is-system-running --wait >/dev/null || true; " + NOW) == "0"


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

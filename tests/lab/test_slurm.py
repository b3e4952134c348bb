"""Slurm on virtual nodes: a submitted run, the end of its allocation, and what a cancelled job leaves."""

from __future__ import annotations

import re
import subprocess

import pytest

import wulf as library
from tests.lab.host import wait_until
from tests.lab.test_nodes import on
from tests.unit.predict_fixture import calibrated_run, ring
from wulf.base.store.tuning import load_tuning
from wulf.node.cluster import inventory
from wulf.tools.study.conclude import conclude
from wulf.tools.worth import money

pytestmark = [pytest.mark.lab, pytest.mark.root]

MTU = "cat /sys/class/net/host0/mtu"
SHORT = "--ladder short --max-size 256 --visit 500us --precision 50% --max-launches 6"


@pytest.fixture
def cluster(slurm_lab):
    """Nodes on which nothing of a test before this one is left; the next job is number 1 of `job`."""
    on(slurm_lab, "node01", "scancel --user=root; rm -rf /shared/runs /shared/*.wtrace /shared/job")
    wait_until(lambda: on(slurm_lab, "node01", "squeue -h") == "", timeout_s=120)
    yield slurm_lab


def job_of(text):
    """Return the number of the job that a command speaks of."""
    return re.search(r"job (\d+):", text)[1]


def submitted(cluster, command, timeout_s=400):
    """Run a command where the nodes' shared directory is, on the node that has Slurm's controller."""
    argv = cluster.ssh_argv("node01", ["sh", "-c", f"cd /shared && {command}"])
    return subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, check=False)


#: Runs a command and interrupts it (Ctrl-C) when it says that its job waits.
INTERRUPTED = """\
import signal, subprocess, sys
with subprocess.Popen(sys.argv[1:], stderr=subprocess.PIPE, text=True) as command:
    for line in command.stderr:
        print(line, end="", file=sys.stderr)
        if ": pending, waits for " in line:
            command.send_signal(signal.SIGINT)
sys.exit(command.returncode)
"""


def words(text):
    return " ".join(text.split())


def test_a_run_is_submitted_and_stays_within_its_allocation(cluster):
    shared = cluster.directory / "shared"
    assert on(cluster, "node01", "sinfo -h -N -t idle -o %N").split() == ["node01", "node02", "node03"]
    assert submitted(cluster, "wulf measure --cluster slurm").returncode == 1  # no allocation

    done = submitted(
        cluster,
        f"wulf measure --run one --ops mpi_pingpong,mpi_barrier,tcp_rr {SHORT} --budget 1h "
        "--submit '--nodes=2 --time=00:10:00'",
    )
    assert done.returncode in (0, 3), done.stdout + done.stderr
    job = job_of(done.stderr)
    assert f"job {job}: running on node[01-02], for 10 min at most" in done.stderr
    assert f"job {job}: ended on node[01-02]" in done.stderr or f"job {job}: completed" in done.stderr
    told = words(done.stdout)
    assert f"MPI jobs start with srun --mpi=pmix in Slurm job {job}" in told
    assert "instead of 3600 s, 60 s are kept to put everything back" in told
    assert "run: runs/one" in told
    run = library.load(shared / "runs" / "one")
    assert run.manifest.status in ("complete", "budget")
    assert run.manifest.plan.budget_s < 600
    here = inventory.parse(run.manifest.cluster, "one")
    assert (here.name, here.nodes, here.interface) == (f"slurm-{job}", ("node01", "node02"), "host0")
    assert [launch.error for launch in run.launches if launch.error] == []
    started = [launch for launch in run.launches if launch.op.startswith("mpi_")]
    assert {launch.op for launch in started} == {"mpi_pingpong", "mpi_barrier"}
    assert {launch.argv[0] for launch in started} == {"srun"}
    assert {tuple(launch.probe.hosts) for launch in started} == {("node01", "node02")}
    # Nobody was on the third node, not even to look.
    assert on(cluster, "node03", "ls -A /root/.cache 2>/dev/null || true") == ""


@pytest.mark.thorough
def test_an_allocation_of_nodes_on_which_wulf_does_not_run(cluster):
    shared = cluster.directory / "shared"
    command = f"wulf measure --run other --cluster slurm --ops mpi_pingpong {SHORT} --budget 30s"
    done = submitted(cluster, f"salloc --nodes=2 --nodelist=node02,node03 {command}")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    run = library.load(shared / "runs" / "other")
    assert [launch.error for launch in run.launches if launch.error] == []
    assert {tuple(launch.probe.hosts) for launch in run.launches} == {("node02", "node03")}


@pytest.mark.thorough
def test_ctrl_c_leaves_the_job_alone_and_it_is_followed_again(cluster):
    command = f"wulf measure --run two --ops mpi_pingpong --mpi mpich {SHORT} --budget 30s --submit '--hold --nodes=2'"
    done = submitted(cluster, f"python3 -c '{INTERRUPTED}' {command}")
    assert done.returncode == 130, done.stdout + done.stderr
    job = job_of(done.stderr)
    assert f"job {job}: pending, waits for JobHeldUser" in done.stderr
    assert (
        f"job {job} goes on: 'wulf measure --follow {job}' follows it again, 'scancel {job}' ends it"
        in done.stderr
    )
    on(cluster, "node01", f"scontrol release {job}")
    done = submitted(cluster, f"wulf measure --follow {job}")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    run = library.load(cluster.directory / "shared" / "runs" / "two")
    assert [launch.error for launch in run.launches if launch.error] == []
    assert {launch.argv[3] for launch in run.launches} == {"--mpi=pmi2"}

    refused = submitted(cluster, "wulf measure --run three --submit '--partition=nowhere'")
    assert refused.returncode == 1
    assert "sbatch: " in refused.stderr and "invalid partition" in refused.stderr.lower()
    assert "scontrol: " in submitted(cluster, "wulf measure --follow 9999").stderr


QUESTION = "wulf program predict a.wtrace b.wtrace --on cal --samples 40 --json"
JOBS = """
nodes = 8
hours_a_year = 8000
[[job]]
trace = "a.wtrace"
share = 0.8
ranks = 4
nodes = 4
"""


def shared_cache(command):
    """All nodes share what one of them has built."""
    return f"XDG_CACHE_HOME=/shared/cache {command}"


def asked(cluster, command):
    return submitted(cluster, shared_cache(command), timeout_s=800)


def followed(cluster, command, until, then):
    """Run a command, and do something as soon as it has said something; return what it has said, and its exit code."""
    argv = cluster.ssh_argv("node01", ["sh", "-c", f"cd /shared && {shared_cache(command)}"])
    with subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        said = ""
        for line in process.stderr:
            said += line
            if until in line:
                then()
        return said, process.wait(timeout=120)


@pytest.mark.thorough
def test_predictions_fan_out_as_a_job_array_and_only_what_is_missing_is_done_again(cluster):
    shared = cluster.directory / "shared"
    (shared / "runs").mkdir()
    calibrated_run(shared / "runs" / "cal")
    for name, ranks in (("a", 4), ("b", 6)):
        ring(shared / f"{name}.wtrace", ranks=ranks, run_ns=24_000_000)
    alone = asked(cluster, QUESTION)
    assert alone.returncode == 0, alone.stderr

    # An array that waits is left alone by Ctrl-C, and followed again; meanwhile a task is made to fail.
    held = asked(cluster, f"timeout --preserve-status -s INT 20 {QUESTION} --slurm '--hold --time=00:02:00'")
    assert held.returncode == 130, held.stdout + held.stderr
    job = job_of(held.stderr)
    assert f"job {job}: submitted, 8 tasks, runs/array-" in held.stderr
    assert f"job {job}: 0 of 8 pieces done, 0 running, others wait for JobHeldUser" in held.stderr
    assert f"job {job} goes on: the same command again takes what it has done" in held.stderr
    (place,) = (shared / "runs").glob("array-*")

    def spoil():
        (place / "5.json").unlink()
        on(cluster, "node01", f"scontrol release {job}")

    said, code = followed(cluster, f"{QUESTION} --slurm ''", f"job {job}: goes on, ", spoil)
    assert code == 1, said
    said = words(said)
    assert f"job {job}: 1 of its tasks left no result: task 5 failed on node0" in said
    assert "task 5 cannot be read" in said and "the same command again does only what is missing" in said
    assert len(list(place.glob("*.jsonl"))) == 7

    again = asked(cluster, f"{QUESTION} --slurm '--time=00:02:00'")
    assert again.returncode == 0, again.stderr
    assert "submitted, 1 task," in again.stderr and "all 8 pieces are there" in again.stderr
    # To the last byte, and nothing is left.
    assert again.stdout == alone.stdout
    assert list((shared / "runs").glob("array-*")) == []

    (shared / "jobs.toml").write_text(JOBS)
    (shared / "prices.toml").write_text(money.PRICES)
    question = (
        "wulf program worth a.wtrace --on cal --jobs jobs.toml --prices prices.toml --samples 40 --json"
    )
    alone, array = asked(cluster, question), asked(cluster, f"{question} --slurm ''")
    assert array.returncode == 0, array.stderr
    assert array.stdout == alone.stdout

    # What a trace cannot carry is told as it is without Slurm.
    broken = ring(shared / "c.wtrace", cut=True)
    refused = asked(cluster, f"wulf program predict {broken.name} --on cal --samples 40 --slurm ''")
    assert refused.returncode == 1
    assert "the trace is not that of a whole program" in words(refused.stderr)


MIX = """
title = "Throughput of a mix"

[[factor]]
name = "work"
command = ["sleep 2", "sleep 6"]

[[factor]]
name = "MTU"
knob = "nic.mtu"
values = ["original", 1400]

[[metric]]
name = "mix"

[[metric.job]]
name = "small"
command = "{work}"
count = 3
options = "--exclusive"

[[metric.job]]
name = "wide"
command = "srun true && {work}"
options = "--nodes=2 --exclusive"

[design]
kind = "one at a time"
replications = 6
"""


@pytest.mark.thorough
def test_throughput_of_a_mix_of_jobs_beside_somebody_elses_job(cluster):
    (cluster.directory / "shared" / "mix.toml").write_text(MIX)
    # Until the first trial is over, whenever that is; never for good.
    wait = "for i in $(seq 600); do [ -s runs/mix/trials.jsonl ] && exit; sleep 1; done"
    other = submitted(
        cluster, f"sbatch --parsable --exclusive --nodelist=node03 --output=other --wrap '{wait}'"
    )
    job = other.stdout.strip()
    done = submitted(cluster, "wulf study mix.toml --run mix --json --cluster cluster.toml", timeout_s=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    run = library.load(cluster.directory / "shared" / "runs" / "mix")
    assert [trial.failures for trial in run.trials if trial.failures] == []
    assert f"job {job} of another ran on node03" in run.trials[0].contamination
    assert run.trials[-1].contamination == []
    found = {(one.figure, *one.levels.values()): one for one in conclude(run.manifest, run.trials).effects}
    assert found["mix turnaround", "sleep 6"].verdict == "worse"
    assert found["mix jobs a day", "sleep 6"].verdict == "worse"
    assert found["mix turnaround", "1400"].ratio.low <= 1 <= found["mix turnaround", "1400"].ratio.high
    assert all(0 < trial.values["mix utilisation"] <= 1.1 for trial in run.trials)
    assert on(cluster, "node02", MTU) == "1500"


@pytest.mark.thorough
def test_a_mix_that_is_ended_leaves_no_job(cluster):
    (cluster.directory / "shared" / "mix.toml").write_text(MIX.replace("sleep 2", "sleep 300"))
    command = "wulf study mix.toml --run ended --cluster cluster.toml"
    done = submitted(cluster, f"timeout --preserve-status -s INT 30 {command}")
    assert done.returncode == 130, done.stdout + done.stderr
    assert on(cluster, "node01", "squeue -h") == ""

    (cluster.directory / "shared" / "mix.toml").write_text(
        MIX.replace("{work}", "echo none of it; exit 3 # {work}")
    )
    done = submitted(cluster, "wulf study mix.toml --run failed --cluster cluster.toml")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "no metric could be measured: a job '" in words(done.stderr)
    assert "failed on node" in words(done.stderr) and "(none of it)" in words(done.stderr)
    assert on(cluster, "node01", "squeue -h") == ""

    # Not from inside of a job: its own would wait behind it.
    done = submitted(cluster, "salloc --nodes=3 wulf study mix.toml --run inside")
    assert "a mix of jobs is submitted from outside of a Slurm job" in words(done.stderr + done.stdout)


@pytest.mark.thorough
def test_a_cancelled_job_leaves_the_nodes_as_they_were_and_keeps_its_results(cluster):
    command = (
        "exec wulf tune --run t --budget 20m --knobs nic.mtu=1400 --objective 'app: ping -qfc 500 node02'"
    )
    number = submitted(cluster, f'sbatch --parsable --nodes=2 --output=job --wrap "{command}"').stdout.strip()
    # In a trial, and not the first one: there is something to keep.
    tuning = cluster.directory / "shared" / "runs" / "t"
    head = tuning / "tuning.json"
    wait_until(lambda: head.exists() and len(load_tuning(tuning).trials) > 1, timeout_s=120)
    wait_until(lambda: on(cluster, "node02", MTU) == "1400", timeout_s=180)
    on(cluster, "node01", f"scancel {number}")
    wait_until(lambda: on(cluster, "node01", "squeue -h") == "", timeout_s=120)
    assert [on(cluster, node, MTU) for node in cluster.layout.names()] == ["1500"] * 3
    found = load_tuning(tuning)
    assert found.manifest.status == "interrupted"
    assert len(found.trials) > 1
    assert found.result is not None
    said = (cluster.directory / "shared" / "job").read_text()
    assert "CANCELLED" in said and "interrupted" in said

    refused = submitted(cluster, "salloc --nodes=1 --nodelist=node03 wulf tune --resume t")
    assert refused.returncode == 2, refused.stderr
    assert "node[01-02]: not in the allocation of Slurm job" in words(refused.stderr)

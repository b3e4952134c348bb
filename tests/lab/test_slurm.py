"""Slurm on virtual nodes: a submitted run, the end of its allocation, and what a cancelled job leaves."""

from __future__ import annotations

import subprocess
import time

import pytest

import wulf as library
from tests.lab.host import wait_until
from tests.lab.test_nodes import on
from wulf import lab
from wulf.cluster import inventory
from wulf.store.tuning import load_tuning

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.slow, pytest.mark.alone]

MTU = "cat /sys/class/net/host0/mtu"
SHORT = "--ladder short --max-size 256 --visit 500us --precision 50% --max-launches 6"


@pytest.fixture
def cluster(spare):
    """Three nodes, on all of which jobs can start."""
    missing = lab.supported(slurm=True)
    if missing:
        pytest.skip("; ".join(missing))
    raised, _ = lab.up(3, slurm=True)
    return raised


def submitted(cluster, command, timeout_s=150):
    """Run a command where the nodes' shared directory is, on the node that has Slurm's controller."""
    argv = cluster.ssh_argv("node01", ["sh", "-c", f"cd /shared && {command}"])
    return subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, check=False)


def words(text):
    return " ".join(text.split())


def test_a_run_is_submitted_and_stays_within_its_allocation(cluster):
    shared = cluster.directory / "shared"
    assert on(cluster, "node01", "sinfo -h -N -t idle -o %N").split() == ["node01", "node02", "node03"]
    assert submitted(cluster, "wulf measure --cluster slurm").returncode == 1  # no allocation

    done = submitted(
        cluster,
        f"wulf measure one --ops mpi_pingpong,mpi_barrier,tcp_rr {SHORT} --budget 1h "
        "--submit '--nodes=2 --time=00:02:00'",
    )
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert "job 1: running on node[01-02], for 2 min at most" in done.stderr
    assert "job 1: ended on node[01-02]" in done.stderr or "job 1: completed" in done.stderr
    told = words(done.stdout)
    assert "MPI jobs start with srun --mpi=pmix in Slurm job 1" in told
    assert "instead of 3600 s, 60 s are kept to put everything back" in told
    assert "run: runs/one" in told
    run = library.load(shared / "runs" / "one")
    assert run.manifest.status in ("complete", "budget")
    assert run.manifest.plan.budget_s < 60
    here = inventory.parse(run.manifest.cluster, "one")
    assert (here.name, here.nodes, here.interface) == ("slurm-1", ("node01", "node02"), "host0")
    assert [launch.error for launch in run.launches if launch.error] == []
    started = [launch for launch in run.launches if launch.op.startswith("mpi_")]
    assert {launch.op for launch in started} == {"mpi_pingpong", "mpi_barrier"}
    assert {launch.argv[0] for launch in started} == {"srun"}
    assert {tuple(launch.probe.hosts) for launch in started} == {("node01", "node02")}
    # Nobody was on the third node, not even to look.
    assert on(cluster, "node03", "ls -A /root/.cache 2>/dev/null || true") == ""

    # Two nodes on which wulf itself does not run.
    command = f"wulf measure other --cluster slurm --ops mpi_pingpong {SHORT} --budget 30s"
    done = submitted(cluster, f"salloc --nodes=2 --nodelist=node02,node03 {command}")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    run = library.load(shared / "runs" / "other")
    assert [launch.error for launch in run.launches if launch.error] == []
    assert {tuple(launch.probe.hosts) for launch in run.launches} == {("node02", "node03")}


def test_ctrl_c_leaves_the_job_alone_and_it_is_followed_again(cluster):
    command = (
        f"wulf measure two --ops mpi_pingpong --mpi mpich {SHORT} --budget 30s --submit '--hold --nodes=2'"
    )
    done = submitted(cluster, f"timeout --preserve-status -s INT 6 {command}")
    assert done.returncode == 130, done.stdout + done.stderr
    assert "job 1: pending, waits for JobHeldUser" in done.stderr
    assert "job 1 goes on: 'wulf measure --follow 1' follows it again, 'scancel 1' ends it" in done.stderr
    on(cluster, "node01", "scontrol release 1")
    done = submitted(cluster, "wulf measure --follow 1")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    run = library.load(cluster.directory / "shared" / "runs" / "two")
    assert [launch.error for launch in run.launches if launch.error] == []
    assert {launch.argv[3] for launch in run.launches} == {"--mpi=pmi2"}

    refused = submitted(cluster, "wulf measure three --submit '--partition=nowhere'")
    assert refused.returncode == 1
    assert "sbatch: " in refused.stderr and "invalid partition" in refused.stderr.lower()
    assert "scontrol: " in submitted(cluster, "wulf measure --follow 99").stderr


def test_a_cancelled_job_leaves_the_nodes_as_they_were_and_keeps_its_results(cluster):
    command = "exec wulf tune t --budget 20m --knobs nic.mtu=1400 --objective 'app: ping -qfc 500 node02'"
    number = submitted(cluster, f'sbatch --parsable --nodes=2 --output=job --wrap "{command}"').stdout.strip()
    assert number == "1"
    # In a trial, and not the first one: there is something to keep.
    tuning = cluster.directory / "shared" / "runs" / "t"
    head = tuning / "tuning.json"
    wait_until(lambda: head.exists() and len(load_tuning(tuning).trials) > 1, timeout_s=120)
    wait_until(lambda: on(cluster, "node02", MTU) == "1400", timeout_s=60)
    begin = time.monotonic()
    on(cluster, "node01", "scancel 1")
    wait_until(lambda: on(cluster, "node01", "squeue -h") == "", timeout_s=60)
    # By itself: Slurm ends what is left of it by force only after KillWait, 30 s.
    assert time.monotonic() - begin < 30
    assert [on(cluster, node, MTU) for node in cluster.layout.names()] == ["1500"] * 3
    found = load_tuning(tuning)
    assert found.manifest.status == "interrupted"
    assert len(found.trials) > 1
    assert found.result is not None
    said = (cluster.directory / "shared" / "job").read_text()
    assert "CANCELLED" in said and "interrupted" in said

    refused = submitted(cluster, "salloc --nodes=1 --nodelist=node03 wulf tune --resume t")
    assert refused.returncode == 2, refused.stderr
    assert "node[01-02]: not in the allocation of Slurm job 2" in words(refused.stderr)

"""How long does all that wulf does with Slurm take, from an empty lab, and does it hold?

A virtual cluster with Slurm is raised; a run is submitted and followed, inside which the allocation is the
cluster, srun starts MPI and the end of the allocation caps the budget; a run is measured on other nodes in an
allocation of salloc; a search is cancelled in the middle of a trial and leaves the nodes as they were, with
its results; the cluster is taken down. Goals: five minutes, and no statement that does not hold.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.common import Figure, Statements, finish
from wulf.base.store import load
from wulf.base.store.tuning import TuningRun, load_tuning
from wulf.node import lab

NODES = 4
MINUTES = 5.0
WULF = [sys.executable, "-m", "wulf.face.cli.main"]
MTU = "cat /sys/class/net/host0/mtu"
RUN = "--ladder short --max-size 1KiB --precision 20% --max-launches 8"
PATIENCE_S = 60.0


class Scene:
    """A virtual cluster with Slurm, seen from the node where people log in."""

    def __init__(self, cluster: lab.Lab) -> None:
        self._cluster = cluster
        self.runs = cluster.directory / "shared" / "runs"

    def on(self, node: str, command: str) -> tuple[int, str]:
        """Run a command for a shell on a node; return its exit code and all that it printed."""
        argv = self._cluster.ssh_argv(node, ["sh", "-c", f"cd /shared && {command}"])
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, " ".join(done.stdout.split())

    def mtus(self) -> list[str]:
        """MTU of every node."""
        return [self.on(node, MTU)[1] for node in self._cluster.layout.names()]


@contextmanager
def raised() -> Iterator[Scene]:
    """Raise a cluster with Slurm from nothing, as a user does."""
    missing = lab.supported(slurm=True)
    if missing:
        raise SystemExit("bench: no virtual cluster here: " + "; ".join(missing))
    with tempfile.TemporaryDirectory(prefix="wulf-slurm-") as directory:
        os.environ["WULF_LAB_DIR"] = str(Path(directory) / "lab")
        subprocess.run([*WULF, "lab", "up", "--slurm", "--nodes", str(NODES)], check=True)
        cluster = lab.current()
        assert cluster is not None
        try:
            yield Scene(cluster)
        finally:
            cluster.down()


def wait_until(condition: Callable[[], bool]) -> bool:
    """Return whether a condition holds before long."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def submitted(scene: Scene, statements: Statements) -> None:
    """A batch job that is written, submitted and followed."""
    code, said = scene.on(
        "node01",
        f"wulf measure --run one --ops mpi_pingpong {RUN} --budget 1h --submit '--nodes=2 --time=00:02:00'",
    )
    statements.say("wulf measure --submit ends as the job does", code in (0, 3))
    statements.say(
        "its state and its output are shown", "job 1: running on" in said and "run: runs/one" in said
    )
    statements.say("the end of the allocation caps the budget", "are kept to put everything back" in said)
    run = load(scene.runs / "one")
    launches = [launch for launch in run.launches if launch.status == "ok"]
    statements.say("no launch has failed", bool(launches) and len(launches) == len(run.launches))
    statements.say("srun has started them", {launch.argv[0] for launch in launches} == {"srun"})
    hosts = {host for launch in launches if launch.probe for host in launch.probe.hosts}
    statements.say("on the nodes of the allocation", hosts == {"node01", "node02"})


def allocated(scene: Scene, statements: Statements) -> None:
    """An allocation that somebody has, of nodes on which this does not run."""
    command = f"wulf measure --run two --cluster slurm --ops mpi_pingpong {RUN} --budget 20s"
    code, _ = scene.on("node01", f"salloc --nodes=2 --nodelist=node03,node04 {command}")
    run = load(scene.runs / "two")
    hosts = {host for launch in run.launches if launch.probe for host in launch.probe.hosts}
    statements.say(
        "wulf measure --cluster slurm uses exactly its nodes",
        code in (0, 3) and hosts == {"node03", "node04"},
    )


def cancelled(scene: Scene, statements: Statements) -> None:
    """A job that is cancelled while it has changed the nodes."""
    before = scene.mtus()
    command = (
        "exec wulf tune --run t --budget 20m --knobs nic.mtu=1400 --objective 'app: ping -qfc 500 node02'"
    )
    _, number = scene.on("node01", f"sbatch --parsable --nodes=2 --wrap {shlex.quote(command)}")

    def trials() -> TuningRun | None:
        return load_tuning(scene.runs / "t") if (scene.runs / "t").exists() else None

    def changed() -> bool:
        found = trials()
        return found is not None and len(found.trials) > 1 and scene.on("node02", MTU)[1] == "1400"

    statements.say("a search in a job changes a node", wait_until(changed))
    scene.on("node01", f"scancel {number}")
    ended = wait_until(lambda: scene.on("node01", "squeue --noheader")[1] == "")
    statements.say("the job is cancelled", ended)
    statements.say("the nodes are as they were", scene.mtus() == before)
    found = trials()
    kept = found is not None and found.manifest.status == "interrupted" and len(found.trials) > 1
    statements.say("its results are kept", kept)
    code, said = scene.on("node01", "salloc --nodes=1 --nodelist=node04 wulf tune --resume t")
    statements.say(
        "and not gone on with on nodes of others", code == 2 and "not in the allocation of Slurm job" in said
    )


def main(arguments: list[str]) -> int:  # noqa: ARG001 - the same for all
    """Do all of it, once."""
    statements = Statements()
    with raised() as scene:
        _, idle = scene.on("node01", "sinfo --noheader --Node --states=idle | wc -l")
        statements.say("Slurm has all nodes", idle == str(NODES))
        for part in (submitted, allocated, cancelled):
            part(scene, statements)
    minutes = (time.monotonic() - statements.begin) / 60
    return finish(
        "slurm",
        [
            Figure(name="minutes", value=minutes, goal=MINUTES),
            Figure(name="not-holding", value=float(statements.failed), goal=0),
        ],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Two jobs on two switches, placed by the hostfile of ``wulf audit topology --infer``, and as nodes are listed.

Eight virtual nodes, four below each of two leaf switches; their links carry 100 Mbit/s, the uplink of each leaf 10. The
cluster file lists them alternately, as where two racks were filled in turn. Two jobs of four nodes rank whole numbers
(``is`` of `wulf program shipped`, in which each rank sends to all others) at the same time: the first on the first four
nodes of a list, the second on the others. The list is the inferred hostfile or the cluster file, in random order in
each round. The figure is the time until both jobs are done, by hostfile divided by as listed. As listed half of all
bytes pass the uplinks, by hostfile none: by the bytes the ratio is about 0.05, and the goal, 0.5, is not a matter of
what else the machine does. The hostfile has to have the nodes of each switch together, or there is no figure.

``--rounds=N`` (6). Needs root, and an MPI library.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench.common import finish, interleave, ratio, show
from wulf.base.contracts import MpiJob
from wulf.base.native import build
from wulf.node import lab
from wulf.node.cluster.launcher import launcher_for
from wulf.node.lab import topology

WULF = [sys.executable, "-m", "wulf.face.cli.main"]
NODES, OF_A_JOB, RATE, UPLINKS = 8, 4, "100mbit", "spine1:rate=10mbit"
ROUNDS, GOAL = 6, 0.5
PROGRAM, ARGUMENTS = "is", ("--class", "W")
#: A job that takes longer has died [s].
WITHIN_S = 300
_TIME = re.compile(r"^run_time_s (\S+)$", re.MULTILINE)


class Jobs:
    """Two jobs of the same program at the same time.

    Parameters
    ----------
    cluster
        The nodes.
    mpi
        What the program was built with.
    program
        Its path on the nodes.
    """

    def __init__(self, cluster: lab.Lab, mpi: build.MpiLibrary, program: str) -> None:
        self._cluster = cluster
        self._launcher = launcher_for(mpi.launcher, mpi.mpirun, compiler=mpi.compiler)
        self._program = program
        self._addresses = {node.name: str(node.address) for node in cluster.layout.nodes}

    def run(self, nodes: Sequence[str]) -> dict[str, float]:
        """Run one job on the first nodes, the other on the rest; return the time of the longer one [s]."""
        started = [self._start(nodes[first : first + OF_A_JOB]) for first in range(0, NODES, OF_A_JOB)]
        return {"time": max(map(_time_of, started))}

    def _start(self, nodes: Sequence[str]) -> subprocess.Popen[str]:
        job = MpiJob(
            program=self._program,
            arguments=list(ARGUMENTS),
            hosts=[(node, self._addresses[node]) for node in nodes],
            interface=topology.INTERFACE,
            shared_cpu=True,
        )
        env = [f"{name}={value}" for name, value in self._launcher.env(job).items()]
        argv = self._cluster.ssh_argv(nodes[0], ["env", *env, *self._launcher.argv(job)])
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _time_of(job: subprocess.Popen[str]) -> float:
    said, _ = job.communicate(timeout=WITHIN_S)
    match = _TIME.search(said)
    if job.returncode or match is None:
        raise SystemExit(f"bench: a job failed: {said[-500:]}")
    return float(match[1])


def wulf(*words: str) -> str:
    """Run wulf as a user does; return what it prints."""
    done = subprocess.run([*WULF, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"bench: wulf {shlex.join(words)}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return done.stdout


def listed(cluster: lab.Lab) -> list[str]:
    """Return the nodes of both switches alternately."""
    names = cluster.layout.names()
    return [node for two in zip(names[:OF_A_JOB], names[OF_A_JOB:], strict=True) for node in two]


def inferred(cluster: lab.Lab, directory: Path) -> list[str]:
    """Return the nodes in the order of the hostfile that is inferred, having checked that against the truth."""
    file, hosts = directory / "cluster.toml", directory / "hosts"
    text, changed = re.subn(
        "^nodes = .*$", f'nodes = "{",".join(listed(cluster))}"', cluster.cluster_toml(), flags=re.MULTILINE
    )
    assert changed == 1
    file.write_text(text)
    print(wulf("audit", "fabric", "--cluster", str(file), "--hostfile", str(hosts)).strip())
    found = hosts.read_text().split()
    leaves = {node.name: node.leaf for node in cluster.layout.nodes}
    if any(len({leaves[node] for node in some}) > 1 for some in (found[:OF_A_JOB], found[OF_A_JOB:])):
        raise SystemExit(f"bench: the hostfile mixes the switches: {' '.join(found)}")
    return found


def main(arguments: Sequence[str]) -> int:
    """Entry point."""
    print(__doc__)
    given = dict(one.removeprefix("--").split("=", 1) for one in arguments if "=" in one)
    rounds = int(given.get("rounds", ROUNDS))
    mpi = build.find_mpi(None)[0]
    cluster, was_up = lab.up(NODES, topology.link(rate=RATE), cables=topology.parse_fabric("leaf-spine:2x1"))
    try:
        with tempfile.TemporaryDirectory() as directory:
            cluster.plant_in_fabric(UPLINKS, lambda _: "")
            put = wulf("program", "shipped", PROGRAM, "--cluster", "lab", "--mpi", mpi.compiler)
            jobs = Jobs(cluster, mpi, put.split()[-1])
            orders = {"hostfile": inferred(cluster, Path(directory)), "as listed": listed(cluster)}
        values = interleave({name: partial(jobs.run, nodes) for name, nodes in orders.items()}, rounds)
    finally:
        if not was_up:
            cluster.down()
    show(values, "s", 1.0)
    ours, theirs = (values[name]["time"] for name in orders)
    return finish("placement", [ratio("time-by-hostfile", ours, theirs, GOAL)])

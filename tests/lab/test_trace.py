"""A program with ranks on two nodes that share no directory: all that they record is in one trace."""

from __future__ import annotations

import os

import pytest

from tests.cli.command import wulf
from tests.lab.test_nodes import on
from wulf.base.trace.layout import State
from wulf.base.trace.reader import read
from wulf.base.trace.summary import summary

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.thorough, pytest.mark.mpi]
NODES = ("node01", "node02")
STEPS = 20


# Ranks of Debian 12's MPICH that share a node wait for each other for ever in MPI_Finalize, every third time and with
# any program: one waits for the end of a connection over UCX, and its partner already for the process manager.
@pytest.mark.parametrize(("family", "of_a_node"), [("openmpi", 2), ("mpich", 1)])
def test_ranks_of_two_nodes_are_in_one_trace(lab_cluster, tmp_path, family, of_a_node):
    lab = {"WULF_LAB_DIR": os.environ["WULF_LAB_DIR"]}
    where = ["--cluster", "lab", "--nodes", ",".join(NODES), "--mpi", family]
    heat = wulf(tmp_path, "program", "shipped", "heat", *where, timeout=300, **lab)
    assert heat.returncode == 0, heat.stderr
    program = [heat.stdout.strip(), "--steps", str(STEPS)]
    ranks = 2 * of_a_node
    done = wulf(
        tmp_path,
        "program",
        "trace",
        "-o",
        "a.wtrace",
        "--ranks",
        str(ranks),
        *where,
        "--",
        *program,
        timeout=300,
        **lab,
    )
    assert done.returncode == 0 and "wulf-tracer" not in done.stderr, done.stderr
    trace = read(tmp_path / "a.wtrace")
    for stream in trace.streams:
        stream.verify()
    assert [stream.state for stream in trace.streams] == [State.FINISHED] * ranks
    assert [stream.host for stream in trace.streams] == [node for node in NODES for _ in range(of_a_node)]
    counts = {(pair.source, pair.destination): pair.count for pair in summary(trace).pairs}
    last = of_a_node - 1  # of the first node
    assert counts[last, last + 1] == counts[last + 1, last] >= STEPS
    for node in NODES:
        assert on(lab_cluster, node, "find /var/tmp -maxdepth 1 -name 'wulf-trace-*'") == ""

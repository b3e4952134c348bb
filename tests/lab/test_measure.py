"""Runs on virtual nodes, from the command line: the whole way that a user's run takes."""

from __future__ import annotations

import json
import os
import time

import pytest

import wulf as library
from tests.cli.command import start, wulf
from wulf.base.native import build
from wulf.node import lab

pytestmark = [pytest.mark.lab, pytest.mark.root]

#: Two launches more than the fewest: what is tested here is the way that a run takes, not how sure it becomes.
SHORT = [
    "--ladder",
    "short",
    "--max-size",
    "128",
    "--precision",
    "50%",
    "--budget",
    "60s",
    "--visit",
    "500us",
    "--max-launches",
    "8",
]


def run(directory, *words):
    return wulf(directory, *words, WULF_LAB_DIR=os.environ["WULF_LAB_DIR"])


def test_files_in_a_directory_that_the_nodes_share(lab_cluster, tmp_path):
    words = (
        "--cluster",
        "lab",
        "--ops",
        "mpi_file_read_shared_dropped",
        "--max-size",
        "4KiB",
        "--ladder",
        "rfc2544",
    )
    short = ("--max-launches", "1", "--budget", "60s", "--run", "run")
    done = run(tmp_path, "measure", *words, "--dir", "/shared", *short)
    assert done.returncode in (0, 3), done.stderr
    loaded = library.load(tmp_path / "runs" / "run")
    assert [launch.error for launch in loaded.launches if launch.error] == []
    assert loaded.launches[0].probe.filesystem and len(set(loaded.launches[0].probe.hosts)) > 1
    assert loaded.samples and all(len(one.in_memory) and one.corrupt == 0 for one in loaded.samples)
    # Each node has a /var/tmp of its own.
    done = run(tmp_path, "measure", *words, "--dir", "/var/tmp", "--max-launches", "1", "--budget", "60s")
    assert "name a directory that all nodes share" in done.stdout + done.stderr
    done = run(tmp_path, "measure", *words)
    assert done.returncode == 2 and "--dir" in done.stderr


@pytest.mark.parametrize("family", ["openmpi", pytest.param("mpich", marks=pytest.mark.thorough)])
def test_mpi_and_sockets_between_nodes(lab_cluster, tmp_path, family):
    if family not in {library_.family for library_ in build.find_mpi()}:
        pytest.skip(f"{family} is not installed")
    done = run(
        tmp_path,
        "measure",
        "--run",
        "run",
        "--cluster",
        "lab",
        "--mpi",
        family,
        "--pairs",
        "node01:node02",
        *SHORT,
    )
    assert done.returncode in (0, 3), done.stderr
    loaded = library.load(tmp_path / "runs" / "run")
    assert {launch.op for launch in loaded.launches} == {"mpi_pingpong", "tcp_rr", "udp_rr", "tcp_stream"}
    assert [launch.error for launch in loaded.launches if launch.error] == []
    assert {launch.probe.hosts[0] for launch in loaded.launches} == {"node01"}
    ping = next(launch for launch in loaded.launches if launch.op == "mpi_pingpong")
    assert ping.probe.hosts == ["node01", "node02"]
    assert family in ping.probe.mpi.lower().replace(" ", "")
    for node in loaded.nodes:
        assert node.facts["nic.mtu_bytes"] == 1500
        assert node.facts["nic.driver"] == "veth"
    measured = {(cell.cell.op, cell.cell.size_bytes) for cell in loaded.analysis().cells}
    assert ("mpi_pingpong", 4) in measured


@pytest.mark.thorough
def test_a_collective_goes_the_way_of_a_pair(lab_cluster, tmp_path):
    words = ["--cluster", "lab", "--ops", "mpi_bcast,tcp_rr", "--mpi", "openmpi", *SHORT]
    for name in ("before", "after"):
        done = run(tmp_path, "measure", "--run", name, *words)
        assert done.returncode in (0, 3), done.stderr
        assert "mpi_bcast on 4 nodes; tcp_rr on 4 pairs" in " ".join(done.stderr.split())
    loaded = library.load(tmp_path / "runs" / "before")
    everybody = ("node01", "node02", "node03", "node04")
    launches = [launch for launch in loaded.launches if launch.op == "mpi_bcast"]
    assert {launch.place for launch in launches} == {everybody}
    assert [launch.error for launch in launches if launch.error] == []
    assert {tuple(launch.probe.hosts) for launch in launches} == {everybody}
    assert {len(launch.context) for launch in launches} == {4}
    cells = [cell for cell in loaded.analysis().cells if cell.cell.op == "mpi_bcast"]
    assert cells and all(cell.cell.place == everybody and cell.time.low is not None for cell in cells)
    done = run(tmp_path, "compare", "before", "after", "--json")
    (comparison,) = json.loads(done.stdout)
    assert {tuple(cell["pair"]) for cell in comparison["cells"] if cell["op"] == "mpi_bcast"} == {everybody}
    assert "mpi_bcast" in comparison["pooled"]
    done = run(tmp_path, "report", "before", "--text")
    assert "node[01-04] (4 ranks)" in done.stdout
    done = run(tmp_path, "report", "before", "--csv")
    assert 'node01,"node02,node03,node04"' in done.stdout


@pytest.mark.thorough
def test_pairs_are_measured_at_once_in_one_job(lab_cluster, tmp_path):
    words = ["--cluster", "lab", "--ops", "mpi_pingpong", "--mpi", "openmpi", "--pairs", "ring", *SHORT]
    done = run(tmp_path, "measure", "--run", "together", "--at-once", *words)
    assert done.returncode in (0, 3), done.stderr
    loaded = library.load(tmp_path / "runs" / "together")
    assert [launch.error for launch in loaded.launches if launch.error] == []
    evidence = [launch for launch in loaded.launches if launch.purpose == "measure"]
    assert evidence and all(len(launch.pairs) == 2 for launch in evidence)
    assert all(sorted(launch.probe.hosts) == ["node01", "node02", "node03", "node04"] for launch in evidence)
    cells = loaded.analysis().cells
    assert len({cell.cell.place for cell in cells}) == 4
    assert all(cell.time.low is not None for cell in cells)
    assert "not_begun" not in {advice.kind for advice in loaded.analysis().warnings}
    refused = run(
        tmp_path,
        "measure",
        "--run",
        "no",
        "--at-once",
        *words[: -len(SHORT) - 2],
        "--pairs",
        "node01:node02,node02:node03",
    )
    assert refused.returncode == 2
    assert "node01:node02" in refused.stderr and not (tmp_path / "runs" / "no").exists()


def test_pairs_over_sockets_are_measured_while_the_others_do_the_same(lab_cluster, tmp_path):
    words = ["--cluster", "lab", "--ops", "tcp_rr,udp_rr", "--pairs", "node01:node02,node03:node04", *SHORT]
    done = run(tmp_path, "measure", "--run", "together", "--at-once", *words, "--max-launches", "2")
    assert done.returncode in (0, 3), done.stderr
    loaded = library.load(tmp_path / "runs" / "together")
    evidence = [launch for launch in loaded.launches if launch.purpose == "measure" and launch.status == "ok"]
    pairs = {("node01", "node02"), ("node03", "node04")}
    assert {(launch.op, launch.place) for launch in evidence} == {
        (op, pair) for op in ("tcp_rr", "udp_rr") for pair in pairs
    }
    for launch in evidence:
        assert [one.pair for one in launch.beside] == list(pairs - {launch.place})
        assert {context.node for context in launch.context} == set(launch.place), "judged by pair"


@pytest.mark.thorough
@pytest.mark.skipif(len(os.sched_getaffinity(0)) > 3, reason="here every node has a CPU of its own")
def test_nodes_that_share_a_cpu_yield_and_are_marked(lab_cluster, tmp_path):
    done = run(
        tmp_path,
        "measure",
        "--run",
        "run",
        "--cluster",
        "lab",
        "--ops",
        "mpi_pingpong",
        "--pairs",
        "node01:node03",
        *SHORT,
    )
    assert done.returncode in (0, 3), done.stderr
    analysis = library.load(tmp_path / "runs" / "run").analysis()
    assert "shared_cpu" in {advice.kind for advice in analysis.warnings}
    assert "share a CPU" in " ".join(done.stdout.split())


@pytest.mark.thorough
def test_init_writes_a_file_that_measures(lab_cluster, tmp_path):
    done = run(
        tmp_path,
        "init",
        "--nodes",
        "node[01-02]",
        "--ssh-config",
        str(lab_cluster.ssh_config),
        "-o",
        "mine.toml",
    )
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "mine.toml").read_text(encoding="utf-8")
    assert 'interface = "host0"' in written
    again = run(tmp_path, "init", "--nodes", "node[01-02]", "-o", "mine.toml")
    assert again.returncode == 2
    assert "--force" in again.stderr
    done = run(tmp_path, "measure", "--run", "run", "--cluster", "mine.toml", "--ops", "tcp_rr", *SHORT)
    assert done.returncode in (0, 3), done.stderr


def test_a_node_that_is_off_is_named_and_the_others_are_measured(lab_cluster, tmp_path):
    lab_cluster.kill("node04")
    try:
        done = run(
            tmp_path, "measure", "--run", "run", "--cluster", "lab", "--ops", "tcp_rr", *SHORT,
            "--pairs", "node01:node02,node03:node04",
        )  # fmt: skip
        assert done.returncode == 3, done.stderr
        assert "not measured: 1 pair with a node that does not answer" in done.stderr
        assert "node04: ssh could not connect" in " ".join(done.stderr.split())
        loaded = library.load(tmp_path / "runs" / "run")
        assert {launch.place for launch in loaded.launches} == {("node01", "node02")}
        assert [node.node for node in loaded.nodes if not node.reachable] == ["node04"]
        assert "node04" in done.stdout
        done = run(
            tmp_path,
            "measure",
            "--run",
            "none",
            "--cluster",
            "lab",
            "--ops",
            "tcp_rr",
            *SHORT,
            "--pairs",
            "node03:node04",
        )
        assert done.returncode == 1
        assert "node04" in done.stderr
        assert not (tmp_path / "runs" / "none").exists()
    finally:
        lab_cluster.start("node04")


def on(node, script):
    argv = lab.current().ssh_argv(node, ["sh", "-c", script])
    assert os.spawnvp(os.P_WAIT, argv[0], argv) == 0


@pytest.mark.thorough
def test_a_node_without_mpi_is_left_out_of_mpi_and_measured_without_it(lab_cluster, tmp_path):
    if "openmpi" not in {library_.family for library_ in build.find_mpi()}:
        pytest.skip("openmpi is not installed")
    on("node04", "for f in /usr/lib/*/libmpi.so.*; do mv $f $f.away; done")
    try:
        done = run(
            tmp_path, "measure", "--run", "run", "--cluster", "lab", "--mpi", "openmpi",
            "--ops", "mpi_pingpong,tcp_rr", *SHORT,
            "--min-launches", "1", "--max-launches", "1", "--pairs", "node01:node02,node03:node04",
        )  # fmt: skip
    finally:
        on("node04", "for f in /usr/lib/*/libmpi.so.*.away; do mv $f ${f%.away}; done")
    assert done.returncode == 3, done.stderr
    assert "left out of mpi_pingpong: node04" in " ".join(done.stderr.split())
    loaded = library.load(tmp_path / "runs" / "run")
    measured = {(launch.op, launch.place) for launch in loaded.launches if launch.status == "ok"}
    near, far = ("node01", "node02"), ("node03", "node04")
    assert measured == {("mpi_pingpong", near), ("tcp_rr", near), ("tcp_rr", far)}
    assert [launch.error for launch in loaded.launches if launch.error] == []
    assert [(absent.node, absent.ops) for absent in loaded.manifest.plan.left_out] == [
        ("node04", ["mpi_pingpong"])
    ]
    assert "libmpi" in " ".join(done.stdout.split())


def test_no_process_of_a_run_stays_on_the_nodes(lab_cluster, tmp_path):
    for node in ("node01", "node02"):
        found = lab.current().ssh_argv(node, ["pgrep", "-f", "wulf-probe|orted|hydra"])
        assert os.spawnvp(os.P_WAIT, found[0], found) == 1


@pytest.mark.thorough
def test_a_node_that_dies_in_mid_run_is_named_and_left_out(lab_cluster, tmp_path):
    words = [
        "measure",
        "--run",
        "run",
        "--cluster",
        "lab",
        "--ops",
        "tcp_rr",
        "--pairs",
        "node01:node02,node03:node04",
    ]
    words += [
        "--ladder",
        "short",
        "--max-size",
        "128",
        "--precision",
        "0.01%",
        "--visit",
        "5ms",
        "--budget",
        "90s",
    ]
    words += ["--min-launches", "12", "--max-launches", "12"]
    process = start(tmp_path, *words, WULF_LAB_DIR=os.environ["WULF_LAB_DIR"])
    log = tmp_path / "runs" / "run" / "records.jsonl"
    deadline = time.monotonic() + 180
    while not log.exists() or log.read_bytes().count(b'"launch"') < 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    lab_cluster.kill("node02")
    try:
        out, err = process.communicate(timeout=400)
        assert process.returncode == 3, err
        launches = library.load(tmp_path / "runs" / "run").launches
        failed = [launch for launch in launches if launch.status == "failed"]
        assert all("node02" in launch.error and launch.place == ("node01", "node02") for launch in failed)
        assert len(failed) >= 2
        assert [launch.unreachable for launch in failed[-2:]] == [["node02"], ["node02"]]
        # The probe's patience is 8 s, ssh's 10 s: none of them hung.
        assert all(launch.duration_s < 60 for launch in failed)
        assert sum(launch.place == ("node03", "node04") for launch in launches) == 12
        assert "node02" in out
    finally:
        process.kill()
        lab_cluster.start("node02")

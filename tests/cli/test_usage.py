"""What a user sees: standard output, standard error, exit codes."""

import os
import signal

import pytest

from tests.cli.command import start, wulf
from tests.cli.waiting import wait_until
from wulf import __version__


def test_version(tmp_path):
    done = wulf(tmp_path, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"wulf {__version__}\n", "")


@pytest.mark.parametrize(
    "verb",
    ["init", "audit facts", "audit", "settings list", "measure", "compare", "report", "runs list", "lab"],
)
def test_every_verb_has_help(tmp_path, verb):
    done = wulf(tmp_path, *verb.split(), "--help")
    assert done.returncode == 0
    assert f"wulf {verb}" in done.stdout.replace("python -m wulf.face.cli.main", "wulf")
    assert done.stderr == ""


def test_no_verb_shows_the_help(tmp_path):
    done = wulf(tmp_path)
    assert "wulf lab up" in done.stdout + done.stderr


WRONG = {
    "an unknown verb": (["measur"], 2, "measur"),
    "an unknown option": (["measure", "--sizes", "1"], 2, "--sizes"),
    "no cluster": (["measure"], 2, "wulf init"),
    "a missing cluster file": (["measure", "--cluster", "nowhere.toml"], 1, "nowhere.toml: no such file"),
    "no Slurm": (["measure", "--cluster", "slurm"], 1, "SLURM_JOB_NODELIST"),
    "an unknown operation": (["measure", "--cluster", "local", "--ops", "tcp_rrr"], 2, "tcp_rrr"),
    "an operation twice": (["measure", "--cluster", "local", "--ops", "tcp_rr,tcp_rr"], 2, "each once"),
    "an unknown ladder": (["measure", "--cluster", "local", "--ladder", "stairs"], 2, "adaptive, imb"),
    "a pair of strangers": (
        ["measure", "--cluster", "local", "--pairs", "a:b"],
        2,
        "a is not one of the nodes",
    ),
    "precision without a sign": (["measure", "--cluster", "local", "--precision", "2"], 2, "2%"),
    "a budget without sense": (["measure", "--cluster", "local", "--budget", "soon"], 2, "'soon'"),
    "too few launches": (["measure", "--cluster", "local", "--min-launches", "0"], 2, "--min-launches"),
    "no such MPI": (["measure", "--cluster", "local", "--mpi", "/nonesuch"], 1, "/nonesuch"),
    "an empty cluster": (["measure", "--cluster", ""], 2, "--cluster is empty"),
    "an empty node set": (["measure", "--cluster", "local", "--nodes", ""], 2, "names no node"),
    "a run outside": (["measure", "--run", "../x", "--cluster", "local"], 2, "cannot be the name of a run"),
    "a run called latest": (
        ["measure", "--run", "latest", "--cluster", "local"],
        2,
        "cannot be the name of a run",
    ),
    "a series and a budget": (
        ["measure", "--cluster", "local", "--every", "1h", "--budget", "5m"],
        2,
        "it takes no --budget",
    ),
    "an end without a series": (["measure", "--cluster", "local", "--for", "1d"], 2, "it takes --every"),
    "a series of nothing": (
        ["measure", "--cluster", "local", "--every", "1h", "--for", "1m"],
        2,
        "no more than --for",
    ),
    "an endless visit": (["measure", "--cluster", "local", "--visit", "1h"], 2, "between 10us and 1s"),
    "too many nodes": (["init", "--nodes", "n[1-50000],m[1-60000]"], 1, "more than 100000"),
    "far too many nodes": (["init", "--nodes", "n[1-4000/2]x[1-4000]"], 1, "more than 100000"),
    "no such run": (["report", "nonesuch"], 1, "nonesuch"),
    "nothing to resume": (["measure", "--resume", "latest"], 1, "latest"),
    **{
        f"an option that only a new run of {' '.join(verb)} has": (
            [*verb, "--resume", "x", "--nodes", "a", "--seed", "1"],
            2,
            "--resume with --nodes, --seed: a run goes on as it was begun",
        )
        for verb in (
            ["measure"],
            ["tune"],
            ["bench", "hpl"],
            ["bench", "study"],
            ["program", "emulate"],
            ["settings", "rollout"],
        )
    },
    "one run to compare": (["compare", "a"], 2, "at least two"),
    "two formats": (["report", "x", "--json", "--csv"], 2, "choose one"),
    "a node set that is none": (["init", "--nodes", "node[01-"], 1, "node[01-"),
    "a node that is an option": (["init", "--nodes=-oProxyCommand=touch"], 1, "not a node name"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_usage_is_explained(tmp_path, name):
    words, code, said = WRONG[name]
    done = wulf(tmp_path, *words)
    assert done.returncode == code, done.stderr
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == []


def test_a_broken_cluster_file_is_named_with_its_line(tmp_path):
    (tmp_path / "cluster.toml").write_text('[cluster]\nnodes = "node[01-02]\n')
    done = wulf(tmp_path, "measure")
    assert done.returncode == 1
    assert "cluster.toml" in done.stderr
    assert "line 2" in done.stderr


def test_an_unknown_key_is_refused_with_the_nearest(tmp_path):
    (tmp_path / "cluster.toml").write_text('[cluster]\nnodes = "node[01-02]"\ninterfaze = "eth0"\n')
    done = wulf(tmp_path, "measure")
    assert done.returncode == 1
    assert "interfaze" in done.stderr
    assert "interface" in done.stderr


def test_a_node_that_does_not_answer_is_named(tmp_path):
    done = wulf(tmp_path, "init", "--nodes", "wulf-no-such-node-[1-2].invalid")
    assert done.returncode == 1
    assert "wulf-no-such-node-[1-2].invalid: ssh could not connect" in done.stderr
    assert not (tmp_path / "cluster.toml").exists()


def test_no_runs(tmp_path):
    assert "no runs" in wulf(tmp_path, "runs", "list").stdout
    assert wulf(tmp_path, "runs", "list", "--json").stdout == "[]\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda one: one.name)
@pytest.mark.parametrize("words", [("audit", "facts"), ("audit",), ("settings", "status")], ids=" ".join)
def test_however_it_is_ended_connections_leave_nothing(tmp_path, words, number):
    """A verb that only looks leaves no directory of sockets either."""
    (tmp_path / "ssh").write_text(f"#!/bin/sh\n: > {tmp_path}/begun\nexec sleep 60\n")
    (tmp_path / "ssh").chmod(0o755)
    (tmp_path / "c.toml").write_text('[cluster]\nnodes = "far"\n')
    (tmp_path / "tmp").mkdir()
    more = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TMPDIR": str(tmp_path / "tmp")}
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it stays ignored
    try:
        process = start(tmp_path, *words, "--cluster", "c.toml", **more)
    finally:
        signal.signal(signal.SIGHUP, before)
    try:
        wait_until((tmp_path / "begun").exists, "a connection", process)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, err
    assert not list((tmp_path / "tmp").iterdir())

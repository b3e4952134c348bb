"""``wulf watch`` and ``wulf diagnose drain`` as a user types them."""

from __future__ import annotations

import json
import shutil

import msgspec
import pytest

import wulf as wulf_in_python
from tests.cli.command import wulf
from tests.unit.test_diagnosing import measured
from tests.unit.test_watch_days import NODES, PLANTED, SLOW, Days
from wulf.base.store.history import History

LOCAL = ("--cluster", "local", "--watches", "watches", "--scheduler", "none")


@pytest.fixture(scope="module")
def month(tmp_path_factory):
    """A directory with a watch in which node05 has become slower."""
    directory = tmp_path_factory.mktemp("month")
    with History(directory / "watches" / "lab", writing=True) as history:
        days = Days(history)
        for number in range(1, 27):
            days.day(number, changed=number >= PLANTED)
    return directory


def test_an_open_alarm_decides_the_exit_code_and_stands_first(month):
    done = wulf(month, "watch", "show", "--watches", "watches")
    assert done.returncode == 3, done.stderr
    assert done.stdout.index("2 alarms open") < done.stdout.index("What has changed")
    assert f"{SLOW}: mpi_pingpong 64 B has stepped" in done.stdout
    assert "nic.speed_bits_per_s: 10 Gbit/s → 1 Gbit/s" in done.stdout


def test_all_that_is_said_goes_into_files(month):
    files = {"--html": "watch.html", "--junit": "watch.xml", "--metrics": "watch.prom"}
    words = [word for option in files.items() for word in option]
    done = wulf(month, "watch", "show", "--watches", "watches", "--json", *words)
    report = json.loads(done.stdout)
    assert {alarm["nodes"][0] for alarm in report["open"]} == {SLOW}
    assert report["nodes"] == NODES
    assert "<!doctype html>" in (month / "watch.html").read_text()
    assert 'failures="1"' in (month / "watch.xml").read_text()
    assert 'wulf_watch_alarms{watch="lab"} 2\n' in (month / "watch.prom").read_text()


def test_python_has_what_show_prints(month):
    printed = json.loads(wulf(month, "watch", "show", "--watches", "watches", "--json").stdout)
    report = wulf_in_python.watch(watches=month / "watches")
    assert json.loads(msgspec.json.encode(report))["open"] == printed["open"]
    with pytest.raises(wulf_in_python.WulfError, match="there are: lab"):
        wulf_in_python.watch("other", watches=month / "watches")


def test_what_is_accepted_is_closed(month, tmp_path):
    shutil.copytree(month / "watches", tmp_path / "watches")
    strange = wulf(tmp_path, "watch", "accept", "7", "--watches", "watches")
    assert strange.returncode == 2 and "there is no open alarm 7; open are: 1, 2" in strange.stderr
    neither = wulf(tmp_path, "watch", "accept", "--watches", "watches")
    assert neither.returncode == 2 and "--all" in neither.stderr
    one = wulf(tmp_path, "watch", "accept", "1", "--note", "known", "--watches", "watches")
    assert (one.returncode, one.stdout) == (0, "accepted: 1 alarm\n")
    assert wulf(tmp_path, "watch", "accept", "--all", "--watches", "watches").returncode == 0
    done = wulf(tmp_path, "watch", "show", "--watches", "watches")
    assert done.returncode == 0, done.stdout
    assert "Nothing has changed" in done.stdout and "accepted: known" in done.stdout


@pytest.mark.thorough
@pytest.mark.mpi
def test_a_run_measures_this_machine_and_keeps_it(tmp_path):
    # Beside whatever else runs here: without an idle machine nothing would be measured.
    done = wulf(tmp_path, "watch", "run", *LOCAL, "--budget", "60s", "--json", timeout=300)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert sum(report["runs"].values()) == 1
    assert report["last"]["status"] in ("measured", "skipped")
    if report["last"]["status"] == "skipped":
        assert "no node is idle" in report["last"]["reason"] or "only" in report["last"]["reason"]
    else:
        assert report["last"]["pairs"] == 1
        assert (tmp_path / "watches" / "local" / "runs" / "000001" / "manifest.json").is_file()


def test_outside_of_its_window_nothing_is_done_and_that_is_kept(tmp_path):
    at = "2026-03-02T12:00:00"
    done = wulf(tmp_path, "watch", "run", *LOCAL, "--window", "02:00-05:00", "--at", at)
    assert done.returncode == 0, done.stderr
    assert "skipped: the window is closed" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("install", "--every", "7h"), "--every 7h"),
        (("install", "--window", "2-5"), "02:00-05:00"),
        (("install", "--window", "02:00-02:04"), "is shorter than --budget 5m"),
        (("install", "--window", "02:00-02:00"), "ends when it begins"),
        (("install", "--every", "30m", "--budget", "1h"), "--budget 1h is not shorter than --every 30m"),
        (("install", "--metrics", "/nowhere/x.prom"), "there is no directory /nowhere"),
        (("install", "--mpi", "nope"), "'nope' is not an MPI compiler"),
        (("install", "--with", "at"), "--with: there is no 'at'"),
        (("install", "--name", "a/b"), "cannot be the name of a watch"),
        (("run", "--scheduler", "pbs"), "--scheduler: there is no 'pbs'"),
        (("run", "--at", "noon"), "--at 'noon'"),
    ],
)
def test_what_cannot_be_is_said(tmp_path, words, said):
    done = wulf(tmp_path, "watch", words[0], "--cluster", "local", "--watches", "watches", *words[1:])
    assert done.returncode == 2, done.stdout
    assert said in " ".join(done.stderr.split())
    assert not (tmp_path / "watches").exists()


def test_one_node_of_a_cluster_is_no_watch(tmp_path):
    (tmp_path / "two.toml").write_text('[cluster]\nnodes = "n[1-2]"\n')
    done = wulf(
        tmp_path, "watch", "install", "--cluster", "two.toml", "--nodes", "n1", "--watches", "watches"
    )
    assert done.returncode == 2 and "n1 is only one" in done.stderr


@pytest.mark.parametrize("verb", ["show", "accept", "remove"])
def test_without_a_watch_it_is_said_how_to_begin_one(tmp_path, verb):
    more = ("--all",) if verb == "accept" else ()
    done = wulf(tmp_path, "watch", verb, "--watches", "watches", *more)
    assert done.returncode == 2 and "has no watch" in done.stderr


@pytest.mark.skipif(shutil.which("crontab") is None, reason="cron is not installed")
def test_what_would_be_installed_is_only_shown(tmp_path):
    words = (*LOCAL, "--with", "cron", "--every", "12h", "--on-alarm", "mail -s '5 %' root", "--dry-run")
    done = wulf(tmp_path, "watch", "install", *words)
    assert done.returncode == 0, done.stderr
    assert "    0 0,12 * * * env PATH=" in done.stdout
    assert "watch run --quiet --cluster local --name local --budget 5m" in done.stdout
    assert "5 \\%" in done.stdout and "nothing was written (--dry-run)" in done.stdout
    assert not (tmp_path / "watches").exists()


def test_draining_is_only_shown(tmp_path):
    measured(tmp_path / "runs", ["node05"], 2.0)
    done = wulf(tmp_path, "diagnose", "drain", "run")
    assert done.returncode == 3, done.stderr
    first, last = done.stdout.splitlines()
    assert first.startswith("scontrol update nodename=node05 state=drain 'reason=wulf diagnose test: ")
    assert "x slower than comparable nodes" in first
    assert last == "nothing was drained: --now does it"
    # There is no Slurm here that could be asked, or it does not know the node.
    assert wulf(tmp_path, "diagnose", "drain", "run", "--now").returncode == 1


def test_of_nodes_that_are_alike_nobody_is_drained(tmp_path):
    measured(tmp_path / "runs")
    done = wulf(tmp_path, "diagnose", "drain", "run")
    assert (done.returncode, done.stdout) == (
        0,
        "no node is slower than comparable nodes: nothing to drain\n",
    )

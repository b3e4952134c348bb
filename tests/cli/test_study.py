"""``wulf bench study`` as a user runs it, on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import wulf as library
from tests.cli.command import wulf

STUDY = """
title = "Which program"

[[factor]]
name = "program"
command = ["sleep 0.01", "sleep 0.08"]

[[factor]]
name = "variable"

[[factor.level]]
name = "small"
environment = { SIZE = "2" }

[[factor.level]]
name = "large"
environment = { SIZE = "6" }

[[factor.level]]
name = "nowhere"
blas = "no such library"

[[metric]]
name = "time"
command = "{program}"

[[metric]]
name = "size"
command = "echo size $SIZE"
match = "size ([0-9]+)"
better = "higher"

[[metric]]
name = "round trip"
op = "tcp_rr"
sizes = [64]

[design]
replications = 8
short_replications = 1
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "which.toml").write_text(STUDY)
    return tmp_path


def test_a_study_is_a_table_and_goes_on_where_it_was_ended(place: Path) -> None:
    begun = wulf(place, "study", "which.toml", "--cluster", "local", "--run", "a", "--budget", "1ms")
    assert begun.returncode == 3, begun.stderr
    assert "left out: variable: nowhere" in begun.stdout
    assert "2 of 48 runs made: the budget ended it" in begun.stdout
    ended = wulf(place, "bench", "study", "--resume", "a", "--budget", "10m", "--json", timeout=600)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)["result"]
    assert (found["status"], found["runs"]) == ("complete", 48)
    effects = {(one["figure"], *one["levels"].values()): one for one in found["effects"]}
    assert effects["time", "sleep 0.08"]["verdict"] == "worse"
    assert effects["size", "large"]["ratio"]["value"] == pytest.approx(3.0)
    assert effects["size", "sleep 0.08"]["verdict"] == "no difference"
    shown = wulf(place, "report", "a", "--csv")
    assert "All combinations" in shown.stdout and "sleep 0.08" in shown.stdout
    assert "\\toprule" in wulf(place, "report", "a", "--latex").stdout
    assert "which" in wulf(place, "runs", "list").stdout
    run = library.load(place / "runs" / "a")
    assert len(run.trials) == 48
    assert "Which program" in library.render(run, "text")
    again = wulf(place, "study", "--resume", "a")
    assert "complete" in again.stderr


def test_a_metric_that_never_works_ends_it(place: Path) -> None:
    (place / "bad.toml").write_text('title = "x"\n[[metric]]\nname = "time"\ncommand = "exit 3"\n')
    ran = wulf(place, "study", "bad.toml", "--cluster", "local")
    assert ran.returncode == 2
    assert "no metric could be measured" in ran.stderr and "exit code 3" in ran.stderr


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            'op = "tcp_rr"',
            'op = "tcp_rrr"',
            "bad.toml:35: metric[2].op: there is no operation 'tcp_rrr'; did you mean",
        ),
        (
            'op = "tcp_rr"',
            'op = "udp_burst:0"',
            "bad.toml:35: metric[2].op: udp_burst:0: udp_burst takes a number",
        ),
        (
            'op = "tcp_rr"',
            'op = "tcp_connect"',
            "bad.toml:36: metric[2].sizes: tcp_connect takes no sizes",
        ),
        (
            'blas = "no such library"',
            'mpi = "opnmpi"',
            "bad.toml:21: factor[1].level[2].mpi: 'opnmpi' is not an MPI",
        ),
    ],
)
@pytest.mark.parametrize("how", [["--dry-run"], ["--cluster", "local"]])
def test_what_is_nowhere_is_refused_before_any_node_is_asked(
    place: Path, old: str, new: str, says: str, how: list[str]
) -> None:
    (place / "bad.toml").write_text(STUDY.replace(old, new))
    ran = wulf(place, "study", "bad.toml", *how)
    assert ran.returncode == 1
    assert says in " ".join(ran.stderr.split())
    assert not (place / "runs").exists()


def test_a_dry_run_says_what_is_left_out_and_what_only_the_run_tells(place: Path) -> None:
    (place / "a.toml").write_text(STUDY.replace('blas = "no such library"', 'cluster = "none.toml"'))
    said = wulf(place, "study", "a.toml", "--dry-run").stdout
    assert "left out: variable: nowhere: " in said and "none.toml" in said
    assert "checked at the run: commands: time, size" in said
    assert "none.toml" not in said.partition("What is measured")[0]
    assert "BLAS libraries: no such library" in wulf(place, "study", "which.toml", "--dry-run").stdout


def test_it_takes_a_study(place: Path) -> None:
    assert "--list" in wulf(place, "study").stderr
    assert "one of them" in wulf(place, "study", "which.toml", "--list").stderr


def test_a_study_asks_for_the_energy_of_commands_and_says_why_it_has_none(place: Path) -> None:
    """Of runs that are too short for a reading of a node's power, or of a node without it."""
    (place / "joules.toml").write_text(
        'title = "Energy"\n[[factor]]\nname = "program"\ncommand = ["sleep 0.01", "sleep 0.02"]\n'
        '[[metric]]\nname = "time"\ncommand = "{program}"\nenergy = "node"\n[design]\nreplications = 1\n'
    )
    ran = wulf(
        place, "bench", "study", "joules.toml", "--cluster", "local", "--run", "j", "--json", timeout=600
    )
    found = json.loads(ran.stdout)["result"]
    figures = {one["figure"]: one for one in found["cells"][0]["figures"]}
    assert figures["time"]["value"]["unit"] == "s" and figures["time"]["failures"] == {}
    assert figures["time energy"]["value"] is None
    (why,) = figures["time energy"]["failures"]
    assert "local1: ipmitool" in why or "look" in why or "readings" in why

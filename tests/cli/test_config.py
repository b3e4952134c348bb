"""Defaults from files and the environment, what they outweigh, and what is said where they are wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import wulf
from wulf.base.locations import line_of

SITE = """\
# of the site
[defaults]
runs = "site-runs"

[report]
csv = true

[runs.list]
tag = ["checked"]
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "site").mkdir()
    (tmp_path / "config" / "wulf").mkdir(parents=True)
    (tmp_path / "site" / "config.toml").write_text(SITE)
    return tmp_path


def user(place: Path, text: str) -> Path:
    path = place / "config" / "wulf" / "config.toml"
    path.write_text(text)
    return path


def settings(place: Path, *verbs: str, **more: str) -> dict[str, tuple[str | None, str]]:
    done = wulf(place, "config", *verbs, "--json", **{"WULF_RUNS": "", **more})
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["settings"]
    return {f"{one['verb']} {one['option']}".strip(): (one["value"], one["source"]) for one in found}


def test_the_nearer_one_counts(place: Path) -> None:
    of_site = place / "site" / "config.toml"
    assert settings(place)["runs"] == ("site-runs", f"{of_site}, line 3")
    assert settings(place)["report csv"] == ("True", f"{of_site}, line 6")
    of_user = user(place, '[measure]\nbudget = "7m"\nruns = "apart"\n')
    found = settings(place)
    assert found["measure budget"] == ("7m", f"{of_user}, line 2")
    assert found["measure runs"] == ("apart", f"{of_user}, line 3")
    assert found["runs"][0] == "site-runs"
    user(place, '[defaults]\nruns = "mine"\n[report]\ncsv = false\n')
    assert (settings(place)["runs"][0], settings(place)["report csv"][0]) == ("mine", "False")
    found = settings(place, WULF_RUNS="said", WULF_REPORT_CSV="1", WULF_MEASURE_RUNS="nearest")
    assert found["runs"] == ("said", "WULF_RUNS")
    assert found["report csv"] == ("True", "WULF_REPORT_CSV")
    assert found["measure runs"] == ("nearest", "WULF_MEASURE_RUNS")


def test_what_is_shown_is_what_holds(place: Path) -> None:
    assert "no runs with checked in site-runs" in wulf(place, "runs", "list", WULF_RUNS="").stdout
    assert (
        "no runs with checked in elsewhere"
        in wulf(place, "runs", "list", "--runs", "elsewhere", WULF_RUNS="").stdout
    )
    user(place, '[defaults]\nruns = "~/mine"\n')
    assert "no runs with checked in /h/mine" in wulf(place, "runs", "list", WULF_RUNS="", HOME="/h").stdout
    listed = wulf(place, "config", WULF_RUNS="").stdout
    assert "~/mine" in listed
    assert "config.toml, line 2" in listed
    assert [name for name, (_, source) in settings(place, "lab").items() if source == "built in"]


def test_an_earlier_name_of_an_option_holds(place: Path) -> None:
    of_user = user(place, "[bench.blas]\nrounds = 3\n")
    assert settings(place, "bench")["bench blas launches"] == ("3", f"{of_user}, line 2")
    (place / "site" / "config.toml").write_text("[bench.blas]\nlaunches = 4\n")
    assert settings(place, "bench")["bench blas launches"] == ("3", f"{of_user}, line 2")
    user(place, "")
    assert settings(place, "bench", WULF_BENCH_BLAS_ROUNDS="")["bench blas launches"][0] == "4"
    found = settings(place, "bench", WULF_BENCH_BLAS_ROUNDS="5")
    assert found["bench blas launches"] == ("5", "WULF_BENCH_BLAS_ROUNDS")


WRONG = {
    "an unknown option": (
        '[measure]\n\nbugdet = "7m"\n',
        "measure",
        "line 3: [measure] has no 'bugdet'; did you mean",
    ),
    "an unknown verb": (
        '[mesure]\nbudget = "7m"\n',
        "runs list",
        "line 1: unknown section [mesure]; did you mean",
    ),
    "an option without its verb": (
        'budget = "7m"\n',
        "runs list",
        "line 1: 'budget' belongs below [defaults] or [VERB]",
    ),
    "an option of one verb": ('[defaults]\nbudget = "7m"\n', "runs list", "line 2: unknown key 'budget'"),
    "what is said of one call": (
        "[tune]\ntake-over = true\n",
        "tune",
        "line 2: [tune] has no 'take-over': it is for a single call",
    ),
    "a word for a flag": (
        '[measure]\nreference = "maybe"\n',
        "measure",
        "line 2: reference: 'maybe': true or false",
    ),
    "a list for one value": (
        "[measure]\nbudget = [1]\n",
        "measure",
        "line 2: budget: '[1]': a text or a number",
    ),
    "a value without sense": ('[measure]\nbudget = "soon"\n', "measure", "budget is from"),
    "no number": ('[measure]\nseed = "x"\n', "measure", "it is from"),
    "no TOML": ("[measure\n", "measure", "not TOML"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_with_file_and_line(place: Path, name: str) -> None:
    text, verb, said = WRONG[name]
    path = user(place, text)
    words = [verb, "--cluster", "local"] if verb == "measure" else verb.split()
    done = wulf(place, *words)
    assert done.returncode in (1, 2), done.stdout
    told = " ".join(done.stderr.split())
    assert said in told
    assert str(path) in told.replace("\n", "")
    assert "Traceback" not in done.stderr


def test_a_file_that_everybody_may_write_is_refused(place: Path) -> None:
    user(place, "").chmod(0o666)
    done = wulf(place, "runs", "list")
    assert done.returncode == 1
    assert "everybody may write to it" in done.stderr


def test_a_mistyped_variable_is_named(place: Path) -> None:
    done = wulf(place, "config", WULF_MESURE_BUDGET="7m", WULF_MEASURE_BUDGET="8m")
    assert "note: WULF_MESURE_BUDGET" in done.stdout
    assert "WULF_MEASURE_BUDGET in" not in done.stdout


def test_the_cluster_of_a_site_comes_after_what_is_nearer(place: Path) -> None:
    (place / "site" / "rack.toml").write_text("[cluster]\nnodes = 3\n")
    (place / "site" / "config.toml").write_text('[defaults]\ncluster = "rack.toml"\n')
    told = wulf(place, "audit", "facts").stderr
    assert f"{place}/site/rack.toml: [cluster] nodes" in told  # it was read
    (place / "cluster.toml").write_text("[cluster]\nnodes = 4\nname = 5\n")
    assert "rack.toml" not in wulf(place, "audit", "facts").stderr
    assert "elsewhere.toml" in wulf(place, "audit", "facts", WULF_CLUSTER="elsewhere.toml").stderr


def test_what_is_done_is_logged(place: Path) -> None:
    words = ["audit", "facts", "--cluster", "local", "--verbose", "--log-file", "log"]
    done = wulf(place, *words)
    assert done.returncode == 0, done.stderr
    assert " ok in " in done.stderr  # of the command on the node
    logged = (place / "log").read_text()
    assert "wulf " in logged.splitlines()[0]
    assert "--cluster local" in logged.splitlines()[0]
    assert "ended with exit code 0" in logged.splitlines()[-1]
    before = wulf(place, "--log-file", "log", "audit", "facts", "--cluster", "nowhere.toml")
    assert before.returncode == 1
    assert "ended with exit code 1: nowhere.toml" in (place / "log").read_text().splitlines()[-1]
    quiet = wulf(place, "audit", "facts", "--cluster", "local")
    assert " ok in " not in quiet.stderr
    assert wulf(place, "runs", "list", "--log-file", "no/such/place").returncode == 1


def test_lines_of_keys() -> None:
    text = 'a = 1\n\n[b]\n# no\nc = [\n  1,\n]\n"d e".f = 2\n[[g]]\nh = 1\n'
    assert [line_of(text, keys) for keys in (["a"], ["b"], ["b", "c"], ["b", "d e", "f"], ["x"])] == [
        1,
        3,
        5,
        8,
        0,
    ]

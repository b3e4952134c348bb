"""``wulf program emulate`` as a user runs it, on this machine: MPI through shared memory."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest

import wulf as library
from tests.cli.command import start, wulf
from tests.cli.waiting import HANGS_S, wait_for_launches
from tests.unit.predict_fixture import calibrated_run

pytestmark = pytest.mark.mpi

HERE = ["--cluster", "local", "--ranks", "4", "--passes", "2"]
TWO = """\
title = "Two at once"
[[program]]
name = "halo"
ranks = "50%"
iterations = 20
[[program.step]]
compute = "100 us"
exchange = "halo-1d"
periodic = true
size = "8 KiB"
[[program]]
name = "farm"
ranks = "50%"
iterations = 2
[[program.step]]
exchange = "task-farm"
tasks = 5
compute = "100 us"
size = 64
"""


RING = """\
title = "Ring"
[[program]]
name = "ring"
iterations = 20
[[program.step]]
compute = "50 us"
exchange = "ring"
size = 8
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where a pattern of two programs was performed, as the run 'two'."""
    if shutil.which("mpicc") is None:
        pytest.skip("no MPI library is installed")
    directory = tmp_path_factory.mktemp("emulate")
    (directory / "two.toml").write_text(TWO)
    done = wulf(
        directory, "program", "emulate", "two.toml", "--run", "two", *HERE, "--repeat", "6", timeout=300
    )
    assert done.returncode in (0, 3), done.stderr
    assert "Pattern: Two at once" in done.stdout and "Times by program" in done.stdout
    return directory


def test_the_run_has_the_whole_every_program_and_its_iterations(ran: Path) -> None:
    run = library.load(ran / "runs" / "two")
    assert len(run.launches) == 6 and all(launch.status == "ok" for launch in run.launches)
    cells = {cell.cell.op: cell for cell in run.analysis().cells}
    assert set(cells) == {
        "run time",
        *("program halo", "iteration of halo", "program farm", "iteration of farm"),
    }
    for cell in cells.values():
        assert cell.time.n == 6 and cell.time.low is not None and cell.time.low <= cell.time.value
    assert cells["iteration of halo"].iterations == 6 * 2 * 20
    assert all(sample.corrupt == 0 for sample in run.samples)
    # 20 iterations compute 100 us each; nothing but a wrong idea of how long work takes makes them shorter.
    assert cells["program halo"].time.value > 20 * 100e-6 * 0.3


def test_it_is_reported_and_compared_as_others_are(ran: Path) -> None:
    text = wulf(ran, "report", "two", "--text").stdout
    assert "Two at once: 4 ranks on 2 nodes" in text and "What programs do in an iteration" in text
    comparisons = json.loads(wulf(ran, "compare", "two", "two", "--json").stdout)
    assert {cell["op"] for one in comparisons for cell in one["cells"]} >= {"run time", "program halo"}


@pytest.mark.thorough
def test_it_is_drawn(ran: Path) -> None:
    assert wulf(ran, "report", "two", "--html").returncode == 0
    page = (ran / "runs" / "two" / "report.html").read_text()
    assert "Who sends to whom" in page and "What ranks do" in page and "task-farm" in page
    drawn = wulf(ran, "report", "two", "--svg").stdout
    assert "pattern-picture.svg" in drawn and "pattern-shares.svg" in drawn


@pytest.mark.thorough
def test_an_interrupted_run_goes_on_as_it_was_begun(ran: Path) -> None:
    words = ("program", "emulate", "two.toml", "--run", "cut", *HERE, "--repeat", "6")
    process = start(ran, *words)
    wait_for_launches(ran / "runs" / "cut", 1, process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=HANGS_S)
    assert process.returncode == 130
    before = library.load(ran / "runs" / "cut")
    assert before.manifest.status == "interrupted" and 1 <= len(before.launches) < 6
    # What is performed is in the run: the file is not needed any more.
    assert (ran / "runs" / "cut" / "pattern.wtrace").is_file()
    done = wulf(ran, "program", "emulate", "--resume", "cut", timeout=300)
    assert done.returncode in (0, 3), done.stderr
    run = library.load(ran / "runs" / "cut")
    assert len([launch for launch in run.launches if launch.status == "ok"]) == 6
    assert wulf(ran, "program", "emulate", "--resume", "cut").returncode == 2


@pytest.mark.thorough
def test_the_prediction_of_the_same_file_stands_beside_the_measurement(ran: Path) -> None:
    calibrated_run(ran / "runs" / "cal")
    file = ran / "ring.toml"
    file.write_text(RING)
    words = ("ring.toml", "--cluster", "local", "--ranks", "2", "--passes", "1", "--repeat", "6")
    done = wulf(ran, "program", "emulate", *words, "--run", "ring", "--predict", "cal", "--json", timeout=300)
    assert done.returncode in (0, 3), done.stderr
    found = json.loads(done.stdout)
    beside = found["predicted"]
    alone = wulf(
        ran,
        "program",
        "predict",
        "ring.toml",
        "--on",
        "cal",
        "--ranks",
        "2",
        "--what-if",
        "latency=x1",
        "--json",
    )
    predicted = json.loads(alone.stdout)["base"]["time"]
    # The same operations between two nodes: the model's likely value is the same, its interval one of samples.
    assert beside["time"]["value"] == pytest.approx(predicted["value"], rel=1e-6)
    assert beside["ratio"] == pytest.approx(found["time"]["value"] / predicted["value"], rel=1e-6)
    inside = beside["time"]["low"] <= found["time"]["value"] <= beside["time"]["high"]
    assert beside["inside"] == inside
    text = wulf(ran, "report", "ring", "--text").stdout
    assert "Predicted with cal" in text and ("inside" if inside else "outside") in text


@pytest.mark.thorough
def test_what_cannot_be_predicted_is_measured_and_says_why(ran: Path) -> None:
    calibrated_run(ran / "runs" / "cal2")
    (ran / "put.toml").write_text(RING.replace("size = 8", 'size = 8\nmethod = "one-sided"'))
    words = ("put.toml", "--cluster", "local", "--ranks", "2", "--passes", "1", "--repeat", "6")
    done = wulf(ran, "program", "emulate", *words, "--run", "put", "--predict", "cal2", "--json", timeout=300)
    assert done.returncode in (0, 3), done.stderr
    found = json.loads(done.stdout)
    assert found["time"]["value"] > 0 and found["predicted"]["time"] is None
    assert found["predicted"]["inside"] is None and "one-sided communication" in found["predicted"]["reason"]


def test_a_dry_run_says_what_would_be_performed(ran: Path) -> None:
    done = wulf(ran, "program", "emulate", "two.toml", *HERE, "--dry-run", timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Two at once: 4 ranks on local[1-2], 2 a node" in done.stdout
    # Two ranks that are both neighbours of each other, 20 times; 2 x (5 tasks, 5 results, a word at the end).
    assert f"a pass: {20 * 2 * 2 + 2 * (2 * 5 + 1)} messages" in done.stdout
    assert "1 + 2 passes" in done.stdout


def test_the_gallery_is_listed_and_shown(tmp_path: Path) -> None:
    listed = wulf(tmp_path, "program", "emulate", "--list").stdout
    for name in ("client-server", "task-farm", "token-ring", "pipeline", "halo-1d", "halo-2d", "halo-3d"):
        assert name in listed
    for name in ("hypercube", "tree", "all-to-all", "heat", "conjugate-gradient", "fft-transpose"):
        assert name in listed
    shown = wulf(tmp_path, "program", "emulate", "--show", "tree").stdout
    assert 'exchange = "tree"' in shown and shown.startswith('title = "Tree"')


HEAD = 'title = "t"\nranks = 4\n[[program]]\nname = "p"\niterations = 3\n[[program.step]]\n'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f'{HEAD}exchange = "halo-2"\nsize = 8', "a.toml:7: program[0].step[0].exchange: 'halo-2'"),
        (f'{HEAD}exchange = "ring"', "a.toml:6: program[0].step[0].size: missing"),
        (f"{HEAD}compute = 5", "a.toml:7: program[0].step[0].compute: 5: a time has a unit"),
        (f'{HEAD}compute = "5 us"\nsice = 5', "a.toml:8: program[0].step[0].sice: unknown key"),
        (f'{HEAD}compute = "5 us"\ntasks = 5', "a.toml:8: program[0].step[0].tasks: only an exchange"),
        (f'{HEAD}exchange = "hypercube"\nsize = 8', "a hypercube has 2, 4, 8"),
        (f'{HEAD}exchange = "halo-2d"\nsize = 8\ndims = [4, 4]', "4 × 4 is not 6"),
        (f'{HEAD}exchange = "edges"\nsize = 8\nedges = [[0, 9]]', "9 is not a rank of a program of 6"),
        (f"{HEAD}compute = ", "a.toml:7: not TOML"),
        ('title = "t"', "program"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "a.toml").write_text(text)
    done = wulf(tmp_path, "program", "emulate", "a.toml", "--cluster", "local", "--ranks", "6", "--dry-run")
    assert done.returncode == 1, done.stdout
    assert complaint in " ".join(done.stderr.split()), done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "give PATTERN: A file"),
        (["halo-7d"], "no pattern of that name"),
        (["--show", "halo-7d"], "there is no pattern 'halo-7d'"),
        (["tree", "--compute", "sleep"], "'work', 'clock', 'none'"),
        (["tree", "--passes", "0"], "greater than or equal to 1"),
        (["tree", "--ranks", "9", "--ranks-per-node", "2"], "4 ranks, and the pattern has 9"),
        (["tree", "--resume", "x"], "--resume with PATTERN, --cluster: a run goes on as it was begun"),
        (["tree", "--predict", "nowhere"], "there is no run 'nowhere'"),
    ],
)
def test_wrong_usage_is_said(tmp_path: Path, words: list[str], complaint: str) -> None:
    done = wulf(tmp_path, "program", "emulate", *words, "--cluster", "local")
    assert done.returncode in (1, 2)
    assert complaint in " ".join(done.stderr.split()), done.stderr

"""How the program behaves beside others: pipes, Ctrl-C, completion, -h, and words that are nearly right."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.command import environment, wulf
from wulf.face.cli.main import VERBS, app

PROGRAM = [sys.executable, "-m", "wulf.start"]
GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize(
    "words",
    [
        ["settings", "list"],  # a table
        ["--help"],
        ["report", "run-v1", "--text"],
        ["settings", "list", "--json"],
    ],
)
def test_a_reader_that_goes_ends_it_without_a_word(tmp_path: Path, words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(
        [*PROGRAM, *words],
        cwd=tmp_path,
        env=environment(tmp_path, WULF_RUNS=str(GOLDEN)),
        stdout=writing,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(writing)
        _, said = process.communicate(timeout=120)
    assert said == b""
    assert process.returncode == -signal.SIGPIPE


def test_an_early_interrupt_is_said(tmp_path: Path) -> None:
    # At some moments from the first import to the last; whenever it comes, it is one line and no traceback.
    interrupted = 0
    for moment in range(9):
        process = subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", "wulf.start", "runs", "list"],
            cwd=tmp_path,
            # An import that is interrupted leaves its file open, of which Python warns.
            env=environment(tmp_path, PYTHONWARNINGS="ignore::ResourceWarning"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if b"typer" in line or len(lines) > 1000:  # what the package itself imports before is a moment
                break
        for _ in range(moment * 60):
            process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=120)
        said = b"".join(
            line for line in rest.splitlines(keepends=True) if not line.startswith(b"import time:")
        )
        if process.returncode == 0:  # it was through already: what it says fits into the pipe
            continue
        interrupted += 1
        # Where Python was executing a text (a dataclass), it ends by the signal itself: 130 for every shell, too.
        assert process.returncode in (130, -signal.SIGINT)
        assert rest.endswith(b"wulf: interrupted\n"), rest[-500:]
        assert b"Traceback" not in said
    assert interrupted


@pytest.mark.parametrize("verb", ["", *VERBS, "settings show", "lab up"])
def test_h_is_help(verb: str) -> None:
    short, long = (CliRunner().invoke(app, [*verb.split(), option]) for option in ("-h", "--help"))
    assert short.exit_code == 0, short.output
    assert short.output == long.output
    assert "Usage:" in short.output


NEARLY = {
    "a verb": (["measur"], "did you mean 'measure'?"),
    "a verb's verb": (["settings", "shw"], "'show'"),
    "an option": (["measure", "--lader", "imb"], "--ladder"),
    "a knob": (["settings", "show", "nic.mtuu"], "did you mean 'nic.mtu'?"),
    "a knob to set": (["settings", "set", "nic.mtuu=1500", "--cluster", "local"], "did you mean 'nic.mtu'?"),
    "an operation": (["measure", "--cluster", "local", "--ops", "tcp_rrr"], "did you mean 'tcp_rr'?"),
    "a ladder": (["measure", "--cluster", "local", "--ladder", "adaptiv"], "did you mean 'adaptive'?"),
    "a run": (["report", "rnu-v1", "--runs", str(GOLDEN)], "did you mean 'run-v1'?"),
}


@pytest.mark.parametrize("name", NEARLY)
def test_what_is_nearly_right_is_named(tmp_path: Path, name: str) -> None:
    words, said = NEARLY[name]
    done = wulf(tmp_path, *words)
    assert done.returncode in (1, 2)
    assert said in " ".join(done.stderr.split())


def completed(*words: str) -> list[str]:
    """Return what bash would offer for the last word."""
    asked = {"COMP_WORDS": " ".join(["wulf", *words]), "COMP_CWORD": str(len(words))}
    asked |= {"_WULF_COMPLETE": "complete_bash", "WULF_RUNS": str(GOLDEN)}
    done = CliRunner().invoke(app, [], prog_name="wulf", env=asked)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.stdout.split()


def test_completion_offers_what_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rack.toml").write_text("")
    assert "measure" in completed("mea")
    assert completed("report", "run") == ["run-v1"]
    assert "latest" in completed("compare", "")
    assert completed("measure", "--ladder", "ad") == ["adaptive"]
    assert completed("measure", "--ops", "tcp_rr,tcp_c") == ["tcp_rr,tcp_connect"]
    assert "nic.mtu" in completed("settings", "show", "nic.m")
    assert "nic.mtu=" in completed("settings", "set", "nic.m")
    assert "rack.toml" in completed("audit", "--cluster", "")


def test_a_slurm_allocation_without_slurm_is_said_once(tmp_path: Path) -> None:
    words = ["measure", "--cluster", "slurm", "--ops", "mpi_pingpong"]
    done = wulf(tmp_path, *words, SLURM_JOB_NODELIST="node[1-2]", PATH="/nonesuch")
    assert done.returncode == 2
    assert done.stderr.count("srun") == 1
    assert "there is no srun in PATH" in " ".join(done.stderr.split())


@pytest.fixture
def closed() -> Iterator[Path]:
    """Runs of which one cannot be looked into by whoever is not root; everybody can look at the others."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        root = Path(name)
        root.chmod(0o755)
        for run in ("good", "secret"):
            (root / "runs" / run).mkdir(parents=True)
            for file in (GOLDEN / "run-v1").iterdir():
                copy = root / "runs" / run / file.name
                copy.write_bytes(file.read_bytes())
                copy.chmod(0o644)
        shut = root / "runs" / "secret"
        shut.chmod(0)
        yield root
        shut.chmod(stat.S_IRWXU)


#: Runs the program again and again without root's rights, which no file is closed to; prints what it said each time.
#: Python's own files may be closed to others than root: what is imported later must be there before.
AS_NOBODY = """
import contextlib, importlib, json, os, pkgutil, sys, zoneinfo, altair, scipy.ndimage, scipy.stats, typer
from wulf.face.cli import main
for module in pkgutil.walk_packages(typer.__path__, "typer."):
    with contextlib.suppress(Exception):  # what is for other systems
        if not module.name.endswith("__main__"): importlib.import_module(module.name)
commands = json.loads(sys.argv[1])
for words in [*commands, ["runs", "list", "--runs", "nowhere"], ["report", "nowhere"]]:  # as who may read all
    sys.argv = ["wulf", *words]
    sys.stdout = sys.stderr = open(os.devnull, "w")
    try: main.run()
    except SystemExit: pass
sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
if os.geteuid() == 0: os.setgid(65534); os.setuid(65534)
said = []
for words in commands:
    pipes = [os.pipe() for _ in range(2)]
    child = os.fork()
    if not child:
        for number, (_, writing) in enumerate(pipes, 1): os.dup2(writing, number)
        for ends in pipes: os.close(ends[0]), os.close(ends[1])
        sys.argv = ["wulf", *words]
        main.run()
    for _, writing in pipes: os.close(writing)
    out, err = (os.fdopen(reading).read() for reading, _ in pipes)
    said.append((os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), out, err))
print(json.dumps(said))
"""


def as_nobody(directory: Path, *commands: Sequence[str]) -> list[subprocess.CompletedProcess[str]]:
    """Run commands of the program as who has no rights of root."""
    argv = [sys.executable, "-c", AS_NOBODY, json.dumps(commands)]
    done = subprocess.run(
        argv,
        cwd=directory,
        env=environment(directory),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [
        subprocess.CompletedProcess(words, *said)
        for words, said in zip(commands, json.loads(done.stdout), strict=True)
    ]


def test_a_run_that_cannot_be_read_does_not_hide_the_others(closed: Path) -> None:
    shown, told, latest, named = as_nobody(
        closed,
        ["runs", "list"],
        ["runs", "list", "--json"],
        ["report", "latest", "--csv"],
        ["report", "secret"],
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "unreadable: Permission denied" in " ".join(shown.stdout.split())
    entries = {entry["run"]: entry for entry in json.loads(told.stdout)}
    assert entries["good"]["kind"] == "measurement"
    assert (entries["secret"]["kind"], entries["secret"]["created_at"]) == ("unknown", None)
    assert latest.returncode == 0, latest.stderr
    assert named.returncode == 1
    assert "secret cannot be read: Permission denied" in " ".join(named.stderr.split())


def test_a_directory_of_runs_that_cannot_be_read_is_named(closed: Path) -> None:
    (closed / "runs").chmod(0)
    try:
        (done,) = as_nobody(closed, ["runs", "list"])
    finally:
        (closed / "runs").chmod(stat.S_IRWXU)
    assert done.returncode in (1, 2)
    assert "read" in done.stderr
    assert "Traceback" not in done.stderr


def test_names_that_no_file_can_have_are_refused(tmp_path: Path) -> None:
    done = wulf(tmp_path, "report", "a" * 5000)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert len(done.stderr) < 1000

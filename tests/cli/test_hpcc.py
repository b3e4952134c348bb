"""``wulf bench hpcc`` on this machine, with Debian's HPCC."""

from __future__ import annotations

import json
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.command import start, wulf
from tests.cli.waiting import HANGS_S, wait_until

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.thorough,
    pytest.mark.skipif(shutil.which("hpcc") is None, reason="hpcc is not installed"),
]
RUN = ("bench", "hpcc", "--cluster", "local", "--size", "300", "--ranks", "2", "--launches", "2")


def test_all_results_are_stored_shown_and_compared(tmp_path):
    first = wulf(tmp_path, *RUN, "--run", "first", timeout=300)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "2 runs of HPCC passed all checks; 2 ranks on each node; N 300" in first.stdout
    for result in (
        "HPL_Tflops",
        "PTRANS_GBs",
        "StarSTREAM_Triad",
        "MPIFFT_Gflops",
        "MaxPingPongLatency_usec",
    ):
        assert f"\n{result} " in first.stdout
    again = json.loads(wulf(tmp_path, "bench", "hpcc", "first", "--json").stdout)
    assert again["sizes"] == {"together": 300} and not again["failures"] and not again["by_node"]
    assert {figure["name"]: figure["value"]["unit"] for figure in again["figures"]}[
        "StarDGEMM_Gflops"
    ] == "Gflop/s"
    assert wulf(tmp_path, *RUN, "--run", "second", timeout=300).returncode == 0
    compared = json.loads(wulf(tmp_path, "compare", "first", "second", "--json").stdout)
    pooled = compared[0]["pooled"]
    assert {"HPCC HPL_time N 300", "HPCC StarDGEMM_Gflops N 300", "HPCC AvgPingPongLatency"} <= pooled.keys()


def test_a_run_that_fails_its_check_is_shown_as_failed(tmp_path):
    """HPCC whose third output, after the small problem and one round, says that a residual was too large."""
    program = tmp_path / "spoiled"
    program.write_text(
        "#!/bin/sh\n"
        "hpcc || exit\n"
        'if [ -f hpccoutf.txt ] && [ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" = 0 ]; then\n'
        "    echo ran >>../count\n"
        '    [ "$(wc -l <../count)" -lt 3 ] || sed -i "s/\\.\\.\\. PASSED/... FAILED/" hpccoutf.txt\n'
        "fi\n"
    )
    program.chmod(0o755)
    done = wulf(tmp_path, *RUN, "--program", str(program), "--run", "bad", timeout=300, HOME=str(tmp_path))
    assert done.returncode == 3, done.stdout + done.stderr
    assert "on 1 node, local1 1 run of HPCC failed" in done.stdout
    assert "1 run failed: local1: line" in done.stdout and "HPL's residual is too large" in done.stdout
    assert "1 run of HPCC passed all checks" in done.stdout
    stored = json.loads(wulf(tmp_path, "report", "bad", "--json").stdout)
    assert stored["analysis"]["launches_failed"] == 1
    assert not list((tmp_path / ".cache" / "wulf" / "hpcc").iterdir())


def test_what_cannot_be_is_said(tmp_path):
    missing = wulf(tmp_path, "bench", "hpcc", "--cluster", "local", "--program", "nonesuch")
    assert missing.returncode == 1
    assert "local1: there is no nonesuch" in missing.stderr and "apt install hpcc" in missing.stderr
    small = wulf(tmp_path, "bench", "hpcc", "--cluster", "local", "--size", "1")
    assert small.returncode == 2 and "200" in small.stderr
    assert not (tmp_path / "runs").exists()


def test_what_is_interrupted_is_kept_and_nothing_runs_on(tmp_path):
    process = start(tmp_path, *RUN[:-1], "50", "--run", "cut", HOME=str(tmp_path))
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("round 2"):
            break
    wait_until(lambda: running(tmp_path), "the second round", process)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=HANGS_S)
    assert process.returncode == 130
    assert "interrupted: complete rounds are kept" in out and "1 run of HPCC passed all checks" in out
    again = wulf(tmp_path, "bench", "hpcc", "cut", "--json")
    assert again.returncode == 0 and json.loads(again.stdout)["status"] == "interrupted"
    assert not list((tmp_path / ".cache" / "wulf" / "hpcc").iterdir())
    assert not running(tmp_path)


def running(home: Path) -> list[str]:
    """Return the processes that work in the run's directory on the node."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):  # it has ended since
            found += [place.parent.name] if place.readlink().is_relative_to(home / ".cache/wulf/hpcc") else []
    return found

"""``wulf program run`` as a user runs it, on this machine."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

import wulf as library
from tests.cli.command import start, wulf
from tests.cli.waiting import HANGS_S, wait_until

SOME = ["--cluster", "local", "--repeat", "12"]


def rated(rate: int) -> str:
    """A command that prints a rate whose last digits go on with each launch.

    The digits are the launch's number times 5 modulo 13: neither a trend nor a
    dependence of one launch on the last.  Random digits show one in 5 % of the
    runs, and the verdict is then rightly no decision.
    """
    count = f"count{rate}"
    return (
        f"n=$(cat {count} 2>/dev/null || echo 0); echo $((n+1)) >{count}; "
        f"echo rate={rate}.00$(printf %03d $((n * 5 % 13 * 70 + 5)))"
    )


def test_a_command_its_numbers_its_output_and_what_it_takes(tmp_path):
    figures = ["--match", r"took (\S+) s", "--match", r"rate=(\S+)", "--as", "loop time [s]"]
    shown = [*figures, "--as", "performance [GFLOPS] higher"]
    for name, rate in (("slow", 2), ("quick", 3)):
        done = wulf(
            tmp_path,
            "program",
            "run",
            "--run",
            name,
            *SOME,
            *shown,
            "--",
            f"sleep 0.02; echo took 0.5 s; {rated(rate)}",
        )
        assert done.returncode in (0, 3), done.stderr
        assert "run time: " in done.stdout, done.stdout
        assert "loop time: 500" in done.stdout and f"performance: {rate}.00" in done.stdout
    run = library.load(tmp_path / "runs" / "slow")
    assert len(run.launches) == 12
    cells = {cell.cell.op: cell.time for cell in run.analysis().cells}
    assert (cells["performance"].unit, cells["performance"].n) == ("GFLOPS", 12)
    assert cells["performance"].low == pytest.approx(2.0, rel=0.01)
    assert (
        (tmp_path / "runs" / "slow" / "output" / "00003.stdout")
        .read_text()
        .startswith("took 0.5 s\nrate=2.00")
    )
    (taken,) = run.analysis().resources
    assert taken.op == "run time" and 0 <= taken.busy.value < 1
    (comparison,) = json.loads(wulf(tmp_path, "compare", "slow", "quick", "--json").stdout)
    verdicts = {cell["op"]: cell["verdict"] for cell in comparison["cells"]}
    # More is better: half as much again is no run that got worse.
    assert verdicts["performance"] == "better" and verdicts["loop time"] == "no difference"
    report = wulf(tmp_path, "report", "slow", "--text").stdout
    assert "What a launch takes of the node" in report and "GFLOPS" in report


def test_launches_that_fail_are_counted_and_say_why(tmp_path):
    flaky = (
        "n=$(cat n 2>/dev/null || echo 0); echo $((n+1)) >n; echo begun; "
        "[ $n -ne 2 ] || { echo lost a rank >&2; exit 9; }"
    )
    done = wulf(tmp_path, "program", "run", "--run", "a", *SOME, "--", flaky)
    assert done.returncode == 3, done.stderr
    assert "1 failed of 13 launches" in done.stdout
    failed = [one for one in library.load(tmp_path / "runs" / "a").launches if one.status == "failed"]
    assert [one.index for one in failed] == [2] and "lost a rank" in failed[0].error
    assert (tmp_path / "runs" / "a" / "output" / "00002.stderr").read_text().endswith("lost a rank\n")


def test_an_mpi_program_is_started_on_the_nodes(tmp_path):
    job = ["--cluster", "local", "--repeat", "1", "--mpi", "openmpi"]
    rank = ["printenv", "OMPI_COMM_WORLD_RANK"]
    done = wulf(tmp_path, "program", "run", "--run", "a", *job, "--ranks", "3", "--", *rank)
    assert done.returncode in (0, 3), done.stderr
    said = (tmp_path / "runs" / "a" / "output" / "00000.stdout").read_text()
    assert sorted(said.split()) == ["0", "1", "2"]
    (tmp_path / "there").mkdir()
    words = ["--ranks", "2", "--directory", str(tmp_path / "there")]
    done = wulf(tmp_path, "program", "run", "--run", "b", *job, *words, "--", "pwd")
    assert done.returncode in (0, 3), done.stderr
    said = (tmp_path / "runs" / "b" / "output" / "00000.stdout").read_text()
    assert said.split() == [str(tmp_path / "there")] * 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--as", "x", "--", "true"], "there is no --match for it"),
        (["--match", "x", "--", "true"], "one group (in parentheses)"),
        (["--match", "(x", "--", "true"], "is not a regular expression"),
        (["--match", "(x)", "--as", "run time", "--", "true"], "'run time' is taken"),
        (["--html", "p.html", "--", "true"], "--html needs --against or several --ranks"),
        (["--submit", "x", "--", "true"], "--submit needs --batch"),
        (["--mpi", "mpich", "--", "true"], "--mpi needs --ranks"),
        (["--repeat", "7", "--against", "true", "--", "true"], "--launches 7: with --against at least 8"),
        (["--ranks", "2", "--", "OMP_NUM_THREADS=4 ./a"], "is not a program with its arguments"),
        (["--ranks", "2", "--", "./a | tee log"], "is not a program with its arguments"),
        (["--batch", "missing.sh", "--", "true"], "cannot read missing.sh: No such file or directory"),
        (["--batch", "job.sh", "--ranks", "2", "--", "true"], "it takes no --ranks"),
        (["--ranks", "-1", "--", "true"], "--ranks"),
        (["--directory", "/nowhere", "--", "true"], "/nowhere"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, words, said):
    done = wulf(tmp_path, "program", "run", "--cluster", "local", *words)
    assert done.returncode in (1, 2) and said in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def test_two_commands_in_turn(tmp_path):
    words = ["--match", r"rate=(\S+)", "--as", "rate [1/s] higher", "--repeat", "10", "--html", "page.html"]
    slow, quick = rated(2), rated(3)
    done = wulf(tmp_path, "program", "run", "--cluster", "local", *words, "--against", quick, "--", slow)
    assert done.returncode in (0, 3), done.stderr  # 3: of their run times chance says that one is worse
    assert "change of rate" in done.stdout and "better" in done.stdout
    assert (tmp_path / "page.html").read_text().count("change of rate") > 0
    assert wulf(tmp_path, "program", "run", "--against", quick, "--ranks", "2", "--", slow).returncode == 2


@pytest.mark.thorough
def test_a_setting_comes_to_a_command_by_its_environment(tmp_path):
    setting = ["--interleaved", "original", "ompi.mpi_yield_when_idle=1", "--launches", "8", "--json"]
    done = wulf(
        tmp_path,
        "compare",
        "--cluster",
        "local",
        *setting,
        "--command",
        "echo ${OMPI_MCA_mpi_yield_when_idle:-5}",
        "--match",
        r"(\d+)",
    )
    (comparison,) = json.loads(done.stdout)
    # The setting comes to the command by its environment: 1 instead of 5.
    assert comparison["pooled"]["result"]["ratio"]["value"] == pytest.approx(0.2)


def heat_run(place, launches):
    """Measure a program with MPI, as the run 'heat'."""
    heat = wulf(place, "program", "shipped", "heat", "--cluster", "local", "--mpi", "openmpi").stdout.strip()
    job = ["--cluster", "local", "--repeat", str(launches), "--ranks", "2", "--mpi", "openmpi"]
    figure = ["--match", r"communication_s (\S+)", "--as", "communication [s]"]
    done = wulf(place, "program", "run", "--run", "heat", *job, *figure, "--", heat, "--steps", "50")
    assert done.returncode in (0, 3), done.stderr


@pytest.mark.mpi
def test_a_program_is_characterised(tmp_path):
    heat_run(tmp_path, 1)
    done = wulf(tmp_path, "program", "characterise", "heat", "--mpi", "openmpi", "--json")
    assert done.returncode == 0, done.stderr
    (program,) = json.loads(done.stdout)["programs"]
    assert (program["ranks"], program["partners"]) == (2, 1) and 0 < program["share"][0] < 1
    # One of which nothing is known does not hide the other.
    wulf(tmp_path, "program", "run", "--run", "none", "--cluster", "local", "--repeat", "6", "--", "true")
    both = wulf(tmp_path, "program", "characterise", "none", "heat", "--mpi", "openmpi", "--json")
    assert both.returncode == 3, both.stderr
    found = json.loads(both.stdout)
    assert [one["run"] for one in found["programs"]] == ["heat"]
    assert "no MPI call was seen" in found["failed"]["none"]


@pytest.mark.thorough
@pytest.mark.mpi
def test_settings_are_tried_with_a_program(tmp_path):
    heat_run(tmp_path, 6)
    setting = ["--setting", "ompi.btl_tcp_eager_limit=4096", "--launches", "8", "--json"]
    done = wulf(tmp_path, "program", "characterise", "heat", "--mpi", "openmpi", *setting)
    assert done.returncode == 0, done.stderr
    (program,) = json.loads(done.stdout)["programs"]
    assert {gain["setting"] for gain in program["gains"]} == {"ompi.btl_tcp_eager_limit=4096"}
    assert {gain["what"] for gain in program["gains"]} == {"run time", "communication"}
    assert all(gain["ratio"]["low"] is not None for gain in program["gains"])
    # The profile is kept: another look starts nothing.
    shown = wulf(tmp_path, "program", "characterise", "heat")
    assert (
        shown.returncode == 0
        and "What programs do with MPI" in shown.stdout
        and "counted" not in shown.stderr
    )
    wulf(tmp_path, "program", "run", "--run", "none", "--cluster", "local", "--repeat", "6", "--", "true")
    none = wulf(tmp_path, "program", "characterise", "none", "--mpi", "openmpi")
    assert none.returncode == 1 and "no MPI call was seen" in none.stderr


def test_ctrl_c_ends_the_command(tmp_path):
    process = start(
        tmp_path, "program", "run", "--cluster", "local", "--", "echo $$ >new; mv new pid; sleep 300"
    )
    wait_until((tmp_path / "pid").exists, "the command", process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=HANGS_S)
    assert process.returncode == 130
    command = Path("/proc", (tmp_path / "pid").read_text().strip())
    wait_until(lambda: not command.exists(), "the end of the command")


def test_several_numbers_of_ranks_are_launched_in_turn(tmp_path):
    (tmp_path / "solve").write_text("#!/bin/sh\nsleep 0.0$((8 / ${OMPI_COMM_WORLD_SIZE:-1}))\n")
    (tmp_path / "solve").chmod(0o755)
    words = ["--cluster", "local", "--mpi", "openmpi", "--ranks", "1,2", "--launches", "2", "--json"]
    done = wulf(tmp_path, "program", "run", *words, "--run", "s", "--", "./solve")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [point["ranks"] for point in found["points"]] == [1, 2]
    assert found["rounds"] == 2 and found["points"][1]["speed_up"] is not None
    # It is a run like others.
    assert json.loads(wulf(tmp_path, "report", "s", "--json").stdout) == found
    assert "./solve" in wulf(tmp_path, "runs", "list").stdout
    refused = wulf(tmp_path, "program", "run", "--ranks", "1,x", "--", "./solve")
    assert "--ranks" in refused.stderr and refused.returncode == 2
    assert "'wulf program run'" in wulf(tmp_path, "app", "--", "true").stderr

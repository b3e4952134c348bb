"""One launch with a probe that misbehaves, over the real transport of one machine."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.contract.site import local_cluster
from wulf.base.errors import ConfigError
from wulf.node.cluster.transport import open_transport
from wulf.node.probe import command, execute, start
from wulf.node.probe.schedule import LaunchPlan
from wulf.node.programs import batch

PROGRESS = '{"type":"progress","sweep":1,"sweeps":5,"visits_done":1,"visits":5}'
HELLO = (
    '{"type":"hello","protocol":1,"version":"0","program":"p","mpi":null,"op":"empty","hosts":["a"],"cpus":[[0]],'
    '"yields":false,"pid":1,"clock":{"source":"x","resolution_ns":1.0,"cost_ns":20.0},"seed":1}'
)


def plan(**more):
    fields = {
        "id": "00000",
        "index": 0,
        "op": "empty",
        "transport": "none",
        "place": ("node01", "node02"),
        "setting": "default",
        "purpose": "measure",
        "sizes_bytes": [1, 1024],
        "sweeps": 1,
        "visit_us": 1000,
        "seed": 1,
    }
    return LaunchPlan(**fields | more)


def launch(tmp_path: Path, script: str, **more):
    probe = tmp_path / "probe"
    probe.write_text(f"#!/bin/sh\n{script}\n")
    probe.chmod(0o755)
    transport = open_transport(local_cluster())
    site = start.Site(
        transport=transport,
        addresses={},
        net_probes={"node01": str(probe)},
        mpi_probe=None,
        launcher=None,
        mpi_env={},
        interface=None,
        subnet=None,
        shares_cpu=lambda *_: False,
    )
    seen = execute.LaunchContext(contexts=[])
    try:
        return execute.run_launch(plan(**more), site, lambda _: lambda: seen, lambda *_: [])
    finally:
        transport.close()


def test_a_probe_that_chatters_for_ever_is_ended_and_failed(tmp_path, monkeypatch):
    monkeypatch.setattr(execute, "START_S", -4.0)
    assert 0.5 < execute.limit_s(plan()) < 5
    chatter = f"echo $$ >{tmp_path}/pid; echo '{HELLO}'; while :; do echo '{PROGRESS}'; sleep 0.05; done"
    found = launch(tmp_path, chatter)
    assert found.launch.status == "failed"
    assert "it had not finished in" in found.launch.error
    assert found.samples == []
    pid = (tmp_path / "pid").read_text().strip()
    assert not Path(f"/proc/{pid}").exists() or "probe" not in Path(f"/proc/{pid}/cmdline").read_text()


def test_a_probe_that_goes_on_after_its_last_word_keeps_nobody_waiting(tmp_path, monkeypatch):
    monkeypatch.setattr(execute, "END_S", 0.5)
    script = f'echo \'{HELLO}\'; echo \'{{"type":"end","elapsed_s":1.0}}\'; exec yes more'
    assert launch(tmp_path, script).launch.status == "ok"


@pytest.mark.parametrize(
    ("more", "at_least"),
    [
        ({"sweeps": 5, "visit_us": 2000, "sizes_bytes": [1 << n for n in range(22)]}, 60 + 22 * 13 * 0.02),
        # Bounded by what can be said without falling silent.
        ({"sweeps": 1, "sizes_bytes": [1 << 30]}, 60 + 30),
        ({"sweeps": 1000, "visit_us": 1_000_000, "sizes_bytes": [1, 2]}, 60 + 2000 * 10),
    ],
)
def test_the_limit_is_many_times_what_a_launch_may_take(more, at_least):
    limit = execute.limit_s(plan(**more))
    assert limit >= at_least
    assert limit <= 60 + execute.SILENCE_S * len(more["sizes_bytes"]) * (more["sweeps"] + 1)


def test_a_command_is_a_launch_of_one_value(tmp_path):
    words = {"op": "command", "transport": "command", "place": ("node01",), "sizes_bytes": [0]}
    found = launch(tmp_path, "", command=f"sleep 0.2; echo done >{tmp_path}/out; exit 0", **words)
    assert found.launch.status == "ok", found.launch.error
    assert (tmp_path / "out").read_text() == "done\n"
    (sample,) = found.samples
    assert (sample.cell.op, sample.cell.place, sample.iterations) == ("command", ("node01",), 1)
    assert sample.min_ns == sample.max_ns == sample.histogram[0][0] > 0.2e9
    failed = launch(tmp_path, "", command="echo no such input >&2; exit 4", **words)
    assert (failed.launch.status, failed.samples) == ("failed", [])
    assert "no such input" in failed.launch.error
    assert failed.output.stderr.endswith("no such input\n")


def test_a_command_says_what_it_took_and_what_it_printed(tmp_path):
    words = {"op": "run time", "transport": "command", "place": ("node01",), "sizes_bytes": [0]}
    busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo 'rate 1.25e14 of 3'; echo oops >&2"
    found = launch(tmp_path, "", command=busy, prints={"rate": r"rate (\S+)", "of": r"of (\d)"}, **words)
    assert found.launch.status == "ok", found.launch.error
    assert found.launch.usage.user_s + found.launch.usage.system_s == pytest.approx(
        found.samples[0].min_ns * 1e-9, rel=0.9
    )
    assert (found.output.stdout, found.output.stderr) == ("rate 1.25e14 of 3\n", "oops\n")
    values = {sample.cell.op: sample.histogram[0][0] * 1e-9 / sample.divisor for sample in found.samples[1:]}
    assert values == {"rate": pytest.approx(1.25e14, rel=1e-11), "of": pytest.approx(3.0, rel=1e-11)}


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("", "matches nothing in its output"),
        ("rate fast", "'fast', which is not a number"),
        ("rate 0", "rate is 0"),
    ],
)
def test_a_command_that_does_not_print_its_number_has_failed(tmp_path, printed, said):
    words = {"op": "run time", "transport": "command", "place": ("node01",), "sizes_bytes": [0]}
    found = launch(tmp_path, "", command=f"echo {printed}", prints={"rate": r"rate (\S+)"}, **words)
    assert (found.launch.status, found.samples) == ("failed", [])
    assert said in found.launch.error


def test_a_launcher_that_starts_nothing_was_ended_by_no_signal(tmp_path):
    words = {"op": "run time", "transport": "command", "place": ("node01",), "sizes_bytes": [0]}
    said = "mpirun was unable to launch the specified application as it could not access"
    found = launch(tmp_path, "", command=f"echo {said} >&2; exit 132", **words)
    assert f"exit code 132: {said}" in found.launch.error
    assert "exit code 132 (SIGILL)" in launch(tmp_path, "", command="exit 132", **words).launch.error


def test_an_expression_is_named_as_it_was_given(tmp_path):
    words = {"op": "run time", "transport": "command", "place": ("node01",), "sizes_bytes": [0]}
    found = launch(tmp_path, "", command="echo 3", prints={"rate": r"rate (\S+)"}, **words)
    assert r"'rate (\S+)' matches nothing" in found.launch.error


COMMAND = {"op": "run time", "transport": "command", "place": ("node01",), "sizes_bytes": [0]}
QUEUE = "sleep 0.4; sh $script >$output 2>&1"


def job(tmp_path: Path, text: str, template: str = "#!/bin/sh\n$command\n"):
    whole = batch.job(template, "job.sh", text, QUEUE, command.JOB_TIME)
    return launch(tmp_path, "", command=f"cd {tmp_path}\n{whole}", **COMMAND)


def test_a_job_is_timed_without_the_queue(tmp_path):
    template = (
        "#!/bin/sh\n#SBATCH --nodes=1\n# $command comes below\necho shell $$ here\nenv X=1 $command >log\n"
    )
    found = job(tmp_path, "sleep 0.1; echo done $X", template)
    assert found.launch.status == "ok", found.launch.error
    assert 0.1e9 < found.samples[0].min_ns < 0.4e9 < found.launch.duration_s * 1e9
    assert re.fullmatch(r"shell \d+ here\n\n", found.output.stdout)
    assert (tmp_path / "log").read_text() == "done 1\n"
    # What it took is what the queue's own command took: nobody is told that.
    assert found.launch.usage is None
    assert [path.name for path in tmp_path.iterdir() if "wulf-job" in path.name] == []


@pytest.mark.parametrize(
    ("text", "template", "said"),
    [
        # What comes after the command hides how it ended.
        ("exit 7", "#!/bin/sh\n$command\necho cleaned up\n", "exit code 7"),
        ("true", "#!/bin/sh\nfor i in 1 2; do $command; done\n", "the command ran 2 times in the job"),
        ("true", "#!/bin/sh\nexit 4\n$command\n", "the command ran 0 times in the job (exit code 4)"),
    ],
)
def test_a_job_that_did_not_run_the_command_once_and_well_has_failed(tmp_path, text, template, said):
    found = job(tmp_path, text, template)
    assert (found.launch.status, found.samples) == ("failed", [])
    assert said in found.launch.error


@pytest.mark.parametrize(
    ("template", "submit", "said"),
    [
        ("echo $command\n", batch.SUBMIT, "job.sh: a batch script begins with its interpreter"),
        ("#!/bin/sh\necho $commander\n", batch.SUBMIT, "job.sh: $command stands on 0 lines"),
        ("#!/bin/sh\n$command\n$command\n", batch.SUBMIT, "job.sh: $command stands on 2 lines"),
        ("#!/bin/sh\n${command}\n", "sbatch $script", "$output stands nowhere in it"),
    ],
)
def test_a_template_without_its_places_is_refused(template, submit, said):
    with pytest.raises(ConfigError, match=re.escape(said)):
        batch.job(template, "job.sh", "true", submit, command.JOB_TIME)


def test_what_a_command_leaves_running_is_ended_with_it(tmp_path):
    begin = time.monotonic()
    found = launch(tmp_path, "", command=f"sleep 333 & echo $! >{tmp_path}/child; echo 5", **COMMAND)
    assert found.launch.status == "ok", found.launch.error
    assert time.monotonic() - begin < 30
    child = (tmp_path / "child").read_text().strip()
    assert not Path(f"/proc/{child}").exists()


def test_any_bytes_may_be_printed_and_the_end_of_very_many_is_kept(tmp_path, monkeypatch):
    found = launch(tmp_path, "", command="printf 'Gr\\344\\337e 5\\n'", **COMMAND)
    assert found.launch.status == "ok", found.launch.error
    assert found.output.stdout.encode(errors="surrogateescape") == b"Gr\xe4\xdfe 5\n"
    monkeypatch.setattr(command, "OUTPUT_BYTES", 1000)
    found = launch(
        tmp_path, "", command="seq 10000; echo 'rate 7'", prints={"rate": r"rate (\S+)"}, **COMMAND
    )
    assert found.launch.status == "ok", found.launch.error
    assert found.output.stdout.endswith("9999\n10000\nrate 7\n") and len(found.output.stdout) < 1100


@pytest.mark.parametrize("text", ["sleep 333", "yes"])
def test_a_command_has_a_limit(text):
    transport = open_transport(local_cluster())
    begin = time.monotonic()
    try:
        ran = command.run(transport, "node01", text, {}, limit_s=0.5)
    finally:
        transport.close()
    assert time.monotonic() - begin < 10
    assert ran.nanoseconds is None and "it goes on and on" in ran.error


@pytest.mark.parametrize("there", [True, False])
def test_a_command_runs_where_wulf_was_started_or_says_where_it_was_looked_for(tmp_path, monkeypatch, there):
    mine = tmp_path / "my runs"
    mine.mkdir()
    (mine / "app").write_text("#!/bin/sh\npwd\n")
    (mine / "app").chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(mine)
    text = command.placed("./app", "ssh")
    # Whoever goes on with the run elsewhere, it stays where it was begun.
    monkeypatch.chdir(home)
    assert command.placed(text, "ssh") == text
    if not there:
        mine.rename(tmp_path / "elsewhere")
    transport = open_transport(local_cluster())
    try:
        ran = command.run(transport, "node01", text, {"HOME": str(home)})
    finally:
        transport.close()
    if there:
        assert (ran.error, ran.output.stdout) == ("", f"{mine}\n")
    else:
        assert ran.error.startswith("'./app': exit code 127: ")
        assert f"node01 has none in {mine} (or the home, without that directory)" in ran.error


def test_a_directory_that_was_named_is_where_a_command_runs():
    assert command.placed("./app", "local") == "./app"
    assert command.placed("./app", "ssh", "/opt/a b") == "cd '/opt/a b' || exit\n./app"
    assert command.asked(command.placed("./app -x", "ssh")) == "./app -x"
    assert command.placed("", "ssh") == ""


def test_a_command_that_is_killed_has_failed_and_its_output_is_kept(tmp_path):
    found = launch(tmp_path, "", command="echo begun; echo why >&2; kill -9 $PPID; sleep 1", **COMMAND)
    assert found.launch.status == "failed" and found.output.stdout.startswith("begun\n")
    assert "why" in found.launch.error


LOST = '{"type":"error","code":"peer_lost","peer":"node03","message":"node03 has not answered for 10 s"}'
SOMEBODY = LOST.replace("node03", "one of the other ranks")
CAUSE = LOST.replace("peer_lost", "trace").replace("node03 has not answered for 10 s", "the trace ends early")


@pytest.mark.parametrize(
    ("place", "script", "said"),
    [
        # The launcher ended the first rank before it could say a word.
        (
            ("node01", "node02"),
            f"echo 'mpirun: aborted' >&2; echo '{LOST}' >&2; echo 'bye' >&2",
            "node03 has not",
        ),
        (("node01", "node02"), "echo 'mpirun: aborted' >&2", "ended early: mpirun: aborted"),
        # The first of many ranks does not know which one it was; of two it knows better.
        (
            ("node01", "node02", "node03", "node04"),
            f"echo '{LOST}' >&2; sleep 0.2; echo '{SOMEBODY}'",
            "node03 has not",
        ),
        (("node01", "node02"), f"echo '{SOMEBODY}' >&2; sleep 0.2; echo '{LOST}'", "node03 has not"),
        # A rank that was ended with the others knows no cause, whichever of them it is.
        (("node01", "node02"), f"echo '{CAUSE}' >&2; sleep 0.2; echo '{LOST}'", "the trace ends early"),
        (("node01", "node02"), f"echo '{LOST}' >&2; sleep 0.2; echo '{CAUSE}'", "the trace ends early"),
        (
            ("node01", "node02", "node03", "node04"),
            f"echo '{LOST}' >&2; sleep 0.2; echo '{CAUSE}'",
            "the trace ends early",
        ),
    ],
)
def test_who_knows_most_of_a_failure_is_heard(tmp_path, place, script, said):
    found = launch(tmp_path, f"echo '{HELLO}'; {script}", place=place)
    assert found.launch.status == "failed"
    assert said in found.launch.error

"""``wulf program trace`` as a user runs it, on this machine."""

from __future__ import annotations

import itertools
import json
import shlex
import shutil
import subprocess

import pytest

from tests.cli.command import wulf
from tests.native.conftest import EACH_FAMILY
from wulf.base.trace.layout import Kind, State
from wulf.base.trace.reader import read, read_verified
from wulf.base.trace.summary import summary
from wulf.base.trace.writer import StreamWriter, write_container
from wulf.node.replay import patterns, program_traces


def mpirun(family: str) -> list[str]:
    launcher = shutil.which(f"mpirun.{family}")
    if launcher is None:
        pytest.skip(f"{family} is not installed")
    more = ["--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
    return [launcher, *(more if family == "openmpi" else ["-launcher", "fork"])]


@pytest.mark.mpi
@pytest.mark.parametrize("family", ["openmpi", "mpich"])
def test_a_program_is_traced_shown_and_exported(tmp_path, family):
    words = [*mpirun(family), "-np", "2"]
    heat = wulf(tmp_path, "program", "shipped", "heat", "--cluster", "local", "--mpi", family).stdout.strip()
    done = wulf(tmp_path, "program", "trace", "-o", "heat.wtrace", "--", *words, heat, "--steps", "20")
    assert done.returncode == 0, done.stderr
    said = dict(
        line.split(maxsplit=1) for line in done.stdout.splitlines() if line.startswith(("mess", "bytes"))
    )
    assert "run_time_s" in done.stdout and "Calls, those with most time first" in done.stdout
    trace = read(tmp_path / "heat.wtrace")
    assert [stream.state for stream in trace.streams] == [State.FINISHED] * 2
    assert f"{family}" in trace.note["command"]
    shown = json.loads(wulf(tmp_path, "program", "trace", "show", "heat.wtrace", "--json").stdout)
    assert sum(pair["count"] for pair in shown["pairs"]) == int(said["messages"]) == 20 * 2 * 2
    assert sum(pair["bytes"] for pair in shown["pairs"]) == int(said["bytes"])
    assert {(pair["source"], pair["destination"]) for pair in shown["pairs"]} == {(0, 1), (1, 0)}
    for rank in shown["ranks"]:
        assert 0 < rank["mpi_s"] + rank["compute_s"] <= rank["run_s"] * 1.001
    page = wulf(tmp_path, "program", "trace", "show", "heat.wtrace", "--html", "heat.html")
    assert page.returncode == 0 and "sendrecv" in page.stdout
    written = (tmp_path / "heat.html").read_text()
    assert '<h1 id="title">heat.wtrace: ' in written and "trace-timeline" in written
    exported = wulf(tmp_path, "program", "trace", "export", "heat.wtrace", "--to", "goal", "-o", "goal")
    assert exported.returncode == 0 and (tmp_path / "goal" / "heat.goal").stat().st_size > 0


@pytest.mark.mpi
def test_launches_are_traced_again_and_said_to_differ(tmp_path):
    heat = wulf(
        tmp_path, "program", "shipped", "heat", "--cluster", "local", "--mpi", "openmpi"
    ).stdout.strip()
    words = [*mpirun("openmpi"), "-np", "2", heat, "--steps", "20"]
    done = wulf(tmp_path, "program", "trace", "-o", "heat.wtrace", "--again", "2", "--", *words)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.glob("*.wtrace")) == [
        "heat-2.wtrace",
        "heat-3.wtrace",
        "heat.wtrace",
    ]
    assert "3 launches took " in done.stderr
    assert "predict heat.wtrace --again heat-2.wtrace --again heat-3.wtrace --on RUN" in done.stderr
    chosen, own = program_traces.usual(
        tmp_path / "heat.wtrace", [tmp_path / "heat-2.wtrace", tmp_path / "heat-3.wtrace"]
    )
    assert own.is_told and chosen.suffix == ".wtrace"
    failed = wulf(
        tmp_path, "program", "trace", "-o", "f.wtrace", "--again", "2", "--", f"{shlex.join(words)}; exit 7"
    )
    assert failed.returncode == 7 and not (tmp_path / "f-2.wtrace").exists()


@pytest.mark.mpi
def test_a_trace_is_summed_up_as_a_pattern_with_the_same_messages(tmp_path):
    heat = wulf(
        tmp_path, "program", "shipped", "heat", "--cluster", "local", "--mpi", "openmpi"
    ).stdout.strip()
    words = [*mpirun("openmpi"), "-np", "3", heat, "--steps", "20"]
    assert wulf(tmp_path, "program", "trace", "-o", "heat.wtrace", "--", *words).returncode == 0
    done = wulf(tmp_path, "program", "trace", "pattern", "heat.wtrace", "-o", "heat.toml")
    assert done.returncode == 0, done.stderr
    document = patterns.read(str(tmp_path / "heat.toml"))
    assert document.pattern.ranks == 3 and document.pattern.program[0].iterations == 20
    (tmp_path / "made").mkdir()
    made = summary(read(patterns.pattern_trace(tmp_path / "heat.toml", None, tmp_path / "made")))
    told = summary(read(tmp_path / "heat.wtrace"))

    def loads(of):
        return {(one.source, one.destination): (one.count, one.bytes) for one in of.pairs}

    assert loads(made) == loads(told)
    computing = sum(rank.compute_s for rank in told.ranks)
    assert sum(rank.compute_s for rank in made.ranks) == pytest.approx(computing, rel=1e-3)
    assert (
        wulf(tmp_path, "program", "emulate", "heat.toml", "--dry-run", "--cluster", "local").returncode == 0
    )


@pytest.mark.mpi
def test_the_exit_code_is_that_of_the_command(tmp_path):
    heat = wulf(
        tmp_path, "program", "shipped", "heat", "--cluster", "local", "--mpi", "openmpi"
    ).stdout.strip()
    text = f"{' '.join(mpirun('openmpi'))} -np 1 $(echo {heat}) --steps x; exit 7"
    done = wulf(tmp_path, "program", "trace", "--", text)
    assert done.returncode == 7, done.stderr
    assert read(tmp_path / "app.wtrace").ranks == 1


@pytest.mark.mpi
@pytest.mark.parametrize("family", EACH_FAMILY)
def test_a_launcher_that_is_killed_leaves_what_its_ranks_did(tmp_path, family):
    launch = shlex.join([*mpirun(family), "-np", "2"])
    heat = wulf(tmp_path, "program", "shipped", "heat", "--cluster", "local", "--mpi", family).stdout.strip()
    # When the files of both ranks have more than their first 256 KiB, which are there at once.
    grown = """until [ "$(find "$WULF_TRACE" -name 'rank.*' -size +300k | wc -l)" = 2 ]; do sleep 0.1; done"""
    text = f"{launch} {heat} --rows 64 --columns 1 --steps 20000000 & {grown}; kill -9 $!; exit 9"
    done = wulf(tmp_path, "program", "trace", "--mpi", family, "--", text)
    assert done.returncode == 9, done.stderr
    trace = read_verified(tmp_path / "app.wtrace")
    assert [stream.state for stream in trace.streams] == [State.RUNNING] * 2
    for stream in trace.streams:
        kinds = {record.kind for record in itertools.islice(stream.records(), 100)}
        assert Kind.SENDRECV in kinds and len(stream.slots) > 100
    assert "cut off: 2 ranks did not reach MPI_Finalize" in " ".join(done.stdout.split())


@pytest.mark.mpi
def test_a_limit_that_holds_nothing_is_refused_before(tmp_path):
    done = wulf(tmp_path, "program", "trace", "--limit", "1KiB", "--", "touch here")
    assert done.returncode == 1 and "--limit: a rank's file takes 64 KiB at least" in done.stderr
    assert not (tmp_path / "here").exists()


def test_a_command_without_mpi_is_told(tmp_path):
    done = wulf(tmp_path, "program", "trace", "--", "true")
    assert done.returncode == 1 and "no rank left a stream" in done.stderr, done.stderr
    assert "names no program with an MPI library" in done.stderr
    assert not (tmp_path / "app.wtrace").exists()


@pytest.mark.mpi
def test_why_there_is_no_trace_is_said(tmp_path):
    if not shutil.which("mpicc.mpich"):
        pytest.skip("mpich is not installed")
    (tmp_path / "a.c").write_text("#include <mpi.h>\nint main(void) { return MPI_VERSION == 0; }\n")
    (tmp_path / "s.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["mpicc.mpich", "-Wl,--no-as-needed", "a.c", "-o", "a"], cwd=tmp_path, check=True)
    subprocess.run(["gcc", "-static", "s.c", "-o", "static"], cwd=tmp_path, check=True)
    shutil.copy(tmp_path / "static", tmp_path / "own")
    (tmp_path / "own").chmod(0o4755)
    (tmp_path / "script").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "script").chmod(0o755)
    for words, said in {
        ("--mpi", "openmpi", "--", "./a"): "a is linked with mpich, the tracer with Open MPI",
        ("--mpi", "mpich", "--", "./a"): "the tracer saw no MPI_Init",
        ("--", "./static"): "static is linked statically: no library can be loaded before it",
        ("--", "./own"): "own is setuid or setgid",
        ("--", "./script"): "exit code 3; a script must start programs with",
    }.items():
        done = wulf(tmp_path, "program", "trace", *words)
        assert done.returncode == 1 and said in " ".join(done.stderr.split()), done.stderr


@pytest.mark.mpi
def test_another_library_than_the_tracers_is_told_by_the_rank(tmp_path):
    heat = wulf(tmp_path, "program", "shipped", "heat", "--cluster", "local", "--mpi", "mpich").stdout.strip()
    words = [*mpirun("mpich"), "-np", "2", heat, "--steps", "5"]
    done = wulf(tmp_path, "program", "trace", "--mpi", "openmpi", "--", *words)
    assert "the program runs with MPICH" in done.stderr and "this tracer is for Open MPI" in done.stderr
    assert done.stderr.count("nothing is traced") == 1
    assert "run_time_s" in done.stdout


def test_what_cannot_be_is_refused(tmp_path):
    (tmp_path / "a.wtrace").write_text("no trace")
    for words, said in {
        ("-o", "nowhere/a.wtrace", "--", "true"): "there is no directory nowhere",
        ("-o", ".", "--", "true"): "cannot write .: it is a directory",
        ("show", "a.wtrace"): "a.wtrace: not a trace",
        ("show", "b.wtrace"): "cannot read b.wtrace",
        ("--limit", "many", "--", "true"): "many",
        ("export", "a.wtrace", "--to", "goal", "-o", "a.wtrace"): "not a directory",
    }.items():
        done = wulf(tmp_path, "program", "trace", *words)
        assert done.returncode in (1, 2) and said in done.stderr, done.stderr
        assert "Traceback" not in done.stderr


def test_persistent_messages_communicators_and_what_died_are_summed_up(tmp_path):
    writer = StreamWriter(0, 2, host="node01", library="Some MPI", program="./a")
    writer.communicator(2, [1, 0], rank=1)
    writer.add(Kind.SEND_INIT, comm=2, peer=0, bytes=100, request=1)
    for _ in range(3):
        writer.add(Kind.START, comm=2, request=1)
        writer.add(Kind.WAIT, comm=2, request=1, call_ns=2**33)
    writer.add(Kind.OTHER, payload=b"MPI_Win_create", call_ns=5)
    write_container(tmp_path / "a.wtrace", {}, [writer.finish(10**12), b""])
    done = wulf(tmp_path, "program", "trace", "show", "a.wtrace", "--json")
    shown = json.loads(done.stdout)
    # Rank 0 of the communicator is rank 1 of all.
    assert shown["pairs"] == [{"source": 0, "destination": 1, "count": 3, "bytes": 300}]
    assert shown["sizes"] == [{"below_bytes": 128, "count": 3, "bytes": 300}]
    calls = {one["call"]: one for one in shown["calls"]}
    assert calls["wait"]["seconds"] == pytest.approx(3 * 2**33 * 1e-9) and calls["wait"]["count"] == 3
    assert calls["MPI_Win_create"]["count"] == 1
    assert [rank["state"] for rank in shown["ranks"]] == ["finished", "running"]
    assert (
        "cut off: 1 rank did not reach MPI_Finalize"
        in wulf(tmp_path, "program", "trace", "show", "a.wtrace").stdout
    )

"""A run on this machine, from the command line to the report."""

import csv
import io
import json
import os
import re
import signal
import time
from datetime import datetime

import msgspec
import pytest

import wulf as library
from tests.cli.command import start, wulf
from tests.cli.waiting import HANGS_S, wait_for_launches
from tests.tiers import thorough
from wulf.base.errors import UsageError
from wulf.base.records import Analysis, Comparison
from wulf.tools.measure.page.export import Export

QUICK = [
    "--cluster",
    "local",
    "--ops",
    "tcp_rr",
    "--ladder",
    "short",
    "--max-size",
    "192",
    "--precision",
    "90%",
]
QUICK += ["--budget", "60s", "--visit", "200us", "--sweeps", "3", "--max-launches", "8"]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Two runs in one directory."""
    directory = tmp_path_factory.mktemp("measured")
    for name in ("first", "second"):
        done = wulf(directory, "measure", "--run", name, *QUICK, "--seed", "7")
        assert done.returncode in (0, 3), done.stderr
        assert "tcp_rr" in done.stdout
        assert f"run: {directory}/runs/{name}" in done.stdout
        assert "measuring" in done.stderr
    return directory


def test_runs_are_listed(measured):
    shown = wulf(measured, "runs", "list").stdout
    assert "first" in shown
    entries = json.loads(wulf(measured, "runs", "list", "--json").stdout)
    assert [entry["run"] for entry in entries] == ["first", "second"]
    assert all(entry["status"] in ("complete", "budget") and entry["launches"] >= 6 for entry in entries)


def test_text_json_csv_and_python_tell_the_same(measured):
    text = wulf(measured, "report", "first", "--text")
    assert text.returncode == 0
    assert "half round trip" in text.stdout
    assert "\x1b" not in text.stdout
    whole = msgspec.json.decode(wulf(measured, "report", "first", "--json").stdout, type=Export)
    rows = list(csv.DictReader(io.StringIO(wulf(measured, "report", "first", "--csv").stdout)))
    columns = library.load(measured / "runs" / "first").columns("cells")
    assert [cell.cell.size_bytes for cell in whole.analysis.cells] == [4, 64, 128, 192]
    assert [float(row["time_s"]) for row in rows] == [cell.time.value for cell in whole.analysis.cells]
    assert columns["time_s"] == [cell.time.value for cell in whole.analysis.cells]
    assert whole.manifest.plan.seed == 7
    assert "--seed" in whole.manifest.command_line


def test_the_secret_of_a_launch_is_on_no_command_line(measured):
    for launch in library.load(measured / "runs" / "first").launches:
        assert "--token-stdin" in launch.argv
        assert "--token" not in launch.argv


def test_page_is_written_into_the_run(measured):
    done = wulf(measured, "report", "first")
    page = measured / "runs" / "first" / "report.html"
    assert done.stdout == f"report: {page}\n"
    assert "tcp_rr" in page.read_text(encoding="utf-8")
    elsewhere = measured / "page.html"
    assert wulf(measured, "report", "first", "--html", "-o", str(elsewhere)).returncode == 0
    assert elsewhere.stat().st_size > 100_000


HOST_PLAN = """
title = "every CPU, and two sleeps"
[[experiment]]
op = "wake:10"
name = "wake_after_10us"
sizes = [0]
[[experiment]]
op = "wake:1000"
name = "wake_after_1ms"
sizes = [0]
[[experiment]]
op = "noise_on"
name = "noise_cpu{cpu}"
sizes = [0]
each_cpu = true
"""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """A run of what this machine does by itself."""
    directory = tmp_path_factory.mktemp("hosts")
    (directory / "host.toml").write_text(HOST_PLAN, encoding="utf-8")
    options = ["--cluster", "local", "--plan", "host.toml", "--precision", "90%"]
    options += ["--budget", "90s", "--sweeps", "3", "--max-launches", "6"]
    told = wulf(directory, "measure", "--run", "later", *options, "--dry-run")
    assert told.returncode == 0, told.stderr
    assert not (directory / "runs" / "later").exists()
    done = wulf(directory, "measure", "--run", "host", *options, timeout=300)
    assert done.returncode in (0, 3), done.stderr
    assert "\nHosts\n" in done.stdout, "what would make them quieter is said at once"
    return directory


def test_every_cpu_of_this_machine_is_watched(hosts):
    whole = msgspec.json.decode(wulf(hosts, "report", "host", "--json").stdout, type=Export)
    assert [host.node for host in whole.analysis.hosts] == ["local1", "local2"]
    for host in whole.analysis.hosts:
        assert [cpu.cpu for cpu in host.cpus] == sorted(os.sched_getaffinity(0))[: len(host.cpus)]
        assert len(host.cpus) == min(len(os.sched_getaffinity(0)), 64)
        assert [round(wake.gap_s * 1e6) for wake in host.wakes] == [10, 1000]
        assert host.clock.cost.value > 0 and host.quiet_width is None
        for cpu in host.cpus:
            assert cpu.taken.value > 0 and cpu.watched_s > 0.05 and len(cpu.detours) == 5
    asked = {operation.name: operation.asked for operation in whole.manifest.operations}
    assert asked["noise_cpu0"] == "noise_on:0" or 0 not in os.sched_getaffinity(0)


def test_hosts_are_in_the_text(hosts):
    text = wulf(hosts, "report", "host", "--text").stdout
    assert "Detours of fixed work by CPU, noisiest first" in text
    assert "late after 10.0 µs of sleep" in text


@pytest.mark.thorough
def test_hosts_are_in_page_and_charts(hosts):
    page = hosts / "runs" / "host" / "report.html"
    assert wulf(hosts, "report", "host").returncode == 0
    assert "Detours of fixed work by CPU, noisiest first" in page.read_text(encoding="utf-8")
    assert "hosts-detours.svg" in wulf(hosts, "report", "host", "--svg").stdout


def test_a_plan_that_each_cpu_does_not_go_with_names_the_file(hosts):
    (hosts / "wrong.toml").write_text(HOST_PLAN.replace('"noise_on"', '"empty"'), encoding="utf-8")
    done = wulf(hosts, "measure", "--run", "wrong", "--cluster", "local", "--plan", "wrong.toml")
    assert done.returncode == 2
    assert "wrong.toml: experiment 3 (empty): each_cpu: empty is not performed on a given CPU" in done.stderr


def test_analysis_is_made_again_the_same(measured):
    stored = (measured / "runs" / "first" / "analysis.json").read_bytes()
    again = library.analyze(library.load(measured / "runs" / "first"))
    assert again == msgspec.json.decode(stored, type=Analysis)
    assert (measured / "runs" / "first" / "analysis.json").read_bytes() == stored


def test_compare_gives_a_verdict(measured):
    done = wulf(measured, "compare", "first", "second", "--json")
    (comparison,) = msgspec.json.decode(done.stdout, type=list[Comparison])
    cannot_tell = bool(comparison.untold) or not comparison.cells
    assert done.returncode == (3 if comparison.verdict in ("worse", "mixed") or cannot_tell else 0)
    assert len(comparison.cells) == 4
    shown = wulf(measured, "compare", "first", "second", "--html", "comparison.html")
    assert comparison.verdict in shown.stdout.lower()
    assert (measured / "comparison.html").is_file()


def test_a_complete_run_cannot_be_resumed_and_a_name_not_taken_twice(measured):
    status = library.load(measured / "runs" / "first").manifest.status
    if status == "complete":
        done = wulf(measured, "measure", "--resume", "first")
        assert done.returncode == 2
        assert "complete" in done.stderr
    again = wulf(measured, "measure", "--run", "first", *QUICK)
    assert again.returncode == 2
    assert "exists already" in again.stderr


def test_facts_and_versions_are_kept(measured):
    run = library.load(measured / "runs" / "first")
    assert {node.node for node in run.nodes} == {"local1", "local2"}
    assert all(node.facts["kernel.release"] for node in run.nodes)
    assert run.manifest.software["probe_net_sha256"]
    launch = run.launches[0]
    assert launch.probe.clock.cost_ns > 0
    assert [context.node for context in launch.context] == ["local1", "local2"]
    assert all(context.load1 is not None for context in launch.context)


LONG = [
    "--cluster",
    "local",
    "--ops",
    "tcp_rr",
    "--ladder",
    "short",
    "--max-size",
    "192",
    "--precision",
    "0.01%",
]
LONG += [
    "--budget",
    "10m",
    "--visit",
    "200us",
    "--sweeps",
    "3",
    "--min-launches",
    "16",
    "--max-launches",
    "16",
]


@pytest.mark.parametrize(
    ("how", "code", "status"),
    [
        (signal.SIGINT, 130, "interrupted"),
        thorough(signal.SIGTERM, 130, "interrupted"),
        thorough(signal.SIGKILL, -9, "running"),
    ],
)
def test_an_interrupted_run_goes_on_where_it_was(tmp_path, how, code, status):
    process = start(tmp_path, "measure", "--run", "run", *LONG)
    wait_for_launches(tmp_path / "runs" / "run", 2, process)
    process.send_signal(how)
    _, err = process.communicate(timeout=HANGS_S)
    assert process.returncode == code, err
    before = library.load(tmp_path / "runs" / "run")
    assert before.manifest.status == status
    assert 1 <= len(before.launches) < 16
    if how != signal.SIGKILL:
        assert "--resume" in err
    done = wulf(tmp_path, "measure", "--resume", "run")
    assert done.returncode == 3, done.stderr
    after = library.load(tmp_path / "runs" / "run")
    assert [launch.id for launch in after.launches[: len(before.launches)]] == [x.id for x in before.launches]
    assert len(after.launches) == 16
    assert len({launch.seed for launch in after.launches}) == 16
    assert len(after.manifest.resumed_at) == 1


def test_two_writers_are_refused(tmp_path):
    process = start(
        tmp_path, "measure", "--run", "run", *LONG, "--min-launches", "500", "--max-launches", "500"
    )
    try:
        wait_for_launches(tmp_path / "runs" / "run", 1, process)
        done = wulf(tmp_path, "measure", "--resume", "run")
        assert done.returncode == 1
        assert str(process.pid) in done.stderr
    finally:
        process.kill()
        process.communicate()


def test_a_command_goes_the_way_of_an_operation(tmp_path):
    words = ["--cluster", "local", "--command", "sleep 0.05", "--precision", "50%", "--max-launches", "7"]
    for name in ("a", "b"):
        done = wulf(tmp_path, "measure", "--run", name, *words)
        assert done.returncode in (0, 3), done.stderr
        assert "run time: " in done.stdout, done.stdout
    run = library.load(tmp_path / "runs" / "a")
    assert {(launch.op, len(launch.place)) for launch in run.launches} == {("command", 1)}
    (cell,) = run.analysis().cells
    assert cell.time.value > 0.05 and cell.time.low is not None and cell.bandwidth is None
    (comparison,) = json.loads(wulf(tmp_path, "compare", "a", "b", "--json").stdout)
    assert [cell["op"] for cell in comparison["cells"]] == ["command"]
    assert "sleep 0.05" in wulf(tmp_path, "report", "a", "--text").stdout
    failing = wulf(
        tmp_path, "measure", "--run", "c", "--cluster", "local", "--command", "echo lost >&2; exit 1"
    )
    assert failing.returncode == 1 and "lost" in failing.stderr


PLAN = """
title = "requests beside traffic"
[[experiment]]
op = "tcp_rr"
sizes = [64]
[[experiment]]
op = "tcp_rr"
foreign = true
sizes = [64]
"""
FEW = ["--precision", "90%", "--min-launches", "6", "--max-launches", "6", "--budget", "60s"]


@pytest.mark.thorough
def test_requests_beside_traffic_of_other_pairs(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "four.toml").write_text('[cluster]\nnodes = "n[1-4]"\ntransport = "local"\n')
    words = ["--plan", "plan.toml", "--pairs", "n1:n2,n3:n4", *FEW, "--visit", "20ms"]
    done = wulf(tmp_path, "measure", "--run", "run", "--cluster", "four.toml", *words)
    assert done.returncode in (0, 3), done.stderr
    run = library.load(tmp_path / "runs" / "run")
    assert [launch.error for launch in run.launches if launch.error] == []
    streamed = {(launch.op, launch.place): [one.pair for one in launch.beside] for launch in run.launches}
    assert streamed == {
        ("tcp_rr", ("n1", "n2")): [],
        ("tcp_rr", ("n3", "n4")): [],
        ("tcp_rr_beside_traffic", ("n1", "n2")): [("n3", "n4")],
        ("tcp_rr_beside_traffic", ("n3", "n4")): [("n1", "n2")],
    }
    loads = run.analysis().loads
    assert {(one.op, one.base) for one in loads} == {("tcp_rr_beside_traffic", "tcp_rr")}
    assert "p50" in {one.quantile for one in loads} and all(one.ratio.low is not None for one in loads)
    text = " ".join(wulf(tmp_path, "report", "run", "--text").stdout.split())
    assert "Under load, and beside traffic" in text
    assert "Beside tcp_rr_beside_traffic 1 other pair streamed at" in text
    columns = run.columns("launches")
    assert {one for one in columns["beside"] if one} == {"n1:n2", "n3:n4"}


def test_two_nodes_leave_nobody_to_stream(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    done = wulf(tmp_path, "measure", "--run", "run", "--cluster", "local", "--plan", "plan.toml", *FEW)
    assert done.returncode == 3, done.stderr
    said = " ".join(done.stderr.split())
    assert "left out of tcp_rr_beside_traffic: local[1-2]: it leaves 0 of 2 nodes free" in said
    assert {launch.op for launch in library.load(tmp_path / "runs" / "run").launches} == {"tcp_rr"}
    (tmp_path / "alone.toml").write_text('title = "x"\n[[experiment]]\nop = "tcp_rr"\nforeign = true\n')
    for more in ([], ["--dry-run"]):
        done = wulf(tmp_path, "measure", "--run", "none", "--cluster", "local", "--plan", "alone.toml", *more)
        assert done.returncode == 1
        assert "background traffic needs two: name more nodes" in done.stderr
    assert not (tmp_path / "runs" / "none").exists()


EVERY = ["--cluster", "local", "--ops", "empty", "--every", "2s", "--for", "8s", "--sweeps", "3"]


@pytest.mark.thorough
def test_a_series_is_measured_block_by_block(tmp_path):
    planned = wulf(tmp_path, "measure", *EVERY, "--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert "4 blocks, one every 2 s until" in planned.stdout and "one launch each" in planned.stdout
    done = wulf(tmp_path, "measure", "--run", "run", *EVERY)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.split())
    assert "4 blocks, one every 2 s until" in said and re.search("block [234] of 4 begins at", said)
    run = library.load(tmp_path / "runs" / "run")
    assert run.manifest.status == "complete" and run.manifest.plan.series.time_zone
    begun = datetime.fromisoformat(run.manifest.plan.series.begun_at)
    at = [(datetime.fromisoformat(launch.started_at) - begun).total_seconds() for launch in run.launches]
    nodes = [launch.place for launch in run.launches]
    assert all(launch.utc_offset_s is not None for launch in run.launches)
    assert nodes.count(("local1",)) == nodes.count(("local2",)) >= 2
    # Two launches a block, and none of them before it is due; blocks may be late, or missed.
    assert all(seconds >= 2 * (number // 2) for number, seconds in enumerate(at))
    hours = {one.period for one in run.analysis().periods} - {"weekday", "weekend"}
    assert 1 <= len(hours) <= 2
    shown = " ".join(wulf(tmp_path, "report", "run", "--text").stdout.split())
    assert "By day and hour" in shown
    assert wulf(tmp_path, "report", "run").returncode == 0


@pytest.mark.thorough
def test_a_series_is_interrupted_in_its_pause_and_goes_on(tmp_path):
    words = ["--cluster", "local", "--command", "true", "--every", "8s", "--for", "38s"]
    process = start(tmp_path, "measure", "--run", "run", *words)
    assert process.stderr is not None
    assert any("block 2 of 5" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=HANGS_S)
    assert process.returncode == 130 and "--resume" in err, err
    before = library.load(tmp_path / "runs" / "run")
    assert before.manifest.status == "interrupted" and len(before.launches) == 1
    refused = wulf(tmp_path, "measure", "--resume", "run", "--budget", "1m")
    assert refused.returncode == 2 and "takes no --budget" in refused.stderr
    begun = datetime.fromisoformat(before.manifest.plan.series.begun_at).timestamp()
    time.sleep(max(begun + 9 - time.time(), 0))  # the second block is missed
    done = wulf(tmp_path, "measure", "--resume", "run")
    assert done.returncode == 0, done.stderr
    after = library.load(tmp_path / "runs" / "run")
    assert after.manifest.status == "complete"
    assert after.manifest.plan.series == before.manifest.plan.series
    assert 2 <= len(after.launches) < 5, "what was missed is not made up for"
    over = wulf(tmp_path, "measure", "--resume", "run")
    assert over.returncode == 2 and "complete" in over.stderr


def test_operations_are_listed(tmp_path):
    done = wulf(tmp_path, "measure", "--ops", "list")
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert {"tcp_rr", "udp_rr", "tcp_stream", "empty"} <= lines.keys()
    assert "ping-pong" in lines["tcp_rr"] and "half round trip" in lines["tcp_rr"]


def test_python_does_what_the_command_line_does(tmp_path, caplog):
    place = tmp_path / "run"
    wanted = {"ops": ["tcp_rr"], "ladder": "short", "max_size_bytes": 64, "max_launches": 6}
    with caplog.at_level("INFO", logger="wulf"):
        run = library.measure("local", place, precision=0.9, budget_s=30, **wanted)
    assert "measuring" in caplog.messages
    assert library.load(place).manifest == run.manifest
    assert set(run.columns("cells")["op"]) == {"tcp_rr"}
    with pytest.raises(UsageError, match="exists already"):
        library.measure("local", place, **wanted)
    audit = library.audit("local", profile="latency")
    assert audit.profile == "latency" and audit.findings
    with pytest.raises(UsageError, match="profile='speed': one of latency, throughput, hpc"):
        library.audit("local", profile="speed")
    with pytest.raises(UsageError, match="nothing to try"):
        library.tune("local", tmp_path / "tuned", objective="app: true", knobs=["nic.mtu"])
    assert not (tmp_path / "tuned").exists()

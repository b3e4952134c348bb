"""The run directory: what is written is read back, whatever happened in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import wulf
from tests.unit.make_records import manifest, node, result, workload
from wulf.base import store
from wulf.base.errors import StoreError
from wulf.base.records import SCHEMA_VERSION, Manifest
from wulf.base.store.migrations import migrate
from wulf.node.measuring.analysis import analyze

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "run"
    with store.create(path, manifest()) as writer:
        writer.append(node())
        for index in range(3):
            writer.append(result(index))
    return path


def test_round_trip(run):
    read = store.load(run)
    assert read.manifest == manifest()
    assert read.nodes == [node()]
    assert read.results == [result(index) for index in range(3)]
    assert read.truncated_bytes == 0


@pytest.mark.parametrize("cut", [1, 10, 500])
def test_an_unfinished_last_line_is_cut_and_the_rest_kept(run, cut):
    log = run / store.RECORDS
    os.truncate(log, log.stat().st_size - cut)
    read, writer = store.resume(run)
    with writer:
        assert read.results == [result(0), result(1)]
        assert read.truncated_bytes > 0
        writer.append(result(7))
    again = store.load(run)
    assert again.results == [result(0), result(1), result(7)]
    assert again.truncated_bytes == 0


def test_damage_elsewhere_names_file_and_line(run):
    log = run / store.RECORDS
    lines = log.read_bytes().splitlines(keepends=True)
    lines[1] = b'{"type":"launch","launch":17}\n'
    log.write_bytes(b"".join(lines))
    with pytest.raises(StoreError, match=r"records\.jsonl, line 2"):
        store.load(run)


def test_only_one_writer(run):
    _, writer = store.resume(run)
    with writer, pytest.raises(StoreError, match=str(os.getpid())):
        store.resume(run)


def test_an_existing_directory_is_not_overwritten(run):
    with pytest.raises(StoreError, match="exists already"):
        store.create(run, manifest())
    assert len(store.load(run).results) == 3


def test_a_newer_version_is_refused(tmp_path):
    path = tmp_path / "new"
    with store.create(path, manifest(schema_version=99)):
        pass
    with pytest.raises(StoreError, match="newer wulf"):
        store.load(path)


def test_not_a_run(tmp_path):
    with pytest.raises(StoreError, match="not a run directory"):
        store.load(tmp_path)


def test_version_1_still_loads():
    read = store.load(GOLDEN / "run-v1")
    assert read.manifest.schema_version == SCHEMA_VERSION
    (operation,) = read.manifest.operations
    assert (operation.pattern, operation.quantity, operation.moves_bytes) == (
        "ping-pong",
        "half round trip",
        True,
    )
    assert len(read.results) == 2
    assert read.results[0].samples[0].cell.size_bytes == 64
    assert read.manifest.plan.workload == workload()


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("mpi_pingpong 64 B", ("mpi_pingpong", 64, "median")),
        ("mpi_pingpong 64 KiB", ("mpi_pingpong", 65536, "median")),
        ("mpi_pingpong 1 B p99", ("mpi_pingpong", 1, "p99")),
        ("tcp stream 65537 B", ("tcp stream", 65537, "median")),
        ("run time", None),
        ("HPL", None),
        ("b_eff 3 GB/s", None),
    ],
)
def test_a_metric_of_version_1_was_told_by_its_name(metric, expected):
    cycle = {"probes": [], "commands": [], "pairs": [], "sweeps": 5, "visit_us": 1000}
    plan = {"metrics": [{"name": metric}]}
    old = {"schema_version": 1, "nodes": ["a"], "operations": [], "cycle": cycle, "plan": plan}
    (found,) = migrate("tuning", old, 1)["plan"]["metrics"]
    assert (found["figure"] and tuple(found["figure"].values())) == expected


@pytest.mark.parametrize(
    "head", [{}, {"plan": []}, {"plan": {"ops": ["x"]}}, {"plan": 1, "operations": 2}, {"operations": [3]}]
)
@pytest.mark.parametrize("kind", ["manifest", "tuning"])
def test_a_damaged_head_of_version_1_is_named(tmp_path, head, kind):
    file = tmp_path / {"manifest": "manifest.json", "tuning": "tuning.json"}[kind]
    file.write_bytes(msgspec.json.encode({"schema_version": 1, **head}))
    with pytest.raises(StoreError, match=file.name):
        wulf.load(tmp_path)


def test_find_by_path_name_beginning_and_latest(run, tmp_path):
    assert store.find_run(str(run), tmp_path) == run
    assert store.find_run("run", tmp_path) == run
    assert store.find_run("ru", tmp_path) == run
    assert store.find_run("latest", tmp_path) == run
    with pytest.raises(StoreError, match="no run 'x'"):
        store.find_run("x", tmp_path)


_KILLED = """
import sys
from pathlib import Path
from tests.unit.make_records import manifest, result
from wulf.base import store
with store.create(Path(sys.argv[1]), manifest()) as writer:
    for index in range(100000):
        writer.append(result(index))
        print(index, flush=True)
"""


def test_kill_loses_at_most_the_record_being_written(tmp_path):
    path = tmp_path / "killed"
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", _KILLED, str(path)], stdout=subprocess.PIPE, cwd=root, text=True
    ) as process:
        acknowledged = -1
        for line in process.stdout:
            acknowledged = int(line)
            if acknowledged >= 50:
                process.send_signal(signal.SIGKILL)
                break
        process.stdout.close()
        process.wait()
    read, writer = store.resume(path)
    with writer:
        writer.append(result(999))
    assert len(read.results) >= acknowledged + 1
    assert read.results == [result(index) for index in range(len(read.results))]
    assert store.load(path).results[-1] == result(999)


def test_atomic_write_leaves_the_old_content_when_it_fails(tmp_path, monkeypatch):
    path = tmp_path / "file"
    store.write_atomically(path, b"old")

    def full(_fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"file: No space left"):
        store.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_not_written_over_a_directory(tmp_path):
    with pytest.raises(StoreError, match="is a directory"):
        store.write_atomically(tmp_path, b"x")


def test_an_analysis_of_other_records_or_a_damaged_one_is_none(tmp_path):
    with store.create(tmp_path / "run", manifest()) as writer:
        writer.append(result(0))
    store.save_analysis(tmp_path / "run", analyze(store.load(tmp_path / "run")))
    assert store.load(tmp_path / "run").analysis() is not None
    (tmp_path / "run" / "records.jsonl").write_bytes(b"")
    assert store.load(tmp_path / "run").analysis() is None
    (tmp_path / "run" / "analysis.json").write_bytes(b"{")
    assert store.load(tmp_path / "run").analysis() is None


def test_who_writes_is_known(tmp_path):
    with store.create(tmp_path / "run", manifest()):
        assert store.is_being_written(tmp_path / "run")
    assert not store.is_being_written(tmp_path / "run")


def test_columns_have_equal_length(run):
    columns = store.load(run).columns("samples")
    assert {len(column) for column in columns.values()} == {9}
    assert columns["size_bytes"][:3] == [64, 128, 256]
    assert columns["node_a"][0] == "node01"
    with pytest.raises(StoreError, match="not been analysed"):
        store.load(run).columns("cells")
    with pytest.raises(StoreError, match="no table"):
        store.load(run).columns("nothing")


def test_records_tolerate_fields_of_later_versions():
    raw = msgspec.to_builtins(manifest()) | {"later": 1}
    assert msgspec.convert(raw, Manifest) == manifest()

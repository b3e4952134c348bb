"""What Python programs get: `wulf.load` of every kind of run, tables that every data-frame library takes."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wulf
from tests.unit.make_records import manifest, node, result
from tests.unit.tuning_fixture import stored
from wulf.base import store
from wulf.base.errors import BuildError, ProbeError, StoreError
from wulf.base.native import cmake
from wulf.base.records import (
    Clock,
    ProbeInfo,
)
from wulf.base.store.tuning import HEAD as TUNING
from wulf.base.store.tuning import TuningRun
from wulf.base.text import printable
from wulf.node.measuring.session import MeasureRequest as Measurement
from wulf.node.probe import parse
from wulf.tools.measure import work
from wulf.tools.measure.request import MeasureRequest


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    path = tmp_path / "measured"
    clock = Clock(source="c", resolution_ns=1.0, cost_ns=1.0)
    probe = ProbeInfo(
        version="1", protocol=1, mpi="Open MPI", hosts=["a", "b"], cpus=[[0, 1], [2]], clock=clock
    )
    with store.create(path, manifest()) as writer:
        writer.append(node())
        for index in range(4):
            made = result(index, status="failed" if index == 2 else "ok")
            known = probe if index % 2 else None  # of one that failed early nothing is known
            suspect = ["load", "steal"] if index == 1 else []
            launch = msgspec.structs.replace(made.launch, probe=known, contamination=suspect)
            writer.append(msgspec.structs.replace(made, launch=launch))
    return path


@pytest.fixture
def tuned(tmp_path: Path) -> Path:
    return stored(tmp_path / "tuned")


def is_table(columns: dict[str, list[object]], rows: int) -> None:
    """What polars, pandas and Arrow take without a word: columns of one length and one scalar type each."""
    assert columns
    for name, values in columns.items():
        assert len(values) == rows, name
        kinds = {type(value) for value in values if value is not None}
        assert kinds <= {str} or kinds <= {int, float} or kinds <= {bool}, (name, kinds)


def test_launches_are_a_table(measured: Path) -> None:
    columns = wulf.load(measured).columns("launches")
    is_table(columns, 4)
    assert columns["node_b"] == ["node02"] * 4
    assert columns["contamination"][1] == "load; steal"
    assert columns["mpi"] == [None, "Open MPI", None, "Open MPI"]
    assert columns["largest_bytes"] == [256] * 4
    assert columns["error"][2] == "node02: it is gone"


def test_a_tuning_run_is_loaded_and_has_tables(tuned: Path) -> None:
    run = wulf.load(tuned)
    assert isinstance(run, TuningRun)
    assert run.result is not None
    is_table(run.columns(), 3)
    assert run.columns()["metric"] == ["a", "b", None]
    assert run.columns()["setting"] == ["", "", "nic.mtu=9000"]
    is_table(run.columns("effects"), len(run.result.effects))
    with pytest.raises(StoreError, match="trials, effects"):
        run.columns("cells")


@pytest.mark.parametrize("form", ["csv", "markdown", "latex"])
def test_a_run_in_which_nothing_was_measured_has_no_table(tmp_path: Path, form: wulf.Form) -> None:
    tuned, measured = stored(tmp_path / "tuned", trials=0), tmp_path / "measured"
    with store.create(measured, manifest()):
        pass
    for path in (tuned, measured):
        with pytest.raises(StoreError, match=f"{path} has no table: nothing was measured"):
            wulf.render(path, form, tmp_path / "table")
        assert not (tmp_path / "table").exists()
        assert all(wulf.render(path, other) for other in ("html", "text", "json", "bibtex"))


def test_loading_says_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not a run directory"):
        wulf.load(tmp_path)
    with pytest.raises(StoreError, match="there is no run 'xxx"):
        wulf.load("x" * 5000)


HOSTILE = [
    b"[" * 200_000,
    b'{"a":' * 200_000,
    b'{"schema_version":' + b"9" * 5000 + b"}",
    b'{"schema_version":1e999}',
    b'{"schema_version":NaN}',
    b'{"schema_version":"1"}',
    b'{"schema_version":-1}',
    b'{"schema_version":3}',
    b'{"schema_version":1,"a":"\xed\xa0\x80"}',
    b'{"schema_version":null}',
    b"\xff\xfe\x00",
    b"null",
    b"",
]


@pytest.mark.parametrize("content", HOSTILE)
@pytest.mark.parametrize(
    "file", ["manifest.json", "tuning.json", "records.jsonl", "trials.jsonl", "result.json"]
)
def test_a_hostile_file_is_refused_by_name(measured: Path, tuned: Path, file: str, content: bytes) -> None:
    path = tuned if (tuned / file).exists() else measured
    (path / file).write_bytes(content + b"\n")
    with pytest.raises(StoreError, match=path.name):
        wulf.load(path)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(
    st.integers(0, 2**32), st.sampled_from(["manifest.json", "records.jsonl", "tuning.json", "trials.jsonl"])
)
def test_a_damaged_file_is_only_ever_refused(measured: Path, tuned: Path, seed: int, file: str) -> None:
    path = tuned if (tuned / file).exists() else measured
    good = (path / file).read_bytes()
    noise = random.Random(seed)
    content = bytearray(good)
    for _ in range(noise.randrange(1, 6)):
        at = noise.randrange(len(content))
        piece = noise.choice([b"[" * 2000, b"9" * 400, b"\xff", b"null", b'"', b"-1", b"1e400", b"\n", b""])
        content[at : at + noise.randrange(6)] = piece
    (path / file).write_bytes(content)
    try:
        run = wulf.load(path)
        for table in ("launches", "samples") if path == measured else ("trials", "effects"):
            run.columns(table)
    except StoreError as error:
        assert str(path) in printable(str(error), 5000)
    finally:
        (path / file).write_bytes(good)


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":' + b"[" * 200_000,
        b'{"type":"cell","x":' + b'{"a":' * 200_000,
        b'{"type":"hello","protocol":' + b"9" * 5000 + b"}",
        b'{"type":"end","elapsed_s":1e999}',
        b'{"type":"error","code":"\xed\xa0\x80","message":""}',
        b'{"type":"error","code":"\xff","message":""}',
        b'{"type":"end","elapsed_s":NaN}',
    ],
)
def test_a_hostile_probe_is_only_ever_refused(line: bytes) -> None:
    with pytest.raises(ProbeError) as refusal:
        parse.message(line)
    assert len(str(refusal.value)) < 1000


def test_a_tuning_run_of_version_1_opens(tuned: Path) -> None:
    now = wulf.load(tuned)
    head = tuned / "tuning.json"
    old = msgspec.json.decode(head.read_bytes())
    old["schema_version"] = 1
    for metric in old["plan"]["metrics"]:
        del metric["figure"]
    del old["workload"]
    old["operations"].pop()
    old["operations"][0] |= {"quantity": "half_round_trip_time"}
    old["cycle"] = {
        "probes": [{"op": "mpi_pingpong", "sizes_bytes": [1, 64]}],
        "commands": [{"metric": "result", "command": "./solve", "match": "(.*)"}],
        "pairs": [["n1", "n2"]],
        "sweeps": 5,
        "visit_us": 1000,
    }
    head.write_bytes(msgspec.json.encode(old))
    then = wulf.load(tuned)
    assert any(metric.figure is not None for metric in then.manifest.plan.metrics)
    assert then.manifest == now.manifest


def test_what_is_measured_without_options_is_what_a_measurement_has_by_itself() -> None:
    asked = {field.name: field.default for field in msgspec.structs.fields(Measurement)}
    plain = work.measurement(MeasureRequest(cluster="local"))
    names = (
        "precision",
        "budget_s",
        "visit_us",
        "every_s",
        "min_launches",
        "max_launches",
        "sweeps",
        "reference",
    )
    assert {name: getattr(plain, name) for name in names} == {name: asked[name] for name in names}


@pytest.mark.parametrize(("room", "said"), [(0, "false ended with exit code 1"), (1 << 62, "no space left")])
def test_a_build_that_fails_without_a_word_has_a_reason(tmp_path, monkeypatch, room: int, said: str) -> None:
    monkeypatch.setattr(cmake, "LEAST_ROOM_BYTES", room)
    with pytest.raises(BuildError, match=f"cannot be built: {said}"):
        cmake._logged(["false"], tmp_path / "build.log")


def test_a_run_of_another_kind_is_told_from_none(tmp_path: Path) -> None:
    with store.create(tmp_path / "runs" / "afternoon", manifest()):
        pass
    with pytest.raises(StoreError, match="afternoon is a measured run; this takes a tuning run"):
        store.find_run("afternoon", tmp_path / "runs", TUNING)
    with pytest.raises(StoreError, match=r"there is no run 'after' .*; this takes a tuning run"):
        store.find_run("after", tmp_path / "runs", TUNING)

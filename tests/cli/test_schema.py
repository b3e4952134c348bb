"""The published schemas: all are valid, all that is printed or stored is as they say (`tests.schemas`), and no more."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from tests.cli.command import wulf
from tests.schemas import names_for, require_published, validator
from wulf.face.cli.outputs import OUTPUTS


@pytest.mark.parametrize("name", OUTPUTS)
def test_every_schema_is_one(name: str) -> None:
    schema = validator(name).schema
    assert schema["$id"].endswith(name)
    text = json.dumps(schema)
    for reference in {part.partition('"')[0] for part in text.split('"$ref": "#/$defs/')[1:]}:
        assert reference in schema["$defs"]


def test_what_is_printed_is_checked() -> None:
    assert names_for(["settings", "list", "--json"]) == ["knobs"]
    assert names_for(["report", "x", "--json"]) == ["report", "hpl", "scaling", "tuning"]
    assert names_for(["audit", "topology", "--embed", "ring:7", "--json"]) == [
        "topology",
        "embedding",
        "change",
    ]
    with pytest.raises(AssertionError, match="run"):
        require_published(["runs", "list", "--json"], 0, '[{"run": 1}]')
    with pytest.raises(AssertionError, match="no output of it"):
        require_published(["measure", "--json"], 0, "[]")


def test_a_schema_by_its_name(tmp_path: Path) -> None:
    schema = json.loads(wulf(tmp_path, "config", "schema", "runs").stdout)
    entry = schema["$defs"]["Entry"]["properties"]
    assert entry["tags"]["description"] == "What `wulf runs tag` has said."
    jsonschema.validate([], schema)
    assert "wulf audit --json" in wulf(tmp_path, "config", "schema").stdout
    assert wulf(tmp_path, "config", "schema", "audits").returncode == 2
    done = wulf(tmp_path, "config", "schema", "--to", "all")
    assert done.returncode == 0
    assert {path.stem for path in (tmp_path / "all").iterdir()} == set(OUTPUTS)


COMMANDS = (
    ["config"],
    ["runs", "list"],
    ["settings", "list"],
    ["settings", "get", "nic.mtu", "kernel.nmi_watchdog", "--cluster", "local"],
    ["audit", "facts", "--cluster", "local"],
    ["audit", "--cluster", "local"],
)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_what_needs_no_cluster(tmp_path: Path, words: list[str]) -> None:
    done = wulf(tmp_path, *words, "--json")  # which checks it
    assert done.returncode in (0, 3), done.stderr
    assert json.loads(done.stdout) is not None


def test_the_files_of_a_run(tmp_path: Path) -> None:
    words = [
        "measure",
        "--run",
        "one",
        "--cluster",
        "local",
        "--ops",
        "tcp_rr",
        "--ladder",
        "short",
        "--budget",
        "60s",
        "--max-launches",
        "6",
        "--max-size",
        "192",
    ]
    done = wulf(tmp_path, *words, timeout=300)
    assert done.returncode in (0, 3), done.stderr
    run = tmp_path / "runs" / "one"
    for name in ("manifest", "analysis"):
        validator(name).validate(json.loads((run / f"{name}.json").read_text()))
    for line in (run / "records.jsonl").read_text().splitlines():
        validator("record").validate(json.loads(line))
    for verb in ("report", "diagnose"):
        told = wulf(tmp_path, verb, "one", "--json")
        assert told.returncode in (0, 1, 3), told.stderr

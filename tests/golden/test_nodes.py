"""What nodes with various network cards and systems print → their facts, worked out by hand."""

import json
from pathlib import Path

import pytest

from wulf import catalogue
from wulf.facts.parse import parse

CAPTURES = sorted((Path(__file__).parent / "nodes").glob("*.tree"))
REASONS = ("absent", "unsupported", "unknown")


def facts_of(capture):
    expected = json.loads(capture.with_suffix(".json").read_text(encoding="utf-8"))
    knobs = list(catalogue.knobs().values())
    return expected, parse("node01", capture.read_text(encoding="utf-8"), expected["interface"], knobs)


def test_every_capture_has_its_facts():
    assert len(CAPTURES) >= 9
    assert {path.stem for path in CAPTURES} == {path.stem for path in CAPTURES[0].parent.glob("*.json")}


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_facts_are_those_worked_out_by_hand(capture):
    expected, node = facts_of(capture)
    kinds = {"facts": node.facts, "absent": node.absent, "unsupported": node.unsupported}
    kinds["unknown"] = node.unknown
    place = {name: kind for kind, found in kinds.items() for name in found}
    found = {name: node.facts.get(name, place.get(name)) for name in expected["facts"]}
    assert found == expected["facts"]
    wanted = {name: kind for kind in REASONS for name in expected[kind]}
    assert {name: place.get(name) for name in wanted} == wanted


def test_where_a_capture_comes_from_changes_nothing():
    capture = CAPTURES[0]
    expected, node = facts_of(capture)
    head, _, rest = capture.read_text(encoding="utf-8").partition("\n")
    assert head.startswith("% ")
    assert parse("node01", rest, expected["interface"], list(catalogue.knobs().values())) == node

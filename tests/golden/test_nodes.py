"""What nodes with various network cards and systems print → their facts, worked out by hand."""

import json
from pathlib import Path

import msgspec
import pytest

from bench import field
from wulf.base import catalogue
from wulf.node.facts.parse import parse
from wulf.node.fleet.look import judge

CAPTURES = sorted((Path(__file__).parent / "nodes").glob("*.tree"))
#: Who speaks of interrupt moderation.
MODERATION = ("nic.interrupt_moderation", "nic.rx_usecs")


def facts_of(capture):
    expected = json.loads(capture.with_suffix(".json").read_text(encoding="utf-8"))
    knobs = list(catalogue.knobs().values())
    return expected, parse("node01", capture.read_text(encoding="utf-8"), expected["interface"], knobs)


def test_every_capture_has_its_facts():
    assert len(CAPTURES) >= 9
    assert {path.stem for path in CAPTURES} == {path.stem for path in CAPTURES[0].parent.glob("*.json")}


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_facts_are_those_worked_out_by_hand(capture):
    expected, _ = facts_of(capture)
    assert list(field.wrong_facts(capture, expected)) == []


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_findings_are_the_right_ones(capture):
    expected, _ = facts_of(capture)
    assert list(field.wrong_findings(capture, expected)) == []


def test_where_a_capture_comes_from_changes_nothing():
    capture = next(path for path in CAPTURES if path.stem == "e1000e")
    expected, node = facts_of(capture)
    head, _, rest = capture.read_text(encoding="utf-8").partition("\n")
    assert head.startswith("% ")
    assert parse("node01", rest, expected["interface"], list(catalogue.knobs().values())) == node


def moderation(capture, profile):
    """Return what is said of interrupt moderation: (severity, remedy, state), or nothing."""
    _, node = facts_of(capture)
    said = [one for one in judge([node], profile).findings if one.id in MODERATION]
    return [(one.severity, one.remedy, one.found.partition("rx-usecs ")[2].partition(",")[0]) for one in said]


@pytest.mark.parametrize("profile", ["latency", "hpc"])
@pytest.mark.parametrize(
    ("name", "found"),
    [
        # Modes of the driver, and its default.
        ("e1000e", "3 (dynamic"),
        ("igb", "3 (dynamic"),
        ("ixgbe", "1 (dynamic)"),
        # Microseconds; adaptive on two of them.
        ("i40e", "50 µs"),
        ("mlx5_core", "8 µs"),
        ("tg3", "20 µs"),
    ],
)
def test_held_back_interrupts_are_worth_trying(name, found, profile):
    (capture,) = [path for path in CAPTURES if path.stem == name]
    assert moderation(capture, profile) == [("warn", "try", found)]


@pytest.mark.parametrize("name", ["r8169", "virtio_net", "veth"])
def test_interrupts_that_are_not_held_back_are_well(name):
    (capture,) = [path for path in CAPTURES if path.stem == name]
    assert moderation(capture, "latency") == []


def test_a_few_microseconds_are_worth_trying_without_a_warning():
    _, node = facts_of(next(path for path in CAPTURES if path.stem == "tg3"))
    few = msgspec.structs.replace(node, facts=node.facts | {"nic.rx_usecs": "5"})
    said = [one for one in judge([few], "hpc").findings if one.id in MODERATION]
    assert [(one.id, one.severity, one.remedy) for one in said] == [("nic.rx_usecs", "info", "try")]

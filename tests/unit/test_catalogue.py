"""The catalogue is whole: every file is valid, and every name in it means something."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wulf import catalogue
from wulf.checks.evaluate import compile_checks
from wulf.errors import ConfigError, UsageError
from wulf.facts.parse import parse

CAPTURED = (Path(__file__).parents[1] / "golden" / "lab-node.tree").read_text(encoding="utf-8")
KNOBS = catalogue.knobs()
CHECKS = catalogue.checks()
RULES = catalogue.consistencies()
#: Facts that come from looking at peers, not from a node's tree.
PEERS = {
    "path.mtu_bytes",
    "path.peer",
    "path.answers",
    "clock.offset_s",
    "clock.uncertainty_s",
    "clock.offset_words",
}


@pytest.fixture(scope="module")
def names() -> set[str]:
    node = parse("n1", CAPTURED, "host0", list(KNOBS.values()))
    return {*node.facts, *node.unknown, *node.absent, *node.unsupported} | PEERS


def test_the_core_knobs_are_all_there() -> None:
    assert {
        "nic.rx_usecs",
        "nic.mtu",
        "net.conntrack",
        "cpu.governor",
        "ompi.btl_tcp_if_include",
    } <= KNOBS.keys()


@pytest.mark.parametrize("name", KNOBS)
def test_a_knob_has_a_value_or_a_reason_on_a_node(name: str, names: set[str]) -> None:
    assert name in names


@pytest.mark.parametrize("name", KNOBS)
def test_a_knobs_recommended_value_is_one_of_its_own(name: str) -> None:
    knob = KNOBS[name]
    for wanted in knob.recommend.values():
        value = catalogue.preferred(wanted)
        assert catalogue.accepts(wanted, value)
        if knob.type == "int" and knob.range:
            assert knob.range[0] <= int(value) <= knob.range[1]
        if knob.type in ("bool", "enum", "service") and knob.values:
            assert value in knob.values


def test_every_rule_compiles() -> None:
    assert len(compile_checks(CHECKS.values())) == len(CHECKS)


@pytest.mark.parametrize("rule", compile_checks(CHECKS.values()), ids=lambda rule: rule.check.id)
def test_every_fact_that_a_check_names_exists(rule, names: set[str]) -> None:
    strange = [name for name in rule.names if name not in names and not name.startswith("sysctl.")]
    assert not strange


@pytest.mark.parametrize("name", RULES)
def test_every_pattern_of_a_comparison_matches_facts(name: str, names: set[str]) -> None:
    rule = RULES[name]
    known = names | {"names.node01"}
    for pattern in rule.facts:
        expression = ".*".join(re.escape(piece) for piece in pattern.split("*"))
        assert any(re.fullmatch(expression, fact) for fact in known), pattern


def test_ids_are_file_names() -> None:
    data = Path(catalogue.__file__).parent / "data"
    assert {path.stem for path in (data / "knobs").glob("*.toml")} == KNOBS.keys()
    assert {path.stem for path in (data / "checks").glob("*.toml")} == CHECKS.keys()


@pytest.mark.parametrize(
    ("wanted", "value", "expected"),
    [
        ("<=10", "10", True),
        ("<=10", "11", False),
        (">=50", "50", True),
        (">=50", "unlimited", False),
        ("a|b", "b", True),
        ("a|b", "c", False),
        ("on on", "on on", True),
    ],
)
def test_accepting_values(wanted: str, value: str, expected: bool) -> None:
    assert catalogue.accepts(wanted, value) is expected


@pytest.mark.parametrize("wanted", ["", "a||b", "<5", "<=x", "a |b"])
def test_malformed_recommendations(wanted: str) -> None:
    with pytest.raises(ValueError, match="not a recommendation"):
        catalogue.accepts(wanted, "1")


def test_naming_a_knob() -> None:
    assert catalogue.knob("rx_usecs").id == "nic.rx_usecs"
    with pytest.raises(UsageError, match=r"no knob 'usecs'; did you mean nic.rx_usecs, nic.tx_usecs\?"):
        catalogue.knob("usecs")
    with pytest.raises(UsageError, match="no knob 'xyzzy' "):
        catalogue.knob("xyzzy")


@pytest.mark.parametrize(
    ("text", "said"),
    [("id = 1", "Expected `str`"), ("nonsense", "nonsense.toml"), ('id = "a.b"', "missing required field")],
)
def test_a_file_that_is_wrong_is_named(tmp_path, monkeypatch, text: str, said: str) -> None:
    (tmp_path / "data" / "checks").mkdir(parents=True)
    (tmp_path / "data" / "checks" / "nonsense.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path)
    catalogue.checks.cache_clear()
    try:
        with pytest.raises(ConfigError, match=said):
            catalogue.checks()
    finally:
        catalogue.checks.cache_clear()

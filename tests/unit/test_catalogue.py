"""The catalogue is whole: every file is valid, and every name in it means something."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wulf import access, catalogue
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


DATA = Path(catalogue.__file__).parent / "data"
TOLD = {"knobs": catalogue.knobs, "checks": catalogue.checks, "consistency": catalogue.consistencies}


@pytest.fixture
def refused(tmp_path, monkeypatch):
    """Return what is said of files that are the only ones of their directory."""

    def said(directory: str, **files: str) -> str:
        access.kinds()  # of the real table, which is kept
        place = tmp_path / "data" / directory
        place.mkdir(parents=True)
        for name, text in files.items():
            (place / f"{name}.toml").write_text(text, encoding="utf-8")
        monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path)
        TOLD[directory].cache_clear()
        try:
            with pytest.raises(ConfigError) as error:
                TOLD[directory]()
        finally:
            TOLD[directory].cache_clear()
        return str(error.value)

    return said


@pytest.mark.parametrize(
    ("text", "said"),
    [("id = 1", "Expected `str`"), ("nonsense", "nonsense.toml"), ('id = "a.b"', "missing required field")],
)
def test_a_file_that_is_wrong_is_named(refused, text: str, said: str) -> None:
    assert said in refused("checks", nonsense=text)


@pytest.mark.parametrize("directory", TOLD)
def test_a_file_has_the_name_of_its_id(refused, directory: str) -> None:
    path = sorted((DATA / directory).glob("*.toml"))[0]
    said = refused(directory, other=path.read_text(encoding="utf-8"))
    assert said.startswith(f"data/{directory}/other.toml: its id is {path.stem.removeprefix('01-')}: ")


CORKING = "sysctl.net.ipv4.tcp_autocorking"
ACCESS = """
read = "/proc/sys/net/ipv4/tcp_autocorking"
set = "sysctl -w net.ipv4.tcp_autocorking={value}"
"""


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        # Copied, and not changed in all places.
        (CORKING, 'target = "net.ipv4.tcp_autocorking"', 'target = "net.ipv4.tcp_sack"', "its id must be"),
        (CORKING, "\n\n[[ev", f"{ACCESS.replace('autocorking=', 'sack=')}\n[[ev", "access.set is 'sysctl -w"),
        (CORKING, "\n\n[[ev", f"{ACCESS.replace('/tcp_', '/tcp/')}\n[[ev", "access.read is '/proc/sys/"),
        (CORKING, "\n\n[[ev", f"{ACCESS.replace('corking=', 'corking2=')}\n[[ev", "access.set is 'sysctl"),
        (
            CORKING,
            "[[ev",
            '[persist]\ndebian = "/etc/sysctl.d/x: net.ipv4.tcp_sack"\n[[ev',
            "persist.debian is '/etc/sysctl.d/x: net.ipv4.tcp_sack' and does not name access.target",
        ),
        ("ompi.transport", 'target = "pml btl"', 'target = "pml mtl"', "does not name access.target, mtl"),
        (
            "napi.threaded",
            'target = "/sys/class/net/{interface}/threaded',
            'target = "/sys/x',
            "access.read is",
        ),
        # Not as the kind of access has it.
        (CORKING, 'kind = "sysctl"', 'kind = "sisctl"', "data/access.toml has no kind sisctl; did you mean"),
        (CORKING, 'kind = "sysctl"', 'kind = "file"', "missing required field `read`"),
        (CORKING, "[access]", 'access = "sysctl"\n[acces]', "Expected `object`, got `str`"),
        (CORKING, "[[ev", "[[persist]]\n[[ev", "Expected `object`, got `array`"),
        # Values.
        (CORKING, '["1", "0"]', '["1", "abc"]', "values has 'abc': it must be a whole number from 0 to 1"),
        (CORKING, '["1", "0"]', '["1", "2"]', "values has '2'"),
        (CORKING, 'default = "1"', 'default = "on"', "default has 'on'"),
        (CORKING, "[0, 1]", "[1, 0]", "'range' has the smallest"),
        (
            CORKING,
            '"int"',
            '"text"',
            "'range' has the smallest and the largest value of a knob of the type int",
        ),
        ("nic.rx_usecs", '"<=10"', '"<=20000"', "recommend.latency has '20000'"),
        ("nic.rx_usecs", '"<=10"', '"<ten"', "not a recommendation"),
        ("nic.eee", 'latency = "off"', 'latency = "aus"', "recommend.latency is 'aus', which is none of"),
        # What is missing.
        (CORKING, "measure =", "notes =", "give 'recommend', or say in 'measure' why not"),
        (CORKING, "risk =", 'when = "nic.mtu > 1"\nrisk =', "'when' says where a recommendation makes sense"),
        (CORKING, "risk =", 'affects = ["nic.nothing"]\nrisk =', "it affects nic.nothing, which is no knob"),
    ],
)
def test_a_knob_that_is_wrong_is_refused(refused, name: str, old: str, new: str, said: str) -> None:
    text = (DATA / "knobs" / f"{name}.toml").read_text(encoding="utf-8")
    assert old in text
    found = refused("knobs", **{name: text.replace(old, new, 1)})
    assert found.startswith(f"data/knobs/{name}.toml: ")
    assert said in found


def test_two_knobs_have_not_one_target(refused) -> None:
    text = (DATA / "knobs" / "nic.rx_usecs.toml").read_text(encoding="utf-8")
    found = refused("knobs", **{"nic.rx_usecs": text, "nic.tx_usecs": text.replace("nic.rx_", "nic.tx_")})
    assert found == (
        "data/knobs/nic.tx_usecs.toml: access.target is coalesce.rx-usecs, which is that of nic.rx_usecs, too"
    )


def test_a_sysctl_says_its_name_once() -> None:
    knob = KNOBS[CORKING]
    assert knob.access.set == "sysctl -w net.ipv4.tcp_autocorking={value}"
    assert knob.access.read == "/proc/sys/net/ipv4/tcp_autocorking"
    assert "net.ipv4.tcp_autocorking = VALUE" in knob.persist.debian
    assert "autocorking" not in (DATA / "access.toml").read_text(encoding="utf-8")

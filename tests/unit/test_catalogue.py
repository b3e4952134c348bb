"""The catalogue is whole: every file is valid, and every name in it means something."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

import msgspec
import pytest

from wulf.base import access, catalogue, user_files
from wulf.base.checks.evaluate import Rule, compile_checks, compile_when, evaluate
from wulf.base.errors import ConfigError, UsageError
from wulf.base.predicate import Gap
from wulf.base.records import NodeRecord
from wulf.node.facts.parse import parse

GOLDEN = Path(__file__).parents[1] / "golden"
SCRIPT = resources.files("wulf.node.facts").joinpath("capture.sh").read_text(encoding="utf-8")
SYSCTLS_READ = re.findall(r"/proc/sys/[\w./*-]+", SCRIPT)
KNOBS = catalogue.knobs()
CHECKS = catalogue.checks()
RULES = catalogue.consistencies()
SYSCTLS = [knob for knob in KNOBS.values() if knob.access.kind == "sysctl"]
COMPILED = compile_checks(CHECKS.values())
#: Sysctls of the first network namespace: the captured nodes are containers, or were written without them.
ELSEWHERE = {"sysctl.net.ipv4.tcp_mem", "sysctl.net.ipv4.udp_mem"}
#: Facts that come from looking at peers, not from a node's tree.
PEERS = {
    "path.loopback_names",
    "path.same_machine",
    "path.ssh",
    "path.ports",
    "path.mtu_bytes",
    "path.peer",
    "path.answers",
    "clock.offset_s",
    "clock.uncertainty_s",
    "clock.offset_words",
}


def captured(path: Path) -> NodeRecord:
    told = path.with_suffix(".json")
    interface = json.loads(told.read_text(encoding="utf-8"))["interface"] if told.exists() else "host0"
    return parse(path.stem, path.read_text(encoding="utf-8"), interface, list(KNOBS.values()))


@pytest.fixture(scope="module")
def nodes() -> list[NodeRecord]:
    return [captured(path) for path in (GOLDEN / "lab-node.tree", *sorted((GOLDEN / "nodes").glob("*.tree")))]


@pytest.fixture(scope="module")
def names(nodes: list[NodeRecord]) -> set[str]:
    """All that is known of nodes by name; a sysctl only where a node had it and the script reads it."""
    read = {f"sysctl.{knob.access.target}" for knob in SYSCTLS}
    found = set(PEERS)
    for node in nodes:
        found |= {
            name for name in node.facts if not name.startswith("sysctl.") or is_read(name) or name in read
        }
        told = {*node.unknown, *node.absent, *node.unsupported}
        found |= {name for name in told if not name.startswith("sysctl.")}
    return found


def is_read(name: str) -> bool:
    path = "/proc/sys/" + name.removeprefix("sysctl.").replace(".", "/")
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in SYSCTLS_READ)


def misfits(rule: Rule, nodes: Iterable[NodeRecord]) -> list[Gap]:
    """Why facts are of no use to a check, such as an order of what is not a number."""
    parts = [rule.holds, *([rule.when] if rule.when else [])]
    outcomes = [part(node) for part in parts for node in nodes]
    return [said for said in outcomes if isinstance(said, Gap) and "do not fit" in said.reason]


def matches(pattern: str, names: Iterable[str]) -> bool:
    expression = ".*".join(re.escape(piece) for piece in pattern.split("*"))
    return any(re.fullmatch(expression, name) for name in names)


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
    assert len(COMPILED) == len(CHECKS)


@pytest.mark.parametrize("rule", COMPILED, ids=lambda rule: rule.check.id)
def test_every_fact_that_a_check_names_exists(rule, names: set[str]) -> None:
    assert not [name for name in rule.names if name not in names]


@pytest.mark.parametrize("rule", COMPILED, ids=lambda rule: rule.check.id)
def test_every_sysctl_that_a_check_sets_exists(rule, names: set[str]) -> None:
    set_there = re.findall(r"sysctl -w ([\w.-]+)=", f"{rule.check.fix} {rule.check.keep}")
    assert not [name for name in set_there if f"sysctl.{name}" not in names]


@pytest.mark.parametrize("rule", COMPILED, ids=lambda rule: rule.check.id)
def test_the_facts_of_every_node_fit_a_check(rule, nodes: list[NodeRecord]) -> None:
    assert not misfits(rule, nodes)


@pytest.mark.parametrize(
    ("holds", "strange", "unfit"),
    [
        ("sysctl.net.ipv4.tcp_window_scalling != 0", ["sysctl.net.ipv4.tcp_window_scalling"], False),
        # A name that the kernel has and the script does not read.
        ("sysctl.net.ipv4.conf.all.rp_filter == 0", ["sysctl.net.ipv4.conf.all.rp_filter"], False),
        ("sysctl.net.ipv4.tcp_window_scaling > 0", [], False),
        ("sysctl.net.ipv4.tcp_rmem > 4096", [], True),
    ],
)
def test_a_check_of_a_sysctl_that_never_fires_is_found(holds, strange, unfit, names, nodes) -> None:
    (rule,) = compile_checks([msgspec.structs.replace(CHECKS["tcp.sack_folklore"], holds=holds)])
    assert [name for name in rule.names if name not in names] == strange
    assert bool(misfits(rule, nodes)) == unfit


@pytest.mark.parametrize("knob", SYSCTLS, ids=lambda knob: knob.id)
def test_the_sysctl_of_a_knob_exists(knob, nodes: list[NodeRecord]) -> None:
    assert any(f"sysctl.{knob.access.target}" in node.facts for node in nodes)


def test_what_does_not_compile_is_refused_whatever_the_profile(nodes: list[NodeRecord]) -> None:
    knob = msgspec.structs.replace(KNOBS["nic.rx_usecs"], when="nic.((", recommend={"latency": "<=10"})
    check = msgspec.structs.replace(CHECKS["tcp.sack_folklore"], when="nic.((", profiles=("latency",))
    with pytest.raises(ConfigError, match=r"^data/knobs/nic.rx_usecs.toml: when: 'nic.\(\(' is not a pred"):
        evaluate(nodes, [], [knob], [], "throughput")
    with pytest.raises(ConfigError, match=r"^data/checks/tcp.sack_folklore.toml: when: 'nic.\(\(' is not"):
        evaluate(nodes, [check], [], [], "throughput")


@pytest.mark.parametrize("knob", [knob for knob in KNOBS.values() if knob.when], ids=lambda knob: knob.id)
def test_every_fact_on_which_a_recommendation_depends_exists(knob, names: set[str]) -> None:
    when = compile_when(knob)
    assert when is not None
    assert when.names <= names


@pytest.mark.parametrize("name", RULES)
def test_every_pattern_of_a_comparison_matches_facts(name: str, names: set[str]) -> None:
    rule = RULES[name]
    known = names | {"names.node01"} | {name for name in ELSEWHERE if is_read(name)}
    assert not [pattern for pattern in (*rule.facts, *rule.but) if not matches(pattern, known)]


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


DATA = Path(catalogue.__file__).parents[1] / "data"
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
        monkeypatch.setenv("WULF_SITE_DIR", str(tmp_path / "none"))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
        TOLD[directory].cache_clear()
        user_files.sources.cache_clear()
        try:
            with pytest.raises(ConfigError) as error:
                TOLD[directory]()
        finally:
            TOLD[directory].cache_clear()
            user_files.sources.cache_clear()
        return str(error.value)

    return said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id = 1", "nonsense.toml:1: id: expected text in quotes, got a whole number"),
        ("nonsense", "nonsense.toml"),
        ('id = "a.b"', "nonsense.toml: title: missing"),
    ],
)
def test_a_file_that_is_wrong_is_named(refused, text: str, said: str) -> None:
    assert said in refused("checks", nonsense=text)


@pytest.mark.parametrize("directory", TOLD)
def test_a_file_has_the_name_of_its_id(refused, directory: str) -> None:
    path = sorted((DATA / directory).glob("*.toml"))[0]
    said = refused(directory, other=path.read_text(encoding="utf-8"))
    assert said.startswith(f"data/{directory}/other.toml: its id is {path.stem.removeprefix('01-')}: ")


CORKING = "sysctl.net.ipv4.tcp_autocorking"
VECTOR = "sysctl.net.ipv4.tcp_rmem"
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
        (
            CORKING,
            'kind = "sysctl"',
            'kind = "file"',
            ":18: access.read: missing",
        ),
        (
            CORKING,
            "[access]",
            'access = "sysctl"\n[acces]',
            ":18: access: expected a table, got text in quotes",
        ),
        (CORKING, "[[ev", "[[persist]]\n[[ev", ":22: persist: expected a table, got a list"),
        # Values.
        (
            CORKING,
            '["1", "0"]',
            '["1", "abc"]',
            "values has 'abc': of the type int it must be a whole number from 0 to 1",
        ),
        (CORKING, '["1", "0"]', '["1", "2"]', "values has '2'"),
        (CORKING, 'default = "1"', 'default = "on"', "default has 'on'"),
        (CORKING, "[0, 1]", "[1, 0]", "'range' has the smallest value first"),
        (
            CORKING,
            '"int"',
            '"text"',
            "'range' is for knobs of the type int",
        ),
        (CORKING, 'type = "int"', 'type = "vector"', "'ranges' is for knobs of the type vector"),
        (VECTOR, "[1, 2147483647],", "[9, 1],", "'ranges' has pairs, the smaller value first"),
        (VECTOR, '"vector"', '"text"', "'ranges' is for knobs of the type vector"),
        (
            VECTOR,
            "rising",
            'default = "4096 1024 6291456"\nrising',
            "default has '4096 1024 6291456': none of",
        ),
        (VECTOR, "rising", 'values = ["4096"]\nrising', "values has '4096': 3 whole numbers"),
        ("napi.gro_flush_timeout", '"20000 10"', '"20000 -1"', "-1 is not from 0 to 2147483647"),
        ("svc.iptables_legacy", '"0"', '"none"', "has 'none': of the type int it must be a whole number"),
        ("nic.tx_usecs", '"<=10"', '"<=20000"', "recommend.latency has '20000'"),
        ("nic.tx_usecs", '"<=10"', '"<ten"', "not a recommendation"),
        ("nic.rx_usecs", 'value = "4"', 'value = "few"', "special has 'few'"),
        ("net.conntrack", '["exempt", "notrack"]]', '["exempt", "none"]]', "severing has 'none'"),
        ("net.conntrack", "established = true", "established = false", "severing has 'tracked'"),
        ("nic.eee", 'latency = "off"', 'latency = "aus"', "recommend.latency is 'aus', which is none of"),
        # What is missing.
        (CORKING, "measure =", "notes =", "give 'recommend', or say in 'measure' why not"),
        (CORKING, "risk =", 'when = "nic.mtu > 1"\nrisk =', "'when' says where a recommendation makes sense"),
        (
            CORKING,
            "risk =",
            'affects = ["nic.nothing"]\nrisk =',
            "it affects nic.nothing, which is not a knob",
        ),
    ],
)
def test_a_knob_that_is_wrong_is_refused(refused, name: str, old: str, new: str, said: str) -> None:
    text = (DATA / "knobs" / f"{name}.toml").read_text(encoding="utf-8")
    assert old in text
    found = refused("knobs", **{name: text.replace(old, new, 1)})
    assert found.startswith(f"data/knobs/{name}.toml:")
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


def test_the_readme_counts_nothing_that_grows() -> None:
    readme = (DATA.parents[2] / "README.md").read_text(encoding="utf-8")
    assert not re.findall(r"[0-9]+ (?:checks|knobs|comparisons|facts|kinds|operations)", readme)

"""What a node says of itself never becomes a command: every fact is hostile, every command is looked at."""

from __future__ import annotations

import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import msgspec
import pytest

from wulf.base import catalogue
from wulf.base.checks.evaluate import compile_checks, evaluate
from wulf.base.records import Audit, NodeRecord
from wulf.base.text import in_command
from wulf.node.change import steps
from wulf.node.change.export import Chosen
from wulf.node.change.export.ansible import ansible
from wulf.node.change.export.shell import shell
from wulf.node.change.export.tuned import tuned
from wulf.node.change.persist import persist
from wulf.node.facts import peers

#: Should a test fail, a shell runs these: none does harm.
HOSTILE = [
    "; touch planted ~",
    "$(touch planted)",
    "`touch planted`",
    "1 && touch planted",
    "a\ntouch planted",
    "'; touch planted; '",
    '"; touch planted; "',
    "\x1b]0;owned\x07",
    "\u202etxt.exe",
    "-rf",
    "--help",
    "~root",
    "*",
    "a b",
    "# all that follows",
    "{value}",
    "",
    "x" * 100_000,
]
#: A fact that nothing has to be done with, and that no other text contains.
PLAIN = "plain7"


@pytest.mark.parametrize("text", [*HOSTILE, PLAIN, "10.0.0.1/24", "4096 131072 6291456"])
def test_a_shell_sees_one_word_that_can_be_no_option(text: str, tmp_path: Path) -> None:
    word = in_command(text, "VALUE")
    script = f"set -- {word}; printf '%s|%s' $# \"$1\""
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    seen = done.stdout
    assert list(tmp_path.iterdir()) == []
    assert seen in (f"1|{text}", "1|VALUE")
    assert not seen.startswith("1|-")
    assert word.isprintable()


def commands(audit: Audit) -> dict[str, tuple[str, str]]:
    return {finding.id: (finding.fix, finding.keep) for finding in audit.findings}


@cache
def every_command(text: str) -> dict[str, tuple[str, str]]:
    """Return the commands of all that the catalogue can find on a node of which every fact is this text."""
    failing = [
        msgspec.structs.replace(check, when="", holds='node.planted == "no"')
        for check in catalogue.checks().values()
    ]
    knobs = [msgspec.structs.replace(knob, when="") for knob in catalogue.knobs().values()]
    names = {name for rule in compile_checks(catalogue.checks().values()) for name in rule.names}
    names |= {"node.planted"} | {knob.id for knob in knobs}
    record = NodeRecord(node="n1", reachable=True, facts=dict.fromkeys(names, text))
    return commands(evaluate([record], failing, knobs, [], "hpc"))


@pytest.mark.parametrize(
    "text", [*HOSTILE[:3], *(pytest.param(text, marks=pytest.mark.thorough) for text in HOSTILE[3:])]
)
def test_no_check_and_no_recommendation_lets_a_fact_into_a_command(text: str) -> None:
    """The same catalogue, once with plain and once with hostile facts: only the quoted word may differ."""
    plain, hostile = every_command(PLAIN), every_command(text)
    # Where an interface is meant, what can be none is named.
    assert "ping -c 3 -I plain7 plain7" in plain["path.unreachable"]
    assert hostile.keys() == plain.keys()
    for name in plain:
        for good, bad in zip(plain[name], hostile[name], strict=True):
            words = re.escape(good).replace(PLAIN, f"(?:INTERFACE|[A-Z_]+|{re.escape(shlex.quote(text))})")
            assert re.fullmatch(words, bad), (name, bad)


@pytest.mark.parametrize("text", HOSTILE)
def test_making_nodes_alike_does_not_run_what_the_others_say(text: str) -> None:
    names = ["sysctl.net.ipv4.tcp_sack", f"sysctl.{text}", *catalogue.knobs()]
    many = [NodeRecord(node=f"n{n}", reachable=True, facts=dict.fromkeys(names, text)) for n in (1, 2, 3)]
    odd = NodeRecord(node="n4", reachable=True, facts=dict.fromkeys(names, "1"))
    rules = catalogue.consistencies().values()
    found = commands(evaluate([*many, odd], [], catalogue.knobs().values(), rules, "hpc"))
    assert found
    for fix, _ in found.values():
        assert fix.isprintable()
        rest = fix.replace(in_command(text, "VALUE"), "") if text else fix
        assert "planted" not in rest


@pytest.mark.parametrize("text", HOSTILE)
def test_files_and_exports_hold_no_text_of_a_node_that_could_run(text: str) -> None:
    knob_settings = [
        "sysctl.net.ipv4.tcp_sack=1",
        "nic.mtu=1500",
        "nic.InterruptThrottleRate=3000",
        "net.conntrack=exempt",
    ]
    wanted = steps.parse(
        [
            knob_setting
            for knob_setting in knob_settings
            if knob_setting.partition("=")[0] in catalogue.knobs()
        ]
    )
    assert len(wanted) >= 3
    names = {"nic.driver", "nic.name", "kernel.os", "service.nftables", "node.hostname", "nic.device"}
    facts = dict.fromkeys(names | set(catalogue.knobs()), text)
    record = NodeRecord(node="n1", reachable=True, facts=facts)
    lasting = persist(wanted, "eth0", record, "20260101T000000-abcdef")
    chosen = {"n1": Chosen(wanted=wanted, interface="eth0", record=record)}
    written = [*(make(chosen) for make in (shell, ansible, tuned))]
    texts = [content for files in written for content in files.values()]
    texts += lasting.texts.values()
    texts += [*lasting.places.values(), *lasting.unpersistable.values()]
    assert all("planted" not in said and "\x1b" not in said for said in texts)
    for script in shell(chosen).values():
        subprocess.run(["sh", "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize("text", HOSTILE)
def test_other_nodes_ping_only_addresses(text: str) -> None:
    asked: list[list[str]] = []

    class Asked:
        def run(self, argv, nodes, **_):
            asked.append(list(argv))
            return {}

    def record(name: str, addresses: str) -> NodeRecord:
        return NodeRecord(node=name, reachable=True, facts={"nic.addresses": addresses})

    records = [record("n1", "10.0.0.1/24"), record("n2", f"{text} 10.0.0.2/24")]
    peers.look_around(Asked(), records, "eth0")  # type: ignore[arg-type]
    assert asked == [["sh", "-s", "--", "eth0", "n1=10.0.0.1"]]

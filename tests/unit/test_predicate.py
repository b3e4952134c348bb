"""The language of checks: three-valued, closed, and without surprises."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wulf.base.errors import ConfigError
from wulf.base.predicate import Gap, Predicate
from wulf.base.records import NodeRecord

NODE = NodeRecord(
    node="n1",
    reachable=True,
    facts={
        "nic.mtu": 1500,
        "nic.name": "eth0",
        "a.list": "x, y z",
        "cpu.ok": True,
        "n.text": "12",
        "n.list": "4 8",
    },
    unknown={"nic.duplex": "ethtool is not installed"},
    absent={"svc.tuned": "not installed"},
    unsupported={"nic.eee": "no EEE"},
)


def holds(text: str) -> bool | Gap:
    return Predicate(text, "test")(NODE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nic.mtu == 1500", True),
        ("nic.mtu >= 9000", False),
        ("1000 < nic.mtu <= 1500", True),
        ("nic.mtu - 28 == 1472 and -nic.mtu < 0", True),
        ("nic.mtu / 2 == 750 and nic.mtu * 2 + 1 == 3001", True),
        ('nic.name in ["eth0", "eth1"]', True),
        ('nic.name not in ["eth0"]', False),
        ('has(a.list, "y") and not has(a.list, "w")', True),
        ("number(n.text) <= 12", True),
        ("cpu.ok", True),
        # Sysctls are texts: beside a number they are the number that they say.
        ("n.text > 9 and n.text >= 12 and not n.text < 9 and 9 < n.text", True),
        ('n.text > "9"', True),
        ("n.text == 12 and 12.0 == n.text and not n.text != 12", True),
        ("n.text != 0", True),
        ("n.text in [11, 12] and n.text not in [1, 2]", True),
        ('n.text in ["12"] and "1" in n.text', True),
        ("n.text * 2 == 24 and n.text + n.text == 24 and -n.text == -12 and n.text / 4 == 3", True),
        ("n.list == 4 or n.list in [4, 8] or nic.name == 0", False),
        ("known(nic.mtu) and not known(nic.duplex) and not known(svc.tuned)", True),
        ("missing(svc.tuned) and missing(nic.eee) and not missing(nic.mtu)", True),
        ("unknown(nic.duplex) and not unknown(svc.tuned)", True),
        ('known(fact("nic.mtu"))', True),
        ("missing(never.heard_of)", True),
    ],
)
def test_values(text: str, expected: bool) -> None:
    assert holds(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('nic.duplex == "full"', "unknown"),
        ('not nic.duplex == "full"', "unknown"),
        ('nic.duplex == "full" or nic.mtu == 1500', True),
        ('nic.mtu == 1 and nic.duplex == "full"', False),
        ('nic.duplex == "full" and nic.mtu == 1', False),
        ('nic.mtu == 1500 and nic.duplex == "full"', "unknown"),
        ('svc.tuned == "none"', "not applicable"),
        ('nic.eee == "off"', "not applicable"),
        # What is unknown could still matter: it outweighs what does not apply.
        ('nic.eee == "off" and nic.duplex == "full"', "unknown"),
        ('missing(svc.tuned) or svc.tuned == "none"', True),
        ("missing(nic.duplex)", "unknown"),
        ("number(nic.name) > 1", "unknown"),
        ("nic.mtu / 0 > 1", "unknown"),
        ("nic.name > 1", "unknown"),
        ('nic.name < "a"', "unknown"),
        ("n.list > 1", "unknown"),
        ("n.text == True", "unknown"),
        ("nic.name + n.text == 1", "unknown"),
        ("n.text * nic.name == 1", "unknown"),
        ("[1] * 99999999999 == 1", "unknown"),
        ("[1] < [2]", "unknown"),
    ],
)
def test_three_values(text: str, expected: bool | str) -> None:
    found = holds(text)
    assert (found.kind if isinstance(found, Gap) else found) == expected


def test_a_gap_says_why() -> None:
    assert holds('nic.duplex == "full"') == Gap("unknown", "nic.duplex: ethtool is not installed")
    assert holds("svc.tuned == 1") == Gap("not applicable", "svc.tuned: absent (not installed)")


def test_the_names_it_needs() -> None:
    assert Predicate('a.b == 1 or known(c.d) and has(e.f, "x")', "t").names == {"a.b", "c.d", "e.f"}


@pytest.mark.parametrize(
    ("driver", "value", "mode"),
    [
        ("igb", "3", True),
        ("igb", 1, True),
        ("igb", "0", False),
        ("igb", "10", False),
        ("ixgbe", "1", True),
        ("ixgbe", "3", False),
        ("tg3", "3", False),
        (None, "3", False),
    ],
)
def test_a_number_may_be_a_mode_of_the_driver(driver: str | None, value: str, mode: bool) -> None:
    found = Predicate("special(nic.rx_usecs)", "t")
    assert found.names == {"nic.rx_usecs", "nic.driver"}
    known = {} if driver is None else {"nic.driver": driver}
    assert found(NodeRecord(node="n", reachable=True, facts={"nic.rx_usecs": value, **known})) is mode


def test_what_is_not_known_is_no_mode() -> None:
    found = Predicate("special(nic.rx_usecs)", "t")
    reason = {"nic.rx_usecs": "no ethtool"}
    assert found(NodeRecord(node="n", reachable=True, unknown=reason)) == Gap(
        "unknown", "nic.rx_usecs: no ethtool"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 +",
        "__import__('os').system('true')",
        "open('/etc/passwd')",
        "(lambda: 1)()",
        "[x for x in nic.mtu]",
        "nic.mtu.__class__()",
        "nic.mtu if True else 1",
        "nic['mtu']",
        "f'{nic.mtu}'",
        "nic.mtu := 1",
        "2 ** 99999999",
        "nic.mtu % 2",
        "nic.mtu is None",
        "has(nic.mtu)",
        "special(nic.nothing)",
        "known(1)",
        "known(nic.mtu, nic.name)",
        "known(x=nic.mtu)",
        "fact(nic.mtu)",
        "{1: 2}",
        "None",
        "b'x' == 1",
        "...",
        "x" * 3000,
        "(" * 500 + "1" + ")" * 500,
    ],
)
def test_what_is_not_in_the_language_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^data/checks/x\.toml: "):
        Predicate(text, "data/checks/x.toml")


@given(st.text(alphabet="ab.()[]\"' =<>!andornotin0123456789+-*/,", max_size=60))
def test_any_text_is_a_predicate_or_refused(text: str) -> None:
    try:
        predicate = Predicate(text, "t")
    except ConfigError:
        return
    assert isinstance(predicate(NODE), bool | Gap)

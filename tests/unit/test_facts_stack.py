"""Bonds, VLANs, bridges, macvlans and stacks of them: what is wrong with a member is found whatever is on top of it."""

import subprocess
from importlib import resources
from pathlib import Path

import msgspec
import pytest

from wulf.base import catalogue
from wulf.node.change import configuration_files, steps
from wulf.node.change.persist import persist
from wulf.node.change.steps import KnobSetting
from wulf.node.facts.parse import parse
from wulf.node.fleet import change
from wulf.node.fleet.look import judge

KNOBS = list(catalogue.knobs().values())
NODES = Path(__file__).parents[1] / "golden/nodes"
#: Lines of the interfaces above two cards, ``ip -d -o link`` of each, and the name of the uppermost.
STACKS = {
    "vlan": ({"eno2.7": ["eno2"]}, {"eno2.7": "vlan protocol 802.1Q id 7 <REORDER_HDR>"}),
    "bridge": ({"br0": ["eno2"]}, {"br0": "bridge forward_delay 1500 hello_time 200"}),
    "macvlan": ({"mv0": ["eno2"]}, {"mv0": "macvlan mode bridge bcqueuelen 1000"}),
    "ipvlan": ({"iv0": ["eno2"]}, {"iv0": "ipvlan  mode l2 bridge"}),
    "team": ({"team0": ["eno1", "eno2"]}, {"team0": "team addrgenmode eui64"}),
    "bond": ({"bond0": ["eno1", "eno2"]}, {"bond0": "bond mode balance-xor miimon 100"}),
    "bond of vlans": (
        {"bond0": ["eno1.7", "eno2.7"], "eno1.7": ["eno1"], "eno2.7": ["eno2"]},
        {
            "bond0": "bond mode balance-xor",
            "eno1.7": "vlan protocol 802.1Q id 7",
            "eno2.7": "vlan protocol 802.1Q id 7",
        },
    ),
    "bridge on a vlan on a bond": (
        {"br0": ["bond0.7", "tap3"], "bond0.7": ["bond0"], "bond0": ["eno1", "eno2"], "tap3": []},
        {
            "br0": "bridge forward_delay 1500",
            "bond0.7": "vlan protocol 802.1Q id 7",
            "bond0": "bond mode 802.3ad",
        },
    ),
}
FAULTS = {"nic.half_duplex", "nic.slow_link", "nic.interrupt_moderation", "nic.eee"}


def node_on(stack, *, healthy=(), files=()):
    """Return the facts of a node whose interface is this stack on the cards of a captured node."""
    lower, words = STACKS[stack]
    text = (NODES / "field-bond.tree").read_text(encoding="utf-8")
    top = next(iter(lower))
    links = [f" {name} - - - {','.join(below) or '-'}" for name, below in lower.items()]
    links += [" eno1 0000:03:00.0 igb - -", " eno2 0000:03:00.1 igb - -", " lo - - - -"]
    before, _, rest = text.partition("#links 0\n")
    lines = [
        one
        for one in rest.split("\n")
        if not one.startswith((" bond0 -", " eno1 0000", " eno2 0000", " lo -"))
    ]
    kinds = [
        f"#kind.{name} 0\n 9: {name}: <UP> mtu 1500\\    link/ether 02:00\\    {said}"
        for name, said in words.items()
    ]
    text = before + "#links 0\n" + "\n".join([*links, *kinds, *lines]).replace("/net/bond0/", f"/net/{top}/")
    text = text.replace(" bond0    inet", f" {top}    inet")
    for card in healthy:
        text = made_healthy(text, card)
    return parse("node01", text + "\n-\n" + "\n".join(files), top, KNOBS)


def made_healthy(text, card):
    for wrong, right in (
        (f"/sys/class/net/{card}/speed:100\n", f"/sys/class/net/{card}/speed:1000\n"),
        (f"/sys/class/net/{card}/duplex:half", f"/sys/class/net/{card}/duplex:full"),
    ):
        text = text.replace(wrong, right)
    head, mark, rest = text.partition(f"#ethtool.{card} 0")
    own, end, after = rest.partition(f"#ethtool--show-eee.{card} 0")
    own = (
        own.replace("rx-usecs: 100", "rx-usecs: 0")
        .replace("100Mb/s", "1000Mb/s")
        .replace("Duplex: Half", "Duplex: Full")
    )
    return head + mark + own + end + after.replace("enabled - active", "disabled", 1)


def found_on(node):
    return [one for one in judge([node], "hpc").findings if one.kind == "check"]


@pytest.mark.parametrize("stack", STACKS)
def test_what_is_wrong_with_a_member_is_found_and_says_which(stack):
    node = node_on(stack)
    said = {one.id: one.found for one in found_on(node) if "eno2 (member of" in one.found}
    assert said.keys() >= FAULTS
    assert all(one.nodes == ["node01"] for one in found_on(node))


@pytest.mark.parametrize("stack", STACKS)
def test_healthy_members_are_well(stack):
    node = node_on(stack, healthy=("eno1", "eno2"))
    assert {one.id for one in found_on(node)} & (FAULTS | {"nic.members_unequal", "nic.member_out"}) == set()


def test_a_fix_names_the_member():
    (half,) = [one for one in found_on(node_on("vlan")) if one.id == "nic.half_duplex"]
    assert half.fix.startswith("ethtool -s eno2 ")


def test_the_stack_is_told_in_words_and_containers_ports_are_left_out():
    facts = node_on("bridge on a vlan on a bond").facts
    assert facts["nic.stack"] == "br0 (bridge) on bond0.7 (vlan 7) on bond0 (bond, 802.3ad) on eno1, eno2"
    assert "tap3" not in str(facts["nic.members"])


def test_values_that_members_share_are_the_interfaces():
    same = node_on("bond")
    assert same.facts["nic.rx_usecs"] == "100"
    differs = node_on("bond", healthy=("eno1",))
    assert differs.absent["nic.rx_usecs"] == "its members differ: eno1 0, eno2 100"


@pytest.mark.parametrize(
    ("files", "id_", "words"),
    [
        (
            [
                "/sys/class/net/bond0/bonding/mode:802.3ad 4",
                "/sys/class/net/bond0/bonding/xmit_hash_policy:layer2 0",
            ],
            "nic.bond_hash",
            "transmit hash layer2",
        ),
        (
            [
                "/sys/class/net/bond0/bonding/mode:802.3ad 4",
                "/sys/class/net/bond0/bonding/ad_partner_mac:00:00:00:00:00:00",
            ],
            "nic.bond_partner",
            "no partner answers LACP",
        ),
        (["/sys/class/net/eno1/bonding_slave/mii_status:down"], "nic.member_out", "eno1 has the state down"),
        (["/sys/class/net/eno1/brport/state:4"], "nic.member_out", "eno1 does not forward"),
    ],
)
def test_what_is_wrong_with_the_bond_itself(files, id_, words):
    said = [one.found for one in found_on(node_on("bond", files=files)) if one.id == id_]
    assert len(said) == 1
    assert words in said[0]


def test_a_hash_of_ports_is_well():
    mode = "/sys/class/net/bond0/bonding/mode:802.3ad 4"
    policy = "/sys/class/net/bond0/bonding/xmit_hash_policy:layer3+4 1"
    assert "nic.bond_hash" not in {one.id for one in found_on(node_on("bond", files=[mode, policy]))}


def test_nodes_with_the_same_fault_share_a_finding():
    records = [msgspec.structs.replace(node_on("bond"), node=name) for name in ("node01", "node02")]
    findings = [one for one in judge(records, "hpc").findings if one.id == "nic.half_duplex"]
    assert [one.nodes for one in findings] == [["node01", "node02"]]


@pytest.mark.root
def test_this_kernels_macvlan_is_looked_through():
    script = resources.files("wulf.node.facts").joinpath("capture.sh")
    commands = """set -e
        mount -t sysfs none /sys
        ip link add v0 type veth peer name v1
        ip link set v0 up; ip link set v1 up
        ip link add mv0 link v0 type macvlan mode bridge
        ip link set mv0 up; ip addr add 10.9.0.1/24 dev mv0
        sh -s -- mv0 '/sys/class/net/{interface}/threaded'"""
    said = subprocess.run(
        ["unshare", "-n", "-m", "sh", "-c", commands],
        input=script.read_text(), capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    facts = parse("node01", said.stdout, "mv0", KNOBS).facts
    assert facts["nic.stack"] == "mv0 (macvlan bridge) on v0 (veth)"
    assert facts["nic.speed_bits_per_s@v0"] == 10_000_000_000
    assert "napi.threaded@v0" in facts


def setting(knob, value):
    return KnobSetting(knob=catalogue.knob(knob), value=value)


def test_a_knob_of_a_card_is_set_on_the_card_below_a_vlan_and_one_of_the_interface_on_it():
    wanted = [setting("nic.rx_usecs", "0"), setting("nic.mtu", "9000")]
    plan = steps.plan(wanted, "eno2.7", node_on("vlan"))
    assert {step.knob: step.interface for step in plan} == {"nic.rx_usecs": "eno2", "nic.mtu": "eno2.7"}


def test_all_cards_of_a_bond_are_set_together_and_those_that_have_the_value_are_left():
    node = node_on("bond")
    one = setting("nic.rx_usecs", "7")
    assert [step.interface for step in steps.lacking([one], "bond0", node)] == ["eno1", "eno2"]
    assert steps.obstacle(one, node, take_over=False, relax=False) == ""
    there = msgspec.structs.replace(node, facts=node.facts | {"nic.rx_usecs@eno2": 7})
    assert [step.interface for step in steps.lacking([one], "bond0", there)] == ["eno1"]
    assert not steps.fulfilled_on(one, there)
    assert "eno2 7" in str(steps.value_words(one.knob, there))
    there = msgspec.structs.replace(there, facts=there.facts | {"nic.rx_usecs@eno1": "7"})
    assert steps.fulfilled_on(one, there)
    assert steps.lacking([one], "bond0", there) == []


def test_members_that_differ_are_made_equal():
    node = node_on("bond")
    facts = node.facts | {"nic.rx_usecs@eno1": 3, "nic.rx_usecs@eno2": 128}
    facts.pop("nic.rx_usecs", None)
    why = "its members differ: eno1 3, eno2 128"
    differing = msgspec.structs.replace(node, facts=facts, absent=node.absent | {"nic.rx_usecs": why})
    one = setting("nic.rx_usecs", "3")
    assert steps.obstacle(one, differing, take_over=False, relax=False) == ""
    plan = change.plan([differing], "bond0", {differing.node: [one]}, change.VETTED)
    assert [step.interface for step in plan.plans[differing.node]] == ["eno2"]
    assert list(plan.rows) == [("nic.rx_usecs", "eno1 3, eno2 128", "3")]


def test_a_card_that_cannot_is_named():
    node = node_on("bond")
    facts = {name: value for name, value in node.facts.items() if name != "nic.rx_usecs@eno2"}
    less = msgspec.structs.replace(
        node, facts=facts, unsupported=node.unsupported | {"nic.rx_usecs@eno2": "Operation not supported"}
    )
    said = steps.obstacle(setting("nic.rx_usecs", "0"), less, take_over=False, relax=False)
    assert said == "nic.rx_usecs is unsupported on eno2: Operation not supported"


def test_parameters_of_a_driver_of_several_cards_are_left_to_the_administrator():
    said = steps.obstacle(
        setting("nic.InterruptThrottleRate", "0"), node_on("bond"), take_over=False, relax=False
    )
    assert "(eno1, eno2): set it by hand" in said


@pytest.mark.parametrize(
    ("name", "top", "cards"), [("vlan", "eno2.7", ["eno2"]), ("bond", "bond0", ["eno1", "eno2"])]
)
def test_what_cards_below_have_is_kept_by_the_script_at_boot_on_each_of_them(name, top, cards):
    node = node_on(name)
    unknown = {fact: why for fact, why in node.unknown.items() if fact != "system.state"}
    node = msgspec.structs.replace(node, facts=node.facts | {"system.state": "running"}, unknown=unknown)
    kept = persist([setting("nic.rx_usecs", "0")], top, node, "change")
    assert not kept.unpersistable
    assert kept.places["nic.rx_usecs"].endswith(f", on {' and '.join(cards)})")
    script = kept.texts[configuration_files.SCRIPT]
    lines = [line for line in script.splitlines() if line.startswith("keep nic nic.rx_usecs")]
    assert [line.split()[4] for line in lines] == cards
    assert not [one for one in kept.steps if one.target.endswith(".link")]

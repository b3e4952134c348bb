from __future__ import annotations

import pytest

from wulf.base import catalogue
from wulf.base.errors import UsageError
from wulf.base.records import NodeRecord
from wulf.node.change import steps
from wulf.node.change.shell_functions import access_functions


def record(**more):
    facts = {"nic.mtu": "1500", "network.faces_outside": False, "net.conntrack": "tracked"}
    return NodeRecord(node="node01", reachable=True, facts=facts | more.pop("facts", {}), **more)


def obstacle(word, node, **allowed):
    (knob_setting,) = steps.parse([word])
    permissions = {"take_over": False, "relax": False} | allowed
    return steps.obstacle(knob_setting, node, **permissions)


def test_words_become_wishes():
    found = steps.parse(["nic.mtu=9000", "tcp_autocorking=0", "nic.tso_gso=on off"])
    assert [str(knob_setting) for knob_setting in found] == [
        "nic.mtu=9000",
        "sysctl.net.ipv4.tcp_autocorking=0",
        "nic.tso_gso=on off",
    ]


def test_a_vector_is_written_as_the_kernel_writes_it():
    (knob_setting,) = steps.parse(["tcp_rmem=4096   0131072 6291456"])
    assert knob_setting.value == "4096 131072 6291456"


def test_one_word_is_for_all_features_of_a_knob():
    (knob_setting,) = steps.parse(["nic.tso_gso=on"])
    assert knob_setting.value == "on on"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("nic.mtu", "KNOB=VALUE"),
        ("nic.mtu=", "KNOB=VALUE"),
        ("nic.mtu=jumbo", "a whole number from 68 to 65535"),
        ("nic.mtu=66000", "from 68 to 65535"),
        ("nic.gro=maybe", "one of on, off"),
        ("nic.tso_gso=on $(reboot)", "letters, digits"),
        ("nic.tso_gso=on maybe", "on or off, or a word for each of tcp-segmentation-offload, generic"),
        ("nic.tso_gso=on off on", "on or off, or a word for each"),
        ("nic.tso_gso=on\toff", "letters, digits"),
        ("tcp_mem=balanced", "3 whole numbers"),
        ("tcp_mem=1 2", "3 whole numbers"),
        ("tcp_mem=0 1 2", "0 is not from 1 to"),
        ("tcp_rmem=4096 1024 6291456", "smaller than the one before"),
        ("napi.gro_flush_timeout=0 -1", "-1 is not from 0 to"),
        ("cpu.isolcpus=1", "set at boot"),
        ("cpu.mitigations=off", "security"),
        ("tcp_low_latency=1", "no effect any more"),
        ("svc.iptables_legacy=0", "net.conntrack=exempt"),
        ("hpl.N=1000", "belongs to a job"),
        ("no.such=1", "there is no knob"),
    ],
)
def test_what_cannot_be_set_is_refused_with_the_reason(word, said):
    with pytest.raises(UsageError, match=said.replace("$", r"\$")):
        steps.parse([word])


def test_a_knob_is_given_once():
    with pytest.raises(UsageError, match="given twice"):
        steps.parse(["nic.mtu=9000", "mtu=1500"])


def test_channels_come_before_rings_and_interrupts_last():
    wanted = [
        steps.KnobSetting(knob=catalogue.knob(name), value="1")
        for name in ("irq.affinity", "nic.rings", "nic.rx_usecs", "nic.channels", "svc.irqbalance")
    ]
    found = [step.knob for step in steps.plan(wanted, "eth0")]
    assert found == ["svc.irqbalance", "nic.channels", "nic.rings", "nic.rx_usecs", "irq.affinity"]


def test_an_interface_is_needed_for_what_belongs_to_one():
    with pytest.raises(UsageError, match="which one carries"):
        steps.plan(steps.parse(["nic.mtu=9000"]), None)
    (step,) = steps.plan(steps.parse(["tcp_autocorking=0"]), None)
    assert step.line() == "sysctl.net.ipv4.tcp_autocorking\tsysctl\t-\tnet.ipv4.tcp_autocorking\t0"


def test_every_settable_kind_has_all_its_functions():
    text = access_functions()
    kinds = {knob.access.kind for knob in catalogue.knobs().values() if not catalogue.unsettable(knob)}
    assert len(kinds) > 10
    for kind in kinds | {"stored", "unit"}:
        for verb in ("save", "put", "restore", "get"):
            assert f"\n{kind}_{verb}()" in text, (kind, verb)


def test_an_owner_is_named_with_the_way_around():
    node = record(facts={"owner.nic.mtu": "NetworkManager (/etc/NetworkManager/x)"})
    said = obstacle("nic.mtu=9000", node)
    assert "NetworkManager (/etc/NetworkManager/x)" in said
    assert "--take-over" in said
    assert obstacle("nic.mtu=9000", node, take_over=True) == ""


def test_what_the_driver_does_not_have_cannot_be_set():
    assert "unsupported" in obstacle("nic.rx_usecs=0", record(unsupported={"nic.rx_usecs": "no"}))
    assert "absent" in obstacle("nic.rx_usecs=0", record(absent={"nic.rx_usecs": "no"}))


@pytest.mark.parametrize("facing", [True, None])
def test_the_filter_of_an_interface_that_may_face_the_outside_stays(facing):
    node = record(facts={"network.faces_outside": facing}) if facing else record()
    if facing is None:
        del node.facts["network.faces_outside"]
    said = obstacle("net.conntrack=notrack", node)
    assert "--relax-firewall-facing-outside" in said
    assert obstacle("net.conntrack=notrack", node, relax=True) == ""
    assert obstacle("net.conntrack=tracked", node) == ""


def test_a_firewall_is_not_switched_off_where_any_interface_faces_the_outside():
    node = record(facts={"network.default_interface": "eth1"})
    assert "eth1 faces the outside" in obstacle("svc.nftables=off", node)
    closed = record(absent={"network.default_interface": "there is no default route"})
    assert obstacle("svc.nftables=off", closed) == ""


def test_a_node_that_does_not_answer_is_an_obstacle():
    assert "cut" in obstacle("nic.mtu=9000", NodeRecord(node="node01", reachable=False, error="cut"))


@pytest.mark.parametrize(
    ("wanted", "value", "same"),
    [
        ("9000", 9000, True),
        ("5", "5ms", True),
        ("on on", "on  on ", True),
        ("0", "1", False),
        ("5", None, False),
    ],
)
def test_same(wanted, value, same):
    assert steps.same(wanted, value) is same


def test_where_nothing_is_tracked_there_is_nothing_to_exempt():
    (knob_setting,) = steps.parse(["net.conntrack=notrack"])
    assert steps.fulfilled(knob_setting, "off")
    assert not steps.fulfilled(knob_setting, "tracked")


def test_a_filter_that_tracks_nothing_can_be_exempt_from():
    exempt, tracked = steps.parse(["net.conntrack=exempt"]) + steps.parse(["net.conntrack=tracked"])
    assert not steps.fulfilled(exempt, "filtered")
    assert steps.fulfilled(tracked, "filtered")

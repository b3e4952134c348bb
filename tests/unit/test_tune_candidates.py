from __future__ import annotations

import pytest

from wulf.base import catalogue
from wulf.base.catalogue import Knob
from wulf.base.errors import UsageError
from wulf.base.profile import PROFILES
from wulf.base.records import MpiParameter, NodeRecord
from wulf.node.change import steps
from wulf.node.fleet import change
from wulf.node.fleet.look import judge
from wulf.node.trials import prepare
from wulf.node.trials.experiment import candidates, objective

LAN = {"nic.name": "eth0"}


def nodes(*values, knob, driver="tg3"):
    return [
        NodeRecord(node=f"n{index}", reachable=True, facts=LAN | {"nic.driver": driver, knob: value})
        for index, value in enumerate(values)
    ]


def choose(records, knob, profile="latency", refusals=None, wanted=()):
    known = {knob: catalogue.knob(knob)}
    return candidates.choose(records, known, profile, refusals or {}, steps, wanted)


def only(records, knob, **more):
    (found,), _ = choose(records, knob, **more)
    return found


def settable(records, profile="latency"):
    """Every knob of the catalogue that could be set, on nodes that have these facts."""
    knobs = catalogue.knobs()
    refusals = {name: why for name, knob in knobs.items() if (why := catalogue.unsettable(knob))}
    refusals |= {name: "not there" for name in knobs if all(name not in one.facts for one in records)}
    return candidates.choose(records, knobs, profile, refusals, steps)


def test_the_default_of_igb_is_worth_trying_and_tried_first():
    facts = LAN | {
        "nic.driver": "igb",
        "nic.rx_usecs": "3",
        "nic.gro": "on",
        "cpu.governor": "powersave",
        "sysctl.net.core.busy_read": "0",
        "sysctl.net.ipv4.tcp_autocorking": "1",
    }
    records = [NodeRecord(node=name, reachable=True, facts=facts) for name in ("a", "b")]
    for profile in ("latency", "hpc"):
        (said,) = [one for one in judge(records, profile).findings if one.id == "nic.interrupt_moderation"]
        assert (said.severity, said.remedy) == ("warn", "try")
        assert "rx-usecs 3 (dynamic, conservative)" in said.found
        first, *_ = settable(records, profile)[0]
        assert first.knob == "nic.rx_usecs"
        assert first.original == "3 (dynamic, conservative)"
        assert first.values[0] == "0"
        assert first.effect == catalogue.knob("nic.rx_usecs").effect


def test_a_mode_of_the_driver_is_no_point_on_a_scale():
    found = only(nodes("3", "3", knob="nic.rx_usecs", driver="igb"), "nic.rx_usecs")
    assert found.values == ["0", "10", "1", "100"]
    assert found.meanings == {"1": "dynamic", "3": "dynamic, conservative"}
    assert not found.numeric
    plain = only(nodes("3", "3", knob="nic.rx_usecs", driver="tg3"), "nic.rx_usecs")
    assert (plain.original, plain.values, plain.numeric) == ("3", ["0", "10", "100"], True)


def test_who_names_a_knob_has_all_its_values_and_modes():
    found = only(nodes("3", "3", knob="nic.rx_usecs", driver="igb"), "nic.rx_usecs", wanted=["rx_usecs"])
    assert found.values == ["0", "10", "30", "100", "1"]


def test_what_the_driver_begins_with_is_tried_where_somebody_set_something_else():
    found = only(nodes("125", "125", knob="nic.rx_usecs", driver="igb"), "nic.rx_usecs")
    assert found.values == ["0", "10", "3", "1"]
    assert found.original == "125"


@pytest.mark.parametrize(
    ("name", "profile", "value", "tried"),
    [
        ("nic.rx_usecs", "latency", "64", ["0", "10", "100"]),
        ("nic.rx_usecs", "latency", "0", ["10", "100"]),
        # Without a recommendation: the ends, and what is between.
        ("nic.rx_usecs", "throughput", "20", ["0", "30", "100"]),
        ("sysctl.net.core.busy_read", "latency", "0", ["50", "100"]),
        ("sysctl.net.core.busy_read", "latency", "50", ["100", "0"]),
        ("cpu.cstates_pmqos", "latency", "unlimited", ["3", "1", "0", "50"]),
        ("cpu.cstates_pmqos", "latency", "3", ["1", "0", "50"]),
        ("cpu.turbo", "latency", "1", ["0"]),
        ("sysctl.net.core.rmem_max", "throughput", "212992", ["4194304", "16777216"]),
        ("sysctl.net.ipv4.tcp_autocorking", "latency", "1", ["0"]),
    ],
)
def test_numbers_are_swept_over_their_range(name, profile, value, tried):
    found, left_out = choose(nodes(value, value, knob=name), name, profile)
    assert [one.values for one in found] == [tried], left_out


def has_another_value(knob, profile):
    wanted = knob.recommend.get(profile)
    return (
        wanted is not None
        and any(not catalogue.accepts(wanted, value) for value in knob.values)
        and (knob.status, knob.lockout in ("none", "link blip")) == ("current", True)
        and not catalogue.unsettable(knob)
    )


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        (knob.id, profile)
        for knob in catalogue.knobs().values()
        for profile in PROFILES
        if has_another_value(knob, profile)
    ],
)
def test_no_knob_is_left_out_because_its_value_is_recommended(name, profile):
    knob = catalogue.knob(name)
    liked = catalogue.preferred(knob.recommend[profile])
    found = only(nodes(liked, liked, knob=name), name, profile=profile)
    assert 0 < found.effect < max(knob.effect, 0.02)
    assert len(found.values) <= 3


@pytest.mark.parametrize("name", catalogue.knobs())
def test_no_knob_has_more_values_than_a_search_has_time_for(name):
    knob = catalogue.knob(name)
    values = [*knob.values, "7", "8", "9"]
    for profile in PROFILES:
        for count in (1, 3):
            for one in choose(nodes(*(values[:count]), knob=name), name, profile)[0]:
                assert len(one.values) <= 4
                assert len(set(one.values)) == len(one.values)


def test_a_liked_value_comes_after_what_is_not_as_recommended():
    known = {name: catalogue.knob(name) for name in ("nic.rx_usecs", "nic.gro", "svc.irqbalance")}
    facts = {"nic.rx_usecs": "0", "nic.gro": "off", "svc.irqbalance": "on"}
    records = [NodeRecord(node="n", reachable=True, facts=facts)]
    found, _ = candidates.choose(records, known, "hpc", {}, steps)
    assert [candidate.knob for candidate in found] == ["nic.gro", "nic.rx_usecs", "svc.irqbalance"]


def test_the_most_promising_comes_first():
    known = {name: catalogue.knob(name) for name in ("nic.rx_usecs", "nic.gro", "svc.irqbalance")}
    facts = {"nic.rx_usecs": "64", "nic.gro": "off", "svc.irqbalance": "on"}
    records = [NodeRecord(node="n", reachable=True, facts=facts)]
    found, _ = candidates.choose(records, known, "hpc", {}, steps)
    assert [candidate.knob for candidate in found] == ["nic.rx_usecs", "nic.gro", "svc.irqbalance"]


def test_where_nodes_differ_the_value_of_most_is_tried():
    found = only(nodes("1500", "1500", "1400", knob="nic.mtu"), "nic.mtu")
    assert found.values == ["1500"]
    assert found.original == "1500 (2×), 1400"
    assert found.nodes == "n2"
    assert found.effect >= 0.1
    # Of two that equally many have, neither is preferred.
    assert only(nodes("1500", "1400", knob="nic.mtu"), "nic.mtu").values == ["1500", "1400"]


def test_what_other_nodes_have_is_tried():
    found = only(nodes("64", "20", "20", knob="nic.rx_usecs"), "nic.rx_usecs")
    assert found.values == ["0", "10", "20", "64"]
    assert found.nodes == ""


def test_a_value_that_cannot_be_set_is_not_tried():
    found = only(nodes("tracked", "off", knob="net.conntrack"), "net.conntrack")
    assert found.values == ["notrack"]


def test_only_nodes_that_lack_a_value_are_changed():
    records = nodes("tracked", "tracked", "off", "off", knob="net.conntrack")
    found = only(records, "net.conntrack")
    assert found.nodes == "n[0-1]"
    wanted = {one.node: [steps.check(catalogue.knob("net.conntrack"), found.values[0])] for one in records}
    plan = change.plan(records, "eth0", wanted, change.VETTED)
    assert list(plan.plans) == ["n0", "n1"]


def test_a_knob_that_can_cut_a_node_off_is_tried_only_when_named():
    records = nodes("1500", "1500", knob="nic.mtu")
    found, left_out = choose(records, "nic.mtu")
    assert found == []
    assert "connectivity" in left_out["nic.mtu"]
    assert "--knobs" in left_out["nic.mtu"]
    named = only(records, "nic.mtu", wanted=["nic.mtu"])
    assert named.values == ["3000", "4500", "6000", "7500", "9000"]
    assert named.numeric
    assert only(records, "nic.mtu", wanted=["mtu=9000"]).values == ["9000"]


def test_folklore_is_set_right_but_not_tried():
    name = "sysctl.net.ipv4.tcp_timestamps"
    found, left_out = choose(nodes("1", "1", knob=name), name)
    assert found == []
    assert left_out[name].startswith("folklore")
    assert only(nodes("0", "0", knob=name), name).values == ["1"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("bbr", "all nodes have bbr already"),
        ("bbr,bbr", "all nodes have bbr, bbr already"),
        ("@file", "it cannot be @file"),
        ("a$b", "it cannot be a$b"),
    ],
)
def test_values_that_were_given_and_are_not_tried_say_why(given, said):
    name = "sysctl.net.ipv4.tcp_congestion_control"
    found, left_out = choose(nodes("bbr", "bbr", knob=name), name, wanted=(f"{name}={given}",))
    assert found == [] and left_out[name].startswith(said)
    assert "name it" not in left_out[name]


def test_what_only_a_person_knows_is_left_out():
    for name in ("irq.affinity", "cpu.smt", "nic.rings"):
        found, left_out = choose(nodes("x", "x", knob=name), name)
        assert found == []
        assert "--knobs" in left_out[name]


def test_a_service_that_only_some_nodes_run_is_left_alone_without_a_recommendation():
    known = {"svc.x": _service()}
    records = nodes("on", "off", knob="svc.x")
    assert candidates.choose(records, known, "latency", {}, steps)[0] == []


def _service() -> Knob:
    import msgspec

    return msgspec.structs.replace(catalogue.knob("svc.irqbalance"), id="svc.x", recommend={}, measure="?")


def test_another_word_for_the_same_is_not_tried():
    name = "ompi.mpi_yield_when_idle"
    assert only(nodes("false", "false", knob=name), name).values == ["1"]


def test_what_a_container_shares_with_its_host_is_left_alone():
    kernel = {"vm.thp": "madvise", "sysctl.kernel.numa_balancing": "0"}
    network = {"sysctl.net.ipv4.tcp_autocorking": "1", "napi.threaded": "0"}
    goal = objective.application("true", "", "lower", "s")
    for container, tried in (("systemd-nspawn", network), ("none", kernel | network)):
        facts = LAN | kernel | network | {"node.container": container}
        records = [NodeRecord(node=name, reachable=True, facts=facts) for name in ("a", "b")]
        choice = prepare.choose(records, goal, [], None, change.Permissions())
        known = [one.knob for one in choice.candidates if one.knob in kernel | network]
        assert sorted(known) == sorted(tried)
    named = prepare.choose(records, goal, ["vm.thp"], None, change.Permissions())
    assert [one.knob for one in named.candidates] == ["vm.thp"]


def test_parameters_that_the_library_does_not_have_are_not_tried():
    def parameter(name, value):
        return MpiParameter(name=name, value=value, about="", values={})

    goal = objective.application("mpirun ./a", "", "lower", "s")
    records = [NodeRecord(node="a", reachable=True, facts=LAN)]
    had = [parameter("btl_tcp_links", "1"), parameter("btl_tcp_progress_thread", "0")]
    library = prepare.Library(name="Open MPI 4", family="openmpi", parameters={one.name: one for one in had})
    choice = prepare.choose(records, goal, [], library, change.Permissions())
    tried = {one.knob: one.values for one in choice.candidates}
    # What it has now is not tried.
    assert tried["ompi.btl_tcp_progress_thread"] == ["1"] and "1" not in tried["ompi.btl_tcp_links"]
    assert choice.left_out["ompi.btl_tcp_sndbuf"] == "Open MPI 4 has no parameter btl_tcp_sndbuf here"
    assert choice.left_out["mpich.async_progress"] == "it belongs to mpich, which is not measured"
    assert "ompi.btl_tcp_links" in prepare.choose(records, goal, [], None, change.Permissions()).left_out
    assert choice.left_out["prrte.binding"].startswith("Open MPI 4 has no parameter PRTE_MCA_hwloc")
    had = [parameter("MPIR_CVAR_ASYNC_PROGRESS", "0")]
    library = prepare.Library(name="MPICH 4", family="mpich", parameters={one.name: one for one in had})
    choice = prepare.choose(records, goal, [], library, change.Permissions())
    assert [one.knob for one in choice.candidates if one.knob.startswith("mpich.")] == [
        "mpich.async_progress"
    ]
    assert choice.left_out["mpich.ch3_eager_max"].startswith("MPICH 4 has no parameter MPIR_CVAR_CH3")


def test_pairs_follow_from_what_the_candidates_change():
    facts = [
        LAN | {"net.conntrack": value, "network.faces_outside": False}
        for value in ("tracked", "tracked", "off", "off")
    ]
    records = [NodeRecord(node=f"n{at}", reachable=True, facts=one) for at, one in enumerate(facts)]
    goal = objective.application("true", "", "lower", "s")
    choice = prepare.choose(records, goal, ["net.conntrack=notrack"], None, change.Permissions())
    assert choice.pairs(["n0", "n1", "n2", "n3"]) == [("n0", "n2"), ("n1", "n3"), ("n0", "n1")]


def test_a_refusal_is_told():
    _, left_out = choose(nodes("1400", knob="nic.mtu"), "nic.mtu", refusals={"nic.mtu": "somebody's"})
    assert left_out == {"nic.mtu": "somebody's"}


def test_a_pattern_that_matches_nothing_is_an_error():
    with pytest.raises(UsageError, match="no knob"):
        choose(nodes("1500", knob="nic.mtu"), "nic.mtu", wanted=["nic.foo"])

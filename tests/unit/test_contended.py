"""Event by event beside messages in their order, and the uplinks of switches: the pure part."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.predict_fixture import contention, prediction
from wulf.base.errors import ConfigError, TraceError
from wulf.base.records import PathShares
from wulf.page.page import html
from wulf.stats.prediction import contended, judge, replayed, uplinks
from wulf.tools.predict import page as report

CONF = """# as Slurm has it
SwitchName=leaf1 Nodes=node[01-02] LinkSpeed=10Gbit/s
SwitchName=leaf2 \\
   Nodes=node03 LinkSpeed=1G
SwitchName=core Switches=leaf[1-2]
"""


def test_switches_of_slurm_become_uplinks():
    text = uplinks.text(uplinks.read(CONF, "t"), ["node01", "node03.site", "node02"], "t")
    assert text.splitlines() == [
        "uplink s0 1.25e+09 s2",
        "uplink s1 125000000 s2",
        "uplink s2 1e+15",
        "node 0 s0",
        "node 1 s1",
        "node 2 s0",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "t: no switch"),
        ("Switch=a", "t:1: 'Switch=a' is none of SwitchName="),
        ("\nNodes=a", "t:2: SwitchName= is missing"),
        ("SwitchName=a", "t:1: neither Nodes= nor Switches="),
        ("SwitchName=a Nodes=n\nSwitchName=a Nodes=m", "t:2: switch a was described in line 1"),
        ("SwitchName=a Nodes=n LinkSpeed=fast", "t:1: LinkSpeed=fast is not a speed"),
        ("SwitchName=a Nodes=n LinkSpeed=0G", "t:1: LinkSpeed=0G is not a speed"),
        ("SwitchName=a Switches=b", "t:1: switch b has no line of its own"),
        ("SwitchName=a Nodes=n\nSwitchName=c Switches=a", "t:1: how fast the uplink of a to c is"),
        (
            "SwitchName=a Nodes=n LinkSpeed=1G\nSwitchName=b Switches=a LinkSpeed=1G\nSwitchName=c Switches=a",
            "t:3: switch a is below b already",
        ),
        (
            "SwitchName=a Switches=b LinkSpeed=1G\nSwitchName=b Switches=a LinkSpeed=1G",
            "what is above switch a is also below it",
        ),
    ],
)
def test_a_wrong_line_is_named(text, said):
    with pytest.raises(ConfigError, match=re.escape(said)):
        uplinks.read(text, "t")


def test_a_node_is_at_one_switch():
    with pytest.raises(ConfigError, match="t: node node09 is at no switch"):
        uplinks.text(uplinks.read(CONF, "t"), ["node09"], "t")
    twice = uplinks.read("SwitchName=a Nodes=n\nSwitchName=b Nodes=n", "t")
    with pytest.raises(ConfigError, match="t:2: node n is at a, too"):
        uplinks.text(twice, ["n"], "t")


def static(samples=20, columns=3):
    generator = np.random.default_rng(1)
    times = np.outer(1 + 0.01 * generator.standard_normal(samples + 1), [1.0, 0.5, 1.2][:columns])
    path = PathShares(compute_s=1, latency_s=0, bandwidth_s=0, overhead_s=0, hops=0)
    return judge.Figures(times, [path] * columns, 2.0, np.zeros(samples), [])


def compared(ratios, beside=None, samples=8, wild=0, chosen=0):
    """Ratios of what is event by event to what is not, of each network."""
    of = static(columns=len(ratios))

    def seen(factors):
        times = of.times[: samples + 1] * np.array(factors)
        return contended.Seen(
            np.dstack([times, 2 * times]), [0] * len(factors), [False] * len(factors), wild, chosen
        )

    names = ["as it is", "fast", "slow"][: len(ratios)]
    return contended.Compared(
        of, seen(ratios), seen(beside) if beside else None, names, ["other"] if beside else []
    )


def test_samples_that_were_not_replayed_take_the_ratio_of_others():
    found = contended.contention(compared([1.5, 1.5, 1.5]), "")
    assert found.samples == 8
    assert found.base.gap.value == pytest.approx(1.5) and found.base.gap.n == 8
    fast, slow = found.scenarios
    # The same contention on both networks changes nothing of what one is against the other.
    assert fast.change.value == pytest.approx(0.5) and fast.change.n == 20
    assert fast.time.value == pytest.approx(1.0)
    assert slow.verdict == "slower"
    assert "Contention matters" in found.meaning[0]


def test_contention_may_take_a_gain_away():
    found = contended.contention(compared([1.0, 2.0, 1.0]), "")
    assert found.scenarios[0].verdict == "no difference"
    assert "Contention does not matter" in found.meaning[0]
    assert any("'no difference' event by event" in line and "'faster'" in line for line in found.meaning)


def test_a_network_that_takes_no_time_has_figures_too():
    of = compared([1.0, 1.0, 1.0])
    of.static.times[:, 1] = 0.0
    of.alone.times[:, 1, 0] = 0.0
    nothing = contended.contention(of, "").scenarios[0]
    assert nothing.time.value == 0 and nothing.gap.value == 1 and nothing.verdict == "faster"
    of.alone.times[:, 1, 0] = 0.25 * of.alone.times[:, 0, 0]  # ... but for what others take of its switches
    shared = contended.contention(of, "")
    assert shared.scenarios[0].change.value == pytest.approx(0.25) and shared.scenarios[0].gap is None
    assert contended.may_matter(shared)


@pytest.mark.parametrize(("slower", "may_matter"), [(1.0, False), (1.01, False), (1.5, True), (0.5, True)])
def test_contention_may_matter_where_it_does_in_some_samples(slower, may_matter):
    of = compared([1.0, 1.0, 1.0])
    of.alone.times[5:8, 0, 0] *= slower
    found = contended.contention(of, "")
    assert contended.may_matter(found) is may_matter
    if may_matter:
        assert "cannot be told" in found.meaning[0]


def test_losses_that_decide_are_said():
    of = replace(compared([1.0, 3.0, 1.0]), buffered=[1, 2])
    lost = replace(of.alone, timeouts=[0, 4, 0], lossless=[1.0, 0.5, 1.2])
    found = contended.contention(replace(of, alone=lost), "")
    fast, slow = found.scenarios
    assert (found.base.timeouts, fast.timeouts, slow.timeouts) == (None, 4, 0)
    assert fast.lossy == pytest.approx(fast.model_s / 0.5)
    assert found.meaning[0].startswith("fast: 4 messages find the buffer before the receiver full")
    assert "losses decide, the run time is 3" in found.meaning[0]
    assert "slow: no message waits for a timeout" in found.meaning[1]
    little = replace(of.alone, timeouts=[0, 4, 0], lossless=[1.0, fast.model_s, 1.2])
    assert "do not matter" in contended.contention(replace(of, alone=little), "").meaning[0]


def test_the_last_row_is_of_networks_that_lose_nothing():
    printed = [
        replayed.Contended(network="0", times_ns=[time], events=1, moved=0, as_recorded=False, timeouts=lost)
        for time, lost in ((1e9, 0), (3e9, 2), (1e9, 0), (4e9, 3), (1e9, 0), (2e9, 0))
    ]
    programs = [replayed.Program(wild=0, chosen=0)]
    plan = replayed.Plan(ranks=1, operations=1)
    found = contended.seen(replayed.Replayed(plan, [], [], [], programs, printed), 2, has_lossless=True)
    assert found.times[:, :, 0].tolist() == [[1.0, 3.0], [1.0, 4.0]]
    assert (found.timeouts, found.lossless) == ([0, 2], [1.0, 2.0])


def test_programs_beside_slow_it_against_alone():
    of = compared([1.1, 1.1, 1.1], beside=[2.2, 2.2, 1.1])
    found = contended.contention(of, "")
    assert found.base.slowed.value == pytest.approx(2.0)
    assert found.base.change.value == pytest.approx(2.0)
    assert found.base.time.value == pytest.approx(4.0)
    assert found.base.gap.value == pytest.approx(1.1)
    assert found.scenarios[1].slowed.value == pytest.approx(1.0)
    assert found.base.beside[0].trace == "other"
    assert found.base.beside[0].time.value == pytest.approx(2 * found.base.model_s)
    assert "Beside other" in found.meaning[0] and "against alone" in found.meaning[0]


def test_receives_that_keep_their_order_are_said():
    found = contended.contention(compared([0.9], wild=10, chosen=4), "")
    assert "Order matters" in found.meaning[0]
    assert any("Of 10 receives from any source, 6 must" in line for line in found.meaning)


@pytest.mark.parametrize(
    ("operations", "columns", "samples", "wanted"),
    [(1000, 5, 200, 40), (1000, 5, 20, 20), (250_000, 5, 200, 19), (100_000_000, 5, 200, 8)],
)
def test_there_are_fewer_samples_of_large_traces(operations, columns, samples, wanted):
    assert contended.samples_for(operations, columns, samples) == wanted


def test_only_small_traces_are_replayed_without_being_asked_for():
    assert contended.is_affordable(1_000_000, 5)
    assert not contended.is_affordable(100_000_000, 5)


def test_what_the_replay_prints_is_read():
    printed = (
        b'{"type":"plan","ranks":2,"operations":4}\n'
        b'{"type":"program","program":0,"trace":"t","ranks":2,"messages":2,"wild":3,"chosen":2}\n'
        b'{"type":"contended","network":"0","times_ns":[1000.0],"events":4,"moved":1,"as_recorded":true}\n'
        b'{"type":"contended","network":"1","times_ns":[2000.0],"events":4,"moved":0,"as_recorded":false}\n'
    )
    found = contended.seen(replayed.read(printed, 2, "t"), 1)
    assert found.times.shape == (2, 1, 1) and found.times[1, 0, 0] == pytest.approx(2e-6)
    assert found.moved == [1] and found.as_recorded == [True] and (found.wild, found.chosen) == (3, 2)
    with pytest.raises(TraceError, match="printed 2 of 3 results"):
        replayed.read(printed, 3, "t")


def test_the_page_shows_both_beside_each_other():
    alone = html(report.build(prediction(contention())))
    assert "Event by event" in alone and "Contention matters" in alone
    assert "The programs beside it" not in alone
    assert "The programs beside it" in html(report.build(prediction(contention(beside=("md.wtrace",)))))
    assert "Event by event" not in html(report.build(prediction()))

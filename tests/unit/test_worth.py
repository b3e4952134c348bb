"""What networks are worth: every figure against its formula, and words that follow from them."""

from __future__ import annotations

import numpy as np
import pytest

from wulf.base import networks
from wulf.base.errors import ConfigError
from wulf.base.networks import Bounds
from wulf.base.records import Estimate
from wulf.stats.prediction.draws import Sample
from wulf.tools.worth import money, words
from wulf.tools.worth import value as worth
from wulf.tools.worth.record import Worth

DRAWS = [Sample(1, number) for number in range(50)]
JOBS = """
nodes = 10
hours_a_year = 8000
[[job]]
trace = "a"
share = 0.5
ranks = 4
nodes = 2
[[job]]
trace = "b"
share = 0.25
ranks = 8
nodes = 8
"""


def fixed(value):
    return Bounds(value=value, low=value, high=value)


def prices(**changes):
    values = dict(
        currency="EUR",
        years=4,
        node_hour=fixed(0.5),
        power_per_kwh=fixed(0.2),
        node=fixed(4000),
        node_power_w=fixed(300),
    )
    return money.Prices(**values | changes)


def offer(a=0.8, b=0.6, nic=100):
    ports = money.Ports(nic=fixed(nic), switch_port=fixed(50), cable=fixed(10), power_w=fixed(20))
    return worth.Offer("new", "a new network", ports, "test", {"a": np.full(51, a), "b": np.full(51, b)})


def valued(tuned=None, of=None, at=None, noise=0.0):
    mix = money.read_jobs(JOBS.encode(), "jobs.toml").value
    of_traces = worth.Noise({"a": noise, "b": noise})
    return worth.worth(of or offer(), mix, at or prices(), DRAWS, tuned, of_traces)


def told(*networks, tuned="", tuned_change=None):
    """What is concluded of these networks."""
    bound = Estimate(value=500.0, low=400.0, high=600.0, confidence=0.95, unit="EUR", n=50, method="test")
    of = Worth(
        schema_version=1, run="cal", nodes=10, hours_a_year=8000, years=4, currency="EUR", samples=50, seed=1,
        tuned=tuned, tuned_change=tuned_change, bound_port=bound, networks=list(networks), conclusion=[], notes=[],
    )  # fmt: skip
    return list(words.conclusion(of))


def test_every_figure_is_that_of_its_formula():
    found = valued(tuned=np.full(51, 0.9))
    saved = 10 * 8000 * (0.5 * 0.2 + 0.25 * 0.4)
    power = 10 * 0.020 * 8760 * 0.2
    net = 4 * (saved * 0.5 - power) - 1600
    assert found.saved_node_hours.value == pytest.approx(saved)
    assert found.value.value == pytest.approx(saved * 0.5)
    assert found.price.value == 1600
    assert found.power.value == pytest.approx(power)
    assert found.net.value == pytest.approx(net)
    assert found.break_even_port.value == pytest.approx(net / 10 + 160)
    assert found.pay_back_years.value == pytest.approx(1600 / (saved * 0.5 - power))
    assert found.worth_nodes.value == pytest.approx(saved / 8000)
    assert found.nodes_for_it.value == pytest.approx((1600 + 4 * power) / (4000 + 4 * 0.3 * 8760 * 0.2))
    assert found.beyond_tuned.value == pytest.approx(0.8 / 0.9)
    assert found.net_after_tuning.value == pytest.approx(net - 4 * 10 * 8000 * 0.1 * 0.5)
    assert found.energy.value == pytest.approx(saved * 0.3 - 10 * 0.020 * 8760)
    assert (found.verdict, found.pays) == ("pays", 1.0)
    assert found.net.low == pytest.approx(found.net.high)


def test_energy_is_that_of_nodes_at_work_less_that_of_nodes_without_work():
    saved = 10 * 8000 * (0.5 * 0.2 + 0.25 * 0.4)
    idle = valued(at=prices(node_idle_w=fixed(100)))
    assert idle.energy.value == pytest.approx(saved * (0.3 - 0.1) - 10 * 0.020 * 8760)
    assert idle.energy.unit == "kWh/year"
    assert valued(at=prices(node=None, node_power_w=None)).energy is None


def test_at_its_break_even_price_a_port_pays_exactly():
    most = valued().break_even_port.value
    assert valued(of=offer(nic=most - 60)).net.value == pytest.approx(0, abs=1e-6)


def test_what_tuning_brings_by_itself_is_not_the_networks():
    """A network that saves no more than tuning does is worth nothing beside it, though it pays against now."""
    found = valued(tuned=np.full(51, 0.8))
    assert (found.verdict, found.pays_after_tuning) == ("pays", 0.0)
    tuned = worth.figure(np.full(51, 0.8), "ratio")
    said = told(found, tuned="tuned", tuned_change=tuned)
    assert said[0].startswith("Tune what there is, and measure again")
    assert any("does not pay any more" in line for line in said)
    # Tuning that makes it slower nobody keeps.
    worse = valued(tuned=np.full(51, 1.1))
    assert worse.net_after_tuning.value == pytest.approx(worse.net.value)


def test_which_network_is_best_is_said_with_how_sure_that_is():
    mix = money.read_jobs(JOBS.encode(), "jobs.toml").value
    noise = worth.Noise({"a": 0.0, "b": 0.0})
    spread = np.concatenate([[0.8], np.linspace(0.7, 0.9, 50)])
    steady = worth.Offer("steady", "", offer().ports, "", {"a": np.full(51, 0.8), "b": np.full(51, 0.6)})
    wild = worth.Offer("wild", "", offer().ports, "", {"a": spread, "b": np.full(51, 0.6)})
    found = worth.valued([steady, wild], mix, prices(), DRAWS, None, noise)
    assert [one.leads for one in found] == pytest.approx([0.5, 0.5])
    assert told(*found)[0].startswith(
        "Buy steady: it pays; of those asked about its net value is highest in 50%"
    )


def test_a_network_that_brings_nothing_never_pays():
    found = valued(of=offer(1.0, 1.0))
    assert (found.verdict, found.pay_back_years, found.pays) == ("does not pay", None, 0.0)
    said = told(found)
    assert said[0] == "Buy none of these networks: none pays."
    assert said[1].startswith("Do not buy new: over 4 years its net value is ")


def test_where_samples_differ_it_cannot_be_told_and_the_strongest_input_is_named():
    unsure = np.concatenate([[0.965], np.linspace(0.9, 1.03, 50)])
    found = valued(of=worth.Offer("new", "", offer().ports, "", {"a": unsure, "b": np.full(51, 1.0)}))
    assert found.verdict == "cannot be told"
    assert found.pay_back_years is None or found.pay_back_years.high is None  # it may never
    assert found.influences[0].what == "run time of a"
    answer, said = told(found)[:2]
    assert answer == "Cannot tell whether any of these networks pays."
    assert "It cannot be told" in said and "run time of a" in said


def test_what_traces_vary_more_than_a_network_changes_is_not_said_to_pay():
    sure = valued(of=offer(0.97, 0.97))
    assert (sure.verdict, sure.refused) == ("pays", "")
    found = valued(of=offer(0.97, 0.97), noise=0.1)
    assert found.verdict == "cannot be told"
    assert "varies by ±7.5%" in found.refused
    said = told(found)
    assert said[0] == "The traces cannot answer the question: see below what they lack."
    assert "trace longer runs" in said[1]
    # That it does not pay needs no such care.
    assert valued(of=offer(1.0, 1.0), noise=0.1).refused == ""


def test_no_port_is_worth_more_than_one_on_which_messages_take_no_time():
    mix = money.read_jobs(JOBS.encode(), "jobs.toml").value
    free = {"a": np.full(51, 0.7), "b": np.full(51, 0.5)}
    most = worth.bound_port(free, mix, prices(), DRAWS)
    saved = 10 * 8000 * (0.5 * 0.3 + 0.25 * 0.5)
    assert most.value == pytest.approx(4 * saved * 0.5 / 10)
    assert most.value > valued().break_even_port.value


def test_wide_prices_widen_what_depends_on_them_alone():
    wide = prices(node_hour=Bounds(value=0.5, low=0.2, high=0.9))
    found = valued(at=wide)
    assert found.value.low < 0.6 * found.value.value < found.value.high
    assert found.price.low == found.price.high
    assert found.influences[0].what == "price of a node-hour"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("share = 0.5", "share = 0.9"), r"jobs\.toml:11: job\[1\]\.share: the shares add up to 1\.15"),
        (('trace = "b"', 'trace = "a"'), r"jobs\.toml:10: job\[1\]\.trace: a trace is there twice"),
        (("nodes = 8", "nodes = 80"), r"jobs\.toml:13: job\[1\]\.nodes: .*80 nodes, of a cluster of 10"),
        (
            ("ranks = 4", ""),
            r"jobs\.toml:4: job\[0\]\.ranks: missing; 'wulf program worth "
            r"--template jobs'",
        ),
        (("hours_a_year = 8000", "hours_a_year = 9000"), r"jobs\.toml:3: hours_a_year: .*8760"),
        (
            ("share = 0.25", "share = '25 %'"),
            r"jobs\.toml:11: job\[1\]\.share: expected a number, got text in quotes",
        ),
        (("[[job]]", "[[job"), r"jobs\.toml:4: not TOML"),
    ],
)
def test_a_mix_that_cannot_be_is_refused(change, said):
    with pytest.raises(ConfigError, match=said):
        money.read_jobs(JOBS.replace(*change).encode(), "jobs.toml")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ("low = 110", "low = 500"),
            r"p\.toml:18: network\.25gbe-roce\.switch_port: low, value and high must be in",
        ),
        (
            ("nic = { value = 240", "card = { value = 240"),
            r"p\.toml:17: network\.25gbe-roce\.card: unknown key; ",
        ),
        (("years = 4", "years = 0"), r"p\.toml:3: years: expected a number > 0"),
        (
            ("low = 110", "low = inf"),
            r"p\.toml:18: network\.25gbe-roce\.switch_port\.low: expected a number <= ",
        ),
        (("node_power_w", "# "), r"p\.toml:8: node: give 'node' and 'node_power_w', or neither"),
        (("high = 160", "high = 300"), r"p\.toml:11: node_idle_w: a node without work takes no more than"),
    ],
)
def test_prices_that_cannot_be_are_refused_by_line_and_key(change, said):
    with pytest.raises(ConfigError, match=said):
        money.read_prices(money.PRICES.replace(*change).encode(), "p.toml")


def test_templates_are_read():
    assert money.read_jobs(money.JOBS.encode(), "t").value.nodes == 32
    found = money.read_prices(money.PRICES.encode(), "t").value
    own, source = money.ports(found, "25gbe-roce", None, "prices.toml")
    assert (own.nic.value, source) == (240, "prices.toml")


def test_prices_of_the_catalogue_are_converted_and_said_to_be_estimates():
    known = networks.networks()["10gbe"].costs
    ports, source = money.ports(prices(rates={"USD": 0.5}), "10gbe", known, "prices.toml")
    assert ports.nic.value == known.nic.value / 2
    assert "estimate" in source
    with pytest.raises(ConfigError, match=r"rates = \{ USD"):
        money.ports(prices(), "10gbe", known, "prices.toml")
    with pytest.raises(ConfigError, match=r"add \[network\.mine\]"):
        money.ports(prices(), "mine", None, "prices.toml")

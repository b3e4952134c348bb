"""What networks are worth: every figure against its formula, and words that follow from them."""

from __future__ import annotations

import numpy as np
import pytest

from wulf import networks
from wulf.errors import ConfigError
from wulf.networks import Bounds
from wulf.predict import money, worth
from wulf.predict.draws import Sample

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


def valued(tuned=None, of=None, at=None):
    mix = money.read_jobs(JOBS.encode(), "jobs.toml")
    return worth.worth(of or offer(), mix, at or prices(), DRAWS, tuned)


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
    assert (found.verdict, found.pays) == ("pays", 1.0)
    assert found.net.low == pytest.approx(found.net.high)


def test_at_its_break_even_price_a_port_pays_exactly():
    most = valued().break_even_port.value
    assert valued(of=offer(nic=most - 60)).net.value == pytest.approx(0, abs=1e-6)


def test_a_network_that_brings_nothing_never_pays():
    found = valued(of=offer(1.0, 1.0))
    assert (found.verdict, found.pay_back_years, found.pays) == ("does not pay", None, 0.0)
    said = list(worth.conclusion([found], "", None, 4))
    assert said[0].startswith("Do not buy new: over 4 years its net value is ")


def test_where_samples_differ_it_cannot_be_told_and_the_strongest_input_is_named():
    unsure = np.concatenate([[0.965], np.linspace(0.9, 1.03, 50)])
    found = valued(of=worth.Offer("new", "", offer().ports, "", {"a": unsure, "b": np.full(51, 1.0)}))
    assert found.verdict == "cannot be told"
    assert found.pay_back_years is None or found.pay_back_years.high is None  # it may never
    assert found.influences[0].what == "run time of a"
    (said,) = list(worth.conclusion([found], "", None, 4))[:1]
    assert "It cannot be told" in said and "run time of a" in said


def test_wide_prices_widen_what_depends_on_them_alone():
    wide = prices(node_hour=Bounds(value=0.5, low=0.2, high=0.9))
    found = valued(at=wide)
    assert found.value.low < 0.6 * found.value.value < found.value.high
    assert found.price.low == found.price.high
    assert found.influences[0].what == "price of a node-hour"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("share = 0.5", "share = 0.9"), "shares add up to 1.15"),
        (('trace = "b"', 'trace = "a"'), "a trace is there twice"),
        (("nodes = 8", "nodes = 80"), "80 nodes, of a cluster of 10"),
        (("ranks = 4", ""), r"required field `ranks` - at `\$\.job\[0\]`; 'wulf worth --template'"),
        (("hours_a_year = 8000", "hours_a_year = 9000"), "hours_a_year"),
    ],
)
def test_a_mix_that_cannot_be_is_refused(change, said):
    with pytest.raises(ConfigError, match=said):
        money.read_jobs(JOBS.replace(*change).encode(), "jobs.toml")


def test_templates_are_read():
    assert money.read_jobs(money.JOBS.encode(), "t").nodes == 32
    found = money.read_prices(money.PRICES.encode(), "t")
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

"""What a link should reach: arithmetic, networks of the catalogue, a site's own; and where nothing can be said."""

import pytest

from wulf.base import catalogue, networks, user_files
from wulf.node.facts.parse import parse
from wulf.node.fleet.look import judge
from wulf.page.sections import findings

KNOBS = list(catalogue.knobs().values())


def node(mtu=1500, speed=1000, driver="igb", lanes=None, transfers=None, name="node01"):
    place = "/sys/class/net/eno1/"
    text = f"#links 0\n eno1 0000:03:00.0 {driver} - -\n-\n{place}mtu:{mtu}\n{place}operstate:up\n"
    text += f"#ethtool-i.eno1 0\n driver: {driver}\n-\n{place}speed:{speed}\n" if speed else ""
    if lanes:
        text += f"{place}device/current_link_width:{lanes}\n{place}device/current_link_speed:{transfers} GT/s PCIe\n"
    return parse(name, text, "eno1", KNOBS)


def bounds(found, name):
    return [found.facts[f"expected.{name.format(end)}"] for end in ("low", "high")]


@pytest.mark.parametrize(
    ("mtu", "speed", "high"),
    [(1500, 1000, 1e9 * 1448 / 1538), (9000, 1000, 1e9 * 8948 / 9038), (1500, 10000, 1e10 * 1448 / 1538)],
)
def test_bandwidth_is_the_line_rate_less_headers(mtu, speed, high):
    low, most = bounds(node(mtu, speed), "bandwidth_{}_bits_per_s")
    assert most == pytest.approx(high)
    assert low == pytest.approx(0.9 * high)


def test_a_narrow_bus_is_the_limit_and_said():
    found = node(9000, 10000, lanes=1, transfers="5.0")
    assert bounds(found, "bandwidth_{}_bits_per_s")[1] == pytest.approx(4e9 * 256 / 280)
    assert "of its PCI Express link, less than the 10 of its port" in found.facts["expected.bandwidth"]
    assert "less headers" in node(9000, 10000, lanes=8, transfers="8.0").facts["expected.bandwidth"]


def test_latency_and_rate_are_those_of_the_networks_of_that_speed():
    slow, tuned = networks.networks()["1gbe"].between, networks.networks()["1gbe-tuned"].between
    low, high = bounds(node(), "latency_{}_s")
    assert low == pytest.approx(
        1e-6 * (tuned.send[0].base_us.low + tuned.latency_us.low + tuned.receive[0].base_us.low)
    )
    assert high == pytest.approx(
        1e-6 * (slow.send[0].base_us.high + slow.latency_us.high + slow.receive[0].base_us.high)
    )
    assert bounds(node(), "messages_{}_per_s") == pytest.approx([1e6 / 9, 1e6 / 2.5])
    assert "as 1gbe and 1gbe-tuned have it" in node().facts["expected.latency"]


def test_a_sites_own_network_of_that_speed_counts_alone(monkeypatch, tmp_path):
    text = (
        networks.text("1gbe")
        .replace('id = "1gbe"', 'id = "ours"')
        .replace("low = 3, high = 9", "low = 4, high = 5")
    )
    (tmp_path / "wulf/networks").mkdir(parents=True)
    (tmp_path / "wulf/networks/ours.toml").write_text(text)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    caches = (networks.networks, user_files.sources)
    for cache in caches:
        cache.cache_clear()
    try:
        assert networks.reach(1e9).networks == ("ours",)
    finally:
        monkeypatch.undo()
        for cache in caches:
            cache.cache_clear()


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (node(driver="virtio_net"), "it is a virtual interface: what it should reach is up to its host"),
        (node(speed=None), "the speed of the link is not known"),
        (node(speed=400000), "no network of the catalogue is of 400 Gbit/s: a file in networks may say it"),
    ],
)
def test_where_nothing_can_be_said_the_reason_is(found, why):
    assert "expected.latency" not in found.facts
    assert why in {**found.absent, **found.unknown}["expected.latency"]


def test_an_audit_says_what_its_links_should_reach():
    audit = judge([node(), node(name="node02"), node(9000, name="node03")], "hpc")
    assert [nodes for nodes in audit.expected.values()] == [["node01", "node02"], ["node03"]]
    lede = findings.build(audit).lede
    assert "node[01-02] should reach 0.847 to 0.941 Gbit/s: 1 Gbit/s less headers (1448 of 1538 B)" in lede

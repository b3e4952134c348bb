"""Outputs of ethtool in the formats of its versions."""

import json

import pytest

from wulf.base.output_values import Unknown, Unsupported
from wulf.node.facts.readers import ethtool

#: As ioctl(2) has it (before 5.8, or an old kernel): what the driver does not have is 0.
COALESCE_OLD = """\
Coalesce parameters for eth0:
Adaptive RX: off  TX: off
stats-block-usecs: 0
sample-interval: 0

rx-usecs: 3
rx-frames: 0

tx-usecs: 0
tx-frames: 0
"""
COALESCE_516 = """\
Coalesce parameters for eth0:
Adaptive RX: on  TX: n/a
stats-block-usecs: n/a

rx-usecs: 8
rx-frames: 128
rx-usecs-irq: n/a

tx-usecs: 16
tx-frames: n/a

CQE mode RX: off  TX: on
"""
#: Versions 6.3 to 6.7 forget a colon.
COALESCE_65 = """\
Coalesce parameters for eth0:
Adaptive RX: n/a  TX: n/a
stats-block-usecs:\tn/a

rx-usecs:\t3
rx-frames:\tn/a

CQE mode RX: n/a  TX: n/a

tx-aggr-max-bytes:\tn/a
tx-aggr-max-frames:\tn/a
tx-aggr-time-usecs\tn/a
"""
RINGS_OLD = """\
Ring parameters for eth0:
Pre-set maximums:
RX:\t\t4096
RX Mini:\t0
RX Jumbo:\t0
TX:\t\t4096
Current hardware settings:
RX:\t\t256
RX Mini:\t0
RX Jumbo:\t0
TX:\t\t512

"""
RINGS_65 = """\
Ring parameters for eth0:
Pre-set maximums:
RX:\t\t\t8192
RX Mini:\t\tn/a
RX Jumbo:\t\tn/a
TX:\t\t\t8192
TX push buff len:\t96
Current hardware settings:
RX:\t\t\t1024
RX Mini:\t\tn/a
RX Jumbo:\t\tn/a
TX:\t\t\t2048
RX Buf Len:\t\t2048
CQE Size:\t\tn/a
TX Push:\t\toff
RX Push:\t\ton
TX push buff len:\t64
TCP data split:\t\tn/a
"""
LINK = """\
Settings for eth0:
\tSupported ports: [ TP ]
\tSupported link modes:   10baseT/Half 10baseT/Full
\t                        100baseT/Half 100baseT/Full
\t                        1000baseT/Full
\tSupported pause frame use: Symmetric
\tSupports auto-negotiation: Yes
\tSupported FEC modes: Not reported
\tAdvertised link modes:  100baseT/Full
\tLink partner advertised link modes:  10000baseT/Full
\tSpeed: {speed}
\tDuplex: {duplex}
\tAuto-negotiation: on
\tMDI-X: off (auto)
        Current message level: 0x00000007 (7)
                               drv probe link
\tLink detected: {detected}
"""


#: What both ends of that link can do, and offer.
OFFERED = {"speed-max": "1000", "speed-max-advertised": "100", "speed-max-partner": "10000"}


def link(speed="1000Mb/s", duplex="Full", detected="yes"):
    return ethtool.link(LINK.format(speed=speed, duplex=duplex, detected=detected))


def as_json(**values):
    return json.dumps(
        [{"ifname": "eth0", **{name.replace("_", "-"): value for name, value in values.items()}}]
    )


def test_coalescing_of_old_versions():
    expected = {
        "adaptive-rx": "off",
        "adaptive-tx": "off",
        "rx-usecs": "3",
        "tx-usecs": "0",
        "tx-frames": "0",
    }
    assert ethtool.coalesce(COALESCE_OLD).items() >= expected.items()


def test_coalescing_without_what_the_driver_does_not_have():
    assert ethtool.coalesce(COALESCE_516) == {
        "adaptive-rx": "on",
        "rx-usecs": "8",
        "rx-frames": "128",
        "tx-usecs": "16",
        "cqe-mode-rx": "off",
        "cqe-mode-tx": "on",
    }
    assert ethtool.coalesce(COALESCE_65) == {"rx-usecs": "3"}


def test_coalescing_as_json():
    text = as_json(adaptive_rx=True, adaptive_tx=False, rx_usecs=8, cqe_mode_rx=False, cqe_mode_tx=True)
    expected = {"adaptive-rx": "on", "adaptive-tx": "off", "rx-usecs": "8"}
    assert ethtool.coalesce(text).items() >= expected.items()


@pytest.mark.parametrize(
    ("pairs", "adaptive"),
    [
        ('"rx": false, "tx": true, "rx-usecs": 50', ("off", "on")),
        ('"rx": false, "tx": true, "rx-usecs": 50, "rx": true, "tx": false', ("off", "on")),
        ('"rx-usecs": 50, "rx": true, "tx": false', (None, None)),
    ],
)
def test_coalescing_as_json_before_6_14_has_two_switches_of_one_name(pairs, adaptive):
    """The adaptive pair comes first, the CQE mode last, each where the driver has it."""
    found = ethtool.coalesce(f'[ {{ "ifname": "eth0", {pairs} }} ]')
    assert (found.get("adaptive-rx"), found.get("adaptive-tx")) == adaptive
    assert found["rx-usecs"] == "50"


def test_rings_of_old_versions_have_zeros():
    found = ethtool.rings(RINGS_OLD)
    assert (found["rx"], found["rx-max"], found["tx"], found["tx-max"]) == ("256", "4096", "512", "4096")
    assert (found["rx-mini"], found["rx-jumbo-max"]) == ("0", "0")


def test_rings_with_push_buffers():
    assert ethtool.rings(RINGS_65) == {
        "rx-max": "8192",
        "tx-max": "8192",
        "tx-push-buff-len-max": "96",
        "rx": "1024",
        "tx": "2048",
        "rx-buf-len": "2048",
        "tx-push": "off",
        "rx-push": "on",
        "tx-push-buff-len": "64",
    }


def test_rings_as_json():
    found = ethtool.rings(as_json(rx_max=4096, tx_max=4096, rx=512, tx=256, tx_push=False))
    assert (found["rx"], found["tx"], found["rx-max"], found["tx-push"]) == ("512", "256", "4096", "off")


def test_channels():
    text = (
        "Channel parameters for eth0:\nPre-set maximums:\nRX:\t\tn/a\nTX:\t\tn/a\nOther:\t\t1\nCombined:\t63\n"
        "Current hardware settings:\nRX:\t\tn/a\nTX:\t\tn/a\nOther:\t\t1\nCombined:\t4\n"
    )
    expected = {"other-max": "1", "combined-max": "63", "other": "1", "combined": "4"}
    assert ethtool.channels(text) == expected
    found = ethtool.channels(as_json(other_max=1, combined_max=63, other=1, combined=4))
    assert found.items() >= expected.items()


def test_features():
    text = (
        "Features for eth0:\ntcp-segmentation-offload: on\n\ttx-tcp-segmentation: on\n"
        "\ttx-tcp-mangleid-segmentation: off [fixed]\nlarge-receive-offload: off [requested on]\n"
        "generic-receive-offload: on\n"
    )
    assert ethtool.switches(text) == {
        "tcp-segmentation-offload": "on",
        "tx-tcp-segmentation": "on",
        "tx-tcp-mangleid-segmentation": "off [fixed]",
        "large-receive-offload": "off",
        "generic-receive-offload": "on",
    }


def test_features_as_json():
    head = {"active": True, "fixed": None, "requested": None}
    fixed = {"active": False, "fixed": True, "requested": False}
    wished = {"active": False, "fixed": False, "requested": True}
    found = ethtool.switches(json.dumps([{"ifname": "eth0", "tso": head, "lro": fixed, "gso": wished}]))
    assert found == {"tso": "on", "lro": "off [fixed]", "gso": "off"}


def test_pause():
    text = (
        "Pause parameters for eth0:\nAutonegotiate:\ton\nRX:\t\ton\nTX:\t\toff\n"
        "RX negotiated: on\nTX negotiated: off\nStatistics:\n  tx_pause_frames: 7\n"
    )
    expected = {"autoneg": "on", "rx": "on", "tx": "off", "rx-negotiated": "on", "tx-negotiated": "off"}
    assert ethtool.pause(text).items() >= expected.items()
    agreed = {"rx": True, "tx": False}
    found = ethtool.pause(as_json(autonegotiate=True, rx=True, tx=False, negotiated=agreed))
    assert found.items() >= expected.items()


@pytest.mark.parametrize(
    ("status", "enabled", "active"),
    [("enabled - active", "on", "on"), ("enabled - inactive", "on", "off"), ("disabled", "off", "off")],
)
def test_eee(status, enabled, active):
    text = f"EEE settings for eth0:\n\tEEE status: {status}\n\tTx LPI: 17 (us)\n"
    assert ethtool.eee(text) == {"enabled": enabled, "active": active}
    # JSON (later than 6.9) has the last word alone.
    text = "\n" + as_json(status=status.rpartition(" ")[2], tx_lpi=17)
    assert ethtool.eee(text) == {"enabled": enabled, "active": active}


@pytest.mark.parametrize(
    "text", ["EEE settings for eth0:\n\tEEE status: not supported\n", as_json(status="not supported")]
)
def test_eee_that_the_link_does_not_have(text):
    with pytest.raises(Unsupported):
        ethtool.eee(text)


@pytest.mark.parametrize("text", ["", "EEE settings for eth0:\n", as_json()])
def test_eee_that_is_not_told(text):
    with pytest.raises(Unknown) as caught:
        ethtool.eee(text)
    assert type(caught.value) is Unknown


def test_the_fastest_supported_mode_is_found_over_several_lines():
    expected = {"speed": "1000", "duplex": "full", "autoneg": "on", "link": "on", **OFFERED}
    assert link() == expected


@pytest.mark.parametrize(
    ("modes", "fastest"),
    [
        ("1000baseKX/Full\n\t                        100000baseLR4_ER4/Full", "100000"),
        ("10baseT1L/Full", "10"),
        ("2500baseT/Full\n\t                        5000baseT/Full", "5000"),
        ("Not reported", None),
    ],
)
def test_link_modes(modes, fastest):
    text = f"Settings for eth0:\n\tSupported link modes:   {modes}\n\tAdvertised link modes:  400000baseCR4/Full\n"
    assert ethtool.link(text).get("speed-max") == fastest


@pytest.mark.parametrize("duplex", ["Unknown!", "Unknown! (255)"])
def test_a_link_that_does_not_know_its_speed(duplex):
    found = link("Unknown!", duplex, "no")
    assert found == {"autoneg": "on", "link": "off", **OFFERED}


@pytest.mark.parametrize("detected", ["no (No cable)", "no (Autoneg, No partner detected)"])
def test_why_there_is_no_link_does_not_matter(detected):
    assert link(detected=detected)["link"] == "off"


def test_link_as_json():
    modes = ["10baseT/Half", "1000baseT/Full", "2500baseT/Full"]
    found = ethtool.link(
        as_json(
            supported_link_modes=modes,
            advertised_link_modes=["10000baseT/Full"],
            speed=1000,
            duplex="Full",
            auto_negotiation=True,
            link_detected=True,
        )
    )
    fastest = {"speed-max": "2500", "speed-max-advertised": "10000"}
    expected = {"speed": "1000", "duplex": "full", "autoneg": "on", "link": "on", **fastest}
    assert found == expected
    assert ethtool.link(as_json(supported_link_modes=[], auto_negotiation=False)) == {"autoneg": "off"}


def test_driver():
    text = (
        "driver: igb\nversion: 6.1.0-40-amd64\nfirmware-version: 1.63, 0x800009fb\nexpansion-rom-version: \n"
        "bus-info: 0000:01:00.0\nsupports-test: yes\n"
    )
    expected = {"driver": "igb", "firmware-version": "1.63, 0x800009fb", "bus-info": "0000:01:00.0"}
    assert ethtool.driver(text).items() >= expected.items()
    assert "expansion-rom-version" not in ethtool.driver(text)
    assert "firmware-version" not in ethtool.driver("driver: veth\nfirmware-version: N/A\n")


def test_statistics():
    text = "NIC statistics:\n     rx_crc_errors: 12\n     [0]: rx_missed: 1\n     fw_status: 0x1f\n     dropped: -1\n"
    assert ethtool.statistics(text) == {"rx_crc_errors": 12}


@pytest.mark.parametrize("text", ["[", "[]", "[1]", '[ {"rx-usecs": 1} ', "[" * 100_000])
def test_json_that_is_none_is_no_error(text):
    for read in (ethtool.coalesce, ethtool.rings, ethtool.switches, ethtool.pause, ethtool.driver):
        assert isinstance(read(text), dict)

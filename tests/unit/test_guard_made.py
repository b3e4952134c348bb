"""Files of a card that the guard makes of what it finds on the node: as this side says them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.guard_place import Place
from wulf.base.native.build import source_directory
from wulf.node.change import configuration_files, steps
from wulf.node.change.persist import made, marker
from wulf.node.change.table import made as made_table

NIC, CHANGE, ADDRESS = "c0", "20260101T000000-abcdef", "aa:00:00:00:00:01"
BEFORE = "/run/systemd/network/70-site.link"
WORDS = (
    "nic.gro=off",
    "nic.tso_gso=off on",
    "nic.rx_usecs=0",
    "nic.adaptive_rx=off",
    "nic.rings=512 max",
    "nic.channels=combined 4",
    "nic.pause=off on",
    "nic.rx_frames=1",
    "nic.lro=off",
    "nic.mtu=9000",
)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path, "wulf-guard-faults")
    found.enter("mount", "-t", "sysfs", "none", "/sys")
    found.enter("chmod", "755", "/run")
    found.enter("ip", "link", "add", NIC, "type", "veth", "peer", "name", "c1")
    root = found.run.parent
    for name in ("udev/data", "systemd/network/70-site.link.d", "systemd/netif/links", "wulf-fault"):
        (root / name).mkdir(parents=True)
    index = found.enter("cat", f"/sys/class/net/{NIC}/ifindex").strip()
    (root / "wulf-fault/address").write_text(f"{ADDRESS}\n")
    (root / f"udev/data/n{index}").write_text(f"I:1\nE:ID_NET_LINK_FILE={BEFORE}\nE:ID_NET_NAME={NIC}\n")
    (root / f"systemd/netif/links/{index}").write_text(
        "NETWORK_FILE=/etc/systemd/network/10-cluster.network\n"
    )
    (root / "systemd/network/70-site.link").write_text(
        "[Match]\nOriginalName=*\n[Link]\n# a comment\nNamePolicy = keep   path\nMTUBytes=1500\n"
        "[Link]\nName=not-carried\n"
    )
    (root / "systemd/network/70-site.link.d/10.conf").write_text("[Link]\nMACAddressPolicy=persistent\n")
    yield found
    found.end()


def explained(place: Place, path: str, *words: str) -> tuple[int, list[str]]:
    done = place.guard("explain", stdin=made(path, CHANGE, NIC, words).line() + "\n")
    return done.returncode, [line.partition("\t")[2] for line in done.stdout.splitlines()]


def link_lines() -> list[str]:
    lines = [
        line
        for knob_setting in steps.parse(WORDS)
        for line in configuration_files.link_lines(knob_setting, 252)
    ]
    return list(dict.fromkeys(lines))


def test_the_texts_are_not_old() -> None:
    there = (source_directory() / "guard/made.inc").read_text()
    assert there == made_table(), (
        "run: .venv/bin/python -m wulf.node.change.table made >native/guard/made.inc"
    )


@pytest.mark.root
def test_a_link_file_carries_on_what_gave_the_name(place: Place) -> None:
    path = f"/etc/systemd/network/10-wulf-{NIC}.link"
    carried = ["NamePolicy=keep path", "MTUBytes=1500", "MACAddressPolicy=persistent"]
    text = configuration_files.link(ADDRESS, BEFORE, carried, link_lines(), marker(CHANGE))
    assert "MTUBytes=1500" not in text and text.count("MTUBytes=9000") == 1
    assert explained(place, path, *WORDS) == (0, [*text.splitlines(), f"write {path}"])


@pytest.mark.root
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("wulf-fault/address", ""),
        ("udev/data/n{index}", "E:ID_NET_LINK_FILE=/home/evil.link\n"),
        ("udev/data/n{index}", "E:ID_NET_LINK_FILE=/run/systemd/network/../../evil.link\n"),
        ("udev/data/n{index}", "E:ID_NET_LINK_FILE=/run/systemd/network/00-aaa.link\n"),
        ("udev/data/n{index}", "E:ID_NET_LINK_FILE=/run/systemd/network/missing.link\n"),
    ],
)
def test_without_what_it_must_know_there_is_no_link_file(place: Place, file: str, text: str) -> None:
    index = place.enter("cat", f"/sys/class/net/{NIC}/ifindex").strip()
    (place.run.parent / file.format(index=index)).write_text(text)
    code, lines = explained(place, f"/etc/systemd/network/10-wulf-{NIC}.link", "nic.mtu=9000")
    assert (code, [line for line in lines if line.startswith(("write", "MTU"))]) == (1, []), lines


@pytest.mark.root
def test_networkd_gets_the_mtu_in_a_dropin_of_its_own_file(place: Place) -> None:
    path = "/etc/systemd/network/10-cluster.network.d/90-wulf.conf"
    text = configuration_files.network_mtu("9000", marker(CHANGE))
    assert explained(place, path, "nic.mtu=9000") == (0, [*text.splitlines(), f"write {path}"])
    assert explained(place, path.replace("10-", "20-"), "nic.mtu=9000")[0] == 1

"""Who will set the cluster's interface and the sysctls at the next boot: where a setting can be kept. Pure.

Sources: systemd.link(5), systemd.network(5), interfaces(5), nmcli(1), sysctl.d(5).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from wulf.base.catalogue import Knob
from wulf.base.output_values import Absent, Unknown, is_count, shown
from wulf.base.records import FactValue
from wulf.node.facts.node import Facts, NodeCapture
from wulf.node.facts.readers.services import services
from wulf.node.facts.readers.settings import sysctl_setters

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
#: nmcli's number for a device that NetworkManager leaves to others.
_UNMANAGED = 10
#: Directories of .link files, from the strongest: a file hides those of the same name in the ones behind it.
_LINK_DIRECTORIES = (
    "/etc/systemd/network/",
    "/run/systemd/network/",
    "/usr/local/lib/systemd/network/",
    "/usr/lib/systemd/network/",
    "/lib/systemd/network/",
)


def add(facts: Facts, capture: NodeCapture, knobs: Sequence[Knob]) -> None:
    """Collect what `wulf.node.change.persist` must know."""
    facts.read("keep.manager", lambda: _manager(capture))
    facts.read("keep.mac", lambda: _mac(capture))
    facts.read("keep.systemd", lambda: _systemd(capture))
    facts.read("keep.link_file", lambda: _link_file(capture))
    facts.read("keep.link_settings", lambda: _link_settings(capture))
    facts.read("keep.network_file", lambda: _network_file(capture))
    facts.read("keep.sysctls", lambda: _sysctls(capture, knobs))
    facts.read("keep.files", lambda: _files(capture))


def _manager(capture: NodeCapture) -> FactValue:
    """Return who brings the interface up: ifupdown, NetworkManager, networkd, or none of them."""
    nic = capture.nic()
    known = services(capture)
    running = {name.removesuffix(".service") for name, service in known.items() if service.running}
    if "NetworkManager" in running and not _left_alone(capture, nic):
        return "NetworkManager"
    if "systemd-networkd" in running and _network_file_of(capture) is not None:
        return "networkd"
    stanza = re.compile(rf"^\s*iface\s+{re.escape(nic)}\s", re.M)
    if any(stanza.search(text) for _, text in capture.tree.files("/etc/network/interfaces")):
        return "ifupdown"
    return "none"


def _left_alone(capture: NodeCapture, nic: str) -> bool:
    """Whether NetworkManager does not manage the interface; where it does not say, it does."""
    try:
        state = capture.tree.text(f"nmcli.{nic}").partition(" ")[0]
    except Unknown:
        return False
    return is_count(state) and int(state) <= _UNMANAGED


def _mac(capture: NodeCapture) -> FactValue:
    """Return the address the interface was made with, which bonds and users do not change."""
    nic = capture.nic()
    try:
        words = capture.tree.text(f"ethtool-P.{nic}").lower().split()
    except Unknown:
        words = []
    address = words[-1] if words else ""
    if not _MAC.fullmatch(address) or set(address) <= {"0", ":"}:
        raise Absent("the interface has no permanent address")
    return address


def _systemd(capture: NodeCapture) -> FactValue:
    found = re.match(r"systemd (\d{1,4})", capture.tree.text("systemd_version"))
    if not found:
        raise Unknown("systemd does not say its version")
    return int(found[1])


def _link_file(capture: NodeCapture) -> FactValue:
    """Return the .link file that udev applied to the interface.

    Raises
    ------
    Absent
        When udev does not run, or applied none.
    """
    nic = capture.nic()
    udev = services(capture).get("systemd-udevd.service")
    if udev is None or not udev.running:
        raise Absent("udev does not run")
    found = re.search(r"^(?:E: )?ID_NET_LINK_FILE=(/\S+)$", capture.tree.text(f"udev.{nic}"), re.M)
    if not found:
        raise Absent("udev has applied no .link file")
    return shown(found[1], 200)


def _link_settings(capture: NodeCapture) -> FactValue:
    """Return the [Link] lines of that file and its drop-ins, in the order in which they count."""
    path = str(_link_file(capture))
    name = path.rpartition("/")[2]
    lines = _link_section(capture.tree.text(path))
    dropins: dict[str, str] = {}
    for directory in reversed(_LINK_DIRECTORIES):
        for dropin, text in capture.tree.files(f"{directory}{name}.d/"):
            dropins[dropin.rpartition("/")[2]] = text
    for dropin in sorted(dropins):
        lines += _link_section(dropins[dropin])
    return "; ".join(lines) or "none"


def _link_section(text: str) -> list[str]:
    """Return the lines of the first [Link] section: a second one in a file of wulf's is wulf's own."""
    found: list[str] = []
    sections = 0
    inside = False
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            inside = line == "[Link]" and sections == 0
            sections += line == "[Link]"
        elif inside and "=" in line:
            name, _, value = line.partition("=")
            found.append(f"{name.strip()}={' '.join(value.split())}")
    return found


def _network_file(capture: NodeCapture) -> FactValue:
    """Return the .network file that systemd-networkd applied to the interface."""
    found = _network_file_of(capture)
    if found is None:
        raise Absent("systemd-networkd does not configure the interface")
    return found


def _network_file_of(capture: NodeCapture) -> str | None:
    for _, text in capture.tree.files("/run/systemd/netif/links/"):
        found = re.search(r"^NETWORK_FILE=(/\S+)$", text, re.M)
        if found:
            return shown(found[1], 200)
    return None


def _sysctls(capture: NodeCapture, knobs: Sequence[Knob]) -> FactValue:
    """Return which files set sysctls of the catalogue, in the order in which they are read."""
    setters = sysctl_setters(capture)
    wanted = sorted(knob.access.target for knob in knobs if knob.access.kind == "sysctl")
    said = [f"{name}={','.join(path for _, path in setters[name])}" for name in wanted if name in setters]
    return " ".join(said) or "none"


def _files(capture: NodeCapture) -> FactValue:
    """Return the files that an earlier `wulf settings persist` wrote."""
    text, _ = capture.tree.output("wulf_files")
    return " ".join(shown(line, 200) for line in text.splitlines() if line.startswith("/etc/")) or "none"

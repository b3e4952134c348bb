"""Who will set the cluster's interface and the sysctls at the next boot: where a setting can be kept. Pure.

Sources: systemd.link(5), systemd.network(5), interfaces(5), nmcli(1), sysctl.d(5).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from wulf.catalogue import Knob
from wulf.facts.look import Facts, Look
from wulf.facts.services import services
from wulf.facts.settings import sysctl_setters
from wulf.facts.values import Absent, Unknown, is_count, shown
from wulf.records import FactValue

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


def add(facts: Facts, look: Look, knobs: Sequence[Knob]) -> None:
    """Collect what `wulf.change.persist` must know."""
    facts.read("keep.manager", lambda: _manager(look))
    facts.read("keep.mac", lambda: _mac(look))
    facts.read("keep.systemd", lambda: _systemd(look))
    facts.read("keep.link_file", lambda: _link_file(look))
    facts.read("keep.link_settings", lambda: _link_settings(look))
    facts.read("keep.network_file", lambda: _network_file(look))
    facts.read("keep.sysctls", lambda: _sysctls(look, knobs))
    facts.read("keep.files", lambda: _files(look))


def _manager(look: Look) -> FactValue:
    """Return who brings the interface up: ifupdown, NetworkManager, networkd, or none of them."""
    nic = look.nic()
    known = services(look)
    running = {name.removesuffix(".service") for name, service in known.items() if service.running}
    if "NetworkManager" in running and not _left_alone(look, nic):
        return "NetworkManager"
    if "systemd-networkd" in running and _network_file_of(look) is not None:
        return "networkd"
    stanza = re.compile(rf"^\s*iface\s+{re.escape(nic)}\s", re.M)
    if any(stanza.search(text) for _, text in look.tree.files("/etc/network/interfaces")):
        return "ifupdown"
    return "none"


def _left_alone(look: Look, nic: str) -> bool:
    """Whether NetworkManager does not manage the interface; where it does not say, it does."""
    try:
        state = look.tree.text(f"nmcli.{nic}").partition(" ")[0]
    except Unknown:
        return False
    return is_count(state) and int(state) <= _UNMANAGED


def _mac(look: Look) -> FactValue:
    """Return the address the interface was made with, which bonds and users do not change."""
    nic = look.nic()
    try:
        words = look.tree.text(f"ethtool-P.{nic}").lower().split()
    except Unknown:
        words = []
    address = words[-1] if words else ""
    if not _MAC.fullmatch(address) or set(address) <= {"0", ":"}:
        raise Absent("the interface has no permanent address")
    return address


def _systemd(look: Look) -> FactValue:
    found = re.match(r"systemd (\d{1,4})", look.tree.text("systemd_version"))
    if not found:
        raise Unknown("systemd does not say its version")
    return int(found[1])


def _link_file(look: Look) -> FactValue:
    """Return the .link file that udev applied to the interface.

    Raises
    ------
    Absent
        When udev does not run, or applied none.
    """
    nic = look.nic()
    udev = services(look).get("systemd-udevd.service")
    if udev is None or not udev.running:
        raise Absent("udev does not run")
    found = re.search(r"^(?:E: )?ID_NET_LINK_FILE=(/\S+)$", look.tree.text(f"udev.{nic}"), re.M)
    if not found:
        raise Absent("udev has applied no .link file")
    return shown(found[1], 200)


def _link_settings(look: Look) -> FactValue:
    """Return the [Link] lines of that file and its drop-ins, in the order in which they count."""
    path = str(_link_file(look))
    name = path.rpartition("/")[2]
    lines = _link_section(look.tree.text(path))
    dropins: dict[str, str] = {}
    for directory in reversed(_LINK_DIRECTORIES):
        for dropin, text in look.tree.files(f"{directory}{name}.d/"):
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


def _network_file(look: Look) -> FactValue:
    """Return the .network file that systemd-networkd applied to the interface."""
    found = _network_file_of(look)
    if found is None:
        raise Absent("systemd-networkd does not configure the interface")
    return found


def _network_file_of(look: Look) -> str | None:
    for _, text in look.tree.files("/run/systemd/netif/links/"):
        found = re.search(r"^NETWORK_FILE=(/\S+)$", text, re.M)
        if found:
            return shown(found[1], 200)
    return None


def _sysctls(look: Look, knobs: Sequence[Knob]) -> FactValue:
    """Return which files set sysctls of the catalogue, in the order in which they are read."""
    setters = sysctl_setters(look)
    wanted = sorted(knob.access.target for knob in knobs if knob.access.kind == "sysctl")
    said = [f"{name}={','.join(path for _, path in setters[name])}" for name in wanted if name in setters]
    return " ".join(said) or "none"


def _files(look: Look) -> FactValue:
    """Return the files that an earlier `wulf persist` wrote."""
    text, _ = look.tree.output("wulf_files")
    return " ".join(shown(line, 200) for line in text.splitlines() if line.startswith("/etc/")) or "none"

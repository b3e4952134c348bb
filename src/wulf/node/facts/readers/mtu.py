"""Which configuration file sets the MTU of the cluster's interface at boot, by the rules of each system's own files.

Pure.

Sources: interfaces(5), systemd.link(5), systemd.network(5), netplan(5), nm-settings-keyfile(5),
/usr/share/doc/initscripts/sysconfig.txt (RHEL), ifcfg(5) of wicked (SLES).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from wulf.base.output_values import Unknown
from wulf.node.facts.node import NodeCapture

CONNECTIONS = "/etc/NetworkManager/system-connections/"
_NETWORK = "/etc/systemd/network/"


class _Line(NamedTuple):
    """A setting of a file with sections."""

    section: str
    key: str
    value: str


class _Nic(NamedTuple):
    """By what files mean the cluster's interface."""

    name: str
    #: Its present address and its permanent one.
    macs: frozenset[str]
    driver: str


def setters(capture: NodeCapture) -> Iterator[tuple[str, str]]:
    """Yield (file, MTU) of the files that set it, the one that counts of each system first."""
    nic = _nic(capture)
    for path, text in capture.tree.files("/etc/"):
        read = next((read for start, read in _READ.items() if path.startswith(start)), None)
        if read is not None and (value := read(path, text, nic)):
            yield path, value
    # What systemd-networkd says comes after what udev says.
    for suffix in ("network", "link"):
        found = _of_systemd(capture, nic, suffix)
        if found is not None:
            yield found


def _nic(capture: NodeCapture) -> _Nic:
    name = capture.nic()
    macs = set()
    for source in (f"/sys/class/net/{name}/address", f"ethtool-P.{name}"):
        try:
            macs.add(capture.tree.text(source).lower().rpartition(" ")[2])
        except Unknown:
            continue
    link = capture.links.get(name)
    return _Nic(name, frozenset(macs), (link.driver if link else None) or "")


def _lines(text: str) -> Iterator[_Line]:
    section = ""
    for line in text.splitlines():
        if found := re.fullmatch(r"\s*\[(.+)\]\s*", line):
            section = found[1]
        elif "=" in line:
            key, _, value = line.partition("=")
            yield _Line(section, key.strip(), value.strip())


# --- systemd ---


def _of_systemd(capture: NodeCapture, nic: _Nic, suffix: str) -> tuple[str, str] | None:
    """Return what the one file says that udev or systemd-networkd applies, with its drop-ins, which come after it.

    They say themselves which one that is. Where they do not it is the first one that matches, by its name: what further
    ones say does not count.
    """
    texts = dict(capture.tree.files(_NETWORK))
    files = [path for path in sorted(texts) if path.endswith(f".{suffix}")]
    chosen = _applied(capture, nic, suffix) or next(
        (path for path in files if _matches(texts[path], nic)), None
    )
    if chosen is None:
        return None
    name = chosen.rpartition("/")[2]
    parts = [chosen, *sorted(path for path in texts if path.startswith(f"{_NETWORK}{name}.d/"))]
    said = [
        (path, line.value)
        for path in parts
        for line in _lines(texts.get(path, ""))
        if (line.section, line.key) == ("Link", "MTUBytes") and line.value.isdecimal()
    ]
    return said[-1] if said else None


def _applied(capture: NodeCapture, nic: _Nic, suffix: str) -> str | None:
    """Return the file that the system says it has applied."""
    if suffix == "link":
        try:
            text = capture.tree.text(f"udev.{nic.name}")
        except Unknown:
            return None
        found = re.search(r"^(?:E: )?ID_NET_LINK_FILE=(/\S+)$", text, re.M)
        return found[1] if found else None
    for _, text in capture.tree.files("/run/systemd/netif/links/"):
        if found := re.search(r"^NETWORK_FILE=(/\S+)$", text, re.M):
            return found[1]
    return None


def _matches(text: str, nic: _Nic) -> bool:
    """Whether a file is of the interface: all that its [Match] says has to hold, and what is not known does not."""
    wanted = [line for line in _lines(text) if line.section == "Match"]
    return bool(wanted) and all(_holds(line, nic) for line in wanted)


def _holds(line: _Line, nic: _Nic) -> bool:
    if line.key in ("Name", "OriginalName"):
        return _fits(line.value, nic.name)
    if line.key in ("MACAddress", "PermanentMACAddress"):
        return not nic.macs.isdisjoint(line.value.lower().replace("-", ":").split())
    if line.key == "Driver":
        return _fits(line.value, nic.driver)
    return line.key == "Type" and _fits(line.value, "ether")


def _fits(globs: str, name: str) -> bool:
    """Whether a list of patterns has a name; ``!`` before the list turns it round."""
    words = globs.removeprefix("!").split()
    return any(fnmatch.fnmatchcase(name, word) for word in words) is not globs.startswith("!")


# --- ifupdown, NetworkManager, ifcfg ---


def _interfaces(_: str, text: str, nic: _Nic) -> str | None:
    """Return what the blocks of the interface in ifupdown's file say: by ``mtu``, or by a command when it is up."""
    named = re.escape(nic.name)
    # One interface may have a block for each family.
    blocks = re.findall(
        rf"^\s*iface\s+{named}\s(.*?)(?=^\s*(?:iface|auto|allow-|mapping|source)|\Z)", text, re.M | re.S
    )
    whole = "\n".join(blocks)
    commands = re.findall(r"^\s*(?:pre-up|up|post-up)\s+(.*)$", whole, re.M)
    by_command = [
        found[1]
        for command in commands
        if (found := re.search(r"\bmtu\s+(\d{1,6})\b", command))
        and re.search(rf"(?:\$\{{?IFACE\b|(?<![\w.-]){named}(?![\w.-]))", command)
    ]
    by_option = re.findall(r"^\s*mtu\s+(\d{1,6})\s*$", whole, re.M)
    return next(iter([*by_command[::-1], *by_option]), None)  # a command comes after the option


def _keyfile(_: str, text: str, nic: _Nic) -> str | None:
    """Return what a connection of NetworkManager says, if it is of the interface by name, by address or by match."""
    lines = list(_lines(text))

    def said(key: str, *sections: str) -> str:
        return next((line.value for line in lines if line.key == key and line.section in sections), "")

    name, mac = said("interface-name", "connection", ""), said("mac-address", *_MEDIA).lower()
    globs = said("interface-name", "match").replace(";", " ").replace(",", " ")
    named = name == nic.name if name else bool(globs) and _fits(globs, nic.name)
    if not (named or (not name and not globs and mac in nic.macs and mac)):
        return None
    value = said("mtu", *_MEDIA)
    return value if value.isdecimal() and value != "0" else None  # 0 leaves it to the driver


_MEDIA = ("ethernet", "802-3-ethernet", "infiniband", "")


def _rhel(path: str, text: str, nic: _Nic) -> str | None:
    said = _assignments(text)
    mine = said.get("DEVICE") == nic.name if said.get("DEVICE") else path.endswith(f"ifcfg-{nic.name}")
    by_mac = "DEVICE" not in said and said.get("HWADDR", "").lower() in nic.macs
    return _number(said.get("MTU")) if mine or by_mac else None


def _sles(path: str, text: str, nic: _Nic) -> str | None:
    return _number(_assignments(text).get("MTU")) if path.endswith(f"/ifcfg-{nic.name}") else None


def _assignments(text: str) -> dict[str, str]:
    """Return the variables of a shell file; the last one of a name counts."""
    found = re.findall(r"^\s*(?:export\s+)?([A-Z_]+)=(?:\"([^\"]*)\"|'([^']*)'|([^\s#]*))", text, re.M)
    return {name: one or two or three for name, one, two, three in found}


def _number(word: str | None) -> str | None:
    return word if word is not None and re.fullmatch(r"\d{1,6}", word) else None


# --- netplan ---


def _netplan(_: str, text: str, nic: _Nic) -> str | None:
    blocks = [block for name, block in _entries(text) if _means(name, block, nic)]
    found = re.search(r"^\s+mtu:\s*(\d{1,6})\s*$", "\n".join(blocks), re.M)
    return found[1] if found else None


def _entries(text: str) -> list[tuple[str, str]]:
    """Return (name, lines) of the interfaces in a netplan file: what stands in ethernets, bonds, vlans and so on."""
    found: list[tuple[str, str]] = []
    kinds = r"^(\s*)(?:ethernets|wifis|bonds|bridges|vlans|tunnels|dummy-devices):[ \t]*$((?:\n\1[ \t]+.*|\n[ \t]*$)*)"
    for kind in re.finditer(kinds, text, re.M):
        first = re.search(r"^([ \t]+)\S", kind[2], re.M)
        if first:
            entry = rf"^{first[1]}[\"']?([^\s:\"']+)[\"']?:[ \t]*$((?:\n{first[1]}[ \t]+.*|\n[ \t]*$)*)"
            found += [(one[1], one[2]) for one in re.finditer(entry, kind[2], re.M)]
    return found


def _means(name: str, block: str, nic: _Nic) -> bool:
    """Whether an entry is of an interface: by its own name, by the one that it gives, or by what it matches.

    With ``match`` the entry's own name means nothing, and ``set-name`` is the name from then on.
    """

    def value(key: str) -> str:
        found = re.search(rf"(?:^|[{{,\s]){key}:\s*[\"']?([^\s\"',}}]+)", block, re.M)
        return found[1] if found else ""

    if not re.search(r"^\s+match:", block, re.M):
        return name == nic.name
    if value("set-name"):
        return value("set-name") == nic.name
    by_name, by_mac = value("name"), value("macaddress").lower()
    fits = (not by_name or fnmatch.fnmatchcase(nic.name, by_name)) and (not by_mac or by_mac in nic.macs)
    return bool(by_name or by_mac) and fits


_READ: dict[str, Callable[[str, str, _Nic], str | None]] = {
    "/etc/network/interfaces": _interfaces,
    "/etc/netplan/": _netplan,
    "/etc/sysconfig/network-scripts/ifcfg-": _rhel,
    "/etc/sysconfig/network/ifcfg-": _sles,
    CONNECTIONS: _keyfile,
}

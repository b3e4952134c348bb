"""What keeps settings over a reboot, against what is in force now. Pure.

Sources: sysctl.d(5) for the order in which files are read, modprobe.d(5), systemd.link(5), interfaces(5).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterator, Sequence

from wulf.base.catalogue import Knob, sysctl_path
from wulf.base.output_values import Absent, Unknown, is_count, shown, whole
from wulf.base.records import FactValue
from wulf.node.facts.node import Facts, NodeCapture
from wulf.node.facts.readers import mtu, tuned
from wulf.node.facts.readers.machine import booted_at
from wulf.node.facts.tree import Tree

#: Directories of sysctl.d, from the strongest: a file hides those of the same name in the ones behind it.
_SYSCTL_DIRECTORIES = (
    "/etc/sysctl.d/",
    "/run/sysctl.d/",
    "/usr/local/lib/sysctl.d/",
    "/usr/lib/sysctl.d/",
    "/lib/sysctl.d/",
)
_SYSCTL_CONF = "/etc/sysctl.conf"
#: Where it stands in which order systemd reads these files.
_ORDER = "sysctl_order"
#: Set by the kernel or systemd from several parts; a file's text is not what is read back.
_NOT_COMPARED = re.compile(
    r"kernel\.core_pattern|kernel\.printk|fs\.binfmt_misc\..*|net\.ipv4\.ping_group_range"
)
_MANY = 8
_CONNECTIONS = mtu.CONNECTIONS


def add(facts: Facts, capture: NodeCapture, knobs: Sequence[Knob]) -> None:
    """Collect where files and live values differ, and what has changed since the boot."""
    facts.read("settings.contradicted", lambda: _contradicted(capture))
    facts.read("settings.unkept", lambda: _unkept(capture, knobs))
    facts.read("settings.unread", lambda: _unread(capture))
    facts.read("settings.mtu", lambda: kept_mtu(capture))
    facts.read("settings.changed_since_boot", lambda: _changed(capture))
    facts.read("settings.reboot_required", lambda: _reboot_required(capture))
    facts.read("settings.module_options", lambda: _module_options(capture))


def kept_sysctls(capture: NodeCapture) -> dict[str, tuple[str, str]]:
    """Sysctl → (value, file) that the next boot sets, in the order in which systemd-sysctl applies them."""
    return {name: setters[-1] for name, setters in sysctl_setters(capture).items()}


def sysctl_setters(capture: NodeCapture) -> dict[str, list[tuple[str, str]]]:
    """Sysctl → (value, file) of all files that set it, in the order in which systemd-sysctl reads them."""
    return capture.once("sysctl_setters", lambda: _read_sysctls(capture.tree))


def _read_sysctls(tree: Tree) -> dict[str, list[tuple[str, str]]]:
    files: dict[str, dict[str, list[str]]] = {}
    for directory in _SYSCTL_DIRECTORIES:
        for path, text in tree.files(directory):
            name = path.rpartition("/")[2]
            here = files.setdefault(name, {})
            if not here or path in here or next(iter(here)).startswith(directory):
                here.setdefault(path, text.splitlines())
    ordered = [entry for name in sorted(files) for entry in files[name].items()]
    if _ORDER in tree:
        # What systemd says is so, also where an empty file, or a link to /dev/null, hides another one.
        there = {path: lines for entries in files.values() for path, lines in entries.items()}
        paths = [line.removeprefix("# ") for line in tree.lines(_ORDER)]
        ordered = [(path, there[path]) for path in paths if path in there]
    elif _SYSCTL_CONF in tree and not _is_linked(tree) and not _debian_13(tree):
        ordered.append((_SYSCTL_CONF, tree.text(_SYSCTL_CONF).splitlines()))
    return _setters(ordered, _sysctls_there(tree))


def _sysctls_there(tree: Tree) -> list[str]:
    """Return the sysctls that are known of a node, for names with wildcards."""
    return [path.removeprefix("/proc/sys/").replace("/", ".") for path, _ in tree.files("/proc/sys/")]


def _reads_sysctl_conf(tree: Tree) -> bool:
    """Whether the system reads /etc/sysctl.conf at boot.

    systemd-sysctl reads sysctl.d alone; distributions have a link there (99-sysctl.conf). Debian 13 has none any more.
    """
    return _is_linked(tree) or (_ORDER not in tree and not _debian_13(tree))


def _is_linked(tree: Tree) -> bool:
    return any(f"{directory}99-sysctl.conf" in tree for directory in _SYSCTL_DIRECTORIES)


def _debian_13(tree: Tree) -> bool:
    """Whether the system is Debian 13 or later; testing has no number, but its name."""
    try:
        said = dict(line.split("=", 1) for line in tree.lines("/etc/os-release") if "=" in line)
    except Unknown:
        return False
    version = said.get("VERSION_ID", "").strip('"')
    newest = is_count(version) and int(version) >= 13
    return said.get("ID", "").strip('"') == "debian" and (newest or not version)


def _unread(capture: NodeCapture) -> FactValue:
    """Return the file of sysctls that nobody reads at boot, and what it would set."""
    tree = capture.tree
    names = sorted(_unread_values(tree))
    return f"{_SYSCTL_CONF}: {_listed(names).replace(';', ',')}" if names else "none"


def _unread_values(tree: Tree) -> dict[str, str]:
    """Return sysctl → value of the file that nobody reads at boot; empty where it is read."""
    if _SYSCTL_CONF not in tree or _reads_sysctl_conf(tree):
        return {}
    found = _setters([(_SYSCTL_CONF, tree.text(_SYSCTL_CONF).splitlines())], _sysctls_there(tree))
    return {name: setters[-1][0] for name, setters in found.items()}


def _setters(
    files: Sequence[tuple[str, Sequence[str]]], there: Collection[str]
) -> dict[str, list[tuple[str, str]]]:
    """Return sysctl → (value, file) as systemd-sysctl takes them.

    Names with wildcards mean those of `there`, but for what is named without, or is left out by ``-NAME`` alone; ``-``
    before an assignment says that it may fail. Source: sysctl.d(5).
    """
    named: dict[str, list[tuple[str, str]]] = {}
    wild: dict[str, list[tuple[str, str]]] = {}
    left_out: set[str] = set()
    for path, lines in files:
        for line in lines:
            name, mark, value = line.strip().partition("=")
            key = _dotted(name.strip().removeprefix("-").strip())
            if mark:
                place = wild if any(letter in key for letter in "*?[") else named
                place.setdefault(key, []).append((" ".join(value.split()), path))
            elif name.startswith("-"):
                left_out.add(key)
    for pattern, setters in wild.items():
        for name in fnmatch.filter(there, pattern):
            if name not in left_out and name not in named:
                wild_of = named.setdefault(name, [])
                wild_of += setters
    return named


def _dotted(name: str) -> str:
    """Return a sysctl's name with dots: ``net/ipv4/ip_forward`` means the same."""
    slash, dot = name.find("/"), name.find(".")
    return name.replace("/", ".") if slash >= 0 and (dot < 0 or slash < dot) else name


def _contradicted(capture: NodeCapture) -> FactValue:
    """Return the sysctls whose file says something else than the kernel."""
    said = []
    for name, (value, path) in sorted(kept_sysctls(capture).items()):
        live_path = sysctl_path(name)
        if live_path not in capture.tree or _NOT_COMPARED.fullmatch(name):
            continue
        live = " ".join(capture.tree.text(live_path).split())
        if live != value:
            said.append(f"{name} is {shown(live, 60)}, {path} says {shown(value, 60)}")
    return _listed(said)


def _unkept(capture: NodeCapture, knobs: Sequence[Knob]) -> FactValue:
    """Return the sysctls of the catalogue that somebody changed and that no file keeps."""
    kept = kept_sysctls(capture).keys() | {
        _dotted(entry.name) for entry in tuned.entries(capture) if entry.section == "sysctl"
    }
    said: list[str] = []
    for knob in knobs:
        name = knob.access.target
        path = sysctl_path(name)
        if knob.access.kind != "sysctl" or not knob.default or path not in capture.tree or name in kept:
            continue
        live = " ".join(capture.tree.text(path).split())
        if live != knob.default:
            said.append(f"{name} is {shown(live, 60)} (the kernel's own is {knob.default})")
    said += _set_by_unread(capture, kept)
    try:
        kept_mtu(capture)
    except Absent:
        live_mtu = capture.tree.text(f"/sys/class/net/{capture.nic()}/mtu")
        ours = capture.interface == "lo" or _mtu_by_wulf(capture, live_mtu) or _is_leased(capture)
        if live_mtu != "1500" and not ours:
            said.append(f"the MTU of {capture.interface} is {shown(live_mtu, 20)} (the kernel's own is 1500)")
    except Unknown:
        pass  # then it is not known whether a file keeps it: settings.mtu says why
    return _listed(said)


def _set_by_unread(capture: NodeCapture, kept: Collection[str]) -> Iterator[str]:
    """Yield the sysctls that are as a file says that nobody reads at boot: somebody ran ``sysctl -p``."""
    for name, value in sorted(_unread_values(capture.tree).items()):
        path = sysctl_path(name)
        if name not in kept and path in capture.tree and " ".join(capture.tree.text(path).split()) == value:
            yield f"{name} is {shown(value, 60)} ({_SYSCTL_CONF} says it, which nobody reads at boot)"


def _is_leased(capture: NodeCapture) -> bool:
    """Whether the interface's address is a lease: DHCP says the MTU, too, at each boot (option 26)."""
    own = re.compile(rf"\d+:\s+{re.escape(capture.nic())}(@\S+)?\s+inet .*\bdynamic\b")
    try:
        return any(own.match(line) for line in capture.tree.lines("addresses"))
    except Unknown:
        return False


def _mtu_by_wulf(capture: NodeCapture, mtu: str) -> bool:
    """Whether a file that `wulf settings persist` wrote sets the MTU at boot."""
    try:
        if re.search(rf"^keep nic nic\.mtu link \S+ mtu {mtu}$", capture.tree.output("wulf_kept")[0], re.M):
            return True
    except Unknown:
        pass  # then there is no such script
    own = (text for path, text in capture.tree.files("/etc/systemd/network/") if "wulf" in path)
    return any(re.search(rf"^MTUBytes={mtu}$", text, re.M) for text in own)


def kept_mtu(capture: NodeCapture) -> FactValue:
    """Return the MTU that a configuration file sets for the cluster's interface [B].

    Raises
    ------
    Absent
        When no file does.
    """
    return whole(_kept_mtu(capture)[1], "the MTU")


def kept_mtu_file(capture: NodeCapture) -> str:
    """Return the configuration file that sets the MTU of the cluster's interface; raises as `kept_mtu`."""
    return _kept_mtu(capture)[0]


def _kept_mtu(capture: NodeCapture) -> tuple[str, str]:
    found = next(mtu.setters(capture), None)
    if found is not None:
        return found
    if capture.tree.refused(_CONNECTIONS):
        raise Unknown("only root may read NetworkManager's connections")
    raise Absent("no configuration file sets it")


def connections(capture: NodeCapture) -> list[tuple[str, list[str]]]:
    """Return NetworkManager's connections of the cluster's interface: file and settings."""
    mine = f"interface-name={capture.nic()}"
    found = [(path, text.splitlines()) for path, text in capture.tree.files(_CONNECTIONS)]
    return [(path, lines) for path, lines in found if mine in lines]


def _changed(capture: NodeCapture) -> FactValue:
    """Return the configuration files that were changed after the node had booted."""
    boot = booted_at(capture.tree)
    said = []
    for line in capture.tree.output("changed")[0].splitlines():
        when, _, path = line.partition(" ")
        # Files are written while a node boots; a minute later it has read them.
        if is_count(when) and int(when) > boot + 60 and path.startswith("/etc/"):
            said.append(shown(path, 100))
    return _listed(said)


def _reboot_required(capture: NodeCapture) -> FactValue:
    return "reboot-required" in capture.tree.output("changed")[0]


def _module_options(capture: NodeCapture) -> FactValue:
    """Return the driver options in /etc/modprobe.d."""
    said = []
    for _, text in capture.tree.files("/etc/modprobe.d/"):
        said += [" ".join(line.split()) for line in text.splitlines() if line.strip().startswith("options ")]
    return "; ".join(sorted(said)) or "none"


def _listed(said: list[str]) -> str:
    more = f" and {len(said) - _MANY} more" if len(said) > _MANY else ""
    return ("; ".join(said[:_MANY]) + more) or "none"

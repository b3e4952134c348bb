"""The native files that keep settings: their texts.  Pure.

Sources: systemd.link(5), systemd.network(5), systemd.service(5), sysctl.d(5), modprobe.d(5),
NetworkManager-dispatcher(8), interfaces(5).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence

from wulf.node.change.steps import KnobSetting

SCRIPT = "/etc/wulf/settings.sh"
MODPROBE = "/etc/modprobe.d/wulf.conf"
UNITS = "/etc/systemd/system/"
SETTINGS_UNIT = f"{UNITS}wulf-settings.service"
LATENCY_UNIT = f"{UNITS}wulf-latency.service"
DISPATCHER = "/etc/NetworkManager/dispatcher.d/90-wulf-settings"
IF_UP = "/etc/network/if-up.d/wulf-settings"
#: Services that load a packet filter and so take away what is not theirs.
FILTERS = ("nftables", "iptables", "netfilter-persistent")
#: Since this version systemd's .link files know what `_LINK_KEYS` has but coalescing.
_LINK_SINCE = 247
_LINK_COALESCING_SINCE = 250
_ON_OFF = {"on": "yes", "off": "no", "1": "yes", "0": "no"}
#: Programs that set the same things at boot: the last word is wulf's.
_AFTER = (
    "network.target network-online.target NetworkManager.service systemd-networkd.service networking.service "
    "nftables.service firewalld.service iptables.service ip6tables.service netfilter-persistent.service "
    "ufw.service irqbalance.service tuned.service cpupower.service cpufrequtils.service"
)


def wanted(unit: str) -> str:
    """Return the link by which a unit is started at boot."""
    # A link, because systemctl enables no unit that is not there yet when its state is journalled.
    return f"{UNITS}multi-user.target.wants/{unit.rpartition('/')[2]}"


def sysctls(settings: Mapping[str, str], head: str) -> str:
    """Return a file for sysctl.d."""
    return _file(head, *(f"{name} = {value}" for name, value in settings.items()))


def module_options(driver: str, parameters: Mapping[str, str], head: str) -> str:
    """Return a file for modprobe.d."""
    return _file(head, *(f"options {driver} {name}={value}" for name, value in parameters.items()))


def link(mac: str, before: str, carried: Sequence[str], own: Sequence[str], head: str) -> str:
    """Return a .link file for one interface.

    Parameters
    ----------
    mac
        The interface's permanent address.
    before
        The file that udev has applied so far, of which only the first counts.
    carried
        The lines of that file's [Link] section: they give the interface its name.
    own
        Lines to add.
    """
    mine = {line.partition("=")[0] for line in own}
    kept = [line for line in carried if line.partition("=")[0] not in mine]
    # Two sections, so that what was carried over can be told from what was added (facts/readers/boot_configuration).
    match = ["[Match]", f"PermanentMACAddress={mac}", "Type=ether", ""]
    why = f"# As in {before}, which applied before: the name does not change."
    return _file(head, *match, why, "[Link]", *kept, "", "[Link]", *own)


def network_mtu(mtu: str, head: str) -> str:
    """Return a drop-in for a .network file."""
    return _file(head, "[Link]", f"MTUBytes={mtu}")


def link_lines(knob_setting: KnobSetting, systemd: int) -> list[str]:
    """Return what a .link file says for a setting; nothing when it cannot say it."""
    target = knob_setting.knob.access.target
    if knob_setting.knob.access.kind == "link" and target == "mtu":
        return [f"MTUBytes={knob_setting.value}"]
    group = re.split("[. ]", target)[0]
    since = _LINK_COALESCING_SINCE if group == "coalesce" else _LINK_SINCE
    write = _LINK_KEYS.get(group)
    if knob_setting.knob.access.kind != "ethtool" or write is None or systemd < since:
        return []
    return write(target, knob_setting.value)


def _feature_lines(target: str, value: str) -> list[str]:
    names = {
        "generic-receive-offload": "GenericReceiveOffload",
        "large-receive-offload": "LargeReceiveOffload",
        "tcp-segmentation-offload": "TCPSegmentationOffload",
        "generic-segmentation-offload": "GenericSegmentationOffload",
    }
    pairs = _pairs(target, value)
    if any(name not in names or state not in _ON_OFF for name, state in pairs):
        return []
    return [f"{names[name]}={_ON_OFF[state]}" for name, state in pairs]


def _coalesce_lines(target: str, value: str) -> list[str]:
    name = target.removeprefix("coalesce.")
    way = "Rx" if name.startswith("rx") or name.endswith("rx") else "Tx"
    if name.startswith("adaptive-"):
        return [f"UseAdaptive{way}Coalesce={_ON_OFF[value]}"] if value in _ON_OFF else []
    # An adaptive driver takes no notice of a fixed delay.
    fixed = f"UseAdaptive{way}Coalesce=no"
    if name.endswith("-usecs") and value.isdigit():
        return [fixed, f"{way}CoalesceSec={value}us"]
    if name.endswith("-frames") and value.isdigit():
        return [fixed, f"{way}MaxCoalescedFrames={value}"]
    return []


def _ring_lines(target: str, value: str) -> list[str]:
    return [
        f"{name.title()}BufferSize={size}" for name, size in _pairs(target, value) if name in ("rx", "tx")
    ]


def _channel_lines(_: str, value: str) -> list[str]:
    words = value.split()
    return [f"{name.title()}Channels={count}" for name, count in zip(words[::2], words[1::2], strict=False)]


def _pause_lines(target: str, value: str) -> list[str]:
    pairs = _pairs(target, value)
    if any(state not in _ON_OFF for _, state in pairs):
        return []
    return [
        "AutoNegotiationFlowControl=no",
        *(f"{name.title()}FlowControl={_ON_OFF[state]}" for name, state in pairs),
    ]


_LINK_KEYS: dict[str, Callable[[str, str], list[str]]] = {
    "feature": _feature_lines,
    "coalesce": _coalesce_lines,
    "ring": _ring_lines,
    "channels": _channel_lines,
    "pause": _pause_lines,
}


def _pairs(target: str, value: str) -> list[tuple[str, str]]:
    """Return (parameter, value): one value holds for all, or there is one for each."""
    names = [word.partition(".")[2] for word in target.split()]
    values = value.split()
    return list(zip(names, values if len(values) == len(names) else values[:1] * len(names), strict=True))


def settings_unit(head: str, *, online: bool) -> str:
    """Return the unit that sets everything without a file of its own.

    Parameters
    ----------
    online
        Whether a setting needs the addresses to be there.
    """
    wants = ["Wants=network-online.target"] if online else []
    return _file(
        head,
        "[Unit]",
        "Description=Settings kept by wulf",
        f"After={_AFTER}",
        *wants,
        "",
        *_oneshot(),
        f"ExecStart=/bin/sh {SCRIPT}",
    )


def latency_unit(head: str) -> str:
    """Return the unit whose process holds /dev/cpu_dma_latency; what fails in the other one does not end it."""
    unit = ["[Unit]", "Description=Longest wake-up of the CPUs, kept by wulf", "After=tuned.service", ""]
    return _file(head, *unit, *_oneshot(), f"ExecStart=/bin/sh {SCRIPT} latency")


def _oneshot() -> list[str]:
    return ["[Service]", "Type=oneshot", "RemainAfterExit=yes"]


def filter_dropin(head: str) -> str:
    """Return a drop-in for a service that loads the packet filter: the exemption comes after its rules."""
    again = f"/bin/sh {SCRIPT} firewall"
    return _file(head, "[Service]", f"ExecStartPost={again}", f"ExecReload={again}")


def if_up(interface: str, head: str) -> str:
    """Return a script for /etc/network/if-up.d, which ifupdown runs when the interface is up."""
    return _hook(head, f'[ "$IFACE" = {shlex.quote(interface)} ] || exit 0')


def dispatcher(interface: str, head: str) -> str:
    """Return a script for NetworkManager's dispatcher."""
    return _hook(head, f'[ "$1 $2" = {shlex.quote(interface + " up")} ] || exit 0')


def _hook(head: str, condition: str) -> str:
    return "\n".join(["#!/bin/sh", head, condition, f"exec /bin/sh {SCRIPT} nic", ""])


def _file(head: str, *lines: str) -> str:
    return "\n".join([head, *lines, ""])

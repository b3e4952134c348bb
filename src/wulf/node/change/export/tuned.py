"""Settings as a TuneD profile.  Pure.

TuneD keeps the state before while its daemon runs, and puts it back when it stops. What its own plug-ins cannot set
or verify is in a script that TuneD calls with ``start``, ``stop`` and ``verify``.

Source: TuneD 2.20, ``tuned/plugins`` and ``tuned.conf(5)``.
"""

from __future__ import annotations

from collections.abc import Mapping

from wulf.node.change.export import HEAD, Chosen, Group, groups, numbered
from wulf.node.change.script import undoable
from wulf.node.change.steps import KnobSetting, Step

_SCRIPT = "settings.sh"
#: Knob → section and option that TuneD has for it.
_OPTIONS = {
    "cpu.governor": ("cpu", "governor"),
    "vm.thp": ("vm", "transparent_hugepages"),
}
#: Group of ethtool's settings → option of the plug-in `net`. Features stay with the script: what the plug-in reads
#: back has other names than what it sets, so that it cannot verify some of them.
_NET = {"coalesce": "coalesce", "ring": "ring", "pause": "pause"}
_SECTIONS = ("sysctl", "cpu", "vm", "net", "service")


def tuned(chosen: Mapping[str, Chosen], name: str = "wulf") -> dict[str, str]:
    """Return a profile for each group of equal nodes: ``NAME/tuned.conf`` and, where needed, ``NAME/settings.sh``.

    A profile belongs in /etc/tuned (since TuneD 2.23 in /etc/tuned/profiles).

    Raises
    ------
    UsageError
        As `wulf.node.change.export.groups`.
    """
    found = groups(chosen)
    files: dict[str, str] = {}
    for index, group in enumerate(found):
        files |= _profile(group, numbered(name, index, len(found)))
    return files


def _profile(group: Group, name: str) -> dict[str, str]:
    sections: dict[str, list[str]] = {section: [] for section in _SECTIONS}
    net: dict[str, list[str]] = {}
    script: list[Step] = []
    for knob_setting, step in group.knob_settings():
        if knob_setting.knob.access.kind == "tuned":
            continue  # this profile takes the place of the other one
        # The plug-in passes over interfaces that are no devices, and says that all is well.
        if not (_native(knob_setting, step, sections) or (group.physical and _network(step, net))):
            script.append(step)
    if net:
        sections["net"] = [
            f"devices={group.interface}",
            *(f"{option}={' '.join(words)}" for option, words in net.items()),
        ]
    lines = [HEAD, "[main]", f"summary=Settings that wulf has measured to be right for {group.title}"]
    for section, options in sections.items():
        if options:
            lines += ["", f"[{section}]", *options]
    files = {}
    if script:
        lines += ["", "[script]", f"script=${{i:PROFILE_DIR}}/{_SCRIPT}"]
        files[f"{name}/{_SCRIPT}"] = undoable(script, HEAD, f"/var/lib/wulf-export/tuned-{name}")
    return {f"{name}/tuned.conf": "\n".join([*lines, ""]), **files}


def _native(knob_setting: KnobSetting, step: Step, sections: dict[str, list[str]]) -> bool:
    """Give a setting to the plug-in that knows it; return whether there is one."""
    if step.kind == "sysctl":
        sections["sysctl"].append(f"{step.target}={knob_setting.value}")
    elif step.kind == "service":
        words = {"on": "start,enable", "off": "stop,disable"}[knob_setting.value]
        sections["service"].append(f"service.{step.target.removesuffix('.service')}={words}")
    elif step.kind == "pm_qos" and knob_setting.value != "unlimited":
        sections["cpu"].append(f"force_latency={knob_setting.value}")
    elif knob_setting.knob.id in _OPTIONS:
        section, option = _OPTIONS[knob_setting.knob.id]
        sections[section].append(f"{option}={knob_setting.value}")
    else:
        return False
    return True


def _network(step: Step, net: dict[str, list[str]]) -> bool:
    """Give a setting of the interface to the plug-in `net`; return whether it knows it."""
    if step.kind == "link" and step.target == "mtu":
        net["mtu"] = [step.value]
        return True
    names = step.target.split()
    option = _NET.get(names[0].partition(".")[0]) if step.kind == "ethtool" else None
    values = step.value.split()
    if option is None or not all(value.isdigit() or value in ("on", "off") for value in values):
        return False
    words = net.setdefault(option, [])
    for name, value in zip(names, values if len(values) == len(names) else values * len(names), strict=False):
        words += [name.partition(".")[2], value]
    return True

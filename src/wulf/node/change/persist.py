"""From confirmed settings to the files that keep them over a reboot, as the node's own system does it.  Pure.

What is returned are steps of the kinds ``stored`` and ``unit``: the guard journals, makes and undoes them as it does
with every other change, so that a rollback leaves no trace. Such a step names a file and the settings that are in it:
the guard on the node writes the text itself, and takes none from anybody (`made`). What an export writes, where no
guard is, has the text in it (`stored`).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence

import msgspec

from wulf.base import access
from wulf.base.catalogue import of_device
from wulf.base.records import NodeRecord
from wulf.base.text import interface_in_command
from wulf.node.change import configuration_files
from wulf.node.change.script import Part, at_boot, kept, kept_lines
from wulf.node.change.steps import NOTHING, KnobSetting, Step, members, plan

#: Names for the file of sysctl.d, each sorting behind the one before it.
_SYSCTL_NAMES = ("90-wulf.conf", "99-wulf.conf", "zz-wulf.conf", "zzzz-wulf.conf")
_SYSCTL_CONF = "/etc/sysctl.conf"
#: Names for the .link file, each sorting before the one before it: of all that match, the first name counts.
_LINK_PREFIXES = ("10-wulf-", "00-wulf-")
#: What can be the name of a kernel module, in a file that can also run commands.
_DRIVER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SETTINGS, _LATENCY = (
    unit.rpartition("/")[2] for unit in (configuration_files.SETTINGS_UNIT, configuration_files.LATENCY_UNIT)
)
#: Where systemd does not run: what would need it.
_NOT_SET = (
    "systemd does not run there, and nothing else sets it at boot: set it again after a boot, "
    "or in what starts the node"
)
_NIC_SCOPES = ("interface", "queue", "route", "cluster")
_RHEL = ("Red Hat", "Rocky", "AlmaLinux", "CentOS", "Fedora", "Oracle")


class Persistence(msgspec.Struct, frozen=True, kw_only=True):
    """What keeps the settings of one node."""

    #: Path → what the guard writes there, for people; a link as what it leads to.
    texts: dict[str, str] = {}

    #: For the guard; a step's knob is the file or unit it is about.
    steps: list[Step]
    #: Knob → where it is kept.
    places: dict[str, str]
    #: Knob → why nothing keeps it, and what to do instead.
    unpersistable: dict[str, str]
    #: What a person should know, such as a file whose value is overridden.
    notes: list[str]


def marker(change: str) -> str:
    """Return the first line of all files that keep the settings of a change."""
    return f"# Written by wulf (change {change}): `wulf rollback` takes it away."


def persist(
    wanted: Sequence[KnobSetting], interface: str | None, record: NodeRecord, change: str
) -> Persistence:
    """Return what keeps all settings on a node.

    Parameters
    ----------
    interface
        The interface that carries the cluster's traffic.
    record
        The node's facts, for who configures the interface and what else is there.
    change
        The change that has made them.

    Raises
    ------
    UsageError
        A knob is of an interface, and it is not known which one carries the cluster's traffic.
    """
    return _keep(wanted, _Node(interface, record, marker(change), change))


def portable(
    wanted: Sequence[KnobSetting], interface: str | None, record: NodeRecord, head: str
) -> Persistence:
    """Return what keeps all settings on nodes like this one, without a guard, and nothing that holds for it alone.

    Parameters
    ----------
    head
        First line of every file.
    """
    return _keep(wanted, _Node(interface, record, head, ""))


def _keep(wanted: Sequence[KnobSetting], node: _Node) -> Persistence:
    for knob_setting in wanted:
        if not _kind(knob_setting).settable:
            node.refuse(knob_setting)
    by_id = {knob_setting.knob.id: knob_setting for knob_setting in wanted if _kind(knob_setting).settable}
    # Sorted, so that equal settings are equal bytes whatever order they were asked for in.
    for step in node.plan(sorted(by_id.values(), key=str)):
        node.keep(by_id[step.knob], step)
    return node.done()


def made(path: str, change: str, interface: str | None, items: Sequence[str] = ()) -> Step:
    """Return the step that lets the guard write a file: of settings (``PART,CARD/KNOB=VALUE``, or less of it)."""
    value = "|".join([f"made:{change}:{interface or NOTHING}", *items])
    return Step(knob=path, kind="stored", interface=NOTHING, target=path, value=value)


def stored(path: str, text: str, mode: str = "644") -> Step:
    """Return the step that writes a file."""
    content = base64.b64encode(text.encode()).decode()
    return Step(knob=path, kind="stored", interface=NOTHING, target=path, value=f"file:{mode}:{content}")


def _linked(path: str, target: str) -> Step:
    return Step(knob=path, kind="stored", interface=NOTHING, target=path, value=f"link:{target}")


def _kind(knob_setting: KnobSetting) -> access.Kind:
    return access.kinds()[knob_setting.knob.access.kind]


class _Node:
    """What must be written on one node."""

    def __init__(self, interface: str | None, record: NodeRecord, head: str, change: str) -> None:
        self._interface = interface
        self._record = record
        self._facts = record.facts
        self._members = members(record)
        self._unknown = record.unknown
        self._head = head
        self._change = change
        self._portable = not change
        #: Whether systemd starts what is kept at boot.
        self._boots = self._portable or "system.state" not in record.unknown | record.absent
        self._texts: dict[str, str] = {}
        self._places: dict[str, str] = {}
        self._unpersistable: dict[str, str] = {}
        self._notes: list[str] = []
        self._sysctls: dict[str, str] = {}
        self._options: dict[str, str] = {}
        self._link: list[str] = []
        #: The card whose driver has them.
        self._driven = interface or NOTHING
        #: Of each file, the settings that the guard makes it of.
        self._items: dict[str, list[str]] = {}
        self._network_mtu = ""
        self._script: list[tuple[Part, Step]] = []
        self._units: list[Step] = []

    def plan(self, wanted: Sequence[KnobSetting]) -> list[Step]:
        """Return the steps that fulfil all wishes on the node."""
        return plan(wanted, self._interface, self._record)

    def refuse(self, knob_setting: KnobSetting) -> None:
        """Say what to do where nothing on the node keeps a setting."""
        knob = knob_setting.knob
        how = knob.persist.rhel if self._is_rhel() else knob.persist.debian
        self._unpersistable[knob.id] = _kind(knob_setting).elsewhere.format(file=knob.persist.file, how=how)

    def keep(self, knob_setting: KnobSetting, step: Step) -> None:
        """Find the place for one setting."""
        knob = knob_setting.knob
        kind = knob.access.kind
        if _kind(knob_setting).survives_boot:
            self._places[knob.id] = _kind(knob_setting).lasts
        elif kind == "sysctl":
            self._sysctls[step.target] = knob_setting.value
            self._item("sysctl", knob_setting)
            self._places[knob.id] = self._sysctl_file()
        elif kind == "service":
            self._at_boot(knob_setting, step)
        elif kind == "module" and not _DRIVER.fullmatch(self._text("nic.driver")):
            self._unpersistable[knob.id] = "the name of the interface's driver is not known"
        elif kind == "module":
            self._options[step.target] = knob_setting.value
            self._item("module", knob_setting)
            self._driven = step.interface
            self._places[knob.id] = configuration_files.MODPROBE
        elif kind == "firewall":
            self._exempt(knob_setting, step)
        else:
            self._set(knob_setting, step)

    def done(self) -> Persistence:
        """Return all steps; what an earlier change has written and this one does not need goes."""
        if "keep.manager" in self._unknown:
            self._notes.append(
                f"it is not known what configures the interface: {self._unknown['keep.manager']}"
            )
        steps = [*self._files(), *self._units_of_script()]
        written = {step.target for step in steps}
        stale = [] if self._portable else self._text("keep.files").split()
        gone = [
            Step(knob=path, kind="stored", interface=NOTHING, target=path, value="absent")
            for path in stale
            if path.startswith("/etc/") and path not in written
        ]
        return Persistence(
            steps=[*gone, *steps, *self._units],
            texts=self._texts,
            places=self._places,
            unpersistable=self._unpersistable,
            notes=list(dict.fromkeys(self._notes)),
        )

    # --- where ---

    def _at_boot(self, knob_setting: KnobSetting, step: Step) -> None:
        """Keep a service off or on: what systemd starts at boot."""
        if not self._boots:
            self._unpersistable[knob_setting.knob.id] = _NOT_SET
            return
        state = {"on": "enabled", "off": "disabled"}[knob_setting.value]
        now = self._text(knob_setting.knob.id)
        self._places[knob_setting.knob.id] = f"systemctl {state.removesuffix('d')} {step.target}"
        if (
            self._portable
            or now
            not in {"on": ("on", "off, on at boot"), "off": ("off", "on, not at boot")}[knob_setting.value]
        ):
            unit = Step(knob=step.target, kind="unit", interface=NOTHING, target=step.target, value=state)
            self._units.append(unit)

    def _exempt(self, knob_setting: KnobSetting, step: Step) -> None:
        if knob_setting.value == "tracked":
            self._places[knob_setting.knob.id] = "nothing to persist: it is so without wulf"
        elif self._text("service.firewalld") in ("on", "off, on at boot"):
            self._unpersistable[knob_setting.knob.id] = (
                "firewalld recreates its rules at every reload: "
                "firewall-cmd --permanent --zone=trusted "
                f"--change-interface={interface_in_command(self._interface)}"
            )
        elif not self._boots:
            self._unpersistable[knob_setting.knob.id] = _NOT_SET
        else:
            self._script.append(("firewall", step))
            self._item("script", knob_setting, "firewall/")
            self._places[knob_setting.knob.id] = (
                f"{configuration_files.SCRIPT} ({', '.join(self._filter_units())})"
            )

    def _filter_units(self) -> list[str]:
        """Return the units that exempt the interface: wulf's own, and those whose rules would undo it."""
        # For a service that is not there, such a file does nothing.
        known = "system.failed" in self._facts
        there = [
            name for name in configuration_files.FILTERS if f"service.{name}" in self._facts or not known
        ]
        return [_SETTINGS, *(f"{name}.service" for name in there)]

    def _set(self, knob_setting: KnobSetting, step: Step) -> None:
        """Keep what a driver or a file under /proc or /sys has."""
        # A .link file is of one card, and what is known of the files of the node is of its interface.
        below = of_device(knob_setting.knob) and bool(self._members)
        is_mtu = step.kind == "link" and step.target == "mtu"
        network = self._network_dropin()
        if is_mtu and network:
            self._network_mtu = knob_setting.value
            self._item("network", knob_setting)
            self._places[knob_setting.knob.id] = network
            return
        lines = [] if below else self._link_lines(knob_setting)
        if lines:
            self._link += [line for line in lines if line not in self._link]
            self._item("link", knob_setting)
            self._places[knob_setting.knob.id] = self._link_path()
            return
        part: Part = "node"
        if knob_setting.knob.scope in _NIC_SCOPES:
            part = "nic"
        elif step.kind == "pm_qos":
            part = "latency"
        if not self._boots and not (part == "nic" and self._hook()):
            self._unpersistable[knob_setting.knob.id] = _NOT_SET
            return
        self._script.append((part, step))
        card = f",{step.interface}" if step.interface != (self._interface or NOTHING) else ""
        self._item("script", knob_setting, f"{part}{card}/")
        place = {"nic": self._hook() or _SETTINGS, "latency": _LATENCY}.get(part, _SETTINGS)
        on = f", on {' and '.join(self._members)}" if below else ""
        self._places[knob_setting.knob.id] = f"{configuration_files.SCRIPT} ({place}{on})"

    def _link_lines(self, knob_setting: KnobSetting) -> list[str]:
        """Return the lines of a .link file; none where such a file is not what counts, or could change the name."""
        if not self._link_path() or self._manager() == "NetworkManager":
            return []
        mtu = self._text("settings.mtu")
        if knob_setting.knob.access.kind == "link" and mtu not in ("", knob_setting.value):
            self._notes.append(
                f"a configuration file sets the MTU of {self._interface} to {mtu}: wulf's comes after it"
            )
            return []
        version = self._text("keep.systemd")
        return configuration_files.link_lines(knob_setting, int(version) if version.isdigit() else 0)

    def _link_path(self) -> str:
        """Return where the .link file goes; empty where udev, the address or the file before is not known."""
        before = self._text("keep.link_file").rpartition("/")[2]
        if not (
            before
            and not self._portable
            and "keep.mac" in self._facts
            and "keep.link_settings" in self._facts
        ):
            return ""
        names = (f"{prefix}{self._interface}.link" for prefix in _LINK_PREFIXES)
        return next((f"/etc/systemd/network/{name}" for name in names if name <= before), "")

    def _network_dropin(self) -> str:
        before = self._text("keep.network_file").rpartition("/")[2]
        is_networkd = self._manager() == "networkd" and before and not self._portable
        return f"/etc/systemd/network/{before}.d/90-wulf.conf" if is_networkd else ""

    def _hook(self) -> str:
        """Return the script that runs whenever the interface comes up; empty where nobody runs one."""
        return {"NetworkManager": configuration_files.DISPATCHER, "ifupdown": configuration_files.IF_UP}.get(
            self._manager(), ""
        )

    def _sysctl_file(self) -> str:
        """Return a file that is read after all others that set one of the sysctls."""
        setters = self._sysctl_setters()
        others = {path for name in self._sysctls for path in setters.get(name, ()) if "wulf" not in path}
        last = max((path.rpartition("/")[2] for path in others if path != _SYSCTL_CONF), default="")
        name = next((name for name in _SYSCTL_NAMES if name > last), _SYSCTL_NAMES[-1])
        return f"/etc/sysctl.d/{name}"

    def _sysctl_setters(self) -> dict[str, list[str]]:
        words = (word.partition("=") for word in self._text("keep.sysctls").split())
        return {name: paths.split(",") for name, mark, paths in words if mark}

    # --- what ---

    def _item(self, file: str, knob_setting: KnobSetting, part: str = "") -> None:
        self._items.setdefault(file, []).append(f"{part}{knob_setting.knob.id}={knob_setting.value}")

    def _file(self, path: str, text: str, items: Sequence[str] = (), mode: str = "644") -> Step:
        if self._portable:
            return stored(path, text, mode)
        self._texts[path] = text
        return made(path, self._change, self._interface, items)

    def _enabled(self, unit: str, text: str, items: Sequence[str] = ()) -> list[Step]:
        link, target = configuration_files.wanted(unit), f"../{unit.rpartition('/')[2]}"
        if self._portable:
            return [stored(unit, text), _linked(link, target)]
        self._texts[link] = target
        return [self._file(unit, text, items), made(link, self._change, self._interface)]

    def _files(self) -> list[Step]:
        steps = []
        if self._sysctls:
            path = self._sysctl_file()
            self._note_sysctls(path)
            if not self._boots:
                self._notes.append(
                    f"systemd does not run there: {path} holds if what starts the node reads it (sysctl --system)"
                )
            # One that was given a later name takes the earlier ones with it.
            for knob, place in self._places.items():
                self._places[knob] = path if place.startswith("/etc/sysctl.d/") else place
            text = configuration_files.sysctls(dict(sorted(self._sysctls.items())), self._head)
            steps.append(self._file(path, text, sorted(self._items["sysctl"])))
        if self._options:
            steps.append(self._module_file())
        if self._link:
            carried = [line for line in self._text("keep.link_settings").split("; ") if "=" in line]
            before = self._text("keep.link_file")
            text = configuration_files.link(self._text("keep.mac"), before, carried, self._link, self._head)
            steps.append(self._file(self._link_path(), text, self._items["link"]))
        if self._network_mtu:
            text = configuration_files.network_mtu(self._network_mtu, self._head)
            steps.append(self._file(self._network_dropin(), text, self._items["network"]))
        return steps

    def _note_sysctls(self, path: str) -> None:
        setters = self._sysctl_setters()
        for name in sorted(self._sysctls):
            others = [other for other in setters.get(name, ()) if "wulf" not in other]
            if _SYSCTL_CONF in others:
                self._notes.append(f"`sysctl --system` reads {_SYSCTL_CONF} last, which also sets {name}")
            elif others:
                self._notes.append(f"{others[-1]} also sets {name}; {path} is read after it")

    def _module_file(self) -> Step:
        driver = self._text("nic.driver")
        again = "dracut -f" if self._is_rhel() else "update-initramfs -u"
        self._notes.append(f"where {driver} is loaded from the initial RAM disk: {again}")
        text = configuration_files.module_options(driver, self._options, self._head)
        if self._portable:
            return stored(configuration_files.MODPROBE, text)
        self._texts[configuration_files.MODPROBE] = text
        return made(configuration_files.MODPROBE, self._change, self._driven, self._items["module"])

    def _units_of_script(self) -> list[Step]:
        """Return the script, and all that runs it."""
        if not self._script:
            return []
        parts = {part for part, _ in self._script}
        steps = [self._file(configuration_files.SCRIPT, self._script_text(), self._items["script"], "755")]
        if self._boots and parts - {"latency"}:
            online = any(step.kind == "route" for _, step in self._script)
            unit = configuration_files.settings_unit(self._head, online=online)
            steps += self._enabled(configuration_files.SETTINGS_UNIT, unit, ["online"] if online else [])
        if "latency" in parts:
            unit = configuration_files.latency_unit(self._head)
            steps += self._enabled(configuration_files.LATENCY_UNIT, unit)
        if "firewall" in parts:
            dropin = configuration_files.filter_dropin(self._head)
            steps += [
                self._file(f"{configuration_files.UNITS}{unit}.d/90-wulf.conf", dropin)
                for unit in self._filter_units()[1:]
            ]
        if "nic" in parts and self._hook() and self._interface:
            write = (
                configuration_files.dispatcher
                if self._manager() == "NetworkManager"
                else configuration_files.if_up
            )
            steps.append(self._file(self._hook(), write(self._interface, self._head), mode="755"))
        return steps

    def _script_text(self) -> str:
        return (
            at_boot(self._script, self._head)
            if self._portable
            else kept(kept_lines(self._script), self._head)
        )

    # --- facts ---

    def _text(self, name: str) -> str:
        """Return a fact as text; empty when there is none."""
        return str(self._facts.get(name, ""))

    def _manager(self) -> str:
        return self._text("keep.manager")

    def _is_rhel(self) -> bool:
        return any(word in self._text("kernel.os") for word in _RHEL)

"""Settings as Ansible playbooks: one that sets them, one that puts back what was there.  Pure.

The playbooks are the same for all settings (``data/ansible``) and use ``ansible.builtin`` alone, so that nothing has to
be fetched from anywhere; what is to be set is data in ``group_vars``, and files that keep it are beside them. A second
run changes nothing, and ``--check`` says what a run would do.

What has no module and takes more than a command is set by a script, which is there only where such a setting is.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from wulf.node.change.export import HEAD, Chosen, Group, groups, numbered
from wulf.node.change.export.commands import Command, commands
from wulf.node.change.script import undoable
from wulf.node.change.steps import Step

STATE = "/var/lib/wulf-export/ansible"
_WANTS = "/etc/systemd/system/multi-user.target.wants/"


def ansible(chosen: Mapping[str, Chosen], name: str = "wulf") -> dict[str, str]:
    """Return ``NAME.yml``, ``NAME-undo.yml``, ``group_vars``, ``files`` and an inventory, ``NAME.ini``.

    How the nodes are reached is added to the inventory, or given as an option.

    Raises
    ------
    UsageError
        As `wulf.node.change.export.groups`.
    """
    found = groups(chosen)
    whole = name.replace("-", "_")
    labels = [numbered(f"{whole}_nodes", index, len(found)).replace("-", "_") for index in range(len(found))]
    run = f"ansible-playbook -i {name}.ini {name}"
    files = {
        f"{name}.yml": _playbook("settings.yml", whole, f"{run}.yml"),
        f"{name}-undo.yml": _playbook("undo.yml", whole, f"{run}-undo.yml"),
        f"{name}.ini": _inventory(whole, labels, found),
    }
    for group, label in zip(found, labels, strict=True):
        files |= _of_group(group, label, f"{STATE}-{whole}")
    return files


def _playbook(template: str, hosts: str, command: str) -> str:
    text = resources.files("wulf").joinpath("data", "ansible", template).read_text(encoding="utf-8")
    usage = "--check --diff: what it would do; --become: for who logs in as somebody else than root"
    return f"---\n{HEAD}\n# {command}\n# {usage}\n{text.replace('hosts: wulf_hosts', f'hosts: {hosts}')}"


def _inventory(whole: str, labels: Sequence[str], found: Sequence[Group]) -> str:
    lines = [HEAD]
    for group, label in zip(found, labels, strict=True):
        lines += [f"[{label}]", *group.nodes, ""]
    return "\n".join([*lines, f"[{whole}:children]", *labels, ""])


def _of_group(group: Group, label: str, state: str) -> dict[str, str]:
    """Return the variables of a group of equal nodes, and the files that go to it."""
    by_command, rest = _shared_out(group.live)
    files, variables = _kept(group.lasting.steps, label)
    services = _services([*group.live, *group.lasting.steps])
    script = ""
    if rest:
        script = f"{label}/rest.sh"
        files[f"files/{script}"] = undoable(rest, HEAD, f"{state}-rest")
    variables |= {
        "wulf_state": state,
        "wulf_services": services,
        "wulf_settings": [*map(_entry, by_command), *_states(services)],
        "wulf_script": script,
    }
    files[f"group_vars/{label}.yml"] = "\n".join(
        ["---", HEAD, f"# Of {group.title}.", *_yaml(dict(sorted(variables.items()))), ""]
    )
    return files


def _shared_out(steps: Sequence[Step]) -> tuple[list[Command], list[Step]]:
    """Return what commands set, and the steps that take a script; services are neither."""
    made: list[Command] = []
    rest: list[Step] = []
    for step in steps:
        if step.kind == "service":
            continue
        found = commands(step)
        made += found
        rest += [] if found else [step]
    return made, rest


def _entry(command: Command) -> dict[str, str]:
    return {"name": command.name, "value": command.value, "read": command.read, "set": command.set}


def _services(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Return what services are to be, now (``service``) and at boot (``unit``)."""
    found: dict[str, dict[str, Any]] = {}
    for step in steps:
        if step.kind == "service":
            found.setdefault(step.target, {"unit": step.target})["state"] = (
                "started" if step.value == "on" else "stopped"
            )
        elif step.kind == "unit":
            found.setdefault(step.target, {"unit": step.target})["enabled"] = step.value == "enabled"
    return list(found.values())


def _states(services: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return how it is read what services are; a module sets that."""
    found = []
    for service in services:
        for key, word in (("state", "active"), ("enabled", "enabled")):
            if key not in service:
                continue
            wanted = service[key] in ("started", True)
            read = f"systemctl --quiet is-{word} {service['unit']} && echo {word} || echo not"
            value = word if wanted else "not"
            found.append(
                {
                    "name": f"{service['unit']}.{word}",
                    "value": value,
                    "read": read,
                    "is": word,
                    "unit": service["unit"],
                }
            )
    return found


def _kept(steps: Sequence[Step], label: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the files that keep settings, and the variables that say where each goes."""
    texts: dict[str, str] = {}
    entries: list[dict[str, str]] = []
    units: list[str] = []
    for step in steps:
        if step.kind != "stored":
            continue
        if step.target.startswith(_WANTS):
            units.append(step.target.removeprefix(_WANTS))
            continue
        mode, _, content = step.value.removeprefix("file:").partition(":")
        text = base64.b64decode(content).decode()
        source = f"{label}/{step.target.strip('/').replace('/', '_')}"
        texts[f"files/{source}"] = text
        sha1 = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        entries.append({"src": source, "dest": step.target, "mode": f"0{mode}", "sha1": sha1})
    made = sorted({directory for entry in entries if (directory := _own_directory(entry["dest"]))})
    return texts, {"wulf_files": entries, "wulf_units": units, "wulf_made": made}


def _own_directory(path: str) -> str:
    """Return the directory of a file if nothing but such files are in it."""
    directory = path.rpartition("/")[0]
    is_dropin = directory.startswith("/etc/systemd/system/") and directory.endswith(".d")
    return directory if is_dropin or directory == "/etc/wulf" else ""


def _yaml(variables: Mapping[str, Any]) -> list[str]:
    """Return variables as YAML; texts as JSON writes them, which is one of YAML's ways, and never as templates."""
    lines = []
    for name, value in variables.items():
        if not isinstance(value, list):
            lines.append(f"{name}: {_scalar(value)}")
        elif not value:
            lines.append(f"{name}: []")
        else:
            lines.append(f"{name}:")
            for entry in value:
                pairs = list(entry.items()) if isinstance(entry, dict) else []
                words = [f"{key}: {_scalar(one)}" for key, one in pairs] or [_scalar(entry)]
                lines += [f"{'  - ' if not number else '    '}{word}" for number, word in enumerate(words)]
    return lines


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = json.dumps(value, ensure_ascii=False)
    return f"!unsafe {text}" if "{" in value else text

"""Settings as an Ansible playbook.  Pure.

Only modules of ``ansible.builtin``. Files are written by Ansible itself; what a file does not set at once is set by a
script that first says whether anything differs, so that a second run changes nothing and ``--check`` tells the truth.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence

from wulf.change.export import HEAD, Chosen, Group, groups, numbered
from wulf.change.script import undoable
from wulf.change.steps import Step

STATE = "/var/lib/wulf-export/ansible"
INVENTORY = "inventory.ini"
#: Kinds of steps that a module of Ansible does.
_MODULES = ("stored", "unit", "service")


def ansible(chosen: Mapping[str, Chosen], name: str = "wulf") -> dict[str, str]:
    """Return ``NAME.yml`` and an inventory; how the nodes are reached is added to that, or given as an option.

    Raises
    ------
    UsageError
        As `wulf.change.export.groups`.
    """
    found = groups(chosen)
    names = [
        numbered(name.replace("-", "_"), index, len(found)).replace("-", "_") for index in range(len(found))
    ]
    inventory = [HEAD]
    playbook = [
        "---",
        HEAD,
        f"# ansible-playbook -i {INVENTORY} {name}.yml",
        "# --check --diff: what it would do; --become: where one logs in as somebody else than root",
    ]
    for group, label in zip(found, names, strict=True):
        inventory += [f"[{label}]", *group.nodes, ""]
        playbook += _play(group, label)
    return {f"{name}.yml": "\n".join([*playbook, ""]), INVENTORY: "\n".join(inventory)}


def _play(group: Group, label: str) -> list[str]:
    steps = [*group.live, *group.lasting.steps]
    script = [step for step in steps if step.kind not in _MODULES]
    lines = [f"- name: {_text(f'Settings of {group.title}')}", f"  hosts: {label}"]
    lines += ["  gather_facts: false"]
    if script:
        text = undoable(script, HEAD, STATE)
        lines += ["  vars:", "    wulf_settings: !unsafe |", *_block(text, 6)]
    lines += ["  tasks:"]
    for step in steps:
        if step.kind in _MODULES:
            lines += _MODULE_TASKS[step.kind](step)
    if script:
        lines += _script_tasks()
    units = [step.target for step in steps if step.target.startswith("/etc/systemd/system/")]
    if units:
        lines += ["  handlers:", *_task("Read units anew", "systemd_service", {"daemon_reload": "true"})]
    return lines


def _stored(step: Step) -> list[str]:
    """Return the tasks that write a file, with its directory."""
    path = step.target
    notify = ["      notify: Read units anew"] if path.startswith("/etc/systemd/system/") else []
    if step.value == "absent":
        return [*_task(f"{path} is gone", "file", {"path": path, "state": "absent"}), *notify]
    lines = _task(f"Directory of {path}", "file", {"path": path.rpartition("/")[0], "state": "directory"})
    if step.value.startswith("link:"):
        target = step.value.removeprefix("link:")
        options = {"src": target, "path": path, "state": "link", "force": "true"}
        return [*lines, *_task(f"Link {path}", "file", options), *notify]
    mode, _, content = step.value.removeprefix("file:").partition(":")
    text = base64.b64decode(content).decode()
    lines += _task(
        f"File {path}", "copy", {"dest": path, "mode": f"0{mode}", "owner": "root", "group": "root"}
    )
    return [*lines, "        content: !unsafe |", *_block(text, 10), *notify]


def _unit(step: Step) -> list[str]:
    enabled = "true" if step.value == "enabled" else "false"
    return _task(
        f"{step.target} is {step.value}", "systemd_service", {"name": step.target, "enabled": enabled}
    )


def _service(step: Step) -> list[str]:
    state = "started" if step.value == "on" else "stopped"
    return _task(f"{step.target} is {state}", "systemd_service", {"name": step.target, "state": state})


_MODULE_TASKS = {"stored": _stored, "unit": _unit, "service": _service}


def _script_tasks() -> list[str]:
    stdin = '        stdin: "{{ wulf_settings }}"'
    return [
        *_task("What is set", "command", {"cmd": "sh -s status"}),
        stdin,
        "      register: wulf_status",
        "      check_mode: false",
        "      changed_when: ansible_check_mode and wulf_status.rc == 1",
        "      failed_when: wulf_status.rc not in [0, 1]",
        *_task("Set what differs", "command", {"cmd": "sh -s apply"}),
        stdin,
        "      when: wulf_status.rc == 1",
    ]


def _task(name: str, module: str, options: Mapping[str, str]) -> list[str]:
    lines = [f"    - name: {_text(name)}", f"      ansible.builtin.{module}:"]
    return [*lines, *(f"        {key}: {_value(value)}" for key, value in options.items())]


def _value(value: str) -> str:
    return value if value in ("true", "false") else _text(value)


def _text(value: str) -> str:
    """Return a string as YAML writes it: JSON's way is one of YAML's."""
    return json.dumps(value)


def _block(text: str, indent: int) -> Sequence[str]:
    return [f"{' ' * indent}{line}" if line else "" for line in text.splitlines()]

"""The same decision as a TuneD profile, an Ansible playbook and a shell script; and what the script does."""

from __future__ import annotations

import configparser
import subprocess

import pytest
import yaml

from tests.unit.test_persist import facts, with_udev
from wulf.node.change import steps
from wulf.node.change.export import Chosen, groups
from wulf.node.change.export.ansible import ansible
from wulf.node.change.export.commands import commands
from wulf.node.change.export.shell import shell
from wulf.node.change.export.tuned import tuned
from wulf.node.change.script import undoable

WORDS = (
    "net.core.busy_poll=50",
    "nic.mtu=9000",
    "nic.gro=off",
    "nic.rx_usecs=0",
    "svc.irqbalance=off",
    "vm.thp=never",
)


def choice(name, *words):
    record, nic = facts(name, with_udev("{nic}"))
    return Chosen(wanted=steps.parse(words), interface=nic, record=record)


class Unsafe(yaml.SafeLoader):
    """Reads the tag by which Ansible leaves a text alone."""


Unsafe.add_constructor("!unsafe", lambda loader, node: loader.construct_scalar(node))


def test_equal_nodes_are_one_group():
    chosen = {
        "node03": choice("e1000e", "vm.thp=never"),
        "node01": choice("e1000e", *WORDS),
        "node02": choice("e1000e", *reversed(WORDS)),
    }
    assert [group.title for group in groups(chosen)] == ["node[01-02]", "node03"]
    assert set(tuned(chosen, "site")) == {
        "site-1/tuned.conf",
        "site-1/settings.sh",
        "site-2/tuned.conf",
    }
    assert set(shell(chosen)) == {"wulf-1.sh", "wulf-2.sh"}
    assert shell(chosen) == shell(dict(reversed(chosen.items())))


def test_tuned_does_itself_what_it_can():
    files = tuned({"node01": choice("e1000e", *WORDS, "cpu.governor=performance", "cpu.cstates_pmqos=1")})
    profile = configparser.ConfigParser(interpolation=None)
    profile.read_string(files["wulf/tuned.conf"])
    found = {section: dict(profile[section]) for section in profile.sections()}
    assert found == {
        "main": {"summary": "Settings that wulf has measured to be right for node01"},
        "sysctl": {"net.core.busy_poll": "50"},
        "cpu": {"governor": "performance", "force_latency": "1"},
        "vm": {"transparent_hugepages": "never"},
        "net": {"devices": "eno1", "coalesce": "rx-usecs 0", "mtu": "9000"},
        "service": {"service.irqbalance": "stop,disable"},
        "script": {"script": "${i:PROFILE_DIR}/settings.sh"},
    }
    script = files["wulf/settings.sh"]
    assert script.startswith("#!/bin/sh\n")
    assert [line.split()[1] for line in script.splitlines() if line.startswith("\tkeep ")] == ["nic.gro"]


def test_tuned_passes_over_virtual_interfaces_so_the_script_sets_them():
    files = tuned({"node01": choice("veth", "nic.mtu=9000", "nic.gro=off")})
    assert "[net]" not in files["wulf/tuned.conf"]
    assert "keep nic.mtu link" in files["wulf/settings.sh"]


def tasks_of(play):
    """All tasks of a play, those of blocks and handlers, too."""
    todo = [*play["tasks"], *play.get("handlers", [])]
    for task in todo:
        todo += task.get("block", [])
    return todo


def test_the_playbooks_are_yaml_of_builtin_modules():
    files = ansible({"node01": choice("e1000e", *WORDS), "node02": choice("e1000e", *WORDS)}, "site-wide")
    assert files["site-wide.ini"].splitlines()[1:4] == ["[site_wide_nodes]", "node01", "node02"]
    for name in ("site-wide.yml", "site-wide-undo.yml"):
        (play,) = yaml.safe_load(files[name])
        assert play["hosts"] == "site_wide"
        modules = {key for task in tasks_of(play) for key in task if "." in key}
        assert {module.rpartition(".")[0] for module in modules} == {"ansible.builtin"}


def test_what_is_to_be_set_is_data_and_files():
    files = ansible({"node01": choice("e1000e", *WORDS)})
    data = yaml.load(files["group_vars/wulf_nodes.yml"], Loader=Unsafe)
    settings = {one["name"]: one for one in data["wulf_settings"]}
    assert set(settings) == {
        "nic.gro", "nic.mtu", "nic.rx_usecs.adaptive-rx", "nic.rx_usecs", "sysctl.net.core.busy_poll", "vm.thp",
        "irqbalance.service.active", "irqbalance.service.enabled",
    }  # fmt: skip
    # An adaptive driver takes no notice of a fixed delay.
    assert list(settings).index("nic.rx_usecs.adaptive-rx") < list(settings).index("nic.rx_usecs")
    assert settings["nic.gro"]["set"] == 'ethtool -K eno1 gro "$VALUE"'
    assert data["wulf_services"] == [{"unit": "irqbalance.service", "state": "stopped", "enabled": False}]
    assert data["wulf_script"] == ""
    kept = {one["dest"]: files[f"files/{one['src']}"] for one in data["wulf_files"]}
    assert kept["/etc/sysctl.d/90-wulf.conf"] == "# Written by wulf export.\nnet.core.busy_poll = 50\n"
    for text in (kept["/etc/wulf/settings.sh"], *(one.get("set", "") for one in settings.values())):
        assert subprocess.run(["sh", "-n"], input=text, text=True, check=False).returncode == 0


def test_two_settings_are_a_page_of_data():
    files = ansible({"node01": choice("e1000e", "net.core.busy_poll=50", "nic.gro=off")})
    assert len(files["group_vars/wulf_nodes.yml"].splitlines()) < 50
    # The playbook is the same whatever is set.
    assert files["wulf.yml"] == ansible({"node01": choice("e1000e", *WORDS)})["wulf.yml"]


def test_what_takes_more_than_a_command_has_a_script():
    files = ansible({"node01": choice("e1000e", "nic.rings=max max", "nic.gro=off")})
    data = yaml.load(files["group_vars/wulf_nodes.yml"], Loader=Unsafe)
    assert [one["name"] for one in data["wulf_settings"]] == ["nic.gro"]
    script = files[f"files/{data['wulf_script']}"]
    assert [line.split()[1] for line in script.splitlines() if line.startswith("\tkeep ")] == ["nic.rings"]


def test_commands_read_what_they_set(tmp_path):
    """Of a file, whose text may show its choices; the tools' outputs are tested in the lab."""
    path = tmp_path / "thp"
    path.write_text("always [madvise] never\n")
    step = steps.Step(knob="k", kind="file", interface="-", target=str(path), value="never")
    (command,) = commands(step)

    def run(text, **env):
        return subprocess.run(["sh", "-c", text], env=env, capture_output=True, text=True, check=True).stdout

    assert run(command.read) == "madvise\n"
    run(command.set, VALUE=command.value)
    assert run(command.read) == "never\n"
    assert commands(steps.Step(knob="k", kind="file", interface="-", target="/sys/cpu*/x", value="1")) == []


@pytest.mark.root
def test_the_script_applies_says_and_undoes(tmp_path):
    import os

    if os.geteuid() != 0:
        pytest.skip("the script wants root")
    first, second, missing = (tmp_path / name for name in ("first", "second", "missing"))
    first.write_text("a\n")
    second.write_text("always [madvise] never\n")
    wanted = [
        steps.Step(knob="one", kind="file", interface="-", target=str(first), value="b"),
        steps.Step(knob="two", kind="file", interface="-", target=str(second), value="never"),
    ]
    state = tmp_path / "state/here"

    def run(verb, plan=wanted):
        script = undoable(plan, "# test", str(state))
        done = subprocess.run(["sh", "-s", verb], input=script, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    assert run("status") == (1, "not set\tone\ta \nnot set\ttwo\tmadvise \n", "")
    assert run("apply") == run("start") == (0, "", "")
    assert (first.read_text(), second.read_text()) == ("b\n", "never\n")
    assert run("verify")[0] == 0
    first.write_text("c\n")
    assert run("status")[0] == 1
    assert run("apply")[0] == 0
    assert first.read_text() == "b\n"
    assert run("undo") == (0, "", "")
    assert (first.read_text(), second.read_text()) == ("a\n", "madvise\n")
    assert not state.parent.exists()
    bad = steps.Step(knob="three", kind="file", interface="-", target=str(missing), value="x")
    code, _, said = run("apply", [bad, *wanted])
    assert code == 1
    assert said.startswith(f"three: there is no {missing}")
    assert first.read_text() == "b\n"
    assert run("undo")[0] == 0
    assert run("nonsense")[0] == 2


@pytest.mark.root
def test_the_script_leaves_what_somebody_else_has_set_since(tmp_path):
    import os

    if os.geteuid() != 0:
        pytest.skip("the script wants root")
    files = [tmp_path / f"cpu{cpu}" for cpu in range(3)]
    for file, value in zip(files, ("old", "new", "old"), strict=True):
        file.write_text(f"{value}\n")
    plan = [steps.Step(knob="k", kind="file", interface="-", target=f"{tmp_path}/cpu*", value="new")]
    script = undoable(plan, "# test", str(tmp_path / "state"))
    for verb in ("apply", "undo"):
        subprocess.run(["sh", "-s", verb], input=script, text=True, check=True)
        files[1].write_text("theirs\n")
    assert [file.read_text() for file in files] == ["old\n", "theirs\n", "old\n"]

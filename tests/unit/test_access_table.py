"""The table of the kinds of access: complete, valid, and what the order of setting and putting back is."""

from __future__ import annotations

import subprocess
from importlib import resources

import msgspec
import pytest

from wulf.base import access, catalogue
from wulf.base.errors import ConfigError
from wulf.node.change import steps
from wulf.node.change.shell_functions import access_functions, state_functions


def test_every_kind_that_can_be_set_has_its_functions_and_the_other_way_round():
    files = {
        file.name.removesuffix(".sh")
        for file in resources.files("wulf.node.change").joinpath("access").iterdir()
    }
    assert {name for name, kind in access.kinds().items() if kind.settable} == files


def test_only_kinds_whose_state_has_items_say_what_these_take_with_them():
    text = access_functions()
    with_others = {name for name in access.kinds() if f"\n{name}_also()" in text}
    assert with_others
    assert {access.kinds()[name].state for name in with_others} == {"items"}


def test_what_a_reboot_leaves():
    assert {name for name, kind in access.kinds().items() if kind.settable and kind.survives_boot} == {
        "tuned",
        "mpi_parameter",
        "stored",
        "unit",
    }
    for name, kind in access.kinds().items():
        said = subprocess.run(
            ["sh", "-c", f"{state_functions()}\nis_kept_over_boot {name}"], timeout=60, check=False
        )
        assert (said.returncode == 0) == (kind.settable and kind.survives_boot), name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[a]\nscope = "planet"\nstate = "word"\n', "planet"),
        ('[a]\nscope = "node"\nstate = "word"\nkolour = 1\n', "kolour"),
        ('[a]\nscope = "node"\nstate = "word"\nneeds = ["b"]\n', "a needs b, which is not a kind"),
        ('[a]\nscope = "node"\n', "either 'state' or 'not_live'"),
        ('[a]\nscope = "job"\nnot_live = "x"\n', "how a person keeps it"),
    ],
)
def test_a_table_that_is_not_valid_is_refused(text, said):
    with pytest.raises(ConfigError, match=f"data/access.toml: .*{said}"):
        access.parse(text.encode())


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("svc.tuned", "cpu.governor"),
        ("cpu.smt", "cpu.governor"),
        ("cpu.governor", "cpu.epp"),
        ("cpu.smt", "irq.affinity"),
        ("nic.InterruptThrottleRate", "nic.channels"),
        ("nic.channels", "nic.rings"),
        ("nic.channels", "nic.rps"),
        ("nic.rings", "irq.affinity"),
        ("nic.mtu", "nic.tso_gso"),
        ("svc.irqbalance", "irq.affinity"),
        ("svc.nftables", "net.conntrack"),
    ],
)
def test_what_makes_others_anew_comes_before_them(first, then):
    wanted = [steps.KnobSetting(knob=catalogue.knob(name), value="1") for name in (then, first)]
    assert [step.knob for step in steps.plan(wanted, "eth0")] == [first, then]


def test_knobs_that_affect_each_other_in_a_circle_are_refused():
    smt, governor = catalogue.knob("cpu.smt"), catalogue.knob("cpu.governor")
    circle = {
        smt.id: smt,
        governor.id: msgspec.structs.replace(governor, affects=(smt.id,)),
    }
    circle[smt.id] = msgspec.structs.replace(smt, affects=(governor.id,))
    with pytest.raises(ConfigError, match=r"in a circle: \['cpu.governor', 'cpu.smt'\]"):
        catalogue.in_order(circle)


@pytest.mark.parametrize(
    ("kind", "states", "ours"),
    [
        ("file", ["a\t1\nb\t1\n", "a\t2\nb\t1\n"], "a\t1\n"),
        ("file", ["a\t1\nb\t1\n", ""], "a\t1\nb\t1\n"),
        # What shows nothing of what was set may show it later.
        ("file", ["a\t1\nb\t1\n", "a\t1\nb\t1\n"], "a\t1\nb\t1\n"),
        ("file", ["a\t1\n", "b\t1\n"], "a\t1\n"),
        ("file", ["a\t1\nb\t1\n", "a\t2\nb\t1\n", "a\t2\nb\t3\n", "a\t2\nb\t4\n"], "a\t1\nb\t3\n"),
        ("tuned", ["balanced\n", "balanced\n"], "balanced\n"),
        ("tuned", ["balanced\n", "fast\n", "fast\n", "none\n"], "balanced\n"),
    ],
)
def test_what_has_to_come_back(tmp_path, kind, states, ours):
    files = []
    for number, state in enumerate(states):
        files.append(tmp_path / f"state{number}")
        files[-1].write_text(state)
    script = (
        f"RUN={tmp_path}\n{state_functions()}\nchanged {kind} {' '.join(map(str, files))}; cat $WORK/ours"
    )
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == (ours, "")

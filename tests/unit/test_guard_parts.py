"""A part of an open change is what its steps set, no more and no less; what others set meanwhile stays."""

from __future__ import annotations

import base64
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit import guard_states as states
from tests.unit.guard_states import Node

pytestmark = pytest.mark.root

SACK = "net.ipv4.tcp_sack"
#: As often as a step can come, stay and go beside another one.
PARTS = ("1,2", "2", "1,2", "2", "1", "1,2", "0", "2", "1", "1,2", "0")


def _delays(node: Node) -> dict[str, str]:
    rows = (line.split(":\t") for line in states.nic(node).splitlines())
    return {row[0]: row[1] for row in rows if row[0] in ("rx-usecs", "tx-usecs")}


def _parameters(node: Node) -> Path:
    node.program("ompi_info", f'#!/bin/sh\n[ -z "$HOME" ] || echo "path:sysconfdir:{node.directory}"\n')
    return Path(node.directory / "openmpi-mca-params.conf")


def test_two_parameters_of_a_group_come_and_go_by_themselves(node: Node) -> None:
    states.ethtool(node)
    node.make("A", *(f"nic.{way}_usecs ethtool eth0 coalesce.{way}-usecs=4" for way in ("rx", "tx")))
    for steps in PARTS:
        assert node.done("part", "A", steps) == ""
        assert _delays(node) == {
            "rx-usecs": "4" if "1" in steps else "8",
            "tx-usecs": "4" if "2" in steps else "30",
        }
    node.done("part", "A", "1")
    assert node.done("undo", "A") == ""
    assert _delays(node) == {"rx-usecs": "8", "tx-usecs": "30"}


@pytest.mark.parametrize("original", [None, "z = 2\n"])
def test_two_lines_of_a_file_come_and_go_by_themselves(node: Node, original: str | None) -> None:
    file = _parameters(node)
    if original is not None:
        file.write_text(original)
    node.make("A", "k mpi_parameter - x=1", "l mpi_parameter - y=1")
    for steps in PARTS:
        assert node.done("part", "A", steps) == ""
        wanted = [line for number, line in (("1", "x = 1\n"), ("2", "y = 1\n")) if number in steps]
        there = file.read_text() if file.exists() else None
        assert sorted((there or "").splitlines(True)) == sorted([*wanted, *([original] if original else [])])
    assert there == original


def test_a_profile_that_sets_more_does_not_move_what_stays(node: Node) -> None:
    sets = 'profile) [ "$2" = balanced ] && v=1 || v=0; echo $v >governor; echo $v >/proc/sys/net/ipv4/tcp_sack; '
    node.program("tuned-adm", states.TUNED_ADM.replace("profile) ", sets))
    states.write(node, "runs", "")
    file, governor = states.write(node, "active_profile", "balanced\n"), states.write(node, "governor", "1\n")
    steps = [f"svc.tuned tuned - {file}=throughput", f"k sysctl - {SACK}=2", f"l file - {governor}=5"]
    node.make("A", *steps)

    def values() -> tuple[str, str, str]:
        sack = node.inside("cat", f"/proc/sys/{SACK.replace('.', '/')}")
        return file.read_text().strip(), sack.strip(), governor.read_text().strip()

    for part, wanted in {
        "2,3": ("balanced", "2", "5"),
        "1,2,3": ("throughput", "2", "5"),
        "3": ("balanced", "1", "5"),
        "1": ("throughput", "0", "0"),
        "1,3": ("throughput", "0", "5"),
        "2": ("balanced", "2", "1"),
        "0": ("balanced", "1", "1"),
    }.items():
        node.done("part", "A", part)
        assert values() == wanted, part
    node.done("part", "A", "1,2")
    node.done("undo", "A")
    assert values() == ("balanced", "1", "1")


# --- what somebody else sets meanwhile -----------------------------------------------------------------------


def _of_file(node: Node) -> tuple[str, Callable[[str], None], Callable[[], str]]:
    file = states.write(node, "value", "1\n")
    return f"k file - {file}=2", lambda value: void(file.write_text(f"{value}\n")), file.read_text


def _of_sysctl(node: Node) -> tuple[str, Callable[[str], None], Callable[[], str]]:
    path = f"/proc/sys/{SACK.replace('.', '/')}"
    return (
        f"k sysctl - {SACK}=2",
        lambda value: void(node.inside("sh", "-c", f"echo {value} >{path}")),
        lambda: node.inside("cat", path),
    )


def _of_stored(node: Node) -> tuple[str, Callable[[str], None], Callable[[], str]]:
    file = states.write(node, "x.conf", "x = 1\n")
    text = base64.b64encode(b"x = 2\n").decode()
    return (
        f"k stored - {file}=file:644:{text}",
        lambda value: void(file.write_text(f"x = {value}\n")),
        file.read_text,
    )


def _of_group(node: Node) -> tuple[str, Callable[[str], None], Callable[[], str]]:
    states.ethtool(node)
    return (
        "k ethtool eth0 coalesce.tx-usecs=20",
        lambda value: void(states.nic(node, "-C", "eth0", "tx-usecs", f"{value}6")),
        lambda: _delays(node)["tx-usecs"],
    )


def _of_mpi(node: Node) -> tuple[str, Callable[[str], None], Callable[[], str]]:
    file = _parameters(node)
    return (
        "k mpi_parameter - x=2",
        lambda value: void(file.write_text(f"x = {value}\ny = {value}\n")),
        lambda: file.read_text().replace("\ny = ", ""),
    )


def void(_: object) -> None:
    """Have no value."""


@pytest.mark.parametrize("while_made", [False, True], ids=["not made", "made"])
@pytest.mark.parametrize("kind", [_of_file, _of_sysctl, _of_stored, _of_group, _of_mpi])
def test_what_somebody_sets_between_two_parts_comes_back(
    node: Node, kind: Callable[[Node], tuple[str, Callable[[str], None], Callable[[], str]]], while_made: bool
) -> None:
    step, edit, value = kind(node)
    node.make("A", step)
    if not while_made:
        node.done("part", "A", "0")
    edit("3")
    edited = value()
    assert ("left" in node.done("part", "A", "0")) is while_made
    assert value() == edited
    node.done("part", "A", "1")
    assert value() != edited
    node.done("undo", "A")
    assert (value(), node.journal("A")) == (edited, "undone")


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed (apt install strace)")
@pytest.mark.parametrize("kind", [_of_file, _of_sysctl])
def test_whenever_a_guard_is_ended_that_makes_a_part_what_somebody_has_set_comes_back(
    node: Node, kind: Callable[[Node], tuple[str, Callable[[str], None], Callable[[], str]]]
) -> None:
    step, edit, value = kind(node)
    for when in range(1, 20):
        node.make(f"A{when}", step)
        node.done("part", f"A{when}", "0")
        edit(f"{when + 2}")
        edited = value()
        kill = ["strace", "-qq", "-o", "/dev/null", "-e", f"inject=renameat:signal=KILL:when={when}"]
        argv = node.argv("part", f"A{when}", "1")
        argv[4:4] = kill
        ended = subprocess.run(argv, capture_output=True, timeout=60, check=False).returncode
        node.done("undo", f"A{when}")
        assert (value(), node.journal(f"A{when}")) == (edited, "undone"), when
        if ended == 0:
            break
    assert when > 3

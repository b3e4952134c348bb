"""What one step sets and another moves: steps that share a state, and what is moved on the way back."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterable, Mapping

import pytest

from tests.tiers import mostly_thorough
from tests.unit import guard_states as states
from tests.unit.ethtool_fake import CARD, state
from tests.unit.guard_states import Node

pytestmark = pytest.mark.root


# --- steps that share a state --------------------------------------------------------------------------------

#: Steps that share what ethtool shows of a group, and what they set: knob and target, item → value.
_OF_GROUPS = {
    "nic.tso_gso feature.tcp-segmentation-offload": [
        {"tx-tcp-segmentation": "off", "tx-tcp6-segmentation": "off"}
    ],
    "nic.gro feature.generic-receive-offload": [{"gro": "off"}, {"gro": "on"}],
    "nic.rx_frames coalesce.rx-frames": [{"rx-frames": "4"}, {"rx-frames": "64"}],
    "nic.tx_usecs coalesce.tx-usecs": [{"tx-usecs": "100"}],
    "x.rings ring.rx": [{"rx": "1024"}],
    "x.other_rings ring.tx": [{"tx": "1024"}, {"tx": "2048"}],
}


#: One that is adaptive moves its delays, and is so no more when one is set.
_ADAPTIVE = {
    **{knob: values for knob, values in _OF_GROUPS.items() if "rx_frames" not in knob},
    "nic.rx_usecs coalesce.rx-usecs": [{"rx-usecs": "4"}, {"rx-usecs": "50"}],
    "nic.adaptive_rx coalesce.adaptive-rx": [{"adaptive-rx": "on"}, {"adaptive-rx": "off"}],
}


def _drawn(
    chance: random.Random, count: int, pool: Mapping[str, list[dict[str, str]]]
) -> list[tuple[str, dict[str, str]]]:
    """Return steps of several groups and what each of them sets."""
    found = []
    for knob in chance.sample(sorted(pool), count):
        values = chance.choice(pool[knob])
        name, target = knob.split()
        found.append((f"{name} ethtool eth0 {target}={next(iter(values.values()))}", values))
    return found


def _with(steps: Iterable[dict[str, str]]) -> dict[str, str]:
    """Return the card as it is when these are set."""
    card = dict(CARD)
    for step in steps:
        for item, value in step.items():
            (name,) = [
                name
                for group in ("feature", "coalesce", "ring")
                if (name := f"{group}_{item.replace('-', '_')}") in card
            ]
            card[name] = value
    return card


@pytest.mark.parametrize("seed", mostly_thorough(range(6), 0))
def test_of_steps_that_share_a_group_each_is_made_and_taken_back_by_itself(node: Node, seed: int) -> None:
    chance = random.Random(seed)
    card = states.ethtool(node)
    steps = _drawn(chance, 4, _OF_GROUPS)
    node.make("A", *(step for step, _ in steps))
    for _ in range(6):
        made = [number for number in range(4) if chance.random() < 0.5]
        node.done("part", "A", ",".join(str(number + 1) for number in made) or "0")
        assert state(card.read_text()) == _with(steps[number][1] for number in made)
    node.done("undo", "A")
    assert state(card.read_text()) == CARD


@pytest.mark.parametrize("seed", mostly_thorough(range(12), 0, 1))
def test_changes_that_share_a_group_are_rolled_back_to_any_of_them(node: Node, seed: int) -> None:
    chance = random.Random(seed)
    card = states.ethtool(node)
    before = []
    for number in range(5):
        before.append(state(card.read_text()))
        node.keep(f"A{number}", *(step for step, _ in _drawn(chance, chance.randint(1, 2), _ADAPTIVE)))
    target = chance.randrange(5)
    node.roll_back("B", "original" if target == 0 else f"A{target}")
    assert state(card.read_text()) == before[target]
    assert "left as somebody else" not in node.log()


@pytest.mark.parametrize("seed", mostly_thorough(range(8), 0, 1, 2))
def test_a_file_of_parameters_is_the_same_to_the_byte_after_changes_of_several(node: Node, seed: int) -> None:
    """Each step has lines of its own, and what it saves of the others is the whole file, which has no last newline."""
    chance = random.Random(seed)
    node.program("ompi_info", f'#!/bin/sh\n[ -z "$HOME" ] || echo "path:sysconfdir:{node.directory}"\n')
    path = states.write(node, "openmpi-mca-params.conf", "a = 1\nosc = x")
    written = path.stat().st_mtime_ns

    def drawn() -> list[str]:
        steps = [
            f"ompi.a mpi_parameter - btl_tcp_eager_limit={chance.randint(1, 2)}",
            f"ompi.b mpi_parameter - btl_tcp_sndbuf btl_tcp_rcvbuf={chance.randint(1, 2)} 0",
        ]
        return chance.sample(steps, chance.randint(1, 2))

    for number in range(4):
        if chance.random() < 0.5:
            for part in range(chance.randint(1, 3)):
                node.keep(f"K{number}-{part}", *drawn())
            node.roll_back(f"R{number}", chance.choice(("original", f"K{number}-0")))
        else:
            steps = drawn()
            node.make(f"U{number}", *steps)
            node.done("part", f"U{number}", str(chance.randint(0, len(steps))))
            node.done("undo", f"U{number}")
        assert (path.read_text(), path.stat().st_mtime_ns) == ("a = 1\nosc = x", written)
    assert "left as somebody else" not in node.log()


@pytest.mark.parametrize("seed", mostly_thorough(range(12), 0, 1))
def test_routes_that_several_changes_make_and_move_are_rolled_back_to_any_of_them(
    node: Node, seed: int
) -> None:
    """What one step sets of all routes of a card another makes, also in the same change."""
    chance = random.Random(seed)
    _, value = states.route(node)
    pool = {
        "route.rto_min route eth0 rto_min": ("5", "20"),
        "network.cable host_route - 10.9.0.7": ("dev eth0 src 10.9.0.1", "dev eth0 src 10.9.0.1 mtu 1300"),
        "network.cable host_route - 10.9.0.8": ("via 10.9.0.9 dev eth0 src 10.9.0.1",),
        "nic.mtu link eth0 mtu": ("1400", "1280"),
    }
    before = []
    for number in range(4):
        before.append(value())
        # In the order of a plan: first what is set of all routes that are there.
        drawn = [knob for knob in pool if chance.random() < 0.6] or [next(iter(pool))]
        node.keep(f"A{number}", *(f"{knob}={chance.choice(pool[knob])}" for knob in drawn))
    target = chance.randrange(4)
    node.roll_back("B", "original" if target == 0 else f"A{target}")
    assert value() == before[target]
    assert "left as somebody else" not in node.log()


# --- what is moved on the way --------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["undone", "rolled back", "rolled back, made apart"])
def test_tuned_finds_files_as_they_were_when_it_is_put_back(node: Node, way: str) -> None:
    """With every profile it sets what the files of sysctl.d say (reapply_sysctl, which is its default)."""
    tuned, profile = states.tuned(node, "balanced\n")
    node.program("tuned-adm", states.TUNED_ADM.replace("touch runs", "touch runs; cat sysctl.conf >kernel"))
    file, kernel = states.write(node, "sysctl.conf", "before\n"), states.write(node, "kernel", "before\n")
    stored = f"k stored - {file}=file:644:bmV3Cg=="
    if way == "undone":
        node.make("A", tuned, stored)
        node.done("undo", "A")
    else:
        for change, steps in (
            {"A": [stored], "B": [tuned]}.items() if "apart" in way else [("A", [tuned, stored])]
        ):
            node.keep(change, *steps)
        node.roll_back("C")
    assert (profile(), file.read_text(), kernel.read_text()) == ("balanced\n", "before\n", "before\n")


@pytest.mark.parametrize("foreign", [False, True])
def test_a_route_that_a_later_change_has_moved_is_still_ours(node: Node, foreign: bool) -> None:
    step, value = states.route(node)
    before = value()
    node.keep("A", "network.cable host_route - 10.9.0.7=dev eth0 src 10.9.0.1")
    node.keep("B", step)
    assert value().count("rto_min") == 2
    if foreign:
        node.inside("ip", "route", "change", "10.9.0.7/32", "dev", "eth0", "src", "10.9.0.1", "mtu", "1300")
    node.roll_back("C")
    assert ("mtu 1300" in value()) is foreign
    assert value() == before or foreign
    assert ("left as somebody else" in node.log()) is foreign


def test_what_a_later_profile_of_tuned_has_moved_is_still_ours(node: Node) -> None:
    """A profile sets things of its own, and gives them back when it ends."""
    tuned, profile = states.tuned(node, "balanced\n")
    moves = 'case $2 in balanced) cat kept >low ;; *) cat low >kept; echo 9 >low ;; esac; echo "$2"'
    node.program("tuned-adm", states.TUNED_ADM.replace('echo "$2"', moves))
    low = states.write(node, "low", "0\n")
    node.keep("A", f"vm.low file - {low}=1")
    node.keep("B", tuned)
    assert low.read_text() == "9\n"
    node.roll_back("C")
    assert (low.read_text(), profile()) == ("0\n", "balanced\n")
    assert "left as somebody else" not in node.log()


@pytest.mark.parametrize("lost", ["about", "saved.1"])
def test_a_change_whose_place_is_not_known_is_not_rolled_back_past(node: Node, lost: str) -> None:
    """In which order changes were made says what was before the first of them."""
    path = states.write(node, "x.conf", "x = 0\n")
    for change, value in (("A", "1"), ("B", "2")):
        text = base64.b64encode(f"x = {value}\n".encode()).decode()
        node.keep(change, f"k stored - {path}=file:644:{text}")
    node.done("rollback", "C", "me", "600", "original")
    (node.state / "tx/A" / lost).unlink()
    said = node.guard("apply", "C")
    assert said.returncode != 0
    assert "what was before k cannot be read" in said.stdout
    assert path.read_text() == "x = 2\n"

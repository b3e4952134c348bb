"""What a guard puts back, in which order and over a boot."""

from __future__ import annotations

import base64
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit import guard_states as states
from tests.unit.guard_place import wait
from tests.unit.guard_states import Node
from wulf.base import access
from wulf.node.change import script
from wulf.node.change.steps import Step

pytestmark = pytest.mark.root

#: Control of sibling threads, whose files come and go with them: as a service that is on or off.
SMT = """\
#!/bin/sh
cd "$PLACE/smt" || exit
case $1 in
show) echo loaded ;;
is-active) [ "$(cat control)" = on ] && echo active || echo inactive ;;
stop) echo off >control; rm -rf cpu1 ;;
start) echo on >control; [ -d cpu1 ] || { mkdir cpu1 && echo kernel >cpu1/governor; } ;;
esac
"""


#: Ends all processes of a unit with its first one, as systemd does.
SYSTEMD_RUN = """\
#!/bin/sh
while :; do
    case $1 in
    --unit=*) unit=${1#--unit=}; shift ;;
    -p) shift 2 ;;
    --*) shift ;;
    *) break ;;
    esac
done
# What belongs to another unit is in the environment of whoever starts this one, and does not come along.
setsid env UNIT_OF_TEST="$unit" sh -c '
    "$@" &
    first=$!
    wait "$first"
    while kill -0 "$first" 2>/dev/null; do wait "$first"; done
    for environ in $(grep -ls "UNIT_OF_TEST=$UNIT_OF_TEST" /proc/[0-9]*/environ); do
        process=${environ%/environ}; process=${process#/proc/}
        [ "$process" = "$$" ] || kill -9 "$process" 2>/dev/null
    done' unit "$@" </dev/null >/dev/null 2>&1 &
"""


# --- over a boot ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [name for name, kind in access.kinds().items() if kind.settable and kind.survives_boot]
)
def test_what_survives_a_boot_is_put_back_after_it(node: Node, kind: str) -> None:
    step, value = states.LASTING[kind](node)
    before = value()
    node.make("A", step)
    assert value() != before
    node.boot_anew()
    (node.directory / "runs").unlink(missing_ok=True)
    node.done("recover")
    assert node.journal("A") == "undone"
    assert value() == before


@pytest.mark.parametrize("kind", states.LASTING)
def test_what_was_set_twice_is_rolled_back_to_the_original(node: Node, kind: str) -> None:
    step, value = states.LASTING[kind](node)
    before = value()
    node.keep("A", step)
    node.keep("B", step)
    assert value() != before
    node.roll_back("C")
    assert value() == before


def test_a_file_is_as_it_was_although_its_directory_was_made_before_it(node: Node) -> None:
    """An undo that is ended between the two leaves the directory; the file has no end of its last line."""
    path = node.directory / "deep/new.conf"
    node.keep("A", f"k stored - {path}=file:644:{base64.b64encode(b'x = 1').decode()}")
    node.done("rollback", "B", "me", "600", "original")
    node.done("apply", "B")
    assert not path.parent.exists()
    path.parent.mkdir()
    node.done("undo", "B")
    assert path.read_text() == "x = 1"


@pytest.mark.parametrize("later", ["x = 1\n", "x = 2\n", "x = 1\ny = 2\n", "y = 2\n"])
@pytest.mark.parametrize("original", [None, "", "x = 0\n", "z = 0\n"])
def test_a_file_of_lines_that_was_set_twice_is_rolled_back_to_the_original(
    node: Node, original: str | None, later: str
) -> None:
    path = node.directory / "new.conf" if original is None else states.write(node, "new.conf", original)
    for change, text in (("A", "x = 1\n"), ("B", later)):
        node.keep(change, f"k stored - {path}=file:644:{base64.b64encode(text.encode()).decode()}")
    node.roll_back("C")
    assert (path.read_text() if path.exists() else None) == original


@pytest.mark.parametrize("later", [False, True], ids=["", "and later"])
@pytest.mark.parametrize("between", ["", "theirs = 1\n"], ids=["touched", "a line of theirs"])
@pytest.mark.parametrize("original", [None, "x = 0\n", "z = 0\n"])
@pytest.mark.parametrize("kind", ["stored", "mpi_parameter"])
def test_what_was_set_twice_goes_back_although_somebody_wrote_to_the_file_in_between(
    node: Node, kind: str, original: str | None, between: str, later: bool
) -> None:
    """The whole file that was kept is that before the second change, with the first one's line in it."""
    path = node.directory / ("openmpi-mca-params.conf" if kind == "mpi_parameter" else "x.conf")
    node.program("ompi_info", f'#!/bin/sh\n[ -z "$HOME" ] || echo "path:sysconfdir:{node.directory}"\n')
    if original is not None:
        path.write_text(original)
    for change in ("A", "B"):
        text = f"{path.read_text() if path.exists() else ''}x = 1\n".replace("x = 0\n", "").replace(
            "x = 1\nx", "x"
        )
        base64_of = base64.b64encode(text.encode()).decode()
        stored = f"k stored - {path}=file:644:{base64_of}"
        node.keep(change, stored if kind == "stored" else "k mpi_parameter - x=1")
        if change == "A" or later:
            path.write_text(path.read_text() + between * (change == "A"))
    node.roll_back("C")
    left = path.read_text() if path.exists() else ""
    assert sorted(left.splitlines()) == sorted(((original or "") + between).splitlines())
    assert node.differs() == {}


def test_a_line_that_somebody_adds_again_between_two_changes_is_as_they_have_it(node: Node) -> None:
    path = states.write(node, "x.conf", "c = 1\n")
    for change in ("A", "B"):
        text = base64.b64encode(f"x = {change}\n".encode()).decode()
        node.keep(change, f"k stored - {path}=file:644:{text}")
        if change == "A":
            path.write_text(f"{path.read_text()}c = 2\n")
    node.roll_back("C")
    assert path.read_text() == "c = 2\n"


def test_a_profile_of_tuned_where_there_was_none_is_gone_after_a_boot(node: Node) -> None:
    step, value = states.tuned(node, "")
    node.make("A", step)
    node.boot_anew()
    (node.directory / "runs").unlink()
    node.done("recover")
    assert (node.journal("A"), value()) == ("undone", "")


def test_a_preset_profile_of_tuned_is_there_again_after_a_boot(node: Node) -> None:
    step, value = states.tuned(node, "balanced\n")
    (node.directory / "runs").unlink()
    node.make("A", step)
    node.boot_anew()
    (node.directory / "runs").unlink()
    node.done("recover")
    assert (node.journal("A"), value()) == ("undone", "balanced\n")


def test_tuned_that_did_not_run_does_not_run_afterwards(node: Node) -> None:
    step, value = states.tuned(node, "balanced\n")
    (node.directory / "runs").unlink()
    node.program("systemctl", '#!/bin/sh\n[ "$*" = "stop tuned.service" ] && rm "$PLACE/runs"\n')
    node.make("A", step)
    assert (node.directory / "runs").exists()
    node.done("undo", "A")
    assert (node.journal("A"), value()) == ("undone", "balanced\n")
    assert not (node.directory / "runs").exists()


# --- a limit that a process holds ----------------------------------------------------------------------------


def test_a_confirmed_limit_outlives_the_watcher_that_restored_it(node: Node) -> None:
    device = states.write(node, "cpu_dma_latency", "")
    node.program("systemd-run", SYSTEMD_RUN)
    (node.run.parent / "systemd/system").mkdir(parents=True)
    step = f"cpu.cstates_pmqos pm_qos - {device}="
    node.keep("A", f"{step}10")
    node.done("begin", "B", "me", "4", stdin=f"cpu.cstates_pmqos\tpm_qos\t-\t{device}\t0\n")
    node.done("apply", "B")
    wait(lambda: node.journal("B") == "undone", seconds=60)
    wait(lambda: not (node.run / "watcher").exists(), seconds=60)
    wait(lambda: not _of_unit("wulf-guard"), seconds=60)
    (row,) = [line.split("\t") for line in node.done("status").splitlines() if line.startswith("set\t")]
    assert row[6:] == ["different", "10", "10", "10"]
    # A holder that somebody ends is seen.
    holder = int((node.state / "pm_qos").read_text().split()[0])
    os.kill(holder, signal.SIGKILL)
    wait(lambda: not Path(f"/proc/{holder}/cwd").exists())
    (row,) = [line.split("\t") for line in node.done("status").splitlines() if line.startswith("set\t")]
    assert row[6:] == ["same", "unlimited", "10", "10"]
    node.done("lock", "me", "600")
    node.done("begin", "C", "me", "600", stdin=f"cpu.cstates_pmqos\tpm_qos\t-\t{device}\t5\n")
    node.done("apply", "C")
    last = int((node.state / "pm_qos").read_text().split()[0])
    node.done("undo", "C")
    wait(lambda: not Path(f"/proc/{last}/cwd").exists())


def test_a_limit_is_let_go_although_run_is_wiped(node: Node) -> None:
    device = states.write(node, "cpu_dma_latency", "")
    node.done("begin", "A", "me", "4", stdin=f"cpu.cstates_pmqos\tpm_qos\t-\t{device}\t0\n")
    node.done("apply", "A")
    holder = int((node.state / "pm_qos").read_text().split()[0])
    shutil.rmtree(node.run)
    wait(lambda: node.journal("A") == "undone", seconds=60)
    wait(lambda: not Path(f"/proc/{holder}/cwd").exists())


def test_a_guard_that_is_ended_leaves_no_second_holder(node: Node) -> None:
    device = states.write(node, "cpu_dma_latency", "")
    node.keep("A", f"cpu.cstates_pmqos pm_qos - {device}=10")
    first = int((node.state / "pm_qos").read_text().split()[0])
    # As a guard starts it, which was then ended.
    second = subprocess.Popen(node.argv("hold", str(device), "5"))
    try:
        wait(lambda: not Path(f"/proc/{first}/cwd").exists())
        node.make("B", f"cpu.cstates_pmqos pm_qos - {device}=unlimited")
        assert second.wait(timeout=10) == -signal.SIGKILL
    finally:
        second.kill()
        second.wait()


def _of_unit(name: str) -> list[str]:
    found = subprocess.run(
        ["sh", "-c", f'grep -ls "UNIT_OF_TEST={name}" /proc/[0-9]*/environ'],
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.split()


# --- what hangs together -------------------------------------------------------------------------------------


@pytest.fixture
def cpus(node: Node) -> Path:
    node.program("systemctl", SMT)
    control = states.write(node, "smt/control", "on\n")
    for cpu, governor in ((0, "powersave"), (1, "schedutil")):
        states.write(node, f"smt/cpu{cpu}/governor", f"{governor}\n")
    return control


def _governors(cpus: Path) -> dict[str, str]:
    return {path.parent.name: path.read_text().strip() for path in cpus.parent.glob("cpu*/governor")}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("confirmed", [False, True])
def test_siblings_are_back_before_their_governor_is(
    node: Node, cpus: Path, order: int, confirmed: bool
) -> None:
    steps = [
        "cpu.smt service - smt.service=off",
        f"cpu.governor file - {cpus.parent}/cpu*/governor=performance",
    ]
    node.make("A", *steps[::order])
    assert _governors(cpus) == {"cpu0": "performance"}
    if confirmed:
        node.done("confirm", "A")
        node.roll_back("B")
    else:
        node.done("undo", "A")
    assert cpus.read_text() == "on\n"
    assert _governors(cpus) == {"cpu0": "powersave", "cpu1": "schedutil"}


def test_two_changes_that_hang_together_are_rolled_back(node: Node, cpus: Path) -> None:
    node.keep("A", f"cpu.governor file - {cpus.parent}/cpu*/governor=performance")
    node.keep("B", "cpu.smt service - smt.service=off")
    node.roll_back("C")
    assert _governors(cpus) == {"cpu0": "powersave", "cpu1": "schedutil"}
    node.keep("D", "cpu.smt service - smt.service=off")
    node.keep("E", f"cpu.governor file - {cpus.parent}/cpu*/governor=performance")
    node.roll_back("F")
    # What came back is as the kernel made it.
    assert _governors(cpus) == {"cpu0": "powersave", "cpu1": "kernel"}
    assert "set\t" not in node.done("status")


# --- every other kind, through the guard ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", [states.link, states.route, states.turbo, states.idle_states])
def test_what_was_changed_is_undone_and_rolled_back(
    node: Node, kind: Callable[[Node], tuple[str, Callable[[], str]]]
) -> None:
    step, value = kind(node)
    before = value()
    node.make("A", step)
    assert value() != before
    node.done("undo", "A")
    assert value() == before
    node.keep("B", step)
    assert list(node.differs().values()) == ["different"]
    node.roll_back("C")
    assert value() == before


def test_a_route_that_another_change_took_away_again_is_not_asked_for(node: Node) -> None:
    step, value = states.route(node)
    before = value()
    # The soak found it: the route to one address came with the first change, and went with its rollback.
    node.keep("A", step, "network.cable host_route - 10.9.0.7=dev eth0 src 10.9.0.1")
    assert "10.9.0.7" in value()
    node.roll_back("B", "A")
    assert value() == before
    node.keep("C", step)
    node.roll_back("D")
    assert value() == before


def test_what_is_kept_is_known_again_after_a_boot(node: Node) -> None:
    """The script that keeps settings lets the guard set what it alone can tell apart from others'."""
    device = states.write(node, "cpu_dma_latency", "")
    rules = "table inet f { chain in { type filter hook input priority 0; }; }"
    node.inside("nft", rules)
    node.keep("A", "net.conntrack firewall eth0 tracking=exempt", f"cpu.cstates_pmqos pm_qos - {device}=10")
    holder = int((node.state / "pm_qos").read_text().split()[0])
    node.boot_anew()
    os.kill(holder, signal.SIGKILL)
    node.inside("nft", "flush ruleset")
    node.inside("nft", rules)
    assert set(node.differs().values()) == {"same"}
    text = script.at_boot(
        [
            ("firewall", _kept("firewall", "eth0", "tracking", "exempt")),
            ("latency", _kept("pm_qos", "-", str(device), "10")),
        ],
        "# kept",
    )
    node.inside("sh", "-s", "--", "firewall", "latency", stdin=text)
    assert set(node.differs().values()) == {"different"}
    node.done("lock", "me", "600")
    node.roll_back("B")
    assert "wulf" not in states.rules(node)
    assert node.differs() == {}


def _kept(kind: str, interface: str, target: str, value: str) -> Step:
    return Step(knob=kind, kind=kind, interface=interface, target=target, value=value)

"""What a guard puts back, in which order and over a boot; and what it leaves because it is somebody else's."""

from __future__ import annotations

import base64
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.guard_place import Place, wait
from tests.unit.test_access import ETHTOOL, NIC, SYSTEMCTL
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


class Node(Place):
    """A place with programs of its own and a boot that can be another one."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        (self.run.parent / "boot_id").write_text("first\n")
        self.inside("mount", "--bind", "/run/boot_id", "/proc/sys/kernel/random/boot_id")
        self.done("lock", "me", "600")

    def inside(self, *words: str, stdin: str = "") -> str:
        argv = [*self.argv()[:4], "env", f"PATH={self.programs}:{os.environ['PATH']}", *words]
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done
        return done.stdout

    def make(self, change: str, *steps: str) -> None:
        """Take steps `KNOB KIND INTERFACE TARGET=VALUE`, not confirmed."""
        plan = "".join(
            "\t".join([*step.partition("=")[0].split(" ", 3), step.partition("=")[2]]) + "\n"
            for step in steps
        )
        self.done("begin", change, "me", "600", stdin=plan)
        self.done("apply", change)

    def keep(self, change: str, *steps: str) -> None:
        self.make(change, *steps)
        self.done("confirm", change)

    def roll_back(self, change: str, to: str = "original") -> None:
        self.done("rollback", change, "me", "600", to)
        self.done("apply", change)
        self.done("confirm", change)

    def boot_anew(self) -> None:
        """End the watcher, forget what is in memory, and have another boot."""
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for role in ("watcher", "keeper", "spare"):
                if (self.run / role).exists():
                    os.kill(int((self.run / role).read_text()), number)
        shutil.rmtree(self.run)
        (self.run.parent / "boot_id").write_text("second\n")

    def log(self) -> str:
        return (self.state / "log").read_text()

    def differs(self) -> dict[str, str]:
        rows = [line.split("\t") for line in self.done("status").splitlines() if line.startswith("set\t")]
        return {row[1]: row[6] for row in rows}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    made.end()


def _file(node: Node, name: str, text: str) -> Path:
    path = node.directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# --- over a boot ---------------------------------------------------------------------------------------------

#: As TuneD answers: only a daemon that runs says what is in force.
TUNED_ADM = """\
#!/bin/sh
cd "$PLACE" || exit
case $1 in
active) if [ ! -e runs ]; then echo "It seems that tuned daemon is not running, preset profile is not activated."
    [ ! -s active_profile ] || echo "Preset profile: $(cat active_profile)"
    elif [ -s active_profile ]; then echo "Current active profile: $(cat active_profile)"
    else echo "No current active profile."; fi ;;
profile) echo "$2" >active_profile; touch runs ;;
off) [ -e runs ] || { echo "Not supported in no_daemon mode."; exit 1; }; : >active_profile ;;
esac
"""


def _tuned(node: Node, before: str) -> tuple[str, Callable[[], str]]:
    node.program("tuned-adm", TUNED_ADM)
    _file(node, "runs", "")
    file = _file(node, "active_profile", before)
    return f"svc.tuned tuned - {file}=network-latency", file.read_text


def _tuned_profile(node: Node) -> tuple[str, Callable[[], str]]:
    return _tuned(node, "balanced\n")


def _stored(node: Node) -> tuple[str, Callable[[], str]]:
    file = _file(node, "x.conf", "before\n")
    return f"{file} stored - {file}=file:644:bmV3Cg==", file.read_text


def _unit(node: Node) -> tuple[str, Callable[[], str]]:
    node.program("systemctl", SYSTEMCTL)
    _file(node, "irqbalance.service.active", "active\n")
    enabled = _file(node, "irqbalance.service.enabled", "enabled\n")
    return "irqbalance.service unit - irqbalance.service=disabled", enabled.read_text


def _mpi_parameter(node: Node) -> tuple[str, Callable[[], str]]:
    node.program("ompi_info", f'#!/bin/sh\necho "path:sysconfdir:{node.directory}"\n')
    file = _file(node, "openmpi-mca-params.conf", "btl_tcp_links = 2\n")
    return "ompi.btl_tcp_links mpi_parameter - btl_tcp_links=4", file.read_text


LASTING = {"tuned": _tuned_profile, "stored": _stored, "unit": _unit, "mpi_parameter": _mpi_parameter}


@pytest.mark.parametrize(
    "kind", [name for name, kind in access.kinds().items() if kind.settable and kind.survives_boot]
)
def test_what_survives_a_boot_is_put_back_after_it(node: Node, kind: str) -> None:
    step, value = LASTING[kind](node)
    before = value()
    node.make("A", step)
    assert value() != before
    node.boot_anew()
    (node.directory / "runs").unlink(missing_ok=True)
    node.done("recover")
    assert node.journal("A") == "undone"
    assert value() == before


@pytest.mark.parametrize("kind", LASTING)
def test_what_was_set_twice_is_rolled_back_to_the_original(node: Node, kind: str) -> None:
    step, value = LASTING[kind](node)
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
    path = node.directory / "new.conf" if original is None else _file(node, "new.conf", original)
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
    node.program("ompi_info", f'#!/bin/sh\necho "path:sysconfdir:{node.directory}"\n')
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
    path = _file(node, "x.conf", "c = 1\n")
    for change in ("A", "B"):
        text = base64.b64encode(f"x = {change}\n".encode()).decode()
        node.keep(change, f"k stored - {path}=file:644:{text}")
        if change == "A":
            path.write_text(f"{path.read_text()}c = 2\n")
    node.roll_back("C")
    assert path.read_text() == "c = 2\n"


def test_a_profile_of_tuned_where_there_was_none_is_gone_after_a_boot(node: Node) -> None:
    step, value = _tuned(node, "")
    node.make("A", step)
    node.boot_anew()
    (node.directory / "runs").unlink()
    node.done("recover")
    assert (node.journal("A"), value()) == ("undone", "")


def test_a_preset_profile_of_tuned_is_there_again_after_a_boot(node: Node) -> None:
    step, value = _tuned(node, "balanced\n")
    (node.directory / "runs").unlink()
    node.make("A", step)
    node.boot_anew()
    (node.directory / "runs").unlink()
    node.done("recover")
    assert (node.journal("A"), value()) == ("undone", "balanced\n")


def test_tuned_that_did_not_run_does_not_run_afterwards(node: Node) -> None:
    step, value = _tuned(node, "balanced\n")
    (node.directory / "runs").unlink()
    node.program("systemctl", '#!/bin/sh\n[ "$*" = "stop tuned.service" ] && rm "$PLACE/runs"\n')
    node.make("A", step)
    assert (node.directory / "runs").exists()
    node.done("undo", "A")
    assert (node.journal("A"), value()) == ("undone", "balanced\n")
    assert not (node.directory / "runs").exists()


# --- a limit that a process holds ----------------------------------------------------------------------------


def test_a_confirmed_limit_outlives_the_watcher_that_restored_it(node: Node) -> None:
    device = _file(node, "cpu_dma_latency", "")
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
    device = _file(node, "cpu_dma_latency", "")
    node.done("begin", "A", "me", "4", stdin=f"cpu.cstates_pmqos\tpm_qos\t-\t{device}\t0\n")
    node.done("apply", "A")
    holder = int((node.state / "pm_qos").read_text().split()[0])
    shutil.rmtree(node.run)
    wait(lambda: node.journal("A") == "undone", seconds=60)
    wait(lambda: not Path(f"/proc/{holder}/cwd").exists())


def test_a_guard_that_is_ended_leaves_no_second_holder(node: Node) -> None:
    device = _file(node, "cpu_dma_latency", "")
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
    control = _file(node, "smt/control", "on\n")
    for cpu, governor in ((0, "powersave"), (1, "schedutil")):
        _file(node, f"smt/cpu{cpu}/governor", f"{governor}\n")
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


# --- what is somebody else's ---------------------------------------------------------------------------------


def _nic(node: Node, *words: str) -> str:
    if words:
        node.inside("ethtool", *words)
    return node.inside("ethtool", "-c", "eth0")


def _ethtool(node: Node) -> None:
    node.program("ethtool", f"#!{sys.executable} -S\n{ETHTOOL}")
    _file(node, "nic.json", NIC)


@pytest.mark.parametrize("confirmed", [False, True])
def test_of_a_group_only_what_the_change_has_set_is_put_back(node: Node, confirmed: bool) -> None:
    _ethtool(node)
    _nic(node, "-C", "eth0", "adaptive-rx", "on")
    before = _nic(node)
    node.make("A", "nic.rx_usecs ethtool eth0 coalesce.rx-usecs=4")
    if confirmed:
        node.done("confirm", "A")
    _nic(node, "-C", "eth0", "tx-usecs", "200")
    if confirmed:
        node.done("rollback", "B", "me", "600", "original")
        said = node.done("apply", "B")
        node.done("confirm", "B")
        assert "set\t" not in node.done("status")
    else:
        said = node.done("undo", "A")
        assert "left as somebody else has set it: nic.rx_usecs: tx-usecs 200" in node.log()
    assert said.count("left\tnic.rx_usecs\ttx-usecs 200\n") == 1
    # Adaptive moderation, which the fixed delay had ended, is on again.
    assert _nic(node) == before.replace("tx-usecs:\t30", "tx-usecs:\t200")


def test_what_an_adaptive_driver_moves_later_on_is_put_back_too(node: Node) -> None:
    _ethtool(node)
    before = _nic(node)
    node.make("A", "nic.adaptive_rx ethtool eth0 coalesce.adaptive-rx=on")
    text = (node.directory / "nic.json").read_text()
    (node.directory / "nic.json").write_text(text.replace('"rx-frames": "16"', '"rx-frames": "64"'))
    node.done("undo", "A")
    assert _nic(node) == before


def test_of_a_pattern_only_the_files_that_the_change_has_set_are_put_back(node: Node) -> None:
    files = [_file(node, f"cpu{cpu}/governor", f"{value}\n") for cpu, value in enumerate(("a", "new", "b"))]
    node.make("A", f"k file - {node.directory}/cpu*/governor=new")
    files[1].write_text("theirs\n")
    files[2].write_text("theirs\n")
    node.done("undo", "A")
    assert [file.read_text() for file in files] == ["a\n", "theirs\n", "theirs\n"]
    assert "left as somebody else has set it: k" in node.log()


def test_what_somebody_sets_between_begin_and_apply_is_theirs(node: Node) -> None:
    files = [_file(node, f"cpu{cpu}/governor", "old\n") for cpu in (0, 1)]
    node.done("begin", "A", "me", "600", stdin=f"k\tfile\t-\t{node.directory}/cpu*/governor\tnew\n")
    files[1].write_text("theirs\n")
    node.done("apply", "A")
    node.done("undo", "A")
    assert [file.read_text() for file in files] == ["old\n", "theirs\n"]


@pytest.mark.parametrize("first", [True, False], ids=["after ours", "before ours"])
@pytest.mark.parametrize("kind", ["sysctl", "stored"])
def test_what_somebody_sets_while_another_step_is_at_work_is_theirs(
    node: Node, kind: str, first: bool
) -> None:
    slow, _ = node.slowly(2)
    sysctl = Path("/proc/sys/net/ipv4/tcp_keepalive_time")
    file = sysctl if kind == "sysctl" else _file(node, "x.rule", "7200\n")
    ours = {"sysctl": "k\tsysctl\t-\tnet.ipv4.tcp_keepalive_time\t7100\n"}.get(
        kind, f"k\tstored\t-\t{file}\tfile:644:NzEwMAo=\n"
    )
    node.done("begin", "A", "me", "600", stdin=ours + slow if first else slow + ours)
    with subprocess.Popen(node.argv("apply", "A"), stdout=subprocess.DEVNULL) as applying:
        wait(lambda: f"put {1 + first}" in node.log())
        node.inside("sh", "-c", f"echo 7300 >{file}")
        assert applying.wait(30) == 0
    assert node.inside("cat", str(file)) == ("7300\n" if first else "7100\n")
    node.done("undo", "A")
    assert node.inside("cat", str(file)) == "7300\n"


def test_two_changes_of_a_group_with_somebody_else_between_them(node: Node) -> None:
    _ethtool(node)
    node.keep("A", "nic.rx_usecs ethtool eth0 coalesce.rx-usecs=4")
    _nic(node, "-C", "eth0", "tx-usecs", "200")
    before = _nic(node)
    node.keep("B", "nic.rx_usecs ethtool eth0 coalesce.rx-usecs=2")
    assert node.differs() == {"nic.rx_usecs": "different"}
    node.roll_back("C", "B")
    assert _nic(node) == before
    node.roll_back("D")
    assert "rx-usecs:\t8" in _nic(node)
    assert "tx-usecs:\t200" in _nic(node)


def test_without_the_state_after_it_all_that_was_saved_comes_back(node: Node) -> None:
    _ethtool(node)
    before = _nic(node)
    node.make("A", "nic.rx_usecs ethtool eth0 coalesce.rx-usecs=4")
    (node.state / "tx/A/after.1").unlink()
    node.done("undo", "A")
    assert (_nic(node), node.journal("A")) == (before, "undone")
    node.keep("B", "nic.rx_usecs ethtool eth0 coalesce.rx-usecs=4")
    (node.state / "tx/B/after.1").unlink()
    assert node.differs() == {"nic.rx_usecs": "different"}
    node.roll_back("C")
    assert _nic(node) == before


NEW = "# Written by wulf\na = 1\nb = 2\n"
#: What was there before, what somebody else makes of it meanwhile, and what is then there in the end.
EDITS = [
    (None, NEW, None),
    (None, NEW + "c = 3\n", "c = 3\n"),
    (None, NEW.replace("a = 1", "a = 7"), "a = 7\n"),
    (None, None, None),
    ("b = 9\nz = 8\n", NEW, "b = 9\nz = 8\n"),
    ("b = 9\nz = 8\n", NEW + "c = 3\n", "b = 9\nc = 3\nz = 8\n"),
    ("b = 9\nz = 8\n", NEW.replace("b = 2", "b = 7"), "b = 7\nz = 8\n"),
    (None, NEW + "; theirs\n", "; theirs\n"),
    ("b = 9\n", NEW + "blacklist theirs\n", "b = 9\nblacklist theirs\n"),
]


@pytest.mark.parametrize("confirmed", [False, True])
@pytest.mark.parametrize(("before", "meanwhile", "after"), EDITS)
def test_of_a_file_of_lines_those_of_others_stay(
    node: Node, before: str | None, meanwhile: str | None, after: str | None, confirmed: bool
) -> None:
    file = node.directory / "etc/90-wulf.conf"
    if before is not None:
        _file(node, "etc/90-wulf.conf", before)
    node.make("A", f"k stored - {file}=file:644:{base64.b64encode(NEW.encode()).decode()}")
    if confirmed:
        node.done("confirm", "A")
    if meanwhile is None:
        file.unlink()
    elif meanwhile != NEW:
        file.write_text(meanwhile)
    if confirmed:
        node.roll_back("B")
    else:
        node.done("undo", "A")
    assert (file.read_text() if file.exists() else None) == after
    assert ("left as somebody else has set it: k" in node.log()) == (meanwhile != NEW)


@pytest.mark.parametrize("name", ["secret", "secret.conf"])
def test_what_others_have_written_into_a_file_is_not_shown(node: Node, name: str) -> None:
    file = node.directory / name
    node.make("A", f"k stored - {file}=file:600:d29yZCA9IDEK")
    file.write_text("word = theirs\n")
    said = node.done("undo", "A") + node.log()
    assert "left\tk\t" in said
    assert "theirs" not in said
    assert base64.b64encode(b"word = theirs\n").decode() not in said


def test_a_line_that_comes_between_begin_and_apply_stays(node: Node) -> None:
    node.program("ompi_info", f'#!/bin/sh\necho "path:sysconfdir:{node.directory}"\n')
    file = _file(node, "openmpi-mca-params.conf", "btl_tcp_links = 2\n")
    node.done("begin", "A", "me", "600", stdin="k\tmpi_parameter\t-\tbtl_tcp_links\t4\n")
    file.write_text("btl_tcp_links = 2\ntheirs = 1\n")
    node.done("apply", "A")
    assert "btl_tcp_links = 4" in file.read_text()
    node.done("undo", "A")
    assert file.read_text() == "btl_tcp_links = 2\ntheirs = 1\n"


# --- the packet filter ---------------------------------------------------------------------------------------

RULES = """\
table inet f {
	set ban { type ipv4_addr; flags timeout; elements = { 192.0.2.1 timeout 1h, 192.0.2.2 timeout 1s, 192.0.2.3 } }
	set seen { type ipv4_addr; flags dynamic,timeout; timeout 1h; }
	set listed { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 192.168.0.0/16 comment "a, { b }" } }
	chain in { type filter hook input priority 0; policy accept; ip saddr @ban counter drop; ip saddr @listed accept; }
}
"""
FILTER = "svc.nftables service - nftables.service=off"


@pytest.fixture
def filtering(node: Node) -> Node:
    node.program("systemctl", SYSTEMCTL)
    _file(node, "nftables.service.active", "active\n")
    _file(node, "nftables.conf", "flush ruleset\ntable inet boot { }\n")
    node.inside("nft", "-f", "-", stdin=RULES)
    return node


def _rules(node: Node) -> str:
    return node.inside("nft", "-nn", "list", "ruleset")


def test_rules_with_elements_that_time_out_come_back(filtering: Node) -> None:
    filtering.keep("Z", FILTER)
    assert _rules(filtering) == ""
    filtering.inside("sleep", "2")
    filtering.roll_back("Y")
    assert filtering.differs() == {}
    filtering.make("A", FILTER)
    filtering.done("undo", "A")
    assert filtering.journal("A") == "undone"
    rules = _rules(filtering)
    # What would be over by now is over, and no time was won.
    assert "192.0.2.2" not in rules
    assert "192.0.2.3" in rules
    assert 'elements = { 10.0.0.0/8, 192.168.0.0/16 comment "a, { b }" }' in rules
    assert int(rules.split("192.0.2.1 timeout 3600s expires ")[1].partition("s")[0]) < 3599


def test_rules_that_come_while_a_service_does_not_start_stay(filtering: Node) -> None:
    filtering.inside("nft", "table inet other { }")
    filtering.make("A", FILTER)
    filtering.inside("nft", "table inet other { }")
    filtering.program("systemctl", SYSTEMCTL.replace("broken.service", "nftables.service"))
    assert "not put back" in filtering.guard("undo", "A").stdout
    filtering.inside("nft", "table inet theirs { }")
    filtering.program("systemctl", SYSTEMCTL)
    filtering.done("undo", "A")
    assert "table inet theirs" in _rules(filtering)
    assert "table inet f" in _rules(filtering)


def test_rules_that_somebody_else_has_made_meanwhile_stay(filtering: Node) -> None:
    filtering.make("A", FILTER)
    filtering.inside("nft", "add table ip theirs")
    filtering.done("undo", "A")
    rules = _rules(filtering)
    assert "table ip theirs" in rules
    assert "table inet f" in rules
    assert "inet boot" not in rules


def test_a_table_that_somebody_else_has_made_anew_is_not_removed_unasked(filtering: Node) -> None:
    filtering.make("A", FILTER)
    filtering.inside("nft", "add table inet f; add chain inet f theirs")
    stuck = filtering.guard("undo", "A")
    assert "'nft delete table inet f' lets the former one come back" in stuck.stdout
    assert "chain theirs" in _rules(filtering)
    assert filtering.journal("A") == "stuck"
    filtering.inside("nft", "delete table inet f")
    filtering.done("undo", "A")
    assert filtering.journal("A") == "undone"
    assert "192.0.2.3" in _rules(filtering)


@pytest.mark.parametrize("exempt_first", [True, False])
def test_own_rules_that_came_or_went_meanwhile_are_nobody_elses(filtering: Node, exempt_first: bool) -> None:
    exempt = "net.conntrack firewall eth0 tracking=exempt"
    filtering.keep("A", exempt if exempt_first else FILTER)
    filtering.keep("B", FILTER if exempt_first else exempt)
    filtering.roll_back("C", "A")
    filtering.keep("D", exempt)
    # Both have been changed since the original state, and the filter comes first.
    filtering.roll_back("E")
    assert "wulf" not in _rules(filtering)
    assert "ip saddr @listed accept" in _rules(filtering)
    assert filtering.differs() == {}


def test_settings_of_a_queue_go_with_it(node: Node) -> None:
    node.inside("mount", "-t", "sysfs", "sysfs", "/sys")  # that of the own network
    queues = ["numrxqueues", "2", "numtxqueues", "2"]
    node.inside("ip", "link", "add", "eth0", *queues, "type", "veth", "peer", "name", "peer0", *queues)
    node.inside("ethtool", "-L", "eth0", "rx", "1", "tx", "1")
    masks = "/sys/class/net/eth0/queues/rx-*/rps_cpus"
    node.keep("A", "nic.channels ethtool eth0 channels=rx 2 tx 2")
    node.keep("B", f"nic.rps file - {masks}=1")
    assert node.inside("sh", "-c", f"cat {masks} | tr -d ,0").split() == ["1", "1"]
    # The second queue, which B had something to put back on, is not there any more when its turn comes.
    node.roll_back("C")
    assert node.inside("sh", "-c", f"ls {masks}").split() == [masks.replace("*", "0")]
    assert node.inside("sh", "-c", f"cat {masks} | tr -d ,0").split() == []
    assert node.differs() == {}
    # An interface that is gone is another matter.
    node.make("D", f"nic.rps file - {masks}=1")
    node.inside("ip", "link", "del", "eth0")
    assert "error\tnot put back" in node.guard("undo", "D").stdout


def test_a_retry_comes_later_and_later(node: Node) -> None:
    file = _file(node, "value", "old\n")
    node.make("A", f"k file - {file}=new")
    file.unlink()
    file.mkdir()
    found = []
    for _ in range(4):
        node.guard("undo", "A")
        until = int((node.run / "retry.A").read_text().split()[0])
        now = float(Path("/proc/uptime").read_text().split()[0])
        found.append((until - now) / 60)
    assert [round(minutes) for minutes in found] == sorted({round(minutes) for minutes in found})
    assert found[-1] > 4 * found[0]


@pytest.mark.parametrize("confirmed", [False, True])
def test_the_exemption_of_the_cluster_s_interface_goes(node: Node, confirmed: bool) -> None:
    rules = (
        "table inet f { chain in { type filter hook input priority 0; policy accept; tcp dport 9 drop; }; }"
    )
    node.inside("nft", rules)
    before = node.inside("nft", "-s", "list", "ruleset")
    node.make("A", "net.conntrack firewall eth0 tracking=notrack")
    assert "notrack" in _rules(node)
    if confirmed:
        node.done("confirm", "A")
        assert node.differs() == {"net.conntrack": "different"}
        node.roll_back("B")
    else:
        node.done("undo", "A")
    assert node.inside("nft", "-s", "list", "ruleset") == before


# --- every other kind, through the guard ---------------------------------------------------------------------


def _veth(node: Node) -> None:
    node.inside("ip", "link", "add", "eth0", "mtu", "1500", "type", "veth", "peer", "name", "peer0")


def _link(node: Node) -> tuple[str, Callable[[], str]]:
    node.inside("mount", "-t", "sysfs", "sysfs", "/sys")  # that of the own network
    _veth(node)
    return "nic.mtu link eth0 mtu=1400", lambda: node.inside("ip", "-o", "link", "show", "eth0")


def _route(node: Node) -> tuple[str, Callable[[], str]]:
    _link(node)
    for words in ("link set eth0 up", "link set peer0 up", "addr add 10.9.0.1/24 dev eth0"):
        node.inside("ip", *words.split())
    return "route.rto_min route eth0 rto_min=5", lambda: node.inside(
        "ip", "-4", "route", "show", "dev", "eth0"
    )


def _turbo(node: Node) -> tuple[str, Callable[[], str]]:
    file = _file(node, "boost", "1\n")
    return f"cpu.turbo turbo - {node.directory}/no_turbo {file}=0", file.read_text


def _idle_states(node: Node) -> tuple[str, Callable[[], str]]:
    files = [_file(node, f"cpu0/state{number}/disable", f"{number % 2}\n") for number in range(3)]
    step = f"cpu.cstates_disable idle_states - {node.directory}/cpu*/state*/disable=disabled: state2"
    return step, lambda: " ".join(file.read_text() for file in files)


@pytest.mark.parametrize("kind", [_link, _route, _turbo, _idle_states])
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
    step, value = _route(node)
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
    device = _file(node, "cpu_dma_latency", "")
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
    assert "wulf" not in _rules(node)
    assert node.differs() == {}


def _kept(kind: str, interface: str, target: str, value: str) -> Step:
    return Step(knob=kind, kind=kind, interface=interface, target=target, value=value)


# --- another device under the same name ----------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["apply", "part"])
def test_a_name_that_goes_to_another_device_is_not_followed(node: Node, verb: str) -> None:
    _, value = _link(node)
    node.done("begin", "A", "me", "600", stdin="nic.mtu\tlink\teth0\tmtu\t1400\n")
    if verb == "part":
        node.done("apply", "A")
        node.done("part", "A", "0")
    node.inside("ip", "link", "del", "eth0")
    _veth(node)
    said = node.guard(verb, "A", *(["1"] if verb == "part" else []))
    assert "another device has the name eth0 now" in said.stdout
    assert "mtu 1500" in value()


#: What happens to a bridge, whose address is that of its first port, while a change is open.
BRIDGED = {
    "a port": "ip link add port0 address 02:00:00:00:00:01 type veth peer name port1; ip link set port0 master eth0",
    "a failover": "ip link set eth0 address 02:00:00:00:00:77",
    "made anew": "ip link del eth0; ip link add eth0 address 02:00:00:00:00:99 mtu 1400 type bridge",
}


@pytest.mark.parametrize("before", ["apply", "undo"])
@pytest.mark.parametrize("what", ["a port", "a failover"])
def test_a_bridge_is_the_same_whatever_address_it_takes(node: Node, what: str, before: str) -> None:
    _, value = _link(node)
    node.inside("ip", "link", "del", "eth0")
    node.inside("ip", "link", "add", "eth0", "mtu", "1500", "type", "bridge")
    first = value().split("link/ether ")[1].split()[0]
    node.done("begin", "A", "me", "600", stdin="nic.mtu\tlink\teth0\tmtu\t1400\n")
    if before == "undo":
        node.done("apply", "A")
    node.inside("sh", "-c", BRIDGED[what])
    assert first not in value()
    if before == "apply":
        node.done("apply", "A")
        assert "mtu 1400" in value()
    node.done("undo", "A")
    assert "mtu 1500" in value()


@pytest.mark.parametrize("another_boot", [False, True])
def test_a_bridge_that_was_made_anew_is_another_but_for_a_boot(node: Node, another_boot: bool) -> None:
    _, value = _link(node)
    node.inside("ip", "link", "del", "eth0")
    node.inside("sh", "-c", "ip link add eth0 address 02:00:00:00:00:07 mtu 1500 type bridge")
    node.keep("A", "nic.mtu link eth0 mtu=1400")
    node.inside("sh", "-c", BRIDGED["made anew"])
    if another_boot:
        node.boot_anew()
        node.done("lock", "me", "600")
    said = node.done("rollback", "B", "me", "600", "original")
    assert ("another device has the name eth0 now" in said) is not another_boot
    if another_boot:
        node.done("apply", "B")
    assert f"mtu {1500 if another_boot else 1400}" in value()


# --- what is not there any more ------------------------------------------------------------------------------


def _interface_goes(node: Node) -> str:
    step, _ = _link(node)
    node.keep("A", step)
    node.inside("ip", "link", "del", "eth0")
    return "eth0 ("


def _another_device_comes(node: Node) -> str:
    _interface_goes(node)
    _veth(node)
    return "another device has the name eth0 now"


def _cpu_goes(node: Node) -> str:
    first, second = (_file(node, f"cpu{number}/governor", "old\n") for number in (0, 1))
    node.keep("A", f"k file - {node.directory}/cpu*/governor=new")
    second.unlink()
    assert first.read_text() == "new\n"
    return f"{second} is not there any more"


def _parameter_goes(node: Node) -> str:
    file = _file(node, "parameter", "old\n")
    node.keep("A", f"k file - {file}=new")
    file.unlink()
    return "it is not there any more"


@pytest.mark.parametrize("goes", [_interface_goes, _another_device_comes, _cpu_goes, _parameter_goes])
def test_what_is_gone_is_told_and_keeps_nothing_else_from_going_back(
    node: Node, goes: Callable[[Node], str]
) -> None:
    why = goes(node)
    file = _file(node, "other", "old\n")
    node.keep("B", f"other file - {file}=new")
    said = node.done("rollback", "C", "me", "600", "original") + node.done("apply", "C")
    assert why in said.partition("gone\t")[2]
    node.done("confirm", "C")
    assert file.read_text() == "old\n"
    assert node.differs() == {}


def test_where_all_is_gone_there_is_nothing_to_put_back(node: Node) -> None:
    _interface_goes(node)
    said = node.done("rollback", "B", "me", "600", "original")
    assert said.startswith("gone\tnic.mtu\teth0 (")
    assert said.endswith("\nnothing\n")
    assert (node.shown("A"), node.differs()) == ("abandoned: its values were left as they were", {})


def test_what_is_set_on_the_next_device_of_a_name_goes_back_by_itself(node: Node) -> None:
    why = _another_device_comes(node)
    step, value = "nic.mtu link eth0 mtu=1300", lambda: node.inside("ip", "-o", "link", "show", "eth0")
    node.keep("B", step)
    assert why not in node.done("rollback", "C", "me", "600", "original")
    node.done("apply", "C")
    node.done("confirm", "C")
    assert ("mtu 1500" in value(), node.differs()) == (True, {})


def test_what_cannot_be_seen_is_not_gone(node: Node) -> None:
    _parameter_goes(node)
    node.inside("mount", "-t", "tmpfs", "none", "/sys")
    assert "there is no" in node.guard("rollback", "B", "me", "600", "original").stdout


def test_a_device_is_known_when_its_change_is_condensed(node: Node) -> None:
    step, value = _link(node)
    node.keep("A", step)
    file = _file(node, "other", "old\n")
    for number in range(60):
        node.keep(f"B{number}", f"other file - {file}={number}")
    assert not (node.state / "tx/A").exists()
    node.inside("sh", "-c", "ip link del eth0; ip link add eth0 mtu 1400 type veth")
    said = node.done("rollback", "C", "me", "600", "original") + node.done("apply", "C")
    assert "gone\tnic.mtu\tanother device has the name eth0 now" in said
    assert (file.read_text(), "mtu 1400" in value()) == ("old\n", True)


@pytest.mark.parametrize("comes", [False, True], ids=["no device", "another device"])
@pytest.mark.parametrize("confirmed", [False, True])
def test_an_exemption_goes_whatever_device_has_the_name(node: Node, confirmed: bool, comes: bool) -> None:
    """It is by the name, and would hold for any device that gets it."""
    _link(node)
    node.inside("nft", "table inet f { chain in { type filter hook input priority 0; policy accept; }; }")
    before = _rules(node)
    node.make("A", "net.conntrack firewall eth0 tracking=exempt")
    if confirmed:
        node.done("confirm", "A")
    node.inside("ip", "link", "del", "eth0")
    if comes:
        _veth(node)
    if confirmed:
        node.roll_back("B")
    else:
        node.done("undo", "A")
    assert _rules(node) == before


@pytest.mark.parametrize("confirmed", [False, True])
def test_an_exemption_of_which_somebody_has_taken_a_part_goes_whole(node: Node, confirmed: bool) -> None:
    node.inside("nft", "table inet f { chain in { type filter hook input priority 0; policy accept; }; }")
    before = _rules(node)
    node.make("A", "net.conntrack firewall eth0 tracking=notrack")
    if confirmed:
        node.done("confirm", "A")
    node.inside("nft", "delete table inet wulf_eth0")
    assert 'iifname "eth0" accept' in _rules(node)
    if confirmed:
        node.roll_back("B")
    else:
        node.done("undo", "A")
    assert _rules(node) == before


def test_routes_that_cannot_be_told_apart_are_not_changed(node: Node) -> None:
    _, value = _route(node)
    node.inside("sh", "-c", "ip route append 10.9.0.0/24 dev eth0 scope link proto static rto_min 7ms")
    before = value()
    said = node.guard("begin", "A", "me", "600", stdin="route.rto_min\troute\teth0\trto_min\t5\n")
    assert "eth0 has several routes to 10.9.0.0/24" in said.stdout
    assert (said.returncode, value()) == (11, before)


def test_no_exemption_comes_back_for_another_device(node: Node) -> None:
    _link(node)
    node.inside("nft", "table inet f { chain in { type filter hook input priority 0; policy accept; }; }")
    node.keep("A", "net.conntrack firewall eth0 tracking=exempt")
    node.make("B", "net.conntrack firewall eth0 tracking=tracked")
    node.inside("ip", "link", "del", "eth0")
    _veth(node)
    assert "another device has the name eth0 now" in node.guard("undo", "B").stdout
    assert "wulf" not in _rules(node)

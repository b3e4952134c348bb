"""Every kind of access, told twice: the guard and the shell of exports make the same of a node; the guard undoes it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit import ethtool_fake
from tests.unit import test_access as faked
from tests.unit.guard_place import Place, wait
from wulf.node.change.guard import FAILED
from wulf.node.change.shell_functions import access_functions

pytestmark = pytest.mark.root

#: Tools that no test fakes, wherever they are.
REAL = {name: shutil.which(name, path="/usr/sbin:/sbin:/usr/bin:/bin") or name for name in ("nft", "ip")}


class Both(Place):
    """A place with a guard, the shell's functions, and a tree of files that faked tools work on."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        (directory / "functions").write_text(f'{access_functions()}\nRUN=/run/shell\nmkdir -p $RUN\n"$@"\n')
        self.tree = directory / "tree"
        self.tree.mkdir()
        self.done("lock", "me", "600")

    def plant(self, name: str, text: str) -> Path:
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def tool(self, name: str, text: str) -> None:
        """Plant a tool that works on the tree."""
        self.program(name, text)
        made = self.programs / name
        made.write_text(made.read_text().replace(f"PLACE={self.directory};", f"PLACE={self.tree};"))
        made.write_text(made.read_text().replace(repr(str(self.directory)), repr(str(self.tree))))

    def shell(self, *words: str) -> str:
        enter = [*self.argv()[:4], "env", f"PATH={self.programs}:{os.environ['PATH']}", "dash"]
        done = subprocess.run(
            [*enter, str(self.directory / "functions"), *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done
        return done.stdout.strip()

    def look(self) -> dict[str, str]:
        """Return the tree, and what of the network can be set."""
        found = {
            str(path): str(path.readlink()) if path.is_symlink() else path.read_text()
            for path in sorted(self.tree.rglob("*"))
            if not path.is_dir()
        }
        for words in ("nft list ruleset", "ip route", "ip -o link"):
            name, *rest = words.split()
            found[words] = self.enter(REAL[name], *rest)
        return found

    def keep(self) -> Path:
        kept = self.directory / "kept"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.tree, kept, symlinks=True)
        return kept

    def bring_back(self, kept: Path) -> None:
        """Put the tree back in its place: it may be mounted elsewhere."""
        for path in self.tree.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(kept, self.tree, symlinks=True, dirs_exist_ok=True)


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Both]:
    made = Both(tmp_path)
    yield made
    made.end()


def agree(
    both: Both, kind: str, interface: str, target: str, value: str, impossible: str | None = None
) -> None:
    """Let both set a value, compare what they made of it, and let the guard take it back."""
    before, kept = both.look(), both.keep()
    saved = both.directory / "saved"
    saved.write_text(both.shell(f"{kind}_save", interface, target) + "\n")
    both.shell(f"{kind}_put", interface, target, value)
    by_shell, read = both.look(), both.shell(f"{kind}_get", interface, target)
    assert by_shell != before
    restore = f'. {both.directory}/functions; {kind}_restore "$1" "$2" <{saved}'
    subprocess.run(
        [
            *both.argv()[:4],
            "env",
            f"PATH={both.programs}:{os.environ['PATH']}",
            "dash",
            "-c",
            restore,
            "x",
            interface,
            target,
        ],
        check=False,
        capture_output=True,
    )
    both.bring_back(kept)
    assert both.look() == before
    step = "\t".join(("k", kind, interface, target))
    both.done("begin", "A", "me", "300", stdin=f"{step}\t{value}\n")
    said = both.done("apply", "A").splitlines()
    assert both.look() == by_shell
    assert said == [f"step\t1\tk\t{read}"]
    both.done("undo", "A")
    assert both.look() == before
    if impossible:
        both.done("begin", "B", "me", "300", stdin=f"{step}\t{impossible}\n")
        refused = both.guard("apply", "B")
        assert (refused.returncode, "k=" in refused.stdout) == (FAILED, True), refused
        assert both.look() == before


ETHTOOL = [
    ("coalesce.rx-usecs", "4", "5000"),
    ("coalesce.rx-usecs", "5", "many"),
    ("coalesce.adaptive-rx", "on", None),
    ("ring.rx ring.tx", "1001 2000", "8192 8192"),
    ("ring.rx ring.tx", "max max", None),
    ("channels", "combined 4", "combined 99"),
    ("pause.rx pause.tx", "off on", "loud on"),
    ("eee", "off", "some"),
    ("feature.generic-receive-offload", "off", None),
    ("feature.tcp-segmentation-offload", "off", None),
]


@pytest.mark.parametrize(("target", "value", "impossible"), ETHTOOL)
def test_ethtool(both: Both, target: str, value: str, impossible: str | None) -> None:
    both.tool("ethtool", ethtool_fake.PROGRAM)
    both.plant(ethtool_fake.FILE, ethtool_fake.text(ethtool_fake.CARD))
    agree(both, "ethtool", "eth0", target, value, impossible)


def test_ethtool_that_says_nothing(both: Both) -> None:
    both.tool("ethtool", "#!/bin/sh\necho 'netlink error: Operation not supported' >&2\nexit 1\n")
    refused = both.guard("begin", "A", "me", "60", stdin="k\tethtool\teth0\tcoalesce.rx-usecs\t4\n")
    assert (refused.returncode, "eth0 has no coalesce that ethtool shows" in refused.stdout) == (FAILED, True)


FILES = [
    ("file", "{tree}/cpu*/governor", "performance"),
    ("file", "{tree}/enabled", "never"),
    ("file", "{tree}/flush {tree}/defer", "20000 2"),
    ("idle_states", "{tree}/cpu*/state*/disable", "disabled: state1 state2"),
    ("turbo", "{tree}/no_turbo {tree}/boost", "0"),
    ("turbo", "{tree}/none {tree}/boost", "0"),
]


@pytest.mark.parametrize(("kind", "target", "value"), FILES)
def test_files(both: Both, kind: str, target: str, value: str) -> None:
    for cpu, governor in enumerate(("powersave", "performance", "schedutil")):
        both.plant(f"cpu{cpu}/governor", f"{governor}\n")
        for state in range(3):
            both.plant(f"cpu{cpu}/state{state}/disable", f"{int(state == 2 and cpu == 1)}\n")
    for name, text in (
        ("enabled", "madvise"),
        ("flush", "0"),
        ("defer", "0"),
        ("no_turbo", "0"),
        ("boost", "1"),
    ):
        both.plant(name, f"{text}\n")
    agree(both, kind, "-", target.replace("{tree}", str(both.tree)), value)


SYSTEMD = [
    ("service", "irqbalance", "off", "perhaps"),
    ("unit", "irqbalance", "disabled", "perhaps"),
    ("service", "broken", "on", None),
]


@pytest.mark.parametrize(("kind", "unit", "value", "impossible"), SYSTEMD[:2])
def test_systemd(both: Both, kind: str, unit: str, value: str, impossible: str) -> None:
    both.tool("systemctl", faked.SYSTEMCTL)
    both.plant(f"{unit}.service.active", "active\n")
    both.plant(f"{unit}.service.enabled", "enabled\n")
    agree(both, kind, "-", f"{unit}.service", value, impossible)


def test_a_service_that_does_not_start(both: Both) -> None:
    both.tool("systemctl", faked.SYSTEMCTL)
    both.plant("broken.service.active", "inactive\n")
    both.done("begin", "A", "me", "60", stdin="k\tservice\t-\tbroken.service\ton\n")
    refused = both.guard("apply", "A")
    assert (refused.returncode, "Job for broken.service failed" in refused.stdout) == (FAILED, True)
    missing = both.guard("begin", "B", "me", "60", stdin="k\tservice\t-\tnone.service\ton\n")
    assert (missing.returncode, "there is no none.service" in missing.stdout) == (FAILED, True)


@pytest.mark.parametrize(
    ("target", "value"), [("btl_tcp_links", "4"), ("btl_tcp_links", "default"), ("pml btl", "ucx default")]
)
def test_mpi_parameters(both: Both, target: str, value: str) -> None:
    both.tool("ompi_info", '#!/bin/sh\n[ -z "$HOME" ] || echo "path:sysconfdir:$PLACE"\n')
    both.plant("elsewhere/real.conf", "# comment\nbtl = tcp,self\npml = ob1\nbtl_tcp_links = 2\n")
    (both.tree / "openmpi-mca-params.conf").symlink_to("elsewhere/real.conf")
    before = both.look()
    step = f"k\tmpi_parameter\t-\t{target}\t{value}\n"
    both.done("begin", "A", "me", "60", stdin=step)
    read = both.done("apply", "A").strip().split("\t")[3]
    assert read == value == both.shell("mpi_parameter_get", "-", target)
    both.done("undo", "A")
    assert both.look() == before


def test_interrupts_are_known_by_name(both: Both) -> None:
    numbers = [98, 99, 100, 101]
    both.plant("interrupts", faked.INTERRUPTS.format(*numbers))
    for number, cpus in zip(numbers, ("0-1", "0", "1", "1"), strict=True):
        both.plant(f"irq/{number}/smp_affinity_list", f"{cpus}\n")
    for name in ("interrupts", "irq"):
        both.enter("mount", "--bind", str(both.tree / name), f"/proc/{name}")
    before = both.look()
    both.done("begin", "A", "me", "60", stdin="k\tirq_affinity\teth0\teth0\t0 1\n")
    assert both.done("apply", "A") == "step\t1\tk\t0 1 1\n"
    assert (both.tree / "irq/101/smp_affinity_list").read_text() == "1\n"
    # A driver that has made its queues anew has other numbers for the same names.
    both.plant("interrupts", faked.INTERRUPTS.format(120, 97, 121, 99))
    for number, cpus in ((120, "0"), (97, "1"), (121, "1"), (99, "0")):
        both.plant(f"irq/{number}/smp_affinity_list", f"{cpus}\n")
    both.done("undo", "A")
    assert [(both.tree / f"irq/{number}/smp_affinity_list").read_text() for number in (120, 97, 121, 99)] == [
        "0-1\n",
        "0\n",
        "1\n",
        "0\n",
    ]
    assert set(before) < set(both.look())


def driven(both: Both, modprobe: str = faked.MODPROBE) -> None:
    """Plant eth0, its driver, and what loads that."""
    both.tool("modprobe", modprobe)
    both.tool("ip", faked.IP)
    for name in ("class", "module/igb"):
        (both.tree / name).mkdir(parents=True)
    for name, at in (("class", "/sys/class/net"), ("module", "/sys/module")):
        both.enter("mount", "--bind", str(both.tree / name), at)
    both.enter(str(both.programs / "modprobe"), "igb")
    both.plant("class/eth0/mtu", "9000\n")
    both.plant("addresses", "2: eth0 inet 10.0.0.1/24 scope global eth0\n")
    both.plant("routes", "10.1.0.0/16 via 10.0.0.254\n")


def test_a_module_is_loaded_anew_and_the_link_is_as_before(both: Both) -> None:
    driven(both)
    before = both.look()
    step = "k\tmodule\teth0\tInterruptThrottleRate\t"
    both.done("begin", "A", "me", "60", stdin=f"{step}1\n")
    assert both.done("apply", "A") == "step\t1\tk\t1\n"
    made = both.look()
    assert {name for name in made if made[name] != before[name]} == {
        str(both.tree / "module/igb/parameters/InterruptThrottleRate")
    }
    both.done("undo", "A")
    assert both.look() == before
    both.done("begin", "B", "me", "60", stdin=f"{step}wrong\n")
    assert "Invalid argument" in both.guard("apply", "B").stdout
    assert both.look() == before
    shutil.copytree(both.tree / "class/eth0", both.tree / "class/eth1", symlinks=True)
    both.done("begin", "C", "me", "60", stdin=f"{step}2\n")
    assert "also drives eth1" in both.guard("apply", "C").stdout


#: Ends whoever runs the tool, once.
ENDS = """\
[ -e ended ] || {
    : >ended
    while read -r name number; do [ "$name" != PPid: ] || kill -9 "$number"; done </proc/$$/status
}
"""


@pytest.mark.parametrize("when", ["unloaded", "loaded", "link set dev", "addr replace", "route replace"])
def test_a_driver_is_loaded_again_whenever_the_guard_is_ended(both: Both, when: str) -> None:
    driven(both)
    before = both.look()
    unloads = "rm -rf class/eth0 module/igb/parameters addresses routes\n"
    if when == "unloaded":
        both.tool("modprobe", faked.MODPROBE.replace(unloads, unloads + ENDS))
    elif when == "loaded":
        both.tool("modprobe", faked.MODPROBE + ENDS)
    else:
        both.tool(
            "ip", faked.IP.replace("|| exit\n", f'|| exit\ncase "$*" in "{when}"*) {ENDS} ;; esac\n', 1)
        )
    both.done("begin", "A", "me", "3", stdin="k\tmodule\teth0\tInterruptThrottleRate\t1\n")
    both.guard("apply", "A")
    wait(lambda: both.journal("A") in ("undone", "stuck"), seconds=60)
    (both.tree / "ended").unlink()
    assert (both.journal("A"), both.look()) == ("undone", before)
    assert not list(both.state.glob("unloaded.*"))


#: A driver that does not show what it was loaded with.
HIDDEN = faked.MODPROBE.replace('"module/igb/parameters/${2%%=*}"', "hidden").replace(
    "module/igb/parameters/InterruptThrottleRate", "hidden"
)


@pytest.mark.parametrize("calls", ["-r", "igb", "*"])
@pytest.mark.parametrize("said", ["exit 0", "echo 'x y'; exit 0", "exec >&- 2>&-; exit 0"])
def test_a_driver_that_is_only_said_to_be_loaded_anew_has_what_it_had(
    both: Both, calls: str, said: str
) -> None:
    """Nothing shows the value: what was to be put back was "undone" as soon as `modprobe` ended with 0."""
    driven(both, HIDDEN)
    before = both.look()
    both.done("begin", "A", "me", "600", stdin="k\tmodule\teth0\tInterruptThrottleRate\t1\n")
    both.done("apply", "A")
    made = both.look()
    both.tool("modprobe", HIDDEN.replace("|| exit\n", f"|| exit\ncase $1 in {calls}) {said} ;; esac\n", 1))
    both.guard("undo", "A")
    assert both.journal("A") == "stuck"
    assert both.look()[str(both.tree / "hidden")] == made[str(both.tree / "hidden")] == "1\n"
    both.tool("modprobe", HIDDEN)
    both.done("undo", "A")
    assert both.look() == before


@pytest.mark.parametrize("what", ["addr replace", "route replace", "link set dev"])
def test_what_ip_only_says_to_have_put_back_with_a_driver_is_put_back_later(both: Both, what: str) -> None:
    driven(both)
    before = both.look()
    both.done("begin", "A", "me", "600", stdin="k\tmodule\teth0\tInterruptThrottleRate\t1\n")
    both.done("apply", "A")
    lies = faked.IP.replace("|| exit\n", f'|| exit\ncase "$*" in "{what}"*) exit 0 ;; esac\n', 1)
    both.tool("ip", lies)
    assert "ip exited with 0, but " in both.guard("undo", "A").stdout
    assert both.journal("A") == "stuck"
    both.tool("ip", faked.IP)
    both.done("undo", "A")
    assert both.look() == before


def test_what_a_driver_does_not_show_is_known_although_run_is_wiped(both: Both) -> None:
    driven(both, HIDDEN)
    before = both.look()
    both.done("begin", "A", "me", "3", stdin="k\tmodule\teth0\tInterruptThrottleRate\t1\n")
    both.done("apply", "A")
    assert both.look() != before
    shutil.rmtree(both.run)
    wait(lambda: both.journal("A") in ("undone", "stuck"), seconds=60)
    assert (both.journal("A"), both.look()) == ("undone", before)


@pytest.fixture
def network(both: Both) -> Both:
    both.enter("mount", "-t", "sysfs", "sysfs", "/sys")
    for words in (
        "link add eth0 type veth peer name peer0",
        "addr add 10.9.0.1/24 dev eth0",
        "link set eth0 up",
        "link set peer0 up",
        "route add 10.10.0.0/16 dev eth0 scope link mtu 1400",
    ):
        both.enter("ip", *words.split())
    # The kernel looks at carriers a second apart.
    wait(lambda: both.enter("ip", "-o", "link").count("state UP") == 2)
    return both


@pytest.mark.parametrize(
    ("kind", "interface", "target", "value", "impossible"),
    [
        ("link", "eth0", "mtu", "9000", "10"),
        ("route", "eth0", "rto_min", "5ms", None),
        ("host_route", "-", "10.9.0.7", "dev eth0 src 10.9.0.1", "dev none0"),
        ("sysctl", "-", "net.ipv4.tcp_rmem", "4096 131072 8388608", "nonsense"),
        ("firewall", "eth0", "tracking", "exempt", "perhaps"),
    ],
)
def test_the_network(
    network: Both, kind: str, interface: str, target: str, value: str, impossible: str | None
) -> None:
    network.enter("nft", "table inet f { chain in { type filter hook input priority 0; }; }")
    if kind == "sysctl":
        network.look = lambda: {"value": network.shell("sysctl_get", "-", target)}  # type: ignore[method-assign]
    agree(network, kind, interface, target, value, impossible)

"""Every kind of access, as a guard uses it: save, put, get, restore; with the shells that nodes have."""

from __future__ import annotations

import base64
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.unit import ethtool_fake
from wulf.node.change.shell_functions import access_functions

SHELLS = [
    pytest.param(words, id=words[0], marks=() if words == ["dash"] else pytest.mark.thorough)
    for words in (["dash"], ["bash", "--posix"], ["busybox", "sh"])
    if shutil.which(words[0])
]


class Node:
    """Where the functions run: a directory of its own for state and for programs that come before the real ones."""

    def __init__(self, directory: Path, shell: Sequence[str]) -> None:
        self.directory = directory
        self.programs = directory / "bin"
        self.run = directory / "run"
        for made in (self.programs, self.run, directory / "state"):
            made.mkdir()
        self._shell = list(shell)
        self._functions = directory / "functions"
        own = f"RUN={self.run}\nSTATE={directory}/state\numask 077\n"
        self._functions.write_text(f'{access_functions()}\n{own}"$@"\n')
        #: Words before the shell, such as those that enter a namespace.
        self.before: list[str] = []

    def call(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        environment = {
            # A unit of systemd's has no home.
            **{name: value for name, value in os.environ.items() if name != "HOME"},
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "PLACE": str(self.directory),
        }
        argv = [*self.before, *self._shell, str(self._functions), *words]
        return subprocess.run(
            argv, input=stdin, capture_output=True, text=True, timeout=60, check=False, env=environment
        )

    def program(self, name: str, text: str) -> None:
        path = self.programs / name
        path.write_text(text)
        path.chmod(0o755)


class Access:
    """One thing that can be set on a node."""

    def __init__(self, node: Node, kind: str, target: str, interface: str = "-") -> None:
        self.node, self.kind, self.where = node, kind, (interface, target)

    def save(self) -> str:
        done = self.node.call(f"{self.kind}_save", *self.where)
        assert (done.returncode, done.stderr) == (0, ""), done
        assert done.stdout
        return done.stdout

    def get(self) -> str:
        done = self.node.call(f"{self.kind}_get", *self.where)
        assert done.returncode == 0, done
        return done.stdout.rstrip("\n")

    def put(self, value: str) -> None:
        done = self.node.call(f"{self.kind}_put", *self.where, value)
        assert done.returncode == 0, done

    def restore(self, saved: str) -> None:
        self.node.call(f"{self.kind}_restore", *self.where, stdin=saved)

    def refuses(self, value: str) -> str:
        """Assert that a value is refused with a message and without an effect; return the message."""
        before = self.save()
        done = self.node.call(f"{self.kind}_put", *self.where, value)
        assert done.returncode != 0, done
        message = done.stdout + done.stderr
        assert message.strip()
        self.restore(before)
        assert self.save() == before
        return message

    def there_and_back(self, value: str, then: str | None = None) -> None:
        before = self.save()
        assert self.save() == before
        self.put(value)
        assert self.get() == (value if then is None else then)
        assert self.save() != before
        self.restore(before)
        assert self.save() == before


@pytest.fixture(params=SHELLS)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Node:
    return Node(tmp_path, request.param)


# --- ethtool: a driver that rounds, and whose options hang together ------------------------------------------


@pytest.fixture
def nic(node: Node) -> Callable[[str], Access]:
    node.program("ethtool", ethtool_fake.PROGRAM)
    (node.directory / ethtool_fake.FILE).write_text(ethtool_fake.text(ethtool_fake.CARD))
    return lambda target: Access(node, "ethtool", target, "eth0")


@pytest.mark.parametrize(
    ("target", "value", "then", "impossible"),
    [
        ("coalesce.rx-usecs", "4", None, "5000"),
        ("coalesce.rx-usecs", "5", "4", "many"),
        ("coalesce.adaptive-rx", "on", None, None),
        ("ring.rx ring.tx", "1001 2000", "1000 2000", "8192 8192"),
        ("ring.rx ring.tx", "max max", "4096 4096", None),
        ("channels", "combined 4", "other 1 combined 4", "combined 99"),
        ("pause.rx pause.tx", "off on", None, "loud on"),
        ("eee", "off", None, "some"),
        ("feature.generic-receive-offload", "off", None, None),
        ("feature.tcp-segmentation-offload", "off", None, None),
    ],
)
def test_ethtool(
    nic: Callable[[str], Access], target: str, value: str, then: str | None, impossible: str | None
) -> None:
    access = nic(target)
    access.there_and_back(value, then)
    if impossible:
        access.refuses(impossible)


def test_a_fixed_delay_ends_adaptive_moderation_and_both_come_back(nic: Callable[[str], Access]) -> None:
    adaptive, delay = nic("coalesce.adaptive-rx"), nic("coalesce.rx-usecs")
    adaptive.put("on")
    delay.there_and_back("10")
    assert adaptive.get() == "on"


def test_what_the_driver_has_not_cannot_be_saved(nic: Callable[[str], Access], node: Node) -> None:
    node.program("ethtool", "#!/bin/sh\necho 'netlink error: Operation not supported' >&2\nexit 1\n")
    done = node.call("ethtool_save", "eth0", "coalesce.rx-usecs")
    assert done.returncode != 0
    assert "eth0 has no coalesce that ethtool shows" in done.stderr


def test_a_value_that_is_there_already_is_no_error(nic: Callable[[str], Access]) -> None:
    nic("ring.rx ring.tx").put("512 256")
    nic("pause.rx pause.tx").put("on off")


# --- files ---------------------------------------------------------------------------------------------------


def test_files_of_each_cpu_come_back_each_with_its_own_value(node: Node) -> None:
    for cpu, value in enumerate(("powersave", "performance", "schedutil")):
        (node.directory / f"cpu{cpu}").mkdir()
        (node.directory / f"cpu{cpu}/governor").write_text(value + "\n")
    access = Access(node, "file", f"{node.directory}/cpu*/governor")
    assert access.get() == "performance,powersave,schedutil"
    access.there_and_back("performance")


def test_a_choice_in_brackets_and_words_with_spaces(node: Node) -> None:
    (node.directory / "enabled").write_text("always [madvise] never\n")
    access = Access(node, "file", f"{node.directory}/enabled")
    assert access.get() == "madvise"
    saved = access.save()
    access.put("never")
    assert (node.directory / "enabled").read_text() == "never\n"
    access.restore(saved)
    assert (node.directory / "enabled").read_text() == "madvise\n"


def test_a_word_for_each_pattern(node: Node) -> None:
    for name in ("flush", "defer"):
        (node.directory / name).write_text("0\n")
    Access(node, "file", f"{node.directory}/flush {node.directory}/defer").there_and_back("20000 2")


def test_a_file_that_is_not_there(node: Node) -> None:
    done = node.call("file_save", "-", f"{node.directory}/none")
    assert done.returncode != 0
    assert "there is no" in done.stderr


def test_idle_states(node: Node) -> None:
    for cpu in (0, 1):
        for state in (0, 1, 2):
            path = node.directory / f"cpu{cpu}/state{state}"
            path.mkdir(parents=True)
            (path / "disable").write_text(f"{int(cpu == 1 and state == 2)}\n")
    access = Access(node, "idle_states", f"{node.directory}/cpu*/state*/disable")
    assert access.get() == "disabled: state2"
    access.there_and_back("disabled: state1 state2")
    access.there_and_back("all allowed")


@pytest.mark.parametrize(("forbids", "file"), [(True, "no_turbo"), (False, "boost")])
def test_turbo(node: Node, forbids: bool, file: str) -> None:
    (node.directory / file).write_text("0\n" if forbids else "1\n")
    access = Access(node, "turbo", f"{node.directory}/no_turbo {node.directory}/boost")
    assert access.get() == "1"
    access.there_and_back("0")


# --- a limit that holds while a process does ------------------------------------------------------------------


def _holders(path: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if any(descriptor.readlink() == path for descriptor in (entry / "fd").iterdir()):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_pm_qos_is_held_by_a_process_and_let_go(node: Node) -> None:
    device = node.directory / "cpu_dma_latency"
    device.write_text("")
    access = Access(node, "pm_qos", str(device))
    try:
        assert access.get() == "unlimited"
        access.put("10")
        assert device.read_text() == "0x0000000a"
        first = _holders(device)
        assert len(first) == 1
        assert access.get() == "10"
        access.there_and_back("0")
        assert access.get() == "10"
        _wait(lambda: len(_holders(device)) == 1)
    finally:
        access.put("unlimited")
    _wait(lambda: _holders(device) == [])
    assert access.get() == "unlimited"


def test_pm_qos_that_is_refused_leaves_the_limit_before(node: Node) -> None:
    access = Access(node, "pm_qos", "/dev/full")
    assert "does not take" in access.refuses("10")
    assert access.get() == "unlimited"


def test_pm_qos_without_the_device(node: Node) -> None:
    done = node.call("pm_qos_save", "-", f"{node.directory}/none")
    assert done.returncode != 0
    assert "there is no" in done.stderr


# --- services -------------------------------------------------------------------------------------------------

SYSTEMCTL = """\
#!/bin/sh
cd "$PLACE" || exit
while case $1 in --*) true ;; *) false ;; esac; do shift; done
verb=$1; shift
for unit; do :; done
case $verb in
show) [ -e "$unit.active" ] && echo loaded || echo not-found ;;
is-active) cat "$unit.active" ;;
is-enabled) cat "$unit.enabled" ;;
start) [ "$unit" != broken.service ] || { echo "Job for $unit failed" >&2; exit 1; }
    echo active >"$unit.active"; [ "$unit" != nftables.service ] || nft -f "$PLACE/nftables.conf" ;;
stop) echo inactive >"$unit.active"; [ "$unit" != nftables.service ] || nft flush ruleset ;;
enable) echo enabled >"$unit.enabled" ;;
disable) echo disabled >"$unit.enabled" ;;
reset-failed) ;;
*) exit 1 ;;
esac
"""


def test_service_and_unit(node: Node) -> None:
    node.program("systemctl", SYSTEMCTL)
    for unit, state in (("irqbalance", "active"), ("broken", "inactive")):
        (node.directory / f"{unit}.service.active").write_text(state + "\n")
        (node.directory / f"{unit}.service.enabled").write_text("enabled\n")
    Access(node, "service", "irqbalance.service").there_and_back("off")
    Access(node, "unit", "irqbalance.service").there_and_back("disabled")
    assert "failed" in Access(node, "service", "broken.service").refuses("on")
    assert "on or off" in Access(node, "service", "irqbalance.service").refuses("perhaps")
    assert "enabled or disabled" in Access(node, "unit", "irqbalance.service").refuses("perhaps")
    assert "there is no" in node.call("service_save", "-", "none.service").stderr


def test_tuned(node: Node) -> None:
    (node.directory / "profile").write_text("balanced")
    node.program(
        "tuned-adm",
        "#!/bin/sh\ncase $1 in\n"
        'active) [ -s "$PLACE/profile" ] && echo "Current active profile: $(cat "$PLACE/profile")" ||\n'
        'echo "No current active profile." ;;\n'
        'off) : >"$PLACE/profile" ;;\n'
        'profile) case $2 in balanced | network-latency) printf %s "$2" >"$PLACE/profile" ;;\n'
        "*) echo \"Requested profile '$2' doesn't exist.\" >&2; exit 1 ;; esac ;;\nesac\n",
    )
    access = Access(node, "tuned", str(node.directory / "active_profile"))
    access.there_and_back("network-latency")
    access.there_and_back("none")
    assert "doesn't exist" in access.refuses("fast")
    access.put("none")
    access.there_and_back("balanced")


# --- files that last ------------------------------------------------------------------------------------------


def _tree(top: Path) -> list[tuple[str, int, int, int, int, bytes]]:
    found = []
    for path in sorted(top.rglob("*")):
        about = path.lstat()
        link = path.is_symlink()
        content = os.fsencode(path.readlink()) if link else path.read_bytes() if path.is_file() else b""
        times = 0 if link or path.is_dir() else about.st_mtime_ns
        found.append((str(path), about.st_mode, about.st_uid, about.st_gid, times, content))
    return found


def _value(content: bytes, mode: str = "644") -> str:
    return f"file:{mode}:{base64.b64encode(content).decode()}"


@pytest.mark.parametrize("before", [b"", b"old", b"old\n", b"a\0b\n\n", b"\xff\xfe'\"$(x)\\\n" * 5000])
def test_a_stored_file_comes_back_to_the_byte(node: Node, before: bytes) -> None:
    top = node.directory / "etc"
    top.mkdir(mode=0o700)
    file = top / "a file.conf"
    file.write_bytes(before)
    file.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(file, 12, 34)
    os.utime(file, ns=(1_700_000_000_123_456_789,) * 2)
    tree = _tree(top)
    access = Access(node, "stored", str(file))
    saved = access.save()
    access.put(_value(b"new"))
    assert file.read_bytes() == b"new"
    assert top.stat().st_mode & 0o777 == 0o700
    access.restore(saved)
    assert _tree(top) == tree
    access.put("absent")
    assert access.get() == "absent"
    access.restore(saved)
    assert _tree(top) == tree


def test_a_stored_file_that_was_absent_takes_its_directories_with_it(node: Node) -> None:
    top = node.directory / "etc"
    top.mkdir()
    access = Access(node, "stored", str(top / "a/b/c.conf"))
    saved = access.save()
    access.put(_value(b"x\n", "600"))
    assert (top / "a").stat().st_mode & 0o777 == 0o755
    assert (top / "a/b/c.conf").stat().st_mode & 0o777 == 0o600
    access.restore(saved)
    assert _tree(top) == []
    access.put("absent")
    assert _tree(top) == []
    access.put(_value(b"x\n"))
    (top / "a/other").write_text("of somebody else")
    access.restore(saved)
    assert [Path(row[0]).name for row in _tree(top)] == ["a", "other"]


def test_a_stored_link(node: Node) -> None:
    top = node.directory / "etc"
    top.mkdir()
    (top / "goal").write_text("goal")
    (top / "link").symlink_to("goal")
    tree = _tree(top)
    access = Access(node, "stored", str(top / "link"))
    saved = access.save()
    access.put(_value(b"a file"))
    assert (top / "goal").read_text() == "goal"
    access.restore(saved)
    assert _tree(top) == tree
    access.put("link:/dev/null")
    assert (top / "link").readlink() == Path("/dev/null")
    access.restore(saved)
    assert _tree(top) == tree


def test_a_stored_file_of_another_kind_is_refused(node: Node) -> None:
    done = node.call("stored_save", "-", str(node.run))
    assert done.returncode != 0
    assert "is not a file" in done.stderr
    access = Access(node, "stored", str(node.directory / "x"))
    access.refuses("file:644:???not base64???")
    assert "a file is absent" in access.refuses("what")
    assert not list(node.directory.glob("x.wulf*"))


def test_what_was_half_written_goes(node: Node) -> None:
    access = Access(node, "stored", str(node.directory / "x"))
    before = access.save()
    mine = node.directory / f"x.wulf.{platform.node()}.2147483647"
    others = [node.directory / f"x.wulf.{name}" for name in (f"{platform.node()}.{os.getpid()}", "another.7")]
    for half in (mine, *others):
        half.write_text("half")
    assert access.save() == before
    assert not mine.exists()
    assert all(half.exists() for half in others)


def test_mpi_parameter(node: Node) -> None:
    place = node.directory / "elsewhere"
    place.mkdir()
    (place / "real.conf").write_text("# comment\nbtl = tcp,self\n  pml=ob1\nbtl_tcp_links = 2")
    (node.directory / "openmpi-mca-params.conf").symlink_to("elsewhere/real.conf")
    node.program("ompi_info", f'#!/bin/sh\n[ -z "$HOME" ] || echo "path:sysconfdir:{node.directory}"\n')
    tree = _tree(place)
    access = Access(node, "mpi_parameter", "btl_tcp_links")
    access.there_and_back("4")
    assert _tree(place) == tree
    access.there_and_back("default")
    two = Access(node, "mpi_parameter", "pml btl")
    assert two.get() == "ob1 tcp,self"
    two.there_and_back("ucx default")
    assert _tree(place) == tree
    assert (node.directory / "openmpi-mca-params.conf").is_symlink()
    node.program("ompi_info", "#!/bin/sh\nexit 1\n")
    assert "Open MPI is not installed" in node.call("mpi_parameter_save", "-", "btl").stderr


# --- what only root can do, in namespaces of its own -----------------------------------------------------------


def _fake_mounts(node: Node, mounts: Sequence[tuple[Path, str]]) -> None:
    text = "".join(f"mount --bind '{source}' '{target}' || exit\n" for source, target in mounts)
    node.program("enter", f'#!/bin/sh\n{text}exec "$@"\n')
    node.before = ["unshare", "--mount", str(node.programs / "enter")]


INTERRUPTS = """\
           CPU0       CPU1
{0}:    4000       1 IR-PCI-MSI 524288-edge eth0
{1}:    4000       1 IR-PCI-MSI 524289-edge eth0-TxRx-0
{2}:       7       2 IR-PCI-MSI 524290-edge eth0-TxRx-1
{3}:       7       2 IR-PCI-MSI 524291-edge eth01-TxRx-0
NMI:           0          0   Non-maskable interrupts
"""


def _interrupts(node: Node, numbers: Sequence[int], cpus: Sequence[str]) -> None:
    (node.directory / "interrupts").write_text(INTERRUPTS.format(*numbers))
    shutil.rmtree(node.directory / "irq", ignore_errors=True)
    for number, where in zip(numbers, cpus, strict=True):
        (node.directory / f"irq/{number}").mkdir(parents=True)
        (node.directory / f"irq/{number}/smp_affinity_list").write_text(where + "\n")


@pytest.mark.root
def test_interrupts_are_put_back_by_name_when_they_have_other_numbers(node: Node) -> None:
    _interrupts(node, [98, 99, 100, 101], ["0-1", "0", "1", "1"])
    _fake_mounts(
        node, [(node.directory / "interrupts", "/proc/interrupts"), (node.directory / "irq", "/proc/irq")]
    )
    access = Access(node, "irq_affinity", "eth0", "eth0")
    assert access.get() == "0-1 0 1"
    access.there_and_back("0 1 1", "0 1 1")
    saved = access.save()
    access.put("0")
    assert access.get() == "0 0 0"
    _interrupts(node, [120, 97, 121, 99], ["1", "1", "1", "0"])
    access.restore(saved)
    assert access.save() == saved
    assert (node.directory / "irq/99/smp_affinity_list").read_text() == "0\n"
    assert "no interrupts of its own" in node.call("irq_affinity_save", "eth7", "eth7").stderr


MODPROBE = """\
#!/bin/sh
cd "$PLACE" || exit
if [ "$1" = -r ]; then
    rm -rf class/eth0 module/igb/parameters addresses routes
    exit
fi
[ "$1" = igb ] || { echo "modprobe: FATAL: Module $1 not found" >&2; exit 1; }
case ${2:-} in *=wrong) echo "modprobe: ERROR: could not insert 'igb': Invalid argument" >&2; exit 1 ;; esac
mkdir -p class/eth0/device/driver module/igb/parameters
ln -s /sys/module/igb class/eth0/device/driver/module
echo 1500 >class/eth0/mtu
case ${2:-} in *=*) echo "${2#*=}" >"module/igb/parameters/${2%%=*}" ;; *)
    echo 3 >module/igb/parameters/InterruptThrottleRate ;;
esac
"""
IP = """\
#!/bin/sh
cd "$PLACE" || exit
replace() { touch "$1"; grep -qxF "$2" "$1" || echo "$2" >>"$1"; }
case "$*" in
-V) echo ip utility ;;
"-o addr show"*) cat addresses 2>/dev/null || : ;;
"-4 route show"*) cat routes 2>/dev/null || : ;;
"link set dev eth0 mtu "*) echo "$6" >class/eth0/mtu ;;
"addr replace "*) replace addresses "2: eth0 inet $3 scope global eth0" ;;
"route replace "*) shift 2; replace routes "${*% dev eth0}" ;;
*) exit 1 ;;
esac
"""


@pytest.mark.root
def test_a_module_is_loaded_anew_and_the_link_is_as_before(node: Node) -> None:
    for name in ("class", "module/igb"):
        (node.directory / name).mkdir(parents=True)
    node.program("modprobe", MODPROBE)
    node.program("ip", IP)
    _fake_mounts(
        node, [(node.directory / "class", "/sys/class/net"), (node.directory / "module", "/sys/module")]
    )
    assert node.call("modprobe", "igb").returncode == 0
    (node.directory / "class/eth0/mtu").write_text("9000\n")
    (node.directory / "addresses").write_text("2: eth0 inet 10.0.0.1/24 scope global eth0\n")
    (node.directory / "routes").write_text("10.1.0.0/16 via 10.0.0.254\n")

    def seen() -> list[str]:
        return [(node.directory / name).read_text() for name in ("class/eth0/mtu", "addresses", "routes")]

    before = seen()
    access = Access(node, "module", "InterruptThrottleRate", "eth0")
    assert access.get() == "3"
    access.there_and_back("1")
    assert seen() == before
    assert "Invalid argument" in access.refuses("wrong")
    assert seen() == before
    shutil.copytree(node.directory / "class/eth0", node.directory / "class/eth1", symlinks=True)
    assert "also drives eth1" in access.refuses("1")


class Network(Node):
    """A network namespace with an interface of its own."""

    def __init__(self, directory: Path, shell: Sequence[str]) -> None:
        super().__init__(directory, shell)
        # /sys shows the network of whoever mounts it.
        start = "mount -t sysfs sysfs /sys && exec sleep 300"
        self._keeper = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c", start])
        own = Path("/proc/self/ns/net").readlink()
        keeper = Path(f"/proc/{self._keeper.pid}")
        _wait(lambda: (keeper / "ns/net").readlink() != own)
        _wait(lambda: (keeper / "comm").read_text() == "sleep\n")
        self.before = ["nsenter", f"--target={self._keeper.pid}", "--net", "--mount"]
        for words in (
            "ip link add eth0 type veth peer name peer0",
            "ip addr add 10.9.0.1/24 dev eth0",
            "ip link set eth0 up",
            "ip link set peer0 up",
        ):
            self.inside(*words.split())

    def inside(self, *words: str, stdin: str = "") -> str:
        done = subprocess.run(
            [*self.before, *words], input=stdin, capture_output=True, text=True, timeout=20, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def close(self) -> None:
        self._keeper.kill()
        self._keeper.wait()


@pytest.fixture(params=SHELLS)
def network(request: pytest.FixtureRequest, tmp_path: Path) -> Network:
    made = Network(tmp_path, request.param)
    request.addfinalizer(made.close)
    return made


@pytest.mark.root
def test_link_and_sysctl(network: Network) -> None:
    mtu = Access(network, "link", "mtu", "eth0")
    mtu.there_and_back("9000")
    mtu.refuses("10")
    # /proc/sys/net is that of the process which opens it.
    Access(network, "sysctl", "net.ipv4.tcp_rmem").there_and_back("4096 131072 8388608")
    assert "does not take" in Access(network, "sysctl", "net.ipv4.tcp_congestion_control").refuses("nonsense")
    assert "there is no" in network.call("sysctl_save", "-", "net.ipv4.none").stderr


@pytest.mark.root
def test_route(network: Network) -> None:
    network.inside("ip", "route", "add", "10.10.0.0/16", "dev", "eth0", "scope", "link", "mtu", "1400")
    access = Access(network, "route", "rto_min", "eth0")
    assert access.get() == "default"
    access.there_and_back("5ms")
    access.put("7ms")
    access.there_and_back("default")
    assert access.get() == "7ms"
    access.refuses("soon")
    saved = access.save()
    access.put("9ms")
    # A route that another change takes away leaves nothing to put back; the others come back.
    network.inside("ip", "route", "del", "10.10.0.0/16", "dev", "eth0")
    lasting = network.call("route_lasting", *access.where, stdin=saved)
    assert lasting.stdout.splitlines() == [line for line in saved.splitlines() if "10.10." not in line]
    access.restore(saved)
    assert access.save() == lasting.stdout
    assert "no route of its own" in network.call("route_save", "none0", "rto_min").stderr


@pytest.mark.root
def test_route_to_one_address(network: Network) -> None:
    access = Access(network, "host_route", "10.20.0.2")
    assert access.get() == "none"
    access.there_and_back("via 10.9.0.2 dev eth0 src 10.9.0.1")
    network.inside("ip", "route", "add", "10.20.0.2/32", "via", "10.9.0.3", "dev", "eth0", "mtu", "1400")
    assert access.get() == "via 10.9.0.3 dev eth0 mtu 1400"
    access.there_and_back("via 10.9.0.2 dev eth0 src 10.9.0.1")
    access.there_and_back("none")
    # Somebody else's with a metric comes after it, and stays.
    network.inside("ip", "route", "add", "10.20.0.2/32", "via", "10.9.0.4", "dev", "eth0", "metric", "100")
    access.there_and_back("none")
    access.put("none")
    access.put("none")
    assert "10.20.0.2 via 10.9.0.4 dev eth0 metric 100" in network.inside("ip", "route")
    access.refuses("via 10.99.0.1 dev eth0")
    access.refuses("via nowhere")


RULESETS = {
    "none": "",
    "inet": "table inet filter { set good { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 192.168.0.1 } }\n"
    "chain input { type filter hook input priority filter; policy drop\nct state established,related counter accept\n"
    'tcp dport { 22, 80 } counter accept comment "ssh; { and } web"\nip saddr @good accept\n}\n'
    "chain forward { type filter hook forward priority filter; policy drop\n}\n"
    "chain output { type filter hook output priority filter; policy accept\nct state invalid drop\n}\n}\n",
    "ip and ip6": "table ip filter { chain INPUT { type filter hook input priority 0; policy accept\n"
    "tcp dport 22 accept\n}\n}\n"
    "table ip6 filter { chain INPUT { type filter hook input priority 0; policy accept\n"
    "icmpv6 type echo-request accept\n}\n}\n"
    "table ip nat { chain POSTROUTING { type nat hook postrouting priority srcnat; policy accept\nmasquerade\n}\n}\n",
    "several base chains": "table inet one { chain a { type filter hook input priority -10; policy accept\ndrop\n}\n"
    "chain b { type filter hook input priority 10; policy accept\njump c\n}\n"
    "chain c { limit rate 5/second counter drop\n}\n"
    "chain d { type filter hook prerouting priority mangle; policy accept\nct state new counter\n}\n}\n",
    "own words by others": "table inet other { chain in { type filter hook input priority 0; policy accept\n"
    'accept comment "wulfgar"\n}\n}\n',
}


@pytest.mark.root
@pytest.mark.parametrize("rules", RULESETS)
@pytest.mark.parametrize("value", ["exempt", "notrack"])
def test_firewall(network: Network, rules: str, value: str) -> None:
    network.inside("nft", "-f", "-", stdin=RULESETS[rules])
    access = Access(network, "firewall", "tracking", "eth0")
    before = network.inside("nft", "-n", "list", "ruleset")
    assert access.get() == "tracked"
    if rules == "none" and value == "exempt":
        # Nothing is filtered, so there is nothing to be exempt from.
        access.put(value)
        assert network.inside("nft", "-n", "list", "ruleset") == before
        return
    access.there_and_back(value)
    assert network.inside("nft", "-n", "list", "ruleset") == before
    other = {"exempt": "notrack", "notrack": "exempt"}[value]
    access.put(value)
    saved = access.save()
    access.put(other)
    access.restore(saved)
    assert access.save() == saved
    access.put("tracked")
    assert network.inside("nft", "-n", "list", "ruleset") == before
    assert "tracked, exempt or notrack" in access.refuses("off")


@pytest.mark.root
@pytest.mark.parametrize("rules", [name for name in RULESETS if name != "none"])
def test_the_service_of_the_firewall_comes_back_with_the_rules_that_were_there(
    network: Network, rules: str
) -> None:
    network.program("systemctl", SYSTEMCTL)
    (network.directory / "nftables.service.active").write_text("active\n")
    (network.directory / "nftables.conf").write_text("flush ruleset\ntable inet boot { }\n")
    network.inside("nft", "-f", "-", stdin=RULESETS[rules])
    before = network.inside("nft", "-n", "list", "ruleset")
    access = Access(network, "service", "nftables.service")
    access.there_and_back("off")
    assert network.inside("nft", "-n", "list", "ruleset") == before

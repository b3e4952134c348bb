"""Changes by a user who is not root: a real sshd and a real sudo, in namespaces of their own."""

from __future__ import annotations

import base64
import hashlib
import os
import random
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import wulf
from tests.contract.site import make_key
from tests.unit import spaces, tuning_fixture
from wulf.base import catalogue
from wulf.base.native import build
from wulf.node.change import configuration_files, steps
from wulf.node.change.guard import PLACE, program

pytestmark = [pytest.mark.root]

USER = "wulftester"
KNOB = "sysctl.net.ipv4.tcp_autocorking"
STEP = f"{KNOB}\tsysctl\t-\tnet.ipv4.tcp_autocorking\t0\n"
VALUE = "cat /proc/sys/net/ipv4/tcp_autocorking"


class Node:
    """A network and file systems of its own, with a user whose key sshd knows."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        home = directory / "home"
        home.mkdir()
        (home / ".ssh").mkdir()
        (home / ".ssh/authorized_keys").write_text(make_key(directory / "key") + "\n")
        (directory / "sysctl.d").mkdir()
        make_key(directory / "host_key")
        for name, line in (
            ("passwd", f"{USER}:x:64321:64321::/home:/bin/sh"),
            ("shadow", f"{USER}:*:19000::::::"),
            ("group", f"{USER}:x:64321:"),
        ):
            (directory / name).write_text(Path(f"/etc/{name}").read_text() + line + "\n")
        (directory / "sshd_config").write_text(
            f"HostKey {directory}/host_key\nStrictModes no\nUsePAM no\nPermitRootLogin no\n"
            "AuthorizedKeysFile /home/.ssh/authorized_keys\n"
        )
        mounts = [
            # An /etc of its own: what is made there is on no other node, and not on this machine.
            f"cp -a /etc {directory}/etc && mount --bind {directory}/etc /etc && mkdir -p /etc/wulf",
            *(
                f"mount -t tmpfs -o mode=755 none {place}"
                for place in ("/run", "/home", "/etc/sudoers.d", "/etc/wulf")
            ),
            "ip link set lo up && ip link add eth0 type veth peer name other0",
            "mkdir -p /var/lib/wulf /run/sshd && mount -t tmpfs none /var/lib/wulf",
            # On a disk: wulf keeps nothing in memory.
            *(
                f"mount --bind {directory}/{name} /etc/{name}"
                for name in ("passwd", "shadow", "group", "sysctl.d")
            ),
            f"cp -r {home}/. /home && chown -R 64321:64321 /home && chmod 755 /home",
            "touch /run/ready",
        ]
        start = " && ".join(mounts) + " && exec sleep 3000"
        self._keeper = subprocess.Popen(["unshare", "--net", "--mount", "bash", "-c", start])
        self.enter = ["nsenter", f"--target={self._keeper.pid}", "--net", "--mount", "--"]
        ready = Path(f"/proc/{self._keeper.pid}/root/run/ready")
        deadline = time.monotonic() + 30
        while Path("/run/ready").exists() or not ready.exists():
            assert time.monotonic() < deadline and self._keeper.poll() is None, "the node does not come up"
            time.sleep(0.05)
        self._write_client(directory)

    def _write_client(self, directory: Path) -> None:
        sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
        server = shlex.join([*self.enter, str(sshd), "-i", "-f", f"{directory}/sshd_config"])
        key = (directory / "host_key.pub").read_text()
        (directory / "known_hosts").write_text(f"node01 {key}")
        (directory / "ssh_config").write_text(
            f"Host *\n  User {USER}\n  IdentityFile {directory}/key\n  IdentitiesOnly yes\n  IdentityAgent none\n"
            f"  UserKnownHostsFile {directory}/known_hosts\n  GlobalKnownHostsFile none\n  ProxyCommand {server}\n"
        )
        (directory / "cluster.toml").write_text(
            '[cluster]\nnodes = "node01"\n[ssh]\nconfig = "ssh_config"\n[change]\nbecome = "sudo"\n'
        )

    def root(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command as the node's root."""
        return subprocess.run(
            [*self.enter, *words], input=stdin, capture_output=True, text=True, timeout=60, check=False
        )

    def user(self, text: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command as the user."""
        user = ["setpriv", "--reuid=64321", "--regid=64321", "--clear-groups", "sh", "-c", text]
        return self.root(*user, stdin=stdin)

    def wulf(self, *words: str) -> subprocess.CompletedProcess[str]:
        return wulf(self.directory, *words)

    def allow(self, commands: str) -> None:
        """Let the user run these commands as root."""
        self.root(
            "sh",
            "-c",
            "umask 337; cat >/etc/sudoers.d/site",
            stdin=f"{USER} ALL = (root) NOPASSWD: {commands}\n",
        )

    def install(self) -> None:
        """Put the guard there, as the user."""
        for words in (("settings", "set", f"{KNOB}=0"), ("rollback",)):
            done = self.wulf(*words)
            assert done.returncode == 0, done.stdout + done.stderr
        assert self.digest() == hashlib.sha256(program()).hexdigest()
        assert self.root("stat", "-c", "%u %g %a", PLACE).stdout == "0 0 700\n"

    def digest(self) -> str:
        """Return the digest of the guard that is there."""
        return self.root("sha256sum", PLACE).stdout[:64]

    def grant(self) -> None:
        """Run what an administrator runs."""
        script = self.wulf("settings", "sudoers", "--user", USER, "--install", "--interface", "eth0")
        assert script.returncode == 0, script.stderr
        self.root("rm", "-f", "/etc/sudoers.d/site")
        done = self.root("sh", "-s", stdin=script.stdout)
        assert done.returncode == 0, done

    def guard(self, words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Call the guard as the user, by way of sudo."""
        return self.user(f"sudo -n {PLACE} {words}", stdin=stdin)

    def end(self) -> None:
        spaces.end({spaces.space_of(self._keeper.pid)})
        self._keeper.wait()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    for program_name in ("sudo", "visudo", "sshd"):
        if shutil.which(program_name, path=f"{os.environ['PATH']}:/usr/sbin") is None:
            pytest.skip(f"{program_name} is not installed (apt install sudo openssh-server)")
    made = Node(tmp_path_factory.mktemp("sudo"))
    yield made
    made.end()


@pytest.fixture
def granted(node: Node) -> Iterator[Node]:
    usable = hashlib.sha256(program()).hexdigest() == node.digest()
    if not usable or node.root("grep", "-q", "64321", "/etc/wulf/grant").returncode:
        node.grant()
    yield node
    for change in ("A", "B", "M"):
        node.root(PLACE, "undo", change)
    node.root(PLACE, "unlock", "me")
    node.root("sh", "-c", "rm -rf /etc/sudoers.d/path /var/lib/wulf/tx/?")


@pytest.mark.parametrize("commands", ["/bin/true"])
def test_who_may_do_less_than_everything_is_refused(node: Node, commands: str) -> None:
    node.root("rm", "-f", "/etc/sudoers.d/wulf", "/etc/wulf/grant")
    node.allow(commands)
    cluster = (node.directory / "cluster.toml").read_text()
    tuning_fixture.stored(
        node.directory / "runs/old", cluster=cluster, nodes=["node01"], status="interrupted"
    )
    # All say it before they build or measure anything.
    for words in (
        ("settings", "set", f"{KNOB}=0"),
        ("tune", "--run", "t", "--knobs", KNOB),
        ("tune", "all", "--run", "t", "--knobs", KNOB),
        ("tune", "--resume", "old"),
        ("rollout", "--run", "r", f"{KNOB}=0"),
    ):
        done = wulf(node.directory, *words, XDG_CACHE_HOME=str(node.directory / "cache"))
        assert done.returncode == 1, (words, done)
        assert "node01: cannot be changed: sudo there asks for a password" in done.stderr
        assert "everything without a password" in done.stderr
        assert "wulf settings sudoers --install" in done.stderr
    assert {path.name for path in node.directory.glob("cache/**/wulf-*")} <= {"wulf-guard"}
    status = node.wulf("settings", "status")
    assert (status.returncode, "everything without a password" in status.stdout) == (3, True)
    assert node.root(*VALUE.split()).stdout == "1\n"


def test_who_may_do_everything_is_root_to_the_guard(node: Node) -> None:
    node.root("rm", "-f", "/etc/sudoers.d/wulf", "/etc/wulf/grant")
    node.allow("ALL")
    node.install()
    done = node.wulf("settings", "set", f"{KNOB}=0")
    assert done.returncode == 0, done.stdout + done.stderr
    kept = node.wulf("settings", "persist")
    assert kept.returncode == 0, kept.stdout + kept.stderr
    assert "net.ipv4.tcp_autocorking = 0" in node.root("cat", "/etc/sysctl.d/90-wulf.conf").stdout
    back = node.wulf("rollback")
    assert back.returncode == 0, back.stdout + back.stderr
    assert node.root(*VALUE.split()).stdout == "1\n"
    assert node.root("ls", "/etc/sysctl.d").stdout == ""


def test_what_is_granted_works(granted: Node) -> None:
    done = granted.wulf("settings", "set", f"{KNOB}=0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "confirmed over a new connection" in done.stdout
    assert granted.root(*VALUE.split()).stdout == "0\n"
    status = granted.wulf("settings", "status")
    assert (status.returncode, f"{KNOB} = 0" in status.stdout) == (0, True), status
    assert granted.wulf("settings", "verify").returncode == 0
    back = granted.wulf("rollback")
    assert back.returncode == 0, back.stdout + back.stderr
    assert granted.root(*VALUE.split()).stdout == "1\n"


def test_a_guard_of_another_version_is_said_and_not_replaced(granted: Node) -> None:
    granted.root("sh", "-c", f"printf x >>{PLACE}")
    before = granted.digest()
    done = granted.wulf("settings", "set", f"{KNOB}=0")
    assert done.returncode == 1
    assert "the guard there is not that of this wulf" in done.stdout
    assert granted.digest() == before


def test_nobody_confirms_and_it_is_undone(granted: Node) -> None:
    for words in ("lock me 60", "begin A me 6", "apply A"):
        done = granted.guard(words, stdin=STEP)
        assert done.returncode == 0, done
    assert granted.root(*VALUE.split()).stdout == "0\n"
    deadline = time.monotonic() + 60
    while granted.root(*VALUE.split()).stdout == "0\n":
        assert time.monotonic() < deadline, "it was not undone"
        time.sleep(0.5)


def test_the_path_of_who_calls_is_nowhere_in_use(granted: Node) -> None:
    """Rules of sudo may hand it on."""
    names = (
        "id",
        "stat",
        "date",
        "tr",
        "cat",
        "grep",
        "sed",
        "awk",
        "mkdir",
        "flock",
        "sh",
        "systemctl",
        "nft",
        "ip",
    )
    traps = "; ".join(f"printf '#!/bin/sh\\n: >/home/called-{name}\\n' >/home/traps/{name}" for name in names)
    granted.user(f"mkdir -p /home/traps; {traps}; chmod 755 /home/traps/*")
    granted.root("sh", "-c", "umask 337; echo 'Defaults !secure_path, env_keep += PATH' >/etc/sudoers.d/path")
    step = "nic.mtu\tlink\teth0\tmtu\t1400\n"
    for words in ("version", "status", "lock me 60", "begin A me 30", "apply A", "undo A", "unlock me"):
        done = granted.user(f"PATH=/home/traps:$PATH sudo -n {PLACE} {words}", stdin=step)
        assert done.returncode == 0, done
    granted.root("rm", "/etc/sudoers.d/path")
    assert granted.root("find", "/home", "-name", "called-*").stdout == ""


#: What a caller does before → whether the guard may go on: it is refused, or does the same as ever.
LIMITS = (
    *(f"ulimit -v {kib}" for kib in (1000, 2000, 4000, 6550, 7800, 8000, 20000, 100000)),
    *(f"ulimit -{letter} {number}" for letter in "fdsl" for number in (0, 1, 100)),
    *(f"ulimit -n {number}" for number in (3, 4, 5, 8)),
    "ulimit -t 1",
    "trap '' HUP INT TERM PIPE CHLD ALRM",
    "exec 0<&-",
    "umask 000",
    "cd /home",
    "export LD_PRELOAD=/home/x.so LD_LIBRARY_PATH=/home IFS=x SUDO_UID=0 PATH=/home",
)


@pytest.mark.parametrize("limit", LIMITS)
def test_no_limit_of_the_caller_grants_anything(granted: Node, limit: str) -> None:
    big = "a" * 60000
    evil = f"k\tfile\t-\t/home/x\t{big}\nk2\tfile\t-\t/etc/sudoers.d/evil\t{USER} ALL=(ALL) NOPASSWD: ALL\n"
    for stdin in (evil, evil[-100:]):
        for words in ("lock me 60", "begin B me 30", "apply B"):
            granted.user(f"{limit}; /usr/bin/sudo -n {PLACE} {words}", stdin=stdin)
    assert granted.root("ls", "/etc/sudoers.d").stdout.split() == ["wulf"]
    assert granted.root("test", "-e", "/var/lib/wulf/tx/B").returncode == 1


#: What any user may set for a program that he starts.
INHERITED = (
    "env",
    "setarch $(uname -m) --uname-2.6",
    "taskset 1",
    "ionice -c 3",
    "chrt --idle 0",
    "chrt --batch 0",
    "nice -n 19",
    "choom -n 1000 --",
    *(f"{found} /home/inherited.py" for found in (shutil.which("python3", path="/usr/bin:/bin"),) if found),
)
_INHERITED = """\
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(29, 10**15, 0, 0, 0)  # PR_SET_TIMERSLACK
os.execvp(sys.argv[1], sys.argv[1:])
"""
#: How a process is run; all but its numbers.
_HOW = (
    "pid=$(cat /run/wulf/%s); cat /proc/$pid/oom_score_adj /proc/$pid/personality /proc/$pid/timerslack_ns "
    "/proc/$pid/limits; "
    "grep -e Cpus_allowed_list -e ^Sig[BI] /proc/$pid/status; cut -d ' ' -f 18,19,41 /proc/$pid/stat; ionice -p $pid"
)


def test_the_watchers_have_nothing_of_how_a_caller_runs_his_own(granted: Node) -> None:
    (granted.directory / "inherited.py").write_text(_INHERITED)
    granted.root("cp", f"{granted.directory}/inherited.py", "/home/inherited.py")
    found = {}
    for way in INHERITED:
        assert granted.guard("lock me 60").returncode == 0
        done = granted.user(f"{way} sudo -n {PLACE} begin A me 60", stdin=STEP)
        assert done.returncode == 0, (way, done)
        found[way] = [granted.root("sh", "-c", _HOW % role).stdout for role in ("watcher", "keeper", "spare")]
        granted.guard("undo A")
        granted.root("rm", "-rf", "/var/lib/wulf/tx/A")
        deadline = time.monotonic() + 30
        while granted.root("test", "-e", "/run/wulf/watcher").returncode == 0:
            assert time.monotonic() < deadline, "the watcher does not retire"
            time.sleep(0.1)
    assert all(len(text.splitlines()) > 20 for text in found["env"]), found["env"]
    assert {way: texts == found["env"] for way, texts in found.items()} == dict.fromkeys(INHERITED, True), (
        found
    )


def test_what_is_explained_is_what_anybody_could_read(granted: Node) -> None:
    granted.root("sh", "-c", "mkdir -m 700 /run/secret && touch /run/secret/there")
    said = [
        granted.guard("explain", stdin=f"k\tfile\t-\t/run/secret/{name}\tx\n").stdout
        for name in ("there", "not-there")
    ]
    assert said[0] == said[1]


@pytest.mark.parametrize(
    "verb",
    [
        "undo A",
        "extend A 60",
        "confirm A",
        "abandon A",
        "part A 1",
        "unlock root-owner",
        "swap A B root-owner 60",
    ],
)
def test_what_is_somebody_elses_is_not_ended(granted: Node, verb: str) -> None:
    granted.root(PLACE, "lock", "root-owner", "600")
    granted.root(PLACE, "begin", "A", "root-owner", "600", stdin=STEP)
    granted.root(PLACE, "apply", "A")
    done = granted.guard(verb, stdin=STEP)
    state = granted.root("cat", "/var/lib/wulf/tx/A/state").stdout
    lock = granted.root("cat", "/run/wulf/lock").stdout
    granted.root(PLACE, "undo", "A")
    granted.root(PLACE, "unlock", "root-owner")
    assert (done.returncode != 0 or "unlock" in verb, state.split()[0]) == (True, "applied"), done
    assert lock.startswith("root-owner")


def test_a_change_that_runs_out_ends_no_lease_of_somebody_else_under_the_same_name(granted: Node) -> None:
    granted.guard("lock me 600")
    granted.guard("begin A me 3", stdin=STEP)
    assert granted.guard("apply A").returncode == 0
    granted.guard("unlock me")
    assert granted.root(PLACE, "lock", "me", "600").returncode == 0
    deadline = time.monotonic() + 60
    while granted.root("cat", "/var/lib/wulf/tx/A/state").stdout.split()[0] != "undone":
        assert time.monotonic() < deadline
        time.sleep(0.2)
    time.sleep(1)
    assert granted.root("cat", "/run/wulf/lock").stdout.startswith("me\t")


def test_leases_and_deadlines_have_an_end(granted: Node) -> None:
    assert "too long" in granted.guard("lock me 999999999").stdout
    assert granted.guard("lock me 3600").returncode == 0
    assert "too long" in granted.guard("begin B me 999999999", stdin=STEP).stdout


#: What who calls is to the guard where root calls it: a test can look at it, and trace it.
AS_CALLER = ["env", "SUDO_UID=64321"]


def _reader(guard: int) -> Path:
    """Wait for the process that reads for a guard, and has begun to."""
    children = Path(f"/proc/{guard}/task/{guard}/children")
    deadline = time.monotonic() + 20
    while True:
        for pid in children.read_text().split():
            if "Seccomp:\t2" in Path(f"/proc/{pid}/status").read_text():
                return Path(f"/proc/{pid}")
        assert time.monotonic() < deadline, "nobody reads"
        time.sleep(0.01)


def test_what_a_caller_sends_is_read_by_a_process_without_rights(granted: Node) -> None:
    assert granted.guard("lock me 60").returncode == 0
    words = [*granted.enter, *AS_CALLER, PLACE, "begin", "B", "me", "30"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as guard:
        reader = _reader(guard.pid)
        status = dict(line.split(":\t", 1) for line in (reader / "status").read_text().splitlines())
        files = sorted(path.name for path in (reader / "fd").iterdir())
        limits = (reader / "limits").read_text()
        os.kill(int(reader.name), 9)
        said = guard.communicate(STEP)[0]
    assert {status[key] for key in ("Uid", "Gid")} == {"\t".join(["65534"] * 4)}
    assert status["Groups"].strip() == ""
    assert {int(status[f"Cap{which}"], 16) for which in ("Inh", "Prm", "Eff", "Amb")} == {0}
    assert (status["NoNewPrivs"], files) == ("1", ["0", "1", "2"])
    for name in ("Max processes", "Max file size"):
        assert [line.split()[3] for line in limits.splitlines() if line.startswith(name)] == ["0"], limits
    # It has ended before it said anything: nothing is granted.
    assert (guard.returncode, said) == (1, "error\tnot through sudo: what is asked cannot be read\n")
    assert granted.root("test", "-e", "/var/lib/wulf/tx/B").returncode == 1


@pytest.fixture
def faulty(granted: Node) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Return what has the caller's plan read by a process that does something of its own when it has read."""
    program_of_tests = build.build_program("wulf-guard-faults", None).path
    granted.root("mkdir", "-p", "/run/wulf-fault")
    granted.root("cp", str(program_of_tests), "/run/faulty")
    assert granted.guard("lock me 600").returncode == 0

    def run(fault: str, *words: str, stdin: str = STEP) -> subprocess.CompletedProcess[str]:
        granted.root("sh", "-c", f"echo '{fault}' >/run/wulf-fault/reader")
        return granted.root(*AS_CALLER, "/run/faulty", *words, stdin=stdin)

    yield run
    granted.root("rm", "-rf", "/run/wulf-fault", "/run/faulty")


@pytest.mark.parametrize("fault", ["open", "write", "fork", "kill", "leave"])
def test_what_a_reader_does_beyond_reading_ends_it(
    granted: Node, faulty: Callable[..., Any], fault: str
) -> None:
    assert faulty("none", "where").returncode == 0
    done = faulty(fault, "begin", "B", "me", "30")
    assert (done.returncode, "cannot be read" in done.stdout) == (1, True), done
    assert granted.root("test", "-e", "/var/lib/wulf/tx/B").returncode == 1


def _check_readers_that_lie(granted: Node, faulty: Callable[..., Any], seeds: Sequence[int]) -> None:
    """What is begun after that is of the catalogue all the same."""
    other = "nic.gro\tethtool\teth0\tfeature.generic-receive-offload\toff\n"
    kept = f"{_SYSCTL_FILE}\tstored\t-\t{_SYSCTL_FILE}\tmade:B:-|{KNOB}=0\n"
    codes = []
    for seed in seeds:
        done = faulty(f"flip {seed}", "swap", "-", "B", "me", "30", stdin=STEP + other + kept)
        plan = granted.root("cat", "/var/lib/wulf/tx/B/plan").stdout
        made = granted.root("sh", "-c", "find /etc -newer /run/wulf-fault/reader -type f").stdout.split()
        granted.root(PLACE, "undo", "B")
        granted.root("rm", "-rf", "/var/lib/wulf/tx/B")
        codes.append(done.returncode)
        assert done.returncode in (0, 1, 11), (seed, done)
        assert set(made) <= {_SYSCTL_FILE, "/etc/systemd/system/wulf-recover.service"}, (seed, made)
        for knob, kind, interface, target, value in (line.split("\t") for line in plan.splitlines()):
            if kind == "stored":
                assert (knob, interface, value.startswith("made:")) == (target, "-", True), (seed, plan)
                continue
            row = catalogue.knob(knob)
            assert (kind, interface) in ((row.access.kind, "-"), (row.access.kind, "eth0")), (seed, plan)
            assert target == row.access.target.replace("{interface}", interface)
            assert steps.may_have(row, value), (seed, plan)
    assert codes.count(1) > len(codes) / 2, codes


def test_a_reader_that_lies_gets_nothing_else(granted: Node, faulty: Callable[..., Any]) -> None:
    _check_readers_that_lie(granted, faulty, range(40))


@pytest.mark.thorough
def test_many_readers_that_lie_get_nothing_else(granted: Node, faulty: Callable[..., Any]) -> None:
    _check_readers_that_lie(granted, faulty, range(40, 1000))


@pytest.mark.parametrize("error", ["ENOSYS", "EINVAL"])
def test_a_kernel_without_filters_of_calls_reads_all_the_same(granted: Node, error: str) -> None:
    if shutil.which("strace", path="/usr/bin:/bin") is None:
        pytest.skip("strace is not installed (apt install strace)")
    assert granted.guard("lock me 60").returncode == 0
    trace = ["strace", "-f", "-qq", "-o", "/run/trace", "-e", "trace=seccomp,setresuid"]
    done = granted.root(*trace, "-e", f"inject=seccomp:error={error}", *AS_CALLER, PLACE, "where", stdin=STEP)
    calls = granted.root("cat", "/run/trace").stdout
    assert (done.returncode, "(INJECTED)" in calls, "setresuid(65534, 65534, 65534" in calls) == (
        0,
        True,
        True,
    ), (done, calls)


AUTOCORKING = "sysctl\t-\tnet.ipv4.tcp_autocorking"
ROOT_SHELLS = [
    "k\tfile\t-\t/etc/passwd\tx",
    "napi.threaded\tfile\t-\t/sys/class/net/../../../etc/threaded\t1",
    "napi.threaded\tfile\t../../../etc\t/sys/class/net/../../../etc/threaded\t1",
    "nic.mtu\tlink\t--batch\tmtu\t1500",
    "nic.mtu\tlink\t..\tmtu\t1500",
    "nic.mtu\tlink\tother0\tmtu\t1500",
    "net.conntrack\tfirewall\tother0\ttracking\texempt",
    "net.conntrack\tfirewall\t-\ttracking\texempt",
    f"{KNOB}\tsysctl\t-\tkernel.core_pattern\t|/tmp/x",
    f"{KNOB}\t{AUTOCORKING}\ta[$(id)]",
    f"{KNOB}\t{AUTOCORKING}\t2",
    f"k\t{AUTOCORKING}\t0",
    f"{KNOB}\t{AUTOCORKING}\t0\nk\tfile\t-\t/etc/x\ty",
    "sysctl.net.ipv4.tcp_rmem\tsysctl\t-\tnet.ipv4.tcp_rmem\t@../../etc",
    "k\tunit\t-\tssh.service\tdisabled",
    "svc.tuned\ttuned\t-\t/etc/tuned/active_profile\t../../tmp/evil",
    "k\tstored\t-\t/etc/sudoers.d/evil\tfile:440:eA==",
    "k\tstored\t-\t/etc/sysctl.d/90-wulf.conf\tfile:644:eA==",
    f"\t{KNOB}\t{AUTOCORKING}\t0",
    f"{KNOB}\t{AUTOCORKING}\t0\r",
    f"{KNOB}\t{AUTOCORKING}\t@A/saved.1",
]


_SYSCTL_FILE = "/etc/sysctl.d/90-wulf.conf"
#: Path → what is said of it, and would not be a file that keeps settings of the catalogue.
MADE = [
    (_SYSCTL_FILE, "file:644:eA=="),
    (_SYSCTL_FILE, "link:/home/evil"),
    (_SYSCTL_FILE, "made:B:-"),
    (_SYSCTL_FILE, "made:B:-|sysctl.kernel.core_pattern=x"),
    (_SYSCTL_FILE, f"made:B:-|{KNOB}=2"),
    (_SYSCTL_FILE, f"made:B:-|{KNOB}"),
    (_SYSCTL_FILE, f"made:../B:-|{KNOB}=0"),
    (_SYSCTL_FILE, f"made:B:other0|{KNOB}=0"),
    ("/etc/sysctl.d/../sudoers.d/evil", f"made:B:-|{KNOB}=0"),
    ("/etc/sudoers.d/evil", f"made:B:-|{KNOB}=0"),
    ("/etc/sudoers.d/evil", "absent"),
    ("/etc/passwd", "absent"),
    ("/etc/wulf/grant", "absent"),
    ("/etc/systemd/system/ssh.service.d/90-wulf.conf", "made:B:-"),
    ("/etc/systemd/system/multi-user.target.wants/evil.service", "made:B:-"),
    ("/etc/systemd/network/10-wulf-other0.link", "made:B:other0|nic.mtu=1400"),
    ("/etc/systemd/network/10-wulf-other0.link", "made:B:eth0|nic.mtu=1400"),
    ("/etc/systemd/network/../evil.network.d/90-wulf.conf", "made:B:eth0|nic.mtu=1400"),
    ("/etc/wulf/settings.sh", "made:B:other0|nic/nic.gro=off"),
    ("/etc/wulf/settings.sh", "made:B:eth0|nic,other0/nic.gro=off"),
]


@pytest.mark.parametrize(("path", "value"), MADE)
def test_the_guard_makes_only_files_that_keep_settings_of_the_catalogue(
    granted: Node, path: str, value: str
) -> None:
    assert granted.guard("lock me 60").returncode == 0
    files = "find /etc -newer /run/ready -printf '%p %T@ %s\\n' | sort"
    before = granted.root("sh", "-c", files).stdout
    for step in (f"{path}\tstored\t-\t{path}\t{value}\n", f"k\tstored\t-\t{path}\t{value}\n"):
        done = granted.guard("begin B me 30", stdin=step)
        assert (done.returncode, "not through sudo" in done.stdout) == (1, True), done
    assert granted.root("sh", "-c", files).stdout == before


_UNIT = configuration_files.SETTINGS_UNIT
_SCRIPT_OF_OTHERS = ("/etc/wulf/settings.sh", "made:R:other0|nic/nic.gro=off")
#: What has the script run goes with it.
RUNS = [
    (_UNIT, "made:R:-", "absent"),
    (configuration_files.wanted(_UNIT), "made:R:-", "absent"),
    ("/etc/systemd/system/nftables.service.d/90-wulf.conf", "made:R:-", "absent"),
]


@pytest.mark.parametrize(("path", "made", "value"), RUNS)
def test_what_runs_the_settings_of_another_interface_stays(
    granted: Node, path: str, made: str, value: str
) -> None:
    steps_of_root = "".join(
        f"{where}\tstored\t-\t{where}\t{what}\n" for where, what in (_SCRIPT_OF_OTHERS, (path, made))
    )
    assert granted.root(PLACE, "lock", "root", "60").returncode == 0
    assert granted.root(PLACE, "swap", "-", "R", "root", "60", stdin=steps_of_root).returncode == 0
    assert granted.root(PLACE, "confirm", "R").returncode == 0
    granted.root(PLACE, "unlock", "root")
    assert granted.guard("lock me 60").returncode == 0
    done = granted.guard("swap - A me 30", stdin=f"{path}\tstored\t-\t{path}\t{value}\n")
    there = granted.root("ls", path).stdout
    granted.guard("unlock me")
    granted.root(
        "sh",
        "-c",
        f"rm -rf {path} {_SCRIPT_OF_OTHERS[0]} /var/lib/wulf/tx/R /var/lib/wulf/tx/A /var/lib/wulf/history",
    )
    assert (done.returncode, "other0" in done.stdout, there) == (11, True, f"{path}\n"), done


#: Files of interfaces that are not granted, as root has had them made → what a user asks for.
OTHERS = [
    ("/etc/systemd/network/10-wulf-other0.link", "", "absent"),
    ("/etc/wulf/settings.sh", "made:R:other0|nic/nic.gro=off", "absent"),
    ("/etc/wulf/settings.sh", "made:R:eth0|nic,other0/nic.gro=off", "made:B:eth0|nic/nic.gro=off"),
    ("/etc/NetworkManager/dispatcher.d/90-wulf-settings", "made:R:other0", "absent"),
    ("/etc/NetworkManager/dispatcher.d/90-wulf-settings", "made:R:other0", "made:B:eth0"),
    ("/etc/network/if-up.d/wulf-settings", "made:R:other0", "made:B:eth0"),
]


@pytest.mark.parametrize(("path", "made", "value"), OTHERS)
def test_what_is_kept_for_another_interface_stays(granted: Node, path: str, made: str, value: str) -> None:
    granted.root("sh", "-c", f"mkdir -p {path.rpartition('/')[0]}")
    if made:
        assert granted.root(PLACE, "lock", "root", "60").returncode == 0
        done = granted.root(
            PLACE, "swap", "-", "R", "root", "60", stdin=f"{path}\tstored\t-\t{path}\t{made}\n"
        )
        assert done.returncode == 0, done
        assert granted.root(PLACE, "confirm", "R").returncode == 0
        granted.root(PLACE, "unlock", "root")
    else:
        granted.root("sh", "-c", f"echo '# Written by wulf (change R)' >{path}")
    before = granted.root("cat", path).stdout
    assert before
    assert granted.guard("lock me 60").returncode == 0
    line = f"{path}\tstored\t-\t{path}\t{value}\n"
    answers = [granted.guard("swap - A me 30", stdin=line)]
    if made:
        answers += [granted.guard(words) for words in ("rollback B me 30 original", "apply B")]
    there = granted.root("cat", path).stdout
    granted.guard("unlock me")
    granted.root("sh", "-c", f"rm -rf {path} /var/lib/wulf/tx/R /var/lib/wulf/tx/A /var/lib/wulf/tx/B")
    assert there == before, answers
    assert [one.returncode for one in (answers[0], answers[-1])] in ([1, 1], [11, 11]), answers
    assert all("other0" in one.stdout for one in (answers[0], answers[-1])), answers


@pytest.mark.parametrize("verb", ["abandon history", "leaves A"])
def test_what_root_has_done_is_neither_given_up_nor_shown(granted: Node, verb: str) -> None:
    secret = "/etc/wulf/secret"
    granted.root("sh", "-c", f"umask 077; echo pearl >{secret}; echo broken >/var/lib/wulf/history")
    assert granted.root(PLACE, "lock", "root", "60").returncode == 0
    step = f"{secret}\tstored\t-\t{secret}\tabsent\n"
    assert granted.root(PLACE, "swap", "-", "A", "root", "60", stdin=step).returncode == 0
    done = granted.guard(verb)
    history = granted.root("cat", "/var/lib/wulf/history").stdout
    granted.root(PLACE, "undo", "A")
    granted.root(PLACE, "unlock", "root")
    granted.root("sh", "-c", f"rm -f /var/lib/wulf/history {secret}")
    assert (done.returncode, base64.b64encode(b"pearl")[:6].decode() in done.stdout) == (10, False), done
    assert history == "broken\n"


def test_what_root_has_written_himself_is_not_shown(granted: Node) -> None:
    secret, content = "/etc/wulf/secret", base64.b64encode(b"pearl").decode()
    assert granted.root(PLACE, "lock", "root", "60").returncode == 0
    step = f"{secret}\tstored\t-\t{secret}\tfile:600:{content}\n"
    assert granted.root(PLACE, "swap", "-", "A", "root", "60", stdin=step).returncode == 0
    assert granted.root(PLACE, "confirm", "A").returncode == 0
    granted.root(PLACE, "unlock", "root")
    said = [granted.root(PLACE, "status").stdout, granted.guard("status").stdout]
    granted.root("sh", "-c", f"rm -rf {secret} /var/lib/wulf/tx/A")
    assert [(secret in one, content in one) for one in said] == [(True, True), (True, False)], said


def test_who_has_a_cgroup_of_his_own_freezes_no_guard(granted: Node) -> None:
    """With a tree of cgroups of his own (user sessions have one) he could stop who has the lock."""
    roots = [Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup")]
    root = next((one for one in roots if (one / "cgroup.procs").exists()), None)
    if root is None or not os.access(root / "cgroup.procs", os.W_OK):
        pytest.skip("there is no cgroup2 here that may be written")
    group = root / f"wulf-test-{os.getpid()}"
    group.mkdir()
    try:
        join = f"echo $$ >{group}/cgroup.procs && exec "
        words = ["sh", "-c", join + shlex.join([*granted.enter, *AS_CALLER, PLACE, "where"])]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as guard:
            _reader(guard.pid)
            found = [
                line
                for pid in (guard.pid, 1)
                for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()
                if line.startswith("0::")
            ]
            guard.communicate(STEP)
        assert found[0] == found[1]
    finally:
        group.rmdir()


def test_who_empties_a_pipe_himself_keeps_no_process_waiting(granted: Node) -> None:
    """The one who alternates has looked whether somebody asks, and finds nothing."""
    assert granted.guard("lock me 60").returncode == 0
    assert granted.guard("swap - A me 60", stdin=STEP).returncode == 0
    assert granted.guard("alternate A 1 1").returncode == 0
    flags = granted.root(
        "sh",
        "-c",
        "for pid in /proc/[0-9]*; do if tr '\\0' ' ' <$pid/cmdline | grep -q 'wulf/guard alternating A'; then "
        "for file in $pid/fd/*; do case $(readlink $file) in */A.ask) cat $pid/fdinfo/${file##*/} ;; esac; done; "
        "fi; done",
    ).stdout
    granted.guard("undo A")
    assert int(flags.split("flags:")[1].split()[0], 8) & os.O_NONBLOCK, flags


#: Path → what is said of it, which is found to be none when it is to be made.
UNMADE = [
    (_SYSCTL_FILE, "made:B:eth0|nic.mtu=1400"),
    ("/etc/modprobe.d/wulf.conf", f"made:B:eth0|{KNOB}=0"),
    ("/etc/modprobe.d/wulf.conf", "made:B:eth0|nic.InterruptThrottleRate=3"),
    ("/etc/wulf/settings.sh", "made:B:eth0|evil/nic.gro=off"),
    ("/etc/wulf/settings.sh", "made:B:-|nic/nic.gro=off"),
    ("/etc/wulf/settings.sh", "made:B:-|node/svc.tuned=balanced"),
    ("/etc/systemd/network/10-wulf-eth0.link", "made:B:eth0|nic.mtu=1400"),
    ("/etc/systemd/network/evil.network.d/90-wulf.conf", "made:B:eth0|nic.mtu=1400"),
]


@pytest.mark.parametrize(("path", "value"), UNMADE)
def test_what_cannot_be_made_so_is_not(granted: Node, path: str, value: str) -> None:
    assert granted.guard("lock me 60").returncode == 0
    assert granted.guard("begin B me 30", stdin=f"{path}\tstored\t-\t{path}\t{value}\n").returncode == 0
    done = granted.guard("apply B")
    assert (done.returncode, granted.root("test", "-e", path).returncode) == (11, 1), done


@pytest.mark.parametrize("value", ["absent", f"made:A:-|{KNOB}=0"])
def test_a_file_of_somebody_elses_is_neither_written_nor_taken_away(granted: Node, value: str) -> None:
    text = "net.ipv4.tcp_autocorking = 1\n"
    granted.root("sh", "-c", f"cat >{_SYSCTL_FILE}", stdin=text)
    assert granted.guard("lock me 60").returncode == 0
    begun = granted.guard("begin A me 30", stdin=f"{_SYSCTL_FILE}\tstored\t-\t{_SYSCTL_FILE}\t{value}\n")
    assert begun.returncode == 0, begun
    done = granted.guard("apply A")
    there = granted.root("cat", _SYSCTL_FILE).stdout
    granted.root("rm", _SYSCTL_FILE)
    assert (done.returncode, "somebody else's file" in done.stdout, there) == (11, True, text), done


def test_what_is_set_is_kept_through_sudo(granted: Node) -> None:
    for words in (("set", f"{KNOB}=0"), ("persist",), ("verify",)):
        done = granted.wulf("settings", *words)
        assert done.returncode == 0, done.stdout + done.stderr
    text = granted.root("cat", _SYSCTL_FILE).stdout.splitlines()
    assert text[0].startswith("# Written by wulf (change ")
    assert text[1:] == ["net.ipv4.tcp_autocorking = 0"]
    assert granted.root("stat", "-c", "%u %g %a", _SYSCTL_FILE).stdout == "0 0 644\n"
    back = granted.wulf("rollback")
    assert back.returncode == 0, back.stdout + back.stderr
    assert granted.root("ls", "/etc/sysctl.d").stdout == ""


@pytest.mark.parametrize("lines", ROOT_SHELLS)
def test_the_guard_sets_only_what_the_catalogue_names(granted: Node, lines: str) -> None:
    assert granted.guard("lock me 60").returncode == 0
    for verb in ("begin B me 30", "swap - B me 30"):
        done = granted.guard(verb, stdin=lines + "\n")
        assert (done.returncode, "not through sudo" in done.stdout) == (1, True), done
    assert granted.root("test", "-e", "/var/lib/wulf/tx/B").returncode == 1
    assert granted.root("test", "-e", "/etc/sudoers.d/evil").returncode == 1


def test_without_a_grant_nothing_is_granted(granted: Node) -> None:
    for text in ("", "users\t0\ninterfaces\teth0\n", "users\t64321\n", "users\tx\ninterfaces\teth0\n"):
        granted.root("sh", "-c", "cat >/etc/wulf/grant", stdin=text)
        done = granted.guard("lock me 60")
        assert (done.returncode, "not through sudo" in done.stdout) == (1, True), (text, done)


def test_root_writes_nothing_where_the_user_could_make_links(granted: Node) -> None:
    if shutil.which("ompi_info", path="/usr/local/bin:/usr/bin:/bin") is None:
        pytest.skip("Open MPI is not installed (apt install openmpi-bin)")
    found = subprocess.run(
        ["ompi_info", "--path", "sysconfdir", "--parsable"], capture_output=True, text=True, check=True
    )
    place = Path(found.stdout.strip().rpartition(":")[2]).resolve()
    assert granted.guard("lock me 60").returncode == 0
    step = "ompi.btl_tcp_links\tmpi_parameter\t-\tbtl_tcp_links\t4\n"
    done = granted.guard("begin M me 30", stdin=step)
    assert done.returncode == 0, done
    assert granted.guard("undo M").returncode == 0
    assert granted.root("mount", "--bind", "/home", str(place)).returncode == 0
    refused = granted.guard("begin N me 30", stdin=step)
    assert granted.root("umount", str(place)).returncode == 0
    assert (refused.returncode, f"{place} is not root's alone" in refused.stdout) == (11, True), refused


@pytest.mark.parametrize(
    "words",
    [
        ("lock", "me", "x[$(id)]"),
        ("lock", "me", "60", "more"),
        ("lock", "me\nset", "60"),
        ("begin", "../A", "me", "30"),
        ("begin", "A.new", "me", "30"),
        ("rollback", "A", "me", "30", "../../home"),
        ("undo", ".."),
        ("apply",),
    ],
)
def test_the_guard_takes_no_words_that_are_none(granted: Node, words: Sequence[str]) -> None:
    done = granted.user(f"sudo -n {PLACE} {shlex.join(words)}")
    assert (
        done.returncode,
        "not through sudo" in done.stdout or "not allowed" in done.stderr or "password" in done.stderr,
    ) == (1, True), done


#: Of knobs that are no numbers and have no list of values.
EXAMPLES = {
    "cpu.cstates_disable": ("all allowed", "disabled: C1 C6"),
    "irq.affinity": ("0-3 5", "0"),
    "nic.channels": ("combined 4", "rx 2 tx 2"),
    "nic.InterruptThrottleRate": ("3", "3,1"),
    "nic.rings": ("512 256", "max max", "max"),
    "nic.xps": ("f", "ff,ffffffff"),
    "sysctl.net.ipv4.tcp_mem": ("287898 383867 575796",),
    "sysctl.net.ipv4.tcp_rmem": ("4096 131072 6291456",),
    "ompi.btl_tcp_if_include": ("10.0.0.0/8", "eth0,eth1"),
    "ompi.coll_tuned_dynamic_rules_filename": ("/opt/wulf/rules.conf",),
}


def _vectors(knob: catalogue.Knob, chance: random.Random) -> Iterator[str]:
    """Return values by chance, some of which the knob can have."""
    numbers = sorted({bound + by for pair in knob.ranges for bound in pair for by in (-1, 0, 1)})
    for _ in range(40):
        count = chance.choice((len(knob.ranges),) * 4 + (1, len(knob.ranges) + 1))
        some = chance.choices([*numbers, 7, 4096], k=count)
        yield " ".join(map(str, sorted(some) if chance.random() < 0.6 else some))


def test_a_vector_is_the_same_to_both_sides(granted: Node) -> None:
    chance = random.Random(1)
    assert granted.guard("lock me 600").returncode == 0
    answers: dict[bool, int] = {True: 0, False: 0}
    for knob in catalogue.knobs().values():
        for value in _vectors(knob, chance) if knob.ranges and not catalogue.unsettable(knob) else ():
            target = knob.access.target.replace("{interface}", "eth0")
            interface = "eth0" if "{interface}" in knob.access.target else "-"
            line = f"{knob.id}\t{knob.access.kind}\t{interface}\t{target}\t{value}\n"
            said = granted.root(*AS_CALLER, PLACE, "where", stdin=line).stdout
            may = steps.may_have(knob, value)
            assert ("not through sudo" not in said) == may, (knob.id, value, said)
            answers[may] += 1
    assert min(answers.values()) > 20, answers


def test_every_wish_is_granted(granted: Node) -> None:
    wishes = []
    for knob in catalogue.knobs().values():
        if not catalogue.unsettable(knob):
            for value in EXAMPLES.get(knob.id, knob.values):
                if steps.may_have(knob, value):
                    wishes += steps.plan([steps.check(knob, value)], "eth0")
    assert len(wishes) > 60
    assert granted.guard("lock me 60").returncode == 0
    for step in wishes:
        said = granted.guard("where", stdin=step.line() + "\n")
        assert "not through sudo" not in said.stdout, (step, said)

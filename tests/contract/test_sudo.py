"""Changes by a user who is not root: a real sshd and a real sudo, in namespaces of their own."""

from __future__ import annotations

import base64
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.cli.command import wulf
from tests.contract.site import make_key
from wulf.base.records import NodeRecord
from wulf.node.change import grants, persist
from wulf.node.change.guard import PLACE, program
from wulf.node.change.steps import Step, parse, plan

pytestmark = [pytest.mark.root]

USER = "wulftester"
KNOB = "sysctl.net.ipv4.tcp_autocorking"
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
            *(f"mount -t tmpfs -o mode=755 none {place}" for place in ("/run", "/home", "/etc/sudoers.d")),
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
        assert self.root("cat", PLACE).stdout == program()
        assert self.root("stat", "-c", "%u %g %a", PLACE).stdout == "0 0 700\n"

    def end(self) -> None:
        inside = Path(f"/proc/{self._keeper.pid}/ns/mnt").readlink()
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    if (entry / "ns/mnt").readlink() == inside:
                        os.kill(int(entry.name), signal.SIGKILL)
                except OSError:
                    continue
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
    node.allow("ALL")
    if node.root("cat", PLACE).stdout != program():
        node.install()
    yield node
    node.root("sh", PLACE, "unlock", "me")


def test_every_verb_is_granted_or_is_the_guards_own() -> None:
    dispatch = program().rpartition("\nmain() {")[2]
    verbs = set(re.findall(r"^\t([a-z |]+)\)", dispatch.partition("exclusively")[2], re.MULTILINE))
    known = {verb.strip() for verbs_of_case in verbs for verb in verbs_of_case.split("|")}
    assert {"begin", "recover"} < known
    looks = re.search(r"case \$\{1:-\} in ([a-z |]+)\) looks=1", dispatch)
    assert looks is not None
    known |= {verb.strip() for verb in looks[1].split("|")}
    assert known - {"recover"} == set(grants.VERBS)


def test_no_rules_are_printed(node: Node) -> None:
    for words in ((), ("--install",), ("--user", USER, "--install")):
        done = node.wulf("settings", "sudoers", *words)
        assert (done.returncode, done.stdout) == (1, "")
        said = " ".join(done.stderr.split())
        assert "can become root with them" in said and "rm -f /etc/sudoers.d/wulf" in said


@pytest.mark.parametrize("commands", ["/bin/true", f"{PLACE} *"])
def test_who_may_do_less_than_everything_is_refused(node: Node, commands: str) -> None:
    node.allow(commands)
    done = node.wulf("settings", "set", f"{KNOB}=0")
    assert done.returncode == 1
    assert "node01 cannot put the guard there: sudo there asks for a password" in done.stdout
    assert "everything without a password" in done.stdout
    status = node.wulf("settings", "status")
    assert (status.returncode, "everything without a password" in status.stdout) == (3, True)
    assert node.root(*VALUE.split()).stdout == "1\n"


def test_all_that_changes_works(granted: Node) -> None:
    done = granted.wulf("settings", "set", f"{KNOB}=0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "confirmed over a new connection" in done.stdout
    assert granted.root(*VALUE.split()).stdout == "0\n"
    kept = granted.wulf("settings", "persist")
    assert kept.returncode == 0, kept.stdout + kept.stderr
    assert "net.ipv4.tcp_autocorking = 0" in granted.root("cat", "/etc/sysctl.d/90-wulf.conf").stdout
    status = granted.wulf("settings", "status")
    assert (status.returncode, f"{KNOB} = 0" in status.stdout) == (0, True)
    assert granted.wulf("settings", "verify").returncode == 0
    back = granted.wulf("rollback")
    assert back.returncode == 0, back.stdout + back.stderr
    assert granted.root(*VALUE.split()).stdout == "1\n"
    assert granted.root("ls", "/etc/sysctl.d").stdout == ""


def test_nobody_confirms_and_it_is_undone(granted: Node) -> None:
    steps = "k\tsysctl\t-\tnet.ipv4.tcp_autocorking\t0\n"
    for words in ("lock me 60", "begin A me 6", "apply A"):
        done = granted.user(f"sudo -n {PLACE} {words}", stdin=steps)
        assert done.returncode == 0, done
    assert granted.root(*VALUE.split()).stdout == "0\n"
    deadline = time.monotonic() + 60
    while granted.root(*VALUE.split()).stdout == "0\n":
        assert time.monotonic() < deadline, "it was not undone"
        time.sleep(0.5)


def test_the_path_of_who_calls_is_nowhere_in_use(granted: Node) -> None:
    """Rules of sudo may hand it on; those of earlier versions let anybody call this guard with `version`."""
    names = ("id", "stat", "date", "tr", "cat", "grep", "sed", "awk", "mkdir", "flock", "sh")
    traps = "; ".join(f"printf '#!/bin/sh\\n: >/home/called-{name}\\n' >/home/traps/{name}" for name in names)
    granted.user(f"mkdir -p /home/traps; {traps}; chmod 755 /home/traps/*")
    granted.root("sh", "-c", "umask 337; echo 'Defaults !secure_path, env_keep += PATH' >/etc/sudoers.d/path")
    for verb in ("version", "status", "lock me 60", "unlock me"):
        granted.user(f"PATH=/home/traps:$PATH sudo -n {PLACE} {verb}")
    granted.root("rm", "/etc/sudoers.d/path")
    assert granted.root("find", "/home", "-name", "called-*").stdout == ""


def test_a_guard_that_is_not_this_one_is_replaced(granted: Node) -> None:
    granted.root("sh", "-c", f"echo '# another' >>{PLACE}")
    granted.install()


ROOT_SHELLS = [
    "k\tfile\t-\t/etc/passwd\tx",
    "k\tfile\t-\t/sys/class/net/../../../etc/threaded\t1",
    "k\tfile\t../../../etc\t/sys/class/net/../../../etc/threaded\t1",
    "k\tlink\t--batch\tmtu\t1500",
    "k\tlink\t..\tmtu\t1500",
    "k\tsysctl\t-\tkernel.core_pattern\t|/tmp/x",
    "k\tsysctl\t-\tnet.ipv4.tcp_autocorking\ta[$(id)]",
    "k\tsysctl\t-\tnet.ipv4.tcp_autocorking\t0\nk\tfile\t-\t/etc/x\ty",
    "k\tsysctl\t-\tnet.ipv4.tcp_rmem\t@../../etc",
    "k\tunit\t-\tssh.service\tdisabled",
    "k\ttuned\t-\t/etc/tuned/active_profile\t../../tmp/evil",
    "k\tstored\t-\t/etc/sudoers.d/evil\tfile:440:{evil}",
    "k\tstored\t-\t/etc/wulf/settings.sh\tfile:755:{evil}",
    "k\tstored\t-\t/etc/wulf/settings.sh\tlink:/home/evil",
    "k\tstored\t-\t/etc/sysctl.d/90-wulf.conf\tfile:644:{evil}",
    "k\tstored\t-\t/etc/sysctl.d/90-wulf.conf\tfile:4755:",
    "k\tstored\t-\t/etc/modprobe.d/wulf.conf\tfile:644:{install}",
    "k\tstored\t-\t/etc/systemd/system/wulf-settings.service\tfile:644:{unit}",
    "k\tstored\t-\t/etc/systemd/system/evil.service\tfile:644:{unit}",
    "\tk\tstored\t-\t/etc/sudoers.d/evil\tfile:440:{evil}",
    "k\tstored\t\t-\t/etc/sudoers.d/evil\tfile:440:{evil}",
    "k\tsysctl\t-\tnet.ipv4.tcp_autocorking\t0\r",
]


@pytest.mark.parametrize("lines", ROOT_SHELLS)
def test_the_guard_sets_only_what_the_catalogue_names(granted: Node, lines: str) -> None:
    texts = {
        "evil": "wulftester ALL=(ALL) NOPASSWD: ALL\n",
        "install": "install nothing /tmp/x\n",
        "unit": "[Service]\nExecStart=/tmp/x\n",
    }
    for name, text in texts.items():
        lines = lines.replace(f"{{{name}}}", base64.b64encode(text.encode()).decode())
    assert granted.user(f"sudo -n {PLACE} lock me 60").returncode == 0
    for verb in ("begin B me 30", "swap - B me 30"):
        done = granted.user(f"sudo -n {PLACE} {verb}", stdin=lines + "\n")
        assert (done.returncode, "not through sudo" in done.stdout) == (1, True), done
    assert granted.root("test", "-e", "/var/lib/wulf/tx/B").returncode == 1
    assert granted.root("test", "-e", "/etc/sudoers.d/evil").returncode == 1


def test_root_writes_nothing_where_the_user_could_make_links(granted: Node) -> None:
    if shutil.which("ompi_info", path="/usr/local/bin:/usr/bin:/bin") is None:
        pytest.skip("Open MPI is not installed (apt install openmpi-bin)")
    found = subprocess.run(
        ["ompi_info", "--path", "sysconfdir", "--parsable"], capture_output=True, text=True, check=True
    )
    place = Path(found.stdout.strip().rpartition(":")[2]).resolve()
    assert granted.user(f"sudo -n {PLACE} lock me 60").returncode == 0
    step = "k\tmpi_parameter\t-\tbtl_tcp_links\t4\n"
    done = granted.user(f"sudo -n {PLACE} begin M me 30", stdin=step)
    assert done.returncode == 0, done
    assert granted.user(f"sudo -n {PLACE} undo M").returncode == 0
    assert granted.root("mount", "--bind", "/home", str(place)).returncode == 0
    refused = granted.user(f"sudo -n {PLACE} begin N me 30", stdin=step)
    assert granted.root("umount", str(place)).returncode == 0
    assert (refused.returncode, f"{place} is not root's alone" in refused.stdout) == (11, True), refused


@pytest.mark.parametrize(
    "words",
    [
        ("lock", "me", "x[$(id)]"),
        ("lock", "me", "60", "more"),
        ("lock", "me\nset", "60"),
        ("begin", "../A", "me", "30"),
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


def persisted() -> list[Step]:
    """Everything that persisting could write, on a node that has all of it."""
    record = NodeRecord(
        node="node01",
        reachable=True,
        facts={
            "keep.manager": "ifupdown",
            "keep.mac": "02:00:00:00:00:01",
            "keep.link_file": "/usr/lib/systemd/network/99-default.link",
            "keep.link_settings": "NamePolicy=keep kernel database onboard slot path; MACAddressPolicy=persistent",
            "keep.systemd": "252",
            "nic.driver": "e1000e",
        },
    )
    knob_settings = parse(
        [
            f"{KNOB}=0",
            "nic.mtu=9000",
            "nic.rx_usecs=3",
            "nic.rings=max",
            "net.conntrack=notrack",
            "cpu.governor=performance",
            "cpu.cstates_pmqos=10",
            "cpu.cstates_disable=disabled: C1 C6",
            "irq.affinity=0-3 5",
            "route.rto_min=5",
            "napi.gro_flush_timeout=200000 10",
            "svc.irqbalance=off",
            "nic.InterruptThrottleRate=0",
        ]
    )
    texts = []
    for manager in ("ifupdown", "NetworkManager", "networkd"):
        facts = {
            **record.facts,
            "keep.manager": manager,
            "keep.network_file": "/etc/systemd/network/20-wired.network",
        }
        made = NodeRecord(node="node01", reachable=True, facts=facts)
        texts += persist.persist(knob_settings, "eth0", made, persist.marker("20260101T000000-abcdef")).steps
    return texts


def test_all_that_persist_writes_is_granted(granted: Node) -> None:
    lines = "".join(step.line() + "\n" for step in persisted())
    assert (
        "settings.sh" in lines and "90-wulf-settings" in lines and ".link" in lines and "network.d" in lines
    )
    checked = program().removesuffix('main "$@"\n') + 'mkdir -p "$RUN"; refused_lines\n'
    granted.root("sh", "-c", "cat >/run/check", stdin=checked)
    for shell in ("dash", "bash", "busybox sh"):
        if shutil.which(shell.split()[0]):
            said = granted.root(*shell.split(), "/run/check", stdin=lines)
            assert (said.stdout, said.stderr) == ("", ""), shell


def test_every_wish_is_granted(granted: Node) -> None:
    from wulf.base import catalogue
    from wulf.node.change import steps

    lines = []
    for knob in catalogue.knobs().values():
        if not catalogue.unsettable(knob):
            for value in knob.values or ("1",):
                if steps.may_have(knob, value):
                    lines += [step.line() for step in plan([steps.check(knob, value)], "bond0.12")]
    assert len(lines) > 60
    checked = program().removesuffix('main "$@"\n') + "refused_lines\n"
    granted.root("sh", "-c", "cat >/run/check", stdin=checked)
    assert granted.root("sh", "/run/check", stdin="\n".join(lines) + "\n").stdout == ""

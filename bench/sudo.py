"""A user whom sudo lets run the guard and nothing else sends it plans, words, environments and limits of all kinds.

Each case is one call, in file systems and a network of its own: one of twenty through a real sudo, which takes most of
the time; the others call the guard as root with what sudo says of its caller, and with all of his environment, which
sudo would have taken away. After every batch root takes back what is open or confirmed, and the whole node is compared
with how it was: all files of /etc, the journal's directory, rules, interfaces, sysctls. Whatever is made meanwhile must
be one of the files that keep settings, and nobody but root may run anything as root.

``python -m bench.sudo [--cases=N] [--batch=N] [--state=FILE] [--limit=SECONDS]``: goes on where FILE says it was ended.
"""

from __future__ import annotations

import base64
import random
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from bench.common import Figure, finish
from bench.faults.adversary import CARRIERS, LIMITS, WAYS
from wulf.base import catalogue
from wulf.node.change import configuration_files, steps, sudo
from wulf.node.change.guard import PLACE, program

USER, UID = "planteduser", 64321
INTERFACE, OTHER = "eth0", "other0"
CASES, BATCH = 1_000_000, 400
#: One of so many goes through a real sudo.
THROUGH_SUDO = 20
#: What sudo says of its caller.
_CALLER = f"export SUDO_UID={UID} SUDO_GID={UID} SUDO_USER={USER}"
#: What a user can do to his sudo, and not to a program that root runs.
_TO_SUDO = ("killed at once", "killed soon", "stopped")
_Value = TypeVar("_Value")
#: Names of changes: few, so that they meet.
_CHANGES = ("A", "B", "C", "x.y", "-", "original", "A.new", "../A", "", "a" * 65)
_VERBS = (
    "begin {tx} {owner} {seconds}",
    "begin {tx} {owner} {seconds}",
    "swap {other} {tx} {owner} {seconds}",
    "rollback {tx} {owner} {seconds} {other}",
    "apply {tx}",
    "apply {tx}",
    "confirm {tx}",
    "undo {tx} {owner}",
    "extend {tx} {seconds}",
    "abandon {tx}",
    "part {tx} 1",
    "alternate {tx} 1 1",
    "lock {owner} {seconds}",
    "lock {owner} {seconds}",
    "unlock {owner}",
    "where",
    "explain",
    "status",
    "leaves {tx}",
    "set sysctl - kernel.core_pattern x",
    "overdue watch",
    "recover",
    "watch",
    "hold /etc/passwd 5",
    "alternating {tx} 1 1",
)
_OWNERS = ("me", "me", "me", "me", "root", "a b", "\x1b[31m", "x" * 300)
_SECONDS = ("1", "5", "60", "7200", "0", "-1", "99999999999", "1e9", "")
_NASTY = (
    *(
        "\t",
        "\n",
        "\r",
        "\0",
        "..",
        "/",
        "'",
        '"',
        "$(id)",
        "`id`",
        ";",
        "|",
        "@A/saved.1",
        "%n",
        "\x1b",
        "\xff",
        "-",
        "=",
    ),
    *("made:", "file:644:eA==", "a" * 5000),
)
_START = """\
set -e
mount -t tmpfs none "$1/up" && mkdir "$1/up/u" "$1/up/w"
mount -t overlay -o "lowerdir=/etc,upperdir=$1/up/u,workdir=$1/up/w" none /etc
mount -t tmpfs -o mode=755 none /run
mkdir -p /var/lib/wulf && mount -t tmpfs -o mode=700 none /var/lib/wulf
mount -t tmpfs -o mode=1777 none /home
mount -t sysfs none /sys
ip link set lo up && ip link add eth0 type veth peer name other0
echo "$2:x:$3:$3::/home:/bin/sh" >>/etc/passwd && echo "$2:*:19000::::::" >>/etc/shadow && echo "$2:x:$3:" >>/etc/group
sh "$1/install" >/dev/null
printf '#!/bin/sh\\n: >/home/pwned\\n' >/home/evil && chmod 755 /home/evil
for tool in id ethtool ip nft systemctl modprobe; do cp /home/evil /home/$tool; done
: >/run/ready
while :; do sleep 1; done # waits for whatever ends here
"""
#: All that another user could have changed; what a guard keeps of its own is counted, not compared.
_LOOK = f"""\
cd /; find etc var/lib/wulf run home -xdev ! -path '*/wulf/tx*' ! -name log ! -name log.1 ! -name reserve \
    ! -name owned ! -path 'run/sudo*' ! -path run/wulf ! -path 'run/wulf/*' ! -path home/plan ! -path 'home/away*' \
    -printf '%p %y %m %U:%G %l\\n' -type f -exec sha256sum -b {{}} + | sort
nft -nn list ruleset; ethtool -k {INTERFACE}; cat /sys/class/net/*/mtu
sysctl -a 2>/dev/null | grep -E '^net[.](core|ipv4[.]tcp)|^vm[.]|^kernel[.](numa|nmi|core_p)' | grep -v fastopen_key
"""
_BACK = f"""\
for tx in $(ls /var/lib/wulf/tx 2>/dev/null); do {PLACE} undo "$tx" >/dev/null; done
{PLACE} unlock me >/dev/null; {PLACE} unlock root >/dev/null
if {PLACE} lock back 60 && {PLACE} rollback back back 60 original | grep -v nothing; then :; fi
[ ! -d /var/lib/wulf/tx/back ] || {{ {PLACE} apply back && {PLACE} confirm back; }} >/dev/null
{PLACE} unlock back
[ ! -e /home/pwned ] || echo PWNED
"""
_FORGET = "rm -rf /var/lib/wulf/tx /var/lib/wulf/history /var/lib/wulf/archive /var/lib/wulf/open.*"


class State(msgspec.Struct):
    """How far it has come."""

    done: int = 0
    seconds: float = 0.0
    #: First cases of batches after which something was wrong, and what.
    failed: list[str] = []
    granted: int = 0


class Node:
    """File systems and a network with sudo, its rules, and a user."""

    def __init__(self, directory: Path) -> None:
        (directory / "up").mkdir()
        directory.chmod(0o755)
        (directory / "install").write_text(sudo.installation(USER, [INTERFACE], PLACE, program()))
        words = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
        self._keeper = subprocess.Popen([*words, "sh", "-c", _START, "sh", str(directory), USER, str(UID)])
        children = Path(f"/proc/{self._keeper.pid}/task/{self._keeper.pid}/children")
        end = time.monotonic() + 60
        while not (pid := children.read_text().strip()) or not Path(f"/proc/{pid}/root/run/ready").exists():
            if time.monotonic() > end or self._keeper.poll() is not None:
                raise SystemExit("bench: the place does not come up")
            time.sleep(0.1)
        self._enter = ["nsenter", f"--target={pid}", "--mount", "--net", "--pid", "--"]

    def root(self, text: str) -> str:
        """Run shell text as root."""
        done = subprocess.run(
            [*self._enter, "sh"], input=text.encode(), capture_output=True, check=False, timeout=600
        )
        return done.stdout.decode(errors="replace")

    def user(self, text: str) -> str:
        """Run shell text as the user."""
        words = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "sh"]
        done = subprocess.run(
            [*self._enter, *words],
            input=text.encode(errors="surrogateescape"),
            capture_output=True,
            check=False,
            timeout=3600,
        )
        return done.stdout.decode(errors="replace")

    def end(self) -> None:
        """Take it down."""
        self._keeper.kill()
        self._keeper.wait()


def main(arguments: Sequence[str]) -> int:
    """Entry point."""
    print(__doc__)
    named = dict(word.removeprefix("--").partition("=")[::2] for word in arguments)
    cases, batch = int(named.get("cases", CASES)), int(named.get("batch", BATCH))
    end = time.monotonic() + float(named.get("limit", "inf"))
    path = Path(named["state"]) if "state" in named else None
    state = msgspec.json.decode(path.read_bytes(), type=State) if path and path.exists() else State()
    with tempfile.TemporaryDirectory(prefix="wulf-sudo-") as directory:
        node = Node(Path(directory))
        try:
            _run(node, state, cases, batch, end, path)
        finally:
            node.end()
    print(f"{state.done} cases in {state.seconds:.0f} s, {state.granted} of them granted")
    figures = [Figure(name=f"failed-of-{state.done}", value=len(state.failed), goal=0)]
    return finish("sudo", [*figures, Figure(name="cases-missing", value=max(0, cases - state.done), goal=0)])


def _run(node: Node, state: State, cases: int, batch: int, end: float, path: Path | None) -> None:
    before = node.root(_LOOK)
    if len(before.splitlines()) < 500:
        raise SystemExit("bench: the node cannot be compared")
    while state.done < cases and time.monotonic() < end:
        begun = time.monotonic()
        wrong, before = _batch(node, state, min(batch, cases - state.done), before)
        state.seconds += time.monotonic() - begun
        if wrong:
            state.failed.append(wrong)
            print(f"FAILED {wrong}", flush=True)
        if path:
            path.write_bytes(msgspec.json.encode(state))


def _batch(node: Node, state: State, count: int, before: str) -> tuple[str, str]:
    """Let the user send some cases; return what is wrong afterwards ("" where nothing is), and how the node is then."""
    first = state.done
    numbers = range(first, first + count)
    answers = node.root("\n".join(case(number) for number in numbers if number % THROUGH_SUDO))
    answers += node.user("\n".join(case(number) for number in numbers if not number % THROUGH_SUDO))
    state.done += count
    state.granted += answers.count("\nrc 0\n")
    made = node.root(
        f"find /etc -newer /run/ready -type f; ls /home/pwned 2>/dev/null; {_touch()}"
    ).splitlines()
    strange = [name for name in made if not may_be_made(name)]
    said = node.root(_BACK)
    after = node.root(_LOOK)
    node.root(_FORGET)
    rights = node.user("/usr/bin/sudo -n id -u; cat /etc/shadow 2>/dev/null")
    wrong = ""
    if answers.count("\nrc ") != count:
        wrong = f"{first}: {answers.count(chr(10) + 'rc ')} of {count} calls have ended"
    elif strange or rights.strip() or "PWNED" in said:
        wrong = f"{first}: {strange[:3]} {rights[:80]!r} {said[:80]!r}"
    elif after != before:
        lines = set(after.splitlines()) ^ set(before.splitlines())
        wrong = f"{first}: the node differs: {sorted(lines)[:4]}"
    return wrong, after


def _touch() -> str:
    """Return the command after which only newer files count."""
    return "touch /run/ready"


def may_be_made(path: str) -> bool:
    """Whether a file is of those that keep settings."""
    return path.startswith(
        ("/etc/sysctl.d/", "/etc/modprobe.d/wulf", "/etc/systemd/", "/etc/wulf/settings.sh", "/etc/openmpi")
    ) or (path in (configuration_files.DISPATCHER, configuration_files.IF_UP))


def case(number: int) -> str:
    """Return the shell text of a case: a call in its own way, with its plan, and its exit code in a line of its own."""
    chance = random.Random(number)
    words = chance.choice(_VERBS).format(
        tx=shlex.quote(_often(chance, "A", _CHANGES)),
        other=shlex.quote(chance.choice(_CHANGES)),
        owner=shlex.quote(_often(chance, "me", _OWNERS)),
        seconds=_often(chance, "60", _SECONDS),
    )
    direct = number % THROUGH_SUDO != 0
    way = chance.choice(_ways(direct)) if chance.random() < 0.3 else ":"
    environment = _environment(chance) if chance.random() < 0.3 else ""
    caller, call = (_CALLER, PLACE) if direct else (":", f"/usr/bin/sudo -n {PLACE}")
    plan = base64.b64encode(_plan(chance)).decode()
    return (
        f"(cd /home; set --; {way}; {environment} {caller}; base64 -d <<'E' | \"$@\" {call} {words}\n"
        f"{plan}\nE\n"
        ') 2>&1; printf "\\nrc %s\\n" $?'
    )


def _often(chance: random.Random, usual: _Value, others: Sequence[_Value]) -> _Value:
    return usual if chance.random() < 0.6 else chance.choice(others)


def _ways(direct: bool) -> list[str]:
    limits = (f"ulimit -{letter} {value}" for letter, values in LIMITS.items() for value in values)
    return [*(text for name, text in WAYS.items() if not (direct and name in _TO_SUDO)), *limits]


def _environment(chance: random.Random) -> str:
    names = (
        "PATH",
        "LD_PRELOAD",
        "SUDO_UID",
        "IFS",
        "ENV",
        "BASH_ENV",
        "LC_ALL",
        "HOME",
        "TMPDIR",
        "TZ",
        "MALLOC_CHECK_",
        "GCONV_PATH",
    )
    values = ("/home", "/home/evil", "0", "", "x" * 5000, "() { :; }; /home/evil", "../../home", "%n%n")
    return " ".join(
        f"export {chance.choice(names)}={shlex.quote(chance.choice(values))};"
        for _ in range(chance.randrange(1, 4))
    )


def _plan(chance: random.Random) -> bytes:
    lines = [_line(chance) for _ in range(_often(chance, 1, (0, 1, 2, 3, 5, 300)))]
    text = "".join(lines).encode(errors="surrogateescape")
    for _ in range(_often(chance, 0, (0, 1, 2, 4))):
        at = chance.randrange(len(text) + 1)
        nasty = chance.choice(_NASTY).encode()
        text = chance.choice(
            (text[:at] + nasty + text[at:], text[:at], text[:at] + text[at + 1 :], text + text[at:])
        )
    return text


def _line(chance: random.Random) -> str:
    """Return a line as a good plan has it, a file that keeps settings, or one with a field of something else."""
    step = chance.choice(_steps())
    fields = [
        step.knob,
        step.kind,
        chance.choice((INTERFACE, INTERFACE, "-", OTHER, "..")),
        step.target,
        step.value,
    ]
    if chance.random() < 0.35:
        path = chance.choice((*CARRIERS, *_KEPT))
        items = "|".join(
            f"{chance.choice(('', 'nic/', 'node/', 'nic,eth0/', 'nic,other0/'))}{one.knob}={one.value}"
            for one in chance.sample(_steps(), 2)
        )
        value = chance.choice(
            (
                f"made:A:{INTERFACE}|{items}",
                f"made:A:-|{items}",
                "made:A:-",
                "absent",
                "link:/home/evil",
                "file:644:eA==",
            )
        )
        fields = [_often(chance, path, ("k",)), "stored", "-", path, value]
    if chance.random() < 0.2:
        fields[chance.randrange(5)] = chance.choice(
            (*_NASTY, chance.choice(_steps()).target, "stored", "unit", "host_route")
        )
    return "\t".join(fields) + "\n"


_KEPT = (
    *(
        "/etc/sysctl.d/90-wulf.conf",
        "/etc/sysctl.d/zz-wulf.conf",
        configuration_files.MODPROBE,
        configuration_files.SCRIPT,
    ),
    *(configuration_files.SETTINGS_UNIT, configuration_files.LATENCY_UNIT, configuration_files.DISPATCHER),
    *(
        configuration_files.wanted(configuration_files.SETTINGS_UNIT),
        f"/etc/systemd/network/10-wulf-{INTERFACE}.link",
    ),
)
#: What is the machine's own, or takes a second at each call (Open MPI's).
_LEFT_OUT = ("cpu.", "vm.", "svc.", "irq.", "sysctl.kernel.", "ompi.")


def _steps() -> list[steps.Step]:
    if not _FOUND:
        for knob in catalogue.knobs().values():
            if not catalogue.unsettable(knob) and not knob.id.startswith(_LEFT_OUT):
                for value in knob.values:
                    if steps.may_have(knob, value):
                        _FOUND.extend(steps.plan([steps.check(knob, value)], INTERFACE))
    return _FOUND


_FOUND: list[steps.Step] = []

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A user whom sudo lets run the guard and nothing else: whatever he asks for leaves the node as it was."""

from __future__ import annotations

import base64
import itertools
import shlex
from collections.abc import Iterator
from typing import Protocol

from bench.faults.cases import SIDE, Case
from bench.faults.controller import FIRST
from bench.faults.node import INTERFACE, Facts, Site, faulty_program
from wulf.node.change import sudo
from wulf.node.change.guard import PLACE

#: The change of these cases.
CHANGE = "another user"
USER = "planteduser"
_UID = 64321
_TX = "planted"
#: What has the whole of a plan of a user's: files that programs of root's read.
CARRIERS = (
    "/etc/modprobe.d/wulf.conf",
    "/etc/sysctl.d/90-wulf.conf",
    "/etc/sysctl.d/zzzz-wulf.conf",
    "/etc/systemd/network/00-wulf-host0.link",
    "/etc/systemd/network/20-site.network.d/90-wulf.conf",
    "/etc/systemd/system/wulf-settings.service",
    "/etc/systemd/system/wulf-latency.service",
    "/etc/systemd/system/nftables.service.d/90-wulf.conf",
    "/etc/systemd/system/multi-user.target.wants/wulf-settings.service",
    "/etc/wulf/settings.sh",
    "/etc/wulf/grant",
    "/etc/NetworkManager/dispatcher.d/90-wulf-settings",
    "/etc/network/if-up.d/wulf-settings",
    "/etc/sudoers.d/evil",
    "/etc/cron.d/evil",
    "/etc/ld.so.preload",
    "/etc/profile.d/evil.sh",
    "/etc/udev/rules.d/evil.rules",
    PLACE,
    "/var/lib/wulf/tx/evil/plan",
)
_EVIL = f"{USER} ALL = (ALL) NOPASSWD: ALL"
#: What he writes there → as a step says it; the second is a line that looks like a step, in a file that is read as one.
CONTENTS = {
    "a file": f"{_EVIL}\n",
    "lines that look like steps": (
        "install tcp_zz /home/evil\tmodule\t-\tInterruptThrottleRate\t1\n"
        "kernel.core_pattern=|/home/evil %P\tsysctl\t-\tnet.core.busy_poll\t50\n"
    ),
}
#: What a plan says of it.
FORMS = ("file", "link", "absent", "kept", "unit", "sysctl", "knob")
_VERBS = ("begin", "swap", "rollback")
#: Limits of the shell → values.
LIMITS = {
    "v": ("1000", "4000", "6550", "6700", "7000", "7800", "8200", "20000", "100000"),
    "f": ("0", "1", "8", "100"),
    "n": ("3", "4", "5", "6", "8", "16"),
    "t": ("0", "1"),
    "s": ("16", "128", "512"),
    "d": ("0", "100", "1000"),
    "u": ("1", "20"),
    "l": ("0",),
    "c": ("0",),
    "i": ("0",),
    "q": ("0",),
    "x": ("0",),
    "e": ("0",),
    "r": ("0",),
}
#: Other ways in which a caller runs the guard.
WAYS = {
    "no standard input": "exec 0<&-",
    "no standard output": "exec 1>&-",
    "no descriptors": "exec 0<&- 1>&- 2>&-",
    "a full disk to hear it": "exec 1>/dev/full",
    "its own directory": "mkdir -p /home/away && cd /home/away && rmdir /home/away",
    "umask 0": "umask 0",
    "umask 777": "umask 777",
    "signals ignored": "trap '' HUP INT QUIT TERM PIPE CHLD ALRM TSTP XFSZ",
    "a library before all": "export LD_PRELOAD=/home/evil LD_LIBRARY_PATH=/home LD_AUDIT=/home/evil",
    "a path of his own": "export PATH=/home:$PATH",
    "root's number": "export SUDO_UID=0 SUDO_USER=root SUDO_GID=0",
    "another kernel": "set -- setarch x86_64 --uname-2.6",
    "killed at once": "set -- timeout -s KILL 0.01",
    "killed soon": "set -- timeout -s KILL 0.04",
    "interrupted": "set -- timeout -s INT 0.03",
    # A sudo that is stopped before it is root stays so: it is ended after a while.
    "stopped": "set -- timeout -k 5 -s TSTP 0.03",
}


class Place(Protocol):
    """What an attack needs of the course of an order."""

    site: Site

    def settings(self) -> Facts:
        """Return what a node's settings are."""

    def must(self, holds: object, what: str) -> None:
        """End the order where something does not hold."""


def cases() -> Iterator[Case]:
    """Return all attacks."""
    for carrier, form in itertools.product(CARRIERS, FORMS):
        yield Case(CHANGE, "order", SIDE, carrier, f"as {form}")
    for letter, values in LIMITS.items():
        for value in values:
            yield Case(CHANGE, "order", SIDE, f"ulimit -{letter} {value}", "with a limit")
    for way in WAYS:
        yield Case(CHANGE, "order", SIDE, way, "in a way of his own")


def attack(place: Place, case: Case) -> None:
    """Let the user try; the node is as before, and root can still work."""
    site = place.site
    site.run([PLACE, "unlock", FIRST])
    site.run(["sh", "-s"], _PLANT.encode())
    script = sudo.installation(USER, [INTERFACE], PLACE, faulty_program())
    done = site.run(["sh", "-s"], script.encode())
    try:
        place.must(done.returncode == 0, f"the rules are not installed: {done.stderr[-300:]!r}")
        before = place.settings()
        for text in _attempts(case):
            site.run([*_AS_USER, text])
        _judge(place, before)
    finally:
        site.run(["sh", "-s"], _UNPLANT.encode())


def _judge(place: Place, before: Facts) -> None:
    site = place.site
    # What was granted (his second plan is a good one) is put back when it is not confirmed.
    site.run([PLACE, "undo", _TX])
    site.run([PLACE, "unlock", USER])
    after = place.settings()
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    place.must(not changed, f"changed by another user: {sorted(changed)[:5]}")
    seen = site.run(
        ["sh", "-c", "ls -d /home/pwned /var/lib/wulf/tx/evil /etc/sudoers.d/evil 2>/dev/null"]
    ).stdout
    place.must(not seen, f"made by another user: {seen!r}")
    mine = site.run([*_AS_USER, "sudo -n id -u; cat /etc/shadow"]).stdout
    place.must(not mine, f"another user has more rights than he was given: {mine!r}")
    free = site.run([PLACE, "lock", "root", "60"])
    place.must(free.returncode == 0, f"root does not get the lock: {free.stdout!r}")
    site.run([PLACE, "unlock", "root"])


_AS_USER = ["setpriv", f"--reuid={_UID}", f"--regid={_UID}", "--clear-groups", "sh", "-c"]
_KEPT = "/etc/passwd /etc/shadow /etc/group"
_PLANT = f"""\
mkdir -p /run/planted-etc /home && cp -a {_KEPT} /run/planted-etc
mount -t tmpfs -o mode=1777 none /home
echo '{USER}:x:{_UID}:{_UID}::/home:/bin/sh' >>/etc/passwd
echo '{USER}:*:19000::::::' >>/etc/shadow
echo '{USER}:x:{_UID}:' >>/etc/group
printf '#!/bin/sh\\n: >/home/pwned\\n' >/home/evil && chmod 755 /home/evil
for tool in id ethtool ip nft systemctl modprobe; do cp /home/evil /home/$tool; done
"""
_UNPLANT = f"""\
umount -l /home
for file in {_KEPT}; do cp -a /run/planted-etc/${{file##*/}} $file; done
rm -rf {sudo.RULES} {sudo.GRANT} /run/planted-etc
rmdir /etc/wulf 2>/dev/null
rm -f /run/wulf/caller.*
"""
#: A step that is granted.
_GOOD = "sysctl.net.ipv4.tcp_autocorking\tsysctl\t-\tnet.ipv4.tcp_autocorking\t0\n"


def _attempts(case: Case) -> Iterator[str]:
    if case.fault.startswith("as "):
        for content in CONTENTS.values():
            plan = _plan(case.at, case.fault.removeprefix("as "), content)
            yield from (_text("", verb, plan) for verb in _VERBS)
        return
    before = WAYS.get(case.at, case.at)
    big = f"k\tfile\t-\t/home/x\t{'a' * 60000}\n"
    evil = f"k2\tfile\t-\t/etc/sudoers.d/evil\t{_EVIL}\n"
    for plan in (evil, big + evil, _GOOD + evil, _GOOD):
        yield from (_text(before, verb, plan) for verb in _VERBS)


def _text(before: str, verb: str, plan: str) -> str:
    """Return the shell text that locks the node, begins a change and applies it."""
    words = {
        "begin": f"begin {_TX} {USER} 20",
        "swap": f"swap - {_TX} {USER} 20",
        "rollback": f"rollback {_TX} {USER} 20 original",
    }[verb]
    encoded = base64.b64encode(plan.encode()).decode()
    run = f'"$@" /usr/bin/sudo -n {PLACE}'
    calls = (f"lock {USER} 60", words, f"apply {_TX}", f"undo {_TX}")
    each = " ".join(f"(cat /home/plan | {run} {call}) 2>&1;" for call in calls)
    return f"echo {shlex.quote(encoded)} | base64 -d >/home/plan; {before}\n{each}"


def _plan(path: str, form: str, content: str) -> str:
    """Return a plan that carries a text to a file."""
    encoded = base64.b64encode(content.encode()).decode()
    knob = "sysctl.net.core.busy_poll"
    return {
        "file": f"k\tstored\t-\t{path}\tfile:644:{encoded}\n",
        "link": f"k\tstored\t-\t{path}\tlink:/home/evil\n",
        "absent": f"k\tstored\t-\t{path}\tabsent\n",
        "kept": f"k\tkept\t-\t{path}\t{encoded}\n",
        "unit": f"k\tunit\t-\t{path}\tdisabled\n",
        "sysctl": f"{knob}\tsysctl\t-\t{path}\t{content}",
        "knob": f"{path}\tsysctl\t-\tnet.core.busy_poll\t50\n{content}",
    }[form]

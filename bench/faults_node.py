"""A virtual node seen from outside: its processes, its files, its exact state, and the faults put into its guard."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from wulf import catalogue
from wulf.change.guard import program
from wulf.facts.capture import capture
from wulf.lab import Lab, system
from wulf.lab.nodes import group
from wulf.ports import NodeResult, RemoteProcess
from wulf.records import PASSING_FACTS

INTERFACE = "host0"
COMMAND_TIMEOUT_S = 60.0
#: In the node; gone after a reboot, so that a fault happens once.
PLACE = "run/wulf-fault"
#: Facts that compare the times of files with that of the boot.
_OF_THE_CLOCK = frozenset({"settings.changed_since_boot"})
#: What a node's settings are, beyond its facts.
_EXACT = r"""
section() { echo "== $1"; shift; "$@" 2>&1; }
section addresses ip -o addr show dev host0
section routes ip route show table all
section rules sh -c "nft -nn list ruleset | sed 's/packets [0-9]* bytes [0-9]*/packets 0 bytes 0/'"
section features ethtool -k host0
section channels ethtool -l host0
names='^net[.](core|ipv4[.]tcp|ipv4[.]conf[.]host0|ipv6[.]conf[.]host0)'
section sysctl sh -c "sysctl -a -r '$names' | grep -v -e tcp_fastopen_key -e stable_secret"
section units sh -c "systemctl list-units --all --plain --no-legend 'planted*' nftables.service | tr -s ' '"
section unit-files systemctl list-unit-files --no-legend 'planted*' nftables.service
section flush cat /sys/class/net/host0/gro_flush_timeout /sys/class/net/host0/queues/rx-0/rps_cpus
section guards sh -c "ls -d /run/systemd/transient/wulf* 2>/dev/null; true"
"""

#: Comes before the guard's last line. `note` is called at every step of a guard; `verb` is what it was started for.
_INJECTED = r"""
note() {
	noted "$@"
	[ ! -e /run/wulf-fault/record ] || printf '%s: %s\n' "$verb" "$*" >>/run/wulf-fault/record
	[ -e /run/wulf-fault/at ] || return 0
	IFS= read -r fault_at </run/wulf-fault/at
	# shellcheck disable=SC2254 # a pattern
	case "$verb: $*" in $fault_at) ;; *) return 0 ;; esac
	mv /run/wulf-fault/at /run/wulf-fault/hit 2>/dev/null || return 0
	"fault_$(cat /run/wulf-fault/do)"
}
fault_guard() { kill -9 $$; }
fault_watcher() { kill -9 "$(cat "$RUN/watcher")"; }
fault_both() {
	kill -9 "$(cat "$RUN/watcher")"
	kill -9 $$
}
fault_sshd() { # the session that this guard was started by
	fault_pid=$$
	until [ "$fault_pid" -le 1 ]; do
		fault_pid=$(awk '/^PPid/ { print $2 }' "/proc/$fault_pid/status")
		case $(cat "/proc/$fault_pid/comm") in sshd*) kill -9 "$fault_pid" && return ;; esac
	done
}
fault_hang() { # a guard is ended by the watcher; a tool of the watcher itself, by its own limit
	if [ "$verb" = watch ]; then sleep 12 9>&-; else sleep 60 9>&-; fi
}
fault_full() { cat /dev/zero >"$STATE/fill" 2>/dev/null; }
fault_second() { sh "$STATE/guard" lock second 1 >/dev/null 2>&1 9>&- & }
fault_pause() { # somebody outside does it meanwhile
	fault_tries=0
	until [ -e /run/wulf-fault/go ] || [ "$fault_tries" -ge 600 ]; do
		fault_tries=$((fault_tries + 1))
		sleep 0.05 9>&-
	done
}
"""


def faulty_program() -> str:
    """Return the guard's text with faults in it."""
    text = program()
    last = 'main "$@"\n'
    assert text.count("\nnote() {") == 1 and text.endswith("\n" + last)
    return text.replace("\nnote() {", "\nnoted() {").removesuffix(last) + _INJECTED + last


class Site:
    """One node, reached without the network."""

    def __init__(self, lab: Lab, name: str) -> None:
        self.lab = lab
        self.name = name
        self._pid = 0

    @property
    def pid(self) -> int:
        """Process 1 of the node, as this machine counts."""
        if not _is_first(self._pid):
            directory = self.lab.directory / "nodes" / self.name / "root"
            found = system.processes_of(directory, group(self.lab.state.namespace, self.name))
            first = [pid for pid in found if _is_first(pid)]
            if not first:
                raise RuntimeError(f"{self.name} is off")
            self._pid = first[0]
        return self._pid

    def path(self, inside: str) -> Path:
        """Where a file of the node is found from outside, whatever is mounted there."""
        return Path(f"/proc/{self.pid}/root/{inside.lstrip('/')}")

    def run(self, argv: Sequence[str], stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        """Run a command in the node, in all its namespaces."""
        for _ in range(20):
            done = self._run(argv, stdin)
            if not done.stderr.startswith(b"nsenter: cannot open"):
                break
            # It is just being booted.
            self._pid = 0
            time.sleep(0.2)
        return done

    def _run(self, argv: Sequence[str], stdin: bytes | None) -> subprocess.CompletedProcess[bytes]:
        enter = ["nsenter", "--target", str(self.pid), "--all", "--root", "--wd"]
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
        }
        return subprocess.run(
            [*enter, *argv],
            input=stdin or b"",
            capture_output=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
            env=environment,
        )

    def shell(self, text: str) -> str:
        """Run shell text in the node; return what it printed."""
        done = self.run(["sh", "-c", text])
        if done.returncode != 0:
            raise RuntimeError(f"{self.name}: {text[:200]}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode(errors="replace")

    def link(self, state: str) -> None:
        """Cut the cable (``down``) or mend it (``up``), at the bridge."""
        words = ["ip", "-n", self.lab.state.namespace, "link", "set", f"vb-{self.name}", state]
        subprocess.run(words, check=True, capture_output=True)

    def arm(self, at: str, do: str) -> None:
        """Let the guard meet a fault at one of its steps."""
        place = self.path(PLACE)
        place.mkdir(exist_ok=True)
        for name in ("hit", "go", "record"):
            (place / name).unlink(missing_ok=True)
        (place / "do").write_text(do)
        (place / "at.new").write_text(at + "\n")
        (place / "at.new").rename(place / "at")

    def record(self) -> None:
        """Let the guard write down its steps."""
        self.path(PLACE).mkdir(exist_ok=True)
        (self.path(PLACE) / "record").touch()

    def recorded(self) -> list[str]:
        """Return the steps since `record`."""
        return (self.path(PLACE) / "record").read_text().splitlines()

    def disarm(self) -> None:
        """No more faults."""
        for name in ("at", "record", "hit"):
            (self.path(PLACE) / name).unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            (self.path(PLACE) / "go").touch()

    def was_hit(self) -> bool:
        """Whether the guard has met its fault."""
        return (self.path(PLACE) / "hit").exists()

    def go_on(self) -> None:
        """End a pause."""
        (self.path(PLACE) / "go").touch()

    def journal(self) -> dict[str, str]:
        """Change → its state, read from the files."""
        found = {}
        for state in self.path("var/lib/wulf/tx").glob("*/state"):
            with contextlib.suppress(FileNotFoundError):
                found[state.parent.name] = state.read_text().strip()
        return found

    def is_settled(self) -> bool:
        """Whether no change is open and no watcher at work."""
        states = self.journal().values()
        still = all(state.split("\t")[0] in ("confirmed", "undone") for state in states)
        return still and not self.path("run/wulf/watcher").exists()

    def facts(self) -> dict[str, str]:
        """Return every fact and setting that can be told, but for those of the moment."""
        for _ in range(5):
            record = capture(inside([self]), [self.name], INTERFACE, list(catalogue.knobs().values()))[0]
            if record.error:
                raise RuntimeError(f"{self.name}: {record.error}")
            # Many nodes share two CPUs here.
            if not any("in time" in reason for reason in record.unknown.values()):
                break
        found: dict[str, str] = {}
        for kind in ("facts", "unknown", "absent", "unsupported"):
            for name, value in getattr(record, kind).items():
                if name not in PASSING_FACTS | _OF_THE_CLOCK:
                    found[f"{kind} {name}"] = str(value)
        for section in self.shell(_EXACT).split("== ")[1:]:
            title, _, text = section.partition("\n")
            if title == "sysctl":
                found |= {f"exact sysctl {line.partition(' = ')[0]}": line for line in text.splitlines()}
            else:
                found[f"exact {title}"] = text
        return found | self._files("etc")

    def _files(self, top: str) -> dict[str, str]:
        """Return mode, owner, time to the nanosecond and content of all files."""
        found = {}
        root = self.path("")
        for directory, directories, files in os.walk(root / top):
            for name in [*files, *(name for name in directories if (Path(directory) / name).is_symlink())]:
                path = Path(directory) / name
                about = path.lstat()
                if stat.S_ISLNK(about.st_mode):
                    text = f"link {path.readlink()}"
                else:
                    content = path.read_bytes() if stat.S_ISREG(about.st_mode) else b""
                    digest = hashlib.sha256(content).hexdigest()[:12]
                    text = f"{about.st_mode:o} {about.st_uid}:{about.st_gid} {about.st_mtime_ns} {digest}"
                found[f"file {path.relative_to(root)}"] = text
            here = Path(directory).stat()
            found[f"directory {Path(directory).relative_to(root)}"] = (
                f"{here.st_mode:o} {here.st_uid}:{here.st_gid}"
            )
        return found

    def leftovers(self) -> list[str]:
        """Return what a guard may not leave behind."""
        text = r"""
		for pid in /proc/[0-9]*; do
			line=$(tr '\0' ' ' <"$pid/cmdline" 2>/dev/null)
			case $line in *[w]ulf/guard*) echo "process $line" ;; esac
		done
		ls -d /etc/systemd/system/wulf-recover* /etc/systemd/system/*/wulf-recover* 2>/dev/null
		ls -d /run/wulf/deadline* /run/wulf/watcher 2>/dev/null
		ls -d /var/lib/wulf/*.new /var/lib/wulf/tx/*/*.new 2>/dev/null
		true"""
        return self.shell(text).splitlines()

    def wipe(self) -> None:
        """Forget all changes."""
        self.shell("cd /var/lib/wulf && rm -rf tx log log.1 reserve fill; rm -rf /run/wulf")


class _Inside:
    """Run commands on nodes without the network; as much of `wulf.ports.Transport` as is needed here."""

    name = "inside"

    def __init__(self, sites: Mapping[str, Site]) -> None:
        self._sites = sites

    def run(
        self,
        argv: Sequence[str],
        nodes: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        each: Callable[[NodeResult], None] | None = None,
        fresh: bool = False,
    ) -> dict[str, NodeResult]:
        del timeout_s, env, fresh
        found = {}
        for node in nodes:
            done = self._sites[node].run(argv, stdin)
            found[node] = NodeResult(
                node=node,
                status="ok" if done.returncode == 0 else "exit",
                exit_code=done.returncode,
                stdout=done.stdout,
                stderr=done.stderr,
                reason="" if done.returncode == 0 else f"{node}: exit code {done.returncode}",
            )
            if each is not None:
                each(found[node])
        return {} if each is not None else found

    def put(
        self, source: Path, target: str, nodes: Sequence[str], *, timeout_s: float, mode: int = 0o755
    ) -> dict[str, NodeResult]:
        script = 'mkdir -p "${1%/*}" && cat >"$1.new" && chmod "$2" "$1.new" && mv "$1.new" "$1"'
        words = ["sh", "-c", script, "put", target, f"{mode:o}"]
        return self.run(words, nodes, timeout_s=timeout_s, stdin=source.read_bytes())

    def start(
        self, argv: Sequence[str], node: str, *, env: Mapping[str, str] | None = None
    ) -> contextlib.nullcontext[RemoteProcess]:
        raise NotImplementedError


def inside(sites: Sequence[Site]) -> _Inside:
    """Return the transport that needs no network."""
    return _Inside({site.name: site for site in sites})


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait until something holds; whether it does."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.03)
    return True


def _is_first(pid: int) -> bool:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return False
    numbers = next(line for line in lines if line.startswith("NSpid:")).split()
    return len(numbers) == 3 and numbers[-1] == "1" and pid > 0

"""A virtual node seen from outside: its processes, its files, its exact state, and the faults put into its guard."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import os
import stat
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from wulf.base import catalogue
from wulf.base.contracts import NodeResult, RemoteProcess
from wulf.base.native import build
from wulf.base.records import PASSING_FACTS
from wulf.node.facts.capture import capture
from wulf.node.lab import Lab, system
from wulf.node.lab.nodes import group

Facts = Mapping[str, str]
INTERFACE = "host0"
COMMAND_TIMEOUT_S = 60.0
#: In the node; gone after a reboot, so that a fault happens once.
PLACE = "run/wulf-fault"
#: MPI's own are in files, which are compared byte for byte; asking for them takes a fifth of the time of a look.
_KNOBS = [knob for knob in catalogue.knobs().values() if knob.access.kind != "mpi_parameter"]
#: Facts that a change that was taken back leaves behind: when files were written, and how often the link went.
_OF_THE_PAST = frozenset({"settings.changed_since_boot", "nic.carrier_changes"})

_HERE = Path(__file__).parent
#: What a node's settings are, beyond its facts.
_EXACT = (_HERE / "exact.sh").read_text()
#: The guard with points of fault, which no release has.
_FAULTS = "wulf-guard-faults"


@functools.cache
def faulty_program() -> bytes:
    """Return the guard with faults in it (native/guard/fault.c)."""
    return build.build_program(_FAULTS, None).path.read_bytes()


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

    def states(self) -> list[str]:
        """Return the states of the changes, the first one first."""
        journal = self.journal()
        return [journal[change].split("\t")[0] for change in sorted(journal, key=self._number)]

    def _number(self, change: str) -> float:
        """Return which change it is on this node: two of one second have names in any order."""
        with contextlib.suppress(FileNotFoundError):
            for line in self.path(f"var/lib/wulf/tx/{change}/about").read_text().splitlines():
                name, _, value = line.partition("\t")
                if name == "number":
                    return int(value)
        return math.inf

    def owner(self) -> str:
        """Return who has the node; empty where nobody has."""
        with contextlib.suppress(FileNotFoundError):
            return self.path("run/wulf/lock").read_text()
        return ""

    def has_carrier(self) -> bool:
        """Whether its cable is in."""
        with contextlib.suppress(OSError):
            return self.path(f"sys/class/net/{INTERFACE}/carrier").read_text().strip() == "1"
        return False

    def is_settled(self) -> bool:
        """Whether no change is open, and no watcher at work or about to be started again."""
        at_work = self.path("run/wulf/watcher").exists() or any(
            self.path("run/systemd/transient").glob("wulf-guard-*")
        )
        # A guard that has written down its last word still takes away what it has put there for the next boot.
        at_work = at_work or self.path("etc/systemd/system/wulf-recover.service").exists()
        return set(self.states()) <= {"confirmed", "undone"} and not at_work

    def facts(self) -> dict[str, str]:
        """Return every fact and setting that can be told, but for those of the moment."""
        for _ in range(5):
            record = capture(inside([self]), [self.name], INTERFACE, _KNOBS)[0]
            if record.error:
                raise RuntimeError(f"{self.name}: {record.error}")
            # Many nodes share two CPUs here.
            if not any("in time" in reason for reason in record.unknown.values()):
                break
        found: dict[str, str] = {}
        for kind in ("facts", "unknown", "absent", "unsupported"):
            for name, value in getattr(record, kind).items():
                if name not in PASSING_FACTS | _OF_THE_PAST:
                    found[f"{kind} {name}"] = str(value)
        return found | self.exact()

    def exact(self) -> dict[str, str]:
        """Return what a node's settings are, beyond its facts; takes much less time than these."""
        found: dict[str, str] = {}
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
                with contextlib.suppress(FileNotFoundError):  # a guard at its end takes away its own just now
                    found[f"file {path.relative_to(root)}"] = _about(path)
            here = Path(directory).stat()
            found[f"directory {Path(directory).relative_to(root)}"] = (
                f"{here.st_mode:o} {here.st_uid}:{here.st_gid}"
            )
        return found

    def failed_units(self) -> str:
        """Return the units that have failed, and what the journal says of them."""
        return self.shell(
            "for unit in $(systemctl --failed --plain --no-legend | awk '{print $1}'); do "
            "systemctl status --no-pager --lines=20 $unit; done 2>&1; true"
        )

    def leftovers(self) -> list[str]:
        """Return what a guard may not leave behind."""
        text = r"""
		for pid in /proc/[0-9]*; do
			line=$(tr '\0' ' ' <"$pid/cmdline" 2>/dev/null)
			case $line in *[w]ulf/guard\ hold*) ;; *[w]ulf/guard*) echo "process $line" ;; esac
		done
		ls -d /etc/systemd/system/wulf-recover* /etc/systemd/system/*/wulf-recover* 2>/dev/null
		ls -d /run/wulf/deadline* /run/wulf/retry* /run/wulf/watcher /run/wulf/keeper /run/wulf/spare 2>/dev/null
		ls -d /var/lib/wulf/*.new /var/lib/wulf/tx/*/*.new /var/lib/wulf/open.* /var/lib/wulf/gone.* 2>/dev/null
		true"""
        return self.shell(text).splitlines()

    def wipe(self) -> None:
        """Forget all changes."""
        self.shell(
            "cd /var/lib/wulf && rm -rf tx log log.1 reserve fill open.* gone.* owned history archive; rm -rf /run/wulf"
        )


class _Inside:
    """Run commands on nodes without the network; as much of `wulf.base.contracts.Transport` as is needed here."""

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
        self,
        argv: Sequence[str],
        node: str,
        *,
        env: Mapping[str, str] | None = None,
        line: str | None = None,
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
        time.sleep(0.1)
    return True


def _is_first(pid: int) -> bool:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return False
    numbers = next(line for line in lines if line.startswith("NSpid:")).split()
    return len(numbers) == 3 and numbers[-1] == "1" and pid > 0


def _about(path: Path) -> str:
    """Return mode, owner, time and content of a file."""
    about = path.lstat()
    if stat.S_ISLNK(about.st_mode):
        return f"link {path.readlink()}"
    content = path.read_bytes() if stat.S_ISREG(about.st_mode) else b""
    digest = hashlib.sha256(content).hexdigest()[:12]
    return f"{about.st_mode:o} {about.st_uid}:{about.st_gid} {about.st_mtime_ns} {digest}"

"""Whether a node is idle: what its processes used between two looks, and whose they are. Pure but for `look`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from importlib import resources

from wulf.base.contracts import Transport
from wulf.base.text import printable

#: Between the two looks [s].
APART_S = 2
#: Units of /proc/PID/stat: USER_HZ, 100 per second on every Linux that this runs on.
_TICKS_PER_S = 100.0
#: From here on accounts are people's, as Debian and RHEL number them; above are nobody and services.
_FIRST_USER, _FIRST_SERVICE_AGAIN = 1000, 60000
#: CPUs that people's processes may use, and all together.
OF_USERS, OF_ALL = 0.05, 0.5
#: Processes that want to run, mean of a minute.
LOAD = 1.0
_PATIENCE_S = 30.0
_NAMED = 3


def look(transport: Transport, nodes: Sequence[str]) -> dict[str, str]:
    """Return why each node is busy; empty where it is idle. A node that does not answer is not idle."""
    script = resources.files("wulf.node.facts").joinpath("idle.sh").read_bytes()
    results = transport.run(["sh", "-s", "--", str(APART_S)], nodes, timeout_s=_PATIENCE_S, stdin=script)
    return {
        node: why_busy(results[node].stdout.decode("utf-8", "replace"))
        if results[node].status == "ok"
        else results[node].reason or results[node].status
        for node in nodes
    }


def why_busy(text: str) -> str:
    """Return why a node is busy, from what ``idle.sh`` printed; empty when it is idle."""
    parts = _parts(text)
    try:
        elapsed_s = float(parts["after.uptime"][0].split()[0]) - float(parts["before.uptime"][0].split()[0])
        used = _used(parts, elapsed_s)
        load = float(parts["load"][0].split()[0]) if "load" in parts else 0.0
    except (KeyError, IndexError, ValueError, ZeroDivisionError):
        return "it does not report its processes"
    reasons = [*_of_users(used, parts), *_of_all(used)]
    if load >= LOAD:
        reasons.append(f"{load:g} processes wanted to run, mean of the last minute")
    return printable("; ".join(reasons), 300)


def _parts(text: str) -> dict[str, list[str]]:
    parts: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("#"):
            lines = parts[line[1:]] = []
        else:
            lines.append(line)
    return parts


#: (user number, name of a process) → CPUs that it used.
_Used = dict[tuple[int, str], float]


def _used(parts: dict[str, list[str]], elapsed_s: float) -> _Used:
    before, after = (_ticks(parts[when]) for when in ("before", "after"))
    owners = {}
    for line in parts["after.owners"]:
        owner, _, path = line.partition(" ")
        owners[path.rpartition("/")[2]] = int(owner)
    used: _Used = defaultdict(float)
    for pid, (name, ticks) in after.items():
        grown = ticks - before.get(pid, ("", 0.0))[1]
        if pid in owners and grown > 0:
            used[owners[pid], name] += grown / _TICKS_PER_S / elapsed_s
    return used


def _ticks(lines: Sequence[str]) -> dict[str, tuple[str, float]]:
    """Return process → its name and CPU time; a name may have spaces and brackets in it."""
    found = {}
    for line in lines:
        pid, _, rest = line.partition(" (")
        name, _, numbers = rest.rpartition(") ")
        words = numbers.split()
        found[pid] = name, float(words[11]) + float(words[12])
    return found


def _of_users(used: _Used, parts: dict[str, list[str]]) -> list[str]:
    names = {}
    for line in parts.get("users", []):
        name, _, number = line.partition(":")
        names[number] = name
    by_user: dict[int, float] = defaultdict(float)
    for (owner, _), cpus in used.items():
        if _FIRST_USER <= owner < _FIRST_SERVICE_AGAIN:
            by_user[owner] += cpus
    return [
        f"{names.get(str(owner), f'user {owner}')} uses {_cpus(cpus)} ({_programs(used, owner)})"
        for owner, cpus in sorted(by_user.items())
        if cpus > OF_USERS
    ]


def _of_all(used: _Used) -> list[str]:
    total = sum(cpus for (owner, _), cpus in used.items() if not _FIRST_USER <= owner < _FIRST_SERVICE_AGAIN)
    return [f"services use {_cpus(total)} ({_programs(used, None)})"] if total > OF_ALL else []


def _cpus(busy: float) -> str:
    several = f"{busy:.2g} CPUs"
    return "1 CPU" if several == "1 CPUs" else several


def _programs(used: _Used, owner: int | None) -> str:
    """Return the names of the busiest programs of a user, or of all."""
    mine = sorted(((cpus, name) for (who, name), cpus in used.items() if owner in (None, who)), reverse=True)
    return ", ".join(dict.fromkeys(name for _, name in mine[:_NAMED]))

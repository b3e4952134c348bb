"""Node-hours of jobs that are like traced programs, from a cluster's accounting (Slurm's sacct).  Pure."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePath

from wulf.base import nodeset
from wulf.base.errors import ConfigError, UsageError
from wulf.base.text import count, printable
from wulf.tools.worth.money import YEAR_H

FIELDS = ("JobID", "JobName", "NNodes", "NTasks", "ElapsedRaw", "Start", "End", "NodeList")
#: Of a job that began before, or still runs, `--truncate` has the part within these days: whole, it would stand beside
#: none of the others of its time, which are not listed.
COMMAND = f"sacct --allusers --parsable2 --truncate --starttime now-30days --format {','.join(FIELDS)}"
#: Steps that are no program of the user.
_OWN_STEPS = ("batch", "extern", "interactive")
#: Words of a command that are no program of the user.
_STARTERS = frozenset({"mpirun", "mpiexec", "mpiexec.hydra", "srun", "env", "taskset", "numactl"})
#: So many names are told where none fits.
_TOLD = 5
#: Elapsed times are whole seconds, and begin and end are those of the clock.
_HOUR_S = 3600.0


@dataclass(frozen=True)
class Traced:
    """A program of which there is a trace."""

    trace: str
    command: str
    ranks: int
    nodes: int

    @property
    def names(self) -> set[str]:
        """What a job or a step of it may be called: the file of the trace, and the words of its command."""
        words = {PurePath(word).name for word in self.command.split() if not word.startswith("-")}
        return {PurePath(self.trace).stem, *(word for word in words - _STARTERS if not word.isdigit())}


@dataclass
class _Job:
    """An allocation, with the steps within it."""

    name: str
    nodes: int
    seconds: float
    begin: datetime
    end: datetime
    hosts: list[str]
    #: Name of a step → its numbers of tasks.
    steps: dict[str, set[int]] = field(default_factory=dict)

    def is_of(self, program: Traced) -> bool:
        """Whether it ran the program as it was traced; where no step says how many ranks, by its nodes."""
        named = program.names & {self.name, *self.steps}
        tasks = {ranks for name in named for ranks in self.steps.get(name, ())}
        return bool(named) and self.nodes == program.nodes and (not tasks or program.ranks in tasks)


def is_accounting(text: bytes) -> bool:
    """Whether a file is what `sacct --parsable2` prints."""
    return text.startswith(b"JobID|")


def jobs_text(text: str, origin: str, programs: Sequence[Traced]) -> str:
    """Return the file of jobs, with the share of node-hours of each program.

    Raises
    ------
    ConfigError
        The accounting lacks a field, or a line is none of it; names file and line.
    UsageError
        No job is like a program: names those that took most node-hours.
    """
    jobs = [job for job in _jobs(text, origin) if job.nodes * job.seconds > 0]
    whole = sum(job.nodes * job.seconds for job in jobs)
    if whole <= 0:
        raise ConfigError(f"{origin}: no job in it has taken any time; {COMMAND}")
    hosts = {host for job in jobs for host in job.hosts}
    period_s = (max(job.end for job in jobs) - min(job.begin for job in jobs)).total_seconds()
    hours = min(whole / len(hosts) / max(period_s, _HOUR_S) * YEAR_H, YEAR_H)
    lines = [f"nodes = {len(hosts)}", f"hours_a_year = {hours:.6g}"]
    left = jobs
    for program in programs:
        mine = [job for job in left if job.is_of(program)]
        if not mine:
            raise UsageError(_unknown(origin, program, jobs, programs))
        left = [job for job in left if not job.is_of(program)]
        share = sum(job.nodes * job.seconds for job in mine) / whole
        lines += [
            "[[job]]",
            f"trace = {json.dumps(program.trace)}",
            f"share = {share:.9g}",
            f"ranks = {program.ranks}",
            f"nodes = {program.nodes}",
        ]
    return "\n".join(lines) + "\n"


def _unknown(origin: str, program: Traced, jobs: Sequence[_Job], programs: Sequence[Traced]) -> str:
    like = [job for job in jobs if job.is_of(program)]
    if like:
        others = [one.trace for one in programs if one is not program and any(job.is_of(one) for job in like)]
        return (
            f"{origin}: jobs like {program.trace} are like {', '.join(others)}, too: each job is of one trace, "
            "so leave one out"
        )
    hours: defaultdict[tuple[str, int], float] = defaultdict(float)
    for job in jobs:
        hours[job.name, job.nodes] += job.nodes * job.seconds / _HOUR_S
    most = ", ".join(
        f"{printable(name, 40)} on {count(nodes, 'node')} ({taken:.3g} node-hours)"
        for (name, nodes), taken in sorted(hours.items(), key=lambda one: -one[1])[:_TOLD]
    )
    return (
        f"{origin} has no job like {program.trace} ({count(program.ranks, 'rank')} on {count(program.nodes, 'node')}); "
        f"most were {most}: "
        "name the trace as its jobs are, or give --jobs a file of your own"
    )


def _jobs(text: str, origin: str) -> Iterator[_Job]:
    first, *rest = re.split(r"\r?\n", text)
    header = first.split("|")
    lacking = [name for name in FIELDS if name not in header]
    if lacking:
        raise ConfigError(f"{origin}: lacks {', '.join(lacking)}; {COMMAND}")
    now: _Job | None = None
    for number, line in enumerate(rest, start=2):
        if not line:
            continue
        try:
            row = _row(header, line)
            _, _, step = row["JobID"].partition(".")
            if not step:
                if now is not None:
                    yield now
                now = _allocation(row)
            elif now is not None and step not in _OWN_STEPS:
                tasks = now.steps.setdefault(row["JobName"], set())
                tasks.update([int(row["NTasks"])] if row["NTasks"] else [])
        except (ValueError, UsageError, ConfigError) as error:
            job = printable(line.partition("|")[0], 20)
            raise ConfigError(f"{origin}:{number}: job {job}: {printable(str(error), 80)}") from None
    if now is not None:
        yield now


def _row(header: Sequence[str], line: str) -> dict[str, str]:
    """Return the fields of a line; the only one that may itself have a | is the name."""
    cells = line.split("|")
    more = len(cells) - len(header)
    if more < 0:
        raise ValueError(f"{count(len(cells), 'field')} of {len(header)}")
    name = header.index("JobName")
    cells[name : name + more + 1] = ["|".join(cells[name : name + more + 1])]
    return dict(zip(header, cells, strict=True))


def _allocation(row: dict[str, str]) -> _Job | None:
    """Return a job; None of one that has not begun, or has no end, as nobody knows what it will take."""
    if "Unknown" in (row["Start"], row["End"]) or "None" in (row["Start"], row["End"]):
        return None
    nodes, seconds = int(row["NNodes"]), float(row["ElapsedRaw"])
    if nodes < 0 or not 0 <= seconds < 1e9:
        raise ValueError("nodes and seconds are from 0 on")
    hosts = [] if row["NodeList"] in ("", "None assigned") else nodeset.unfold(row["NodeList"])
    if nodes * seconds > 0 and not hosts:
        raise ValueError("it ran, and NodeList does not say where")
    begin, end = (datetime.fromisoformat(row[name]) for name in ("Start", "End"))
    return _Job(row["JobName"], nodes, seconds, begin, end, hosts)

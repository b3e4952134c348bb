"""Ask Slurm for a job, hand a batch script over, and see which kinds of MPI its ``srun`` starts."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from wulf.base.errors import SchedulerError
from wulf.base.text import last_line, printable
from wulf.node.cluster.names import expand

#: Slurm's own programs give up after several times 10 s.
_PATIENCE_S = 60.0
#: States in which a job can still run, or its processes are not all gone.
_GOING_ON = frozenset(
    {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT"}
    | {"REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESIZING", "RESV_DEL_HOLD"}
)
_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<clock>\d+(?::\d+){1,2})")
#: Of a job that ended so long ago that Slurm has forgotten it.
_FORGOTTEN = "Invalid job id"
#: Where a job is that is nowhere.
_NOWHERE = ("(null)", "None assigned")
_JOB = re.compile(r"[0-9]+(?:_[0-9]+)?")
#: The same of a job, as ``squeue`` and ``sacct`` are asked for it.
_QUEUE, _ACCOUNTING = "%A|%T|%V|%S|%e|%C|%N", "JobIDRaw,State,Submit,Start,End,AllocCPUS,NodeList"


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What Slurm says of a job."""

    id: str
    #: As Slurm names it: PENDING, RUNNING, COMPLETED …
    state: str
    #: Why it waits, or why it ended as it did; empty when there is nothing to say.
    reason: str
    nodes: tuple[str, ...]
    #: Time that it has run [s].
    run_s: float
    #: Time that it may run [s]; None for any.
    limit_s: float | None
    #: When it is expected to start, as Slurm writes it; empty when Slurm does not know.
    start: str
    exit_code: int
    #: The signal that ended it; 0 for none.
    signal: int
    #: Where what it prints goes, on the node where it runs; None for a job that is no script.
    output: Path | None
    #: Of an array: its number, or those that wait together as Slurm writes them (``3-7%2``); empty for other jobs.
    task: str = ""

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state not in _GOING_ON

    @property
    def left_s(self) -> float | None:
        """Time until it is ended [s]; None where that is never."""
        return None if self.limit_s is None else self.limit_s - self.run_s


def look(job: str) -> Job:
    """Ask for a job, which may also be one that has ended some minutes ago.

    Raises
    ------
    SchedulerError
        Slurm does not answer or does not know it.
    """
    if not _JOB.fullmatch(job):
        raise SchedulerError(f"{printable(job, 40)!r} is not the number of a Slurm job")
    return parse(ask(["scontrol", "--oneliner", "show", "job", job]))


def tasks(array: str) -> list[Job]:
    """Ask for the tasks of a job array; those that ended some minutes ago are not among them any more.

    Raises
    ------
    SchedulerError
        Slurm does not answer.
    """
    try:
        said = ask(["scontrol", "--oneliner", "show", "job", array])
    except SchedulerError as error:
        if _FORGOTTEN in str(error):
            return []
        raise
    return [parse(line) for line in said.splitlines() if line.strip()]


class Stint(msgspec.Struct, frozen=True, kw_only=True):
    """When a job was submitted, ran and ended, to the second."""

    id: str
    #: As Slurm names it.
    state: str
    #: Time since 1970 [s].
    submitted: float
    #: None where it has not started, or never did.
    started: float | None
    #: Of one that has not ended when it must; None where Slurm does not know.
    ended: float | None
    cpus: int
    nodes: tuple[str, ...]

    @property
    def over(self) -> bool:
        """Whether it has ended, and its nodes are free again."""
        return self.state not in _GOING_ON


def stints(jobs: Sequence[str]) -> dict[str, Stint]:
    """Ask how one's own jobs stand: from the queue, and those that it has forgotten from the accounting.

    Raises
    ------
    SchedulerError
        Slurm does not answer, or neither of them knows a job any more.
    """
    found = parse_stints(
        ask(["squeue", "--me", "--noheader", "--states=all", f"--format={_QUEUE}"]), "squeue"
    )
    forgotten = [job for job in jobs if job not in found]
    if forgotten:
        argv = ["sacct", "--allocations", "--noheader", "--parsable2", f"--format={_ACCOUNTING}"]
        found |= parse_stints(ask([*argv, f"--jobs={','.join(forgotten)}"]), "sacct")
    lost = [job for job in forgotten if job not in found]
    if lost:
        raise SchedulerError(f"neither squeue nor sacct knows job {', '.join(lost)} any more")
    return {job: found[job] for job in jobs}


def parse_stints(text: str, program: str) -> dict[str, Stint]:
    """Read what ``squeue`` or ``sacct`` prints of jobs, a line each.

    Raises
    ------
    SchedulerError
        A line is none of a job.
    """
    found = {}
    for line in text.splitlines():
        try:
            job, state, submitted, started, ended, cpus, nodes = line.split("|")
            found[job] = Stint(
                id=job,
                # The accounting says by whom it was cancelled.
                state=state.partition(" ")[0],
                submitted=datetime.fromisoformat(submitted).timestamp(),
                started=_moment(started),
                ended=_moment(ended),
                cpus=int(cpus),
                nodes=tuple(expand(nodes)) if nodes and nodes not in _NOWHERE else (),
            )
        except ValueError:
            raise SchedulerError(
                f"what {program} says of a job is not understood: {printable(line, 200)!r}"
            ) from None
    return found


def busy(nodes: Sequence[str]) -> dict[str, str]:
    """Return the jobs of anybody that run on nodes, and on which each does: number → nodes, as Slurm writes them."""
    said = ask(
        ["squeue", "--noheader", "--states=running", f"--nodelist={','.join(nodes)}", "--format=%A|%N"]
    )
    return {job: where for job, _, where in (line.partition("|") for line in said.splitlines())}


def cpus(nodes: Sequence[str]) -> int:
    """Return how many CPUs Slurm has on nodes, all together.

    Raises
    ------
    SchedulerError
        Slurm does not answer, or knows one of them not.
    """
    said = ask(["sinfo", "--noheader", "--Node", f"--nodes={','.join(nodes)}", "--format=%N|%c"])
    # A node has a line for each of its partitions.
    found = {node: count for node, _, count in (line.partition("|") for line in said.splitlines())}
    missing = [node for node in nodes if not found.get(node, "").isdigit()]
    if missing:
        raise SchedulerError(f"Slurm has no node of this name: {', '.join(missing)}")
    return sum(int(found[node]) for node in nodes)


def submit(script: Path, options: Sequence[str]) -> str:
    """Hand a batch script over with further options of ``sbatch``; return the number of the job."""
    said = ask(["sbatch", "--parsable", *options, str(script)])
    # With several clusters the name of one follows.
    number = last_line(said).partition(";")[0]
    if not _JOB.fullmatch(number):
        raise SchedulerError(f"sbatch did not print the number of a job, but {printable(said, 200)!r}")
    return number


def parse(text: str) -> Job:
    """Read what ``scontrol --oneliner show job`` prints.

    Raises
    ------
    SchedulerError
        A field is missing or means nothing.
    """
    code, _, signal = _field(text, "ExitCode").partition(":")
    state, reason, start = (_field(text, name) for name in ("JobState", "Reason", "StartTime"))
    nodes, output = _field(text, "NodeList"), _field(text, "StdOut")
    try:
        return Job(
            id=_field(text, "JobId"),
            state=state,
            reason="" if reason == "None" else reason,
            nodes=() if nodes in ("", "(null)") else tuple(expand(nodes)),
            run_s=_seconds(_field(text, "RunTime")) or 0.0,
            limit_s=_seconds(_field(text, "TimeLimit")),
            start="" if start == "Unknown" else start,
            exit_code=int(code),
            signal=int(signal or 0),
            output=Path(output) if output else None,
            task=_field(text, "ArrayTaskId"),
        )
    except ValueError as error:
        raise SchedulerError(f"what scontrol says of a job is not understood: {error}") from error


def mpi_plugins(answer: str) -> frozenset[str]:
    """Return the names in what ``srun --mpi=list`` prints: on its own lines, or after ``srun:``."""
    return frozenset(re.findall(r"^(?:srun:)?\s+([a-z0-9_]+)\s*$", answer, re.MULTILINE))


def _moment(text: str) -> float | None:
    """Return a point of time since 1970 [s]; None for what is none (N/A, Unknown, None)."""
    return datetime.fromisoformat(text).timestamp() if text[:1].isdigit() else None


def _field(text: str, name: str) -> str:
    """Return a field; empty when it has no value or is not there, as for a job without a script."""
    found = re.search(rf"(?:^|\s){name}=(.*?)(?=\s[A-Z][A-Za-z/:]*=|\s*$)", text)
    if found is None and name not in ("StdOut", "ArrayTaskId"):
        raise SchedulerError(f"scontrol says no {name} of a job: {printable(text, 200)!r}")
    return found[1].strip() if found else ""


def _seconds(text: str) -> float | None:
    """Return a time of Slurm's (``2-00:10:00``) [s]; None for what is none (UNLIMITED, Partition_Limit)."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    seconds = 0
    for part in found["clock"].split(":"):
        seconds = 60 * seconds + int(part)
    return float(86400 * int(found["days"] or 0) + seconds)


def ask(argv: Sequence[str]) -> str:
    """Run one of Slurm's programs; return what it printed.

    Raises
    ------
    SchedulerError
        It is not there, hangs or refuses; the text has its own reason.
    """
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except FileNotFoundError:
        raise SchedulerError(f"there is no {argv[0]} here: Slurm is not installed, or not in PATH") from None
    except subprocess.TimeoutExpired:
        raise SchedulerError(f"{argv[0]} hangs (given up after {_PATIENCE_S:g} s)") from None
    if done.returncode != 0:
        why = printable(last_line(done.stderr), 300) or f"exit code {done.returncode}"
        raise SchedulerError(f"{argv[0]}: {why.removeprefix(f'{argv[0]}: ').removeprefix('error: ')}")
    return done.stdout.strip()

"""A mix of jobs under Slurm: submitted in random order, followed to its end, and what that says of throughput."""

from __future__ import annotations

import random
import shlex
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import NamedTuple

from wulf.base.contracts import Say
from wulf.base.errors import SchedulerError, StoreError, UsageError
from wulf.base.nodeset import fold
from wulf.base.text import last_line, printable
from wulf.node.cluster import slurm
from wulf.node.fleet import allocation
from wulf.node.trials.bench import TrialError
from wulf.tools.study.metrics import options_of
from wulf.tools.study.record import StudyJob

#: Slurm is asked so often [s]: its times are whole seconds, and its controller serves the whole site.
ASK_EVERY_S = 2.0
#: So long a controller that does not answer is asked again [s].
PATIENCE_S = 60.0
#: A mix may take so long [s].
LIMIT_S = 86400.0
_DAY_S = 86400.0

#: Within which the nodes keep their settings.
Held = Callable[[], AbstractContextManager[None]]


class Mix(NamedTuple):
    """Jobs, and where they run."""

    jobs: Sequence[StudyJob]
    #: Mean time between two submissions [s].
    gap_s: float
    nodes: Sequence[str]
    environment: Mapping[str, str]
    directory: Path


class Throughput(NamedTuple):
    """What a mix came to."""

    values: dict[str, float]
    #: Jobs of others that ran on the nodes meanwhile.
    others: list[str]


class Arrival(NamedTuple):
    """A job of a mix, and when it is submitted."""

    job: StudyJob
    #: Which of those that are alike.
    number: int
    #: After the first one [s].
    at_s: float


def arrivals(jobs: Sequence[StudyJob], gap_s: float, seed: int) -> list[Arrival]:
    """Return all jobs in random order with random times between them, the same for the same seed."""
    order = random.Random(seed)  # noqa: S311 - reproducible, not secret
    every = [(job, number) for job in jobs for number in range(1, job.count + 1)]
    order.shuffle(every)
    found, at_s = [], 0.0
    for job, number in every:
        found.append(Arrival(job, number, at_s))
        at_s += order.expovariate(1 / gap_s) if gap_s else 0.0
    return found


def require(nodes: Sequence[str]) -> None:
    """Raise WulfError where no mix can be run from here."""
    if allocation.current() is not None:
        raise UsageError("a mix of jobs is submitted from outside of a Slurm job, and this is one")
    slurm.cpus(nodes)


def run(mix: Mix, seed: int, held: Held, say: Say) -> Throughput:
    """Submit all jobs of a mix and wait for their ends; those that have not ended are cancelled if that fails.

    Raises
    ------
    TrialError
        A job failed, or ran on a node that is not one of the study.
    SchedulerError
        Slurm does not take a job, or does not answer.
    StoreError
        Scripts cannot be written.
    """
    cpus = slurm.cpus(mix.nodes)
    queue = _Queue(mix, seed)
    try:
        while not queue.over:
            with held():
                queue.step()
                time.sleep(ASK_EVERY_S)
    except BaseException:
        queue.cancel(say)
        raise
    return Throughput(figures(list(queue.ended.values()), cpus), queue.others)


class _Queue:
    """Jobs of a mix that are to be submitted, that wait or run, and that have ended."""

    def __init__(self, mix: Mix, seed: int) -> None:
        self.ended: dict[str, slurm.Stint] = {}
        self.others: list[str] = []
        self._mix = mix
        self._coming = arrivals(mix.jobs, mix.gap_s, seed)
        #: Number of a job that has not ended → which it is, and its output.
        self._going_on: dict[str, tuple[StudyJob, Path]] = {}
        self._own: set[str] = set()
        self._begin = self._answered = time.monotonic()

    @property
    def over(self) -> bool:
        return not self._coming and not self._going_on

    def step(self) -> None:
        """Submit whose time has come, and look at the others."""
        passed_s = time.monotonic() - self._begin
        if passed_s > LIMIT_S:
            raise TrialError(f"the mix has not ended after {passed_s:.0f} s")
        while self._coming and self._coming[0].at_s <= passed_s:
            self._submit(self._coming.pop(0))
        try:
            found = slurm.stints(list(self._going_on))
            busy = slurm.busy(self._mix.nodes)
        except SchedulerError:
            if time.monotonic() - self._answered > PATIENCE_S:
                raise
            return
        self._answered = time.monotonic()
        self._take(found)
        for job, where in busy.items():
            other = f"job {job} of another ran on {where}"
            if job not in self._own and other not in self.others:
                self.others.append(other)

    def _submit(self, arrival: Arrival) -> None:
        mix, name = self._mix, f"{arrival.job.name}-{arrival.number}"
        path, output = mix.directory / f"{name}.sh", mix.directory.absolute() / f"{name}.out"
        try:
            mix.directory.mkdir(parents=True, exist_ok=True)
            path.write_text(script(arrival.job.command, mix.environment), encoding="utf-8")
            output.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"cannot write {path}: {error.strerror}") from None
        options = [f"--job-name={name}", f"--output={str(output).replace('%', '%%')}", "--no-requeue"]
        job = slurm.submit(path, [*options, *options_of(arrival.job.options)])
        self._own.add(job)
        self._going_on[job] = arrival.job, output

    def _take(self, found: Mapping[str, slurm.Stint]) -> None:
        for job, stint in found.items():
            if not stint.over:
                continue
            of, output = self._going_on.pop(job)
            if stint.state != "COMPLETED":
                raise TrialError(f"a job {of.name!r}: {_how(stint)}{_said(output)}")
            strange = [node for node in stint.nodes if node not in self._mix.nodes]
            if strange:
                raise TrialError(
                    f"a job {of.name!r} ran on {fold(strange)}, which the study has not: its options of sbatch "
                    "must keep jobs on the nodes of the study (a partition, a reservation, --exclude)"
                )
            self.ended[job] = stint

    def cancel(self, say: Say) -> None:
        """End what has not ended, and wait until its nodes are free."""
        left = list(self._going_on)
        if not left:
            return
        try:
            slurm.ask(["scancel", *left])
            end = time.monotonic() + PATIENCE_S
            while time.monotonic() < end:
                if all(stint.over for stint in slurm.stints(left).values()):
                    return
                time.sleep(ASK_EVERY_S)
            raise SchedulerError("they have not ended")
        except SchedulerError as error:
            say(f"jobs may go on: 'scancel {' '.join(left)}' ends them ({error})")


def script(command: str, environment: Mapping[str, str]) -> str:
    """Return the batch script of a job."""
    variables = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    return "\n".join(["#!/bin/sh", *variables, command, ""])


def figures(ended: Sequence[slurm.Stint], cpus: int) -> dict[str, float]:
    """Return what jobs that have all ended say of throughput.

    Parameters
    ----------
    cpus
        Of all nodes together.

    Returns
    -------
    dict
        Jobs a day and the share of the CPUs' time that was allocated, from the first submission to the last end; the
        mean time from a submission to its end [s].

    Raises
    ------
    TrialError
        Slurm lacks a time, or the jobs are too short for its whole seconds.
    """
    whole = [(one, one.started, one.ended) for one in ended]
    known = [(one, start, end) for one, start, end in whole if start is not None and end is not None]
    if len(known) < len(ended):
        raise TrialError(f"Slurm does not say when {len(ended) - len(known)} of the jobs started and ended")
    length_s = max(end for _, _, end in known) - min(one.submitted for one, _, _ in known)
    used_s = sum(one.cpus * (end - start) for one, start, end in known)
    turnaround_s = statistics.fmean(end - one.submitted for one, _, end in known)
    if min(length_s, used_s, turnaround_s) <= 0:
        raise TrialError("the jobs took less than a second, and Slurm's times are whole seconds")
    return {
        "jobs a day": len(known) * _DAY_S / length_s,
        "utilisation": used_s / (cpus * length_s),
        "turnaround": turnaround_s,
    }


def _how(stint: slurm.Stint) -> str:
    where = f" on {fold(stint.nodes)}" if stint.nodes else ""
    return stint.state.lower().replace("_", " ") + where


def _said(output: Path) -> str:
    with suppress(OSError):
        said = printable(last_line(output.read_bytes()), 200)
        return f" ({said})" if said else ""
    return f"; it has left no output at {output}: is that a directory of all nodes?"

"""Replays of many networks and traces as a job array of Slurm: cut into pieces, submitted, followed, put together.

A piece is some of the networks of one trace. What a piece comes to is a file, named by all that it depends on (the
trace's content, networks, placement, rules, options, version): the same question finds what is there, and only the
rest is submitted. So a task that failed is done again by asking again.
"""

from __future__ import annotations

import functools
import hashlib
import shlex
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from wulf import __version__
from wulf.base.contracts import Say
from wulf.base.errors import SchedulerError, StoreError, TraceError, UsageError, WulfError
from wulf.base.store import write_atomically
from wulf.base.text import IS, count, last_line
from wulf.node.cluster import slurm
from wulf.node.replay import replaying
from wulf.node.replay.replaying import LANES, Piece, Work
from wulf.stats.prediction import replayed
from wulf.stats.prediction.replayed import Replayed

#: Fewer networks than this are not worth a task of their own, nor are more tasks for one trace.
LEAST, MOST = 8 * LANES, 64
#: Slurm is asked so often [s], and for so long where it does not answer.
ASK_EVERY_S, PATIENCE_S = 2.0, 60.0
#: A file that a node has written is seen here after that, at the latest [s].
SEEN_AFTER_S = 10.0
#: Failed tasks that are named.
_NAMED = 5


class Watcher(Protocol):
    """Shows a person what becomes of the array."""

    def __call__(self, text: str) -> None:
        """Take how it stands."""


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """What a task of the array does."""

    piece: Piece
    #: Name of the file that it leaves, which is in the directory of the array.
    result: str


@dataclass(frozen=True)
class Array:
    """Does work as a job array.

    Parameters
    ----------
    options
        Of sbatch.
    directory
        Which all nodes see; what is asked and what comes of it is in a directory of its own there, until it is whole.
    """

    options: Sequence[str]
    directory: Path
    watch: Watcher

    def __call__(self, works: Sequence[Work], say: Say) -> list[Replayed]:
        """Return what the work comes to, the same as on one machine.

        Raises
        ------
        SchedulerError
            Slurm does not take it, does not answer, or tasks have failed: names them.
        TraceError
            A trace cannot be replayed soundly; says why.
        KeyboardInterrupt
            After it was said that the array goes on.
        """
        pieces = [work.pieces(_tasks_of(work)) for work in works]
        every = [_spec(piece) for of_work in pieces for piece in of_work]
        place = self.directory / f"array-{_digest(one.result for one in every)}"
        missing = _write(place, every)
        if missing:
            job = self._submitted(place, missing)
            say(f"job {job}: {len(missing)} of {count(len(every), 'piece')} to do")
            self._follow(job, place, every)
        found = _together(works, pieces, place, every)
        shutil.rmtree(place, ignore_errors=True)
        return found

    def _submitted(self, place: Path, missing: Sequence[int]) -> str:
        """Return the number of the array that does what is missing: one that still does it, or a new one."""
        known = place / "job"
        if known.is_file() and (job := known.read_text().strip()) and _going_on(job):
            self.watch(f"job {job}: goes on, {place}")
            return job
        batch = place / "array.sbatch"
        write_atomically(batch, script(place, missing).encode())
        job = slurm.submit(batch, self.options)
        write_atomically(known, job.encode())
        self.watch(f"job {job}: submitted, {count(len(missing), 'task')}, {batch}")
        return job

    def _follow(self, job: str, place: Path, every: Sequence[Spec]) -> None:
        try:
            self._wait(job, place, every)
        except KeyboardInterrupt:
            self.watch(
                f"job {job} goes on: the same command again takes what it has done, 'scancel {job}' ends it"
            )
            raise

    def _wait(self, job: str, place: Path, every: Sequence[Spec]) -> None:
        said, ended_at, silent_since = "", None, None
        while missing := _missing(place, every):
            try:
                tasks = slurm.tasks(job)
                silent_since = None
            except SchedulerError as error:
                silent_since = silent_since or time.monotonic()
                if time.monotonic() - silent_since >= PATIENCE_S:
                    raise SchedulerError(
                        f"{error}; job {job} may go on: give the same command again"
                    ) from None
                time.sleep(ASK_EVERY_S)
                continue
            standing = _standing(job, tasks, len(every) - len(missing), len(every))
            if standing != said:
                self.watch(standing)
                said = standing
            if all(task.over for task in tasks):
                ended_at = ended_at or time.monotonic()
                if time.monotonic() - ended_at >= SEEN_AFTER_S or _refused(place, missing):
                    raise _failed(job, tasks, place, missing)
            time.sleep(ASK_EVERY_S)
        self.watch(f"job {job}: all {count(len(every), 'piece', verbs=IS)} there")


def replayer(options: str | None, directory: Path, watch: Watcher) -> replaying.Replayer:
    """Return who replays: this machine, or with options of sbatch a job array.

    Raises
    ------
    UsageError
        The options are no words of a shell.
    """
    if options is None:
        return replaying.here
    try:
        words = shlex.split(options)
    except ValueError as error:
        raise UsageError(f"--slurm {options!r}: {error}") from None
    return Array(options=words, directory=directory, watch=watch)


def script(place: Path, tasks: Sequence[int]) -> str:
    """Return the batch script of an array with tasks of these numbers."""
    here = place.absolute()
    command = [sys.executable, "-P", "-m", "wulf.start", "replay-piece", str(here)]
    return (
        "#!/bin/sh\n"
        "#SBATCH --job-name=wulf-predict\n"
        f"#SBATCH --array={','.join(map(str, tasks))}\n"
        "#SBATCH --ntasks=1\n"
        f"#SBATCH --output={shlex.quote(str(here).replace('%', '%%') + '/%a.out')}\n"
        f"exec {shlex.join(command)}\n"
    )


def do(place: Path, task: int) -> None:
    """Do one task of an array, on the node that it was given to.

    Raises
    ------
    StoreError
        There is no such task.
    TraceError
        The trace cannot be replayed soundly; that is also left in a file, for who follows.
    """
    try:
        spec = msgspec.json.decode((place / f"{task}.json").read_bytes(), type=Spec)
    except (OSError, msgspec.DecodeError) as error:
        raise StoreError(f"{place}: task {task} cannot be read: {error}") from None
    try:
        found = replaying.printed(spec.piece)
    except WulfError as error:
        write_atomically(place / f"{task}.failed", str(error).encode())
        raise
    write_atomically(place / spec.result, found)


def _tasks_of(work: Work) -> int:
    return max(1, min(MOST, len(work.networks) // LEAST))


def _spec(piece: Piece) -> Spec:
    # By what the files hold, wherever they are.
    same = msgspec.structs.replace(piece, trace="", rules="")
    parts = [__version__, _content(piece.trace), _content(piece.rules), msgspec.json.encode(same).decode()]
    return Spec(piece=piece, result=f"{_digest(parts)}.jsonl")


@functools.lru_cache(maxsize=256)
def _content(path: str) -> str:
    """Return the digest of a file; of none nothing."""
    if not path:
        return ""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise TraceError(f"cannot read {path}: {error.strerror}") from None


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _write(place: Path, every: Sequence[Spec]) -> list[int]:
    """Write what the tasks are to do; return those whose result is not there."""
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot make {place}: {error.strerror}") from None
    missing = _missing(place, every)
    for task in missing:
        write_atomically(place / f"{task}.json", msgspec.json.encode(every[task]))
        (place / f"{task}.failed").unlink(missing_ok=True)
    return missing


def _missing(place: Path, every: Sequence[Spec]) -> list[int]:
    there = {path.name for path in place.iterdir()}
    return [task for task, spec in enumerate(every) if spec.result not in there]


def _going_on(job: str) -> bool:
    return any(not task.over for task in slurm.tasks(job))


def _standing(job: str, tasks: Sequence[slurm.Job], done: int, total: int) -> str:
    running = sum(task.state == "RUNNING" for task in tasks)
    waits = next((task for task in tasks if task.state == "PENDING"), None)
    text = f"job {job}: {done} of {count(total, 'piece')} done, {running} running"
    return f"{text}, others wait for {waits.reason or 'their turn'}" if waits is not None else text


def _refused(place: Path, missing: Sequence[int]) -> bool:
    return all((place / f"{task}.failed").is_file() for task in missing)


def _failed(job: str, tasks: Sequence[slurm.Job], place: Path, missing: Sequence[int]) -> WulfError:
    """Return the error that names the tasks that have left no result, and why."""
    refused = [task for task in missing if (place / f"{task}.failed").is_file()]
    if refused:
        # What one trace cannot carry no node can: it is not Slurm's failure.
        return TraceError((place / f"{refused[0]}.failed").read_text())
    states = {task.task: task for task in tasks}
    named = "; ".join(_why(task, states.get(str(task)), place) for task in missing[:_NAMED])
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    return SchedulerError(
        f"job {job}: {len(missing)} of its tasks left no result: {named}{more}. What the others found is kept in "
        f"{place}: the same command again does only what is missing"
    )


def _why(task: int, state: slurm.Job | None, place: Path) -> str:
    how = state.state.lower().replace("_", " ") if state is not None else "ended"
    where = f" on {','.join(state.nodes)}" if state is not None and state.nodes else ""
    try:
        said = last_line((place / f"{task}.out").read_bytes())
    except OSError:
        said = ""
    return f"task {task} {how}{where}" + (f" ({said})" if said else "")


def _together(
    works: Sequence[Work], pieces: Sequence[Sequence[Piece]], place: Path, every: Sequence[Spec]
) -> list[Replayed]:
    specs = iter(every)
    found = []
    for work, of_work in zip(works, pieces, strict=True):
        parts = [
            replayed.read((place / next(specs).result).read_bytes(), piece.count, str(work.trace))
            for piece in of_work
        ]
        found.append(replayed.joined(parts))
    return found

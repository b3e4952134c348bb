"""Hand a command to Slurm as a batch job, and follow it to its end."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from wulf.base.errors import SchedulerError, StoreError, UsageError
from wulf.node.cluster import slurm

#: Stands in a template for the command.
PLACE = "{wulf}"
#: What a job prints is looked at so often [s].
READ_EVERY_S = 1.0
#: Slurm is asked for it after so many of these, each time twice as many: its controller serves the whole site.
LOOK_AFTER, LOOK_AFTER_MOST = 1, 8
#: So long a controller that does not answer is asked again [s].
PATIENCE_S = 60.0
_NODES = 2


class Watcher(Protocol):
    """Shows a person what becomes of a job."""

    def looked(self, job: slurm.Job) -> None:
        """Take what Slurm says of the job now."""

    def printed(self, text: str) -> None:
        """Take what the job has printed since."""

    def unanswered(self, why: str) -> None:
        """Take why Slurm does not say anything of the job; it is asked again."""


def script(command: Sequence[str], name: str, output: Path) -> str:
    """Return a batch script that runs a command.

    ``exec``: a job that is cancelled sends its signal to the script, and a shell that waited for the command would
    end without it.
    """
    return (
        "#!/bin/sh\n"
        f"#SBATCH --job-name={shlex.quote(name)}\n"
        f"#SBATCH --nodes={_NODES}\n"
        "#SBATCH --exclusive\n"
        # A run is not measured twice: --resume goes on with it.
        "#SBATCH --no-requeue\n"
        f"#SBATCH --output={shlex.quote(str(output).replace('%', '%%'))}\n"
        f"exec {shlex.join(command)}\n"
    )


def from_template(template: Path, command: Sequence[str]) -> str:
    """Return the text of a file with the command in its place.

    Raises
    ------
    UsageError
        The file cannot be read or has no place for the command.
    """
    try:
        text = template.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--submit {template}: cannot be read ({error}); options of sbatch begin with '-'"
        ) from None
    if PLACE not in text:
        raise UsageError(
            f"--submit {template}: has no {PLACE} where the command goes; write for example exec {PLACE}"
        )
    return text.replace(PLACE, shlex.join(command))


def submit(text: str, path: Path, options: Sequence[str]) -> str:
    """Write a batch script to a file and submit it; return the number of the job.

    Raises
    ------
    StoreError
        The file cannot be written.
    SchedulerError
        Slurm does not take it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"cannot write the batch script {path}: {error.strerror}") from None
    try:
        return slurm.submit(path, options)
    except BaseException:
        path.unlink(missing_ok=True)  # nothing was submitted
        raise


def follow(job: str, watcher: Watcher, *, known: bool) -> slurm.Job:
    """Show what a job prints and how it stands, until it has ended; return how it ended.

    Parameters
    ----------
    known
        Slurm has the job, so that it is asked again also where its first answer is none.

    Raises
    ------
    SchedulerError
        Slurm has not answered for a minute, or does not know the job.
    """
    seen = 0
    looks = _Looks(job, watcher, known=known)
    pause = LOOK_AFTER
    while True:
        # What it has printed at last is there when Slurm says that it is over.
        found = looks.next()
        if found is not None:
            seen = _pass_on(found, seen, watcher)
            watcher.looked(found)
            if found.over:
                return found
        for _ in range(pause):
            time.sleep(READ_EVERY_S)
            if found is not None:
                seen = _pass_on(found, seen, watcher)
        pause = min(2 * pause, LOOK_AFTER_MOST)


class _Looks:
    """Asks Slurm for a job, with patience: a busy controller lets a question time out."""

    def __init__(self, job: str, watcher: Watcher, *, known: bool) -> None:
        self._job = job
        self._watcher = watcher
        self._known = known
        #: Since when there was no answer; None while there are some.
        self._silent_since: float | None = None

    def next(self) -> slurm.Job | None:
        """Return how the job stands now; None where Slurm does not say, for a while."""
        try:
            found = slurm.look(self._job)
        except SchedulerError as error:
            self._wait(error)
            return None
        self._known, self._silent_since = True, None
        return found

    def _wait(self, error: SchedulerError) -> None:
        if not self._known:
            raise error
        now = time.monotonic()
        if self._silent_since is None:
            self._silent_since = now
            self._watcher.unanswered(str(error))
        elif now - self._silent_since >= PATIENCE_S:
            raise SchedulerError(
                f"{error} (for {now - self._silent_since:.0f} s); job {self._job} may go on: "
                f"'wulf measure --follow {self._job}' follows it again"
            )


def _pass_on(job: slurm.Job, seen: int, watcher: Watcher) -> int:
    """Show what a job has printed from byte `seen` on; return how far that is."""
    if job.output is None or not job.output.is_file():
        return seen
    with job.output.open("rb") as file:
        file.seek(seen)
        fresh = file.read()
    if not job.over:
        # A line that is being written is shown when it is whole.
        fresh = fresh[: fresh.rfind(b"\n") + 1]
    if fresh:
        watcher.printed(fresh.decode(errors="replace"))
    return seen + len(fresh)

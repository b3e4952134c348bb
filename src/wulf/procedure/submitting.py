"""Hand a command to Slurm as a batch job, and follow it to its end."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from wulf.cluster import slurm
from wulf.errors import StoreError, UsageError

#: Stands in a template for the command.
PLACE = "{wulf}"
#: A job is asked for so often [s].
LOOK_EVERY_S = 1.0
_NODES = 2


class Watcher(Protocol):
    """Shows a person what becomes of a job."""

    def looked(self, job: slurm.Job) -> None:
        """Take what Slurm says of the job now."""

    def printed(self, text: str) -> None:
        """Take what the job has printed since."""


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
    return slurm.submit(path, options)


def follow(job: str, watcher: Watcher) -> slurm.Job:
    """Show what a job prints and how it stands, until it has ended; return how it ended.

    Raises
    ------
    SchedulerError
        Slurm does not answer any more, or does not know the job.
    """
    seen = 0
    while True:
        # What it has printed at last is there when Slurm says that it is over.
        found = slurm.look(job)
        seen = _pass_on(found, seen, watcher)
        watcher.looked(found)
        if found.over:
            return found
        time.sleep(LOOK_EVERY_S)


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

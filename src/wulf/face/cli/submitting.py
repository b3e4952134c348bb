"""``--submit`` and ``--follow``: a verb as a batch job of Slurm."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from wulf.base.errors import EXIT_INTERRUPTED, SchedulerError, UsageError
from wulf.base.nodeset import fold
from wulf.base.text import printable
from wulf.face.cli.verbs import VERBS

if TYPE_CHECKING:
    from wulf.node.cluster.slurm import Job

#: Is not for the job itself.
_OPTION = "--submit"


class Following:
    """Prints a job's output as it comes, and on standard error how it stands."""

    def __init__(self) -> None:
        self._said = ""

    def looked(self, job: Job) -> None:
        """Say how the job stands, when that has changed."""
        said = _standing(job)
        if said != self._said:
            self._said = said
            sys.stderr.write(f"job {job.id}: {said}\n")

    def printed(self, text: str) -> None:
        """Pass on what the job prints."""
        sys.stdout.write(printable(text, len(text)))
        sys.stdout.flush()

    def unanswered(self, why: str) -> None:
        """Say that Slurm does not answer; how the job stands is said again when it does."""
        from wulf.node.measuring import submitting

        self._said = ""
        sys.stderr.write(f"{printable(why)}: asked again for {submitting.PATIENCE_S:.0f} s\n")


def submit(how: str, path: Path, *, named: bool, dry_run: bool) -> None:
    """Submit this command without ``--submit``, and follow it; with `dry_run` only print the script.

    Parameters
    ----------
    how
        Options of sbatch, or a template.
    path
        Directory of the run.
    named
        Whether the command line names the run.
    """
    from wulf.node.measuring import submitting

    command = [sys.executable, "-P", "-m", "wulf.start", *words(sys.argv[1:], "" if named else path.name)]
    options = _options(how)
    if options is None:
        text = submitting.from_template(Path(how), command)
    else:
        text = submitting.script(command, f"wulf-{path.name}", _beside(path.absolute(), ".out"))
    if dry_run:
        sys.stdout.write(text)
        sys.stdout.write(f"nothing was submitted (--dry-run): sbatch {shlex.join(options or [])}\n")
        return
    batch = _beside(path, ".sbatch")
    job = submitting.submit(text, batch, options or [])
    sys.stderr.write(f"job {job}: submitted, {batch}\n")
    follow(job, path)


def words(argv: Sequence[str], name: str) -> list[str]:
    """Return the words of a command line without ``--submit`` and its value, with the run's name where it has none."""
    kept: list[str] = []
    rest = iter(argv)
    for word in rest:
        if word == _OPTION:
            next(rest, None)
        elif not word.startswith(f"{_OPTION}=") and word != "--dry-run":
            kept.append(word)
    verb = 2 if kept[1:2] and kept[0] in VERBS and kept[1] in VERBS[kept[0]].within else 1
    return [*kept[:verb], *(["--run", name] if name else []), *kept[verb:]]


def follow(job: str, path: Path | None = None) -> None:
    """Follow a job to its end, and end as it did.

    Raises
    ------
    KeyboardInterrupt
        After it was said that the job goes on.
    SchedulerError
        Slurm has ended the job, or does not know it.
    """
    from wulf.node.measuring import submitting

    try:
        ended = submitting.follow(job, Following(), known=path is not None)
    except KeyboardInterrupt:
        sys.stderr.write(
            f"job {job} goes on: 'wulf measure --follow {job}' follows it again, 'scancel {job}' ends it and keeps "
            "what was measured\n"
        )
        raise
    if path is not None and ended.nodes and ended.exit_code != 1 and not path.exists():
        sys.stderr.write(
            f"{path} cannot be seen here: the job ran on {fold(ended.nodes)}; use a directory that all nodes share\n"
        )
    if ended.state == "CANCELLED":
        raise typer.Exit(EXIT_INTERRUPTED)
    if ended.state not in ("COMPLETED", "FAILED"):
        raise SchedulerError(f"job {job}: Slurm has ended it ({ended.state}); what was measured is kept")
    if ended.exit_code or ended.signal:
        raise typer.Exit(ended.exit_code or 1)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _options(how: str) -> list[str] | None:
    """Return the options of sbatch; None for a template."""
    if how and not how.lstrip().startswith("-"):
        return None
    try:
        return shlex.split(how)
    except ValueError as error:
        raise UsageError(f"--submit {how!r}: {error}") from None


def _standing(job: Job) -> str:
    state = job.state.lower()
    if job.state == "PENDING":
        waits = f", waits for {job.reason}" if job.reason else ""
        return f"{state}{waits}" + (f", expected to start {job.start}" if job.start else "")
    where = f" on {fold(job.nodes)}" if job.nodes else ""
    if job.state == "RUNNING":
        limit = "any time" if job.limit_s is None else f"{job.limit_s / 60:.0f} min"
        return f"{state}{where}, for {limit} at most"
    if job.state == "FAILED" and job.exit_code:
        return f"ended{where} with exit code {job.exit_code}"
    why = f" ({job.reason})" if job.reason else ""
    return f"{state}{where}{why}"

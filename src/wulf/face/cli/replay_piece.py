"""``wulf replay-piece``: what a task of ``wulf program predict --slurm`` runs; not for people."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from wulf.base.errors import UsageError


def command(
    directory: Annotated[Path, typer.Argument(metavar="DIRECTORY", help="Of the array.")],
) -> None:
    """Do the task of a job array that SLURM_ARRAY_TASK_ID numbers."""
    from wulf.node.replay import job_array

    number = os.environ.get("SLURM_ARRAY_TASK_ID", "")
    if not number.isdigit():
        raise UsageError(
            "SLURM_ARRAY_TASK_ID is not set: this is run by tasks of 'wulf program predict --slurm'"
        )
    job_array.do(directory, int(number))

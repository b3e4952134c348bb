"""Options that several verbs share, and how they are resolved."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from wulf import store
from wulf.cli import complete
from wulf.cluster import inventory
from wulf.errors import UsageError
from wulf.lab import current as current_lab
from wulf.nodeset import fold

RunsOption = Annotated[
    Path,
    typer.Option("--runs", envvar="WULF_RUNS", help="Directory that holds the runs.", show_default=True),
]
RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="Path or name of a run, the beginning of its name, or 'latest'.",
        autocompletion=complete.runs,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON (see docs/reference/json.md).")]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="A cluster file, 'lab' (the virtual cluster), 'slurm' (this allocation) or 'local' "
        "(this machine). "
        "Default: ./cluster.toml, else the Slurm allocation, else the virtual cluster that is up.",
        autocompletion=complete.clusters,
    ),
]
RUNS = Path("runs")
#: Wider than any table [columns].
_UNBOUNDED = 100_000


class _Output(Console):
    """Standard output."""

    def on_broken_pipe(self) -> None:
        """Leave it to `wulf.cli.main`, as with everything else that is printed."""
        raise BrokenPipeError


def console() -> Console:
    """Return the console for results; plain text when it is not a terminal."""
    return _Output(soft_wrap=not sys.stdout.isatty(), highlight=False)


def show_table(table: Table) -> None:
    """Print a table; lines of a file or a pipe are never wrapped or cut."""
    _Output(width=None if sys.stdout.isatty() else _UNBOUNDED, highlight=False).print(table, markup=False)


def print_json(value: object) -> None:
    """Print a record, or a list of records, for programs."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=1).decode() + "\n")


def open_run(name: str, runs: Path) -> store.Run:
    """Load the run that a user names."""
    return store.load(store.find_run(name, runs))


def cluster(name: str | None) -> inventory.ClusterConfig:
    """Resolve ``--cluster``.

    Raises
    ------
    UsageError
        No cluster is named and none can be found.
    """
    if name is None:
        name = _default_cluster()
    if not name:
        raise UsageError("--cluster is empty: name a cluster file, 'lab', 'slurm' or 'local'")
    if name == "lab":
        lab = current_lab()
        if lab is None:
            raise UsageError("no virtual cluster is up: 'wulf lab up --nodes 4' raises one")
        return inventory.parse(lab.cluster_toml(), "lab")
    if name == "slurm":
        return _slurm()
    if name == "local":
        return inventory.local()
    return inventory.load(Path(name))


def _slurm() -> inventory.ClusterConfig:
    config = inventory.from_slurm(os.environ)
    if shutil.which("srun") is None:
        raise UsageError(
            f"--cluster slurm: there is no srun here, which would start every MPI job on {fold(config.nodes)}. "
            "Slurm is not installed, or not in PATH: name a cluster file with --cluster ('wulf init' writes one)"
        )
    return config


def _default_cluster() -> str:
    if Path("cluster.toml").exists():
        return "cluster.toml"
    if "SLURM_JOB_NODELIST" in os.environ:
        return "slurm"
    if current_lab() is not None:
        return "lab"
    raise UsageError(
        "which cluster? There is no ./cluster.toml, no Slurm allocation and no virtual cluster.\n"
        "  wulf lab up --nodes 4                     raises a virtual cluster to try things on\n"
        "  wulf init --nodes 'node[01-32]'           writes cluster.toml for your own\n"
        "  wulf measure --cluster local              measures this machine: TCP, UDP over loopback, MPI in memory"
    )

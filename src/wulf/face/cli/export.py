"""``wulf settings export``: the same decision for other tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import StoreError, UsageError
from wulf.base.request import RUNS
from wulf.face.cli import complete
from wulf.face.cli.facts import NodesOption
from wulf.face.cli.options import ClusterOption, RunsOption

if TYPE_CHECKING:
    from wulf.node.change.export import Chosen


def command(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="The tuning run whose result is exported; default: what is set on the nodes.",
            autocompletion=complete.runs,
        ),
    ] = None,
    cluster: ClusterOption = None,
    nodes: NodesOption = None,
    tuned_directory: Annotated[
        Path | None, typer.Option("--tuned", metavar="DIR", help="A TuneD profile, below this directory.")
    ] = None,
    ansible_file: Annotated[
        Path | None,
        typer.Option("--ansible", metavar="FILE", help="An Ansible playbook, and an inventory beside it."),
    ] = None,
    shell_file: Annotated[
        Path | None,
        typer.Option("--shell", metavar="FILE", help="A shell script with apply, undo and status."),
    ] = None,
    runs: RunsOption = RUNS,
) -> None:
    """Write what was found to help as a TuneD profile, an Ansible playbook or a shell script.

    Nodes that need different settings get a file each. Nothing on the nodes is changed.
    """
    from wulf.node.change.export.ansible import ansible
    from wulf.node.change.export.shell import shell
    from wulf.node.change.export.tuned import tuned

    if tuned_directory is None and ansible_file is None and shell_file is None:
        raise UsageError("say what to write: --tuned DIR, --ansible FILE or --shell FILE")
    chosen = _of_run(run, runs, nodes) if run is not None else _of_nodes(cluster, nodes)
    if tuned_directory is not None:
        _write(tuned_directory, tuned(chosen))
    if ansible_file is not None:
        _write(ansible_file.parent, ansible(chosen, _name(ansible_file, ".yml", ".yaml")))
    if shell_file is not None:
        _write(shell_file.parent, shell(chosen, _name(shell_file, ".sh")))


def _of_run(name: str, runs: Path, nodes: str | None) -> dict[str, Chosen]:
    from wulf.base.store import find_run
    from wulf.base.store.tuning import HEAD, load_tuning
    from wulf.node.cluster import inventory
    from wulf.node.fleet import persist

    if nodes is not None:
        raise UsageError("--nodes and a run: the run says which nodes")
    found = load_tuning(find_run(name, runs, HEAD))
    if found.result is None:
        raise StoreError(f"{found.path} has no conclusion yet")
    config = inventory.parse(found.manifest.cluster, str(found.path / HEAD))
    return persist.chosen_by(found.manifest, found.result.kept, config.interface)


def _of_nodes(cluster: str | None, nodes: str | None) -> dict[str, Chosen]:
    from wulf.base import catalogue
    from wulf.node.facts.capture import capture
    from wulf.node.fleet import change, persist
    from wulf.node.fleet.clusters import cluster as resolve

    config = resolve(cluster)
    names = config.select(nodes)
    with change.open_guards(config) as (transport, guards):
        statuses = change.status(guards, names)
        records = capture(transport, names, config.interface, list(catalogue.knobs().values()))
    return persist.chosen(statuses, records, config.interface)


def _name(file: Path, *endings: str) -> str:
    """Return the file's name without its ending, which the export adds."""
    if file.suffix not in endings:
        raise UsageError(f"{file}: the name must end with {' or '.join(endings)}")
    return file.stem


def _write(directory: Path, files: dict[str, str]) -> None:
    from wulf.base.store import write_atomically
    from wulf.node.change.export import HEAD as WRITTEN

    # In all that is written but copies of files that keep a setting.
    ours = WRITTEN.rstrip(".")
    for name, text in files.items():
        path = directory / name
        if ours in text and path.exists() and ours not in path.read_text(errors="replace"):
            raise StoreError(
                f"{path} is there already, and was not written by wulf settings export: choose another name"
            )
    for name, text in files.items():
        path = directory / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot make {path.parent}: {error.strerror}") from error
        write_atomically(path, text.encode())
        if text.startswith("#!"):
            path.chmod(0o755)
        sys.stdout.write(f"written: {path}\n")

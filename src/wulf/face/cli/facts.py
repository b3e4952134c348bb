"""``wulf audit facts``: one read-only look at every node."""

from __future__ import annotations

import fnmatch
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS, UsageError
from wulf.base.nodeset import fold, fold_reasons
from wulf.base.text import printable
from wulf.base.units import format_fact
from wulf.face.cli import complete
from wulf.face.cli.declared import option_of
from wulf.face.cli.options import ClusterOption, JsonOption, console, print_json, show_table
from wulf.face.cli.progress import counting
from wulf.node.fleet.fields import AnyCluster, LookField, NodesField

if TYPE_CHECKING:
    from wulf.base.records import NodeRecord

NodesOption = Annotated[str | None, option_of(NodesField, "nodes")]
FromOption = Annotated[Path | None, option_of(LookField, "look")]


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FACT]...",
            help="Only these facts; * matches ('nic.*', 'sysctl.net.core.*').",
            autocompletion=complete.knobs,
        ),
    ] = None,
    cluster: ClusterOption = None,
    nodes: NodesOption = None,
    save: Annotated[
        Path | None,
        typer.Option("--save", help="Keep what the nodes printed in this file (tar).", metavar="FILE"),
    ] = None,
    source: FromOption = None,
    json: JsonOption = False,
) -> None:
    """Show the hardware and settings of every node; nodes that agree share a line.

    Only reads: nothing is installed or changed. Only root sees packet filter rules; nothing else needs root. A fact
    that a node does not report is shown as unknown, absent or unsupported, with the reason; never as zero. Exit
    code 3 when a node did not answer.
    """
    records = records_for(cluster, nodes, source, save)
    if names:
        records = [_only(record, names) for record in records]
        if not any(_all_facts(record) for record in records):
            raise UsageError(f"no fact is called {' or '.join(map(repr, names))}")
    if json:
        print_json(records)
    else:
        show(records)
    if any(record.error for record in records):
        raise typer.Exit(EXIT_FINDINGS)


def records_for(
    cluster: AnyCluster, nodes: str | None, saved: Path | str | None, save: Path | None = None
) -> list[NodeRecord]:
    """Take the facts of the nodes a user names, or read them back; see `wulf.node.fleet.look.taken`."""
    from wulf.node.fleet.look import taken

    with counting("looking at the nodes") as progress:
        records = taken(cluster, nodes, saved, save, progress)
    if save is not None:
        sys.stderr.write(f"written: {save}\n")
    return records


def show(records: list[NodeRecord]) -> None:
    """Print facts, one line for each value of each."""
    from rich.table import Table

    for nodes, reason in fold_reasons({record.node: record.error for record in records if record.error}):
        console().print(f"no answer: {fold(nodes)}: {printable(reason, 300)}", style="red", markup=False)
    seen = [record for record in records if not record.error]
    rows: dict[str, dict[str, list[str]]] = {}
    for record in seen:
        for name, words in _all_facts(record).items():
            rows.setdefault(name, {}).setdefault(words, []).append(record.node)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for name in sorted(rows):
        for words, who in rows[name].items():
            where = "" if len(who) == len(seen) else fold(who)
            table.add_row(printable(name, 100), printable(words, 300), where)
    show_table(table)


def _all_facts(record: NodeRecord) -> dict[str, str]:
    words = {name: format_fact(name, value) for name, value in record.facts.items()}
    for kind in ("absent", "unsupported", "unknown"):
        for name, reason in getattr(record, kind).items():
            words.setdefault(name, f"({kind}: {reason})")
    return words


def _only(record: NodeRecord, patterns: list[str]) -> NodeRecord:
    import msgspec

    def wanted(name: str) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)

    return msgspec.structs.replace(
        record,
        facts={name: value for name, value in record.facts.items() if wanted(name)},
        absent={name: why for name, why in record.absent.items() if wanted(name)},
        unsupported={name: why for name, why in record.unsupported.items() if wanted(name)},
        unknown={name: why for name, why in record.unknown.items() if wanted(name)},
    )

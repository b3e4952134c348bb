"""``wulf knob``: the catalogue of settings, and their values on the nodes."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base import user_files
from wulf.base.errors import EXIT_FINDINGS, UsageError
from wulf.base.nodeset import fold
from wulf.base.text import printable
from wulf.face.cli import complete
from wulf.face.cli.facts import FromOption, NodesOption, records_for
from wulf.face.cli.options import ClusterOption, JsonOption, print_json, show_table

if TYPE_CHECKING:
    from wulf.base.catalogue import Evidence, Knob, Special

app = typer.Typer(
    help="The catalogue of settings, and their values on the nodes.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_WIDTH = 100
_INDENT = " " * 7


@app.command("list")
def list_knobs(
    layer: Annotated[str | None, typer.Option(help="Only of this layer (nic, kernel_net, mpi …).")] = None,
    json: JsonOption = False,
) -> None:
    """List all knobs."""
    from rich.table import Table

    from wulf.base.catalogue import knobs

    chosen = [entry for entry in knobs().values() if layer in (None, entry.layer)]
    if not chosen:
        layers = ", ".join(dict.fromkeys(entry.layer for entry in knobs().values()))
        raise UsageError(f"--layer: there is no '{layer}'; there are: {layers}")
    if json:
        print_json(chosen)
        return
    files = {entry.id: user_files.whose("knobs", entry.id) for entry in chosen}
    columns = ["knob", "layer", "status", "title", *(["from"] if any(files.values()) else [])]
    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, no_wrap=name != "title")
    for entry in chosen:
        words = [entry.id, entry.layer, entry.status, entry.title, printable(files[entry.id], 200)]
        table.add_row(*words[: len(columns)])
    show_table(table)


@app.command("show")
def show_knob(
    name: Annotated[
        str,
        typer.Argument(
            metavar="KNOB", help="Id of a knob, such as nic.rx_usecs.", autocompletion=complete.knobs
        ),
    ],
    json: JsonOption = False,
) -> None:
    """Show everything known about a knob: what it does, how it is read, set and kept, and what may go wrong."""
    from wulf.base.catalogue import knob

    entry = knob(name)
    if json:
        print_json(entry)
    else:
        sys.stdout.write(page(entry))


@app.command("get")
def get_knob(
    names: Annotated[
        list[str], typer.Argument(metavar="KNOB...", help="Ids of knobs.", autocompletion=complete.knobs)
    ],
    cluster: ClusterOption = None,
    nodes: NodesOption = None,
    source: FromOption = None,
    json: JsonOption = False,
) -> None:
    """Show the value of a knob on every node; nodes that agree share a line.

    Exit code 3 when a node did not answer.
    """
    from wulf.base.catalogue import knob, specials
    from wulf.base.predicate import DRIVER, state
    from wulf.face.cli.json_records import Reading

    entries = [knob(name) for name in names]
    records = records_for(cluster, nodes, source)
    readings = []
    for entry in entries:
        groups: dict[tuple[str, str, str], list[str]] = {}
        for record in records:
            kind, value = ("unknown", record.error) if record.error else state(record, entry.id)
            text = str(value if value is not None else "")
            mode = specials(entry, record.facts.get(DRIVER)).get(text) if kind == "value" else None
            groups.setdefault((kind, text, mode.meaning if mode else ""), []).append(record.node)
        readings += [
            Reading(
                knob=entry.id,
                state=kind,
                text=text,
                unit=entry.unit if kind == "value" and not meaning else "",
                meaning=meaning,
                nodes=members,
            )
            for (kind, text, meaning), members in groups.items()
        ]
    if json:
        print_json(readings)
    else:
        for reading in readings:
            said = f"{reading.text} {reading.unit}".rstrip()
            if reading.meaning:
                said = f"{reading.text} ({reading.meaning})"
            if reading.state != "value":
                said = f"{reading.state}: {reading.text}" if reading.text else reading.state
            sys.stdout.write(f"{fold(reading.nodes)}: {reading.knob}: {printable(said, 500)}\n")
    if any(record.error for record in records):
        raise typer.Exit(EXIT_FINDINGS)


def page(entry: Knob) -> str:
    """Return a knob as a page of a manual."""
    parts = [f"{entry.id.upper()}\n"]
    for title, paragraphs in sections(entry).items():
        parts.append(f"{title.upper()}\n" + "\n".join(_wrapped(text) for text in paragraphs) + "\n")
    return "\n".join(parts)


def sections(entry: Knob) -> dict[str, list[str]]:
    """Return all that is known of a knob: title of a section → its paragraphs."""
    found: dict[str, list[str]] = {}

    def section(title: str, *paragraphs: str) -> None:
        if texts := [text for text in paragraphs if text]:
            found[title] = texts

    section("Name", f"{entry.id} – {entry.title}")
    section("Description", entry.what, entry.notes)
    section("Value", *_values(entry))
    section("Effect", entry.direction, entry.measure)
    section(
        "Recommended",
        *(f"{profile}: {wanted.replace('|', ' or ')}" for profile, wanted in entry.recommend.items()),
        "none: measure it" if not entry.recommend else "",
    )
    section(
        "Status",
        entry.status + (f" since {entry.obsolete_since}" if entry.obsolete_since else ""),
        f"needs: {entry.needs}" if entry.needs else "",
        f"scope: {entry.scope}; layer: {entry.layer}",
    )
    section("Read", entry.access.read)
    section("Set now", entry.access.set)
    section(
        "Keep",
        entry.persist.file,
        f"Debian family: {entry.persist.debian}",
        f"RHEL family: {entry.persist.rhel}",
    )
    section("Undo", entry.access.revert)
    section(
        "Compared",
        "while the probe measures: it acts on existing connections"
        if entry.established
        else "from launch to launch: it is negotiated when a connection begins, or belongs to a job",
        *(
            f"but {first} and {second} from launch to launch: established connections may break"
            for first, second in entry.severing
        ),
    )
    section("Risk", entry.risk, f"may cut the node off: {entry.lockout}")
    section("Also set by", ", ".join(entry.owners))
    section("Evidence", *(evidence_of(item) for item in entry.evidence))
    section("File", user_files.whose("knobs", entry.id))
    return found


def _values(entry: Knob) -> list[str]:
    """Return what values a knob has."""
    bounds = [entry.range] if entry.range else entry.ranges
    return [
        f"{entry.type}" + (f" [{entry.unit}]" if entry.unit else ""),
        "; ".join(f"from {low} to {high}" for low, high in bounds),
        "none smaller than the one before it" if entry.rising else "",
        f"worth trying: {', '.join(entry.values)}" if entry.values else "",
        *(f"{one.value}: {one.meaning}{_drivers(one)}" for one in entry.special),
        f"the kernel's own: {entry.default}" if entry.default else "",
    ]


def _drivers(value: Special) -> str:
    """Return the drivers that take a number as a mode."""
    default = ": what it begins with" if value.default else ""
    return f" ({', '.join(value.drivers)}{default})" if value.drivers else ""


_KNOWN = {"memory": "general knowledge, not verified", "checked": "checked on a machine"}


def evidence_of(item: Evidence) -> str:
    """Return where a claim comes from, what it says, and how that is known."""
    figure = f": {item.figure}" if item.figure else ""
    return f"{item.source}{figure} ({_KNOWN.get(item.how_known, item.how_known)})"


def _wrapped(text: str) -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )

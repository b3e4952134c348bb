"""A tree of switches as people read it.  Pure."""

from __future__ import annotations

from collections.abc import Iterator

from wulf.base.nodeset import fold
from wulf.base.text import printable
from wulf.page.blocks import Code, Page, Section, Verdict
from wulf.page.parts import Column, Item, Table
from wulf.page.words import count, percent
from wulf.tools.fabric.record import InferredFabric, Source

_SOURCES: dict[Source, str] = {
    "neighbours": "what ports hear of their switch (LLDP)",
    "ways": "the switches on the way between nodes",
    "times": "times of small messages",
}


def build(found: InferredFabric) -> Page:
    """Return the tree, and the files that follow from it."""
    first, *more = verdict(found)
    files = (Code(found.topology_conf), Code(f"# a hostfile: nodes of a switch together\n{found.hostfile}"))
    return Page(
        title=first,
        lede="",
        kind="Fabric",
        verb="audit fabric",
        head=(Verdict("good" if found.levels else "unknown", tuple(more)), _table(found)),
        sections=(Section("files", "topology.conf of Slurm, and a hostfile", files),) if found.levels else (),
    )


def verdict(found: InferredFabric) -> Iterator[str]:
    """Yield the answer in one line, then what it is from."""
    nodes = count(len(found.nodes), "node")
    if not found.levels:
        yield f"cannot tell which of {nodes} hang on one switch"
    else:
        switches = count(len(found.levels[0].switches), "switch", "switches")
        tiers = f", {count(len(found.levels), 'level')}" if len(found.levels) > 1 else ""
        yield f"{nodes} on {switches}{tiers}"
    for number, level in enumerate(found.levels, 1):
        yield f"  level {number}: from {_SOURCES[level.source]}, confidence {percent(level.confidence)}"
    for remark in found.remarks:
        yield f"  {printable(remark, 300)}"


def _table(found: InferredFabric) -> Table:
    return Table(
        title="Switches",
        columns=(
            Column("level", numeric=True),
            Column("switch", whole=True),
            Column("nodes"),
            Column("switches below"),
        ),
        rows=tuple(
            (
                Item(str(number), number),
                Item(printable(one.name, 64)),
                Item(fold(printable(node, 100) for node in one.nodes)),
                Item(", ".join(printable(name, 64) for name in one.switches) or "–"),
            )
            for number, level in enumerate(found.levels, 1)
            for one in level.switches
        ),
        empty="no switch was told from another",
        tall=True,
    )

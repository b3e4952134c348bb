"""A tree of switches as people read it.  Pure."""

from __future__ import annotations

from collections.abc import Iterator

from wulf.base.nodeset import fold
from wulf.base.text import count, printable
from wulf.page.blocks import Code, Page, Section, Verdict, known
from wulf.page.network_drawing import Fabric
from wulf.page.parts import Column, Figure, Item, Table
from wulf.page.words import percent
from wulf.tools.fabric.record import SOURCES, TOP, InferredFabric


def build(found: InferredFabric) -> Page:
    """Return the tree, and the files that follow from it."""
    first, *more = verdict(found)
    files = (Code(found.topology_conf), Code(f"# a hostfile: nodes of a switch together\n{found.hostfile}"))
    return Page(
        title=first,
        lede="",
        kind="Fabric",
        verb="audit fabric",
        head=(Verdict("good" if found.levels else "unknown", tuple(more)),),
        sections=(
            Section("switches", "Nodes and switches", known(_drawing(found), _table(found))),
            *((Section("files", "topology.conf of Slurm, and a hostfile", files),) if found.levels else ()),
        ),
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
        yield f"  level {number}: from {SOURCES[level.source]}, confidence {percent(level.confidence)}"
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


def _drawing(found: InferredFabric) -> Figure | None:
    """Return the tree; None where there is none, or too much side by side."""
    tiers = dict.fromkeys(found.nodes, 0)
    links: dict[frozenset[str], str] = {}
    for number, level in enumerate(found.levels, 1):
        tiers |= {one.name: number for one in level.switches}
        links |= {
            frozenset((one.name, below)): ""
            for one in level.switches
            for below in (one.nodes if number == 1 else one.switches)
        }
    if found.levels and len(found.levels[-1].switches) > 1:
        tiers[TOP] = len(found.levels) + 1
        links |= {frozenset((TOP, one.name)): "" for one in found.levels[-1].switches}
    return Fabric(tiers=tiers, links=links).figure(
        title="Which nodes share a switch",
        summary=next(verdict(found)),
        caption="A switch stands for all that nothing tells apart, such as several spines; the highest one is what "
        "connects the others.",
    )

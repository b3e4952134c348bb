"""``wulf audit topology``: which shapes the direct links make, and routes over these links."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import EXIT_ERROR, EXIT_FINDINGS, UsageError
from wulf.base.request import SECONDS, Option
from wulf.base.text import count, printable
from wulf.face.cli.declared import flat
from wulf.face.cli.options import JsonOption, console, print_json, show_table
from wulf.face.cli.progress import staging
from wulf.face.cli.set_values import ConfirmOption, changing, deadline, show, show_commands
from wulf.node.fleet.fields import AnyCluster, ClusterField

if TYPE_CHECKING:
    from wulf.base.records import Embedding, LinkTopology
    from wulf.base.topology.shapes import Shape
    from wulf.node.cluster.inventory import ClusterConfig

_STATES = {"found": "", "none": "no", "not found": "maybe"}


@dataclass(frozen=True)
class Topology:
    """Show the direct links in the cluster file ([cluster] links) and the shapes they form, by ranks.

    The largest rings, meshes, tori (periodic meshes) and hypercubes are shown. Ranks are numbered as MPI_Cart_create
    does. Exit code 3 when the shape of --embed was not found.

    --routes changes the nodes as 'wulf settings set' does: journalled, proven (each target is reached over its
    cable, and data still get through), confirmed over a new connection, or put back; 'wulf rollback' or a reboot
    removes the routes. Each node gets a host route to each node within K links, via the next node on the way, with
    its own usual address as the source: programs need no other addresses. Nodes on the way forward packets that
    come in over their cables (net.ipv4.conf.INTERFACE.forwarding, of these interfaces alone). Packets return on the
    way they came.

    Exit code 1 when a change of routes was refused or put back.
    """

    cluster: ClusterField = None
    embed: Annotated[
        str | None,
        Option(
            "Place this shape: ring:N, mesh:AxB, torus:AxB (or AxBxC), hypercube:D. Prints the node of every rank, a "
            "line each: a hostfile.",
            metavar="SHAPE",
        ),
    ] = None
    within_s: Annotated[
        float,
        Option(
            "How long to search for one shape; where that is too short it says 'maybe', not 'no'.",
            unit=SECONDS,
        ),
    ] = 10.0
    routes: Annotated[
        str | None,
        Option(
            "Set routes: a node up to K links away is reached over them, any other through the switch. "
            "With a SHAPE such as torus:4x2, all its nodes are reached over links, one dimension after the other.",
            metavar="K|SHAPE",
        ),
    ] = None
    infer: Annotated[
        bool,
        Option(
            "Infer which nodes share a switch, by measuring: like 'wulf audit fabric', which has more options."
        ),
    ] = False
    dry_run: Annotated[
        bool, Option("With --routes: print every command for every node, and change nothing.")
    ] = False

    def __post_init__(self) -> None:
        """Refuse what does not go together.

        Raises
        ------
        UsageError
            Names the options.
        """
        if self.embed is not None and self.routes is not None:
            raise UsageError("--embed and --routes: one at a time")


@flat
def command(asked: Topology, confirm_within: ConfirmOption = "60s", json: JsonOption = False) -> None:
    from wulf.base.topology import shapes
    from wulf.node.fleet import direct_links
    from wulf.node.fleet.clusters import config_of

    if asked.infer:
        _infer(asked.cluster, json=json)
        return
    if asked.dry_run and (asked.routes is None or json):
        raise UsageError("--dry-run belongs to --routes, and has no --json: it prints commands for people")
    shape = shapes.parse(asked.embed) if asked.embed is not None else None
    ways = None if asked.routes is None else _ways(asked.routes)
    deadline_s = deadline(confirm_within)
    config = config_of(asked.cluster)
    if ways is not None:
        _route(config, ways, deadline_s, dry_run=asked.dry_run, json=json)
    elif shape is not None:
        with staging() as say:
            say(f"looking for {shape}")
            found = direct_links.embed(config, shape, within_s=asked.within_s)
        _show_placement(found, json=json)
    else:
        with staging() as say:
            say("looking for shapes")
            survey = direct_links.survey(config, within_s=asked.within_s)
        if json:
            print_json(survey)
        else:
            _show_survey(survey)


def _infer(cluster: AnyCluster, *, json: bool) -> None:
    """Do what 'wulf audit fabric' does."""
    from wulf.base.tool import tools
    from wulf.face.cli.progress import Display
    from wulf.face.cli.tool import Shown, show_record

    tool = tools()["audit fabric"]
    with Display() as progress:
        found = tool.part(tool.work)(tool.part(tool.request)(cluster), progress)
    show_record(found, tool.part(tool.page)(found), Shown(json=json))
    if code := tool.part(tool.exit_code)(found):
        raise typer.Exit(code)


def _show_survey(survey: LinkTopology) -> None:
    from rich.table import Table

    from wulf.node.cluster.links import write

    out = console()
    linked = {node for link in survey.links for node in link.nodes}
    out.print(
        f"{count(len(survey.links), 'direct link')} between {len(linked)} of {count(len(survey.nodes), 'node')}:",
        markup=False,
    )
    for link in survey.links:
        out.print(f"  {' – '.join(write(link))}", markup=False)
    table = Table("shape", "there", "node of rank 0, 1, …", box=None)
    for one in survey.embeddings:
        table.add_row(one.shape, _STATES[one.state] or "yes", " ".join(one.placement) or one.reason)
    show_table(table)
    sys.stdout.write(
        "next: wulf audit topology --embed SHAPE (a hostfile), wulf audit topology --routes 1 --dry-run\n"
    )


def _show_placement(found: Embedding, *, json: bool) -> None:
    if json:
        print_json(found)
    elif found.state == "found":
        sys.stdout.write(f"# {found.shape}; ranks are numbered as MPI_Cart_create does\n")
        sys.stdout.write("".join(f"{node}\n" for node in found.placement))
    else:
        sys.stderr.write(f"{found.shape}: {printable(found.reason)}\n")
    if found.state != "found":
        raise typer.Exit(EXIT_FINDINGS)


def _ways(text: str) -> int | Shape:
    """Return how many links a way may have, or the shape whose dimensions are gone through."""
    from wulf.base.topology import shapes

    return int(text) if re.fullmatch(r"-?[0-9]{1,6}", text) else shapes.parse(text)


def _route(config: ClusterConfig, hops: int | Shape, deadline_s: int, *, dry_run: bool, json: bool) -> None:
    """Set routes, and say what became of it."""
    from wulf.node.fleet import change, routing

    with change.open_guards(config) as (transport, guards):
        with staging() as say:
            say(f"looking at {count(len(config.nodes), 'node')}")
            plan = routing.intend(transport, guards, config, hops)
            explained = change.explain(transport, plan.plans) if dry_run else {}
        if not json:
            for line in routing.summary(plan):
                console().print(line, markup=False)
        if dry_run:
            show_commands(explained, {})
            return
        with changing(json=json) as say:
            outcome = routing.make(transport, guards, plan, deadline_s=deadline_s, watch=say)
    show(outcome, json=json)
    if not outcome.kept:
        raise typer.Exit(EXIT_ERROR)
    if not json and outcome.change:
        sys.stdout.write(
            f"change {outcome.change}; it holds until the next boot\n"
            f"next: wulf measure, wulf rollback --to {outcome.change} (takes it back), wulf settings status\n"
        )

"""``wulf audit``: what is wrong with the nodes, and which differ from the others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS, UsageError
from wulf.face.cli.facts import FromOption, NodesOption, records_for
from wulf.face.cli.options import ClusterOption, JsonOption, console, print_json


def command(
    profile: Annotated[
        str, typer.Option(help="What the cluster is to be good at: latency, throughput or hpc (both).")
    ] = "hpc",
    cluster: ClusterOption = None,
    nodes: NodesOption = None,
    source: FromOption = None,
    fail_on: Annotated[
        str,
        typer.Option("--fail-on", help="Exit with 3 when there are findings this bad: fail, warn or info."),
    ] = "warn",
    json: JsonOption = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write JUnit XML to this file too.", metavar="FILE")
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--html", help="Write a page to this file too.", metavar="FILE")
    ] = None,
) -> None:
    """Check every node's settings, services and drivers, and that the nodes are alike.

    Only reads: nothing is installed or changed. Exit code 0 when nothing was found, 3 with findings, 1 when no
    node could be looked at.
    """
    from wulf.base.catalogue import PROFILES, SEVERITIES
    from wulf.base.store import write_atomically
    from wulf.node.fleet.look import judge
    from wulf.page.page import html
    from wulf.page.sections import audit as shown
    from wulf.page.terminal import print_page

    known = next((name for name in PROFILES if name == profile), None)
    if known is None:
        raise UsageError(f"--profile: there is no '{profile}'; there are: {', '.join(PROFILES)}")
    if fail_on not in SEVERITIES:
        raise UsageError(f"--fail-on: there is no '{fail_on}'; there are: {', '.join(SEVERITIES)}")
    audit = judge(records_for(cluster, nodes, source), known)
    if junit is not None:
        write_atomically(junit, shown.junit(audit).encode())
        sys.stderr.write(f"written: {junit}\n")
    if page is not None:
        write_atomically(page, html(shown.page(audit)).encode())
        sys.stderr.write(f"written: {page}\n")
    if json:
        print_json(audit)
    elif markdown:
        sys.stdout.write(shown.markdown(audit))
    else:
        print_page(shown.page(audit), console())
    bad = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    if audit.unreachable or shown.matches(audit, bad):
        raise typer.Exit(EXIT_FINDINGS)

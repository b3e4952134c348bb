"""``wulf audit``: what is wrong with the nodes, and which differ from the others."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS
from wulf.base.profile import SEVERITIES, Severity
from wulf.base.request import JsonField, Option
from wulf.face.cli.declared import flat
from wulf.face.cli.facts import records_for
from wulf.face.cli.options import console, print_json
from wulf.tools.audit.request import AuditRequest


@dataclass(frozen=True)
class Shown:
    """How it is shown, and when it counts as bad."""

    fail_on: Annotated[
        Severity,
        Option(
            "Exit with 3 when there are, or may be, findings of at least this severity: fail, warn or info."
        ),
    ] = "warn"
    json: JsonField = False
    markdown: Annotated[bool, Option("Print Markdown.")] = False
    junit: Annotated[Path | None, Option("Also write JUnit XML to this file.", metavar="FILE")] = None
    html: Annotated[Path | None, Option("Also write a page to this file.", metavar="FILE")] = None


@flat
def command(request: AuditRequest, form: Shown) -> None:
    from wulf.base.store import write_atomically
    from wulf.node.fleet.look import judge
    from wulf.page import formats
    from wulf.page.page import html
    from wulf.page.sections import findings as shown
    from wulf.page.terminal import print_page

    audit = judge(records_for(request.cluster, request.nodes, request.look), request.profile)
    if form.junit is not None:
        write_atomically(form.junit, shown.junit(audit).encode())
        sys.stderr.write(f"written: {form.junit}\n")
    if form.html is not None:
        write_atomically(form.html, html(shown.page(audit)).encode())
        sys.stderr.write(f"written: {form.html}\n")
    if form.json:
        print_json(audit)
    elif form.markdown:
        sys.stdout.write(formats.markdown(shown.page(audit)))
    else:
        print_page(shown.page(audit), console())
    bad = SEVERITIES[: SEVERITIES.index(form.fail_on) + 1]
    if audit.unreachable or shown.matches(audit, bad) or audit.untold(bad):
        raise typer.Exit(EXIT_FINDINGS)

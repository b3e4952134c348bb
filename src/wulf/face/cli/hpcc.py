"""``wulf bench hpcc``: HPC Challenge on the nodes, and which of them differ from the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS, EXIT_INTERRUPTED
from wulf.base.request import AnyRun, Argument, JsonField
from wulf.face.cli.declared import flat
from wulf.face.cli.options import console, print_json
from wulf.face.cli.progress import Display
from wulf.tools.hpcc.request import HpccRequest


@dataclass(frozen=True)
class Shown:
    """What is shown, and how."""

    earlier: Annotated[
        AnyRun | None,
        Argument("A run of HPCC to show again. Default: make a new one.", metavar="[RUN]", complete="runs"),
    ] = None
    json: JsonField = False


@flat
def command(request: HpccRequest, shown: Shown) -> None:
    from wulf.base.store import opened
    from wulf.page.terminal import print_page
    from wulf.tools.hpcc import page, result, work

    if shown.earlier is None:
        with Display() as progress:
            measured = work.measure(request, progress)
    else:
        measured = opened(shown.earlier, request.runs)
    found = result.result(measured)
    if shown.json:
        print_json(found)
    else:
        print_page(page.build(found), console())
        console().print(
            f"\nrun: {measured.path}\nnext: wulf compare, with another run of --size {found.sizes['together']}",
            markup=False,
            soft_wrap=True,
        )
    if shown.earlier is None and found.status == "interrupted":
        raise typer.Exit(EXIT_INTERRUPTED)
    if found.different or found.failures:
        raise typer.Exit(EXIT_FINDINGS)

"""``wulf program predict``: what a traced program would take on other networks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS, UsageError
from wulf.base.request import JsonField, Option
from wulf.face.cli.declared import Asked, flat, instead
from wulf.face.cli.networks import show_list
from wulf.face.cli.options import console, print_json
from wulf.face.cli.progress import staging
from wulf.tools.predict.request import PredictRequest

if TYPE_CHECKING:
    from wulf.base.records import Checked, Prediction


@dataclass(frozen=True)
class Verified:
    """Whether the program itself is launched, too."""

    verify: Annotated[
        bool,
        Option(
            "Launch the traced program again on the nodes of the run, and check whether its time lies in the "
            "predicted interval: that of the network asked about, if it is only one (the cluster must "
            "have it now), else that of the network as it is."
        ),
    ] = False
    launches: Annotated[int, Option("With --verify: number of launches.")] = 6
    mpi: Annotated[
        str | None,
        Option("With --verify: MPI library of the program: openmpi, mpich, or the path of an mpicc."),
    ] = None


@dataclass(frozen=True)
class Shown:
    """What is shown, and how."""

    html: Annotated[
        Path | None,
        Option("Write a page to this file; of several traces, pages to this directory.", metavar="FILE"),
    ] = None
    timeline: Annotated[
        str,
        Option(
            "Network on which the page shows where the ranks' time goes, compared with the network as it is. "
            "Default: the fastest.",
            metavar="NETWORK",
        ),
    ] = ""
    list_networks: Annotated[
        bool,
        Option(
            "List the known networks, with parameters and sources.",
            names=("--list", "--list-networks"),
        ),
    ] = False
    json: JsonField = False


def _print(name: str) -> None:
    from wulf.base import networks

    sys.stdout.write(networks.text(name))


@flat
def command(
    request: Asked[PredictRequest],
    verified: Verified,
    shown: Shown,
    show: Annotated[  # noqa: ARG001 - answered before
        str | None,
        instead(_print, "Print the file of a network, as a starting point for your own.", metavar="NETWORK"),
    ] = None,
) -> None:
    from wulf.compose import prediction_check
    from wulf.page.terminal import print_page
    from wulf.tools.predict import page as report
    from wulf.tools.predict import work

    if shown.list_networks:
        show_list(request.value("own"), json=shown.json)
        return
    asked = request()
    if len(asked.sources) > 1:
        _require_apart(asked.sources, shown.html, verify=verified.verify)
    questions = work.questions(asked, timelines=shown.html is not None, timeline=shown.timeline)
    with staging() as say:
        found = work.replayed(asked, questions, say)
        if verified.verify:
            found = [prediction_check.verify(found[0], questions[0], verified.launches, verified.mpi, say)]
    if shown.html is not None:
        _write_pages(found, shown.html)
    if shown.json:
        print_json(found if len(found) > 1 else found[0])
    else:
        for one in found:
            print_page(report.build(one), console())
    if any(one.untold or _differs(one.checked) for one in found):
        raise typer.Exit(EXIT_FINDINGS)


def _differs(checked: Checked | None) -> bool:
    """Whether the program was launched, and is not proven to take what was predicted."""
    return checked is not None and (not checked.inside or checked.untold)


def _require_apart(sources: Sequence[Path], html: Path | None, *, verify: bool) -> None:
    """Refuse for several traces what is of one, and pages that would be one file."""
    if verify:
        raise UsageError("--verify and --placement need a single trace")
    names = [source.name for source in sources]
    twice = next((name for name in names if names.count(name) > 1), None)
    if html is not None and twice is not None:
        raise UsageError(f"--html: two traces are called {twice}: one page would overwrite the other")
    if html is not None and html.exists() and not html.is_dir():
        raise UsageError(f"--html {html}: for several traces this must be a directory, and it is a file")


def _write_pages(found: Sequence[Prediction], place: Path) -> None:
    from wulf.base.store import write_atomically
    from wulf.page.page import html
    from wulf.tools.predict import page as report

    if len(found) == 1:
        write_atomically(place, html(report.build(found[0])).encode())
        return
    place.mkdir(parents=True, exist_ok=True)
    for one in found:
        page = place / f"{Path(one.trace).name}.html"
        write_atomically(page, html(report.build(one)).encode())

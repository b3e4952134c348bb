"""Runs in the forms that people and programs read; measured runs, which several tools show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wulf.base.errors import StoreError, UsageError
from wulf.base.records import Analysis
from wulf.base.store import Run
from wulf.base.store.kinds import kind_of
from wulf.base.tool import Listed, RunKind
from wulf.node.fleet.look import judge
from wulf.node.measuring.analysis import analyze
from wulf.page import formats
from wulf.page.blocks import Page
from wulf.page.citation import bibtex
from wulf.page.formats import Form
from wulf.page.page import html
from wulf.page.parts import Figure
from wulf.page.terminal import page_text
from wulf.tools.diagnose import work
from wulf.tools.emulate import work as emulating
from wulf.tools.measure import page as run_report
from wulf.tools.measure.page import export, headline, paper, view


def report_of(kind: RunKind) -> formats.Report:
    """Return in which forms a run of a kind is read."""
    found: formats.Report = kind.part(kind.report)
    return found


def rendered(run: Any, form: Form) -> str:
    """Return a run of any kind in a form that is one text.

    Raises
    ------
    StoreError
        A tuning run has no conclusion yet, or there is nothing that the form could show.
    UsageError
        There is no such form of a run of this kind.
    """
    if form == "svg" or form == "pdf":  # noqa: PLR1714 - tells the type of the rest
        raise UsageError(f"{form}: charts are several files: wulf report --{form}")
    report = report_of(kind_of(run.path))
    if form == "html":
        return html(report.page(run))
    return page_text(report.text(run)) if form == "text" else _seen(run, form, report.data(run, form))


def _seen(run: Any, form: formats.Data, text: str) -> str:
    """Return the text of a form; raise StoreError where it has no figure: no line, or of CSV only the header."""
    headers = 1 if form == "csv" else 0
    if len(text.splitlines()) <= headers:
        raise StoreError(
            f"{run.path} has no table: nothing was measured; 'wulf report --text {run.path}' says why"
        )
    return text


def listed(run: Run) -> Listed:
    """Return what a list of runs says of a measured one."""
    workload = run.manifest.plan.workload
    return Listed(workload.ops, len(workload.places), len(run.launches))


def _analysis(run: Run) -> Analysis:
    return run.analysis() or analyze(run)


def _page(run: Run) -> Page:
    analysis = _analysis(run)
    # Runs of versions before 0.2 know too little of their nodes to judge them.
    audit = judge(run.nodes, "hpc") if any("kernel.release" in node.facts for node in run.nodes) else None
    performed = emulating.shown(run, analysis)
    return run_report.build(run.manifest, run.nodes, run.launches, analysis, audit, work.find(run), performed)


def _text(run: Run) -> Page:
    analysis = _analysis(run)
    performed = emulating.shown(run, analysis)
    return run_report.build(run.manifest, run.nodes, run.launches, analysis, performed=performed)


def _figures(run: Run) -> Sequence[tuple[str, Figure]]:
    return view.figures_of(_text(run))


def _data(run: Run, form: formats.Data) -> str:
    if form == "json":
        return export.json(run.manifest, run.nodes, run.launches, _analysis(run)).decode() + "\n"
    if form == "csv":
        return export.csv(_analysis(run))
    if form == "bibtex":
        return bibtex(run.manifest, headline.title(run.manifest), run.manifest.plan.seed)
    return {"latex": paper.latex, "markdown": paper.markdown}[form](_text(run))


MEASURED = formats.Report(page=_page, text=_text, figures=_figures, data=_data)

"""Runs as pages, text and data: what of a run goes into which form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from wulf.base.errors import StoreError, UsageError
from wulf.base.records import Analysis, Manifest, TuneManifest
from wulf.base.store import Run
from wulf.base.store.hpl import HplRun
from wulf.base.store.tuning import TuningRun
from wulf.node.fleet.look import judge
from wulf.node.measuring.analysis import analyze
from wulf.page import forms
from wulf.page.blocks import Page
from wulf.page.page import html
from wulf.page.terminal import page_text
from wulf.tools.diagnose import work
from wulf.tools.emulate import work as emulating
from wulf.tools.hpl import page as hpl
from wulf.tools.hpl import session as linpack
from wulf.tools.measure import page as run_report
from wulf.tools.measure.page import export, headline, paper, view
from wulf.tools.tune import apply_result
from wulf.tools.tune import page as tuning

Form = Literal["html", "text", "json", "csv", "markdown", "latex", "bibtex", "svg", "pdf"]
#: What any page can be written as.
FORMS: dict[Form, Callable[[Page], str]] = {
    "html": html,
    "text": page_text,
    "markdown": forms.markdown,
    "latex": forms.latex,
    "csv": forms.csv,
}


def rendered(run: Run | TuningRun | HplRun, form: Form) -> str:
    """Return a run of any kind in a form that is one text.

    Raises
    ------
    StoreError
        A tuning run has no conclusion yet.
    UsageError
        There is no such form of a run of this kind.
    """
    if form in ("svg", "pdf"):
        raise UsageError(f"{form}: charts are several files: wulf report --{form}")
    if isinstance(run, TuningRun):
        if run.result is None:
            raise StoreError(f"{run.path} has no conclusion yet: go on with 'wulf tune --resume {run.path}'")
        if form == "html":
            return html(tuning.build(apply_result.report(run)))
        return tuning_data(run, form).decode()
    if isinstance(run, HplRun):
        return _hpl(run, form)
    analysis = run.analysis() or analyze(run)
    return page(run, analysis) if form == "html" else data(run, analysis, form).decode()


def _hpl(run: HplRun, form: Form) -> str:
    # What an older version concluded, or one that was killed, is not what this one would.
    result = linpack.conclude(run.manifest, run.launches)
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(result), indent=1).decode() + "\n"
    if form not in FORMS:
        raise UsageError(
            f"--{form}: a run of HPL is not cited; there are {', '.join(FORMS)}, json, svg and pdf"
        )
    return FORMS[form](hpl.build(run.manifest, run.launches, result))


def tuning_data(run: TuningRun, form: Form) -> bytes:
    """Return a tuning run that has a conclusion as data or text, of any form that is no page or picture."""
    if form == "json":
        result = msgspec.structs.replace(run.result, whole=apply_result.whole(run)) if run.result else None
        return msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n"
    found = apply_result.report(run)
    if form == "csv":
        return tuning.published_csv(tuning.published_table(found)).encode()
    if form == "markdown":
        return tuning.published_markdown(found).encode()
    if form == "latex":
        return tuning.published_latex(found).encode()
    if form == "bibtex":
        return paper.bibtex(_cited(run.manifest, tuning.headline(found), run.manifest.plan.seed)).encode()
    return page_text(tuning.build(found)).encode()


def page(run: Run, analysis: Analysis) -> str:
    """Return the page of a measured run."""
    # Runs of versions before 0.2 know too little of their nodes to judge them.
    audit = judge(run.nodes, "hpc") if any("kernel.release" in node.facts for node in run.nodes) else None
    found = work.find(run)
    performed = emulating.shown(run, analysis)
    return html(run_report.build(run.manifest, run.nodes, run.launches, analysis, audit, found, performed))


def data(run: Run, analysis: Analysis, form: Form) -> bytes:
    """Return a measured run as data or text, of any form that is no page or picture."""
    if form == "json":
        return export.json(run.manifest, run.nodes, run.launches, analysis) + b"\n"
    if form == "csv":
        return export.csv(analysis).encode()
    performed = emulating.shown(run, analysis)
    shown = view.build(run.manifest, run.nodes, run.launches, analysis, performed=performed)
    if form == "latex":
        return paper.latex(shown).encode()
    if form == "markdown":
        return paper.markdown(shown).encode()
    if form == "bibtex":
        return paper.bibtex(
            _cited(run.manifest, headline.title(run.manifest), run.manifest.plan.seed)
        ).encode()
    return page_text(shown).encode()


def _cited(manifest: Manifest | TuneManifest, title: str, seed: int) -> paper.Citation:
    return paper.Citation(
        run_id=manifest.id,
        title=title,
        wulf_version=manifest.wulf_version,
        created_at=manifest.created_at,
        seed=seed,
    )

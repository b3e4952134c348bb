"""A run of HPL in every form."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wulf.base.errors import UsageError
from wulf.page import forms
from wulf.page.blocks import Page
from wulf.page.parts import Figure
from wulf.tools.hpl import page
from wulf.tools.hpl.record import HplResult
from wulf.tools.hpl.session import conclude
from wulf.tools.hpl.store import HplRun


def _result(run: HplRun) -> HplResult:
    """Return the conclusion: what an older version concluded, or one that was killed, is not what this one would."""
    return conclude(run.manifest, run.launches)


def _page(run: HplRun) -> Page:
    return page.build(run.manifest, run.launches, _result(run))


def _figures(run: HplRun) -> Sequence[tuple[str, Figure]]:
    return [("hpl", figure) for figure in _page(run).figures]


def _data(run: HplRun, form: forms.Data) -> str:
    if form == "json":
        return forms.json(_result(run))
    if form == "bibtex":
        raise UsageError("--bibtex: a run of HPL is not cited")
    write: dict[str, Callable[[Page], str]] = {
        "csv": forms.csv,
        "markdown": forms.markdown,
        "latex": forms.latex,
    }
    return write[form](_page(run))


REPORT = forms.Report(page=_page, text=_page, figures=_figures, data=_data)

"""A study in every form."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wulf.base.errors import UsageError
from wulf.page import forms
from wulf.page.blocks import Page
from wulf.page.parts import Figure
from wulf.tools.study import page
from wulf.tools.study.store import StudyRun
from wulf.tools.study.work import shown


def _page(run: StudyRun) -> Page:
    return page.build(shown(run))


def _figures(run: StudyRun) -> Sequence[tuple[str, Figure]]:
    return [("study", figure) for figure in _page(run).figures]


def _data(run: StudyRun, form: forms.Data) -> str:
    if form == "json":
        return forms.json(shown(run))
    if form == "bibtex":
        raise UsageError("--bibtex: a study is not cited; its file names its source")
    write: dict[str, Callable[[Page], str]] = {
        "csv": forms.csv,
        "markdown": forms.markdown,
        "latex": forms.latex,
    }
    return write[form](_page(run))


REPORT = forms.Report(page=_page, text=_page, figures=_figures, data=_data)

"""A roll-out in every form."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wulf.base.errors import StoreError, UsageError
from wulf.page import forms
from wulf.page.blocks import Page
from wulf.page.parts import Figure
from wulf.tools.rollout import page
from wulf.tools.rollout.record import Rollout
from wulf.tools.rollout.store import RolloutRun


def _result(run: RolloutRun) -> Rollout:
    if run.result is None:
        raise StoreError(
            f"{run.path} has no result yet: go on with 'wulf settings rollout --resume {run.path.name}'"
        )
    return run.result


def _page(run: RolloutRun) -> Page:
    return page.build(_result(run))


def _figures(run: RolloutRun) -> Sequence[tuple[str, Figure]]:
    return [("rollout", figure) for figure in _page(run).figures]


def _data(run: RolloutRun, form: forms.Data) -> str:
    if form == "json":
        return forms.json(_result(run))
    if form == "bibtex":
        raise UsageError("--bibtex: a roll-out is not cited")
    write: dict[str, Callable[[Page], str]] = {
        "csv": forms.csv,
        "markdown": forms.markdown,
        "latex": forms.latex,
    }
    return write[form](_page(run))


REPORT = forms.Report(page=_page, text=_page, figures=_figures, data=_data)

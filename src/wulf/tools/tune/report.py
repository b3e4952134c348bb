"""A tuning run in every form."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from wulf.base.errors import StoreError
from wulf.base.records import Tuning
from wulf.base.store.tuning import TuningRun
from wulf.page import formats
from wulf.page.blocks import Page
from wulf.page.citation import bibtex
from wulf.page.parts import Figure
from wulf.tools.tune import apply_result, page


def _concluded(run: TuningRun) -> Tuning:
    if run.result is None:
        raise StoreError(f"{run.path} has no conclusion yet: go on with 'wulf tune --resume {run.path}'")
    return run.result


def _page(run: TuningRun) -> Page:
    _concluded(run)
    return page.build(apply_result.report(run))


def _figures(run: TuningRun) -> Sequence[tuple[str, Figure]]:
    return [("tuning", figure) for figure in _page(run).figures]


def _data(run: TuningRun, form: formats.Data) -> str:
    result = _concluded(run)
    if form == "json":
        return formats.json(msgspec.structs.replace(result, whole=apply_result.whole(run)))
    found = apply_result.report(run)
    if form == "csv":
        return page.published_csv(page.published_table(found))
    if form == "markdown":
        return page.published_markdown(found)
    if form == "latex":
        return page.published_latex(found)
    return bibtex(run.manifest, page.headline(found), run.manifest.plan.seed)


REPORT = formats.Report(page=_page, text=_page, figures=_figures, data=_data)

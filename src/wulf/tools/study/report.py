"""A study in every form."""

from __future__ import annotations

from wulf.page import formats
from wulf.page.blocks import Page
from wulf.tools.study import page
from wulf.tools.study.store import StudyRun
from wulf.tools.study.work import shown


def _page(run: StudyRun) -> Page:
    return page.build(shown(run))


REPORT = formats.of_page("study", shown, _page, "a study is not cited; its file names its source")

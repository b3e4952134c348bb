"""Speed-up in every form."""

from __future__ import annotations

from wulf.page import formats
from wulf.page.blocks import Page
from wulf.tools.run import page
from wulf.tools.run.scaling import shown
from wulf.tools.run.store import ScalingRun


def _page(run: ScalingRun) -> Page:
    return page.build(shown(run))


REPORT = formats.of_page("speed-up", shown, _page, "a speed-up is not cited")

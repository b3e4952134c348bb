"""A run of HPL in every form."""

from __future__ import annotations

from wulf.page import formats
from wulf.page.blocks import Page
from wulf.tools.hpl import page
from wulf.tools.hpl.record import HplResult
from wulf.tools.hpl.session import conclude
from wulf.tools.hpl.store import HplRun


def _result(run: HplRun) -> HplResult:
    """Return the conclusion: what an older version concluded, or one that was killed, is not what this one would."""
    return conclude(run.manifest, run.launches)


def _page(run: HplRun) -> Page:
    return page.build(run.manifest, run.launches, _result(run))


REPORT = formats.of_page("hpl", _result, _page, "a run of HPL is not cited")

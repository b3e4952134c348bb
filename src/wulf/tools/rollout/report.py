"""A roll-out in every form."""

from __future__ import annotations

from wulf.base.errors import StoreError
from wulf.page import formats
from wulf.page.blocks import Page
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


REPORT = formats.of_page("rollout", _result, _page, "a roll-out is not cited")

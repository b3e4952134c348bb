"""What ``wulf settings verify --json`` prints."""

from __future__ import annotations

import msgspec

from wulf.node.fleet.persist import SettingCheck
from wulf.tools.tune.verify import Figures


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What ``wulf settings verify --json`` prints."""

    #: Settings and files that confirmed changes have left, and whether they are as confirmed.
    settings: list[SettingCheck]
    #: The objective now against then; null without a run.
    figures: Figures | None
    holds: bool
    #: Node → why it is not known what is set there; then not everything holds.
    unanswered: dict[str, str] = {}

    @property
    def untold(self) -> bool:
        """Whether all that could be seen holds, and too little could."""
        return self.holds and self.figures is not None and self.figures.untold

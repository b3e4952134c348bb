"""Which algorithms of an MPI library were found to be best for its collectives."""

from __future__ import annotations

from typing import Literal

from wulf.base.records.base import Estimate, Record

#: ``alike``: sends the same messages as without the file, so that its effect cannot be seen in them.
EffectState = Literal["in effect", "not in effect", "alike", "unknown"]
#: What is struck out by this name is not forced; without it nothing can be compared.
OWN = "library's own decision"


class TunedCell(Record, frozen=True, kw_only=True):
    """A collective at a size, on so many ranks."""

    collective: str
    ranks: int
    size_bytes: int
    #: The best algorithm that was tried, as the library calls it; empty where none was measured.
    algorithm: str = ""
    #: The parts in which it sends; 0 for one [B].
    segment_bytes: int = 0
    #: Its time ÷ that of the library's own decision, in blocks of their own; null where there were none.
    ratio: Estimate | None = None
    #: The library's own decision ÷ itself, in the same blocks; null where there were none.
    control: Estimate | None = None
    #: A ratio above 1 ÷ this may be chance: the widest control of this collective and these ranks.
    limit: float | None = None
    #: Whether it is told that nothing more can be gained: false where there was no time to launch all algorithms, or
    #: the best of them often enough.
    judged: bool = True
    #: Whether it is in the file.
    kept: bool = False
    #: Why it is not.
    reason: str = ""


class StruckOut(Record, frozen=True, kw_only=True):
    """An algorithm that failed, hung or gave wrong data, or was not tried."""

    collective: str
    ranks: int
    algorithm: str
    segment_bytes: int = 0
    reason: str


class HeldOut(Record, frozen=True, kw_only=True):
    """A size that nothing was decided by, with the file in effect."""

    collective: str
    ranks: int
    size_bytes: int
    #: Time with the file ÷ time without, launches in turn.
    ratio: Estimate
    #: Without the file ÷ without it again, in the same blocks.
    control: Estimate
    #: A ratio below this may be chance: the widest control of this collective and these ranks.
    limit: float
    #: Whether the file has a rule for it.
    ruled: bool


class HeldOutFailure(Record, frozen=True, kw_only=True):
    """Why the held-out sizes of a collective are not or not wholly judged: launches failed, or were too few."""

    collective: str
    ranks: int
    #: Launches that failed, hung or gave wrong data with the file in effect, and without it.
    with_file: int = 0
    without_file: int = 0
    #: Whether enough others were good.
    judged: bool
    reason: str


class RuleEffect(Record, frozen=True, kw_only=True):
    """Whether the file does what it says."""

    collective: str
    ranks: int
    size_bytes: int
    state: EffectState
    #: What was seen.
    evidence: str


class CollectiveTuning(Record, frozen=True, kw_only=True):
    """All of a search."""

    schema_version: int
    #: As the library calls itself.
    library: str
    #: Format of the file: ``classic-1``, ``classic-2``, ``json-3``, ``mpich-tree`` or ``cvars`` (lines of variables).
    format: str
    nodes: list[str]
    seed: int
    cells: list[TunedCell]
    struck_out: list[StruckOut] = []
    effects: list[RuleEffect] = []
    held_out: list[HeldOut] = []
    held_out_failures: list[HeldOutFailure] = []
    #: Time with the file ÷ time without, geometric mean over all held-out sizes; null where no block measured all.
    mean: Estimate | None = None
    #: The same of the library's own decision against itself, in the same launches.
    mean_control: Estimate | None = None
    #: Both over those held-out sizes only for which the file has a rule.
    mean_ruled: Estimate | None = None
    mean_ruled_control: Estimate | None = None
    #: Collectives whose rules are not in the file as jobs failed with them, and how.
    dropped: dict[str, str] = {}
    #: Text of the file; empty where nothing is better than the library's own decision.
    text: str = ""
    #: Whether some calls of every collective and size were made with it; else ``.untried`` is added to its name.
    tried: bool = False
    #: Why there is none although something is better; empty where that is not so.
    refused: str = ""
    #: Where it was written; empty where it was not.
    path: str = ""
    #: Environment in which a job uses it.
    environment: dict[str, str] = {}
    launches: int
    lasted_s: float
    interrupted: bool = False

    @property
    def effective(self) -> bool:
        """Whether no rule is known to be without effect, and some are seen to have one."""
        states = {effect.state for effect in self.effects}
        return "in effect" in states and not states & {"not in effect", "unknown"}

    @property
    def slower(self) -> list[HeldOut]:
        """Held-out sizes that are slower with the file by more than may be chance."""
        return [cell for cell in self.held_out if cell.ratio.value > cell.limit]

    @property
    def unjudged(self) -> list[HeldOutFailure]:
        """Held-out sizes at which launches failed with the file, or of which too few were good to judge it."""
        return [one for one in self.held_out_failures if one.with_file or not one.judged]

    @property
    def not_judged(self) -> list[TunedCell]:
        """Cells of which nothing can be told, as there was no time for enough launches."""
        return [cell for cell in self.cells if not cell.judged]

    @property
    def not_searched(self) -> list[StruckOut]:
        """Collectives whose search ended early, as the library's own decision failed."""
        return [one for one in self.struck_out if one.algorithm == OWN]

"""What was set right because it was certainly wrong, and what that brought."""

from __future__ import annotations

from wulf.base.records.audited import Finding
from wulf.base.records.base import Estimate, Pair, Record, Verdict
from wulf.base.records.changed import ChangeOutcome


class Unmended(Record, frozen=True, kw_only=True):
    """A finding that wulf could mend and does not."""

    finding: Finding
    #: Why not; names the nodes.
    reason: str


class MendEffect(Record, frozen=True, kw_only=True):
    """What mending did to one figure."""

    #: Such as ``mpi_pingpong 1 B``.
    metric: str
    #: Mended ÷ before, of a time: below 1 is faster.
    ratio: Estimate
    #: Two-sided, times the number of figures that were asked.
    p_value: float
    verdict: Verdict


class Mending(Record, frozen=True, kw_only=True):
    """The result of ``wulf mend``."""

    #: What was to be set right.
    findings: list[Finding]
    #: What was not, and why.
    refused: list[Unmended]
    #: Pairs between which it was measured; every changed node is in one, but where there are many.
    pairs: list[Pair] = []
    #: Why it was not measured; empty where it was, and where nothing was to be changed.
    unmeasured: str = ""
    #: How often it was measured before and after, in turn; failures count.
    blocks: int = 0
    #: Launches that failed before and after.
    failed_before: int = 0
    failed_after: int = 0
    #: Why, each reason once.
    failures: list[str] = []
    effects: list[MendEffect] = []
    #: What became of the nodes; none where nothing was to be changed.
    outcome: ChangeOutcome | None = None
    #: What could be mended and is still found afterwards.
    left: list[Finding] = []
    #: What else is found afterwards: worth trying, or manual.
    others: list[Finding] = []
    #: Why it is not known what is left: these findings are those from before. Empty where it is known.
    unseen: str = ""
    #: Node → why nothing is known of it; what is wrong there is not among the findings.
    unreachable: dict[str, str] = {}

"""What an audit finds."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from wulf.base.profile import Severity
from wulf.base.records.base import Record

Remedy = Literal["mend", "try", "person"]


class Finding(Record, frozen=True, kw_only=True):
    """Something about some nodes that is not as it should be, with what to do about it."""

    #: Id of the check, the knob or the rule.
    id: str
    #: A check of each node, a knob's recommended value, or nodes that differ from the others.
    kind: Literal["check", "knob", "consistency"]
    title: str
    severity: Literal["fail", "warn", "info"]
    #: What it costs: latency, bandwidth, stability, security.
    costs: list[str]
    #: Expected effect of mending it, as a share of the metric (0–1); orders the findings.
    effect: float
    #: Where it is so.
    nodes: list[str]
    #: What is.
    found: str
    #: What should be.
    wanted: str
    #: Why, in words.
    why: str
    #: The command that would change it now; empty where no single one does.
    fix: str
    #: The file or mechanism that would keep it.
    keep: str
    #: What may go wrong when it is changed.
    risk: str
    #: Where the claim comes from.
    evidence: list[str]
    #: Who sets it right: ``mend`` (what is right is certain: wulf mend), ``try`` (that depends: wulf tune measures it),
    #: or a ``person``.
    remedy: Remedy = "person"
    #: Knob → value that sets it right, where wulf mends it.
    settings: dict[str, str] = {}
    #: Why wulf does not mend it, in words; empty where it does.
    reason: str = ""


class Judgement(Record, frozen=True, kw_only=True):
    """What one check says of some nodes. There is one for every node: nothing passes silently."""

    id: str
    title: str
    status: Literal["ok", "finding", "unknown", "not applicable"]
    #: Why it is unknown or not applicable.
    reason: str
    nodes: list[str]
    #: How bad it would be; null in looks of before.
    severity: Severity | None = None


class GroupState(Record, frozen=True, kw_only=True):
    """Whether a group of facts of some nodes is like the other nodes'."""

    group: str
    state: Literal["same", "odd", "unknown"]
    #: Names of the facts that differ or are unknown.
    facts: list[str]
    nodes: list[str]


class Audit(Record, frozen=True, kw_only=True):
    """The result of ``wulf audit``."""

    #: latency, throughput or hpc.
    profile: str
    #: All nodes that were asked.
    nodes: list[str]
    #: Node → why nothing is known of it.
    unreachable: dict[str, str]
    #: By severity, then by expected effect.
    findings: list[Finding]
    judgements: list[Judgement]
    #: Groups of facts × nodes, folded.
    matrix: list[GroupState]
    #: What links should reach, with its derivation → the nodes of which that is so.
    expected: dict[str, list[str]] = {}

    def untold(self, severities: Collection[Severity]) -> list[Judgement]:
        """Return what could not be judged, and would be so bad: where there is any, nobody can say that all is well."""
        return [one for one in self.judgements if one.status == "unknown" and one.severity in severities]

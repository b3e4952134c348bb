"""The records that stages exchange and the run directory stores.

Every record is immutable. Field names carry their unit (``_s``, ``_ns``, ``_bytes``).
``None`` means *unknown*; it never means zero.

Schema history
--------------
1. First version (wulf 0.1).
"""

from __future__ import annotations

from wulf.records.audited import (
    Audit,
    Finding,
    GroupState,
    Judgement,
)
from wulf.records.base import (
    OWN_FACTS,
    PASSING_FACTS,
    SCHEMA_VERSION,
    FactValue,
    Pair,
    Record,
    Setting,
    Verdict,
)
from wulf.records.changed import (
    ChangeOutcome,
    JournalEntry,
    NodeOutcome,
    NodeStatus,
    SetValue,
)
from wulf.records.derived import (
    Advice,
    Analysis,
    CellComparison,
    CellEstimate,
    Comparison,
    CurveModel,
    Estimate,
    LaunchPoint,
    LineFit,
    Segment,
)
from wulf.records.measured import (
    Cell,
    Clock,
    Launch,
    LaunchResult,
    LogRecord,
    Manifest,
    NodeContext,
    NodeRecord,
    Operation,
    Plan,
    ProbeInfo,
    Sample,
)
from wulf.records.tuned import (
    Candidate,
    CommandPart,
    Control,
    Cycle,
    Effect,
    Metric,
    PathStep,
    Phase,
    ProbePart,
    Trial,
    TuneManifest,
    TunePlan,
    Tuning,
    Values,
)

__all__ = [
    "OWN_FACTS",
    "PASSING_FACTS",
    "SCHEMA_VERSION",
    "Advice",
    "Analysis",
    "Audit",
    "Candidate",
    "Cell",
    "CellComparison",
    "CellEstimate",
    "ChangeOutcome",
    "Clock",
    "CommandPart",
    "Comparison",
    "Control",
    "CurveModel",
    "Cycle",
    "Effect",
    "Estimate",
    "FactValue",
    "Finding",
    "GroupState",
    "JournalEntry",
    "Judgement",
    "Launch",
    "LaunchPoint",
    "LaunchResult",
    "LineFit",
    "LogRecord",
    "Manifest",
    "Metric",
    "NodeContext",
    "NodeOutcome",
    "NodeRecord",
    "NodeStatus",
    "Operation",
    "Pair",
    "PathStep",
    "Phase",
    "Plan",
    "ProbeInfo",
    "ProbePart",
    "Record",
    "Sample",
    "Segment",
    "SetValue",
    "Setting",
    "Trial",
    "TuneManifest",
    "TunePlan",
    "Tuning",
    "Values",
    "Verdict",
]

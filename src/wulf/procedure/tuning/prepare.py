"""Make a tuning run ready: what is measured, which knobs are tried, what must be left alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from wulf import catalogue
from wulf.catalogue import Knob
from wulf.change import steps
from wulf.errors import ConfigError
from wulf.experiment import candidates, objective
from wulf.nodeset import fold
from wulf.procedure import change, site
from wulf.records import REFERENCE_US, Candidate, NodeRecord, Operation, Workload

Say = Callable[[str], None]
Better = Literal["lower", "higher"]
#: Beginning of the ids of knobs that belong to an MPI library → its family.
_LIBRARIES = {"ompi": "openmpi", "mpich": "mpich"}


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What is going to be tried."""

    candidates: list[Candidate]
    #: Knob → why it is not tried.
    left_out: dict[str, str]


def goal(
    name: str, mpi: str | None, say: Say, match: str = "", better: Better = "lower", unit: str = ""
) -> objective.Objective:
    """Return the objective that a user names; see `wulf.experiment.objective`.

    Parameters
    ----------
    match, better, unit
        For ``app: CMD``: the number in its output that counts.

    Raises
    ------
    ConfigError, UsageError
        It cannot be read; says why.
    """
    if name.endswith(".toml"):
        try:
            text = Path(name).read_bytes()
        except OSError as error:
            raise ConfigError(f"cannot read {name}: {error.strerror}") from None
        return objective.from_toml(text, name, lambda op: site.toolbox([op], mpi, say).operations[0])
    if name.startswith("app:") and match:
        command = name.removeprefix("app:").strip()
        return objective.application(command, match, better, unit)
    return objective.named(name, lambda: _ping_pong(site.toolbox(None, mpi, say).operations))


def _ping_pong(operations: Sequence[Operation]) -> Operation:
    """Return the first of the usual operations that is one: over MPI, where there is MPI."""
    return next(operation for operation in operations if operation.pattern == "ping-pong")


def workload(target: objective.Objective, nodes: Sequence[str]) -> Workload:
    """Return what one trial measures on these nodes, with the reference beside it."""
    return msgspec.structs.replace(target.workload(nodes), reference_us=REFERENCE_US)


def tools_for(target: objective.Objective, mpi: str | None, say: Say) -> site.Toolbox | None:
    """Build the probes that an objective needs; None when it needs none."""
    return site.toolbox(list(target.probes), mpi, say) if target.probes else None


def choose(
    records: Sequence[NodeRecord],
    target: objective.Objective,
    patterns: Sequence[str],
    family: str | None,
    permissions: change.Permissions,
) -> Choice:
    """Return what is tried on nodes with these facts.

    Parameters
    ----------
    family
        Of the MPI library that is measured; None without one.
    """
    knobs = catalogue.knobs()
    refusals = {
        name: reason
        for name, knob in knobs.items()
        if (reason := _refusal(knob, records, family, permissions, named=bool(patterns)))
    }
    found, left_out = candidates.choose(records, knobs, target.profile, refusals, steps.may_have, patterns)
    return Choice(candidates=found, left_out=left_out)


def _refusal(
    knob: Knob,
    records: Sequence[NodeRecord],
    family: str | None,
    permissions: change.Permissions,
    *,
    named: bool,
) -> str:
    """Return why a knob must be left alone; empty when it may be tried."""
    library = _LIBRARIES.get(knob.id.partition(".")[0])
    if library is not None and library != family:
        return f"it belongs to {library}, which is not measured"
    if knob.access.kind == "environment":
        return "" if named else "it belongs to a job: name it with --knobs to try it"
    refusal = catalogue.unsettable(knob)
    if refusal:
        return refusal
    reasons: dict[str, list[str]] = {}
    for record in records:
        knob_setting = steps.KnobSetting(knob=knob, value=_relaxed(knob))
        reason = steps.obstacle(
            knob_setting, record, take_over=permissions.take_over, relax=permissions.relax
        )
        unknown = record.unknown.get(knob.id)
        if reason or unknown:
            reasons.setdefault(reason or f"not known: {unknown}", []).append(record.node)
    return "; ".join(f"{fold(nodes)}: {reason}" for reason, nodes in reasons.items())


def _relaxed(knob: Knob) -> str:
    """Return the value that needs the most permission."""
    return {"firewall": "notrack", "service": "off"}.get(knob.access.kind, "-")

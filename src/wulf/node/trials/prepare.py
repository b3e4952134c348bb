"""Make a tuning run ready: what is measured, which knobs are tried, what must be left alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from wulf.base import access, catalogue
from wulf.base.catalogue import Knob
from wulf.base.contracts import Say
from wulf.base.errors import ConfigError
from wulf.base.native import build
from wulf.base.nodeset import fold, unfold
from wulf.base.records import (
    REFERENCE_US,
    Candidate,
    FactValue,
    MpiParameter,
    NodeRecord,
    Operation,
    Pair,
    Workload,
)
from wulf.node.change import steps
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.fleet import change, interfaces, preparation
from wulf.node.probe import command
from wulf.node.probe.library import parameters
from wulf.node.trials.experiment import candidates, objective

Better = Literal["lower", "higher"]
#: Beginning of the ids of knobs that belong to an MPI library, or to what starts its jobs → its family.
_LIBRARIES = {"ompi": "openmpi", "prrte": "openmpi", "mpich": "mpich"}


class Library(msgspec.Struct, frozen=True, kw_only=True):
    """The MPI library that is measured, and its parameters as it says them itself."""

    name: str
    family: str
    parameters: dict[str, MpiParameter]

    def strange(self, knob: Knob) -> str:
        """Return which parameter of a knob the library does not have; empty where it has all."""
        return next((name for name in knob.access.target.split() if name not in self.parameters), "")

    def values(self, knobs: Mapping[str, Knob]) -> dict[str, FactValue]:
        """Return the present values of those knobs that are parameters of the library."""
        return {
            knob.id: " ".join(self.parameters[name].value for name in knob.access.target.split())
            for knob in knobs.values()
            if access.kinds()[knob.access.kind].variable and not self.strange(knob)
        }


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What is going to be tried."""

    candidates: list[Candidate]
    #: Knob → why it is not tried.
    left_out: dict[str, str]

    def pairs(self, nodes: Sequence[str]) -> list[Pair]:
        """Return between whom a trial measures: nodes that a candidate changes come with others that it does not."""
        changed = dict.fromkeys(one.nodes for one in self.candidates if one.nodes)
        return objective.pairs_for(nodes, [set(unfold(some)) for some in changed])


def goal(
    name: str, mpi: str | None, say: Say, match: str = "", better: Better = "lower", unit: str = ""
) -> objective.Objective:
    """Return the objective that a user names; see `wulf.node.trials.experiment.objective`.

    Parameters
    ----------
    match, better, unit
        For ``app: CMD``: the number in its output that counts.

    Raises
    ------
    ConfigError, UsageError
        It cannot be read; says why.
    """
    known: Callable[[str], Operation] = lambda op: preparation.toolbox([op], mpi, say).operations[0]  # noqa: E731 - used below
    if name.endswith(".toml"):
        try:
            text = Path(name).read_bytes()
        except OSError as error:
            raise ConfigError(f"cannot read {name}: {error.strerror}") from None
        return objective.from_toml(text, name, known)
    if name.startswith("app:") and match:
        return objective.application(name.removeprefix("app:").strip(), match, better, unit)
    return objective.named(name, lambda: _ping_pong(preparation.toolbox(None, mpi, say).operations), known)


def placed(target: objective.Objective, transport: str) -> objective.Objective:
    """Return an objective whose commands run where wulf was started (`wulf.node.probe.command.placed`)."""
    commands = [
        msgspec.structs.replace(one, command=command.placed(one.command, transport))
        for one in target.commands
    ]
    return msgspec.structs.replace(target, commands=commands)


def _ping_pong(operations: Sequence[Operation]) -> Operation:
    """Return the first of the usual operations that is one: over MPI, where there is MPI."""
    return next(operation for operation in operations if operation.pattern == "ping-pong")


def workload(
    target: objective.Objective, nodes: Sequence[str], choice: Choice, given: Sequence[Pair] = ()
) -> Workload:
    """Return what one trial measures on these nodes, with the reference beside it.

    Parameters
    ----------
    given
        Pairs that are measured in any case.
    """
    there = {node for pair in given for node in pair}
    more = [] if there.issuperset(nodes) else [pair for pair in choice.pairs(nodes) if pair not in given]
    found = target.workload(nodes, [*given, *more][: max(objective.MAX_PAIRS, len(given))])
    return msgspec.structs.replace(found, reference_us=REFERENCE_US)


def tools_for(target: objective.Objective, mpi: str | None, say: Say) -> preparation.Toolbox | None:
    """Build the probes that an objective needs; None when it needs none."""
    return preparation.toolbox(list(target.probes), mpi, say) if target.probes else None


def library_of(
    tools: preparation.Toolbox | None,
    mpi: str | None,
    config: ClusterConfig,
    records: Sequence[NodeRecord],
    say: Say,
) -> Library | None:
    """Return the MPI library that is measured: that of the probe, or one that is named for a command.

    Its parameters have the values of the jobs that measure; of a command only the site's own are known.

    Raises
    ------
    BuildError
        The probe that asks it cannot be built, or the library does not say.
    """
    probes = tools.probes if tools is not None else []
    measuring = next((probe for probe in probes if probe.mpi is not None), None)
    probe = measuring
    if probe is None and mpi is not None:
        found = build.find_mpi(mpi)
        probe = build.build(found[0]) if found else None
    if probe is None or probe.mpi is None:
        return None
    say(f"asking {probe.mpi.version} for its parameters")
    known = parameters(probe, config.mpi.env)
    # It is not asked under the launcher's environment: an interface of the nodes may be none of this machine.
    own = preparation.job_variables(config, probe.mpi.family, records) if measuring is not None else {}
    for name, one in known.items():
        value = own.get(name, own.get(f"OMPI_MCA_{name}", one.value))
        known[name] = msgspec.structs.replace(one, value=value)
    return Library(name=probe.mpi.version, family=probe.mpi.family, parameters=known)


def choose(
    records: Sequence[NodeRecord],
    target: objective.Objective,
    patterns: Sequence[str],
    library: Library | None,
    permissions: change.Permissions,
) -> Choice:
    """Return what is tried on nodes with these facts.

    Parameters
    ----------
    library
        The MPI library that is measured; None without one.

    Raises
    ------
    UsageError
        A pattern matches no knob, or jobs would have no interface by a value that it gives.
    """
    knobs = catalogue.knobs()
    refusals = {
        name: reason
        for name, knob in knobs.items()
        if (reason := _refusal(knob, records, library, permissions, named=bool(patterns)))
    }
    now = library.values(knobs) if library is not None else {}
    known = [msgspec.structs.replace(record, facts=record.facts | now) for record in records]
    found, left_out = candidates.choose(known, knobs, target.profile, refusals, steps, patterns)
    for one in found:
        for value in one.values:
            interfaces.require({one.knob: value}, records)
    return Choice(candidates=found, left_out=left_out)


def _refusal(
    knob: Knob,
    records: Sequence[NodeRecord],
    library: Library | None,
    permissions: change.Permissions,
    *,
    named: bool,
) -> str:
    """Return why a knob must be left alone; empty when it may be tried."""
    family = _LIBRARIES.get(knob.id.partition(".")[0])
    if family is not None and (library is None or library.family != family):
        return f"it belongs to {family}, which is not measured"
    if library is not None and family is not None and (strange := library.strange(knob)):
        return f"{library.name} has no parameter {strange} here"
    if knob.access.kind == "environment":
        asked = library is not None and not library.strange(knob)
        return "" if named or asked else "it belongs to a job: name it with --knobs to try it"
    refusal = catalogue.unsettable(knob)
    if refusal:
        return refusal
    reasons: dict[str, list[str]] = {}
    for record in records:
        container = str(record.facts.get("node.container", "none"))
        if not named and container != "none" and _is_of_the_kernel(knob):
            why = f"it is the kernel's, which this container ({container}) shares with its host"
            reasons.setdefault(f"{why}: name it with --knobs to try it", []).append(record.node)
            continue
        knob_setting = steps.KnobSetting(knob=knob, value=_relaxed(knob))
        reason = steps.obstacle(
            knob_setting, record, take_over=permissions.take_over, relax=permissions.relax
        )
        unknown = record.unknown.get(knob.id)
        if reason or unknown:
            reasons.setdefault(reason or f"not known: {unknown}", []).append(record.node)
    return "; ".join(f"{fold(nodes)}: {reason}" for reason, nodes in reasons.items())


def _is_of_the_kernel(knob: Knob) -> bool:
    """Whether a setting is that of a whole kernel, not of a network namespace or an interface."""
    target = knob.access.target
    if knob.access.kind == "sysctl":
        return not target.startswith("net.")
    if knob.access.kind == "file":
        return not target.startswith("/sys/class/net/")
    return knob.access.kind in ("pm_qos", "turbo", "idle_states")


def _relaxed(knob: Knob) -> str:
    """Return the value that needs the most permission."""
    return {"firewall": "notrack", "service": "off"}.get(knob.access.kind, "-")

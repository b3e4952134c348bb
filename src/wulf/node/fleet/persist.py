"""Make confirmed settings last, look whether they do, and hand them to other tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from wulf.base import access, catalogue
from wulf.base.contracts import Transport
from wulf.base.errors import StoreError, TransportError, UsageError
from wulf.base.interfaces import Interface, interface_of
from wulf.base.nodeset import fold, reasons_text
from wulf.base.records import ChangeOutcome, NodeRecord, NodeStatus, SetValue, TuneManifest, Values
from wulf.base.store import list_runs
from wulf.base.store.tuning import HEAD, TuningWriter, load_tuning
from wulf.node.change import apply, routes, steps
from wulf.node.change.answers import UNWRITTEN, confirmed
from wulf.node.change.export import Chosen
from wulf.node.change.guard import Guards
from wulf.node.change.persist import Persistence, persist
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.fleet import at_boot
from wulf.node.fleet.change import carrying, with_notes


class PersistencePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What makes the settings of some nodes last."""

    #: Node → what keeps its settings.
    nodes: dict[str, Persistence]

    @property
    def plans(self) -> dict[str, list[steps.Step]]:
        """Node → steps; nodes that need none are not in it."""
        return {node: kept.steps for node, kept in self.nodes.items() if kept.steps}

    @property
    def texts(self) -> dict[str, dict[str, str]]:
        """Node → path → what is written there."""
        return {node: kept.texts for node, kept in self.nodes.items()}

    def places(self) -> dict[str, str]:
        """Return knob → where it is kept, for all nodes together."""
        return {knob: place for kept in self.nodes.values() for knob, place in kept.places.items()}


class SettingCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Whether one setting of a node still is what was confirmed."""

    node: str
    #: Knob, or the file or unit that keeps settings.
    what: str
    kind: str
    wanted: str
    now: str
    holds: bool


def settings(status: NodeStatus) -> list[steps.KnobSetting]:
    """Return the knobs that confirmed changes have set on a node and are not as they were before."""
    return [
        steps.KnobSetting(knob=catalogue.knob(value.knob), value=_value(value))
        for value in status.settings
        if value.kind not in access.keepers() and value.differs and not value.knob.startswith(routes.OWN)
    ]


def require_answers(statuses: Sequence[NodeStatus]) -> None:
    """Raise TransportError when a node did not say what is set there: that is not the same as nothing."""
    lost = [status for status in statuses if status.error]
    if lost:
        raise TransportError(f"{fold([status.node for status in lost])}: {lost[0].error}")


def require_facts(records: Sequence[NodeRecord]) -> None:
    """Raise TransportError when a node's facts are not known: where it keeps settings, and of which cards, they say."""
    lost = {
        record.node: str(record.error or "it does not answer")
        for record in records
        if record.error or not record.reachable
    }
    if lost:
        raise TransportError(f"what keeps settings there is not known: {reasons_text(lost)}")


def lasting(
    statuses: Sequence[NodeStatus], records: Sequence[NodeRecord], interface: Interface
) -> PersistencePlan:
    """Return what would make the confirmed settings last.

    Raises
    ------
    TransportError
        A node does not say what is set there, or its facts.
    UsageError
        Nothing is set.
    """
    require_answers(statuses)
    require_facts(records)
    by_node = {record.node: record for record in records}
    found = {}
    for status in statuses:
        strange = _not_kept(status)
        kept = [value for value in status.settings if value.knob not in strange]
        knob_settings = settings(msgspec.structs.replace(status, settings=kept))
        if knob_settings:
            change = max(value.change for value in kept if value.kind not in access.keepers())
            lasts = persist(knob_settings, interface_of(interface, status.node), by_node[status.node], change)
            found[status.node] = msgspec.structs.replace(lasts, unpersistable=lasts.unpersistable | strange)
    if not found:
        raise UsageError("nothing is set on these nodes that could be kept ('wulf settings status' shows it)")
    return PersistencePlan(nodes=found)


def _not_kept(status: NodeStatus) -> dict[str, str]:
    """Return what is set there without being a knob of this version, and why it is not kept."""
    return {
        value.knob: "routes over direct links hold until the next boot (wulf audit topology sets them again)"
        if value.knob.startswith(routes.OWN)
        else "this version of wulf knows no such knob"
        for value in status.settings
        if value.kind not in access.keepers() and value.differs and value.knob not in catalogue.knobs()
    }


def make_last(
    transport: Transport,
    guards: Guards,
    config: ClusterConfig,
    what: PersistencePlan,
    *,
    deadline_s: int,
    watch: Callable[[str], None],
) -> ChangeOutcome:
    """Write the files, on all nodes or on none."""
    if not what.plans:
        return ChangeOutcome(change="", kept=True, nodes=[])
    carries = carrying(transport, config, list(what.plans))
    outcome = apply.change(guards, what.plans, deadline_s=deadline_s, live=carries.reasons, watch=watch)
    asked = at_boot.notes(transport, what.texts, config.interface) if outcome.kept else []
    return with_notes(outcome, [*carries.notes(), *asked])


def note_in_runs(runs: Path, statuses: Sequence[NodeStatus], what: PersistencePlan) -> list[str]:
    """Write down in the tuning runs whose settings these are where they are kept; return why that failed for any."""
    changes = {value.change for status in statuses for value in status.settings}
    failed = []
    for path in list_runs(runs, HEAD):
        try:
            run = load_tuning(path)
            if run.manifest.change in changes and run.result is not None:
                kept = {knob: place for knob, place in what.places().items() if knob in run.result.kept}
                with TuningWriter(path, run.manifest) as writer:
                    writer.update(stored=kept)
        except StoreError as error:
            failed.append(f"where the settings are kept is not recorded in a run: {error}")
    return failed


def holding(statuses: Sequence[NodeStatus]) -> list[SettingCheck]:
    """Compare what was confirmed with what is, live and stored, on every node."""
    return [
        SettingCheck(
            node=status.node,
            what=value.target if value.kind in access.keepers() else value.knob,
            kind=value.kind,
            wanted=confirmed(value) if value.wanted.startswith(UNWRITTEN) else value.wanted,
            now=value.now,
            holds=value.holds,
        )
        for status in statuses
        for value in status.settings
        # What was put back to an earlier state that nobody noted is as it should be when nothing differs.
        if value.after is not None or not value.wanted.startswith(UNWRITTEN)
    ]


def chosen(
    statuses: Sequence[NodeStatus], records: Sequence[NodeRecord], interface: Interface
) -> dict[str, Chosen]:
    """Return what is set on the nodes, for an export.

    Raises
    ------
    TransportError
        A node does not say what is set there, or its facts.
    UsageError
        Nothing is set.
    """
    require_answers(statuses)
    require_facts(records)
    by_node = {record.node: record for record in records}
    found = {
        status.node: Chosen(
            wanted=knob_settings,
            interface=interface_of(interface, status.node),
            record=by_node[status.node],
        )
        for status in statuses
        if (knob_settings := settings(status))
    }
    if not found:
        raise UsageError(
            "nothing is set on these nodes; name a tuning run to export what it found ('wulf runs list')"
        )
    return found


def chosen_by(manifest: TuneManifest, kept: Values, interface: Interface) -> dict[str, Chosen]:
    """Return what a tuning run decided to keep, for an export; the nodes are not asked.

    Raises
    ------
    UsageError
        It kept nothing.
    """
    knob_settings = [
        steps.KnobSetting(knob=knob, value=value)
        for name, value in kept.items()
        if not catalogue.unsettable(knob := catalogue.knob(name))
    ]
    if not knob_settings:
        raise UsageError("this run kept nothing that is set on a node")
    return {
        record.node: Chosen(
            wanted=knob_settings, interface=interface_of(interface, record.node), record=record
        )
        for record in manifest.records
    }


def _value(value: SetValue) -> str:
    """Return what to keep: what was asked for, or what an earlier state left there."""
    return value.now if value.wanted.startswith("@") else value.wanted


def readable(kept: Persistence) -> str:
    """Return what keeps the settings of a node, for people: every file with its text."""
    return "\n".join(_readable(step, kept.texts.get(step.target)) for step in kept.steps)


def _readable(step: steps.Step, text: str | None) -> str:
    if step.kind != "stored":
        return f"{step.target}: {step.value} at boot"
    if text is None:
        return f"{step.target}: {step.value}"
    if "\n" not in text:
        return f"{step.target}: link:{text}"
    return f"{step.target}:\n" + "".join(f"    {line}\n" for line in text.splitlines())

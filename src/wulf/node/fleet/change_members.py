"""The nodes that take part in a change: set, keep over boots, go back, and who has missed it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from wulf.base import catalogue
from wulf.base.contracts import Transport
from wulf.base.records import ChangeOutcome, NodeStatus
from wulf.base.store.tuning import TuningRun
from wulf.node.change import steps
from wulf.node.change.guard import Guards
from wulf.node.change.transaction import Watch
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.facts.capture import capture
from wulf.node.fleet import change, missed_changes, persist


class SetSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is set on some nodes, and what would keep it over boots."""

    statuses: list[NodeStatus]
    lasting: persist.PersistencePlan


class Members:
    """Nodes that answer, with the way to them and to their guards; use it through `opened`."""

    def __init__(
        self, whole: ClusterConfig, transport: Transport, guards: Guards, there: missed_changes.Present
    ) -> None:
        self._whole = whole
        self._config = whole.without(there.missing)
        self._transport = transport
        self._guards = guards
        self._there = there

    @property
    def missing(self) -> Mapping[str, str]:
        """Node that was left out → why."""
        return self._there.missing

    def intend(
        self, wanted: Sequence[steps.KnobSetting], permissions: change.Permissions
    ) -> change.ChangePlan:
        """Look at the nodes and plan a change; raises as `wulf.node.fleet.change.intend`."""
        return change.intend(self._transport, self._config, self._there.nodes, wanted, permissions)

    def explain(self, plan: change.ChangePlan) -> dict[tuple[str, ...], list[str]]:
        """Return the commands of a change → the nodes that would run them."""
        return change.explain(self._transport, plan.plans)

    def set(self, plan: change.ChangePlan, *, deadline_s: int, watch: Watch) -> ChangeOutcome:
        """Make a change on all of them, or on none; note who has missed it.

        Raises
        ------
        RefusedError
            A node is as wanted by a change that nobody has confirmed: it would soon be otherwise.
        TransportError
            This user cannot change settings on a node.
        """
        self._guards.require_right(list(plan.plans))
        still = [node for node in plan.wanted if node not in plan.plans]
        remarks = change.require_confirmed(self._guards, still)
        outcome = ChangeOutcome(change="", kept=True, nodes=[])
        if plan.plans:
            outcome = change.make(self._guards, self._config, plan, deadline_s=deadline_s, watch=watch)
        outcome = change.with_notes(outcome, remarks)
        values = {one.knob.id: one.value for one in plan.settings.values()}
        return missed_changes.settle(self._whole, self._there, outcome, values=values)

    def look_at_set(self) -> SetSettings:
        """Look at what is set there, and what would keep it.

        Raises
        ------
        UsageError
            Nothing is set.
        """
        statuses = change.status(self._guards, self._there.nodes)
        knobs = list(catalogue.knobs().values())
        records = capture(self._transport, self._there.nodes, self._config.interface, knobs)
        missed_changes.require_level(self._config, records)
        lasting = persist.lasting(statuses, records, self._config.interface)
        return SetSettings(statuses=statuses, lasting=lasting)

    def persist(self, what: SetSettings, runs: Path, *, deadline_s: int, watch: Watch) -> ChangeOutcome:
        """Keep what is set over boots, on all of them or on none; note where in the runs that found it."""
        outcome = persist.make_last(
            self._transport, self._guards, self._config, what.lasting, deadline_s=deadline_s, watch=watch
        )
        if outcome.kept:
            unnoted = persist.note_in_runs(runs, what.statuses, what.lasting)
            outcome = change.with_notes(outcome, unnoted)
        return missed_changes.settle(self._whole, self._there, outcome, persist=True)

    def standing(self) -> list[NodeStatus]:
        """Return what is set on the nodes, and by which changes."""
        return change.status(self._guards, self._there.nodes)

    def roll_back(self, to: str, *, deadline_s: int, watch: Watch) -> ChangeOutcome:
        """Go back to the state before change `to`, or to the original one."""
        outcome = change.roll_back(
            self._transport,
            self._guards,
            self._config,
            self._there.nodes,
            to,
            deadline_s=deadline_s,
            watch=watch,
        )
        return missed_changes.settle(self._whole, self._there, outcome, rollback=to)


@contextmanager
def opened(config: ClusterConfig, nodes: Sequence[str], *, allow_missing: int = 0) -> Iterator[Members]:
    """Open the way to nodes that are to be changed.

    Raises
    ------
    TransportError
        More than `allow_missing` do not answer.
    """
    allowed = missed_changes.allowed(allow_missing)
    with change.open_guards(config) as (transport, guards):
        yield Members(config, transport, guards, missed_changes.present(transport, nodes, allowed))


def answering(config: ClusterConfig, nodes: Sequence[str], *, allow_missing: int) -> missed_changes.Present:
    """Return which of the nodes take part in a search; raises as `opened`."""
    if not missed_changes.allowed(allow_missing):
        return missed_changes.Present(nodes=list(nodes))
    with change.open_guards(config) as (transport, _):
        return missed_changes.present(transport, nodes, allow_missing)


def remember_missing(
    config: ClusterConfig, there: missed_changes.Present, run: TuningRun, *, persist: bool = False
) -> dict[str, list[str]]:
    """Note what nodes that were left out of a search have missed; return node → commands that bring it level."""
    if run.manifest.change is None or run.result is None:
        return {}
    values = {
        knob: value
        for knob, value in run.result.kept.items()
        if not catalogue.unsettable(catalogue.knob(knob))
    }
    missed_changes.remember(config, there.missing, run.manifest.change, values=values, persist=persist)
    behind = missed_changes.behind(config, list(there.missing))
    return {node: missed_changes.commands(config, entry) for node, entry in behind.items()}

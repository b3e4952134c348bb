"""A change of several nodes as one transaction: all of them confirm it, or none has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from wulf.base.records import ChangeOutcome, NodeOutcome
from wulf.node.change.answers import left as left_alone
from wulf.node.change.guard import STUCK, Answer, Answers, Guards
from wulf.node.change.shared_files import Sharing
from wulf.node.change.steps import Step
from wulf.node.change.transaction import Live, StepError, Transaction, Watch, silent, take

#: Beyond the deadline of a change, its owner keeps the nodes so long.
LEASE_S = 120


def change(
    guards: Guards,
    plans: Mapping[str, Sequence[Step]],
    *,
    deadline_s: int,
    live: Live = dict,
    watch: Watch = silent,
) -> ChangeOutcome:
    """Take the steps of every node's plan, prove that the nodes can still be reached, and confirm.

    Raises
    ------
    KeyboardInterrupt
        After everything has been put back.
    """
    sharing = Sharing(guards, plans)
    outcome = _Change(guards, list(plans), deadline_s, watch).run(
        lambda tx: sharing.begin(tx, deadline_s), lambda: live() or sharing.unseen()
    )
    return msgspec.structs.replace(outcome, notes=[*outcome.notes, *sharing.notes])


def rollback(
    guards: Guards,
    nodes: Sequence[str],
    to: str,
    *,
    deadline_s: int,
    live: Live = dict,
    watch: Watch = silent,
) -> ChangeOutcome:
    """Go back to the state before change `to` (or ``original``); nodes with nothing to put back are untouched."""
    return _Change(guards, list(nodes), deadline_s, watch).run(
        lambda tx: guards.rollback(list(nodes), tx, deadline_s, to), live
    )


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a change, with what became of the nodes."""

    def __init__(self, outcome: ChangeOutcome) -> None:
        super().__init__()
        self.outcome = outcome


class _Change:
    """All nodes confirm a change, or all are put back."""

    def __init__(self, guards: Guards, nodes: list[str], deadline_s: int, watch: Watch) -> None:
        self._guards = guards
        self._nodes = nodes
        self._watch = watch
        self._transaction = Transaction(guards, deadline_s, watch)

    def run(self, begin: Callable[[str], Answers], live: Live) -> ChangeOutcome:
        transaction = self._transaction
        try:
            try:
                take(self._guards, self._nodes, transaction.deadline_s + LEASE_S, self._watch)
                transaction.begin(self._nodes, begin)
                if transaction.begun:
                    transaction.apply()
                    transaction.prove(live)
                    transaction.reach(transaction.deadline_s)
                    transaction.confirm()
            except StepError as failure:
                return self._given_up(str(failure))
            except KeyboardInterrupt as interrupt:
                raise Interrupted(self._given_up("interrupted")) from interrupt
            except BaseException:
                transaction.put_back("an error in wulf")
                raise
            return self._kept()
        finally:
            self._watch("unlock")
            self._guards.unlock(self._nodes)

    def _kept(self) -> ChangeOutcome:
        return ChangeOutcome(
            change=self._name(),
            kept=True,
            notes=self._transaction.notes,
            nodes=[
                NodeOutcome(
                    node=node,
                    state="confirmed" if node in self._transaction.begun else "untouched",
                    values=self._transaction.values.get(node, {}),
                )
                for node in self._nodes
            ],
        )

    def _given_up(self, reason: str) -> ChangeOutcome:
        self._watch("undo")
        back = self._put_back(reason)
        nodes = [self._outcome(node, back.get(node)) for node in self._nodes]
        notes = [*self._transaction.notes, *left_alone(back)]
        change = self._name()
        return ChangeOutcome(change=change, kept=False, reason=reason, notes=notes, nodes=nodes)

    def _put_back(self, reason: str) -> Answers:
        try:
            return self._transaction.put_back(reason)
        except KeyboardInterrupt:
            # A second Ctrl-C: whoever is in such a hurry is told at once, and the nodes do it by themselves.
            unasked = "interrupted again before it had answered"
            return {
                node: Answer(node=node, code=None, lines=[], reason=unasked)
                for node in self._transaction.begun
            }

    def _name(self) -> str:
        """Name of the change; empty where no node had anything to do."""
        return self._transaction.name if self._transaction.begun else ""

    def _outcome(self, node: str, answer: Answer | None) -> NodeOutcome:
        if answer is None:
            return NodeOutcome(node=node, state="untouched")
        if answer.done:
            return NodeOutcome(node=node, state="undone")
        if answer.code is None:
            wait = f"it undoes the change by itself within {self._transaction.deadline_s} s"
            if self._transaction.confirming:
                wait += ", unless it has confirmed it: its journal says so (wulf settings status)"
            return NodeOutcome(node=node, state="unknown", reason=f"{answer.reason}; {wait}")
        return NodeOutcome(
            node=node, state="stuck" if answer.code == STUCK else "unknown", reason=answer.reason
        )

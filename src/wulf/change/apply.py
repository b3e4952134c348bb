"""A change of several nodes as one transaction: all of them confirm it, or none has it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from wulf.change.answers import left as left_alone
from wulf.change.answers import values as read_back
from wulf.change.guard import BUSY, LATE, STUCK, Answer, Answers, Guards
from wulf.change.shared import Sharing
from wulf.change.steps import Step
from wulf.nodeset import fold
from wulf.records import ChangeOutcome, NodeOutcome
from wulf.text import printable

#: Beyond the deadline of a change, its owner keeps the nodes so long.
LEASE_S = 120
#: Called before every step of a change, with what comes next.
Watch = Callable[[str], None]
#: Node → why a change cannot be kept there; empty when all is well.
Live = Callable[[], Mapping[str, str]]


def new_change() -> str:
    """Return a name for a change. In which order changes were made, the journals know."""
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(3)}"


def change(
    guards: Guards,
    plans: Mapping[str, Sequence[Step]],
    *,
    deadline_s: int,
    live: Live = dict,
    watch: Watch = lambda _: None,
) -> ChangeOutcome:
    """Take the steps of every node's plan, prove that the nodes can still be reached, and confirm.

    Raises
    ------
    KeyboardInterrupt
        After everything has been put back.
    """
    sharing = Sharing(guards, plans)
    outcome = _Transaction(guards, list(plans), deadline_s, watch).run(
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
    watch: Watch = lambda _: None,
) -> ChangeOutcome:
    """Go back to the state before change `to` (or ``original``); nodes with nothing to put back are untouched."""
    return _Transaction(guards, list(nodes), deadline_s, watch).run(
        lambda tx: guards.rollback(list(nodes), tx, deadline_s, to), live
    )


class _Failed(Exception):  # noqa: N818 - it ends the attempt; the outcome says what failed
    """The change cannot go on; nodes must be put back."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a change, with what became of the nodes."""

    def __init__(self, outcome: ChangeOutcome) -> None:
        super().__init__()
        self.outcome = outcome


class _Transaction:
    """Prepare on all nodes, apply on all, prove, confirm on all; or put all back."""

    def __init__(self, guards: Guards, nodes: list[str], deadline_s: int, watch: Watch) -> None:
        self._guards = guards
        self._nodes = nodes
        self._deadline_s = deadline_s
        self._watch = watch
        self._tx = new_change()
        self._values: dict[str, dict[str, str]] = {}
        self._notes: list[str] = []
        #: Nodes whose guard may have begun.
        self._begun: list[str] = []
        #: Whether nodes may have confirmed it.
        self._confirming = False

    def run(self, begin: Callable[[str], Answers], live: Live) -> ChangeOutcome:
        try:
            try:
                self._take()
                self._prepare(begin)
                if self._begun:
                    self._apply()
                    self._prove(live)
                    self._confirm()
            except _Failed as failure:
                return self._given_up(str(failure))
            except KeyboardInterrupt as interrupt:
                raise Interrupted(self._given_up("interrupted")) from interrupt
            except BaseException:
                self._put_back("an error in wulf")
                raise
            return self._kept()
        finally:
            self._watch("unlock")
            self._guards.unlock(self._nodes)

    def _take(self) -> None:
        self._watch("install")
        _all(self._guards.install(self._nodes), "cannot put the guard there")
        self._watch("lock")
        _all(self._guards.lock(self._nodes, self._deadline_s + LEASE_S), "cannot be changed now")

    def _prepare(self, begin: Callable[[str], Answers]) -> None:
        self._watch("begin")
        self._begun = list(self._nodes)
        answers = begin(self._tx)
        self._begun = [
            node for node, answer in answers.items() if not answer.done or not answer.rows("nothing")
        ]
        _all(answers, "cannot be changed")

    def _apply(self) -> None:
        self._watch("apply")
        answers = self._guards.call(self._begun, "apply", self._tx)
        for node, answer in answers.items():
            self._values[node] = read_back(answer)
        self._notes += left_alone(answers)
        _all(answers, "did not take it")

    def _prove(self, live: Live) -> None:
        self._watch("check the effect")
        reasons: dict[str, list[str]] = {}
        for node, reason in live().items():
            reasons.setdefault(reason, []).append(node)
        if reasons:
            raise _Failed("; ".join(f"{fold(names)}: {reason}" for reason, names in reasons.items()))
        self._watch("reach the nodes anew")
        answers = self._guards.call(self._begun, "extend", self._tx, str(self._deadline_s), fresh=True)
        _all(answers, "cannot be reached over a new connection")

    def _confirm(self) -> None:
        self._watch("confirm")
        self._confirming = True
        answers = self._guards.call(self._begun, "confirm", self._tx, fresh=True)
        _all(answers, "did not confirm")

    def _kept(self) -> ChangeOutcome:
        return ChangeOutcome(
            change=self._tx if self._begun else "",
            kept=True,
            notes=self._notes,
            nodes=[
                NodeOutcome(
                    node=node,
                    state="confirmed" if node in self._begun else "untouched",
                    values=self._values.get(node, {}),
                )
                for node in self._nodes
            ],
        )

    def _given_up(self, reason: str) -> ChangeOutcome:
        self._watch("undo")
        back = self._put_back(reason)
        nodes = [self._outcome(node, back.get(node)) for node in self._nodes]
        self._notes += left_alone(back)
        change = self._tx if self._begun else ""
        return ChangeOutcome(change=change, kept=False, reason=reason, notes=self._notes, nodes=nodes)

    def _put_back(self, why: str) -> Answers:
        """Undo on all nodes; what a node has confirmed already is rolled back."""
        if not self._begun:
            return {}
        answers = self._guards.call(self._begun, "undo", self._tx, printable(why, 300), fresh=True)
        confirmed = [node for node, answer in answers.items() if answer.code == LATE]
        if confirmed:
            answers |= self._roll_back(confirmed)
        return answers

    def _roll_back(self, nodes: list[str]) -> Answers:
        tx = new_change()
        answers = self._guards.rollback(nodes, tx, self._deadline_s, self._tx)
        for verb in ("apply", "confirm"):
            good = [node for node, answer in answers.items() if answer.done]
            answers |= self._guards.call(good, verb, tx, fresh=True)
        return answers

    def _outcome(self, node: str, answer: Answer | None) -> NodeOutcome:
        if answer is None:
            return NodeOutcome(node=node, state="untouched")
        if answer.done:
            return NodeOutcome(node=node, state="undone")
        if answer.code is None:
            wait = f"it undoes the change by itself within {self._deadline_s} s"
            if self._confirming:
                wait += ", unless it has confirmed it: its journal says so (wulf status)"
            return NodeOutcome(node=node, state="unknown", reason=f"{answer.reason}; {wait}")
        return NodeOutcome(
            node=node, state="stuck" if answer.code == STUCK else "unknown", reason=answer.reason
        )


def _all(answers: Answers, what: str) -> None:
    """Go on only when all nodes have done what they were asked."""
    failed = [answer for answer in answers.values() if not answer.done]
    if not failed:
        return
    reasons: dict[str, list[str]] = {}
    for answer in failed:
        said = "busy: " if answer.code == BUSY else ""
        reasons.setdefault(f"{said}{answer.reason}", []).append(answer.node)
    raise _Failed("; ".join(f"{fold(names)} {what}: {reason}" for reason, names in reasons.items()))

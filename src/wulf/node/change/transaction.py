"""What every change of nodes is made of: take them, make it, prove it; then confirm it or put it back."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence

from wulf.base.errors import WulfError
from wulf.base.nodeset import fold
from wulf.base.text import printable
from wulf.node.change.answers import left as left_alone
from wulf.node.change.answers import values as read_back
from wulf.node.change.guard import BUSY, LATE, Answers, Guards
from wulf.node.change.steps import Step

#: A node that cannot be reached is asked again so often [s].
RETRY_S = 5.0
#: Called before every step of a change, with what comes next.
Watch = Callable[[str], None]
#: Node → why a change cannot be kept there; empty when all is well.
Live = Callable[[], Mapping[str, str]]


class StepError(WulfError):
    """Nodes did not do what they were asked; names them and says why."""


class NotRestoredError(WulfError):
    """Nodes that are not as they were originally; names them and says why. Nothing may be measured there."""


def silent(_: str) -> None:
    """Watch nothing."""


def take(guards: Guards, nodes: Sequence[str], lease_s: int, watch: Watch = silent) -> None:
    """Put the guards on the nodes and lock them.

    Raises
    ------
    StepError
        Somebody else has a node, or it cannot be changed.
    """
    watch("install")
    require(guards.install(nodes), "cannot put the guard there")
    watch("lock")
    require(guards.lock(nodes, lease_s), "cannot be changed now")


class Transaction:
    """One change of some nodes, until it is confirmed or put back.

    Every step is done on all nodes at once; it raises StepError when one of them did not do it.
    """

    def __init__(self, guards: Guards, deadline_s: int, watch: Watch = silent) -> None:
        self._guards = guards
        self._watch = watch
        self.deadline_s = deadline_s
        self.name = _new_name()
        #: Nodes whose guard may have begun.
        self.begun: list[str] = []
        #: Node → knob → value that was read back.
        self.values: dict[str, dict[str, str]] = {}
        #: Remarks for the user.
        self.notes: list[str] = []
        #: Whether nodes may have confirmed it.
        self.confirming = False

    def begin(self, nodes: Sequence[str], begin: Callable[[str], Answers]) -> None:
        """Journal the state before; a node that has nothing to do is not asked again."""
        self._watch("begin")
        self.begun = list(nodes)
        answers = begin(self.name)
        self.begun = [
            node for node, answer in answers.items() if not answer.done or not answer.rows("nothing")
        ]
        self.notes += left_alone(answers)
        require(answers, "cannot be changed")

    def apply(self) -> None:
        """Make the change that was begun."""
        self._watch("apply")
        self._made(self._guards.call(self.begun, "apply", self.name))

    def replace(self, plans: Mapping[str, Sequence[Step]], old: Mapping[str, str]) -> None:
        """Begin and make it in one go, in the place of the open change `old` of each node that has one."""
        self._watch("swap")
        self.begun = list(plans)
        self._made(self._guards.swap(plans, old, self.name, self.deadline_s))

    def _made(self, answers: Answers) -> None:
        for node, answer in answers.items():
            self.values[node] = read_back(answer)
        self.notes += left_alone(answers)
        require(answers, "did not take it")

    def prove(self, live: Live) -> None:
        """Look whether it has the effect that it should have, and no other."""
        self._watch("check the effect")
        reasons: dict[str, list[str]] = {}
        for node, reason in live().items():
            reasons.setdefault(reason, []).append(node)
        if reasons:
            raise StepError("; ".join(f"{fold(names)}: {reason}" for reason, names in reasons.items()))

    def reach(self, deadline_s: int) -> None:
        """Reach the nodes over new connections, and give them so long from now."""
        self._watch("reach the nodes again")
        answers = self._guards.call(self.begun, "extend", self.name, str(deadline_s), fresh=True)
        require(answers, "cannot be reached over a new connection")

    def extend(self, deadline_s: int) -> None:
        """Give the nodes so long from now."""
        answers = self._guards.call(self.begun, "extend", self.name, str(deadline_s))
        require(answers, "has given up the change")

    def confirm(self) -> None:
        """Keep it."""
        self._watch("confirm")
        self.confirming = True
        require(self._guards.call(self.begun, "confirm", self.name, fresh=True), "did not confirm")

    def put_back(
        self, why: str, *, nodes: Sequence[str] | None = None, fresh: bool = True, patience_s: float = 0.0
    ) -> Answers:
        """Undo it; what a node has confirmed already is rolled back.

        Parameters
        ----------
        nodes
            Only these of its nodes.
        fresh
            Over new connections, as all that follows.
        patience_s
            How long a node that cannot be reached is asked again [s]: it undoes the change by itself.
        """
        wanted = self.begun if nodes is None else nodes
        words = ("undo", self.name, printable(why, 300))
        answers = self._guards.call(wanted, *words, fresh=fresh)
        end = time.monotonic() + patience_s
        while lost := [node for node, answer in answers.items() if answer.code is None]:
            if time.monotonic() >= end:
                break
            time.sleep(RETRY_S)
            answers |= self._guards.call(lost, *words, fresh=True)
        if fresh:
            self._guards.reconnect([node for node, answer in answers.items() if answer.done])
        confirmed = [node for node, answer in answers.items() if answer.code == LATE]
        return answers | self._roll_back(confirmed)

    def _roll_back(self, nodes: Sequence[str]) -> Answers:
        if not nodes:
            return {}
        name = _new_name()
        answers = self._guards.rollback(nodes, name, self.deadline_s, self.name)
        for verb in ("apply", "confirm"):
            good = [node for node, answer in answers.items() if answer.done]
            answers |= self._guards.call(good, verb, name, fresh=True)
        return answers


def require(answers: Answers, what: str) -> None:
    """Raise StepError unless all nodes have done what they were asked."""
    failed = [answer for answer in answers.values() if not answer.done]
    if not failed:
        return
    reasons: dict[str, list[str]] = {}
    for answer in failed:
        said = "busy: " if answer.code == BUSY else ""
        reasons.setdefault(f"{said}{answer.reason}", []).append(answer.node)
    raise StepError("; ".join(f"{fold(names)} {what}: {reason}" for reason, names in reasons.items()))


def _new_name() -> str:
    """Return a name for a change. In which order changes were made, the journals know."""
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(3)}"

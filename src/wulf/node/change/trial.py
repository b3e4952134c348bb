"""Changes that are tried one after the other on the same nodes and never kept."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

from wulf.base.nodeset import fold
from wulf.node.change.guard import ALTERNATION, Answers, Guards
from wulf.node.change.steps import Step
from wulf.node.change.transaction import (
    RETRY_S,
    Live,
    NotRestoredError,
    StepError,
    Transaction,
    require,
    take,
)

#: A change under trial is undone by the nodes themselves after so long without a word from here [s].
DEADLINE_S = 120
#: The same at most, where a measurement takes long [s].
LONGEST_DEADLINE_S = 3700
#: So long where the change can cut a node off; it is extended over a new connection at once [s].
RISKY_DEADLINE_S = 20
#: The nodes are ours for so long without a word [s], at least.
LEASE_S = 900


class Trial:
    """Some nodes that this process has taken; at most one change is open on them, and none is ever confirmed.

    Every method raises `wulf.node.change.transaction.StepError` when a node did not do its part, and
    NotRestoredError when one is not as it was originally.
    """

    def __init__(self, guards: Guards, nodes: Sequence[str]) -> None:
        self.guards = guards
        self._nodes = list(nodes)
        #: Changes that may be open; one, but where a node did not say what became of the one before.
        self._open: list[Transaction] = []
        #: Those of which some node did not answer until it must have undone it by itself.
        self._waited_for: list[Transaction] = []
        #: The open change is undone by the nodes so long after they were told that we are still here [s].
        self._deadline_s = DEADLINE_S
        self._renewed_s = time.monotonic()
        self._taken = False
        #: Whether the open change may cut a node off: so may the way back from it.
        self._risky = False

    def take(self) -> None:
        """Put the guards on the nodes and lock them."""
        take(self.guards, self._nodes, LEASE_S)
        self._taken = True
        self._renewed_s = time.monotonic()

    def renew(self, silence_s: float = 0.0) -> None:
        """Tell the nodes that we are still here, now and then, and that nothing may be said for so long.

        Does nothing where the nodes were not taken.
        """
        deadline_s = max(DEADLINE_S, min(math.ceil(silence_s), LONGEST_DEADLINE_S))
        now = time.monotonic()
        if not self._taken or (deadline_s <= self._deadline_s and now - self._renewed_s < DEADLINE_S / 4):
            return
        require(self.guards.lock(self._nodes, LEASE_S + deadline_s), "is not ours")
        for transaction in self._open:
            transaction.extend(deadline_s)
        self._deadline_s, self._renewed_s = deadline_s, now

    @property
    def held(self) -> bool:
        """Whether the nodes cannot have given up the open change since they were told that we are here."""
        return not self._open or time.monotonic() - self._renewed_s < self._deadline_s

    def set(self, plans: Mapping[str, Sequence[Step]], live: Live, *, risky: bool) -> None:
        """Make a change in the place of the one that is open, and prove its effect.

        Where a node does not take it, or it has no effect, all nodes have their original settings.

        Parameters
        ----------
        plans
            Node → steps; a node that is not in it has its original settings.
        risky
            Whether it may cut a node off.
        """
        if not plans:
            self.restore()
            return
        try:
            self._risky = self._risky or risky
            self._replace(plans, risky=self._risky)
            self._risky = risky
            self._open[-1].prove(live)
        except StepError:
            self.restore()
            raise
        except BaseException as error:
            # It must not be lost, whatever becomes of the nodes; `release` tries again.
            try:
                self.restore()
            except NotRestoredError as stuck:
                error.add_note(str(stuck))
            raise

    def _replace(self, plans: Mapping[str, Sequence[Step]], *, risky: bool) -> None:
        old = {node: transaction.name for transaction in self._open for node in transaction.begun}
        for transaction in self._open:
            idle = [node for node in transaction.begun if node not in plans]
            answers = transaction.put_back("the next trial", nodes=idle, fresh=risky)
            require(answers, "could not be put back")
        transaction = Transaction(self.guards, RISKY_DEADLINE_S if risky else self._deadline_s)
        # A node that does not say whether it took the new one may still have the old one.
        self._open = [*self._open, transaction]
        transaction.replace(plans, old)
        self._open = [transaction]
        if risky:
            transaction.reach(self._deadline_s)

    def make_part(self, numbers: Mapping[str, Sequence[int]]) -> None:
        """Have some steps of the open change made, and the others put back, so that it can be made whole again.

        Where a node does not, all nodes have their original settings.

        Parameters
        ----------
        numbers
            Node → numbers of its steps, from 1.
        """
        try:
            require(self.guards.part(numbers, self._open[-1].name), "did not take it")
        except StepError:
            self.restore()
            raise

    def alternate(self, parts: Mapping[str, tuple[Sequence[int], Sequence[int]]]) -> str:
        """Let a probe have either of two parts of the open change made; return where it asks for them.

        Parameters
        ----------
        parts
            Node → numbers of the steps of both parts.
        """
        name = self._open[-1].name
        answers = self.guards.alternate(parts, name)
        require(answers, "cannot alternate between two settings")
        place = f"{ALTERNATION}/{name}"
        if elsewhere := [node for node, answer in answers.items() if answer.rows("place") != [[place]]]:
            raise StepError(f"{fold(elsewhere)}: its guard does not say that it listens at {place}")
        return place

    def restore(self) -> None:
        """Put the original settings back; a node that was cut off does it by itself, and is waited for.

        Raises
        ------
        NotRestoredError
            A node could not. The next call tries it again.
        """
        stuck: Answers = {}
        for transaction in self._open:
            # Once it has been waited for so long, it is not there to be waited for again.
            patience_s = 0.0 if transaction in self._waited_for else self._deadline_s + RETRY_S
            answers = transaction.put_back("the trial is over", fresh=self._risky, patience_s=patience_s)
            transaction.begun = [node for node in transaction.begun if not answers[node].done]
            stuck |= {node: answers[node] for node in transaction.begun}
        self._open = [transaction for transaction in self._open if transaction.begun]
        self._waited_for = list(self._open)
        self._risky = self._risky and bool(self._open)
        try:
            require(stuck, "could not be put back")
        except StepError as error:
            raise NotRestoredError(str(error)) from None

    def release(self) -> None:
        """Put the original settings back and let the nodes go."""
        try:
            self.restore()
        finally:
            self._taken = False
            self.guards.unlock(self._nodes)

"""One cycle: a change that ends in one of the ways in which changes end, and all is as before."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

from bench.faults.node import wait_for
from bench.soak.node import LEASE_S, OWNER, Node, WrongError
from bench.soak.settings import draw
from wulf.node.change.steps import Step

#: Enough for every change; one that nobody confirms is undone so soon [s].
_DEADLINE_S = 300
_SHORT_S = 4
#: A watcher looks every few seconds; one that was killed is first started again [s].
_TIMER_S = 60.0
#: A guard at work is killed after up to so long [s].
_KILL_WITHIN_S = 1.2
#: A share of the cycles for each way; the timer's take seconds of waiting.
_SHARES = {"undone": 25, "trials": 40, "kept": 22, "part": 4, "killed": 7, "timer": 2}
#: Trials of a search.
_TRIALS = (8, 60)


class Course:
    """The cycles on a node; counts what they did."""

    def __init__(self, node: Node, seed: int) -> None:
        self._node = node
        self._seed = seed
        self._rng = random.Random(seed)
        self._name = ""
        self._number = 0
        #: What was done: changes, undos, settings changed, settings put back, ways, kinds.
        self.done: Counter[str] = Counter()

    @property
    def operations(self) -> int:
        """Changes and undos."""
        return self.done["changes"] + self.done["undos"]

    def cycle(self, number: int) -> None:
        """Run a cycle; the same number makes the same choices.

        Raises
        ------
        WrongError
            The guard did not do what it has to.
        """
        self._rng = random.Random(f"{self._seed}:{number}")
        self._name, self._number = f"S{number}", 0
        way = self._rng.choices(list(_SHARES), list(_SHARES.values()))[0]
        ways: dict[str, Callable[[], None]] = {
            "undone": self._undone,
            "trials": self._trials,
            "kept": self._kept,
            "part": self._part,
            "killed": self._killed,
            "timer": self._timer,
        }
        if not self._node.site.owner().startswith(OWNER):
            self._node.guard("lock", OWNER, str(LEASE_S))
        try:
            ways[way]()
        except WrongError as error:
            raise WrongError(f"cycle {number} ({way}): {error}") from None
        self.done[f"way {way}"] += 1

    # --- the ways ------------------------------------------------------------------------------------------

    def _undone(self) -> None:
        """A change is made, held for a moment longer, and taken back."""
        change, steps = self._begin()
        self._node.guard("apply", change)
        self._changed(steps)
        if self._rng.random() < 0.5:
            self._node.guard("extend", change, str(_DEADLINE_S))
        self._undo(change, steps)

    def _trials(self) -> None:
        """One trial after another, each of which takes the one before back, as a search does it."""
        last: tuple[str, Sequence[Step]] = ("-", ())
        for _ in range(self._rng.randint(*_TRIALS)):
            change, steps = self._new(), draw(self._rng)
            self._node.guard("swap", last[0], change, OWNER, str(_DEADLINE_S), stdin=_plan(steps))
            if last[1]:
                self._put_back(last[1])
            self._changed(steps)
            last = (change, steps)
        self._undo(*last)

    def _kept(self) -> None:
        """One or several changes are kept, and then rolled back, to the first of them or to the original state."""
        kept: list[tuple[str, Sequence[Step]]] = []
        for _ in range(self._rng.randint(1, 3)):
            change, steps = self._begin()
            self._node.guard("apply", change)
            self._node.guard("confirm", change)
            self._changed(steps)
            kept.append((change, steps))
        self._roll_back(self._rng.choice(("original", kept[0][0])))
        # One operation, however many changes it takes back.
        self._put_back([step for _, steps in kept for step in steps])

    def _part(self) -> None:
        """Of a change only some steps are left made, then others, then none."""
        change, steps = self._begin()
        self._node.guard("apply", change)
        self._changed(steps)
        for _ in range(2):
            some = [str(number + 1) for number in range(len(steps)) if self._rng.random() < 0.5]
            self._node.guard("part", change, ",".join(some) or "0")
        self._undo(change, steps)

    def _killed(self) -> None:
        """The guard is killed somewhere in a verb; who comes next, or the watcher, puts all back."""
        victim = self._rng.choice(("begin", "apply", "apply", "undo", "confirm"))
        change, steps = self._new(), draw(self._rng)
        for verb in ("begin", "apply", victim):
            rest = (OWNER, str(_DEADLINE_S)) if verb == "begin" else ()
            words, plan = (verb, change, *rest), _plan(steps) if verb == "begin" else ""
            if verb == victim:
                self._node.killed(self._rng.uniform(0.02, _KILL_WITHIN_S), *words, stdin=plan)
                break
            self._node.guard(*words, stdin=plan)
        state = self._node.state(change)
        self.done[f"killed in {victim}"] += 1
        if state in ("applying", "applied", "undoing", "undone", "confirmed"):
            self._changed(steps)
            self._put_back(steps)
        self._node.guard("recover")
        state = self._node.state(change)
        if state == "confirmed":
            self._roll_back(change)
        elif state not in ("", "undone"):
            self._node.guard("undo", change)

    def _timer(self) -> None:
        """Nobody confirms in time: the watcher undoes it, also one that was killed meanwhile."""
        change, steps = self._begin()
        self._node.guard("apply", change)
        self._changed(steps)
        self._node.guard("extend", change, str(_SHORT_S))
        if self._rng.random() < 0.3:
            self._node.kill_watcher()
        self._node.wait_for(change, "undone", _TIMER_S)
        # Who does not confirm in time loses the node, a moment after the change is undone.
        if not wait_for(lambda: not self._node.site.owner(), _TIMER_S):
            raise WrongError(
                f"{self._node.site.owner()} still has the node after {change} was undone by the timer"
            )
        self._put_back(steps)

    # --- their parts ---------------------------------------------------------------------------------------

    def _new(self) -> str:
        self._number += 1
        return f"{self._name}-{self._number}"

    def _begin(self) -> tuple[str, list[Step]]:
        change, steps = self._new(), draw(self._rng)
        self._node.guard("begin", change, OWNER, str(_DEADLINE_S), stdin=_plan(steps))
        return change, steps

    def _undo(self, change: str, steps: Sequence[Step]) -> None:
        self._node.guard("undo", change)
        if self._node.state(change) != "undone":
            raise WrongError(f"{change} is {self._node.state(change)} after it was undone")
        self._put_back(steps)

    def _roll_back(self, target: str) -> None:
        change = self._new()
        if self._node.guard("rollback", change, OWNER, str(_DEADLINE_S), target) == "nothing\n":
            raise WrongError(f"there is nothing to roll back to {target}")
        self._node.guard("apply", change)
        self._node.guard("confirm", change)

    def _changed(self, steps: Sequence[Step]) -> None:
        self.done["changes"] += 1
        self.done["settings changed"] += len(steps)
        self.done.update(f"kind {step.kind}" for step in steps)

    def _put_back(self, steps: Sequence[Step]) -> None:
        self.done["undos"] += 1
        self.done["settings put back"] += len(steps)


def _plan(steps: Sequence[Step]) -> str:
    return "".join(step.line() + "\n" for step in steps)

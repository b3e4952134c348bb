"""Files that several nodes have in common: one node changes such a file for all of them.

An undo puts back the whole file. If two nodes changed the same one, the undo of the first would take away what the
second has confirmed. So the guards are asked where the files of a plan are before anything is begun.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import msgspec

from wulf.base.nodeset import fold
from wulf.base.text import printable
from wulf.node.change.guard import DONE, Answer, Answers, Guards
from wulf.node.change.steps import Step

#: Kinds of steps that write files, and those of them that must last over a boot.
_FILES, _LASTING = ("mpi_parameter", "stored"), ("stored",)
#: How long a node may take to see what another one has written [s]: network file systems keep what they have read.
SEEN_S, _AGAIN_S = 30.0, 1.0


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a file of a node's plan is."""

    node: str
    step: Step
    path: str
    type: str
    #: The same for all nodes that see the same file.
    key: str
    #: ``mine`` when a confirmed change of this node is in it, or the name of the node that has changed it, or ``-``.
    holder: str
    #: Why what is written there does not last, or ``-``.
    forgets: str
    value: str


class Sharing:
    """Who changes which file.

    Parameters
    ----------
    plans
        Node → steps, as if every node had its own files.
    """

    def __init__(self, guards: Guards, plans: Mapping[str, Sequence[Step]]) -> None:
        self._guards = guards
        self._plans = {node: list(steps) for node, steps in plans.items()}
        #: (node, step) → the place that another node changes for it.
        self._left: dict[tuple[str, Step], _Place] = {}
        self._patience_s = SEEN_S
        #: Remarks for the user.
        self.notes: list[str] = []

    def begin(self, tx: str, deadline_s: int) -> Answers:
        """Begin the change on all nodes that have something to do; the answers of the others say ``nothing``."""
        self._patience_s = min(SEEN_S, deadline_s / 2)
        asked, answers = self._ask()
        failed = {node: answer for node, answer in answers.items() if not answer.done}
        failed |= self._divide(asked)
        if failed:
            return failed | {node: _nothing(node) for node in self._plans if node not in failed}
        plans = {
            node: [step for step in steps if (node, step) not in self._left]
            for node, steps in self._plans.items()
        }
        begun = self._guards.begin({node: steps for node, steps in plans.items() if steps}, tx, deadline_s)
        return {node: begun.get(node) or _nothing(node) for node in self._plans}

    def unseen(self) -> dict[str, str]:
        """Return the nodes that do not see what another one has written for them, and what they see."""
        end = time.monotonic() + self._patience_s
        while True:
            lacking = self._unseen()
            if not lacking or time.monotonic() > end:
                return lacking
            time.sleep(_AGAIN_S)

    def _unseen(self) -> dict[str, str]:
        if not self._left:
            return {}
        places, _ = self._ask()
        now = {(place.node, place.step): place.value for place in places}
        return {
            node: f"it does not see what {leader.node} has written to {leader.path}"
            for (node, step), leader in self._left.items()
            if now.get((node, step)) != now.get((leader.node, leader.step))
        }

    def _ask(self) -> tuple[list[_Place], Answers]:
        """Let the guards say where the files of the plans are."""
        groups: dict[tuple[Step, ...], list[str]] = {}
        for node, steps in self._plans.items():
            mine = tuple(step for step in steps if step.kind in _FILES)
            if mine:
                groups.setdefault(mine, []).append(node)
        places: list[_Place] = []
        answers: Answers = {}
        for asked, nodes in groups.items():
            text = "".join(step.line() + "\n" for step in asked).encode()
            said = self._guards.call(nodes, "where", stdin=text)
            for node, answer in said.items():
                found = _places(node, asked, answer)
                places += found
                if answer.done and [place.step for place in found] != list(asked):
                    said[node] = _refused(node, "its guard does not say where its files are")
            answers |= said
        return places, answers

    def _divide(self, places: Sequence[_Place]) -> Answers:
        """Decide who changes which file; return the nodes that cannot."""
        refused: Answers = {}
        groups: dict[tuple[str, str], list[_Place]] = {}
        for place in places:
            if place.step.kind in _LASTING:
                if place.forgets != "-" and place.step.value != "absent":
                    refused[place.node] = _refused(place.node, _image(place))
            else:
                groups.setdefault((place.type, place.key), []).append(place)
        for together in groups.values():
            refused |= self._lead(together)
        self.notes += _remarks(places)
        return refused

    def _lead(self, together: Sequence[_Place]) -> Answers:
        """Choose who changes the file that these places are: who has done it before, or the first one."""
        nodes = list(dict.fromkeys(place.node for place in together))
        holders = [place for place in together if place.holder == "mine"]
        others = {place.holder for place in together if place.holder not in ("mine", "-")}
        first = (holders or list(together))[0]
        if others and not holders:
            why = (
                f"{first.path} is on {first.type}, and {', '.join(sorted(others))} has changed it: "
                "change it there (--nodes), or roll it back there first"
            )
            return {node: _refused(node, why) for node in nodes}
        own = {place.step: place for place in together if place.node == first.node}
        left = [place for place in together if place.node != first.node]
        if any(place.step not in own for place in left):
            why = f"{fold(nodes)} have one {first.path}, so they can only be given the same"
            return {node: _refused(node, why) for node in nodes}
        self._left |= {(place.node, place.step): own[place.step] for place in left}
        if left:
            self.notes.append(f"{fold(nodes)} have one {first.path}: {first.node} has changed it for all")
        return {}


def _places(node: str, steps: Sequence[Step], answer: Answer) -> list[_Place]:
    found = []
    numbered = {str(number): step for number, step in enumerate(steps, 1)}
    for row in answer.rows("file"):
        if len(row) == 7 and row[0] in numbered:
            path, kind, key, holder, forgets, value = (printable(word, 300) for word in row[1:])
            found.append(
                _Place(
                    node=node,
                    step=numbered[row[0]],
                    path=path,
                    type=kind,
                    key=key,
                    holder=holder,
                    forgets=forgets,
                    value=value,
                )
            )
    return found


def _image(place: _Place) -> str:
    return (
        f"{place.path} is {place.forgets}: put the files into the image that the nodes boot "
        "(wulf settings persist --dry-run and wulf settings export print them)"
    )


def _remarks(places: Sequence[_Place]) -> list[str]:
    """Say where a parameter does not last, or may be that of nodes that were not named."""
    found: dict[tuple[str, str], list[str]] = {}
    for place in places:
        if place.step.kind not in _LASTING and place.forgets != "-":
            found.setdefault((place.path, place.forgets), []).append(place.node)
    return [f"{path} on {fold(sorted(set(nodes)))} is {why}" for (path, why), nodes in found.items()]


def _refused(node: str, why: str) -> Answer:
    return Answer(node=node, code=None, lines=[], reason=why)


def _nothing(node: str) -> Answer:
    return Answer(node=node, code=DONE, lines=[["nothing"]], reason="")

"""Whether the measured interface of every node still carries data to a neighbour after a change, as before it.

A node that can be reached over a new connection proves only that the network of that connection is good; it may be
another one than the cluster's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from wulf.base.contracts import NodeResult
from wulf.base.nodeset import fold
from wulf.base.text import last_line, printable
from wulf.node.change.live import EffectProbe, Reasons

#: What passes: nothing, small packets, whole frames, too.
NOTHING, SMALL, WHOLE = 0, 1, 2
_NUMBER = re.compile(r"[0-9]{1,6}")


class Passing(msgspec.Struct, frozen=True, kw_only=True):
    """What passes between a node and a neighbour."""

    level: int
    neighbour: str = ""
    #: Largest packet that was tried [B].
    size_bytes: int = 0
    #: Why it is not known.
    unknown: str = ""


class Carrying:
    """Looks before a change and after it.

    Parameters
    ----------
    whole
        Whether whole frames must pass as before. Not for the way back to an earlier state, which may have had others.
    """

    def __init__(self, effect_probe: EffectProbe, *, whole: bool = True) -> None:
        self._effect_probe = effect_probe
        self._whole = whole
        self._before: dict[str, Passing] = {}
        self._after: dict[str, Passing] = {}

    def look(self) -> Carrying:
        """See what passes before the change."""
        if self._effect_probe.has_neighbours:
            self._before = passing(self._effect_probe.ask("passes", str(NOTHING)))
        return self

    def reasons(self) -> Reasons:
        """See what passes now; node → what passed before and does not any more."""
        self._after = {}
        for level in (SMALL, WHOLE):
            nodes = [node for node, seen in self._before.items() if self._wanted(seen) == level]
            if nodes:
                self._after |= passing(self._effect_probe.ask("passes", str(level), nodes))
        return {
            node: self._lost(self._before[node], now)
            for node, now in self._after.items()
            if now.level < self._wanted(self._before[node])
        }

    def notes(self) -> list[str]:
        """Return what could not be proven, nodes of which the same is true together."""
        said: dict[str, list[str]] = {}
        for node, seen in self._before.items():
            note = self._note(seen, self._after.get(node))
            if note:
                said.setdefault(note, []).append(node)
        return [f"{fold(nodes)}: {note}" for note, nodes in said.items()]

    def _wanted(self, seen: Passing) -> int:
        return seen.level if self._whole else min(seen.level, SMALL)

    def _lost(self, before: Passing, now: Passing) -> str:
        was = f"carried packets of {before.size_bytes} B to {before.neighbour} before the change"
        if now.unknown:
            return f"{self._name} {was}; now this cannot be checked: {now.unknown}"
        if now.level == NOTHING:
            return f"{self._name} {was} and carries nothing now"
        return f"{self._name} {was} and carries only small ones now, none of {now.size_bytes} B"

    def _note(self, before: Passing, now: Passing | None) -> str:
        if before.unknown:
            return f"whether {self._name} still carries data to a neighbour is not known: {before.unknown}"
        if before.level == NOTHING:
            return f"{self._name} carried nothing to a neighbour before the change either, so nothing is proven by that"
        if now is not None and now.level == SMALL and before.level == WHOLE:
            return f"{self._name} carries only small packets now, none of {now.size_bytes} B"
        return ""

    @property
    def _name(self) -> str:
        return str(self._effect_probe.interface or "") or "the cluster's network"


def passing(answers: Mapping[str, NodeResult]) -> dict[str, Passing]:
    """Return what the nodes say of what passes; what cannot be read is not known."""
    return {node: _passing(answer) for node, answer in answers.items()}


def _passing(answer: NodeResult) -> Passing:
    if answer.status != "ok":
        why = last_line(answer.stderr) if answer.status == "exit" else ""
        return Passing(level=NOTHING, unknown=printable(why or answer.reason or answer.status, 300))
    lines = answer.stdout.decode(errors="replace").strip().split("\n")
    return _read(lines[-1].split("\t"))


def _read(row: Sequence[str]) -> Passing:
    if row[0] == "unknown" and len(row) > 1:
        return Passing(level=NOTHING, unknown=printable(row[1], 300))
    if row[0] != "passes" or len(row) < 4 or row[1] not in ("0", "1", "2") or not _NUMBER.fullmatch(row[3]):
        return Passing(level=NOTHING, unknown="its answer cannot be read")
    return Passing(level=int(row[1]), neighbour=printable(row[2], 80), size_bytes=int(row[3]))

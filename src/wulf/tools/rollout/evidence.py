"""What is known of the nodes of one step: what a change does to each of them, and whether that is harm.  Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from wulf.base.records import Estimate, Pair
from wulf.base.text import count, printable
from wulf.base.units import format_change
from wulf.node.trials.experiment.power import estimate
from wulf.stats.core.evalues import Positive, more, not_twice, rare
from wulf.stats.core.paired import paired_shift
from wulf.tools.rollout.record import RolledFigure, RolledNode, RolloutPlan

#: A node of which it could not be told is measured once more in a later step, with another partner.
TRIES = 2
#: Whether the first and the second node of every pair have the change.
State = tuple[bool, bool]
STATES: tuple[State, ...] = ((False, False), (True, False), (False, True), (True, True))
#: Metric → time, or why there is none.
Reading = Mapping[str, float] | str
#: What was measured under each state, by pair; a pair that is not there was not measured.
Round = Mapping[State, Mapping[Pair, Reading]]
#: ``shared``: with the change on both nodes of a pair something is worse, and which of the two it is cannot be told.
Verdict = Literal["kept", "harmed", "shared", "open"]


class Match(NamedTuple):
    """Two nodes between which is measured."""

    first: str
    second: str
    #: Whether the second is of the step, too; else it stays as it is.
    both: bool

    @property
    def pair(self) -> Pair:
        """The two."""
        return self.first, self.second


def changing(matches: Sequence[Match]) -> list[str]:
    """Return the nodes that are given the change."""
    return [node for match in matches for node in match.pair[: 1 + match.both]]


class Loss(NamedTuple):
    """Datagrams lost between two nodes with the change and without it, of as many sent each."""

    with_it: int
    without: int
    sent: int


class _Effect:
    """What the change of one node does to one figure, while its partner has it or has it not."""

    def __init__(self, margin: float) -> None:
        self._harmless = Positive(-margin)
        self._harmful = Positive()
        self.differences: list[float] = []

    def take(self, difference: float) -> None:
        """Take a difference of the logarithms of two times, with it − without."""
        self._harmless.take(-difference)
        self._harmful.take(difference)
        self.differences.append(difference)

    @property
    def harmless(self) -> float:
        return self._harmless.e_value

    @property
    def harmful(self) -> float:
        return self._harmful.e_value


class _Losses:
    """Losses with the change and without it."""

    def __init__(self, plan: RolloutPlan) -> None:
        self._plan = plan
        self.seen = Loss(0, 0, 0)
        #: Whether it is shown that the change loses nothing that matters, and that more is lost with it.
        self.spared = self.more = False

    def take(self, loss: Loss) -> None:
        """Take one more look."""
        self.seen = Loss(*(a + b for a, b in zip(self.seen, loss, strict=True)))
        lost, before, sent = self.seen
        spared = (rare(lost, sent, self._plan.loss) + not_twice(lost, before)) / 2
        self.spared = sent > 0 and spared >= TRIES / self._plan.missed
        self.more = more(lost, before) >= TRIES / self._plan.false_alarm


class _Node:
    """Evidence on one node.

    Its effect on a figure is asked for twice: while its partner has the change, too, and while that has not. Who harms
    is so told from who is measured with him, and harm that takes both of them is seen.
    """

    def __init__(self, plan: RolloutPlan) -> None:
        self._plan = plan
        #: Metric → effect without and with the partner's change.
        self._effects: dict[str, tuple[_Effect, _Effect]] = {}
        #: Losses while its partner has the change, too, or stays as it is for good; and with its own change alone.
        self.beside, self.alone = _Losses(plan), _Losses(plan)
        #: Whether its partner stays as it is.
        self._is_single = False
        #: Why it gave no figures with the change, though it did without.
        self.failures: list[str] = []
        #: Rounds that gave a figure.
        self.rounds = 0

    def be_single(self) -> None:
        """Have a partner that stays as it is from now on: what was seen while that changed is no evidence any more."""
        if not self._is_single:
            self._is_single = True
            self._effects = {name: (off, self._effect()) for name, (off, _) in self._effects.items()}

    def _effect(self) -> _Effect:
        return _Effect(self._plan.margin)

    def take(self, off: Reading | None, on: Reading | None, *, beside: bool) -> None:
        """Take what was measured without and with its change, the partner's being as `beside` says."""
        if off is None or on is None or isinstance(off, str):
            return
        if isinstance(on, str):
            self.failures.append(on)
        self.rounds += 1
        for metric, before in off.items():
            after = math.inf if isinstance(on, str) else on.get(metric, math.inf)
            effects = self._effects.setdefault(metric, (self._effect(), self._effect()))
            effects[beside].take(math.log(after / before))

    @property
    def of_times(self) -> Verdict:
        """What the times say."""
        every = [effect for effects in self._effects.values() for effect in effects]
        if every and all(effect.harmless >= TRIES / self._plan.missed for effect in every):
            return "kept"
        bar = TRIES * len(every) / self._plan.false_alarm
        if any(effects[0].harmful >= bar for effects in self._effects.values()):
            return "harmed"
        if any(effects[1].harmful >= bar for effects in self._effects.values()):
            return "harmed" if self._is_single else "shared"
        return "open"

    @property
    def of_losses(self) -> Verdict:
        """What the losses say."""
        if self._is_single:
            # What it has lost beside a partner that is out now may have been the partner's.
            own = self.alone
            return "harmed" if own.more else "kept" if own.spared else "open"
        if self.beside.more:
            return "harmed" if self.alone.more else "shared"
        return "kept" if self.beside.spared else "open"

    @property
    def verdict(self) -> Verdict:
        """What all say together: the worst."""
        said = {self.of_times, self.of_losses}
        order: tuple[Verdict, ...] = ("harmed", "shared", "open", "kept")
        return next(one for one in order if one in said)

    @property
    def figures(self) -> list[RolledFigure]:
        """What the change did to each figure."""
        return [
            RolledFigure(
                metric=metric,
                ratio=figure,
                harmless=min(one.harmless for one in effects),
                harmful=max(one.harmful for one in effects),
            )
            for metric, effects in self._effects.items()
            if (figure := _ratio(_together(effects))) is not None
        ]

    @property
    def losses(self) -> Loss | None:
        """Lost with it, lost without, sent each; None where nothing was sent."""
        seen = (self.alone if self._is_single or self.alone.more else self.beside).seen
        return seen if seen.sent else None


class StepTest:
    """The nodes of a step while they are measured.

    Parameters
    ----------
    matches
        Who is measured with whom; nobody is in two of them.
    """

    def __init__(self, plan: RolloutPlan, matches: Sequence[Match]) -> None:
        self._plan = plan
        self._matches = list(matches)
        self._nodes = {node: _Node(plan) for node in changing(matches)}
        self._refused: dict[str, str] = {}
        #: Rounds so far.
        self.rounds = 0

    @property
    def nodes(self) -> list[str]:
        """Nodes that are given the change."""
        return list(self._nodes)

    @property
    def matches(self) -> list[Match]:
        """Who is to be measured next: pairs with a node of which it is not told yet; who harms has its own settings."""
        return list(self._active(self._undecided))

    @property
    def losing(self) -> list[Match]:
        """Pairs whose losses have to be looked at, as nothing else speaks against a node of them."""
        return list(self._active(self._named(times="kept", losses="open")))

    @property
    def sharing(self) -> list[Match]:
        """Nodes that have to be looked at alone, to tell whose losses those of a pair are."""
        shared = self._named(times="kept", losses="shared")
        return [
            Match(node, other, both=False)
            for match in self._active(shared)
            if match.both
            for node, other in (match.pair, match.pair[::-1])
            if not (self._nodes[node].alone.more or self._nodes[node].alone.spared)
        ]

    def refuse(self, reasons: Mapping[str, str]) -> None:
        """Take nodes out that did not take the change."""
        self._refused |= reasons

    def take(self, found: Round) -> None:
        """Take what a round of all states has given."""
        self.rounds += 1
        for match in self.matches:
            pair = match.pair
            if not match.both:
                self._nodes[match.first].be_single()
            for index, node in enumerate(pair[: 1 + match.both]):
                for beside in (False, True):
                    off, on = (
                        (changed, beside) if index == 0 else (beside, changed) for changed in (False, True)
                    )
                    self._nodes[node].take(
                        found.get(off, {}).get(pair), found.get(on, {}).get(pair), beside=beside
                    )

    def lose(self, matches: Sequence[Match], found: Mapping[Pair, Loss | str]) -> None:
        """Take the losses of some pairs; of one that gave none nothing is known."""
        for match in matches:
            loss = found.get(match.pair)
            if not isinstance(loss, Loss):
                continue
            if match.both:
                for node in match.pair:
                    self._nodes[node].beside.take(loss)
            else:
                self._nodes[match.first].alone.take(loss)
        for match in self._active(self._nodes):
            if not match.both:
                self._nodes[match.first].be_single()

    def _active(self, wanted: Collection[str]) -> Iterator[Match]:
        for match in self._matches:
            pair = match.pair if match.both else match.pair[:1]
            if set(pair).isdisjoint(wanted):
                continue
            out = [node for node in pair if node in self._refused or self._nodes[node].verdict == "harmed"]
            if not out:
                yield match
            elif match.both and len(out) == 1:
                stays = match.second if out[0] == match.first else match.first
                if stays in wanted:
                    yield Match(stays, out[0], both=False)

    @property
    def _undecided(self) -> set[str]:
        return self._named(times="open", losses="open") | self._named(times="open", losses="kept")

    def _named(self, times: Verdict, losses: Verdict) -> set[str]:
        return {
            name
            for name, node in self._nodes.items()
            if name not in self._refused and (node.of_times, node.of_losses) == (times, losses)
        }

    @property
    def passed(self) -> list[str]:
        """Nodes of which it is shown that the change does no harm there."""
        return [name for name in self._nodes if self._state(name) == "kept"]

    def outcomes(self, step: int, hardware: Mapping[str, str]) -> list[RolledNode]:
        """Return what is known of every node."""
        return [
            RolledNode(
                node=name,
                state=self._state(name),
                reason=self._reason(name),
                hardware=hardware[name],
                step=step,
                figures=node.figures,
                lost=node.losses,
            )
            for name, node in self._nodes.items()
        ]

    def _state(self, name: str) -> Literal["kept", "harmed", "cannot tell", "refused"]:
        if name in self._refused:
            return "refused"
        verdict = self._nodes[name].verdict
        return verdict if verdict in ("kept", "harmed") else "cannot tell"

    def _reason(self, name: str) -> str:
        state = self._state(name)
        if state == "refused":
            return self._refused[name]
        node = self._nodes[name]
        if state == "kept":
            return ""
        if node.of_losses in ("harmed", "shared"):
            lost = node.losses or Loss(0, 0, 0)
            said = f"{lost.with_it} of {count(lost.sent, 'datagram')} lost with it, {lost.without} without"
        elif node.failures and node.of_times != "kept":
            said = f"nothing can be measured with it: {printable(node.failures[-1], 300)}"
        elif node.of_times in ("harmed", "shared"):
            worst = max(node.figures, key=lambda figure: figure.harmful or 0.0, default=None)
            said = (
                f"{worst.metric} {format_change(worst.ratio)}" if worst is not None else "no figure with it"
            )
        elif not node.rounds:
            return "nothing could be measured there"
        elif node.of_times == "kept":
            return f"it is not shown that it loses less than {self._plan.loss:.1%} of datagrams"
        else:
            after = count(self.rounds, "round")
            return f"it is not shown that it costs less than {self._plan.margin:.0%}, after {after}"
        return said if state == "harmed" else f"{said}; which node of the pair it is cannot be told"


def together(nodes: Sequence[RolledNode]) -> list[RolledFigure]:
    """Return what a change did to each figure over several nodes: each node says one value."""
    found: dict[str, list[float]] = {}
    for node in nodes:
        for figure in node.figures:
            found.setdefault(figure.metric, []).append(math.log(figure.ratio.value))
    return [
        RolledFigure(metric=metric, ratio=ratio)
        for metric, logs in found.items()
        if (ratio := _ratio(logs)) is not None
    ]


def _together(effects: tuple[_Effect, _Effect]) -> list[float]:
    return [one for effect in effects for one in effect.differences]


def _ratio(logs: Sequence[float]) -> Estimate | None:
    finite = [value for value in logs if math.isfinite(value)]
    return estimate(paired_shift(finite).ratio) if finite else None

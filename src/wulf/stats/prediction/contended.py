"""What event by event comes of a program, beside what it takes with all messages in their order.  Pure.

Engine B is slower than engine A, so it replays fewer samples. What it says is put on top of A's samples as a ratio:
B's time ÷ A's, of the same network and sample. Of samples that B did not replay the ratio is that of another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from wulf.base.records import Contended, Contention, Estimate, OtherProgram, Predicted
from wulf.base.text import count
from wulf.base.units import format_change, format_spread
from wulf.stats.prediction import judge, uncertainty
from wulf.stats.prediction.replayed import Replayed

#: With fewer samples nothing is said of how sure it is; more say hardly more.
FEWEST, MOST = 8, 40
#: Operations × networks that are replayed without being asked for, and those that are aimed at.
AFFORDABLE, USUAL = 4e8, 2.5e7
#: Contention within this part of the run time does not matter.
MARGIN = 0.02


def samples_for(operations: int, columns: int, samples: int) -> int:
    """Return how many samples are replayed event by event.

    Parameters
    ----------
    operations
        Of the trace.
    columns
        Networks of each sample.
    samples
        Those that engine A has.
    """
    found = int(USUAL / (max(operations, 1) * columns)) - 1
    return min(max(found, FEWEST), MOST, samples)


def is_affordable(operations: int, columns: int) -> bool:
    """Whether a replay event by event takes less than a minute or two, so that nobody needs to ask for it."""
    return operations * columns * (FEWEST + 1) <= AFFORDABLE


@dataclass(frozen=True)
class Seen:
    """What replays of the likely networks and of the first samples came to."""

    #: [row, network, program]: the likely networks, then each sample's [s].
    times: NDArray[np.float64]
    #: Of the likely networks.
    moved: list[int]
    as_recorded: list[bool]
    wild: int
    chosen: int
    #: Of the likely networks: messages that came again after a timeout, and the program's time [s] if none did; empty
    #: where no buffer is ever full.
    timeouts: list[int] = field(default_factory=list)
    lossless: list[float] = field(default_factory=list)


def seen(found: Replayed, columns: int, *, has_lossless: bool = False) -> Seen:
    """Return what a replay of rows of networks has printed.

    Parameters
    ----------
    has_lossless
        Whether the last row is of the likely networks with buffers that keep whatever comes.
    """
    times = np.array([one.times_ns for one in found.contended]) * 1e-9
    times = times.reshape(-1, columns, len(found.programs))
    timeouts = [one.timeouts for one in found.contended[:columns]] if has_lossless else []
    lossless = times[-1, :, 0].tolist() if has_lossless else []
    return Seen(
        times=times[:-1] if has_lossless else times,
        timeouts=timeouts,
        lossless=lossless,
        moved=[one.moved for one in found.contended[:columns]],
        as_recorded=[one.as_recorded for one in found.contended[:columns]],
        wild=found.programs[0].wild,
        chosen=found.programs[0].chosen,
    )


def figures(static: judge.Figures, times: NDArray[np.float64]) -> judge.Figures:
    """Return figures of all samples from what was replayed event by event.

    Parameters
    ----------
    times
        [row, network], as `Seen` has them, of the first rows [s].
    """
    rows = [0, *(1 + sample % (len(times) - 1) for sample in range(len(static.times) - 1))]
    # A network on which messages in their order take no time has nothing to scale: what was replayed stands for itself.
    of_row = static.times[rows]
    scale = np.divide(static.times, of_row, out=np.ones_like(of_row), where=of_row > 0)
    return replace(static, times=times[rows] * scale)


@dataclass(frozen=True)
class Compared:
    """A program event by event: alone, and with others beside it where there are any."""

    static: judge.Figures
    alone: Seen
    beside: Seen | None
    #: Names of the networks, the one as it is first; of the other programs.
    names: Sequence[str]
    others: Sequence[str]
    #: Networks with buffers that may be full, by their place in `names`.
    buffered: Sequence[int] = ()

    @property
    def figures(self) -> judge.Figures:
        """What the run times are: the first column is the network as it is, with the program alone."""
        alone = figures(self.static, self.alone.times[:, :, 0])
        if self.beside is None:
            return alone
        shared = figures(self.static, self.beside.times[:, :, 0])
        return replace(
            alone,
            times=np.column_stack([alone.times[:, :1], shared.times]),
            least=np.column_stack([alone.least[:, :1], shared.least]) if alone.least.size else alone.least,
            paths=[alone.paths[0], *alone.paths],
        )

    def column(self, network: int) -> int:
        """Return where in the figures a network is, by its place in `names`."""
        return network if self.beside is None else network + 1


_METHOD = "program's own time × the change, event by event; its ratio to static from {} samples"


def contended(of: Compared, network: int) -> Contended:
    """Return what one network is to the program, by its place in the names."""
    found, column = of.figures, of.column(network)
    factors = found.changes(column)
    likely = found.likely(column)
    samples = len(of.alone.times) - 1
    method = _METHOD.format(samples)
    change = uncertainty.estimate(likely, factors, "ratio", method)
    shown = of.beside or of.alone
    return Contended(
        name=of.names[network],
        time=uncertainty.estimate(found.anchor_s * likely, found.anchor_s * factors, "s", method),
        change=change,
        verdict=judge.verdict(change),
        model_s=float(shown.times[0, network, 0]),
        gap=_ratio(of.alone.times[:, network, 0], of.static.times[: samples + 1, network], "÷ static"),
        slowed=_ratio(of.beside.times[:, network, 0], of.alone.times[:, network, 0], "÷ alone")
        if of.beside is not None
        else None,
        moved=shown.moved[network],
        as_recorded=shown.as_recorded[network],
        timeouts=shown.timeouts[network] if network in of.buffered else None,
        lossy=float(shown.times[0, network, 0]) / shown.lossless[network]
        if network in of.buffered and shown.lossless[network]
        else None,
        beside=list(_others(of, network)),
    )


def _ratio(times: NDArray[np.float64], other: NDArray[np.float64], what: str) -> Estimate | None:
    """Return how much longer it takes; None where the other takes no time and this one does."""
    if np.any((other == 0) & (times > 0)):
        return None
    ratios = np.divide(times, other, out=np.ones_like(times), where=other > 0)
    return uncertainty.estimate(
        float(ratios[0]), ratios[1:], "ratio", f"event by event {what}, same networks"
    )


def _others(of: Compared, network: int) -> Iterator[OtherProgram]:
    if of.beside is None:
        return
    for place, name in enumerate(of.others, 1):
        times = of.beside.times[:, network, place]
        time = uncertainty.estimate(float(times[0]), times[1:], "s", "model alone, event by event")
        yield OtherProgram(trace=name, time=time)


def contention(of: Compared, topology: str) -> Contention:
    """Return what all networks are to the program, event by event."""
    base, *scenarios = (contended(of, place) for place in range(len(of.names)))
    return Contention(
        samples=len(of.alone.times) - 1,
        topology=topology,
        wild=of.alone.wild,
        chosen=of.alone.chosen,
        base=base,
        scenarios=scenarios,
        meaning=list(_meaning(of, base, scenarios)),
    )


def leading(
    of: Compared, found: Contention, base: Predicted, scenarios: Sequence[Predicted]
) -> tuple[Predicted, list[Predicted]]:
    """Return predictions whose run times are those event by event; paths are static as before."""
    alone = judge.as_it_is(of.figures, "")
    return structs.replace(base, time=alone.time, change=alone.change, launch=None), [
        structs.replace(
            one, time=by_events.time, launch=None, change=by_events.change, verdict=by_events.verdict
        )
        for one, by_events in zip(scenarios, found.scenarios, strict=True)
    ]


def may_matter(found: Contention) -> bool:
    """Whether the run time on some network may be another one event by event: not for sure the same."""
    return any(not _is_alike(one.gap) for one in (found.base, *found.scenarios))


def _is_alike(gap: Estimate | None) -> bool:
    if gap is None or gap.low is None or gap.high is None:
        return False
    return gap.low >= 1 - MARGIN and gap.high <= 1 + MARGIN


def _meaning(of: Compared, base: Contended, scenarios: Sequence[Contended]) -> Iterator[str]:
    """Say what it means, most important first."""
    if base.slowed is not None:
        yield (
            f"Beside {' and '.join(of.others)} the run time on the network as it is changes by "
            f"{format_change(base.slowed)} against alone, to {format_spread(base.time)}."
        )
    yield from _lost(scenarios)
    yield _gap_in_words(base.gap)
    if of.beside is None:
        yield from _differing(of, scenarios)
    everywhere = [base, *scenarios]
    as_recorded = sum(one.as_recorded for one in everywhere)
    moved = max(one.moved for one in everywhere)
    if moved:
        yield (
            f"Up to {count(moved, 'time')} another message came first than as it was traced, and what the program does "
            "about it was done then; how often each rank is served stays as it was traced."
        )
    if of.alone.wild > of.alone.chosen:
        yield (
            f"Of {count(of.alone.wild, 'receive')} from any source, {of.alone.wild - of.alone.chosen} must keep the "
            "recorded order: what follows them has to do with other ranks, or nothing shows what they wait for."
        )
    if as_recorded:
        yield (
            f"On {as_recorded} of {count(len(everywhere), 'network')} taking whoever comes first would make all ranks "
            "wait for each other; there messages keep their recorded order."
        )


def _differing(of: Compared, scenarios: Sequence[Contended]) -> Iterator[str]:
    """Name networks of which the two engines say different things."""
    for column, one in enumerate(scenarios, 1):
        change = uncertainty.estimate(of.static.likely(column), of.static.changes(column), "ratio", "static")
        static = judge.verdict(change)
        if static != one.verdict:
            yield (
                f"{one.name}: '{one.verdict}' event by event, {format_change(one.change)}; '{static}' with messages in "
                f"their order, {format_change(change)}."
            )


def _lost(scenarios: Sequence[Contended]) -> Iterator[str]:
    """Say of networks with buffers whether losses decide what the program takes."""
    for one in scenarios:
        if one.timeouts is None:
            continue
        if not one.timeouts:
            yield f"{one.name}: no message waits for a timeout, as what comes at once has room."
        else:
            yield (
                f"{one.name}: {count(one.timeouts, 'message', verbs=('finds', 'find'))} the buffer before the "
                f"receiver full, to be sent again after a timeout: losses {_decide(one.lossy)}."
            )


def _decide(lossy: float | None) -> str:
    if lossy is None or lossy > 1 + MARGIN:
        more = "" if lossy is None else f", the run time is {lossy:.3g} times that without them"
        return f"decide{more}"
    return "do not matter, others wait longer"


def _gap_in_words(gap: Estimate | None) -> str:
    if gap is None:
        return "On the network as it is the program takes time event by event, and none with messages in their order."
    low, high = gap.low or gap.value, gap.high or gap.value
    change = format_change(gap)
    if low > 1 + MARGIN:
        return (
            f"Contention matters: event by event the run time on the network as it is changes by {change}, against "
            "messages in their order, each program on its own. Where both differ on another network, believe this one."
        )
    if high < 1 - MARGIN:
        return (
            f"Order matters: event by event the run time on the network as it is changes by {change}, as messages that "
            "are there first need not wait for others. Where both differ on another network, believe this one."
        )
    if low >= 1 - MARGIN and high <= 1 + MARGIN:
        return (
            "Contention does not matter on the network as it is: event by event the run time changes by "
            f"{change}, against messages in their order."
        )
    return f"Whether contention matters on the network as it is cannot be told: {change}, event by event."

"""Two settings whose launches took turns in random order: the shift of every cell, and a verdict.  Pure.

The launches of a pair are neighbours in time, and which came first was drawn: neither a drift nor an offset of the day
nor launches that resemble each other make one setting look better. ``better`` and ``worse`` are effects here.

What a launch leaves to the next one would: with orders B C | B C each base follows a candidate and each candidate a
base, with B C | C B both follow the same. Where differences of the first kind are not those of the second, only the
second are compared.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import msgspec
import scipy

from wulf.base.records import SCHEMA_VERSION, Cell, CellComparison, Comparison, Verdict
from wulf.base.text import count
from wulf.stats.core.paired import paired_shift
from wulf.stats.core.shift import Shift
from wulf.stats.estimate.comparison import ALL_PAIRS, SIGNIFICANCE, adjust, comparison, directed, overall

#: Significance from which on it is taken that a launch leaves something to the next: small effects of it hardly matter,
#: and half of the pairs are as good as all where there is none …
CARRIED_P = 0.1
#: … and from which on it is said.
CARRIED_SAID_P = 0.01
#: Two-sided significance at which those pairs alone have to say the same before anything is claimed, and how many of
#: them can say it.
AGREE_P, FEWEST_THAT_AGREE = 0.15, 5
#: Pairs of either kind without which it is not asked.
FEWEST_OF_A_KIND = 4
#: Median [s] of every cell of one launch.
Medians = Mapping[Cell, float]
#: Cell → times of base and candidate of each pair of launches [s].
Times = dict[Cell, list[tuple[float, float]]]


def compare_interleaved(
    base: str,
    candidate: str,
    pairs: Sequence[tuple[Medians, Medians]],
    margin: float = 0.02,
    failures: tuple[dict[str, int], dict[str, int]] = ({}, {}),
    differing: Mapping[str, tuple[str, str]] | None = None,
    higher: Collection[str] = (),
    candidate_first: Sequence[bool] = (),
) -> Comparison:
    """Compare two settings by pairs of launches.

    Parameters
    ----------
    base, candidate
        What they are called.
    pairs
        Of each pair what the base's launch gave and what the candidate's did, in time order; empty for one that failed.
        Where they were measured between other nodes, the cells of both have the base's.
    margin
        Relative change of the time that does not matter.
    failures
        Reason → launches that failed for it, of base and candidate.
    differing
        What differs between the two, as `wulf.base.records.Comparison.differing_facts`.
    higher
        Operations of which the larger values are the good ones.
    candidate_first
        Of each pair whether the candidate's launch came first; empty where that is not known.
    """
    kept, alike, note = _unaffected(pairs, candidate_first)
    (times, votes), (times_alike, votes_alike) = _in_common(kept), _in_common(alike)
    pooled = {op: directed(found, higher) for op, found in _judged(votes, votes_alike, margin).items()}
    effects = {op: _smallest(found) for op, found in pooled.items()}
    verdict, reason = _overall(pooled, failures, len(pairs), margin)
    return Comparison(
        schema_version=SCHEMA_VERSION,
        base=base,
        candidate=candidate,
        design="interleaved",
        differing_facts=dict(differing or {}),
        cells=[directed(found, higher) for found in _cells(times, times_alike, margin)],
        pooled=pooled,
        smallest_effect=max((effect for effect in effects.values() if effect is not None), default=None),
        smallest_effects=effects,
        margin=margin,
        verdict=verdict,
        reason=reason + note,
        failures=failures,
    )


def _unaffected(
    pairs: Sequence[tuple[Medians, Medians]], candidate_first: Sequence[bool]
) -> tuple[Sequence[tuple[Medians, Medians]], Sequence[tuple[Medians, Medians]], str]:
    """Return the pairs to compare, those whose launches followed the same side, and what is to be said of it."""
    alike = [pair for pair, same in zip(pairs, _follow_alike(candidate_first), strict=False) if same]
    carried = _carried(pairs, candidate_first)
    if carried >= CARRIED_P:
        return pairs, alike, ""
    return alike, alike, _left_out(len(pairs) - len(alike), len(pairs), said=carried < CARRIED_SAID_P)


def _follow_alike(candidate_first: Sequence[bool]) -> list[bool]:
    """Return of each pair whether both of its launches followed the same side, by the order of the pair before."""
    return [
        number > 0 and first != candidate_first[number - 1] for number, first in enumerate(candidate_first)
    ]


def _carried(pairs: Sequence[tuple[Medians, Medians]], candidate_first: Sequence[bool]) -> float:
    """Return the p value of "what came before a launch does not matter", over all operations (Bonferroni)."""
    alike = _follow_alike(candidate_first)
    _, votes = _in_common(pairs)
    found = []
    for op in votes if len(alike) == len(pairs) else ():
        kinds: tuple[list[float], list[float]] = ([], [])
        for number in range(1, len(pairs)):
            kinds[alike[number]].extend(_in_common([pairs[number]])[1].get(op, []))
        if min(map(len, kinds)) >= FEWEST_OF_A_KIND:
            found.append(float(scipy.stats.mannwhitneyu(*kinds).pvalue))
    return min(1.0, min(found) * len(found)) if found else 1.0


def _left_out(pairs: int, of: int, *, said: bool) -> str:
    why = "a launch changes the next one" if said else "a launch may change the next one"
    return f"; {why}: {pairs} of {count(of, 'pair')} left out, as their launches followed different sides"


def _in_common(pairs: Sequence[tuple[Medians, Medians]]) -> tuple[Times, dict[str, list[float]]]:
    """Return the times of the cells that both launches of a pair have, and of each operation its mean log ratios."""
    times: Times = defaultdict(list)
    votes: dict[str, list[float]] = defaultdict(list)
    for first, second in pairs:
        logs: dict[str, list[float]] = defaultdict(list)
        for cell in sorted(first.keys() & second.keys()):
            if first[cell] > 0 and second[cell] > 0:
                times[cell].append((first[cell], second[cell]))
                logs[cell.op].append(math.log(second[cell] / first[cell]))
        for op, ratios in logs.items():
            votes[op].append(sum(ratios) / len(ratios))
    return times, votes


def _cells(times: Times, alike: Times, margin: float) -> list[CellComparison]:
    found = {cell: paired_shift(_logs(values)) for cell, values in times.items()}
    adjusted = adjust([shift.p_value for shift in found.values()])
    return [
        msgspec.structs.replace(
            comparison(cell, shift, p_value, _verdict(shift, p_value, margin, _logs(alike.get(cell, [])))),
            pairs_s=times[cell],
        )
        for (cell, shift), p_value in zip(found.items(), adjusted, strict=True)
    ]


def _logs(times: Sequence[tuple[float, float]]) -> list[float]:
    return [math.log(candidate / base) for base, candidate in times]


def _judged(
    votes: Mapping[str, list[float]], alike: Mapping[str, list[float]], margin: float
) -> dict[str, CellComparison]:
    shifts = {op: paired_shift(ratios) for op, ratios in votes.items()}
    adjusted = adjust([shift.p_value for shift in shifts.values()])
    return {
        op: comparison(
            Cell(op=op, size_bytes=-1, place=ALL_PAIRS),
            shift,
            p_value,
            _verdict(shift, p_value, margin, alike.get(op, [])),
        )
        for (op, shift), p_value in zip(shifts.items(), adjusted, strict=True)
    }


def _verdict(found: Shift, p_adjusted: float, margin: float, alike: Sequence[float]) -> Verdict:
    """Return the verdict on a shift; `alike` are the differences of pairs whose launches followed the same side."""
    low, high = found.ratio.low, found.ratio.high
    if low is None or high is None:
        return "no decision"
    if 1 - margin <= low and high <= 1 + margin:
        return "no difference"
    if p_adjusted >= SIGNIFICANCE or low <= 1 <= high or not _agree(alike, slower=low > 1):
        return "no decision"
    return "worse" if low > 1 else "better"


def _agree(alike: Sequence[float], *, slower: bool) -> bool:
    """Whether pairs whose launches followed the same side say the same, where there are enough."""
    if len(alike) < FEWEST_THAT_AGREE:
        return True
    shift = paired_shift(alike)
    return shift.p_value < AGREE_P and (shift.ratio.value > 1) == slower


def _smallest(pooled: CellComparison) -> float | None:
    """Decrease that would have been seen, as a share: beyond half the interval."""
    ratio = pooled.ratio
    if ratio.low is None or ratio.high is None:
        return None
    return -math.expm1(-math.log(ratio.high / ratio.low) / 2)


def _overall(
    pooled: Mapping[str, CellComparison],
    failures: tuple[Mapping[str, int], Mapping[str, int]],
    pairs: int,
    margin: float,
) -> tuple[Verdict, str]:
    lost = "".join(
        f"; {sum(reasons.values())} of {count(pairs, 'launch')} of the {side} failed: {', '.join(reasons)}"
        for side, reasons in zip(("base", "candidate"), failures, strict=True)
        if reasons
    )
    if not pooled:
        return "no decision", f"no pair of launches succeeded{lost}"
    verdict, named = overall(pooled)
    turns = f"{count(pairs, 'pair')} of launches in random order, so that drift cancels out"
    said = {
        "no difference": f"the whole interval lies within ±{margin:.1%} for every operation; {turns}",
        "no decision": f"not enough evidence for a change or for none: {named}; {turns}",
    }
    return verdict, (said.get(verdict) or f"{named}; {turns}") + lost

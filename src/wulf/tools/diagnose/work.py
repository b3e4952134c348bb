"""From a run of pairs to a verdict: what is slow, each node's score, and the causes that the figures look like."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec
import numpy as np
from numpy.typing import NDArray

from wulf.base import store
from wulf.base.errors import AnalysisError
from wulf.base.must_see import LARGE_BYTES, MUST_SEE
from wulf.base.must_see import must_see as wanted_at
from wulf.base.records import RANKS_OF_A_PAIR, Analysis, CellEstimate, Comparison, Estimate, NodeRecord, Pair
from wulf.base.records.diagnosed import Branch, Diagnosis, Gate, Matrix, Score, Worse
from wulf.base.text import count
from wulf.node.measuring.analysis import analyze, compare
from wulf.stats.estimate import pairs as between
from wulf.stats.estimate import tree
from wulf.stats.estimate.signatures import symptoms
from wulf.tools.diagnose import confirmation, one_way
from wulf.tools.diagnose.baseline import FALSE_ALARM, worse_nodes

#: What is measured where nothing was: small messages show what a node costs, large ones what its link carries.
SIZES_BYTES = (64, 1 << 20)
CONFIDENCE = 0.95
#: Chance that anything is suspected where all are alike, if it is measured again before it is named.
SUSPICION = 0.1
#: Facts in which nodes of one kind agree.
HARDWARE = ("cpu.model", "cpu.frequency_max_hz", "nic.driver", "nic.speed_max_bits_per_s")
NOTHING_KNOWN: Mapping[str, float] = MappingProxyType({})
NO_KINDS: Mapping[str, str] = MappingProxyType({})


def diagnose(run: store.Run, must_see: tuple[float, float] = MUST_SEE) -> Diagnosis:
    """Say what is slow among the nodes of a run.

    Parameters
    ----------
    must_see
        Slowdowns that have to be seen, at large and at small messages: else it cannot be told.

    Raises
    ------
    AnalysisError
        No operation was measured between enough pairs; says what to measure.
    """
    found = find(run)
    if not found.matrices:
        raise AnalysisError(f"{run.path}: {_too_few(run)}")
    matrices = [
        msgspec.structs.replace(one, wanted=wanted_at(one.size_bytes, must_see)) for one in found.matrices
    ]
    return msgspec.structs.replace(found, matrices=matrices)


def _too_few(run: store.Run) -> str:
    """Return in words what a run lacks of which no pairs can be judged, and what to do."""
    places = {place for part in run.manifest.plan.workload.parts if not part.group for place in part.places}
    asked = {(place[0], place[1]): 1.0 for place in places if len(set(place)) == RANKS_OF_A_PAIR}
    partners = between.FEWEST_PARTNERS
    takes = f"it takes {count(partners + 1, 'node')} that were each measured with {count(partners, 'other')}"
    if not _judged(asked):
        return f"{takes} to tell which is slow: wulf measure --pairs all, or wulf diagnose without a run"
    timed = {pair for times in _times(run).values() for pair in times}
    return (
        f"cannot tell which node is slow: {len(timed)} of {count(len(asked), 'pair')} were measured, and {takes}; "
        "wulf diagnose with a longer --budget, and wulf report says what failed"
    )


def find(run: store.Run) -> Diagnosis:
    """Return what can be said of a run: without enough pairs nobody is judged, and causes may yet be seen."""
    analysis = run.analysis() or analyze(run)
    pairs = run.manifest.plan.workload.between_pairs
    cells = _between_pairs(run, analysis)
    models = [model for model in analysis.models if model.op in pairs]
    matrices = matrices_of(cells, run.nodes)
    if (path_again(run) / store.MANIFEST).is_file():
        once_more, times = _times(store.load(path_again(run))), _times(run)
        kinds = _kinds(run.nodes)
        matrices = [
            confirmed(strict, lax, once_more.get(key, {}), usual(times[key], kinds, lax))
            for strict, lax in zip(matrices, matrices_of(cells, run.nodes, SUSPICION), strict=True)
            for key in [(strict.op, strict.size_bytes)]
        ]
    if (path_one_way(run) / store.MANIFEST).is_file():
        known = rates(store.load(path_one_way(run)))
        matrices = [one_way.with_rates(one, known) for one in matrices]
    return Diagnosis(
        run_id=run.manifest.id,
        nodes=list(dict.fromkeys(node for cell in cells for node in cell.cell.place)),
        matrices=matrices,
        margin=between.MARGIN,
        symptoms=symptoms(cells, models, run.nodes, {advice.kind for advice in analysis.warnings}),
    )


def matrices_of(
    cells: Sequence[CellEstimate], nodes: Sequence[NodeRecord], false_alarm: float = between.FALSE_ALARM
) -> list[Matrix]:
    """Return what the smallest and the largest size of each operation between pairs say of the nodes.

    Parameters
    ----------
    false_alarm
        Chance that anything is suspected in one of them where all are alike.
    """
    by_size: dict[tuple[str, int], list[CellEstimate]] = defaultdict(list)
    for cell in cells:
        # What comes through where most is lost is too little to have a time.
        if cell.lost < cell.iterations:
            by_size[cell.cell.op, cell.cell.size_bytes].append(cell)
    links, kinds = _links(nodes), _kinds(nodes)
    found = []
    for op in dict.fromkeys(op for op, _ in by_size):
        for size in _ends([size for name, size in by_size if name == op]):
            places = {(cell.cell.place[0], cell.cell.place[1]): cell for cell in by_size[op, size]}
            times = {pair: cell.time.value for pair, cell in places.items()}
            one = matrix(op, size, times, links=links, kinds=kinds, false_alarm=false_alarm)
            found += [] if one is None else [one]
    return found


def _between_pairs(run: store.Run, analysis: Analysis) -> list[CellEstimate]:
    pairs = run.manifest.plan.workload.between_pairs
    return [cell for cell in analysis.cells if cell.cell.op in pairs]


def again(run: store.Run) -> list[Pair]:
    """Return the pairs that tell, measured one at a time, whether who may be slow is; none where nobody may be."""
    return confirmation.pairs(
        matrices_of(_between_pairs(run, run.analysis() or analyze(run)), run.nodes, SUSPICION)
    )


def path_one_way(run: store.Run) -> Path:
    """Return where the run of the streams of suspects is, if there is one."""
    return run.path.with_name(f"{run.path.name}-one-way")


def rates(run: store.Run) -> dict[Pair, float]:
    """Return the rates of streams [bit/s]: sender and receiver → rate."""
    return {
        pair: 8 * size / time
        for (op, size), times in _times(run).items()
        if op == one_way.OP
        for pair, time in times.items()
        if time > 0
    }


def path_again(run: store.Run) -> Path:
    """Return where the run of the pairs of `again` is, if there is one: beside the run that they are suspected in."""
    return run.path.with_name(f"{run.path.name}-again")


def confirmed(
    strict: Matrix, lax: Matrix, times: Mapping[Pair, float], usual: Callable[[Pair], float]
) -> Matrix:
    """Return a matrix with those of many suspects that are slow alone, too; with its own where that was not told.

    Parameters
    ----------
    strict, lax
        What the times of all pairs say, with few suspects and with many.
    times
        Pair → time measured alone [s].
    usual
        As of `wulf.tools.diagnose.confirmation.is_slow`.
    """
    accused = frozenset(node for suspect in lax.suspects for node in suspect.nodes)
    alike = {
        (suspect.kind, *suspect.nodes): confirmation.is_slow(
            suspect, times, accused, between.MARGIN, usual=usual, among=len(lax.suspects)
        )
        for suspect in lax.suspects
    }
    proven = [suspect for suspect in lax.suspects if alike[suspect.kind, *suspect.nodes]]
    untold = [one for one in strict.suspects if alike.get((one.kind, *one.nodes)) is None]
    return msgspec.structs.replace(
        strict,
        suspects=sorted([*proven, *untold], key=lambda one: -one.slower),
        cleared=[one for one in strict.suspects if alike.get((one.kind, *one.nodes)) is False],
    )


def usual(times: Mapping[Pair, float], kinds: Mapping[str, str], lax: Matrix) -> Callable[[Pair], float]:
    """Return what the logarithm of the time of a pair would be without any suspicion, from the times of all pairs."""
    judged = _judged(times)
    names = sorted({node for place in judged for node in place})
    places = {name: place for place, name in enumerate(names)}
    symmetric = between.mean_of_directions(_logs(judged, names))
    slow = frozenset(places[node] for one in lax.suspects if one.kind != "link" for node in one.nodes)
    expected = between.expected(symmetric, structure_of(symmetric, names, kinds), slow)
    return lambda pair: (
        float(expected[places[pair[0]], places[pair[1]]]) if places.keys() >= set(pair) else 0.0
    )


def structure_of(
    symmetric: NDArray[np.float64], names: Sequence[str], kinds: Mapping[str, str]
) -> between.Structure:
    """Return what makes nodes differ: their hardware, and the switches that their times show."""
    groups = [0] * len(names)
    for number, branch in enumerate(tree.branches(symmetric), 1):
        for place in branch.nodes:
            groups[place] = number
    return between.Structure(kinds=[kinds.get(name, "") for name in names], groups=groups)


def against(found: Diagnosis, run: store.Run, baseline: store.Run, margin: float) -> Diagnosis:
    """Add to a diagnosis how the run stands against an earlier one.

    Raises
    ------
    AnalysisError
        They have nothing in common.
    """
    comparison = compare(baseline, run, margin)
    if not comparison.cells:
        raise AnalysisError(f"{run.path} and {baseline.path} have no operation, size and pair in common")
    gate = Gate(
        baseline=baseline.manifest.id,
        margin=margin,
        worse=[*_worse_nodes(run, baseline, margin), *_worse_cells(comparison)],
        verdict=comparison.verdict,
        reason=comparison.reason,
        untold=comparison.untold,
    )
    return msgspec.structs.replace(found, gate=gate)


def _worse_nodes(run: store.Run, baseline: store.Run, margin: float) -> Iterator[Worse]:
    earlier, now = _times(baseline), _times(run)
    shared = [cell for cell in now if cell in earlier]
    for op, size in shared:
        found = worse_nodes(earlier[op, size], now[op, size], margin, FALSE_ALARM / len(shared))
        for node, ratio in found:
            yield Worse(op=op, size_bytes=size, nodes=[node], ratio=ratio)


def _times(run: store.Run) -> dict[tuple[str, int], dict[Pair, float]]:
    pairs = run.manifest.plan.workload.between_pairs
    times: dict[tuple[str, int], dict[Pair, float]] = defaultdict(dict)
    for cell in (run.analysis() or analyze(run)).cells:
        if cell.cell.op in pairs:
            first, second = cell.cell.place
            times[cell.cell.op, cell.cell.size_bytes][first, second] = cell.time.value
    return times


def _worse_cells(comparison: Comparison) -> Iterator[Worse]:
    for cell in [*comparison.cells, *comparison.pooled.values()]:
        if cell.verdict == "worse":
            yield Worse(op=cell.op, size_bytes=cell.size_bytes, nodes=list(cell.place), ratio=cell.ratio)


def small_messages(run: store.Run) -> NDArray[np.float64]:
    """Return the logarithms of the times between all pairs at the smallest size of the first operation, n × n."""
    _, times = min(_times(run).items())
    return _logs(times, sorted({node for place in times for node in place}))


def _ends(sizes: Sequence[int]) -> list[int]:
    return list(dict.fromkeys((min(sizes), max(sizes))))


def matrix(
    op: str,
    size: int,
    times: Mapping[Pair, float],
    *,
    links: Mapping[str, float] = NOTHING_KNOWN,
    kinds: Mapping[str, str] = NO_KINDS,
    false_alarm: float = between.FALSE_ALARM,
) -> Matrix | None:
    """Return what the times at one size say; None where there are too few pairs.

    Parameters
    ----------
    times
        Pair → time [s].
    links
        Node → rate of its link [bit/s].
    kinds
        Node → its hardware; nodes are judged among those of their kind.
    false_alarm
        Chance that anything is suspected where all are alike.
    """
    everybody = len({node for place in times for node in place})
    times = _judged(times)
    names = sorted({node for place in times for node in place})
    if not names:
        return None
    logs = _logs(times, names)
    symmetric = between.mean_of_directions(logs)
    fit = between.additive(symmetric)
    measured = len({frozenset(pair) for pair in times})
    return Matrix(
        op=op,
        size_bytes=size,
        typical_s=math.exp(fit.typical),
        scatter=fit.node_scatter,
        pairs=measured,
        missing=math.comb(everybody, 2) - measured,
        suspects=between.suspects(
            logs, names, false_alarm=false_alarm, structure=structure_of(symmetric, names, kinds)
        ),
        visible=between.visible(logs, structure_of(symmetric, names, kinds)),
        scores=_scores(logs, names, size, links),
        order=[names[place] for place in tree.order(symmetric)],
        branches=[
            Branch(nodes=[names[place] for place in branch.nodes], further=branch.further)
            for branch in tree.branches(symmetric)
        ],
    )


def _judged(times: Mapping[Pair, float]) -> dict[Pair, float]:
    """Return the times of the nodes that have enough partners among each other; none where nobody has."""
    kept = dict(times)
    while kept:
        partners: dict[str, set[str]] = defaultdict(set)
        for first, second in kept:
            partners[first].add(second)
            partners[second].add(first)
        few = {node for node, known in partners.items() if len(known) < between.FEWEST_PARTNERS}
        if not few:
            break
        kept = {pair: time for pair, time in kept.items() if few.isdisjoint(pair)}
    return kept


def _scores(
    logs: NDArray[np.float64], names: Sequence[str], size: int, links: Mapping[str, float]
) -> list[Score]:
    added, widths = between.scores(logs, CONFIDENCE)
    middles = np.nanmedian(np.where(np.isfinite(logs), logs, logs.T), axis=1)
    found = [
        Score(
            node=name,
            ratio=Estimate(
                value=math.exp(added[place]),
                low=math.exp(added[place] - widths[place]),
                high=math.exp(added[place] + widths[place]),
                confidence=CONFIDENCE,
                unit="ratio",
                n=len(names) - 1,
                method="least squares over all pairs, without those that stand out",
            ),
            rate_bits_per_s=size * 8 / math.exp(middles[place]) if size >= LARGE_BYTES else None,
            link_bits_per_s=links.get(name),
        )
        for place, name in enumerate(names)
    ]
    return sorted(found, key=lambda score: -score.ratio.value)


def _logs(times: Mapping[Pair, float], names: Sequence[str]) -> NDArray[np.float64]:
    places = {name: index for index, name in enumerate(names)}
    logs = np.full((len(names), len(names)), np.nan)
    for (first, second), time in times.items():
        logs[places[first], places[second]] = math.log(time)
    # A pair that was measured in one direction is the same in the other.
    for i, j in itertools.permutations(range(len(names)), 2):
        if not np.isfinite(logs[i, j]):
            logs[i, j] = logs[j, i]
    return logs


def _kinds(nodes: Sequence[NodeRecord]) -> dict[str, str]:
    """Return the hardware of each node, as far as it makes one slower than another."""
    return {record.node: ", ".join(str(record.facts.get(fact, "")) for fact in HARDWARE) for record in nodes}


def _links(nodes: Sequence[NodeRecord]) -> dict[str, float]:
    return {
        record.node: float(speed)
        for record in nodes
        if isinstance(speed := record.facts.get("nic.speed_bits_per_s"), int | float) and speed > 0
    }

"""A pattern that sums up a traced program: who sends how much to whom, in iterations that are all alike.  Pure."""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from wulf.base.records.traced import TracedCall, TracedPair, TraceSummary
from wulf.base.text import count, printable

#: Steps of messages; where there are more sizes, those within a power of two are taken together.
_STEPS = 8
_MOST_ITERATIONS = 10_000_000
#: Collectives of a trace → of a pattern.
_COLLECTIVES = {
    "barrier": "barrier",
    "bcast": "bcast",
    "gather": "gather",
    "gatherv": "gather",
    "scatter": "scatter",
    "scatterv": "scatter",
    "allgather": "allgather",
    "allgatherv": "allgather",
    "alltoall": "alltoall",
    "alltoallv": "alltoall",
    "alltoallw": "alltoall",
    "reduce": "reduce",
    "allreduce": "allreduce",
    "reduce_scatter": "reduce-scatter",
    "reduce_scatter_block": "reduce-scatter",
    "scan": "scan",
    "exscan": "exscan",
}
#: Of these the trace has what goes to all ranks together.
_TO_ALL = ("alltoallv", "alltoallw")
#: What moves data, and no pattern has.
_LEFT_OUT = (
    "neighbor_allgather",
    "neighbor_allgatherv",
    "neighbor_alltoall",
    "neighbor_alltoallv",
    "neighbor_alltoallw",
    "put",
)


def pattern_text(told: TraceSummary) -> str:
    """Return a pattern as TOML, with comments that say what it leaves out.

    Messages are those of the trace, spread over the iterations; their order, and which of them wait for which, are not.
    """
    iterations = _iterations(told)
    return "\n".join([*_head(told), *_program(told, iterations), ""])


def _iterations(told: TraceSummary) -> int:
    """Return how often that is done again and again of which most messages and calls are."""
    number: Counter[int] = Counter()
    for pair in told.pairs:
        number[pair.count] += pair.count
    for call in told.calls:
        if call.call in _COLLECTIVES:
            number[round(call.count / len(told.ranks))] += call.count
    often = max(number, key=lambda count: (number[count], count), default=1)
    return min(max(often, 1), _MOST_ITERATIONS)


def _head(told: TraceSummary) -> Iterator[str]:
    yield f"# What 'wulf program trace pattern' made of {printable(told.trace, 200)}."
    yield "# Every iteration is alike here: what comes after what, and which ranks are late, is not in it."
    for call in told.calls:
        if call.call in _LEFT_OUT:
            yield f"# Left out: {count(call.count, 'call')} of {call.call}."
    lost = sum(rank.lost for rank in told.ranks)
    if lost or any(rank.state != "finished" for rank in told.ranks):
        yield f"# The trace is not whole: {count(lost, 'call')} missing, or ranks did not finish."
    yield f"title = {_quoted(f'Summary of {told.command or told.trace}')}"
    yield f"ranks = {len(told.ranks)}"


def _program(told: TraceSummary, iterations: int) -> Iterator[str]:
    computing = [rank.compute_s / iterations for rank in told.ranks]
    yield ""
    yield "[[program]]"
    yield 'name = "summary"'
    yield f"iterations = {iterations}"
    yield ""
    yield "[[program.step]]"
    yield f"# Ranks computed from {_us(min(computing))} to {_us(max(computing))} us in an iteration."
    yield f'compute = "{_us(statistics.fmean(computing))} us"'
    for pairs in _alike(told.pairs):
        yield from _exchange(pairs, iterations)
    for call in told.calls:
        if call.call in _COLLECTIVES and call.count:
            yield from _collective(call, len(told.ranks), iterations)


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.3f}"


def _quoted(text: str) -> str:
    """Return a string of TOML, which has JSON's escapes."""
    return json.dumps(printable(text, 200))


def _size(pair: TracedPair) -> int:
    return round(pair.bytes / pair.count)


def _alike(pairs: Sequence[TracedPair]) -> list[list[TracedPair]]:
    """Return pairs whose messages are about as large together, those with large messages last."""
    exactly = len({_size(pair) for pair in pairs}) <= _STEPS
    groups: dict[int, list[TracedPair]] = defaultdict(list)
    for pair in pairs:
        groups[_size(pair) if exactly else _size(pair).bit_length()].append(pair)
    return [groups[key] for key in sorted(groups)]


def _exchange(pairs: Sequence[TracedPair], iterations: int) -> Iterator[str]:
    messages, whole = sum(pair.count for pair in pairs), sum(pair.bytes for pair in pairs)
    yield ""
    yield "[[program.step]]"
    yield 'exchange = "edges"'
    yield f"size = {round(whole / messages)}"
    yield "edges = ["
    for pair in pairs:
        often = "" if pair.count == iterations else f", {pair.count / iterations:.9g}"
        yield f"    [{pair.source}, {pair.destination}{often}],"
    yield "]"


def _collective(call: TracedCall, ranks: int, iterations: int) -> Iterator[str]:
    yield ""
    yield "[[program.step]]"
    yield f'collective = "{_COLLECTIVES[call.call]}"'
    if call.call != "barrier":
        yield f"size = {round(call.bytes / call.count / (ranks if call.call in _TO_ALL else 1))}"
    if call.count != ranks * iterations:
        yield f"times = {call.count / ranks / iterations:.9g}"

"""GOAL, the text that LogGOPSim (txt2bin) and ATLAHS read: a schedule of calc, send and recv for each rank.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wulf.base.trace.export.operations import Operation


def text(ranks: Sequence[Sequence[Operation]]) -> Iterator[str]:
    """Yield the lines of a schedule; of what has no collectives any more (`operations.exported` without `whole`)."""
    yield f"num_ranks {len(ranks)}"
    for rank, done in enumerate(ranks):
        yield f"rank {rank} {{"
        yield from _schedule(done)
        yield "}"


def _schedule(done: Sequence[Operation]) -> Iterator[str]:
    """Yield one rank's lines: each step waits for the one before it, a wait for what was begun, too."""
    last: int | None = None
    begun: dict[int, int] = {}
    for label, one in enumerate(done, 1):
        yield f"l{label}: {_step(one)}"
        if last is not None:
            # What is begun does not hold up what follows: it only has to have begun itself.
            yield f"l{label} requires l{last}"
        if one.verb == "wait":
            yield f"l{label} requires l{begun.pop(one.number)}"
        if one.verb in ("begin_send", "begin_receive"):
            begun[one.number] = label
        else:
            last = label


def _step(one: Operation) -> str:
    if one.verb == "compute":
        return f"calc {one.compute_ns}"
    if one.verb == "wait":
        return "calc 0"
    if one.verb in ("send", "begin_send"):
        return f"send {one.bytes}b to {one.peer} tag {one.tag}"
    return f"recv {one.bytes}b from {one.peer} tag {one.tag}"

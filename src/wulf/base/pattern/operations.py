"""What each rank of a pattern does, as records that a tracer would have written.

A pattern and a traced program are the same to all that comes after: the emulator and the replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import NoReturn

import msgspec
import numpy as np

from wulf.base.pattern.distributions import Samples
from wulf.base.pattern.exchanges import METHODS
from wulf.base.pattern.language import Document, Program, Step
from wulf.base.pattern.ordered import ORDERED
from wulf.base.pattern.ranks import Group, Rank
from wulf.base.pattern.steps import Action, Collective, Fail
from wulf.base.text import count
from wulf.base.trace.layout import Mark

#: All records of all ranks: 32 bytes each, in memory.
MOST_RECORDS = 50_000_000
#: Tags that one step may use.
_TAGS = 4


class Operations(msgspec.Struct, frozen=True):
    """What all ranks do."""

    #: Of each rank, as `wulf.base.trace.writer.write_container` takes them.
    streams: list[bytes]
    #: Name of each program → its ranks, in the order of the pattern.
    programs: dict[str, list[int]]
    #: How long it takes on a network without delay [ns].
    least_ns: int


def ranks_of(document: Document, ranks: int | None) -> tuple[int, list[list[int]]]:
    """Return how many ranks a pattern has, and those of each program.

    Parameters
    ----------
    ranks
        As many as there are to be; None for those that the pattern says.

    Raises
    ------
    ConfigError
        They are not enough, or nobody says how many.
    """
    pattern = document.pattern
    everybody = ranks if ranks is not None else pattern.ranks
    if everybody is None:
        everybody = _least(pattern.program)
    if everybody is None:
        document.fail("ranks", "missing: how many ranks there are; give it here or with --ranks")
    taken = 0
    found = []
    for number, program in enumerate(pattern.program):

        def fail(why: str, at: str = f"program[{number}].ranks") -> NoReturn:
            document.fail(at, why)

        own, taken = _own(program, taken, everybody, fail)
        found.append(own)
    return everybody, found


def _least(programs: Sequence[Program]) -> int | None:
    """Return the ranks that programs name themselves, where all do."""
    counted = 0
    highest = 0
    for program in programs:
        if isinstance(program.ranks, int):
            counted += program.ranks
        elif isinstance(program.ranks, list):
            highest = max([highest, *(rank + 1 for rank in program.ranks)])
        else:
            return None
    return max(counted, highest)


def _own(
    program: Program, taken: int, everybody: int, fail: Callable[[str], NoReturn]
) -> tuple[list[int], int]:
    """Return the ranks of a program, and how many are taken by programs that take the next ones."""
    said = program.ranks
    if said is None:
        return list(range(everybody)), taken
    if isinstance(said, list):
        if not said or len(set(said)) != len(said):
            fail(f"{said}: each rank once, and at least one")
        if min(said) < 0 or max(said) >= everybody:
            fail(f"{max(said) if min(said) >= 0 else min(said)}: there are the ranks 0 to {everybody - 1}")
        return said, taken
    if isinstance(said, str):
        share = said.strip().removesuffix("%")
        if not said.strip().endswith("%") or not share.isdigit() or not 1 <= int(share) <= 100:
            fail(f'{said!r}: a number, a list of ranks, or a share such as "50%"')
        said = max(1, everybody * int(share) // 100)
    if said < 1:
        fail(f"{said}: 1 or more")
    if taken + said > everybody:
        fail(
            f"{count(said, 'more rank')} than the {taken} of programs before it, of {everybody}: there are not as many"
        )
    return list(range(taken, taken + said)), taken + said


def operations(document: Document, ranks: int | None, samples: Samples) -> Operations:
    """Return what every rank of a pattern does; the same for the same pattern, ranks and seed.

    Parameters
    ----------
    ranks
        See `ranks_of`.
    samples
        What the pattern's empirical distributions are drawn from.

    Raises
    ------
    ConfigError
        The pattern cannot have so many ranks; names the file, the line and the key.
    """
    pattern = document.pattern
    everybody, members = ranks_of(document, ranks)
    for number, program in enumerate(pattern.program):
        _limit(document, number, everybody, _fewest(program, len(members[number])))
    all_ranks = [Rank(rank, everybody, pattern.title) for rank in range(everybody)]
    programs = []
    for number, own in enumerate(members):
        group = Group([all_ranks[rank] for rank in own], everybody)
        programs.append(_steps(document, number, group, everybody))

    for number, (program, steps) in enumerate(zip(pattern.program, programs, strict=True)):
        for place, step in enumerate(steps):
            seed = np.random.SeedSequence([pattern.seed, number, place])
            step.draw(step.count(program.iterations), np.random.default_rng(seed), samples)
    _perform(document, all_ranks, programs)
    for rank in all_ranks:
        rank.mark(Mark.END)
    for steps in programs:
        for step in steps:
            step.end()
    names = [program.name for program in pattern.program]
    return Operations(
        streams=[rank.finish() for rank in all_ranks],
        programs=dict(zip(names, members, strict=True)),
        least_ns=max(rank.now_ns for rank in all_ranks),
    )


def _perform(document: Document, all_ranks: Sequence[Rank], programs: Sequence[Sequence[Action]]) -> None:
    """Add all iterations of all programs."""
    pattern = document.pattern
    # Ranks of several programs go on with the one that is behind; all of them in the same order.
    turns = [0] * sum(map(len, programs))
    foretold = records = 0
    for number, iteration in _in_order([program.iterations for program in pattern.program]):
        _iterate(number, iteration, programs, turns)
        before, records = records, sum(rank.records for rank in all_ranks)
        if iteration == 0:  # none has fewer operations: what happens now and then does not in the first one
            foretold += (records - before) * pattern.program[number].iterations
        _limit(document, number, len(all_ranks), max(records, foretold))


def _fewest(program: Program, ranks: int) -> float:
    """Return how many operations there are at least, without making any of them."""
    # The marks of the iterations and what is drawn, alone.
    drawn = program.iterations * max(1.0, *(step.times for step in program.step)) * ranks
    # A graph with all its edges is made also for a step that is performed once.
    performed = [
        max(1.0, program.iterations * step.times) for step in program.step if step.exchange == "all-to-all"
    ]
    return max(drawn, sum(performed) * ranks * (ranks - 1))


def _limit(document: Document, number: int, ranks: int, records: float) -> None:
    if records > MOST_RECORDS:
        document.fail(
            f"program[{number}].iterations",
            f"more than {MOST_RECORDS} operations of {count(ranks, 'rank')}: take fewer iterations, as passes are "
            "repeated, or fewer ranks",
        )


def _steps(document: Document, number: int, group: Group, everybody: int) -> list[Action]:
    found = []
    # No other step of any program has the same tags: who is ahead must not be taken for who is here.
    first = sum(len(program.step) for program in document.pattern.program[:number])
    for place, step in enumerate(document.pattern.program[number].step):

        def fail(key: str, why: str, at: str = f"program[{number}].step[{place}]") -> NoReturn:
            document.fail(f"{at}.{key}", why)

        found.append(_made(step, group, (first + place) * _TAGS, fail, everybody))
    return found


def _made(step: Step, group: Group, tag: int, fail: Fail, everybody: int) -> Action:
    if step.collective is not None:
        return Collective(step, group, tag, fail, everybody)
    if step.exchange in ORDERED:
        return ORDERED[step.exchange](step, group, tag, fail)
    if step.exchange is not None:
        return METHODS[step.method or "nonblocking"](step, group, tag, fail)
    return Action(step, group, tag, fail)


def _in_order(iterations: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield program and iteration of all programs, in the order in which a rank of all would make them."""
    following = [((0.0, number), 0) for number in range(len(iterations))]
    heapify(following)
    while following:
        (_, number), iteration = heappop(following)
        yield number, iteration
        if iteration + 1 < iterations[number]:
            heappush(following, (((iteration + 1) / iterations[number], number), iteration + 1))


def _iterate(number: int, iteration: int, programs: Sequence[Sequence[Action]], turns: list[int]) -> None:
    """Add one iteration of a program."""
    steps = programs[number]
    for rank in steps[0].group.ranks:
        rank.mark(Mark.ITERATION, number + 1)
    first = sum(map(len, programs[:number]))
    for place, step in enumerate(steps, first):
        for _ in range(step.happens(iteration)):
            step.make(turns[place])
            turns[place] += 1

"""Worlds that the program's claims are tried in, one line for each: ``make bench NAME=worlds``.

A world is a generator of data that the program has not been made for: settings that harm what is not looked at,
launches that remember, nodes of two kinds. Each line has the figure, how often it was counted with its 95 % bounds
(Clopper and Pearson 1934, Biometrika 26, 404-413), the claim, and whether it holds. Where the bounds reach across the
claim the figure alone decides, and the line says `?` after its answer.

``--seed=N`` draws other worlds (development used 1 to 99, reported is 20261126), ``--only=TEXT`` runs those whose name
begins so, ``--quick`` a tenth of each, ``--table`` prints Markdown for docs/explanation/method.md.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

import msgspec

from bench.worlds import comparing, launches, nodes, predicting, tuner, watching
from bench.worlds.line import Line, World, bounds

SEED = 20261126
WORLDS: tuple[World, ...] = (
    *tuner.WORLDS,
    *nodes.WORLDS,
    *launches.WORLDS,
    *comparing.WORLDS,
    *watching.WORLDS,
    *predicting.WORLDS,
)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for."""

    seed: int
    only: str
    quick: bool
    table: bool

    @classmethod
    def of(cls, arguments: Sequence[str]) -> Options:
        """Read the arguments."""
        given = dict(one.removeprefix("--").split("=", 1) for one in arguments if "=" in one)
        return cls(
            seed=int(given.get("seed", SEED)),
            only=given.get("only", ""),
            quick="--quick" in arguments,
            table="--table" in arguments,
        )


def tried(job: tuple[str, int, int]) -> Line:
    """Run a world by its name."""
    name, seed, times = job
    world = next(one for one in WORLDS if one.name == name)
    begin = time.process_time()
    # Worlds do not share their draws: the name is part of the seed.
    found = world.run([seed, *name.encode()], times)
    return Line(world=name, found=found, cpu_s=time.process_time() - begin)


def said(line: Line, *, table: bool) -> str:
    """Write a line."""
    world = next(one for one in WORLDS if one.name == line.world)
    low, high = bounds(line.found)
    count = f"{line.found.hits} of {line.found.of}"
    share = f"{line.found.share:.1%}"
    held = world.held(line.found)
    if table:
        return f"| {world.item} | {world.says} | {share} ({count}; {low:.1%} to {high:.1%}) | {world.claim} | {held} |"
    return (
        f"  {world.item:3s} {world.name:28s} {share:>7s}  {count:>12s} ({low:6.1%} to {high:6.1%})  "
        f"{world.claim:8s} {held:6s} {line.cpu_s:5.0f} s  {world.says}"
    )


def main(arguments: Sequence[str]) -> int:
    """Entry point."""
    options = Options.of(arguments)
    if not options.table:
        print(__doc__)
    chosen = [world for world in WORLDS if world.name.startswith(options.only)]
    jobs = [
        (world.name, options.seed, max(world.times // 10, 2) if options.quick else world.times)
        for world in chosen
    ]
    # More threads than processes only wait for each other.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    lines = []
    if options.table:
        print("| item | world | figure | claim | holds |\n|---|---|---|---|---|")
    with ProcessPoolExecutor(max_workers=2) as pool:
        for line in pool.map(tried, jobs):
            lines.append(line)
            print(said(line, table=options.table), flush=True)
    held = sum(
        next(one for one in WORLDS if one.name == line.world).held(line.found).startswith("yes")
        for line in lines
    )
    passed = held == len(lines)
    print(
        f"worlds value=held:{held} goal=held:{len(lines)} {'pass' if passed else 'short'}",
        file=sys.stderr if options.table else sys.stdout,
    )
    return 0 if passed else 1

"""What tuned collectives gain over the library's own decisions at sizes that nothing was decided by.

Four virtual nodes, one rank on each, Open MPI: ``wulf tune collectives`` of broadcast and allreduce up to 64 KiB.
At every size between those at which it was decided the file in effect is measured against the library's own
decision, and that against itself, launches in turn in random order; the ratios are of the time with the file ÷
without. Beside the mean stands what the default's mean differs from itself in the same launches, and both over the
sizes with a rule alone.

Goals: the geometric mean over these sizes is <= 1.0 (a gain of 1.0 or more), with its interval; the worst of them ÷
what the default differs from itself in the same launches (the widest 95 % interval of that collective) is <= 1.0; the
file is in effect. Where nothing was proven to be better nothing is written, which harms nobody, but shows nothing
either: short.
"""

from __future__ import annotations

import sys

import msgspec

from bench.common import Figure, finish
from bench.tune_lab import Scene, raised
from wulf.base.records import Estimate
from wulf.base.units import format_bytes
from wulf.tools.collectives.record import CollectiveTuning

NODES = 4
COLLECTIVES, MAX_SIZE, BUDGET = "bcast,allreduce", "64K", "12m"


def tuned(scene: Scene, words: tuple[str, ...]) -> CollectiveTuning:
    """Tune in the lab; return all that was found."""
    said = scene.wulf(
        *("tune", "collectives", "--cluster", "lab", "--mpi", "openmpi", "--collectives", COLLECTIVES),
        *("--max-size", MAX_SIZE, "--json", *words),
    )
    return msgspec.json.decode(said, type=CollectiveTuning)


def shown(ratio: Estimate | None) -> str:
    """Return a ratio with its interval."""
    if ratio is None:
        return "unknown"
    return f"{ratio.value:.3f}" + (
        f" ({ratio.low:.3f} to {ratio.high:.3f})" if ratio.low and ratio.high else ""
    )


def show(found: CollectiveTuning) -> None:
    """Print every cell, what is known of the effect, and the held-out sizes."""
    print(f"  {found.library}, {found.launches} launches in {found.lasted_s:.0f} s")
    for cell in found.cells:
        way = f"{cell.algorithm or '-'} {cell.segment_bytes or ''}".strip()
        print(
            f"  {cell.collective:10} {format_bytes(cell.size_bytes):>8}  {way:28} {shown(cell.ratio):24} "
            f"default against itself {shown(cell.control):24} {'kept' if cell.kept else cell.reason}"
        )
    for effect in found.effects:
        print(
            f"  {effect.collective} at {format_bytes(effect.size_bytes)}: {effect.state}: {effect.evidence}"
        )
    for one in found.struck_out:
        print(f"  struck out: {one.collective} {one.algorithm} {one.segment_bytes or ''}: {one.reason}")
    for failure in found.held_out_failures:
        print(
            f"  failed at held-out sizes: {failure.collective}: {failure.with_file} launches with the file, "
            f"{failure.without_file} without: {failure.reason}"
        )
    for held in found.held_out:
        print(
            f"  held out: {held.collective:10} {format_bytes(held.size_bytes):>8}  {shown(held.ratio):24} default "
            f"against itself {shown(held.control):24} limit {held.limit:.3f}, {'a' if held.ruled else 'no'} rule"
        )


def figures(found: CollectiveTuning) -> list[Figure]:
    """Return what is judged; without a file every job does what it did before."""
    if not found.text:
        print(
            "  nothing is proven to be better, so nothing is written: nothing is gained, nothing lost, nothing shown"
        )
        return [Figure(name="nothing-written", value=1.0, goal=0.0)]
    mean = found.mean
    if mean is None or found.unjudged:
        return [Figure(name="not-judged", value=1.0, goal=0.0)]
    print(f"  default against itself, mean over the same sizes: {shown(found.mean_control)}")
    print(
        f"  mean over the sizes with a rule: {shown(found.mean_ruled)}, default against itself "
        f"{shown(found.mean_ruled_control)}"
    )
    worst = max(found.held_out, key=lambda cell: cell.ratio.value / cell.limit)
    return [
        Figure(name="mean", value=mean.value, goal=1.0, low=mean.low, high=mean.high),
        Figure(name="worst/limit", value=worst.ratio.value / worst.limit, goal=1.0),
        Figure(name="rules-without-effect", value=float(not found.effective), goal=0.0),
    ]


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    words = ("--budget", "4m" if "--quick" in arguments else BUDGET)
    with raised(None, NODES) as scene:
        found = tuned(scene, words)
    show(found)
    return finish("collective-tuning", figures(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Several nodes at work side by side, each changed by a process of its own and kept in a directory of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.soak import progress as progressing
from bench.soak.node import now
from bench.soak.progress import Progress

_SAY_EVERY_S = 60.0


def run(
    directory: Path,
    seeds: Sequence[int],
    goal: int,
    minutes: float,
    ended: Callable[[], bool],
    say: Callable[[Progress], None],
) -> Progress:
    """Let each seed have a node and a share of the changes; return what all of them have brought.

    Parameters
    ----------
    directory
        Every node's progress and output are in ``node1``, ``node2``, … there.
    goal
        Changes and undos of all nodes together.
    minutes
        When the nodes end at the latest [min].
    ended
        Whether somebody wants an end.
    say
        Gets what has been done so far, about once a minute.
    """
    places = [directory / f"node{number}" for number in range(1, len(seeds) + 1)]
    share = -(-goal // len(seeds))
    workers = [_begin(*each, share, minutes) for each in zip(places, seeds, strict=True)]
    said = now()
    try:
        # What is wrong on one node is looked into before the others go on.
        while {worker.poll() for worker in workers} in ({None}, {None, 0}) and not ended():
            time.sleep(1.0)
            if now() > said + _SAY_EVERY_S:
                said = now()
                if (done := _together(places, seeds)).operations:
                    say(done)
    finally:
        for worker in workers:
            worker.terminate()
        codes = [worker.wait() for worker in workers]
    progress = _together(places, seeds)
    if any(codes) and not progress.wrong and not ended():
        raise SystemExit(f"bench: a node's process has failed: see {directory}/node*/output")
    return progress


def _begin(place: Path, seed: int, goal: int, minutes: float) -> subprocess.Popen[bytes]:
    place.mkdir(parents=True, exist_ok=True)
    words = [f"--from={place}", f"--seed={seed}", f"--goal={goal}", f"--minutes={minutes}"]
    argv = [sys.executable, "-m", "bench.soak", "--nodes=1", "--no-watch", *words]
    with (place / "output").open("ab") as output:
        # Ctrl-C is for this process alone, which ends the others.
        return subprocess.Popen(argv, stdout=output, stderr=output, start_new_session=True)


def _together(places: Sequence[Path], seeds: Sequence[int]) -> Progress:
    return progressing.together([progressing.read(*each) for each in zip(places, seeds, strict=True)])

"""Teams at work side by side, each in a process of its own."""

from __future__ import annotations

import math
import multiprocessing
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from queue import Empty
from typing import Any

from bench.faults.team import Team


def spread(
    teams: Sequence[Team],
    tasks: Sequence[Any],
    do: Callable[[Team, Any], object],
    each: Callable[[Any, Any], None],
    end: float = math.inf,
) -> None:
    """Let every team take tasks until there are none, or the time has come.

    Parameters
    ----------
    each
        Gets every task and what became of it, in this process.
    end
        No task is begun after this moment of `time.monotonic` [s].
    """
    context = multiprocessing.get_context("fork")
    queue, results = context.Queue(), context.Queue()
    for task in tasks:
        queue.put(task)
    time.sleep(0.2)
    workers = [context.Process(target=_work, args=(team, queue, results, do, end)) for team in teams]
    for worker in workers:
        worker.start()
    try:
        left = len(tasks)
        while left:
            try:
                task, result = results.get(timeout=2)
            except Empty:
                if any(worker.is_alive() for worker in workers):
                    continue
                break
            if task is None:
                raise SystemExit(f"bench: {result}")
            left -= 1
            each(task, result)
    except BaseException:
        for worker in workers:
            worker.kill()
        raise
    queue.cancel_join_thread()
    for worker in workers:
        worker.join()


def _work(team: Team, queue: Any, results: Any, do: Callable[[Team, Any], object], end: float) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while time.monotonic() < end:
            task = queue.get_nowait()
            results.put((task, do(team, task)))
    except Empty:
        pass
    except BaseException:
        results.put((None, traceback.format_exc()))

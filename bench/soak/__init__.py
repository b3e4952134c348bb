"""A node that is changed and put back 100,000 times, and 30 days of watch: does anything drift, grow or stay behind?

Four virtual nodes with the real guard, side by side, as most of the time is waiting. Each cycle makes changes of
one to all kinds of access and ends them in one of the ways in which changes end: undone, one trial after another, kept
and rolled back, made in parts, undone by the timer, or with the guard killed in the middle. After every 20 cycles the
whole node is compared with its original state: settings, facts, units, processes, mounts, crontab, temporary files, and
all files in /etc to mode, owner, time and content; and what could grow is measured. Then a watch over two virtual nodes
runs day by day on a clock that is set, in one process, and its schedule is installed and removed.

``--from=DIR``: where the progress is kept, and gone on from (build/soak). ``--goal=N``: changes and undos.
``--nodes=N``: how many nodes (4). ``--minutes=N``: end after this time. ``--no-watch``, ``--no-changes``: one half
alone. ``--quick``: 300 changes and undos of one node, no watch. Ctrl-C ends it after the cycles at work; the same
command goes on.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.faults.judge import difference
from bench.soak import progress as progressing
from bench.soak import side_by_side
from bench.soak.course import Course
from bench.soak.node import Node, WrongError, now
from bench.soak.progress import Days, Look, Progress
from bench.soak.settings import NOT_COVERED, ON_PLANTED_FILES, covered
from bench.soak.watch import days_of_watch
from wulf.node import lab

SEED = 20261125
#: Cycles between two comparisons.
EVERY = 20
QUICK_GOAL, QUICK_EVERY = 300, 5
NODES = 4
#: One pair, which is measured every day: below five nodes pairs are judged as they are.
_NODES = 2
_MEMORY = Path("/dev/shm")
_SHOWN = 6


def main(arguments: Sequence[str]) -> int:
    """Entry point."""
    print(__doc__)
    quick = "--quick" in arguments
    goal = int(_option(arguments, "goal", str(QUICK_GOAL if quick else progressing.GOAL)))
    nodes = int(_option(arguments, "nodes", str(1 if quick else NODES)))
    directory = Path(_option(arguments, "from", "build/soak")).resolve()
    if quick:
        shutil.rmtree(directory / "quick", ignore_errors=True)
        directory /= "quick"
    directory.mkdir(parents=True, exist_ok=True)
    days = progressing.read_days(directory)
    _say_what()
    seed, minutes = int(_option(arguments, "seed", str(SEED))), float(_option(arguments, "minutes", "inf"))
    if "--no-watch" not in arguments and not quick and days is None:
        with _cluster(directory, "watch", _NODES, slurm=True) as raised:
            days = days_of_watch(raised, directory)
            progressing.write(directory, days)
    progress = Progress(seed=seed)
    if "--no-changes" not in arguments:
        progress = _on_nodes(directory, range(seed, seed + nodes), goal, minutes, quick)
    _report(progress, days)
    passed, line = progressing.line_of(progress, days, goal)
    print(line)
    if "--no-watch" in arguments:  # a part, which may be ended and goes on
        return 1 if progress.wrong else 0
    return 0 if passed or (quick and not progress.wrong and progress.operations >= goal) else 1


def _on_nodes(directory: Path, seeds: Sequence[int], goal: int, minutes: float, quick: bool) -> Progress:
    """Change one node here, or several in processes of their own."""
    interrupt = _Interrupt()
    try:
        if len(seeds) > 1:
            return side_by_side.run(
                directory, seeds, goal, minutes, lambda: interrupt.wanted, lambda done: _say(done, goal)
            )
        progress = progressing.read(directory, seeds[0])
        end = now() + 60 * minutes
        if progress.operations < goal:
            with _cluster(directory, "changes", 1) as raised:
                every = QUICK_EVERY if quick else EVERY
                _changes(raised, progress, directory, goal, lambda: interrupt.wanted or now() >= end, every)
        return progress
    finally:
        interrupt.over()


def _option(arguments: Sequence[str], name: str, default: str) -> str:
    return next((word.partition("=")[2] for word in arguments if word.startswith(f"--{name}=")), default)


@contextmanager
def _cluster(directory: Path, what: str, nodes: int, *, slurm: bool = False) -> Iterator[lab.Lab]:
    """Raise a virtual cluster of its own, without what a session that was cut off has left.

    Slurm is there for the program alone, which it shows to the nodes. Their files are in memory: a guard waits for
    the disk at every step, and the disk is not what is tried.
    """
    place = _MEMORY / f"wulf-soak-{hashlib.sha256(str(directory).encode()).hexdigest()[:8]}-{what}"
    os.environ["WULF_LAB_DIR"] = str(place if _MEMORY.is_dir() else directory / f"lab-{what}")
    left = lab.remains()
    if left is not None:
        left.down()
    missing = lab.supported(slurm=slurm)
    if missing:
        raise SystemExit("bench: no virtual cluster here: " + "; ".join(str(item) for item in missing))
    raised, _ = lab.up(nodes, slurm=slurm)
    try:
        yield raised
    finally:
        raised.down()


class _Interrupt:
    """Whether somebody wants an end; a second time ends at once."""

    def __init__(self) -> None:
        self.wanted = False
        self._before = {
            number: signal.signal(number, self._take) for number in (signal.SIGINT, signal.SIGTERM)
        }

    def _take(self, _number: int, _frame: object) -> None:
        if self.wanted:
            raise KeyboardInterrupt
        self.wanted = True
        print("\nto be ended after this cycle; once more ends at once", file=sys.stderr, flush=True)

    def over(self) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)


def _changes(
    raised: lab.Lab, progress: Progress, directory: Path, goal: int, ended: Callable[[], bool], every: int
) -> None:
    """Change the node and put it back, up to the goal, the time or an interrupt."""
    archive = directory / "journal.tgz"
    node = Node(raised, raised.layout.names()[0])
    node.plant()
    node.bring_journal(archive)
    progress.sessions += 1
    course = Course(node, progress.seed)
    try:
        _warm_up(course)
        node.settle()
        original = node.whole_state()
        while progress.operations < goal and not ended():
            begin, course.done = now(), type(course.done)()
            number = progress.cycles
            while (
                number < progress.cycles + every
                and progress.operations + course.operations < goal
                and not ended()
            ):
                course.cycle(number)
                number += 1
            node.settle()
            if found := difference(original, node.whole_state()):
                raise WrongError(f"after cycle {number - 1} the node differs: {_words(original, found)}")
            gauges = node.gauges()
            done = progress.operations + course.operations
            look = Look(cycles=number, operations=done, session=progress.sessions, gauges=gauges)
            progress.credit(course.done, look, now() - begin)
            node.keep_journal(archive)
            progressing.write(directory, progress)
            _say(progress, goal)
    except WrongError as error:
        progress.wrong.append(str(error))
        (directory / "wrong.log").write_text(f"{error}\n\n{node.log()}")
        progressing.write(directory, progress)
        print(f"\nWRONG: {error}\nthe guard's log: {directory / 'wrong.log'}", flush=True)


def _warm_up(course: Course) -> None:
    """Make a change before the original state is taken: the first one loads what kinds of access need."""
    course.cycle(-1)


def _words(original: dict[str, str], found: dict[str, str | None]) -> str:
    lines = []
    for name, after in sorted(found.items()):
        before = original.get(name)
        if name.startswith("also ") and before is not None and after is not None:
            gone = sorted(set(before.splitlines()) - set(after.splitlines()))
            new = sorted(set(after.splitlines()) - set(before.splitlines()))
            lines.append(f"{name}: gone {gone[:_SHOWN]}, new {new[:_SHOWN]}")
        else:
            lines.append(f"{name}: {before!r} is now {after!r}"[:600])
    return "; ".join(lines)


def _say_what() -> None:
    print(f"kinds of access: {', '.join(covered())}; on planted files: {', '.join(ON_PLANTED_FILES)}")
    for kind, why in NOT_COVERED.items():
        print(f"not covered: {kind}: {why}")


def _say(progress: Progress, goal: int) -> None:
    name, ratio = progressing.worst(progressing.growth(progress.looks))
    rate = progress.operations / progress.seconds
    hours, minutes = divmod(round(progress.left_s(goal) / 60), 60)
    print(
        f"{progress.operations}/{goal} changes and undos, {progress.cycles} cycles, {rate:.2f} /s, "
        f"{hours} h {minutes:02} min left" + (f"; grown most: {name} {ratio:.3f} times" if name else ""),
        flush=True,
    )


def _report(progress: Progress, days: Days | None) -> None:
    print("\n| what | how often |\n|---|---|")
    for name, count in sorted(progress.done.items()):
        print(f"| {name} | {count} |")
    if progress.looks:
        ratios = progressing.growth(progress.looks)
        print(
            "\n| gauge | first look | last look | growth (of a limit, where there is one) |\n|---|---|---|---|"
        )
        first, last = progress.looks[0].gauges, progress.looks[-1].gauges
        for name in last:
            print(
                f"| {name} | {first.get(name, 0):.0f} | {last[name]:.0f} | {ratios.get(name, float('nan')):.3f} |"
            )
    if days is not None:
        sizes = days.database_bytes
        print(
            f"\nwatch: {days.days} days, {days.measured} measured, {days.skipped} skipped, {days.failed} failed, "
            f"{len(days.alarms)} alarms in {days.seconds:.0f} s; database {sizes[0]} to {sizes[-1]} bytes; "
            f"installed and removed {days.installed} times, left: {days.left or 'nothing'}"
        )
        for alarm in days.alarms:
            print(f"  alarm: {alarm}")
        for alarm in days.of_the_machine:
            print(f"  of the machine beneath, not judged: {alarm}")
    print()

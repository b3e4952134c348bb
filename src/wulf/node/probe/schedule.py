"""Which launch comes next: scouts that find the sizes, then random blocks until all is precise.  Pure."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from wulf.base import disjoint_rounds
from wulf.base.records import Launch, LaunchResult, Operation, Pair, Place, Plan, Sample
from wulf.node.probe import ladder

#: Scouts of one operation: enough to halve the widest interval (512 KiB) down to one byte.
MAX_SCOUTS = 20
#: Sizes that scouts may add to one operation.
MAX_ADDED = 64
#: Failures in a row after which an operation is given up between two nodes.
MAX_FAILURES = 3
#: Launches in a row after which a node that cannot be reached is not tried again.
MAX_UNREACHABLE = 2

#: After so many times the minimum of launches a stream is given up: by then it shows whether they fall into groups …
HOPELESS_AFTER = 4
#: … when the forecast is so many times the maximum.
HOPELESS = 4

#: An operation and who takes part in it.
Stream = tuple[str, Place]
Purpose = Literal["scout", "measure"]


class Alternation(msgspec.Struct, frozen=True, kw_only=True):
    """Two settings in turn within one launch."""

    #: Where every node's guard makes either of them; empty where they are the same.
    place: str
    #: Which of them, ``a`` or ``b``, comes when.
    arms: str
    #: Sweeps under each, and how many first ones of these are left out.
    dwell_sweeps: int
    settle_sweeps: int = 0


class LaunchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """All that one launch needs to know."""

    id: str
    index: int
    op: str
    #: How the probe is asked for it; empty where that is its name.
    asked: str = ""
    transport: Literal["none", "mpi", "net", "command"]
    place: Place
    #: Pairs of its ranks that are measured at the same time; empty where `place` is measured as a whole.
    pairs: list[Pair] = []
    #: Pairs of other nodes that stream meanwhile, the first of each to the second.
    beside: list[Pair] = []
    #: What these do in place of streaming: the operation itself, where pairs are measured at once over sockets.
    beside_op: str = ""
    setting: str
    purpose: Purpose
    sizes_bytes: list[int]
    sweeps: int
    visit_us: int
    #: Length of a visit of the reference; 0 for none.
    reference_us: int = 0
    seed: int
    #: For a shell, where it is not an operation of the probe.
    command: str = ""
    #: Operations whose value is a number that the command prints → what finds it.
    prints: dict[str, str] = {}
    #: Where operations on files have them, and what the MPI library is asked for; as in the workload.
    directory: str = ""
    thread_level: str = ""
    #: Environment of the job beyond the site's own.
    env: dict[str, str] = {}
    #: The second of two settings that are measured in turn; None where there is one.
    alternation: Alternation | None = None


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """What the precision of one stream (operation and pair) is so far."""

    launches: int
    clean: int
    #: Forecast of the launches it still needs; 0 when every size is precise.
    missing: int
    #: Launches that it takes to say that they do not depend on each other; 0 when that is said.
    untested: int = 0


NOTHING_YET = Progress(launches=0, clean=0, missing=0)


class Endings:
    """How the launches of a run have ended; each is looked at once, when it ends."""

    def __init__(self, launches: Iterable[Launch] = ()) -> None:
        self._failed: dict[Stream, int] = {}
        #: Of those that measure: a scout that succeeds says nothing of what it fails in.
        self._unmeasured: dict[Stream, int] = {}
        self._missed: dict[str, int] = {}
        #: Nodes that could not be reached in the last `MAX_UNREACHABLE` launches that they were to take part in.
        self._lost: set[str] = set()
        for launch in launches:
            self.add(launch)

    def add(self, launch: Launch) -> bool:
        """Take the next launch of the run; return whether other streams are given up now than before."""
        streams = [(launch.op, place) for place in launch.measured]
        before = self._lost.copy(), [self.give_up(stream) for stream in streams]
        self._count(launch)
        return before != (self._lost, [self.give_up(stream) for stream in streams])

    def _count(self, launch: Launch) -> None:
        for place in launch.measured:
            stream = launch.op, place
            failed = launch.status == "failed"
            self._failed[stream] = self._failed.get(stream, 0) + 1 if failed else 0
            if launch.purpose == "measure":
                self._unmeasured[stream] = self._unmeasured.get(stream, 0) + 1 if failed else 0
        for node in set(launch.place):
            self._missed[node] = self._missed.get(node, 0) + 1 if node in launch.unreachable else 0
            if self._missed[node] >= MAX_UNREACHABLE:
                self._lost.add(node)
            else:
                self._lost.discard(node)

    def failing(self, stream: Stream) -> bool:
        """Whether the last launch of a stream failed."""
        return self._failed.get(stream, 0) > 0

    def give_up(self, stream: Stream) -> bool:
        """Whether a stream failed too often in a row, or one of its nodes is gone."""
        failures = max(self._failed.get(stream, 0), self._unmeasured.get(stream, 0))
        return failures >= MAX_FAILURES or not self._lost.isdisjoint(stream[1])


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """How long it still takes."""

    #: Until all that is being measured has an interval [s]; 0 when it has.
    intervals_s: float
    #: Until all could be precise, if the noise stays as it is [s].
    least_s: float
    #: Until the most launches have been made, or the budget is spent [s].
    most_s: float


class _Need(NamedTuple):
    """What one stream adds to the sums of its operation."""

    streams: int = 0
    with_interval: int = 0
    done: int = 0
    #: Launches until it has an interval, …
    intervals: int = 0
    #: … until it could be precise, if the noise stays as it is, …
    least: int = 0
    #: … and until it has had the most there may be.
    most: int = 0


class Outlook:
    """What the streams of a run still need: a launch changes only what it has measured."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._needs: dict[Stream, _Need] = {}
        self._sums: dict[str, _Need] = {}

    def put(self, stream: Stream, progress: Progress | None, *, done: bool) -> None:
        """Say how far a stream has come; `done` is one that gets no more launches."""
        self._add(stream[0], self._needs.get(stream, _Need()), -1)
        self._needs[stream] = need = self._need(progress, done=done)
        self._add(stream[0], need, 1)

    def _add(self, op: str, need: _Need, times: int) -> None:
        pairs = zip(self._sums.get(op, _Need()), need, strict=True)
        self._sums[op] = _Need(*(total + times * part for total, part in pairs))

    def _need(self, progress: Progress | None, *, done: bool) -> _Need:
        plan, now = self._plan, progress or NOTHING_YET
        ready = has_interval(plan, progress)
        if done:
            return _Need(streams=1, with_interval=ready, done=1)
        behind = max(plan.min_launches - now.launches, 0)
        room = max(plan.max_launches - now.launches, 1)
        least = max(behind, min(max(now.missing, now.untested), room), 1)
        return _Need(streams=1, with_interval=ready, intervals=behind, least=least, most=room)

    @property
    def streams(self) -> int:
        """How many there are."""
        return sum(total.streams for total in self._sums.values())

    @property
    def with_interval(self) -> int:
        """How many of them have an interval."""
        return sum(total.with_interval for total in self._sums.values())

    @property
    def done(self) -> int:
        """How many of them get no more launches."""
        return sum(total.done for total in self._sums.values())

    def forecast(self, launch_s: Mapping[str, float], left_s: float) -> Forecast:
        """Return when the next things are decided.

        Parameters
        ----------
        launch_s
            Operation → a stream's part of the time of one of its launches [s].
        left_s
            Rest of the budget [s].
        """
        left_s = max(left_s, 0.0)
        intervals, least, most = (
            min(sum(launch_s[op] * getattr(total, launches) for op, total in self._sums.items()), left_s)
            for launches in ("intervals", "least", "most")
        )
        return Forecast(intervals_s=intervals, least_s=least, most_s=most)


def launch_plan(
    plan: Plan,
    operation: Operation,
    places: Sequence[Place],
    sizes: Sequence[int],
    index: int,
    purpose: Purpose,
    printed: Iterable[Operation] = (),
) -> LaunchPlan:
    """Launch number `index` of a run; its seed follows from the run's seed and the number alone.

    Parameters
    ----------
    places
        Who is measured: one place, or several pairs at the same time. Over sockets it is the first of these, while the
        others do the same.
    printed
        What the operation, a command, prints.
    """
    accompanied = operation.name in plan.workload.accompanied
    measured, company = (places[:1], places[1:]) if accompanied else (places, [])
    return LaunchPlan(
        id=f"{index:05d}",
        index=index,
        op=operation.name,
        asked=operation.asked,
        transport=operation.transport,
        command=operation.command,
        prints={figure.name: figure.match for figure in printed},
        place=tuple(node for place in measured for node in place),
        pairs=[(first, second) for first, second in measured] if len(measured) > 1 else [],
        beside=free_pairs(plan, operation, places[0])
        if operation.beside_traffic
        else [(first, second) for first, second in company],
        beside_op=(operation.asked or operation.name) if company else "",
        setting="default",
        purpose=purpose,
        sizes_bytes=sorted(sizes),
        sweeps=plan.workload.sweeps,
        visit_us=plan.workload.visit_us,
        reference_us=plan.workload.reference_us,
        directory=plan.workload.directory,
        thread_level=plan.workload.thread_level,
        seed=random.Random(f"{plan.seed}:{index}").getrandbits(63),  # noqa: S311 - reproducible, not secret
    )


def free_pairs(plan: Plan, operation: Operation, place: Place) -> list[Pair]:
    """Return who streams to whom of the nodes that a place leaves free and that can take part.

    Two by two in the order of the run; all to the first one (incast); or each to each other one (all-to-all).
    """
    out = {absent.node for absent in plan.left_out if operation.name in absent.ops}
    everybody = dict.fromkeys(node for other in plan.workload.places for node in other)
    free = [node for node in everybody if node not in out and node not in place]
    if operation.beside_pattern == "incast":
        return [(node, free[0]) for node in free[1:]]
    if operation.beside_pattern == "all-to-all":
        return [(first, second) for first in free for second in free if first != second]
    return list(zip(free[::2], free[1::2], strict=False))


def base_ladders(plan: Plan) -> dict[str, list[int]]:
    """Sizes each operation of the plan begins with."""
    return {part.op: part.sizes_bytes for part in plan.workload.parts}


def ladders(plan: Plan, results: Sequence[LaunchResult]) -> dict[str, list[int]]:
    """Sizes of each operation, those that scouts of the run have added included."""
    sizes = {op: set(base) for op, base in base_ladders(plan).items()}
    for result in results:
        if result.launch.op in sizes:
            sizes[result.launch.op] |= set(result.launch.sizes_bytes)
    return {op: sorted(all_sizes) for op, all_sizes in sizes.items()}


def next_scout_sizes(
    plan: Plan, base: Sequence[int], op: str, results: Sequence[LaunchResult]
) -> list[int] | None:
    """Sizes the next scout of an operation measures; None when the ladder is settled.

    A scout measures the new sizes and their neighbours, so that a step is judged within one launch.
    """
    if plan.ladder != ladder.ADAPTIVE:
        return None
    scouts = [r for r in results if r.launch.op == op and r.launch.purpose == "scout"]
    if not scouts:
        return list(base)
    known = set(base).union(*(r.launch.sizes_bytes for r in scouts))
    if len(scouts) >= MAX_SCOUTS or len(known) - len(base) >= MAX_ADDED or not scouts[-1].samples:
        return None
    times, noise = curve(scouts[-1].samples)
    # An operation may take whole elements only.
    added = [size for size in ladder.refine(times, noise, gap=math.gcd(*base) or 1) if size not in known]
    added = added[: MAX_ADDED - (len(known) - len(base))]
    return with_neighbours(added, sorted(known)) if added else None


def with_neighbours(added: Sequence[int], known: Sequence[int]) -> list[int]:
    """Return the new sizes with those that judge them: two known ones on either side, near and half as far.

    The near ones are the interval that was divided; the far ones lie as far away as it was wide.
    """
    wanted = set(added)
    for size in added:
        low = max(k for k in known if k < size)
        high = min(k for k in known if k > size)
        width = (high + 1) / (low + 1)
        before = [k for k in known if (low + 1) / (k + 1) >= width]
        after = [k for k in known if (k + 1) / (high + 1) >= width]
        wanted |= {low, high, *before[-1:], *after[:1]}
    return sorted(wanted)


def curve(samples: Sequence[Sample]) -> tuple[dict[int, float], dict[int, float]]:
    """Time [s] and its relative standard error by size, from the visits of one launch."""
    times, noise = {}, {}
    for sample in samples:
        medians = sample.batch_medians_ns
        middle = statistics.median(medians) if medians else 0.0
        if middle <= 0:
            continue
        spread = 1.4826 * statistics.median(abs(m - middle) for m in medians)
        times[sample.cell.size_bytes] = middle * 1e-9 / sample.divisor
        noise[sample.cell.size_bytes] = 1.2533 * spread / middle / math.sqrt(len(medians))
    return times, noise


def next_block(
    plan: Plan, among: Sequence[Stream], progress: Mapping[Stream, Progress], block: int
) -> list[Stream]:
    """Streams to launch in the next block, each once, in random order.

    Those that lack launches for an interval come before those that only narrow theirs.

    Parameters
    ----------
    among
        Streams that are not done.
    """
    behind = [stream for stream in among if not has_interval(plan, progress.get(stream))]
    block_streams = behind or list(among)
    random.Random(f"{plan.seed}:block:{block}").shuffle(block_streams)  # noqa: S311 - reproducible, not secret
    return block_streams


def jobs(
    plan: Plan, block: Sequence[Stream], company: Sequence[Stream], failing: Callable[[Stream], bool]
) -> list[list[Stream]]:
    """Divide a block into the streams that are measured at the same time.

    They have no node in common. Each job is filled up with pairs that have had their turn, so that the company of
    a pair is always as large as it can be. One that failed is measured alone: it would take the others with it.

    Parameters
    ----------
    company
        Streams that a job may be filled up with.
    failing
        Whether the last launch of a stream failed.
    """
    if not plan.workload.at_once:
        return [[stream] for stream in block]
    #: Place in the block of its first stream, and the job.
    found: list[tuple[int, list[Stream]]] = []
    by_op: dict[str, list[int]] = {}
    for index, stream in enumerate(block):
        if failing(stream):
            found.append((index, [stream]))
        else:
            by_op.setdefault(stream[0], []).append(index)
    for op, able in by_op.items():
        together = [stream for stream in company if stream[0] == op and not failing(stream)]
        everybody = {node for _, place in together for node in place}
        others: dict[str, list[Stream]] | None = None
        if op in plan.workload.accompanied:
            others = _by_node(together)
            # Each has a launch of its own, with company.
            found += [(index, _filled([block[index]], others)) for index in able]
            continue
        for group in disjoint_rounds.disjoint([block[index][1] for index in able]):
            job = [block[able[place]] for place in group]
            if sum(len(place) for _, place in job) < len(everybody):
                others = others if others is not None else _by_node(together)
                job = _filled(job, others)
            found.append((able[group[0]], job))
    return [job for _, job in sorted(found, key=lambda one: one[0])]


def _by_node(streams: Sequence[Stream]) -> dict[str, list[Stream]]:
    others: dict[str, list[Stream]] = {}
    for stream in streams:
        for node in stream[1]:
            others.setdefault(node, []).append(stream)
    return others


def _filled(job: list[Stream], others: Mapping[str, Sequence[Stream]]) -> list[Stream]:
    """Return a job with others that have no node in common with it or with each other, for each node that is free."""
    busy = {node for _, place in job for node in place}
    for node in [node for node in others if node not in busy]:
        for stream in others[node]:
            if busy.isdisjoint(stream[1]):
                job.append(stream)
                busy.update(stream[1])
                break
    return job


def alone(among: Sequence[Stream]) -> list[Stream]:
    """Return the streams that have a node in common with every other one of their operation."""
    total = Counter(op for op, _ in among)
    at = Counter((op, node) for op, place in among for node in set(place))
    both = Counter((op, frozenset(place)) for op, place in among)

    def touching(op: str, place: Place) -> int:
        nodes = frozenset(place)
        return sum(at[op, node] for node in nodes) - (len(nodes) - 1) * both[op, nodes]

    return [(op, place) for op, place in among if touching(op, place) == total[op]]


def width(plan: Plan, op: str) -> float:
    """How many streams of an operation one launch measures, on average."""
    mine = [stream for stream in streams(plan) if stream[0] == op]
    made = jobs(plan, mine, [], lambda _: False)
    return len(mine) / len(made) if made else 1.0


def streams(plan: Plan) -> list[Stream]:
    """Every operation between all that can take part in it, in the order of the plan."""
    out: dict[str, set[str]] = {part.op: set() for part in plan.workload.parts}
    for absent in plan.left_out:
        for op in absent.ops:
            out.setdefault(op, set()).add(absent.node)
    return [
        (part.op, place)
        for part in plan.workload.parts
        for place in part.places
        if out[part.op].isdisjoint(place)
    ]


def has_interval(plan: Plan, progress: Progress | None) -> bool:
    """Whether a stream has the launches that an interval takes."""
    return progress is not None and progress.launches >= plan.min_launches


def enough(plan: Plan, progress: Progress | None) -> bool:
    """Whether a stream needs no more launches."""
    if progress is None or progress.launches < plan.min_launches:
        return False
    if progress.launches >= plan.max_launches or _hopeless(plan, progress):
        return True
    return precise(plan, progress) and progress.untested == 0


def precise(plan: Plan, progress: Progress | None) -> bool:
    """Whether a stream is as precise as was wanted."""
    return progress is not None and progress.missing == 0 and progress.clean >= plan.min_launches


def _hopeless(plan: Plan, progress: Progress) -> bool:
    """Whether even several times the largest number of launches would not do: time is better spent elsewhere.

    That is so where launches fall into groups that lie further apart than the precision.
    """
    tried = progress.launches >= HOPELESS_AFTER * plan.min_launches
    return tried and progress.launches + progress.missing > HOPELESS * plan.max_launches

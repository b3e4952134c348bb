"""How far a soak has come: kept in a file, so that it goes on where it was ended; and what it says in the end."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

GOAL = 100_000
DAYS_GOAL = 30
#: What a gauge may be at the end of a soak, of what it was at the beginning.
GROWTH_GOAL = 1.1
#: Gauges that grow up to a limit of their own, and that limit [bytes]; the file in work is one change or line longer.
LIMITS = {"log-bytes": 2.1 * 262_144, "archive-bytes": 2.1 * 4_194_304}
#: What is smaller than this is counted as so large: half of nothing is no growth.
_LEAST = {"bytes": 4096.0, "KiB": 1024.0}
#: Descriptors and processes come and go by one or two.
_LEAST_COUNT = 20.0
#: Memory that the node's and the bench's own processes take for themselves while they become warm: shown, not judged.
NOT_OF_WULF = ("memory-journald-KiB", "memory-tuned-KiB", "descriptors-journald")
#: A journal has all that it keeps one by one after so many looks; growth is judged from there on.
_WARM_LOOKS = 4


_Kept = TypeVar("_Kept", "Progress", "Days")


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison of the node with its original state that found no difference."""

    cycles: int
    #: Changes and undos up to then.
    operations: int
    #: Raised anew for every session: which one.
    session: int
    gauges: dict[str, float]
    #: Of nodes side by side: which one.
    node: int = 0


class Days(msgspec.Struct, frozen=True, kw_only=True):
    """What 30 days of watch brought."""

    days: int
    measured: int
    skipped: int
    failed: int
    alarms: list[str]
    #: Alarms of how fast a node computes: virtual nodes have it from the machine they share with others.
    of_the_machine: list[str] = []
    #: Size of the database after each day [bytes].
    database_bytes: list[int]
    gauges: list[dict[str, float]]
    installed: int
    #: What was left by installing and removing; empty when nothing was.
    left: list[str]
    seconds: float


class Progress(msgspec.Struct, kw_only=True):
    """All that is kept of a soak."""

    seed: int
    #: Cycles that were run and compared.
    cycles: int = 0
    sessions: int = 0
    seconds: float = 0.0
    done: dict[str, int] = {}
    looks: list[Look] = []
    #: What was different or wrong, in words.
    wrong: list[str] = []

    @property
    def operations(self) -> int:
        """Changes and undos after which no difference was found."""
        return self.done.get("changes", 0) + self.done.get("undos", 0)

    def credit(self, done: Counter[str], look: Look, seconds: float) -> None:
        """Count what was compared just now."""
        self.done = dict(Counter(self.done) + done)
        self.cycles, self.seconds = look.cycles, self.seconds + seconds
        self.looks.append(look)

    def left_s(self, goal: int) -> float:
        """Return how long the rest will take at the speed so far [s]."""
        if not self.operations:
            return 0.0
        return max(0, goal - self.operations) * self.seconds / self.operations


def read(directory: Path, seed: int) -> Progress:
    """Return what was kept of the changes, or a beginning."""
    return _read(directory / "progress.json", Progress) or Progress(seed=seed)


def read_days(directory: Path) -> Days | None:
    """Return what was kept of the watch; None where it was not yet run."""
    return _read(directory / "watch.json", Days)


def _read(path: Path, kind: type[_Kept]) -> _Kept | None:
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.DecodeError as error:
        raise SystemExit(f"bench: {path}: {error}: remove it, or choose another --from=DIR") from None


def together(parts: Sequence[Progress]) -> Progress:
    """Return what several nodes that were at work side by side have brought.

    Their looks are kept apart as those of sessions are, as each node has processes of its own.
    """
    sessions = sorted({(number, look.session) for number, part in enumerate(parts) for look in part.looks})
    place = {session: number for number, session in enumerate(sessions, start=1)}
    return Progress(
        seed=parts[0].seed,
        cycles=sum(part.cycles for part in parts),
        sessions=len(sessions),
        seconds=max(part.seconds for part in parts),
        done=dict(sum((Counter(part.done) for part in parts), Counter[str]())),
        looks=[
            msgspec.structs.replace(look, session=place[number, look.session], node=number)
            for number, part in enumerate(parts)
            for look in part.looks
        ],
        wrong=[wrong for part in parts for wrong in part.wrong],
    )


def write(directory: Path, kept: Progress | Days) -> None:
    """Keep it, as a whole or not at all."""
    path = directory / ("watch.json" if isinstance(kept, Days) else "progress.json")
    new = path.with_suffix(".new")
    new.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=1))
    new.rename(path)


def growth(looks: Sequence[Look]) -> dict[str, float]:
    """Return for each gauge how many times its size of the beginning it has at the end.

    The medians of the last and of the first third of the looks, after the first ones; of each session apart, as its
    processes are others, and of them the worst. Of nodes side by side it is the mean: what the journal keeps at a time
    is drawn, and of several nodes the worst would tell how often was drawn. A gauge with a limit of its own is compared
    with that, on each node.
    """
    of_nodes: dict[str, list[float]] = {}
    for node in sorted({look.node for look in looks}):
        for name, ratio in _growth_of_node([look for look in looks if look.node == node]).items():
            of_nodes.setdefault(name, []).append(ratio)
    return {
        name: max(ratios) if name in LIMITS else statistics.fmean(ratios) for name, ratios in of_nodes.items()
    }


def _growth_of_node(looks: Sequence[Look]) -> dict[str, float]:
    found: dict[str, float] = {}
    sessions = {look.session for look in looks}
    for session in sessions:
        some = [look.gauges for look in looks if look.session == session][_WARM_LOOKS:]
        if len(some) < 2 * _WARM_LOOKS:
            continue
        third = len(some) // 3
        for name in some[0].keys() & some[-1].keys():
            first, last = ([one[name] for one in part] for part in (some[:third], some[-third:]))
            if name in LIMITS:
                ratio = max(last) / LIMITS[name]
            else:
                least = _least(name)
                ratio = max(statistics.median(last), least) / max(statistics.median(first), least)
            found[name] = max(ratio, found.get(name, 0.0))
    return found


def _least(name: str) -> float:
    return next((least for unit, least in _LEAST.items() if name.endswith(unit)), _LEAST_COUNT)


def worst(ratios: Mapping[str, float]) -> tuple[str, float]:
    """Return the gauge that grew most, of those that are judged."""
    judged = {name: ratio for name, ratio in ratios.items() if name not in NOT_OF_WULF}
    name = max(judged, key=lambda one: judged[one], default="")
    return name, judged.get(name, 0.0)


def line_of(progress: Progress, days: Days | None, goal: int = GOAL) -> tuple[bool, str]:
    """Return whether the goal is reached, and the last line."""
    name, ratio = worst(growth(progress.looks))
    settings = progress.done.get("settings changed", 0) + progress.done.get("settings put back", 0)
    grown = f"{name}:{ratio:.3f}" if name else "not-known-yet"
    passed = progress.operations >= goal and not progress.wrong and bool(name) and ratio <= GROWTH_GOAL
    passed = (
        passed
        and days is not None
        and days.measured >= DAYS_GOAL
        and not (days.failed or days.left or days.alarms)
    )
    watched = (
        "none"
        if days is None
        else f"{days.measured}-of-{days.days}-alarms:{len(days.alarms)}-left:{len(days.left)}"
    )
    return passed, (
        f"soak value={progress.operations} (settings:{settings},differences:{len(progress.wrong)},growth:{grown},"
        f"days-of-watch:{watched}) goal={goal} (differences:0,growth:{GROWTH_GOAL},days-of-watch:{DAYS_GOAL}) "
        f"{'pass' if passed else 'short'}"
    )

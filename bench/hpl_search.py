"""The search of `wulf bench hpl` on a space of settings that was measured once, each at two orders, several times.

Of every seed: the rate of the setting that the search chooses ÷ that of the best of all, within a tenth of the time
that launching every setting once at the large order takes. Random search has the same time, and takes the quickest that
it saw.

``--record PROGRAM [REPEATS [BEST]]`` measures the space on this machine, in random order; launches beside which
something else ran are made again. It goes on where it stopped. With BEST only so many of the settings that were the
quickest so far: of settings launched a few times each the best is the luckiest, so those near it need more launches.
"""

from __future__ import annotations

import itertools
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from wulf.base import hpl_output
from wulf.tools.hpl import program as hpl
from wulf.tools.hpl.search import Order, Search, Values

SPACE = Path(__file__).resolve().parents[1] / "tests" / "golden" / "hpl" / "space.jsonl"
ORDERS: dict[Order, int] = {"small": 2000, "large": 5000}
SHARE, GOAL, REACHED = 0.10, 0.98, 0.95
SEEDS, QUICK_SEEDS = 200, 20
VALUES: dict[str, tuple[hpl.Layout | int, ...]] = {
    "layout": (hpl.Layout(1, 1, 2), hpl.Layout(1, 2, 1), hpl.Layout(2, 1, 1)),
    "nb": (32, 64, 96, 128, 192, 256),
    "bcast": (1, 3, 4),
    "depth": (0, 1),
    "swap": (0, 2),
}
#: Of the machine that other work may take during a launch, and before it [CPUs, share of all].
DISTURBED, BUSY = 0.12, 0.2


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of the space: both orders one after the other."""

    repeat: int
    #: Number of the setting, in the order of `settings`.
    setting: int
    small_s: float
    large_s: float
    #: What a launch of one order alone takes from start to end [s].
    small_wall_s: float
    large_wall_s: float


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """A setting's times at each order, and what each launch takes, all repeats."""

    times_s: dict[Order, list[float]]
    walls_s: dict[Order, list[float]]


def settings() -> list[Values]:
    """Return all settings, in an order that stays."""
    return [dict(zip(VALUES, values, strict=True)) for values in itertools.product(*VALUES.values())]


def stored(path: Path = SPACE) -> list[Launch]:
    """Return the launches that are stored."""
    return [msgspec.json.decode(line, type=Launch) for line in path.read_bytes().splitlines()]


def measured(launches: Sequence[Launch]) -> list[Measured]:
    """Return what is known of each setting.

    Raises
    ------
    SystemExit
        A setting was not measured.
    """
    found = []
    for place in range(len(settings())):
        mine = [launch for launch in launches if launch.setting == place]
        if not mine:
            raise SystemExit(f"{SPACE}: setting {place} was not measured: --record PROGRAM")
        found.append(
            Measured(
                times_s={"small": [one.small_s for one in mine], "large": [one.large_s for one in mine]},
                walls_s={
                    "small": [one.small_wall_s for one in mine],
                    "large": [one.large_wall_s for one in mine],
                },
            )
        )
    return found


def searched(space: Sequence[Measured], budget_s: float, seed: int) -> tuple[int | None, float]:
    """Return what the search chooses, and the time that it took [s]; every launch is one of those stored."""
    rng, search, spent = random.Random(seed), Search(settings(), budget_s, seed), 0.0
    while (proposal := search.propose()) is not None:
        time_s, wall_s = _draw(space[proposal.index], proposal.order, rng)
        if proposal.limit_s is not None and time_s > proposal.limit_s:
            time_s, wall_s = proposal.limit_s, wall_s - (time_s - proposal.limit_s)
        search.add(proposal.index, proposal.order, time_s, wall_s)
        spent += wall_s
    return search.best(), spent


def at_random(space: Sequence[Measured], budget_s: float, seed: int) -> tuple[int | None, float]:
    """Return the quickest of settings that were launched in random order at the large order until the time was over."""
    rng, spent = random.Random(seed), 0.0
    best: tuple[float, int] | None = None
    for place in rng.sample(range(len(space)), len(space)):
        time_s, wall_s = _draw(space[place], "large", rng)
        if spent + wall_s > budget_s:
            break
        spent += wall_s
        best = min(best or (math.inf, -1), (time_s, place))
    return (best[1] if best else None), spent


def _draw(one: Measured, order: Order, rng: random.Random) -> tuple[float, float]:
    place = rng.randrange(len(one.times_s[order]))
    return one.times_s[order][place], one.walls_s[order][place]


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--record"]:
        return record(arguments[1], *map(int, arguments[2:4]))
    space = measured(stored())
    large = [statistics.median(one.times_s["large"]) for one in space]
    whole = sum(statistics.median(one.walls_s["large"]) for one in space)
    scatter = statistics.median(
        statistics.pstdev([math.log(value) for value in one.times_s["large"]]) for one in space
    )
    print(f"{len(space)} settings, {len(stored())} launches, which scatter by {scatter:.1%}")
    print(
        f"best {hpl_output.operations(ORDERS['large']) / min(large) / 1e9:.1f} GFLOPS, "
        f"worst {hpl_output.operations(ORDERS['large']) / max(large) / 1e9:.1f}; all once: {whole:.0f} s"
    )
    seeds = QUICK_SEEDS if "--quick" in arguments else SEEDS
    rows = {
        name: [_share(how(space, SHARE * whole, seed), large, SHARE * whole) for seed in range(seeds)]
        for name, how in (("search", searched), ("random", at_random))
    }
    for name, row in rows.items():
        low, middle = np.quantile(row, [0.05, 0.5])
        good = np.mean(np.array(row) >= GOAL)
        print(
            f"  {name}: median {middle:.1%}, worst 5 % {low:.1%}, {good:.0%} of {seeds} seeds at {GOAL:.0%} or more"
        )
    middle = float(np.median(rows["search"]))
    share = float(np.mean(np.array(rows["search"]) >= GOAL))
    passed = middle >= GOAL and share >= REACHED
    print(
        f"hpl-search value={middle:.3f},{share:.2f} of {seeds} seeds goal={GOAL:.2f},{REACHED:.2f} "
        f"{'pass' if passed else 'short'}"
    )
    return 0 if passed else 1


def _share(found: tuple[int | None, float], large: Sequence[float], budget_s: float) -> float:
    place, spent = found
    if place is None or spent > budget_s * 1.02:
        return 0.0
    return min(large) / large[place]


def record(program: str, repeats: int = 3, best: int = 0) -> int:
    """Measure what is missing of the space, or of the best settings so far, and store it."""
    done = {(one.repeat, one.setting) for one in stored()} if SPACE.exists() else set()
    places = list(range(len(settings())))
    if best:
        large = [statistics.median(one.times_s["large"]) for one in measured(stored())]
        places = sorted(places, key=large.__getitem__)[:best]
    with SPACE.open("ab") as file, tempfile.TemporaryDirectory() as directory:
        for repeat in range(repeats):
            left = [place for place in places if (repeat, place) not in done]
            random.Random(repeat).shuffle(left)
            while left:
                launch = _launch(program, Path(directory), repeat, left[0])
                if launch is None:
                    left.append(left.pop(0))
                    continue
                file.write(msgspec.json.encode(launch) + b"\n")
                file.flush()
                left.pop(0)
                print(f"repeat {repeat}: {len(left)} left", flush=True)
    return 0


def _launch(program: str, directory: Path, repeat: int, place: int) -> Launch | None:
    """Launch a setting at both orders; None when something else ran beside it."""
    chosen = hpl.setting(settings()[place])
    (directory / "HPL.dat").write_text(hpl.hpl_dat(list(ORDERS.values()), chosen), encoding="utf-8")
    argv = ["mpirun.openmpi", "-np", str(chosen.ranks), "--bind-to", "none", program]
    env = {**os.environ, **hpl.environment(chosen), "OMPI_MCA_mpi_yield_when_idle": "1"}
    env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    while _busy(0.15) > BUSY:
        time.sleep(0.05)
    begin, others, lines = time.monotonic(), _others_s(), []
    with subprocess.Popen(argv, cwd=directory, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append((time.monotonic() - begin, line.rstrip("\n")))
    end = time.monotonic() - begin
    if (_others_s() - others) / end > DISTURBED:
        return None
    output = hpl_output.parse("\n".join(line for _, line in lines))
    small, large = output.rows
    if not (small.passed and large.passed):
        raise SystemExit(f"{program}: a result is wrong at {chosen.shown}")
    at = [lines[row.line - 1][0] for row in (small, large)]
    # The start is that of both; matrix, solution and check are each order's own.
    return Launch(
        repeat=repeat,
        setting=place,
        small_s=small.seconds,
        large_s=large.seconds,
        small_wall_s=at[0] + end - at[1],
        large_wall_s=at[0] - small.seconds + end - at[0],
    )


def _jiffies() -> tuple[float, float]:
    words = [
        int(word) for word in Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    ]
    return float(sum(words)), float(sum(words) - words[3] - words[4])


def _busy(seconds: float) -> float:
    """Return the share of all CPUs that is in use now."""
    before = _jiffies()
    time.sleep(seconds)
    after = _jiffies()
    return (after[1] - before[1]) / max(after[0] - before[0], 1.0)


def _others_s() -> float:
    """Return the CPU time that everything but the launches has taken so far [s]."""
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    return _jiffies()[1] / os.sysconf("SC_CLK_TCK") - own.ru_utime - own.ru_stime


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

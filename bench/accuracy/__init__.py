"""Predicted against measured, one change of the network at a time, in a virtual cluster of two nodes.

Eight programs, traced in each launch: a token ring, a stencil, sums with a small exchange, a transpose, exchanges of
several messages just above the eager limit, the heat equation with one column and with many, a task farm. Four changes
of a network of 1 Gbit/s: 100 Mbit/s, an MTU of 600 B, a packet filter of 300 rules, frames held back for 100 us. In
each round every network comes once, in random order: with one launch of every operation of a calibration, and one of
each program. So what changes slowly on the machine is the same for all of them.

Predicted is the program's own time on the network as it is, changed as the two calibrations say (`@NETWORK`), and for
the rate and the delay as the calibration of the network as it is says alone (what one asks before buying: a tenth of
the bandwidth, a latency that is longer by what pings differ). Judged are single launches against the interval for one
launch, and medians (with their own interval) against that of a usual one. Goals: at least 93 % inside, median error at
most 3 % on a calm machine; launches during which some process waited for a processor are told apart, too. What the
model alone says of the network as it is, without the program's own time, is printed beside it.

The nodes are those of the virtual cluster that is up (`wulf lab up --vm --kvm`: virtual machines, whose own kernels
hold frames back, so that no process takes the CPU for it), or two are raised.

`--rounds=N` (10), `--quick` (3 rounds of three programs and three networks); `--keep=DIRECTORY` keeps what is measured;
`--from=DIRECTORY` judges that again, and measures nothing.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.accuracy import calibrating, judging
from bench.accuracy.launching import Launch, Starter
from bench.accuracy.networks import BASE, NAMES, Networks
from bench.common import finish, pair
from wulf.base.native import build
from wulf.node import lab

ROUNDS = 10
QUICK_ROUNDS = 3
QUICK_NETWORKS = (BASE, "100mbit", "delay100us")
QUICK_PROGRAMS = ("ring", "stencil", "heat-many")


@dataclass(frozen=True)
class Bench:
    """What rounds are made with."""

    network: Networks
    starter: Starter
    #: The MPI library's.
    compiler: str


def programs(starter: Starter) -> dict[str, list[str]]:
    """Put all programs on the nodes; return the words that start each: some tenths of a second."""
    steps = starter.built(Path(__file__).parents[1] / "native" / "steps.c")
    heat, farm = starter.shipped("wulf-heat"), starter.shipped("wulf-farm")
    return {
        "ring": [steps, "ring", "2000"],
        "stencil": [steps, "stencil", "600"],
        "solver": [steps, "solver", "1500"],
        "transpose": [steps, "transpose", "100"],
        "swap": [steps, "swap", "300"],
        "heat-one": [heat, "--rows", "20000", "--columns", "1", "--steps", "5000"],
        "heat-many": [heat, "--rows", "64", "--columns", "1024", "--steps", "2000"],
        "farm": [farm, "--tasks", "1000", "--task-us", "200", "--bytes", "4096"],
    }


def measure(directory: Path, rounds: int, networks: Sequence[str], wanted: Sequence[str] = ()) -> None:
    """Measure all networks and programs in turn, and store every launch at once."""
    mpi = build.find_mpi("openmpi")[0]
    with pair() as nodes:
        raised = lab.current()
        assert raised is not None
        network, starter = Networks(nodes, raised), Starter(nodes, mpi)
        words = {name: one for name, one in programs(starter).items() if not wanted or name in wanted}
        try:
            rounds_of(directory, rounds, networks, words, Bench(network, starter, mpi.compiler))
        finally:
            network.close()


def rounds_of(
    directory: Path,
    rounds: int,
    networks: Sequence[str],
    words: Mapping[str, list[str]],
    bench: Bench,
) -> None:
    """Go through all networks, and on each through a calibration and all programs, in random order."""
    order = random.Random(1)
    for name in ("runs", "traces"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    for number in range(rounds):
        begin = time.monotonic()
        for state in order.sample(list(networks), len(networks)):
            bench.network.become(state)
            ping = judging.Ping(round=number, network=state, one_way_s=bench.network.one_way_s())
            append(directory / judging.PINGS, ping)
            run = directory / "runs" / f"{state}-{number}"
            calibrating.measure(bench.network.nodes, run, bench.compiler)
            for program in order.sample(list(words), len(words)):
                trace = f"traces/{program}-{state}-{number}.wtrace"
                time_s, waited = bench.starter.run(words[program], directory / trace)
                launch = Launch(
                    round=number,
                    network=state,
                    program=program,
                    time_s=time_s,
                    waited=waited,
                    trace=trace if state == BASE else "",
                )
                if state != BASE:
                    (directory / trace).unlink()
                append(directory / judging.LAUNCHES, launch)
        print(f"  round {number + 1} of {rounds}: {time.monotonic() - begin:.0f} s", flush=True)


def append(path: Path, record: msgspec.Struct) -> None:
    """Write a record as a line of its own."""
    with path.open("ab") as file:
        file.write(msgspec.json.encode(record) + b"\n")


def judge(directory: Path) -> int:
    """Print the table of what a directory holds, and the last line."""
    measured = judging.load(directory)
    found = list(judging.rows(measured))
    for row, _ in found:
        print(judging.line(row))
    alone = [row for row, _ in judging.as_it_is(measured)]
    for program in measured.programs:
        ratios = [row.error + 1 for row in alone if row.program == program]
        inside = sum(row.launches_inside for row in alone if row.program == program)
        print(
            f"  {program:10s} as it is: model alone ÷ own time {statistics.median(ratios):.3f} "
            f"({min(ratios):.3f} to {max(ratios):.3f}), {inside} of {len(ratios)} launches inside"
        )
    disturbed = sum(one.waited > judging.DISTURBED for one in measured.launches)
    print(f"  {disturbed} of {len(measured.launches)} launches were disturbed; all count")
    calibrated = [row for row, is_calibrated in found if is_calibrated]
    said = [row for row, is_calibrated in found if not is_calibrated]
    print("  both networks calibrated", *judging.apart(calibrated), sep="\n  ")
    return finish("accuracy", [*judging.judged(calibrated, ""), *judging.judged(said, "-by-base-alone")])


def option(arguments: Sequence[str], name: str) -> str | None:
    """Return what an option says."""
    return next((one.partition("=")[2] for one in arguments if one.startswith(f"--{name}=")), None)


def how_many(arguments: Sequence[str], usual: int) -> int:
    """Return how many rounds are wanted: of one it is not known how launches differ."""
    wanted = int(option(arguments, "rounds") or usual)
    if wanted < 2:
        raise SystemExit(f"bench: --rounds={wanted}: two at least")
    return wanted


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    stored = option(arguments, "from")
    if stored is not None:
        return judge(Path(stored))
    is_quick = "--quick" in arguments
    rounds = how_many(arguments, QUICK_ROUNDS if is_quick else ROUNDS)
    with tempfile.TemporaryDirectory(prefix="wulf-accuracy-") as name:
        directory = Path(option(arguments, "keep") or name)
        if is_quick:
            measure(directory, rounds, QUICK_NETWORKS, QUICK_PROGRAMS)
        else:
            measure(directory, rounds, NAMES)
        return judge(directory)

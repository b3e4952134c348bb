"""Whole programs on a network that is predicted before they are measured there, in a virtual cluster of two nodes.

LAMMPS with three inputs, HPC Challenge (all its parts, small), the programs and kernels that come with wulf. In each
round the network is one of 1 Gbit/s first: a launch of every operation of a calibration, and every program once,
traced, in random order. Then it is one of 100 Mbit/s: a calibration, and of every program the prediction is written
down, from what was measured until then; only after that it is launched. Predicted is with both networks calibrated
(`@100mbit`), and as one asks before there is such a network (`bandwidth=x0.1`). The first three rounds only teach how
launches differ. Goals: at least 93 % of launches inside the interval for one launch, median error at most 3 %.

`--rounds=N` (10), `--quick` (4 rounds of four programs); `--keep=DIRECTORY` keeps what is measured, and goes on there
where it was ended; `--from=DIRECTORY` only judges it (`--anew`: predicts again from what was measured before each
launch, where the program has changed since); `--write` puts the table into docs/explanation/prediction.md.
The nodes are those of the virtual cluster that is up (`wulf lab up --vm`: virtual machines with real drivers), or two
are raised.
"""

from __future__ import annotations

import platform
import random
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path

import msgspec

from bench.accuracy import append, calibrating, how_many, option
from bench.accuracy.judging import DISTURBED
from bench.accuracy.launching import Launch, Starter
from bench.accuracy.networks import RATE
from bench.common import PAIR, Figure, Pair, finish, pair
from wulf.base import store
from wulf.base.errors import WulfError
from wulf.base.native import build
from wulf.base.records import Predicted
from wulf.base.units import format_share, format_time
from wulf.node.replay import asking, predicting
from wulf.tools.hpcc import program as hpcc

ROUNDS, QUICK_ROUNDS = 10, 4
#: Rounds whose launches are not judged: so many say how launches differ.
TAUGHT = 3
QUICK_PROGRAMS = ("heat", "is", "lammps melt", "hpcc")
BASE, CHANGED = "1gbit", "100mbit"
BEFORE = "bandwidth=x0.1"
INSIDE, ERROR = 0.93, 0.03
LAUNCHES, SAID, DONE = "launches.jsonl", "said.jsonl", "done.txt"
PAGE = Path(__file__).parents[1] / "docs/explanation/prediction.md"
BEGIN, END = "<!-- bench held: begin -->\n", "<!-- bench held: end -->\n"

_ATOMS = """units lj
atom_style {style}
{lattice}
mass * 1.0
velocity all create {temperature} 87287 loop geom
{forces}
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
run {steps}
"""
_BOX = """lattice fcc 0.8442
region box block 0 {size} 0 {size} 0 {size}
create_box 1 box
create_atoms 1 box"""


def _lennard_jones(size: int, temperature: float, steps: int) -> str:
    return _ATOMS.format(
        style="atomic",
        lattice=_BOX.format(size=size),
        temperature=temperature,
        forces="pair_style lj/cut 2.5\npair_coeff 1 1 1.0 1.0 2.5",
        steps=steps,
    )


#: LAMMPS: a crystal that melts; few atoms, whose messages are short; charges, whose forces take Fourier transforms.
INPUTS = {
    "melt": _lennard_jones(size=16, temperature=3.0, steps=100),
    "small": _lennard_jones(size=5, temperature=1.4, steps=2000),
    "charges": _ATOMS.format(
        style="charge",
        lattice=_BOX.format(size=8) + "\nset group all charge 0.5\n"
        "kspace_style pppm 1e-3\nkspace_modify gewald 0.5 mesh 24 24 24\n"
        "set atom 1*1024 charge -0.5",
        temperature=1.0,
        forces="pair_style lj/cut/coul/long 2.5\npair_coeff 1 1 1.0 1.0",
        steps=60,
    ),
}
_SHIPPED = {
    "heat": ("wulf-heat", "--rows", "64", "--columns", "1024", "--steps", "2000"),
    "farm": ("wulf-farm", "--tasks", "1000", "--task-us", "200", "--bytes", "4096"),
    "search": ("wulf-search", "--sequences", "400", "--count", "4"),
    "ep": ("wulf-ep", "--class", "S"),
    "is": ("wulf-is", "--class", "W"),
    "cg": ("wulf-cg", "--class", "S"),
}
_HPCC_SIZE = 300


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What was said of a program's launch before it was made."""

    round: int
    program: str
    how: str
    predicted: Predicted


def programs(starter: Starter, nodes: Pair, directory: Path) -> dict[str, list[str]]:
    """Put all programs on the nodes; return the words that start each. One that the nodes have not is named."""
    found = {name: [starter.shipped(words[0]), *words[1:]] for name, words in _SHIPPED.items()}
    if lmp := _there(nodes, "lmp"):
        for name, text in INPUTS.items():
            place = directory / f"in.{name}"
            place.write_text(text)
            found[f"lammps {name}"] = [lmp, "-log", "none", "-in", nodes.install(place)]
    if program := _there(nodes, "hpcc"):
        place = directory / "hpccinf.txt"
        place.write_text(hpcc.input_file(_HPCC_SIZE, len(PAIR)))
        nodes.install(place)
        found["hpcc"] = ["sh", "-c", f"cd {nodes.directory} && rm -f hpccoutf.txt && exec {program}"]
    return found


def _there(nodes: Pair, name: str) -> str:
    """Return where all nodes have a program; empty where one has not, which is said."""
    for node in PAIR:
        path = nodes.output(["sh", "-c", f"command -v {name} || :"], node=node).strip()
        if not path:
            print(f"  {node} has no {name}: left out", flush=True)
            return ""
    return path


class Measuring:
    """What is measured, step by step: each is noted when it is done, and not repeated."""

    def __init__(self, directory: Path, nodes: Pair, starter: Starter, compiler: str) -> None:
        self.directory, self._nodes, self._starter, self._compiler = directory, nodes, starter, compiler
        for name in ("runs", "traces"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        place = directory / DONE
        self._done = set(place.read_text().splitlines()) if place.exists() else set()

    def round(self, number: int, words: Mapping[str, list[str]]) -> None:
        """Measure on both networks; what is predicted is written down in between."""
        order = random.Random(number)
        for network in (BASE, CHANGED):
            self._become(network)
            self._calibrate(number, network)
            if network == CHANGED:
                self._predict(number, list(words))
            for name in order.sample(list(words), len(words)):
                self._launch(number, network, name, words[name])

    def _become(self, network: str) -> None:
        for node in PAIR:
            self._nodes.output(["sh", "-c", RATE.format(network)], node=node)

    def _is_done(self, step: str) -> bool:
        return step in self._done

    def _note(self, step: str) -> None:
        self._done.add(step)
        with (self.directory / DONE).open("a", encoding="utf-8") as file:
            file.write(f"{step}\n")

    def _calibrate(self, number: int, network: str) -> None:
        step = f"{network}-{number}"
        if self._is_done(step):
            return
        place = self.directory / "runs" / step
        if place.exists():  # it was ended within
            place.rename(place.with_name(f"ended-{step}-{len(list(place.parent.iterdir()))}"))
        calibrating.measure(self._nodes, place, self._compiler)
        self._note(step)

    def _launch(self, number: int, network: str, program: str, words: list[str]) -> None:
        step = f"{number} {network} {program}"
        if self._is_done(step):
            return
        trace = f"traces/{program.replace(' ', '-')}-{network}-{number}.wtrace"
        time_s, waited = self._starter.run(words, self.directory / trace)
        launch = Launch(
            round=number, network=network, program=program, time_s=time_s, waited=waited, trace=trace
        )
        append(self.directory / LAUNCHES, launch)
        self._note(step)

    def _predict(self, number: int, names: Sequence[str]) -> None:
        names = [name for name in names if not self._is_done(f"said {number} {name}")]
        if number < TAUGHT or not names:
            return
        runs = known_before(self.directory, number)
        for name in names:
            for said in predicted(traces_before(self.directory, name, number), runs, number, name):
                append(self.directory / SAID, said)
            self._note(f"said {number} {name}")


def known_before(directory: Path, number: int) -> dict[str, store.Run]:
    """Return both networks as they were calibrated until a round's launches."""
    return {
        network: calibrating.joined(
            [directory / "runs" / f"{network}-{place}" for place in range(number + 1)],
            directory / "joined" / f"{network}-{number}",
        )
        for network in (BASE, CHANGED)
    }


def traces_before(directory: Path, program: str, number: int) -> list[Path]:
    """Return a program's traces on the network as it is until a round."""
    return [
        directory / one.trace
        for one in read_launches(directory)
        if (one.program, one.network) == (program, BASE) and one.round <= number
    ]


def predicted(
    traces: Sequence[Path], runs: Mapping[str, store.Run], number: int, program: str
) -> Iterator[Said]:
    """Yield what is said of a program's next launch on the changed network."""
    request = asking.PredictRequest(
        source=traces[0],
        again=list(traces[1:]),
        run=runs[BASE],
        what_if=f"@{CHANGED},{BEFORE}",
        find_run=runs.__getitem__,
    )
    try:
        found = predicting.predict(request, lambda _: None)
    except WulfError as refusal:
        print(f"  {program}: not predicted: {refusal}", flush=True)
        return
    for why in found.refused.values():
        print(f"  {program}: {why}", flush=True)
    for one in found.scenarios:
        yield Said(round=number, program=program, how=one.name, predicted=one)


def read_launches(directory: Path) -> list[Launch]:
    """Return all launches that were made."""
    return msgspec.json.Decoder(Launch).decode_lines(_kept(directory / LAUNCHES))


def _kept(path: Path) -> bytes:
    """Return what was kept; nothing before anything was."""
    return path.read_bytes() if path.exists() else b""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A program: what was said before each launch, and what it took."""

    program: str
    how: str
    said: list[Predicted]
    times: list[float]
    #: Launches on the network as it is.
    before: list[float]

    @property
    def inside(self) -> int:
        """How many launches lie in the interval for one launch."""
        bounds = [one.launch or one.time for one in self.said]
        return sum(
            (one.low or one.value) <= time <= (one.high or one.value)
            for one, time in zip(bounds, self.times, strict=True)
        )

    @property
    def error(self) -> float:
        """Median of predicted ÷ measured, less one."""
        return (
            statistics.median(one.time.value / time for one, time in zip(self.said, self.times, strict=True))
            - 1
        )

    @property
    def noise(self) -> str:
        """Half the range of the launches ÷ their median; unknown of one."""
        if len(self.times) < 2:
            return "not known"
        return f"±{50 * (max(self.times) - min(self.times)) / statistics.median(self.times):.1f} %"


def read_said(directory: Path) -> list[Said]:
    """Return all that was said before a launch."""
    return msgspec.json.Decoder(Said).decode_lines(_kept(directory / SAID))


def rows(directory: Path, kept: Sequence[Said]) -> list[Row]:
    """Return what a directory holds, with launches that something was said of before."""
    launches = read_launches(directory)
    # What was ended while it was said was said again.
    said = list({(one.round, one.program, one.how): one for one in kept}.values())
    taken = {(one.round, one.program): one for one in launches if one.network == CHANGED}
    found = []
    for program, how in dict.fromkeys((one.program, one.how) for one in said):
        both = [
            (one.predicted, taken[one.round, one.program].time_s)
            for one in said
            if (one.program, one.how) == (program, how) and (one.round, one.program) in taken
        ]
        if both:
            before = [one.time_s for one in launches if (one.program, one.network) == (program, BASE)]
            predictions, times = zip(*both, strict=True)
            found.append(
                Row(program=program, how=how, said=list(predictions), times=list(times), before=before)
            )
    return found


def table(found: Sequence[Row], directory: Path) -> str:
    """Return the table in Markdown, with date, machine and noise."""
    launches = read_launches(directory)
    disturbed = sum(one.waited > DISTURBED for one in launches)
    lines = [
        f"{date.today().isoformat()}, {platform.processor() or platform.machine()}, Linux {platform.release()}; "
        f"{disturbed} of {len(launches)} launches were disturbed by something else, and count. Each launch on "
        f"{CHANGED} was predicted before it was made (`make bench NAME=held`); noise: half the range of its launches.",
        "",
        f"| program | asked | on {BASE} | predicted | measured | noise | error | launches inside |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in found:
        last = row.said[-1].launch or row.said[-1].time
        low, high = last.low or last.value, last.high or last.value
        lines.append(
            f"| {row.program} | `{row.how}` | {format_time(statistics.median(row.before))} "
            f"| {format_time(last.value)} ({format_time(low)} to {format_time(high)}) "
            f"| {format_time(statistics.median(row.times))} | {row.noise} | {format_share(row.error)} "
            f"| {row.inside} of {len(row.times)} |"
        )
    return "\n".join(lines) + "\n"


def written(page: str, text: str) -> str:
    """Return the page with the table in its place."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"bench: {PAGE} has no place for the table: {BEGIN.strip()} … {END.strip()}")
    return f"{head}{BEGIN}\n{text}\n{END}{tail}"


def said_anew(directory: Path) -> Iterator[Said]:
    """Yield of each launch what is predicted today from what was measured before it."""
    launches = read_launches(directory)
    judged = sorted({one.round for one in launches if one.network == CHANGED and one.round >= TAUGHT})
    for number in judged:
        runs = known_before(directory, number)
        for program in sorted({one.program for one in launches}):
            yield from predicted(traces_before(directory, program, number), runs, number, program)


def judge(directory: Path, *, write: bool, anew: bool = False) -> int:
    """Print the table of what a directory holds, put it into the page where that is asked for, and end."""
    found = rows(directory, list(said_anew(directory)) if anew else read_said(directory))
    if not found:
        raise SystemExit(f"bench: {directory}: fewer than {TAUGHT + 1} whole rounds: nothing can be judged")
    text = table(found, directory)
    print(text)
    if write:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")
        print(f"written: {PAGE}")
    return finish("held", [one for how in (f"@{CHANGED}", BEFORE) for one in _figures(found, how)])


def _figures(found: Sequence[Row], how: str) -> Iterator[Figure]:
    asked = [row for row in found if row.how == how]
    if not asked:
        print(f"  nothing was said by {how}")
        return
    label = "" if how.startswith("@") else "-by-base-alone"
    launches = sum(len(row.times) for row in asked)
    outside = 1 - sum(row.inside for row in asked) / launches
    yield Figure(name=f"launches-outside{label}", value=outside, goal=1 - INSIDE)
    yield Figure(
        name=f"median-error{label}", value=statistics.median(abs(row.error) for row in asked), goal=ERROR
    )


def measure(directory: Path, rounds: int, wanted: Sequence[str]) -> None:
    """Make all rounds that are not made yet."""
    mpi = build.find_mpi("openmpi")[0]
    with pair() as nodes, tempfile.TemporaryDirectory(prefix="wulf-held-") as name:
        starter = Starter(nodes, mpi)
        words = programs(starter, nodes, Path(name))
        words = {one: words[one] for one in words if not wanted or one in wanted}
        measuring = Measuring(directory, nodes, starter, mpi.compiler)
        for number in range(rounds):
            measuring.round(number, words)
            print(f"  round {number + 1} of {rounds}", flush=True)


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    write = "--write" in arguments
    if stored := option(arguments, "from"):
        return judge(Path(stored), write=write, anew="--anew" in arguments)
    is_quick = "--quick" in arguments
    rounds = how_many(arguments, QUICK_ROUNDS if is_quick else ROUNDS)
    with tempfile.TemporaryDirectory(prefix="wulf-held-") as name:
        directory = Path(option(arguments, "keep") or name)
        measure(directory, rounds, QUICK_PROGRAMS if is_quick else ())
        return judge(directory, write=write)

"""What settings bring to programs of each class: programs that come with wulf, on virtual nodes, in turn with the base.

Every program is run as `wulf program run` does, told its class by `wulf program characterise`, and measured under every
setting. ``--write`` makes docs/reference/gains.md of it, with the date, the machine, and how busy it was.

Goal: programs of four classes at least, and a decision (better, worse, no difference) for half of the rows.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.studies import raised
from wulf.base.records.profiled import Character, Characters, Gain
from wulf.base.units import format_change
from wulf.node import lab

NODES = 2
PAIRS = 16
QUICK_PAIRS = 8
PAGE = Path(__file__).parents[1] / "docs/reference/gains.md"
SETTINGS = ("nic.mtu=9000", "nic.tso_gso=off", "ompi.mpi_yield_when_idle=1")
CLASSES = 4


class Program(NamedTuple):
    """A program, which takes a second or so."""

    name: str
    shipped: str
    options: str
    ranks: int = NODES


PROGRAMS = (
    Program("small", "heat", "--columns 1 --steps 1000"),
    Program("large", "heat", "--columns 100000 --rows 16 --steps 50"),
    Program("mixed", "heat", "--columns 1000 --steps 200"),
    Program("tasks", "farm", "--tasks 1000 --task-us 50"),
    Program("sequences", "search", "--sequences 200"),
    Program("computes", "ep", "--class S"),
    Program("exchanges", "is", "--class W"),
    Program("gradient", "cg", "--class S"),
)


def wulf(place: Path, *words: str) -> str:
    """Run wulf on the virtual nodes; return what it printed."""
    argv = [sys.executable, "-m", "wulf.face.cli.main", *words]
    env = {**os.environ, "WULF_RUNS": str(place / "runs")}
    done = subprocess.run(argv, cwd=place, env=env, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(f"bench: wulf {' '.join(words)} ended with exit code {done.returncode}")
    return done.stdout


def characters(
    place: Path, programs: tuple[Program, ...], settings: tuple[str, ...], pairs: int
) -> Characters:
    """Run programs, and characterise them with settings."""
    for one in programs:
        path = wulf(place, "program", "shipped", one.shipped, "--cluster", "lab").strip()
        command = [path, *one.options.split()]
        words = ["--cluster", "lab", "--run", one.name, "--ranks", str(one.ranks), "--launches", "3"]
        wulf(place, "program", "run", *words, "--", *command)
    asked = [word for setting in settings for word in ("--setting", setting)]
    names = [one.name for one in programs]
    told = wulf(place, "program", "characterise", *names, *asked, "--launches", str(pairs), "--json")
    return msgspec.convert(json.loads(told), Characters)


def rows(found: Characters, programs: tuple[Program, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the lines of the table, those of a class beside each other."""
    by_name = {one.name: f"{one.shipped} {one.options}" for one in programs}
    for one in sorted(found.programs, key=lambda one: one.program_class):
        for gain in one.gains:
            yield (
                one.program_class,
                f"`{by_name.get(one.run, one.command)}`",
                f"{one.share[0]:.0%}",
                _size(one),
                f"`{gain.setting}`",
                _change(gain),
                gain.verdict,
            )


def _size(one: Character) -> str:
    return "–" if one.median_bytes is None else f"{one.median_bytes} B"


def _change(gain: Gain) -> str:
    return format_change(gain.ratio) if gain.ratio is not None else f"unknown: {gain.reason}"


HEADER = ("class", "program", "in MPI", "half of its messages below", "setting", "run time", "verdict")


def table(found: Characters, programs: tuple[Program, ...]) -> str:
    """Return the table as Markdown."""
    lines = [HEADER, tuple("---" for _ in HEADER), *rows(found, programs)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def page(text: str, load: tuple[float, float], pairs: int) -> str:
    """Return the page of the reference."""
    machine = f"{os.cpu_count()} CPUs, {platform.machine()}, Linux {platform.release()}"
    return (
        "# What settings bring, by class of program\n\n"
        f"Measured on {date.today().isoformat()} by `make bench NAME=characters ARGS=--write`: {NODES} virtual nodes "
        f"on one machine ({machine}), {pairs} pairs of launches for each row, with the setting and without. The "
        f"machine's load was {load[0]:.1f} at the beginning and {load[1]:.1f} at the end; calm is {NODES} or less. "
        "Virtual links have no interrupts and no hardware: the same command says what is true of your cluster.\n\n"
        "Changes are of launches in turn, with 95 % intervals; less is quicker. Classes are those of "
        "[`wulf program characterise`](../howto/applications.md).\n\n" + text
    )


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    quick = "--quick" in arguments
    programs = PROGRAMS[:2] if quick else PROGRAMS
    settings = SETTINGS[:1] if quick else SETTINGS
    pairs = QUICK_PAIRS if quick else PAIRS
    missing = lab.supported()
    if missing:
        raise SystemExit("bench: no virtual cluster here: " + "; ".join(str(item) for item in missing))
    up = raised(NODES)
    begin = os.getloadavg()[0]
    try:
        with tempfile.TemporaryDirectory() as place:
            found = characters(Path(place), programs, settings, pairs)
    finally:
        up.down()
    text = table(found, programs)
    print(text)
    if "--write" in arguments:
        PAGE.write_text(page(text, (begin, os.getloadavg()[0]), pairs), encoding="utf-8")
        print(f"written: {PAGE}")
    gains = [gain for one in found.programs for gain in one.gains]
    decided = sum(gain.verdict != "no decision" for gain in gains)
    classes = len({one.program_class for one in found.programs})
    passed = classes >= CLASSES and 2 * decided >= len(gains)
    print(
        f"\ncharacters value=classes:{classes},decided:{decided} goal={CLASSES},{-(-len(gains) // 2)} "
        f"{'pass' if passed else 'short'}"
    )
    return 0 if passed else 1

"""How soon it is said how wulf is used: CPU time (user and system) of 'wulf --help' and of every verb's --help.

Verbs of verbs ('wulf lab up --help') are among them. Each is started 5 times, all of them in random order; the figure
of each is the median. Beside them 'import typer' in the same Python, which nothing here can be quicker than: where
other programs have the CPUs, too, it tells by how much everything takes longer.

Goals: the list of verbs takes <= 0.2 s, and the slowest verb <= 0.25 s: as shares of these, both <= 1.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import typer

from bench.common import Figure, finish, interleave
from wulf.face.cli.main import app

ROUNDS = 5
LIST_S, VERB_S = 0.2, 0.25
#: So many of the slowest verbs are shown.
SHOWN = 8
WULF = str(Path(sys.executable).with_name("wulf"))
LIST = "wulf"
TYPER = "import typer"


def verbs() -> Iterator[list[str]]:
    """Yield the words of every verb, and of every verb within one."""
    root: Any = typer.main.get_command(app)
    context = typer.Context(root, info_name="wulf")
    for name in root.list_commands(context):
        yield [name]
        yield from ([name, inner] for inner in getattr(root.get_command(context, name), "commands", {}))


def cpu_s(argv: Sequence[str]) -> dict[str, float]:
    """Run a program; return the CPU time that it took, of its own and of the system for it [s]."""
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(argv)}: exit code {process.returncode}")
    return {"CPU": used.ru_utime + used.ru_stime}


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    arms: dict[str, Callable[[], dict[str, float]]] = {
        TYPER: partial(cpu_s, [sys.executable, "-c", TYPER]),
        **{" ".join([LIST, *words]): partial(cpu_s, [WULF, *words, "--help"]) for words in ([], *verbs())},
    }
    for arm in arms.values():
        arm()  # files of modules are compiled, and in memory
    values = interleave(arms, 1 if "--quick" in arguments else ROUNDS)
    medians = {name: statistics.median(found["CPU"]) for name, found in values.items()}
    base, listed = medians.pop(TYPER), medians.pop(LIST)
    slowest = sorted(medians, key=lambda name: -medians[name])
    print(f"CPU time: '{TYPER}' {base:.3f} s, 'wulf --help' {listed:.3f} s; of {len(medians)} verbs")
    print(f"median {statistics.median(medians.values()):.3f} s, the slowest:")
    for name in slowest[:SHOWN]:
        print(f"  {medians[name]:.3f} s  {name} --help")
    return finish(
        "help",
        [
            Figure(name=f"list/{LIST_S}s", value=listed / LIST_S, goal=1.0),
            Figure(name=f"slowest-verb/{VERB_S}s", value=medians[slowest[0]] / VERB_S, goal=1.0),
        ],
    )

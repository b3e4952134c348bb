"""How long the three tiers of the tests take, and how many tests fail that pass in other runs.

Each tier is run five times (``--runs=N``; `make test-all` once, its ``--all-runs=N``) from a fresh clone of the
committed state with an environment of its own: minutes of the whole command. ``--load=6`` starts so many processes
beside it that only calculate. ``--tiers=quick,test`` leaves tiers out. The figures are the worst run of each tier,
installation included, and the tests that failed at least once.

Goals: quick 1.5 min; test 15 min in calm, 25 min beside a load of 6; test-all 45 min; no test fails.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.common import Figure, finish

ROOT = Path(__file__).parents[1]
#: Target of make → its goal in calm and beside a load [min].
GOALS = {"quick": (1.5, 2.5), "test": (15.0, 25.0), "test-all": (45.0, 75.0)}
#: The goal beside a load holds from so many processes on.
_LOADED = 2


class Run(msgspec.Struct, frozen=True):
    """One run of a tier."""

    minutes: float
    code: int
    #: Names of the tests that failed.
    failed: list[str]


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    given = dict(word.removeprefix("--").partition("=")[::2] for word in arguments)
    load = int(given.get("load", "0"))
    tiers = given.get("tiers", ",".join(GOALS)).split(",")
    counts = {
        tier: int(given.get("all-runs" if tier == "test-all" else "runs", "1" if tier == "test-all" else "5"))
        for tier in tiers
    }
    figures, failures = [], Counter[str]()
    for tier in tiers:
        runs = [_fresh_run(tier, load, number) for number in range(counts[tier])]
        failures.update(name for one in runs for name in set(one.failed))
        worst, goal = max(one.minutes for one in runs), GOALS[tier][load >= _LOADED]
        figures.append(Figure(name=f"{tier}-minutes-worst-of-{len(runs)}", value=worst, goal=goal))
        figures.append(
            Figure(name=f"{tier}-runs-that-failed", value=sum(one.code != 0 for one in runs), goal=0.0)
        )
    for name, count in failures.most_common():
        print(f"failed {count} times: {name}")
    figures.append(Figure(name="tests-that-failed-once", value=len(failures), goal=0.0))
    return finish("suite", figures)


def _fresh_run(tier: str, load: int, number: int) -> Run:
    """Run a tier in a clone that nobody has used."""
    with tempfile.TemporaryDirectory(prefix="wulf-suite-", dir="/var/tmp") as directory:
        clone = Path(directory) / "wulf"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        own = {"XDG_CACHE_HOME": f"{directory}/cache", "WULF_ARTEFACTS": f"{directory}/artefacts"}
        with _beside(load), (clone / "said").open("w+") as said:
            begin = time.monotonic()
            if tier == "quick":  # runs what is installed
                subprocess.run(
                    ["make", "install"], cwd=clone, env=_without_ours() | own, stdout=said, check=True
                )
                begin = time.monotonic()
            code = subprocess.run(
                ["make", tier], cwd=clone, env=_without_ours() | own, stdout=said, stderr=said, check=False
            ).returncode
            minutes = (time.monotonic() - begin) / 60
            said.seek(0)
            text = said.read()
        kept = ROOT / "artefacts" / f"suite-{tier}-{number}.log"
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(text)
        run = Run(minutes, code, _failed(Path(own["WULF_ARTEFACTS"]), text))
    print(
        f"{tier} {number + 1}: {minutes:.1f} min, exit code {code}, failed: {run.failed or 'nothing'} ({kept})",
        flush=True,
    )
    return run


def _failed(artefacts: Path, text: str) -> list[str]:
    """Return the names of tests that failed, and of steps that are no tests."""
    cases = [
        case for path in artefacts.glob("junit-*.xml") for case in ET.parse(path).getroot().iter("testcase")
    ]
    failed = [
        f"{case.get('classname')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    quick = re.findall(r"^(?:FAILED|ERROR) (\S+::\S+)", text, re.M) if not cases else []
    return failed + quick + re.findall(r"^-- (.+): FAILED", text, re.M)


def _without_ours() -> dict[str, str]:
    """Return the environment without what this run has set for itself, and what make has told it."""
    left_out = ("WULF_", "VIRTUAL_ENV", "PYTHONPATH", "PYTEST_", "MAKE", "MFLAGS", "ARGS", "NAME")
    return {name: value for name, value in os.environ.items() if not name.startswith(left_out)}


@contextlib.contextmanager
def _beside(load: int) -> Iterator[None]:
    """Let so many processes calculate meanwhile."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(load)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()

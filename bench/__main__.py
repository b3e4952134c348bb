"""Run one comparison, or all of them and write a table: ``python -m bench [NAME] [--quick | --help]``."""

from __future__ import annotations

import importlib
import io
import platform
import re
import sys
from contextlib import redirect_stdout
from datetime import date
from pathlib import Path
from typing import TextIO

from wulf.base.errors import WulfError

NAMES = (
    "probe-mpi",
    "probe-tcp",
    "spread",
    "contamination",
    "time-to-ladder",
    "coverage",
    "compare-power",
    "aa",
    "audit-planted",
    "audit-scale",
    "tune-sim",
    "tune-power",
    "tune-sharp",
    "tune-lab",
    "tune-live",
    "rollout",
    "faults",
    "journal-growth",
    "guard-cost",
    "scheduling",
    "confusion",
    "paths",
    "incast",
    "infer",
    "placement",
    "matrix-scale",
    "ops-cost",
    "collectives-spread",
    "collective-tuning",
    "slow-node",
    "app-overhead",
    "slurm",
    "vm-lab",
    "bond",
    "hpl-search",
    "tracer-cost",
    "replay-load",
    "replay-eval",
    "curve",
    "predict-whole",
    "fuzz-trace",
    "watch-alarms",
    "worlds",
    "peers",
    "engine-b",
    "accuracy",
    "held",
    "trace-truth",
    "collective-times",
    "install",
    "help",
    "soak",
    "sudo",
    "suite",
    "shape",
    "field",
    "studies",
    "speed-up",
    "characters",
    "rfc2544",
)
#: A whole run is added to it; RESULTS.md, with the newest value of each claim, is brought up to it by hand.
LOG = Path(__file__).parent / "LOG.md"


class _Tee(io.TextIOBase):
    """Passes text on and keeps it."""

    def __init__(self, target: TextIO) -> None:
        self._target = target
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        written = self._target.write(text)
        self._target.flush()
        return written


def run(name: str, arguments: list[str]) -> tuple[int, str]:
    """Run a comparison; return its exit status and its last line."""
    module = importlib.import_module(f"bench.{name.replace('-', '_')}")
    if "--help" in arguments:
        print(sys.modules[module.main.__module__].__doc__)
        return 0, ""
    tee = _Tee(sys.stdout)
    try:
        with redirect_stdout(tee):
            status = int(module.main(arguments))
    except (SystemExit, WulfError) as error:
        # The others are worth running all the same.
        print(f"{name}: {error}", flush=True)
        return 1, f"{name} failed: {str(error).partition(chr(10))[0]}"
    return status, tee.text.strip().rpartition("\n")[2]


def table(lines: list[str]) -> str:
    """Return the Markdown table of last lines."""
    rows = []
    for line in lines:
        found = re.fullmatch(r"(\S+) value=(.*) goal=(.*) (pass|short)", line)
        rows.append("| " + " | ".join(found.groups() if found else (line, "", "", "failed")) + " |")
    return (
        f"\n## {date.today().isoformat()}: all comparisons\n\n{platform.processor() or platform.machine()}, "
        f"Linux {platform.release()}. Made by `make bench`; each line by `make bench NAME=…`.\n\n"
        "| comparison | value | goal | |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def main(arguments: list[str]) -> int:
    """Entry point."""
    names = [word for word in arguments if not word.startswith("-")]
    if not names and "--help" in arguments:
        print(f"{__doc__}\n\nComparisons: {', '.join(NAMES)}")
        return 0
    options = [word for word in arguments if word.startswith("-")]
    for name in names:
        if name not in NAMES:
            print(f"bench: there is no {name!r}; there are: {', '.join(NAMES)}", file=sys.stderr)
            return 1
    statuses, lines = [], []
    for name in names or NAMES:
        print(f"\n=== {name}", flush=True)
        status, line = run(name, options)
        statuses.append(status)
        lines.append(line)
    if not names:
        found = table(lines)
        with LOG.open("a", encoding="utf-8") as log:
            log.write(found)
        print(f"{found}\nadded to {LOG}: bring RESULTS.md up to it")
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Every study that comes with wulf runs to its end in its short form, on a virtual cluster.

Goal: each is complete, with a value of every metric that it has not left out; 25 minutes for all of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from wulf.base import user_files
from wulf.node import lab
from wulf.tools.study.store import load_study
from wulf.tools.study.work import shown

LIMIT_S = 25 * 60
NODES = 4


def ran(name: str, place: Path) -> tuple[bool, str]:
    """Run a study; return whether it is whole, and what is to be known of it."""
    words = ["bench", "study", name, "--short", "--cluster", "lab", "--run", name]
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "wulf.face.cli.main", *words],
        cwd=place,
        env={**os.environ, "WULF_RUNS": str(place / "runs")},
        capture_output=True,
        text=True,
        check=False,
    )
    took = f"{time.monotonic() - begin:.0f} s"
    if not (place / "runs" / name).is_dir():
        return False, f"{took}: {done.stderr.strip().rpartition(chr(10))[2]}"
    found = shown(load_study(place / "runs" / name)).result
    assert found is not None
    base = {figure.figure for figure in found.cells[0].figures if figure.value is None}
    said = f"{took}, {found.status}, {found.runs} runs" + (
        f", without {', '.join(sorted(base))}" if base else ""
    )
    return found.status == "complete" and not base, said


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    names = [source.id for source in user_files.sources("studies") if source.owner == "wulf"]
    names = names[:1] if "--quick" in arguments else names
    missing = lab.supported()
    if missing:
        raise SystemExit("bench: no virtual cluster here: " + "; ".join(str(item) for item in missing))
    was_up = lab.current() is not None
    raised = lab.current() or lab.up(NODES)[0]
    begin = time.monotonic()
    whole = 0
    try:
        with tempfile.TemporaryDirectory() as place:
            for name in names:
                good, said = ran(name, Path(place))
                whole += good
                print(f"  {name}: {said}")
    finally:
        if not was_up:
            raised.down()
    took_s = time.monotonic() - begin
    passed = whole == len(names) and took_s <= LIMIT_S
    print(
        f"\nstudies value=whole:{whole},minutes:{took_s / 60:.1f} goal={len(names)},{LIMIT_S // 60} "
        f"{'pass' if passed else 'short'}"
    )
    return 0 if passed else 1

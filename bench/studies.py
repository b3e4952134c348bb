"""Every study that comes with wulf runs to its end in its short form, on a virtual cluster.

The switch carries jumbo frames, nodes begin with 1500 B, and cables join each to the next: no study lacks its levels.
Goal: each is complete, and no run of what it has not left out failed; 25 minutes for all of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from wulf.base import user_files
from wulf.node import lab
from wulf.node.lab.topology import Link
from wulf.tools.study.store import load_study
from wulf.tools.study.work import shown

LIMIT_S = 25 * 60
NODES = 4
RING = [(number, (number + 1) % NODES) for number in range(NODES)]


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
    failures = {why for cell in found.cells for figure in cell.figures for why in figure.failures}
    said = "; ".join([f"{took}, {found.status}, {found.runs} runs", *sorted(failures)])
    return found.status == "complete" and not failures, said


def raised(nodes: int, cables: Sequence[tuple[int, int]] = ()) -> lab.Lab:
    """Raise a virtual cluster whose switch carries jumbo frames, and whose nodes begin with 1500 B."""
    if lab.current() is not None:
        raise SystemExit("bench: a virtual cluster is up: 'wulf lab down', or another WULF_LAB_DIR")
    up, _ = lab.up(nodes, Link(mtu=9000), cables=cables)
    for name in up.layout.names():
        subprocess.run(up.ssh_argv(name, ["ip", "link", "set", "dev", "host0", "mtu", "1500"]), check=True)
    return up


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    names = [source.id for source in user_files.sources("studies") if source.owner == "wulf"]
    asked = [word.removeprefix("--only=") for word in arguments if word.startswith("--only=")]
    names = asked or (names[:1] if "--quick" in arguments else names)
    missing = lab.supported()
    if missing:
        raise SystemExit("bench: no virtual cluster here: " + "; ".join(str(item) for item in missing))
    up = raised(NODES, RING)
    begin = time.monotonic()
    whole = 0
    try:
        with tempfile.TemporaryDirectory() as place:
            for name in names:
                good, said = ran(name, Path(place))
                whole += good
                print(f"  {name}: {said}")
    finally:
        up.down()
    took_s = time.monotonic() - begin
    passed = whole == len(names) and took_s <= LIMIT_S
    print(
        f"\nstudies value=whole:{whole},minutes:{took_s / 60:.1f} goal={len(names)},{LIMIT_S // 60} "
        f"{'pass' if passed else 'short'}"
    )
    return 0 if passed else 1

"""Whether what is given to others works where nothing is: pipx and the Debian package, on a bare system of their own.

`tools/try-packages` installs the files of ``dist/`` (made first where they are not there) by a user with an empty home,
and runs the main job: a short measured run, its report; with the probe that came along, and with pipx from the sources,
too. The figure is how many parts of it failed. Goal: none. Needs root and a package source.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from bench.common import Figure, finish

KINDS = ("pipx", "deb")
#: In what it prints, of a part.
_ENDED = re.compile(r"^-- (\S+): (ok|FAILED) \((\d+) s\)", re.M)


def failures(output: str, kind: str) -> int | None:
    """Return how many parts of a kind failed (none comes after one that did); None where none was begun."""
    parts = {name: how for name, how, _ in _ENDED.findall(output) if name.startswith(f"{kind}-")}
    failed = sum(how == "FAILED" for how in parts.values())
    return failed if parts else None


def main(arguments: list[str]) -> int:
    """Entry point."""
    root = Path(__file__).parents[1]
    if not list((root / "dist").glob("wulf_*.deb")) or "--again" in arguments:
        made = subprocess.run(
            [root / "tools" / "release", "prebuilt", "share", "wheel", "deb"], cwd=root, check=False
        )
        if made.returncode != 0:
            raise SystemExit("tools/release failed")
    figures = []
    for kind in KINDS:
        done = subprocess.run(
            [root / "tools" / "try-packages", kind], cwd=root, stdout=subprocess.PIPE, text=True, check=False
        )
        print(done.stdout)
        failed = failures(done.stdout, kind)
        if failed is None:
            raise SystemExit(f"{kind}: it was not tried: {done.stdout.strip().rpartition(chr(10))[2]}")
        for name, _, seconds in _ENDED.findall(done.stdout):
            print(f"{name}: {seconds} s")
        figures.append(Figure(name=f"{kind} parts failed", value=max(failed, done.returncode), goal=0.0))
    return finish("install", figures)

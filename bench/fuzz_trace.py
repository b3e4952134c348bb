"""Damaged traces: the replay under libFuzzer with the sanitizers of addresses and of undefined behaviour.

``python -m bench fuzz-trace`` runs 1,000,000 cases (``--quick``: 20,000) that begin with random programs and change
records, headers and lengths; a case may take 2 GiB and 30 s. Figures: crashes (goal: 0), and cases that were wanted and
not run (goal: 0). Needs clang with its sanitizers (Debian: clang, libclang-rt-dev).
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from bench.common import Figure, finish, require
from wulf.base.native import build

CASES, QUICK_CASES = 1_000_000, 20_000
MOST_BYTES = 65_536
RSS_MIB = 2048
CASE_S = 30


def built(directory: Path) -> Path:
    """Return the program, built."""
    clang, clangxx = require("clang", "clang"), require("clang++", "clang")
    configure = ["cmake", "-S", str(build.source_directory()), "-B", str(directory), "-DWULF_FUZZ=ON"]
    configure += ["-DWULF_TESTS=OFF", "-DWULF_REPLAY=ON"]
    configure += [f"-DCMAKE_C_COMPILER={clang}", f"-DCMAKE_CXX_COMPILER={clangxx}"]
    for argv in (configure, ["cmake", "--build", str(directory), "--target", "fuzz_trace"]):
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"bench: fuzz_trace cannot be built:\n{done.stdout[-2000:]}")
    return directory / "fuzz_trace"


def fuzz(program: Path, corpus: Path, cases: int, seed: int = 1) -> tuple[int, int, str]:
    """Return how many cases were run, how many of them failed, and the last that was said."""
    argv = [str(program), f"-runs={cases}", f"-seed={seed}", f"-max_len={MOST_BYTES}", "-print_final_stats=1"]
    argv += [f"-rss_limit_mb={RSS_MIB}", f"-timeout={CASE_S}", f"-artifact_prefix={corpus}/", str(corpus)]
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)
    run = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
    failed = [one for one in corpus.iterdir() if one.name.startswith(("crash-", "oom-", "timeout-", "leak-"))]
    crashes = max(len(failed), int(done.returncode != 0))
    return int(run[1]) if run else 0, crashes, done.stderr[-3000:]


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    cases = QUICK_CASES if "--quick" in arguments else CASES
    with tempfile.TemporaryDirectory(prefix="wulf-fuzz-") as name:
        corpus = Path(name, "corpus")
        corpus.mkdir()
        run, crashes, last = fuzz(built(Path(name, "build")), corpus, cases)
    print(f"  {run} cases run, {crashes} crashes")
    if crashes:
        print(last)
    missing = float(max(cases - run, 0))
    return finish(
        "fuzz-trace",
        [
            Figure(name="crashes", value=float(crashes), goal=0.0),
            Figure(name="missing", value=missing, goal=0.0),
        ],
    )

"""How often the intervals of the laws of speed-up hold the truth: programs of planted serial share.

Simulated: rounds of launches of 1, 2, 4 and 8 ranks that follow a law, each round with a factor of its own, launches
scattering by 1 to 10 %. Real ones: `wulf program run --ranks 1,2,4` of a program made of waits, which prints its time
without its start; waits take no CPU, so that ranks do not wait for each other's.

Goal: 93 to 97 % of the 95 % intervals of the serial share, of contention and coherency, and of what two more ranks
bring hold the truth; every real one holds it within three times its width.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from wulf.stats.core import scaling

COUNTS = (1, 2, 4, 8)
ROUNDS = 8
COVERS = (0.93, 0.97)
SPREADS = (0.01, 0.03, 0.1)
SHARES = (0.02, 0.1, 0.3)
COHERENT = ((0.05, 0.005), (0.1, 0.02))
REAL = (0.1, 0.3)
#: Prints its time; a tenth of a second more or less is its start.
PROGRAM = """#!/bin/sh
n=${OMPI_COMM_WORLD_SIZE:-1}
b=$(date +%s%N)
sleep "$(awk "BEGIN { print 0.8 * (SHARE + (1 - SHARE) / $n) }")"
e=$(date +%s%N)
[ "${OMPI_COMM_WORLD_RANK:-0}" = 0 ] && awk "BEGIN { print \\"took\\", ($e - $b) / 1e9 }"
exit 0
"""


def launches(
    rng: np.random.Generator, sigma: float, kappa: float, spread: float
) -> tuple[list[int], list[int], list[float]]:
    """Return ranks, rounds and times of simulated launches."""
    counts, rounds, times = [], [], []
    for number in range(ROUNDS):
        slow = rng.normal(0, 0.1)
        for count in COUNTS:
            counts.append(count)
            rounds.append(number)
            times.append(
                float(scaling.curve(count, sigma, kappa)) * float(np.exp(slow + rng.normal(0, spread)))
            )
    return counts, rounds, times


def covered(
    rng: np.random.Generator, repeats: int, sigma: float, kappa: float, spread: float
) -> dict[str, float]:
    """Return how often each interval holds the truth."""
    held: dict[str, int] = {}
    ahead = COUNTS[-1] + 2
    true = float(scaling.curve(ahead, sigma, kappa) / scaling.curve(COUNTS[-1], sigma, kappa))
    for _ in range(repeats):
        made = launches(rng, sigma, kappa, spread)
        law = scaling.universal(*made) if kappa else scaling.amdahl(*made)
        assert law is not None
        found = {"sigma": (law.sigma.low, sigma, law.sigma.high)}
        if law.kappa is not None:
            found["kappa"] = (law.kappa.low, kappa, law.kappa.high)
        _, low, high = law.relative(COUNTS[-1], ahead)
        found["next"] = (low, true, high)
        for name, (least, value, most) in found.items():
            assert least is not None
            assert most is not None
            held[name] = held.get(name, 0) + (least <= value <= most)
    return {name: times / repeats for name, times in held.items()}


def real(share: float, rounds: int) -> tuple[float, float, float]:
    """Return the serial share of a real program, as the command line finds it, with its interval."""
    with tempfile.TemporaryDirectory() as place:
        program = Path(place) / "waits"
        program.write_text(PROGRAM.replace("SHARE", str(share)))
        program.chmod(0o755)
        words = ["--cluster", "local", "--mpi", "openmpi", "--ranks", "1,2,4", "--launches", str(rounds)]
        command = [
            sys.executable,
            "-m",
            "wulf.face.cli.main",
            "program",
            "run",
            *words,
            "--match",
            r"took (\S+)",
            "--json",
        ]
        ran = subprocess.run(
            [*command, "--", str(program)], cwd=place, capture_output=True, text=True, check=False
        )
    if ran.returncode:
        raise SystemExit(f"bench: {ran.stderr}")
    found = json.loads(ran.stdout)["laws"][0]["parameters"]["serial share"]
    return found["value"], found["low"], found["high"]


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    quick = "--quick" in arguments
    rng = np.random.default_rng(7)
    shares = []
    for sigma, kappa in [*((share, 0.0) for share in SHARES), *COHERENT]:
        for spread in SPREADS:
            repeats = (60 if quick else 4000) // (10 if kappa else 1)
            found = covered(rng, repeats, sigma, kappa, spread)
            shares += list(found.values())
            said = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
            print(f"  serial {sigma:g}, coherency {kappa:g}, launches ±{spread:.0%}: {said}")
    off = []
    for share in REAL:
        value, low, high = real(share, 4 if quick else 8)
        off.append(abs(value - share) / max(high - low, 1e-9))
        print(f"  real program, serial {share:g}: {value:.3f} ({low:.3f} to {high:.3f})")
    passed = COVERS[0] <= min(shares) and max(shares) <= COVERS[1] and max(off) <= 3
    print(
        f"\nspeed-up value=covered:{min(shares):.3f}..{max(shares):.3f},real-off:{max(off):.2f} widths "
        f"goal={COVERS[0]:g}..{COVERS[1]:g},3 {'pass' if passed else 'short'}"
    )
    return 0 if passed else 1

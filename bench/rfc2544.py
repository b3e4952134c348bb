"""`wulf bench rfc2544` on a way of known rate with a queue of known depth.

Two virtual nodes; at the port of the second one the bridge lets 100 Mbit/s through and queues so many frames. Frames of
1,518 B are 1,514 B there (without their check). A few frames pass at once: with a bucket of one, what a late timer has
missed is lost, and less than the rate gets through. Bursts follow each other, so the bucket is empty when one begins:
the way holds the queue and the frame that is on its way, and a burst is longer by what leaves while it arrives.

Goal: throughput within 3 % of what was planted; the depth (RFC 9004) within one frame of the queue and the frame on its
way; the longest burst within one frame of that depth and what the planted rate carries away while it arrives.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from wulf.node import lab

RATE_BIT_S = 100_000_000
FRAME, QUEUED = 1518, 1514
DEPTH = 60
#: Frames that pass at once.
BUCKET = 8
GOAL, FRAMES = 0.03, 1


def found(*words: str) -> dict[str, Any]:
    """Return what the program says of the frame size."""
    command = [sys.executable, "-m", "wulf.face.cli.main", "bench", "rfc2544", "--cluster", "lab", "--json"]
    with tempfile.TemporaryDirectory() as place:
        ran = subprocess.run(
            [*command, "--frames", str(FRAME), *words], cwd=place, capture_output=True, text=True, check=False
        )
    if ran.returncode not in (0, 3):
        raise SystemExit(f"bench: {ran.stderr}")
    size: dict[str, Any] = json.loads(ran.stdout)["sizes"][0]
    return size


def off_by(size: Mapping[str, Any], leaves_per_s: float) -> tuple[float, float]:
    """Return by how many frames the depth and the longest burst are other than planted; all of it where unknown."""
    held, burst = size["buffer"], size["burst"]
    if held is None or burst is None:
        return float(DEPTH), float(DEPTH)
    longest = (DEPTH + 1) / (1 - leaves_per_s / held["arrival_per_s"])
    return abs(held["frames"]["value"] - (DEPTH + 1)), abs(burst - longest)


def planted(raised: lab.Lab) -> None:
    """Let the port of the second node carry so much, with a queue of so many frames."""
    shaping = ["tbf", "rate", str(RATE_BIT_S), "burst", str(BUCKET * QUEUED), "limit", str(DEPTH * QUEUED)]
    switch = ["ip", "netns", "exec", raised.state.namespace]
    subprocess.run([*switch, "tc", "qdisc", "replace", "dev", "vb-node02", "root", *shaping], check=True)


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    missing = lab.supported()
    if missing:
        raise SystemExit("bench: no virtual cluster here: " + "; ".join(str(item) for item in missing))
    if lab.current() is not None:
        raise SystemExit("bench: a virtual cluster is up, and this one changes it: 'wulf lab down' first")
    raised = lab.up(2)[0]
    quick = "--quick" in arguments
    words = [
        "--trial",
        "1s" if quick else "6s",
        "--repetitions",
        "2" if quick else "6",
        "--most-mbit-s",
        "400",
    ]
    try:
        planted(raised)
        size = found(*words, "--longest", str(4 * DEPTH))
    finally:
        raised.down()
    throughput = size["throughput"]
    wanted = RATE_BIT_S / 8 / QUEUED
    off = abs(throughput["frames_per_s"] / wanted - 1) if throughput is not None else 1.0
    depth_off, burst_off = off_by(size, wanted)
    passed = off <= GOAL and depth_off <= FRAMES and burst_off <= FRAMES
    print(f"  planted {wanted:,.0f} frames/s and {DEPTH + 1} frames; found {throughput},")
    print(f"  bursts of {size['bursts']}, a depth of {size['buffer'] or size['buffer_unknown']}")
    said = f"throughput-off:{off:.3f},depth-off:{depth_off:.1f},burst-off:{burst_off:.1f}"
    print(f"\nrfc2544 value={said} goal={GOAL},{FRAMES},{FRAMES} {'pass' if passed else 'short'}")
    return 0 if passed else 1

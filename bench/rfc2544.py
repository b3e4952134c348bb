"""`wulf bench rfc2544` on a way of known rate with a queue of known depth.

Two virtual nodes; at the port of the second one the bridge lets 100 Mbit/s through and queues so many frames. Frames of
1,518 B are 1,514 B there (without their check). A few frames pass at once: with a bucket of one, what a late timer has
missed is lost, and less than the rate gets through. Bursts follow each other, so the bucket is empty when one begins:
it is longer than the queue by the frame that is on its way and by what leaves meanwhile.

Goal: throughput within 3 % of what was planted, the longest burst within one frame.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

from wulf.node import lab

RATE_BIT_S = 100_000_000
FRAME, QUEUED = 1518, 1514
DEPTH = 60
#: Frames that pass at once.
BUCKET = 8
GOAL, FRAMES = 0.03, 1


def found(*words: str) -> dict[str, object]:
    """Return what the program says of the frame size."""
    command = [sys.executable, "-m", "wulf.face.cli.main", "bench", "rfc2544", "--cluster", "lab", "--json"]
    with tempfile.TemporaryDirectory() as place:
        ran = subprocess.run(
            [*command, "--frames", str(FRAME), *words], cwd=place, capture_output=True, text=True, check=False
        )
    if ran.returncode not in (0, 3):
        raise SystemExit(f"bench: {ran.stderr}")
    size: dict[str, object] = json.loads(ran.stdout)["sizes"][0]
    return size


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
    assert throughput is None or isinstance(throughput, dict)
    wanted = RATE_BIT_S / 8 / QUEUED
    off = abs(throughput["frames_per_s"] / wanted - 1) if throughput is not None else 1.0
    burst = size["burst"]
    frames = abs(burst - (DEPTH + 1)) if isinstance(burst, int) else DEPTH
    passed = off <= GOAL and frames <= FRAMES
    print(f"  planted {wanted:,.0f} frames/s and {DEPTH + 1} frames; found {throughput} and {burst}")
    said = f"throughput-off:{off:.3f},burst-off:{frames}"
    print(f"\nrfc2544 value={said} goal={GOAL},{FRAMES} {'pass' if passed else 'short'}")
    return 0 if passed else 1

"""iperf3, as JSON (``-J``): the block size, which makes a time of a rate, is only there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from wulf.base.importing.series import Series, Source

TITLE = "iperf3"
STATISTIC = "mean over one launch"


def recognises(text: str) -> bool:
    """Whether a text is an output of iperf3, of either kind."""
    return ('"test_start"' in text and '"blksize"' in text) or ("iperf Done." in text and "bits/sec" in text)


def read(source: Source) -> Iterator[Series]:
    """Yield a series for each direction that was measured."""
    if not source.text.lstrip().startswith("{"):
        source.fail("expected JSON, with the size of blocks: run iperf3 with -J")
    try:
        whole: dict[str, Any] = msgspec.json.decode(source.text)
    except msgspec.DecodeError as error:
        source.fail(f"expected JSON: {error}")
    if whole.get("error"):
        source.fail(f"iperf3 failed: {whole['error']}")
    try:
        test, end = whole["start"]["test_start"], whole["end"]
        size, protocol = int(test["blksize"]), str(test["protocol"])
        streams = int(test.get("num_streams", 1))
        received = end.get("sum_received") or end["sum"]
        rate = float(received["bits_per_second"])
    except (KeyError, TypeError, ValueError) as error:
        source.fail(
            f"expected start.test_start.blksize and end.sum_received.bits_per_second: {error!r} is missing"
        )
    if not rate > 0:
        source.fail("expected end.sum_received.bits_per_second above 0")
    several = f", {streams} streams" if streams > 1 else ""
    yield Series(
        name=f"iperf3 {protocol}{several}",
        pattern="stream",
        quantity="time per block",
        statistic=STATISTIC,
        times_s={size: size * 8 / rate},
    )

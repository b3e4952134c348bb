"""sockperf: ping-pong and under load, TCP and UDP."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wulf.base.importing.series import MEAN, NUMBER, Series, Source

TITLE = "sockperf"
_LATENCY = rf"Summary: (?:Latency|Round trip) is ({NUMBER}) usec"
_PERCENTILE = rf"percentile ({NUMBER}) =\s*({NUMBER})"


def recognises(text: str) -> bool:
    """Whether a text is an output of sockperf."""
    return "sockperf:" in text and re.search(_LATENCY, text) is not None


def read(source: Source) -> Iterator[Series]:
    """Yield the mean, and each percentile, as series of their own: each is another statistic.

    The size of the messages is not said in the output, so nothing is made of one.
    """
    quantity = "round trip" if "Round trip is" in source.text else "half round trip"
    for line, found in source.found(_LATENCY):
        yield _series("mean", MEAN, quantity, source.positive(float(found[1]), "a latency [usec]", line))
    for line, found in source.found(_PERCENTILE):
        name = f"p{float(found[1]):g}"
        latency_us = source.positive(float(found[2]), "a latency [usec]", line)
        yield _series(name, f"{name} of the iterations of one launch", quantity, latency_us)


def _series(name: str, statistic: str, quantity: str, latency_us: float) -> Series:
    return Series(
        name=f"sockperf {name}",
        pattern="ping-pong",
        quantity=quantity,
        statistic=statistic,
        times_s={0: latency_us * 1e-6},
        moves_bytes=False,
    )

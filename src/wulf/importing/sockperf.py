"""sockperf: ping-pong and under load, TCP and UDP."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wulf.importing.series import MEAN, NUMBER, Series, Source

TITLE = "sockperf"
_LATENCY = rf"Summary: (?:Latency|Round trip) is ({NUMBER}) usec"
_PERCENTILE = rf"percentile ({NUMBER}) =\s*({NUMBER})"
_SIZE = r"msg-size[ =](\d+)|(\d+) bytes? payload"
#: Size of a message unless told otherwise [B].
_USUAL_SIZE = 14


def recognises(text: str) -> bool:
    """Whether a text is an output of sockperf."""
    return "sockperf:" in text and re.search(_LATENCY, text) is not None


def read(source: Source) -> Iterator[Series]:
    """Yield the mean, and each percentile, as series of their own: each is another statistic."""
    sizes = [int(found[1] or found[2]) for _, found in source.found(_SIZE)]
    size = sizes[0] if sizes else _USUAL_SIZE
    whole = "Round trip is" in source.text
    quantity = "round trip" if whole else "half round trip"
    for line, found in source.found(_LATENCY):
        yield _series(
            "mean", MEAN, quantity, {size: source.positive(float(found[1]), "a latency [usec]", line) * 1e-6}
        )
    for line, found in source.found(_PERCENTILE):
        name = f"p{float(found[1]):g}"
        seconds = source.positive(float(found[2]), "a latency [usec]", line) * 1e-6
        yield _series(name, f"{name} of the iterations of one launch", quantity, {size: seconds})


def _series(name: str, statistic: str, quantity: str, times: dict[int, float]) -> Series:
    return Series(
        name=f"sockperf {name}", pattern="ping-pong", quantity=quantity, statistic=statistic, times_s=times
    )

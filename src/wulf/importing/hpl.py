"""High-Performance Linpack: a line for each combination of parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wulf.importing.series import NUMBER, Series, Source

TITLE = "HPL"
_ROW = re.compile(rf"^(W[RC]\w+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+({NUMBER})\s+({NUMBER})")


def recognises(text: str) -> bool:
    """Whether a text is an output of HPL alone."""
    return "HPLinpack" in text and any(_ROW.match(line) for line in text.splitlines())


def read(source: Source) -> Iterator[Series]:
    """Yield a series for each combination; what did not pass its check is refused."""
    for line, _ in source.found(r"\.{3,}\s*FAILED"):
        source.fail("expected results that passed their check", line)
    for line in source.lines:
        if found := _ROW.match(line.text):
            variant, n, nb, p, q, seconds, _ = found.groups()
            yield Series(
                name=f"HPL {variant} N {n} NB {nb} grid {p}x{q}",
                pattern="application",
                quantity="run time",
                statistic="one launch",
                times_s={0: source.positive(float(seconds), "a time [s]", line)},
                ranks=int(p) * int(q),
                moves_bytes=False,
            )

"""High-Performance Linpack: a line for each combination of parameters."""

from __future__ import annotations

from collections.abc import Iterator

from wulf.base import hpl_output
from wulf.base.importing.series import Series, Source

TITLE = "HPL"


def recognises(text: str) -> bool:
    """Whether a text is an output of HPL alone."""
    return "HPLinpack" in text and bool(hpl_output.parse(text).rows)


def read(source: Source) -> Iterator[Series]:
    """Yield a series for each combination; what did not pass its check is refused."""
    for row in hpl_output.parse(source.text).rows:
        line = source.lines[row.line - 1]
        if any(not residual.passed for residual in row.residuals):
            source.fail("expected results that passed their check", line)
        yield Series(
            name=f"HPL {row.variant} N {row.n} NB {row.nb} grid {row.p}x{row.q}",
            pattern="application",
            quantity="run time",
            statistic="one launch",
            times_s={0: source.positive(row.time_s, "a time [s]", line)},
            ranks=row.p * row.q,
            moves_bytes=False,
        )

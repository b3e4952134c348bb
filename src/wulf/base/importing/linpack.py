"""High-Performance Linpack: a line for each combination of parameters; HPL-MxP: a paragraph."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wulf.base import hpl_output
from wulf.base.importing.series import NUMBER, Line, Series, Source

TITLE = "HPL"
#: Columns of a table of results: those of HPL, and what NVIDIA's adds.
_HEADING = re.compile(r"T/V\s+N\s+NB\s+P\s+Q\s+Time\s+Gflops(\s+\(\s*per GPU\))?")
#: Who made it, where that is not HPL itself: their figures are another program's.
_MAKER = re.compile(r"^\W*((?:HPL-\w+|rocHPL\w*|Intel\S*\s.*?LINPACK)[\w-]*)\s+v?\d[\d.]*\b")
#: HPL-MxP of NVIDIA and AMD, as its report for the list has it.
_MIXED = re.compile(r"\*+\s*HPL[- ]MxP Result\s*\*+")
_PROBLEM = re.compile(
    r"^\s*N = (\d{1,12}), NB = (\d{1,9}), NPROW = (\d{1,6}), NPCOL = (\d{1,6})(?:, SLOPPY-TYPE = (\d+))?\s*$"
)
#: Said of a result below which no residual stands, as with a negative threshold.
_UNCHECKED = "HPL has not checked this result: that it is right is not known"
_RATE = re.compile(rf"^\s*GFLOPS = ({NUMBER}),")


def recognises(text: str) -> bool:
    """Whether a text is an output of HPL alone, or of HPL-MxP."""
    return bool(_MIXED.search(text)) or ("T/V" in text and bool(hpl_output.parse(text).rows))


def read(source: Source) -> Iterator[Series]:
    """Yield a series for each combination; what did not pass its check is refused."""
    if _MIXED.search(source.text):
        yield from _mixed(source)
        return
    for line, _ in source.found(r"^T/V\s+(?!:)\S"):
        if _HEADING.fullmatch(line.text.strip()) is None:
            source.fail("expected the columns T/V, N, NB, P, Q, Time and Gflops", line)
    maker = next((found[1] for line, found in source.found(_MAKER.pattern)), "HPL")
    output = hpl_output.parse(source.text)
    for row in output.rows:
        line = source.lines[row.line - 1]
        if any(not residual.passed for residual in row.residuals):
            why = " (no result passes a threshold of 0)" if output.threshold == 0 else ""
            source.fail(f"expected results that passed their check{why}", line)
        if not row.residuals:
            source.left_out.append(f"{source.name}, line {line.number}: {_UNCHECKED}")
        # What took less than a hundredth of a second is printed as nothing.
        seconds = row.time_s or row.seconds
        yield _series(source, line, f"{maker} {row.variant}", (row.n, row.nb, row.p, row.q), seconds)


def _mixed(source: Source) -> Iterator[Series]:
    """Yield HPL-MxP's results: the time follows from the rate and the operations that it counts, which are HPL's."""
    if "PASSED" not in source.text or "FAILED" in source.text:
        source.fail("expected a result of HPL-MxP that passed its check")
    problem: tuple[int, int, int, int] | None = None
    name = ""
    for line in source.lines:
        if found := _PROBLEM.match(line.text):
            n, nb, p, q = (int(word) for word in found.groups()[:4])
            problem, name = (n, nb, p, q), f"HPL-MxP sloppy type {found[5]}" if found[5] else "HPL-MxP"
        elif (found := _RATE.match(line.text)) and problem is not None:
            rate = source.number(found[1], "Gflop/s", line)
            if rate <= 0:
                source.fail("expected a rate above 0", line)
            yield _series(source, line, name, problem, hpl_output.operations(problem[0]) / (rate * 1e9))
            problem = None


def _series(
    source: Source, line: Line, name: str, problem: tuple[int, int, int, int], seconds: float
) -> Series:
    n, nb, p, q = problem
    return Series(
        name=f"{name} N {n} NB {nb} grid {p}x{q}",
        pattern="application",
        quantity="run time",
        statistic="one launch",
        times_s={0: source.seconds(seconds, "a time [s]", line)},
        ranks=source.ranks(str(p * q), line),
        moves_bytes=False,
    )

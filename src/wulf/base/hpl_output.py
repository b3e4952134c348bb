"""What High-Performance Linpack prints, alone or within HPCC: parameters, progress, results, residuals, errors.

Read from HPL 2.0 to 2.3 (``testing/ptest/HPL_pdinfo.c``, ``HPL_pdtest.c``, ``src/pgesv/HPL_pdgesv0.c``); NVIDIA's
adds a rate of each GPU to a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)"
_ROW = re.compile(
    rf"^(W[RC]\w+)\s+(\d{{1,12}})\s+(\d{{1,9}})\s+(\d{{1,9}})\s+(\d{{1,9}})\s+({_NUMBER})\s+({_NUMBER})"
    rf"(?:\s+\(\s*(?:{_NUMBER})\))?\s*$",
    re.IGNORECASE,
)
_VERSION = re.compile(r"^HPLinpack\s+(\S+)\s+--")
_PARAMETER = re.compile(r"^([A-Z][A-Z0-9]*)\s{0,6}: +(\S.*)$")
_MORE = re.compile(r"^ {8,}\w")
#: Names that are first explained, with a full stop at the end, and then given values.
_NAMES = frozenset(
    {
        "N",
        "NB",
        "PMAP",
        "P",
        "Q",
        "PFACT",
        "NBMIN",
        "NDIV",
        "RFACT",
        "BCAST",
        "DEPTH",
        "SWAP",
        "L1",
        "U",
        "EQUIL",
    }
    | {"ALIGN"}
)
_EPSILON = re.compile(rf"relative machine precision \(eps\) is taken to be\s+({_NUMBER})")
_THRESHOLD = re.compile(rf"scaled residuals are less than\s+({_NUMBER})")
_RESIDUAL = re.compile(rf"^\|\|Ax-b\|\|_oo\s*/.*=\s*({_NUMBER})\s*\.{{3,}}\s*(PASSED|FAILED)", re.IGNORECASE)
_NORM = re.compile(rf"^(\|\|\S+\|\|_\w+)[ .]*=\s*({_NUMBER})\s*$", re.IGNORECASE)
_TIMING = re.compile(rf"^\+?\s*Max aggregated wall time (\w[\w ]*?)[ .]*:\s*({_NUMBER})\s*$")
_PROGRESS = re.compile(rf"^Column=\s*(\d+)\s+Fraction=\s*({_NUMBER})%\s+Gflops=\s*({_NUMBER})\s*$")
_MOMENT = re.compile(r"^HPL_pdgesv\(\) (start|end) time\s+(\S.*)$")
_COUNT = re.compile(
    r"^\s*(?:Finished)?\s*(\d{1,9}) tests (with|completed and passed|completed and failed|completed|skipped)"
)
_ERROR = re.compile(r"^HPL (?:ERROR|WARNING)\b")
_SAID = re.compile(r"^>>> (.*?)(?: <<<.*)?$")
_VARIANT = re.compile(r"^W([RC])(\d+)([0-5])([LCR])(\d+)([LCR])(\d+)$")


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a factorisation has come; only builds with ``HPL_PROGRESS_REPORT`` say it."""

    column: int
    #: Share of the columns, 0 to 1.
    fraction: float
    #: Mean rate since the beginning [GFLOPS].
    gflops: float


class Residual(msgspec.Struct, frozen=True, kw_only=True):
    """A scaled residual and HPL's own verdict on it."""

    value: float
    passed: bool


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One combination of parameters."""

    #: Line of the text, from 1.
    line: int
    variant: str
    n: int
    nb: int
    p: int
    q: int
    #: As printed, with two decimals [s].
    time_s: float
    gflops: float
    #: HPL before 2.0 prints three, later versions one; none when the check was skipped or never made.
    residuals: list[Residual] = []
    #: Norms of the matrix and the vectors, which are printed when the check has failed.
    norms: dict[str, float] = {}
    #: Parts of the factorisation [s], of builds with ``HPL_DETAILED_TIMING``: rfact, pfact, mxswp, update, laswp, …
    timings_s: dict[str, float] = {}
    #: What came before the row.
    progress: list[Progress] = []
    #: As the C library writes times; empty where it does not say.
    started: str = ""
    ended: str = ""

    @property
    def passed(self) -> bool:
        """Whether its result was checked and is right."""
        return bool(self.residuals) and all(residual.passed for residual in self.residuals)

    @property
    def seconds(self) -> float:
        """Time of the solution [s]: of short ones from the rate, which is printed with more digits."""
        return operations(self.n) / (self.gflops * 1e9) if self.gflops > 0 else self.time_s


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """What the letters and digits of a row's first column mean, as numbers of HPL.dat."""

    pmap: int
    depth: int
    bcast: int
    rfact: int
    ndiv: int
    pfact: int
    nbmin: int


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """A whole output."""

    #: Empty when there is no heading.
    version: str
    #: Name → values, as printed: ``{"N": "1000 2000", "BCAST": "1ringM", …}``.
    parameters: dict[str, str]
    #: Relative precision of the machine, and residuals that are allowed; None when it does not say.
    epsilon: float | None
    threshold: float | None
    rows: list[Row]
    #: Numbers at its end: tests that were made, passed, failed, were skipped; None when it has no end.
    tests: int | None
    passed: int | None
    failed: int | None
    skipped: int | None
    #: What it complained of.
    errors: list[str]
    #: Progress after the last row: of a run that was ended early.
    unfinished: list[Progress]


def operations(n: int) -> float:
    """Floating-point operations that HPL counts for an order: 2/3 n³ + 3/2 n²."""
    return n * n * (2.0 / 3.0 * n + 1.5)


def progress(line: str) -> Progress | None:
    """Return what a line says of how far it has come; None when it says something else."""
    found = _PROGRESS.match(line)
    if found is None:
        return None
    return Progress(column=int(found[1]), fraction=float(found[2]) / 100, gflops=float(found[3]))


def variant(text: str) -> Variant | None:
    """Return the meaning of a row's first column; None for one that no version of HPL prints."""
    found = _VARIANT.match(text)
    if found is None:
        return None
    pmap, depth, bcast, rfact, ndiv, pfact, nbmin = found.groups()
    return Variant(
        pmap="RC".index(pmap),
        depth=int(depth),
        bcast=int(bcast),
        rfact="LCR".index(rfact),
        ndiv=int(ndiv),
        pfact="LCR".index(pfact),
        nbmin=int(nbmin),
    )


def parse(text: str) -> Output:
    """Return all that an output says; text of other programs around it does no harm."""
    return _Reader().read(text.splitlines())


class _Reader:
    """Goes through the lines; what stands before a row and after it belongs to it."""

    def __init__(self) -> None:
        self._head: dict[str, str] = {}
        self._parameters: dict[str, str] = {}
        self._numbers: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        self._rows: list[Row] = []
        self._progress: list[Progress] = []
        self._errors: list[str] = []
        self._complaining = False
        #: The parameter of the line before, whose values may go on.
        self._parameter = ""

    def read(self, lines: Iterable[str]) -> Output:
        for number, line in enumerate(lines, 1):
            self._take(number, line.rstrip())
        return Output(
            version=self._head.get("version", ""),
            parameters=self._parameters,
            epsilon=self._numbers.get("eps"),
            threshold=self._numbers.get("threshold"),
            rows=self._rows,
            tests=self._counts.get("with"),
            passed=self._counts.get("completed and passed", self._counts.get("completed")),
            failed=self._counts.get("completed and failed"),
            skipped=self._counts.get("skipped"),
            errors=self._errors,
            unfinished=self._progress,
        )

    def _take(self, number: int, line: str) -> None:
        if found := _ROW.match(line):
            self._row(number, found)
        elif (step := progress(line)) is not None:
            self._progress.append(step)
        elif not self._of_row(line) and not self._of_end(line):
            self._of_head(line)

    def _row(self, number: int, found: re.Match[str]) -> None:
        name, n, nb, p, q, seconds, gflops = found.groups()
        self._rows.append(
            Row(
                line=number,
                variant=name,
                n=int(n),
                nb=int(nb),
                p=int(p),
                q=int(q),
                time_s=float(seconds),
                gflops=float(gflops),
                progress=self._progress,
            )
        )
        self._progress = []

    def _of_row(self, line: str) -> bool:
        if not self._rows:
            return False
        row = self._rows[-1]
        if found := _RESIDUAL.match(line):
            residual = Residual(value=float(found[1]), passed=found[2].upper() == "PASSED")
            row = msgspec.structs.replace(row, residuals=[*row.residuals, residual])
        elif found := _NORM.match(line):
            row = msgspec.structs.replace(row, norms={**row.norms, found[1]: float(found[2])})
        elif found := _TIMING.match(line):
            row = msgspec.structs.replace(row, timings_s={**row.timings_s, found[1].strip(): float(found[2])})
        elif found := _MOMENT.match(line):
            moment = " ".join(found[2].split())
            row = msgspec.structs.replace(row, **{"started" if found[1] == "start" else "ended": moment})
        else:
            return False
        self._rows[-1] = row
        return True

    def _of_end(self, line: str) -> bool:
        if found := _COUNT.match(line):
            self._counts[found[2]] = int(found[1])
        elif _ERROR.match(line):
            self._complaining = True
        elif self._complaining and (found := _SAID.match(line)):
            self._errors.append(found[1])
            self._complaining = False
        else:
            return False
        return True

    def _of_head(self, line: str) -> None:
        parameter, self._parameter = self._parameter, ""
        if found := _VERSION.match(line):
            self._head["version"] = found[1]
        elif found := _EPSILON.search(line):
            self._numbers["eps"] = float(found[1])
        elif found := _THRESHOLD.search(line):
            self._numbers["threshold"] = float(found[1])
        elif (found := _PARAMETER.match(line)) and found[1] in _NAMES and not found[2].endswith("."):
            self._parameter = found[1]
            self._parameters[found[1]] = " ".join(found[2].split())
        elif parameter and _MORE.match(line):
            self._parameter = parameter
            self._parameters[parameter] += " " + " ".join(line.split())

"""HPC Challenge: the summary at the end of hpccoutf.txt, names with values; and whether all its checks passed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

import msgspec

from wulf.base.errors import ImportFormatError
from wulf.base.importing.series import MOST_RANKS, Line, Series, Source
from wulf.base.text import count

TITLE = "HPC Challenge"
BEGIN, END = "Begin of Summary section.", "End of Summary section."
_ENTRY = re.compile(r"^(\w+)=(\S+)$")
#: Sizes of the messages of its latency and bandwidth tests [B] (HPCC's bench_lat_bw).
_SHORT, _LONG = 8, 2_000_000
#: What a rate is stored as is the time of so many.
_MANY = 1_000_000_000
#: Errors of RandomAccess that its rules allow, as a share of the table.
_ERRORS_ALLOWED = 0.01
#: HPL's and HPCC's own bound of scaled residuals.
_RESIDUAL_ALLOWED = 16.0
#: Without these there is no result.
_REQUIRED = (
    "HPL_Tflops",
    "PTRANS_GBs",
    "MPIRandomAccess_GUPs",
    "StarDGEMM_Gflops",
    "StarSTREAM_Triad",
    "MPIFFT_Gflops",
)


class Kind(NamedTuple):
    """What the results with such names are."""

    names: re.Pattern[str]
    unit: str
    #: The time that is stored is this ÷ the value, or × it [s].
    factor: float
    better: Literal["lower", "higher"]
    #: What the time is of, in words.
    quantity: str
    #: Bytes that it is the time of; 0 for what moves none.
    size: int = 0
    #: Whether it depends on the size of the problem.
    scales: bool = True


_STREAM = r"(?:Star|Single)STREAM_(?:Copy|Scale|Add|Triad)"
#: All results of a summary; its other entries are settings and checks.
KINDS = (
    Kind(
        re.compile(r"\w+PingPongLatency_usec"), "µs", 1e-6, "lower", "half round trip", _SHORT, scales=False
    ),
    Kind(re.compile(r"\w+RingLatency_usec"), "µs", 1e-6, "lower", "time per message", _SHORT, scales=False),
    Kind(
        re.compile(r"\w+PingPongBandwidth_GBytes"),
        "GB/s",
        _LONG / 1e9,
        "higher",
        "half round trip",
        _LONG,
        scales=False,
    ),
    Kind(
        re.compile(r"\w+RingBandwidth_GBytes"),
        "GB/s",
        _LONG / 1e9,
        "higher",
        "time per message",
        _LONG,
        scales=False,
    ),
    Kind(re.compile(r"HPL_Tflops"), "Tflop/s", 1e-3, "higher", "time per Gflop"),
    Kind(re.compile(r"\w+_Gflops"), "Gflop/s", 1.0, "higher", "time per Gflop"),
    Kind(re.compile(r"\w+_GUPs"), "GUP/s", 1.0, "higher", "time per 10⁹ updates"),
    Kind(re.compile(rf"PTRANS_GBs|{_STREAM}"), "GB/s", 1.0, "higher", "time per GB", _MANY),
    Kind(
        re.compile(r"HPL_time|PTRANS_time|MPIRandomAccess(_LCG)?_(time|CheckTime)|MPIFFT_time\d"),
        "s",
        1.0,
        "lower",
        "run time",
    ),
)


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One result, as HPCC names it."""

    name: str
    value: float
    kind: Kind
    line: Line

    @property
    def time_s(self) -> float:
        """Return the time that it is stored as [s]."""
        return seconds(self.kind, self.value)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """All that a summary says."""

    figures: list[Figure]
    #: All other entries, as they stand there.
    settings: dict[str, str]
    #: Checks that did not pass; empty where all did.
    failures: list[str]

    @property
    def ranks(self) -> int | None:
        """Return how many ranks there were; None where it does not say."""
        word = self.settings.get("CommWorldProcs", "")
        known = word.isdecimal() and len(word) < 10 and 1 <= int(word) <= MOST_RANKS
        return int(word) if known else None

    @property
    def size(self) -> str:
        """Return the N of HPL, from which the sizes of all other tests follow; empty where it is not said."""
        word = self.settings.get("HPL_N", "")
        return word if word.isdecimal() and len(word) < 20 else ""


def seconds(kind: Kind, value: float) -> float:
    """Return a time [s] for a result, and a result for a time: a rate is stored as the time of so many."""
    return value * kind.factor if kind.better == "lower" else kind.factor / value


def value_of(kind: Kind, time_s: float) -> float:
    """Return the result that is stored as a time [s]."""
    return time_s / kind.factor if kind.better == "lower" else kind.factor / time_s


def kind_of(name: str) -> Kind | None:
    """Return what a result is; None for a setting or a check."""
    return next((kind for kind in KINDS if kind.names.fullmatch(name)), None)


def recognises(text: str) -> bool:
    """Whether a text is an output of HPCC."""
    return BEGIN in text


def summary(source: Source) -> Summary:
    """Return what an output says.

    Raises
    ------
    ImportFormatError
        It has no summary, or that has no end.
    """
    begin = next((place for place, line in enumerate(source.lines, 1) if BEGIN in line.text), None)
    if begin is None:
        source.fail("there is no summary: did HPCC finish?")
    if END not in source.text:
        source.fail("the summary has no end: did HPCC finish?")
    entries = {
        found[1]: (line, found[2])
        for line in source.lines[begin:]
        if (found := _ENTRY.match(line.text.strip()))
    }
    figures: list[Figure] = []
    settings: dict[str, str] = {}
    for name, (line, text) in entries.items():
        kind, value = kind_of(name), _number(text)
        if kind is None or value is None:
            settings[name] = text
        elif value > 0:  # otherwise it was not measured
            figures.append(Figure(name=name, value=value, kind=kind, line=line))
    return Summary(
        figures=figures,
        settings=settings,
        failures=list(_failures(source, {one.name for one in figures}, settings)),
    )


def launches(source: Source) -> Iterator[list[Series]]:
    """Yield all results of each run of a file, to which HPCC appends: latencies, bandwidths and rates as times.

    Raises
    ------
    ImportFormatError
        No run passed its checks. One that did not, beside others, is left out by name.
    """
    parts = list(_parts(source))
    taken = 0
    for part in parts:
        try:
            found = summary(part)
            if found.failures:
                part.fail(
                    f"expected results that passed their checks; {'; '.join(found.failures)}", part.lines[0]
                )
        except ImportFormatError as error:
            if len(parts) == 1:
                raise
            source.left_out.append(f"a run was left out: {error}")
            continue
        taken += 1
        yield [series(figure, found) for figure in found.figures]
    if not taken:
        source.fail("; ".join(source.left_out))


def _parts(source: Source) -> Iterator[Source]:
    """Yield the runs of a file: each ends with its summary."""
    begin = 0
    ends = [line.number for line, _ in source.found(re.escape(END))]
    left = [
        line.number for line, _ in source.found(re.escape(BEGIN)) if line.number > (ends[-1] if ends else 0)
    ]
    for end in [*ends, *([len(source.lines)] if left or not ends else [])]:
        yield source.part(source.lines[begin:end])
        begin = end


def series(figure: Figure, found: Summary) -> Series:
    """Return a result as a run has it."""
    pair = "PingPong" in figure.name
    ring = "Ring" in figure.name
    return Series(
        name=title(figure, found),
        pattern="ping-pong" if pair else "ring" if ring else "application",
        quantity=figure.kind.quantity,
        statistic=f"{figure.name} of one launch" if pair or ring else "one launch",
        times_s={figure.kind.size: figure.time_s},
        ranks=2 if pair else found.ranks,
        moves_bytes=figure.kind.size > 0,
    )


def title(figure: Figure, found: Summary) -> str:
    """Return what a result is called in a run; what depends on the size of the problem has that in its name."""
    name = re.sub(r"(Latency_usec|Bandwidth_GBytes)$", lambda match: match[1].partition("_")[0], figure.name)
    return f"HPCC {name} N {found.size}" if figure.kind.scales and found.size else f"HPCC {name}"


def name_of(title_: str) -> str:
    """Return HPCC's name of what a run calls `title_`; empty where that is no result of HPCC."""
    found = re.fullmatch(r"HPCC (\w+)(?: N \d+)?", title_)
    if found is None:
        return ""
    units = {"Latency": "_usec", "Bandwidth": "_GBytes"}
    return found[1] + next((unit for ending, unit in units.items() if found[1].endswith(ending)), "")


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _failures(source: Source, measured: set[str], settings: Mapping[str, str]) -> Iterator[str]:
    if settings.get("Success") != "1":
        yield f"HPCC says Success={settings.get('Success', 'nothing')}"
    yield from _said(source)
    for name in ("MPIRandomAccess", "MPIRandomAccess_LCG"):
        share = _number(settings.get(f"{name}_ErrorsFraction", "0"))
        if share is None or not 0 <= share <= _ERRORS_ALLOWED:
            yield f"{name}: errors in {settings.get(f'{name}_ErrorsFraction')} of the table, at most 0.01 is allowed"
    yield from _fft(settings)
    for name in _REQUIRED:
        if name not in measured:
            yield f"{name} was not measured"


def _said(source: Source) -> Iterator[str]:
    """Yield the failures that stand in the text before the summary."""
    for line, _ in source.found(r"\.{3,}\s*FAILED"):
        yield f"line {line.number}: HPL's residual is too large"
    for line, found in source.found(r"(\d+) tests completed and failed residual checks"):
        if int(found[1]):
            yield f"line {line.number}: {count(int(found[1]), 'test')} of PTRANS failed the residual check"
    for line, found in source.found(r"Node\(s\) with error (-?\d+)"):
        if int(found[1]):
            yield f"line {line.number}: {_section(source, line)}: {count(int(found[1]), 'rank')} had an error"
    for line, _ in source.found(r"Failed Validation"):
        yield f"line {line.number}: {_section(source, line)}: the result is wrong"


def _fft(settings: Mapping[str, str]) -> Iterator[str]:
    """Yield whether the FFT there and back is off by more than its rounding, which grows with the logarithm of N."""
    error, size = (_number(settings.get(f"MPIFFT_{name}", "")) for name in ("maxErr", "N"))
    eps = _number(settings.get("HPL_eps", "")) or 2.0**-53
    if error is None or size is None or size < 2:
        return  # without a size it was not measured, which is said
    if not 0 <= error / math.log(size) / eps <= _RESIDUAL_ALLOWED:
        yield f"MPIFFT: there and back again is off by {error:g}"


def _section(source: Source, line: Line) -> str:
    """Return the test that a line belongs to."""
    before = [found[1] for at, found in source.found(r"^Begin of (\w+) section") if at.number < line.number]
    return before[-1] if before else "HPCC"

"""The probe's output, line by line, into typed messages and samples (see docs/protocol.md).  Pure."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from wulf.base.errors import ProbeError
from wulf.base.records import Cell, Clock, Exits, Place, ProbeInfo, Reference, Sample, Scheduled, Setting
from wulf.base.records.emulated import ProgramTimes
from wulf.base.text import count, printable

PROTOCOL = 1


class Hello(msgspec.Struct, frozen=True, tag="hello", tag_field="type"):
    """First line of a probe."""

    protocol: int
    version: str
    program: str
    clock: Clock
    hosts: list[str] = []
    cpus: list[list[int]] = []
    mpi: str | None = None
    eager_limits: dict[str, int] = {}
    yields: bool = False
    thread_level: str = ""
    filesystem: str = ""
    port: int | None = None
    role: str = "initiator"


class Progress(msgspec.Struct, frozen=True, tag="progress", tag_field="type"):
    """How far the launch is."""

    visits_done: int
    visits: int
    #: Messages of all visits so far, and when that was since the sweeps began.
    moved_bytes: int = 0
    at_us: int = 0


class CellLine(msgspec.Struct, frozen=True, tag="cell", tag_field="type"):
    """All values of one size."""

    op: str
    size: int
    timing: Literal["iteration", "batch"]
    divisor: float
    iterations: int
    batch_iterations: int
    min_ns: int
    max_ns: int
    histogram: list[tuple[int, int]]
    batch_medians_ns: list[float]
    warmup_medians_ns: list[float]
    warmup_settled: bool
    batch_at_us: list[int] = []
    #: Of the launch, that it is about; empty for all of them.
    ranks: list[int] = []
    #: Which of two settings of the launch; empty where there is one.
    arm: str = ""
    lost: int = 0
    corrupt: int = 0
    #: Of a collective: rank → median of each visit; of each visit, how late ranks may have been and how well clocks
    #: agreed.
    exit_medians_ns: list[list[float]] = []
    start_tolerances_ns: list[float] = []
    clock_errors_ns: list[float] = []
    late: int = 0
    #: Of an operation on files: of each visit the share that was in memory.
    in_memory: list[float | None] = []
    #: Of datagrams, in each visit: how many were sent a second.
    sent_per_s: list[float | None] = []


class ReferenceLine(msgspec.Struct, frozen=True, tag="reference", tag_field="type"):
    """The visits of the reference."""

    #: Rank → one for each visit.
    medians_ns: list[list[float]]
    at_us: list[int]
    #: As those of a cell.
    ranks: list[int] = []
    arm: str = ""


class ScheduledOf(msgspec.Struct, frozen=True):
    """One rank of it."""

    lasted_ns: int
    ran_ns: int | None = None
    waited_ns: int | None = None
    displaced: int | None = None


class ScheduledLine(msgspec.Struct, frozen=True, tag="scheduled", tag_field="type"):
    """How ranks were scheduled while they measured."""

    of: list[ScheduledOf]
    #: As those of a cell.
    ranks: list[int] = []


class ProgramLine(msgspec.Struct, frozen=True, tag="program", tag_field="type"):
    """How the ranks of a program of a pattern spent their time."""

    number: int
    ranks: list[int]
    time_ns: list[int]
    compute_ns: list[int]
    asked_ns: list[int]


#: Code of a failure of which no more is known than that another process has gone.
PEER_LOST = "peer_lost"


class ErrorLine(msgspec.Struct, frozen=True, tag="error", tag_field="type"):
    """Last line of a failed launch."""

    code: str
    message: str
    peer: str = ""


class End(msgspec.Struct, frozen=True, tag="end", tag_field="type"):
    """Last line of a good launch."""

    elapsed_s: float


Message = Hello | Progress | CellLine | ReferenceLine | ScheduledLine | ProgramLine | ErrorLine | End

_decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)
_KNOWN = frozenset({"hello", "progress", "cell", "reference", "scheduled", "program", "error", "end"})


class _Typed(msgspec.Struct):
    type: str


_type_decoder = msgspec.json.Decoder(_Typed)


def message(line: bytes) -> Message | None:
    """Decode one line; None for what is not the probe's: other programs' text and unknown types.

    Raises
    ------
    ProbeError
        The line is the probe's and breaks the protocol.
    """
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        if _type_decoder.decode(line).type not in _KNOWN:
            return None
        decoded = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProbeError(f"the probe broke its protocol ({error}): {printable(line, 120)!r}") from error
    if isinstance(decoded, Hello) and decoded.protocol != PROTOCOL:
        raise ProbeError(
            f"the probe speaks protocol {decoded.protocol}, this wulf {PROTOCOL}: the probe is of another version"
        )
    return decoded


def probe_info(hello: Hello) -> ProbeInfo:
    """Return what a launch record keeps of the first line; host names are made safe to show."""
    return ProbeInfo(
        version=printable(hello.version, 100),
        protocol=hello.protocol,
        mpi=None if hello.mpi is None else printable(hello.mpi, 200),
        hosts=[printable(host, 255) for host in hello.hosts],
        cpus=hello.cpus,
        clock=hello.clock,
        yields=hello.yields,
        eager_limits=hello.eager_limits,
        thread_level=printable(hello.thread_level, 20),
        filesystem=printable(hello.filesystem, 40),
    )


def sample(line: CellLine, launch: str, place: Place, setting: Setting) -> Sample:
    """Return the sample of a cell line.

    Parameters
    ----------
    place
        Node of every rank of the launch.

    Raises
    ------
    ProbeError
        Counts do not add up, or there are values that cannot be.
    """
    _require_counts(line)
    about = _about(line.ranks, place, f"{line.op} at {line.size} B")
    return Sample(
        launch=launch,
        cell=Cell(op=line.op, size_bytes=line.size, place=about, setting=setting),
        timing=line.timing,
        divisor=line.divisor,
        iterations=line.iterations,
        batch_iterations=line.batch_iterations,
        histogram=line.histogram,
        min_ns=line.min_ns,
        max_ns=line.max_ns,
        batch_medians_ns=line.batch_medians_ns,
        batch_at_us=line.batch_at_us,
        warmup_medians_ns=line.warmup_medians_ns,
        warmup_settled=line.warmup_settled,
        lost=line.lost,
        corrupt=line.corrupt,
        exits=_exits(line, about),
        in_memory=line.in_memory,
        sent_per_s=line.sent_per_s,
    )


def _require_counts(line: CellLine) -> None:
    """Raise ProbeError where there is not one value for each iteration or visit, or one that cannot be."""
    which, visits = f"{line.op} at {line.size} B", len(line.batch_medians_ns)
    each = count(visits, "visit")
    counted = sum(times for _, times in line.histogram)
    expected = line.iterations if line.timing == "iteration" else visits
    if counted != expected or any(value < 0 or times < 1 for value, times in line.histogram):
        raise ProbeError(f"{which}: the histogram has {count(counted, 'value')}, {expected} were announced")
    if line.batch_at_us and len(line.batch_at_us) != visits:
        raise ProbeError(f"{which}: {each} ended at {count(len(line.batch_at_us), 'time')}")
    if line.in_memory and not _are_shares(line.in_memory, visits):
        raise ProbeError(f"{which}: it is not said of each of {each} which share was in memory")
    if line.sent_per_s and len(line.sent_per_s) != visits:
        raise ProbeError(f"{which}: {each} with {count(len(line.sent_per_s), 'rate')}")


def _are_shares(values: list[float | None], count: int) -> bool:
    return len(values) == count and all(value is None or 0 <= value <= 1 for value in values)


def _exits(line: CellLine, place: Place) -> Exits | None:
    """Return when the ranks of a collective were done."""
    if not line.exit_medians_ns:
        return None
    visits = len(line.batch_medians_ns)
    by_visit = [line.start_tolerances_ns, line.clock_errors_ns, *line.exit_medians_ns]
    if len(line.exit_medians_ns) != len(place) or any(len(values) != visits for values in by_visit):
        raise ProbeError(
            f"{line.op} at {line.size} B: it is not said when each of {count(len(place), 'rank')} was done in "
            f"{count(visits, 'visit')}"
        )
    return Exits(
        medians_ns=line.exit_medians_ns,
        late=line.late,
        tolerances_ns=line.start_tolerances_ns,
        clock_errors_ns=line.clock_errors_ns,
    )


def reference(line: ReferenceLine, place: Place) -> Reference:
    """Return what a reference line says; `place` is as for `sample`.

    Raises
    ------
    ProbeError
        Its values do not belong to these ranks and visits, or cannot be.
    """
    about = _about(line.ranks, place, "the reference")
    of_visits = all(len(values) == len(line.at_us) for values in line.medians_ns)
    if len(line.medians_ns) != len(about) or not line.at_us or not of_visits:
        raise ProbeError(
            f"the reference does not have one value for each of {count(len(about), 'rank')} and each visit"
        )
    if any(not 0 < value < math.inf for values in line.medians_ns for value in values):
        raise ProbeError("the reference has times that cannot be")
    return Reference(place=about, medians_ns=line.medians_ns, at_us=line.at_us, setting=line.arm)


def scheduled(lines: list[ScheduledLine], place: Place) -> list[Scheduled]:
    """Return how each rank of a launch was scheduled, in rank order; empty where not all say it.

    Raises
    ------
    ProbeError
        A line does not have one entry for each of its ranks, or times that cannot be.
    """
    found: dict[int, Scheduled] = {}
    for line in lines:
        ranks = line.ranks or list(range(len(place)))
        if len(line.of) != len(ranks) or any(not 0 <= rank < len(place) for rank in ranks):
            raise ProbeError(f"how ranks were scheduled is not said of each of {count(len(ranks), 'rank')}")
        if any(value is not None and value < 0 for of in line.of for value in msgspec.structs.astuple(of)):
            raise ProbeError("ranks were scheduled for times that cannot be")
        found |= {rank: _scheduled(of) for rank, of in zip(ranks, line.of, strict=True)}
    return [found[rank] for rank in sorted(found)] if len(found) == len(place) else []


def _scheduled(of: ScheduledOf) -> Scheduled:
    return Scheduled(
        lasted_s=of.lasted_ns / 1e9,
        ran_s=None if of.ran_ns is None else of.ran_ns / 1e9,
        waited_s=None if of.waited_ns is None else of.waited_ns / 1e9,
        displaced=of.displaced,
    )


def program_times(line: ProgramLine, ranks: int) -> ProgramTimes:
    """Return what a line of a program says.

    Raises
    ------
    ProbeError
        It does not say all of each rank, or of ranks that are not there.
    """
    lists = (line.time_ns, line.compute_ns, line.asked_ns)
    if any(len(values) != len(line.ranks) for values in lists):
        raise ProbeError(
            f"program {line.number}: not a time for each of its {count(len(line.ranks), 'rank')}"
        )
    if any(not 0 <= rank < ranks for rank in line.ranks):
        raise ProbeError(f"program {line.number}: there are no ranks {line.ranks} among {ranks}")
    return ProgramTimes(
        number=line.number,
        ranks=line.ranks,
        time_ns=line.time_ns,
        compute_ns=line.compute_ns,
        asked_ns=line.asked_ns,
    )


def _about(ranks: list[int], place: Place, what: str) -> Place:
    """Return the nodes of some ranks of a launch; of all where none are named."""
    if any(not 0 <= rank < len(place) for rank in ranks):
        raise ProbeError(f"{what}: there are no ranks {ranks} among {len(place)}")
    return tuple(place[rank] for rank in ranks) or place

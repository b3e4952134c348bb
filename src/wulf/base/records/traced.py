"""What a trace says of a program, for people."""

from __future__ import annotations

from wulf.base.records.base import Record


class TracedCall(Record, frozen=True, kw_only=True):
    """One kind of call, of all ranks together."""

    #: As it is called in the trace; of calls that are only timed, their own name.
    call: str
    count: int
    #: Time in it [s]: of all ranks together, and of the ranks with the least and the most.
    seconds: float
    least_s: float
    most_s: float
    #: Of what this rank sends, or its own part of a collective; of a receive what came.
    bytes: int


class TracedRank(Record, frozen=True, kw_only=True):
    """One rank."""

    rank: int
    host: str
    #: ``finished``, ``running`` (it died) or ``full`` (calls are missing).
    state: str
    #: Between MPI_Init and MPI_Finalize [s]; null where it did not finish.
    run_s: float | None
    #: Time in MPI, and between its calls [s]. Unsuccessful polls (MPI_Test and the like without result) are in neither.
    mpi_s: float
    compute_s: float
    #: Of the time in MPI that in calls that send and receive, wait for requests, are collectives, are none of these.
    messages_s: float
    waiting_s: float
    collectives_s: float
    other_s: float
    #: Of that in calls on files (MPI_File_write_at and the like).
    files_s: float = 0.0
    #: How many; one of several requests, such as MPI_Waitall, is one.
    calls: int
    #: Calls that are missing.
    lost: int


class TracedThread(Record, frozen=True, kw_only=True):
    """A thread of a rank that called MPI."""

    #: As the system has it.
    name: str
    calls: int
    #: Of them, at the same time as another thread's, and what these took [s].
    overlapping: int
    overlapping_s: float


class TracedThreads(Record, frozen=True, kw_only=True):
    """Threads of a rank that may call MPI from several (MPI_THREAD_MULTIPLE)."""

    rank: int
    #: That called; the first sixteen of them are in `of`.
    threads: int
    #: Time in which two or more were within MPI [s].
    overlap_s: float
    #: What calls took that were at the same time as others, of all threads together [s].
    overlapping_s: float
    #: Whether that is so little (less than a thousandth of the run) that a replay takes them one after the other.
    is_little: bool
    of: list[TracedThread]


class TracedSize(Record, frozen=True, kw_only=True):
    """Messages that ranks send each other, or parts of collectives, of about one size."""

    #: They are smaller than this, and at least half of it.
    below_bytes: int
    count: int
    bytes: int


class TracedPair(Record, frozen=True, kw_only=True):
    """What one rank sends another, by ranks of MPI_COMM_WORLD."""

    source: int
    destination: int
    count: int
    bytes: int


class TracedRow(Record, frozen=True, kw_only=True):
    """A line of the timeline: neighbouring ranks, taken together."""

    first: int
    last: int
    #: Until when it is known what they did [s].
    end_s: float


class TracedStretch(Record, frozen=True, kw_only=True):
    """Some time in MPI of one line of the timeline."""

    #: Number of the line.
    row: int
    #: Since the return of MPI_Init of each rank [s].
    begin_s: float
    end_s: float
    #: ``messages``, ``waiting``, ``collectives`` or ``other``.
    part: str
    #: Share of the stretch's time.
    share: float


class TracedTimeline(Record, frozen=True, kw_only=True):
    """What the ranks did when: the rest is computing. Clocks are not compared: all begin when MPI_Init returns."""

    #: What is taken together [s]; null where every call is a stretch of its own.
    bin_s: float | None
    rows: list[TracedRow]
    stretches: list[TracedStretch]


class TraceSummary(Record, frozen=True, kw_only=True):
    """A trace, summed up."""

    schema_version: int
    trace: str
    command: str
    library: str
    #: What a replay cannot follow, in words.
    unsound: list[str]
    #: Of ranks whose threads were counted.
    threads: list[TracedThreads] = []
    #: All records that the file has.
    records: int
    file_bytes: int
    ranks: list[TracedRank]
    calls: list[TracedCall]
    #: Of messages between two ranks, and of each rank's own parts in collectives.
    sizes: list[TracedSize]
    collective_sizes: list[TracedSize]
    pairs: list[TracedPair]
    timeline: TracedTimeline

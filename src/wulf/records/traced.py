"""What a trace says of a program, for people."""

from __future__ import annotations

from wulf.records.base import Record


class TracedCall(Record, frozen=True, kw_only=True):
    """One kind of call, of all ranks together."""

    #: As it is called in the trace; of calls that are only timed, their own name.
    call: str
    count: int
    #: Time in it [s].
    seconds: float
    #: Of what this rank sends, or its own part of a collective.
    bytes: int


class TracedRank(Record, frozen=True, kw_only=True):
    """One rank."""

    rank: int
    host: str
    #: ``finished``, ``running`` (it died) or ``full`` (calls are missing).
    state: str
    #: Between MPI_Init and MPI_Finalize [s]; null where it did not finish.
    run_s: float | None
    #: Time in MPI, and between its calls [s].
    mpi_s: float
    compute_s: float
    #: Records of calls.
    calls: int
    #: Calls that are missing.
    lost: int


class TracedSize(Record, frozen=True, kw_only=True):
    """Messages of about one size that ranks send each other."""

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


class TraceSummary(Record, frozen=True, kw_only=True):
    """A trace, summed up."""

    schema_version: int
    trace: str
    command: str
    library: str
    #: What a replay cannot follow, in words.
    unsound: list[str]
    #: All records that the file has.
    records: int
    file_bytes: int
    ranks: list[TracedRank]
    calls: list[TracedCall]
    sizes: list[TracedSize]
    pairs: list[TracedPair]

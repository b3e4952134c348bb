"""What programs do with MPI, and what settings bring them."""

from __future__ import annotations

from typing import Literal

from wulf.base.records.base import Estimate, Record, Verdict

Kind = Literal["point to point", "waiting", "collective", "one-sided"]
#: What a program waits for most.
ProgramClass = Literal[
    "computes",
    "uneven ranks",
    "waiting",
    "small messages",
    "large messages",
    "small collectives",
    "large collectives",
    "one-sided",
]


class RankProfile(Record, frozen=True, kw_only=True):
    """One rank from its MPI_Init to its MPI_Finalize."""

    run_ns: int
    #: Ranks that it sent messages to, by number in MPI_COMM_WORLD.
    partners: int
    #: Persistent requests that it started; what they send is not counted.
    started: int
    #: That called MPI.
    threads: int
    #: Of MPI that were seen.
    calls: int
    #: Kind of call → time in such calls [ns].
    ns: dict[Kind, int]


class MessageClass(Record, frozen=True, kw_only=True):
    """Messages of one kind and about one size, of all ranks together; of a collective each rank's own part."""

    kind: Kind
    #: They are smaller than this, and at least half of it.
    below_bytes: int
    count: int
    bytes: int


class MpiProfile(Record, frozen=True, kw_only=True, tag="profile"):
    """What a program did with MPI in one launch, counted in its ranks."""

    #: Of what counted.
    version: str
    ranks: list[RankProfile]
    messages: list[MessageClass]


class Gain(Record, frozen=True, kw_only=True):
    """What a setting changes of a program, in launches that took turns."""

    setting: str
    #: The run time, or the name of a number that the program prints.
    what: str = "run time"
    #: With it ÷ without; null where no pair of launches was whole.
    ratio: Estimate | None
    verdict: Verdict
    reason: str


class Character(Record, frozen=True, kw_only=True):
    """A program: what it does with MPI, of which class it is, and what settings bring it."""

    #: The run that measured it.
    run: str
    command: str
    ranks: int
    program_class: ProgramClass
    #: Mean over ranks of the part of the run time in MPI (0–1), and of the rank with least and with most.
    share: tuple[float, float, float]
    #: Part of the run time that ranks wait because others compute longer (0–1).
    imbalance: float
    #: Part of the time in MPI in collectives (0–1).
    collective: float
    #: Messages per second and rank.
    messages_per_s: float
    #: Half of the messages are smaller than this; null where there are none.
    median_bytes: int | None
    #: Ranks that a rank sends to, as a median.
    partners: float
    gains: list[Gain] = []


class Characters(Record, frozen=True, kw_only=True):
    """Programs side by side."""

    schema_version: int
    programs: list[Character]
    #: Run → why its program could not be characterised.
    failed: dict[str, str] = {}

"""A traced program event by event: with who comes first, and with what ranks and programs share."""

from __future__ import annotations

from wulf.base.records.base import Estimate, Record


class OtherProgram(Record, frozen=True, kw_only=True):
    """A program that runs at the same time, on the same nodes."""

    #: File of its trace.
    trace: str
    #: What the model says that it takes [s].
    time: Estimate


class Contended(Record, frozen=True, kw_only=True):
    """The program on one network, event by event."""

    #: As it was asked for.
    name: str
    #: Run time [s].
    time: Estimate
    #: Run time ÷ that of the program as it was traced, alone.
    change: Estimate
    verdict: str
    #: What the model alone says, with the likely value of every parameter [s].
    model_s: float
    #: Event by event ÷ static, the program alone: how much contention matters; null where static takes no time.
    gap: Estimate | None
    #: With the programs beside it ÷ alone; null where there are none, and where it takes no time alone.
    slowed: Estimate | None = None
    #: How often another message came first than as it was traced.
    moved: int
    #: Taking whoever comes first would have made all wait for each other: messages are in their recorded order here.
    as_recorded: bool = False
    #: Messages that found the buffer before their receiver full, and came again after a timeout; null where a buffer
    #: keeps whatever comes.
    timeouts: int | None = None
    #: Run time ÷ that with buffers that keep whatever comes, with the likely value of every parameter.
    lossy: float | None = None
    beside: list[OtherProgram] = []


class Contention(Record, frozen=True, kw_only=True):
    """What comes of it on all networks."""

    #: Samples that were replayed event by event.
    samples: int
    #: File with the uplinks of switches; empty: none limits anything.
    topology: str = ""
    #: Receives from anybody, and those of them that take whoever comes first; others keep their recorded order.
    wild: int
    chosen: int
    #: The network as it is.
    base: Contended
    scenarios: list[Contended]
    #: What it means, in words.
    meaning: list[str]

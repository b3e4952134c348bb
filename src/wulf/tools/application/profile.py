"""From what a program did with MPI to what it waits for.  Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import msgspec

from wulf.base.errors import ProbeError
from wulf.base.records.profiled import Character, MessageClass, MpiProfile, ProgramClass, RankProfile
from wulf.node.programs.preload import preloaded

#: A program that spends less of its time in MPI gains nothing that is worth a word.
TALKS = 0.05
#: Messages below this take as long as their latency, on the networks that this is for [B].
SMALL = 8192
#: What a message costs on a slow network of today, Gigabit Ethernet as it comes: latency [s] and bandwidth [B/s].
LATENCY_S, BANDWIDTH = 100e-6, 100e6
#: Where not even that explains so much of the time in MPI, ranks wait for each other and not for the network.
EXPLAINED = 0.25
#: What makes up more than this part of the time in MPI is what it is about.
MOST = 0.5


def counted(command: str, family: str, library: str, target: str) -> tuple[str, dict[str, str]]:
    """Return a command for a shell, and its environment, with which every rank loads the library that counts.

    Parameters
    ----------
    family, library
        As `wulf.node.programs.preload.preloaded` takes them.
    target
        File to which rank 0 appends the profile.
    """
    return preloaded(command, family, library, {"WULF_PROFILE": target})


def read(text: bytes, origin: str) -> list[MpiProfile]:
    """Return the profiles that a launch has written, one for each MPI job in it.

    Raises
    ------
    ProbeError
        It cannot be read.
    """
    try:
        found = msgspec.json.Decoder(MpiProfile).decode_lines(text)
    except msgspec.DecodeError as error:
        raise ProbeError(f"{origin}: the profile of the program is damaged: {error}") from None
    if not found or any(not one.ranks or min(rank.run_ns for rank in one.ranks) <= 0 for one in found):
        raise ProbeError(f"{origin}: the profile of the program is damaged: a job without ranks that ran")
    return found


def character(run: str, command: str, profile: MpiProfile) -> Character:
    """Return what a program is like.

    Raises
    ------
    ProbeError
        That cannot be told from its calls; says why.
    """
    if not any(rank.calls for rank in profile.ranks):
        raise ProbeError(
            f"{run}: between MPI_Init and MPI_Finalize no call of MPI was seen: are they made from Fortran?"
        )
    if any(rank.threads > 1 for rank in profile.ranks):
        raise ProbeError(
            f"{run}: several threads of a rank call MPI at once: their times are no part of its run time"
        )
    shares = [_mpi_ns(rank) / rank.run_ns for rank in profile.ranks]
    share = statistics.fmean(shares)
    collective = _part(profile.ranks, "collective")
    imbalance = _imbalance(profile.ranks)
    median = median_bytes(profile.messages)
    run_s = max(rank.run_ns for rank in profile.ranks) * 1e-9
    return Character(
        run=run,
        command=command,
        ranks=len(profile.ranks),
        program_class=_class(profile, share, imbalance),
        share=(share, min(shares), max(shares)),
        imbalance=imbalance,
        collective=collective,
        messages_per_s=sum(one.count for one in profile.messages) / run_s / len(profile.ranks),
        median_bytes=median,
        partners=statistics.median(rank.partners for rank in profile.ranks),
    )


def median_bytes(messages: Sequence[MessageClass]) -> int | None:
    """Return a size that half of the messages are smaller than, as well as their classes tell [B]."""
    total = sum(one.count for one in messages)
    seen = 0
    for one in sorted(messages, key=lambda one: one.below_bytes):
        seen += one.count
        if 2 * seen >= total:
            return one.below_bytes
    return None


def _class(profile: MpiProfile, share: float, imbalance: float) -> ProgramClass:
    if share < TALKS:
        return "computes"
    if imbalance > MOST * share:
        return "uneven ranks"
    counted = not any(rank.started for rank in profile.ranks)
    if counted and _cost_s(profile) < EXPLAINED * 1e-9 * sum(map(_mpi_ns, profile.ranks)):
        return "waiting"
    if _part(profile.ranks, "one-sided") > MOST:
        return "one-sided"
    if _part(profile.ranks, "collective") > MOST:
        own = [one for one in profile.messages if one.kind == "collective"]
        return "small collectives" if _mostly_small(own) else "large collectives"
    own = [one for one in profile.messages if one.kind == "point to point"]
    return "small messages" if _mostly_small(own) else "large messages"


def _cost_s(profile: MpiProfile) -> float:
    """Return what the messages of all ranks would cost on a slow network [s]."""
    steps = math.ceil(math.log2(max(len(profile.ranks), 2)))
    return sum(
        (one.count * LATENCY_S + one.bytes / BANDWIDTH) * (steps if one.kind == "collective" else 1)
        for one in profile.messages
    )


def _mostly_small(messages: Sequence[MessageClass]) -> bool:
    """Whether latency makes up most of their time: a message costs as much as `SMALL` bytes do, whatever its size."""
    count = sum(one.count for one in messages)
    return sum(one.bytes for one in messages) <= SMALL * count


def _mpi_ns(rank: RankProfile) -> int:
    return sum(rank.ns.values())


def _part(ranks: Sequence[RankProfile], kind: str) -> float:
    """Return the part of the time in MPI that is spent in calls of a kind."""
    whole = sum(map(_mpi_ns, ranks))
    return sum(ns for rank in ranks for own, ns in rank.ns.items() if own == kind) / whole if whole else 0.0


def _imbalance(ranks: Sequence[RankProfile]) -> float:
    """Return the part of the run time that the mean rank is idle for because another one computes longer."""
    computing = [rank.run_ns - _mpi_ns(rank) for rank in ranks]
    return (max(computing) - statistics.fmean(computing)) / max(rank.run_ns for rank in ranks)

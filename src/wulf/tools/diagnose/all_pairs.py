"""All pairs of nodes, measured for a diagnosis: several at once, and then who is suspected once more, alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from wulf.base.contracts import Say
from wulf.base.errors import BuildError, ProbeError, TransportError, UsageError
from wulf.base.native import build
from wulf.base.records import Pair
from wulf.base.store import Run, opened
from wulf.base.text import count
from wulf.node.cluster import inventory
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.fleet import allocation
from wulf.node.fleet.clusters import config_of
from wulf.node.fleet.new_run import place_of
from wulf.node.measuring import session
from wulf.stats.estimate.pairs import FEWEST_PARTNERS
from wulf.tools.diagnose import one_way, work
from wulf.tools.diagnose.request import DiagnoseRequest

#: Launches of each pair of suspects that is measured alone.
AGAIN = 3
#: Time for that and for streams in one direction, and of it for these, as a share of the time for all pairs.
AGAIN_SHARE, ONE_WAY_SHARE = 0.5, 0.15

Watching = Callable[[], AbstractContextManager[session.Watcher]]


def judged(request: DiagnoseRequest, watching: Watching, note: Say) -> tuple[Run, bool]:
    """Return the run that a request is about, measured where it names none; and whether all of it was measured."""
    if request.run is not None:
        return opened(request.run, request.runs), True
    config = config_of(request.cluster)
    path = place_of(request.path, request.runs)
    return measure(config, config.select(request.nodes), request.budget_s, path, watching, note)


def measure(
    config: ClusterConfig, nodes: list[str], budget_s: float, path: Path, watching: Watching, note: Say
) -> tuple[Run, bool]:
    """Measure all pairs, and then who is suspected once more; return the run, and whether all of that was done.

    Parameters
    ----------
    budget_s
        Time for all pairs [s]; measuring again takes half as long at most.
    path
        Directory of the new run.
    watching
        Gives who watches a run.
    note
        Is told what a person should know beside it.

    Raises
    ------
    UsageError
        There are too few nodes.
    """
    if len(nodes) <= FEWEST_PARTNERS:
        raise UsageError(
            f"{count(len(nodes), 'node')}: it takes {FEWEST_PARTNERS + 1} to tell which of them is slow; between "
            "fewer: wulf measure, then wulf report"
        )
    request = _request(config, nodes, _capped_s(budget_s, note))
    with watching() as watcher:
        measured = session.start(request, path, watcher)[0]
    suspected = work.again(measured)
    if not suspected:
        return measured, True
    whole = _again(request, measured, suspected, watching, note)
    _one_way(request, measured, watching, note)
    return measured, whole


def _again(
    request: session.MeasureRequest, measured: Run, suspected: list[Pair], watching: Watching, note: Say
) -> bool:
    """Measure pairs once more with nothing beside; say whether that could be done."""
    note(f"once more, one at a time: {count(len(suspected), 'pair')} of who is suspected")
    alone = msgspec.structs.replace(
        request,
        pairs=suspected,
        at_once=False,
        min_launches=AGAIN,
        max_launches=AGAIN,
        budget_s=request.budget_s * (AGAIN_SHARE - ONE_WAY_SHARE),
    )
    try:
        with watching() as watcher:
            session.start(alone, work.path_again(measured), watcher)
    except (ProbeError, TransportError) as error:
        # A node that has gone since: what was seen before stands, with what was measured again until then.
        note(f"not all was measured again, the verdict is that of before: {error}")
        return False
    return True


def _one_way(request: session.MeasureRequest, measured: Run, watching: Watching, note: Say) -> None:
    """Measure streams of who is slow at large messages, in both directions; that it cannot be done is said."""
    pairs = one_way.pairs(work.find(measured).matrices)
    if not pairs:
        return
    note(f"in one direction at a time: {count(len(pairs), 'stream')} of who is slow")
    streams = msgspec.structs.replace(
        request,
        pairs=pairs,
        ops=[one_way.OP],
        sizes_bytes=[one_way.SIZE_BYTES],
        at_once=False,
        min_launches=1,
        max_launches=AGAIN,
        budget_s=request.budget_s * ONE_WAY_SHARE,
    )
    try:
        with watching() as watcher:
            known = work.rates(session.start(streams, work.path_one_way(measured), watcher)[0])
    except (BuildError, ProbeError, TransportError) as error:
        note(f"in which direction they are slow was not measured: {error}")
        return
    if lacking := [pair for pair in pairs if pair not in known]:
        note(
            f"{len(lacking)} of {count(len(pairs), 'stream')} were not measured: the slow direction may be unknown"
        )


def _request(config: ClusterConfig, nodes: list[str], budget_s: float) -> session.MeasureRequest:
    pairs = inventory.pairs("all", nodes)
    # Several pairs at once are one MPI job.
    mpi = bool(build.find_mpi(config.mpi.compiler))
    return session.MeasureRequest(
        config=config,
        pairs=pairs,
        ops=["mpi_pingpong" if mpi else "tcp_rr"],
        ladder="diagnose",
        sizes_bytes=list(work.SIZES_BYTES),
        mpi=config.mpi.compiler,
        precision=0.05,
        budget_s=budget_s,
        max_launches=6,
        at_once=mpi and len({node for pair in pairs for node in pair}) > 3,
    )


def _capped_s(budget_s: float, note: Say) -> float:
    """Return the time for measuring [s]; an allocation has to last for measuring again, too."""
    both = 1 + AGAIN_SHARE
    return allocation.capped(budget_s * both, note) / both

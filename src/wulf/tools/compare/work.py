"""From what is asked to two sides that are measured in turn."""

from __future__ import annotations

from wulf.node.fleet import change
from wulf.node.fleet.clusters import config_of
from wulf.node.fleet.new_run import new_seed
from wulf.node.trials import interleaving
from wulf.node.trials.printed_numbers import printed
from wulf.tools.compare.request import InTurnRequest, LibrariesRequest


def turns(request: InTurnRequest) -> interleaving.InterleaveRequest:
    """Return what a request comes to on the cluster that it names.

    Raises
    ------
    UsageError
        Both sides are the same, or one cannot be read.
    """
    config = config_of(request.cluster)
    return interleaving.InterleaveRequest(
        config=config,
        nodes=config.select(request.nodes),
        sides=(interleaving.side(request.base), interleaving.side(request.candidate)),
        ops=list(request.ops) if request.ops is not None else None,
        sizes_bytes=sorted(set(request.sizes_bytes)),
        pairs=request.pairs,
        command=request.command,
        prints=printed(request.match, request.names),
        launches=request.launches,
        budget_s=request.budget_s,
        margin=request.margin,
        permissions=change.Permissions(take_over=request.take_over, relax=request.relax),
        mpi=request.mpi or config.mpi.compiler,
        seed=new_seed(request.seed),
    )


def libraries(request: LibrariesRequest) -> interleaving.InterleaveRequest:
    """Return what a request comes to on the cluster that it names.

    Raises
    ------
    UsageError
        Both libraries are the same.
    """
    config = config_of(request.cluster)
    first, second = (interleaving.Side(name=library, mpi=library) for library in request.libraries)
    return interleaving.InterleaveRequest(
        config=config,
        nodes=config.select(request.nodes),
        sides=(first, second),
        ops=list(request.ops),
        sizes_bytes=sorted(set(request.sizes_bytes)),
        pairs=request.pairs,
        launches=request.launches,
        budget_s=request.budget_s,
        margin=request.margin,
        permissions=change.Permissions(),
        mpi=None,
        seed=new_seed(request.seed),
    )

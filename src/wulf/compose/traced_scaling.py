"""Speed-up with traces: the tracer is a tool of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wulf.base.errors import TraceError
from wulf.base.tool import Progress
from wulf.node.cluster.inventory import ClusterConfig
from wulf.tools.run import scaling
from wulf.tools.run.record import Scaling
from wulf.tools.run.request import ScalingRequest
from wulf.tools.trace import work as tracing
from wulf.tools.trace.request import TraceRequest


def measure(request: ScalingRequest, progress: Progress) -> Scaling:
    """Launch a program with every number of ranks; raises as `wulf.tools.run.scaling.measure`."""

    def tracer(config: ClusterConfig) -> scaling.Tracer:
        def record(command: str, ranks: int, nodes: Sequence[str], path: Path) -> None:
            asked = TraceRequest(command, path, ranks=ranks, mpi=request.mpi or config.mpi.compiler)
            where = tracing.Where(config=config, nodes=list(nodes), shown=False)
            if tracing.traced(asked, where, progress).exit_code:
                raise TraceError("the program failed with the tracer")

        return record

    return scaling.measure(request, progress, tracer)

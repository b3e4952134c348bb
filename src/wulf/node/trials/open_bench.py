"""Open the bench on which trials are made: probes are put on the nodes, and what the trials consist of is known."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from wulf import __version__
from wulf.base.contracts import Say, Transport
from wulf.base.errors import ProbeError
from wulf.base.records import NodeRecord, Operation
from wulf.node.change.guard import Guards
from wulf.node.cluster import inventory
from wulf.node.fleet import preparation
from wulf.node.trials.bench import TrialRunner

#: A kept setting that is not confirmed is undone so soon [s].
CONFIRM_WITHIN_S = 60


class TuningSite(msgspec.Struct, frozen=True, kw_only=True):
    """What trials need of the outside world."""

    bench: TrialRunner
    operations: list[Operation]
    software: dict[str, str | int | float | bool | None]


def runner_for(
    config: inventory.ClusterConfig,
    transport: Transport,
    guards: Guards,
    records: list[NodeRecord],
    tools: preparation.Toolbox | None,
    commands: Sequence[Operation],
    say: Say,
    *,
    among: Collection[str] | None = None,
) -> TuningSite:
    """Put the probes on the nodes; return the bench on which trials are made, and what it consists of.

    Parameters
    ----------
    among
        Nodes that are measured; None for all.
    """
    measured = records if among is None else [record for record in records if record.node in among]
    measuring = preparation.ready(config, transport, measured, tools, say) if tools is not None else None
    if measuring is not None and measuring.left_out:
        # A trial needs all its pairs.
        raise ProbeError("; ".join(absent.reason for absent in measuring.left_out))
    operations = [*(tools.operations if tools is not None else []), *commands]
    bench = TrialRunner(
        config,
        transport,
        guards,
        measuring.launch if measuring is not None else None,
        records,
        {operation.name: operation for operation in operations},
    )
    return TuningSite(
        bench=bench,
        operations=operations,
        software=measuring.software if measuring is not None else {"wulf": __version__},
    )

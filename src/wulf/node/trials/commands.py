"""Commands of users: as a shell reads them, and two of them measured in turn."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from wulf.base.records import Printed
from wulf.base.text import printable
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.fleet import change
from wulf.node.probe import command
from wulf.node.trials import interleaving


def as_text(words: Sequence[str]) -> str:
    """Return a command for a shell; one word alone is one already."""
    return words[0] if len(words) == 1 else shlex.join(words)


def against(  # noqa: PLR0913 - all that a user says of it
    config: ClusterConfig,
    nodes: list[str],
    commands: tuple[str, str],
    *,
    directory: str,
    prints: tuple[Printed, ...],
    launches: int,
    budget_s: float,
    margin: float,
    seed: int,
) -> interleaving.InterleaveRequest:
    """Return the request that measures two commands on the first node in turn.

    Parameters
    ----------
    directory
        Where they run on the node; empty for where wulf was started, if they have that directory.
    """
    first, second = (_side(text, config.transport, directory) for text in commands)
    return interleaving.InterleaveRequest(
        config=config,
        nodes=nodes,
        sides=(first, second),
        ops=None,
        sizes_bytes=[0],
        pairs="ring",
        command=first.command,
        prints=prints,
        launches=launches,
        budget_s=budget_s,
        margin=margin,
        permissions=change.Permissions(),
        mpi=None,
        seed=seed,
    )


def _side(text: str, transport: str, directory: str) -> interleaving.Side:
    return interleaving.Side(name=printable(text, 60), command=command.placed(text, transport, directory))

"""Nodes: what they are, what is wrong with them, and settings that help."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wulf.base.records import NodeRecord
from wulf.base.store.tuning import TuningRun
from wulf.face.api.arguments import checked
from wulf.face.api.common import Cluster, place_of
from wulf.face.api.declared import function
from wulf.face.logged import Logged
from wulf.node.fleet import change
from wulf.node.fleet.begin import new_seed
from wulf.node.fleet.clusters import config_of
from wulf.node.fleet.look import look
from wulf.node.trials import prepare
from wulf.tools.audit import work as auditing
from wulf.tools.audit.request import AuditRequest
from wulf.tools.mend import work as mending
from wulf.tools.mend.request import MendRequest
from wulf.tools.tune import session as tuning


@checked
def node_facts(cluster: Cluster = None, *, nodes: str | None = None) -> list[NodeRecord]:
    """Return what the nodes are, as ``wulf audit facts`` does: ``records[0].facts``; nothing is changed."""
    config = config_of(cluster)
    return look(config, config.select(nodes))


audit = function(AuditRequest, auditing.audit)
mend = function(MendRequest, mending.run)


@checked
def tune(
    cluster: Cluster = None,
    path: Path | str | None = None,
    *,
    nodes: str | None = None,
    objective: str = "latency",
    knobs: Sequence[str] = (),
    mpi: str | None = None,
    budget_s: float = 1800.0,
    margin: float = 0.02,
    seed: int | None = None,
    set_kept: bool = True,
    take_over: bool = False,
    relax: bool = False,
) -> TuningRun:
    """Find the settings that help, by experiment, and set them, as ``wulf tune`` does.

    Parameters
    ----------
    cluster, path, nodes
        As for `measure`.
    objective
        ``latency``, ``bandwidth``, ``app: COMMAND``, or a ``.toml`` file.
    knobs
        Only these (``*`` matches, ``KNOB=VALUE,VALUE`` names values); empty for the objective's own.
    margin
        Change of the objective that does not matter, as a share.
    set_kept
        Whether what helps stays set at the end, until the next boot.
    take_over, relax
        What ``--take-over`` and ``--relax`` permit.

    Raises
    ------
    WulfError
        Of what could not be done; the nodes are put back then.
    """
    config = config_of(cluster)
    compiler = mpi or config.mpi.compiler
    watcher = Logged()
    request = tuning.TuneRequest(
        config=config,
        nodes=config.select(nodes),
        goal=prepare.goal(objective, compiler, watcher.stage),
        patterns=list(knobs),
        mpi=compiler,
        budget_s=budget_s,
        margin=margin,
        seed=new_seed(seed),
        permissions=change.Permissions(take_over=take_over, relax=relax),
    )
    return tuning.start(request, place_of(path), watcher, set_kept=set_kept)

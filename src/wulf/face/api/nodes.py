"""Nodes: what they are, what is wrong with them, and settings that help."""

from __future__ import annotations

from wulf.base.records import NodeRecord
from wulf.base.store.tuning import TuningRun
from wulf.base.tool import Progress
from wulf.face.api.arguments import checked
from wulf.face.api.common import Cluster
from wulf.face.api.declared import function
from wulf.face.logged import Logged
from wulf.node.fleet.clusters import config_of
from wulf.node.fleet.look import look
from wulf.node.fleet.new_run import place_of
from wulf.tools.audit import work as auditing
from wulf.tools.audit.request import AuditRequest
from wulf.tools.mend import work as mending
from wulf.tools.mend.request import MendRequest
from wulf.tools.tune import session as tuning
from wulf.tools.tune.request import TuneRequest


@checked
def node_facts(cluster: Cluster = None, *, nodes: str | None = None) -> list[NodeRecord]:
    """Return what the nodes are, as ``wulf audit facts`` does: ``records[0].facts``; nothing is changed."""
    config = config_of(cluster)
    return look(config, config.select(nodes))


audit = function(AuditRequest, auditing.audit)
mend = function(MendRequest, mending.run)


def _tune(request: TuneRequest, progress: Progress) -> TuningRun:
    config, watcher = config_of(request.cluster), Logged()
    task = tuning.task_of(request, config, config.select(request.nodes), progress)
    return tuning.start(task, place_of(request.path, request.runs), watcher, set_kept=request.set_kept)


tune = function(TuneRequest, _tune)

"""Nodes: what they are, what is wrong with them, and settings that help."""

from __future__ import annotations

from pathlib import Path

from wulf.base.records import NodeRecord
from wulf.base.records.watched import WatchReport
from wulf.base.store.history import History
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
from wulf.tools.watch import environment, judging


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


@checked
def watch(name: str | None = None, *, watches: Path | str | None = None) -> WatchReport:
    """Return what a watch has seen, as ``wulf watch show --json`` prints it; a watch is installed and run by the shell.

    Parameters
    ----------
    name
        Name of the watch. Default: the only one.
    watches
        Directory of all watches. Default: that of this user.
    """
    directory = environment.only(Path(watches) if watches else environment.home(), name)
    with History(directory) as history:
        now = environment.SystemClock().now()
        return judging.report(history, directory.name, history.nodes(), now, None)

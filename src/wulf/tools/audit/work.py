"""From a look at the nodes to findings."""

from __future__ import annotations

from wulf.base.records import Audit
from wulf.base.tool import Progress
from wulf.node.fleet.look import judge, taken
from wulf.tools.audit.request import AuditRequest


def audit(request: AuditRequest, progress: Progress) -> Audit:
    """Return what is wrong with the nodes, and which differ from the others.

    Raises
    ------
    TransportError
        No node answers.
    """
    progress("looking at the nodes")
    return judge(taken(request.cluster, request.nodes, request.look), request.profile)

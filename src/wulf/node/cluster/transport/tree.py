"""Reach thousands of nodes through gateways (ClusterShell's tree propagation).

A gateway needs ClusterShell for its Python. It uses its own ssh configuration, with ``[ssh] options`` and
``user`` from here.
ClusterShell carries lines: whether the last one ended in a newline is not known here, and one is assumed.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ClusterShell.Event import EventHandler
from ClusterShell.NodeSet import NodeSet
from ClusterShell.Propagation import RouteResolvingError
from ClusterShell.Task import task_self
from ClusterShell.Topology import TopologyError, TopologyGraph
from ClusterShell.Worker.Tree import TreeWorker

from wulf.node.cluster.names import expand
from wulf.node.cluster.schema import SshSection
from wulf.node.cluster.transport.shell import SSH_FAILED, STDERR_LIMIT, STDOUT_LIMIT, Raw

_ROOT = "wulf-controller"
#: Exit code that ClusterShell gives to the nodes behind a gateway that breaks down (EX_PROTOCOL).
_GATEWAY_FAILED = os.EX_PROTOCOL
#: What the way through the gateways may cost on top of the command's own time [s].
_GRACE_S = 5.0


def tree_out(
    text: str,
    nodes: Sequence[str],
    ssh: SshSection,
    gateways: dict[str, str],
    *,
    stdin: bytes,
    timeout_s: float,
) -> dict[str, Raw]:
    """Run `text` in the login shell of every node, by way of `gateways` (gateway → node set)."""
    task = task_self()
    task.set_info("fanout", ssh.fanout)
    task.set_info("connect_timeout", max(1, round(ssh.connect_timeout_s)))
    task.set_info("ssh_options", shlex.join(ssh.options))
    task.set_info("ssh_user", ssh.user)
    # Gateways are sent the task's topology, not the worker's.
    task.topology = _topology(gateways, nodes)
    collector = _Collector()
    worker = TreeWorker(
        NodeSet.fromlist(list(nodes)),
        collector,
        timeout_s,
        command=text,
        topology=task.topology,
        newroot=_ROOT,
        stderr=True,
    )
    guard = task.timer(timeout_s + _GRACE_S, _Guard(worker), autoclose=True)
    task.schedule(worker)
    worker.write(stdin)
    worker.set_write_eof()
    failure = ""
    try:
        task.resume()
    except (TopologyError, RouteResolvingError) as error:
        # A gateway went away: what has not answered by now is behind it, or shared its fate.
        worker.abort()
        failure = f"the gateways failed: {error}"
    except BaseException:
        worker.abort()
        raise
    finally:
        guard.invalidate()
        task.topology = None
    return {node: collector.raw(node, failure) for node in nodes}


def gateway_check() -> list[str]:
    """Command that succeeds on a node that can be a gateway: its Python has ClusterShell."""
    python = os.environ.get("CLUSTERSHELL_GW_PYTHON_EXECUTABLE") or Path(sys.executable or "python3").name
    return [python, "-c", "import ClusterShell.Gateway"]


def _topology(gateways: dict[str, str], nodes: Sequence[str]) -> Any:
    """Tree: controller → gateways → their nodes; a node of no gateway is reached directly."""
    graph = TopologyGraph()
    wanted = set(nodes)
    graph.add_route(NodeSet(_ROOT), NodeSet.fromlist(list(gateways)))
    for gateway, spec in gateways.items():
        behind = [node for node in expand(spec) if node in wanted and node != gateway]
        if behind:
            graph.add_route(NodeSet(gateway), NodeSet.fromlist(behind))
    return graph.to_tree(_ROOT)


class _Collector(EventHandler):  # type: ignore[misc]
    """Keep what each node prints, and only so much."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[tuple[str, str], bytearray] = {}
        self._codes: dict[str, int] = {}
        self._overflow: set[str] = set()

    def ev_read(self, _worker: Any, node: str, sname: str, msg: bytes) -> None:
        kept = self._kept.setdefault((str(node), sname), bytearray())
        if sname == "stderr":
            kept += msg + b"\n"
            del kept[:-STDERR_LIMIT]
        elif len(kept) + len(msg) < STDOUT_LIMIT:
            kept += msg + b"\n"
        else:
            self._overflow.add(str(node))

    def ev_hup(self, _worker: Any, node: str, rc: int) -> None:
        self._codes[str(node)] = rc

    def raw(self, node: str, failure: str) -> Raw:
        """Return what came from `node`; `failure` says why nothing may have come from any."""
        code = self._codes.get(node)
        stderr = bytes(self._kept.get((node, "stderr"), b""))
        if code == _GATEWAY_FAILED and not stderr:
            failure = "its gateway failed"
        if failure and (code is None or code == _GATEWAY_FAILED):
            stderr, code = stderr + failure.encode(), SSH_FAILED
        return Raw(
            stdout=bytes(self._kept.get((node, "stdout"), b"")),
            stderr=stderr,
            code=code,
            timed_out=code is None,
            overflow=node in self._overflow,
        )


class _Guard(EventHandler):  # type: ignore[misc]
    """Give up on gateways that hang."""

    def __init__(self, worker: Any) -> None:
        super().__init__()
        self._worker = worker

    def ev_timer(self, _timer: Any) -> None:
        self._worker.abort()

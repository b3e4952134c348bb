"""Run commands on this machine, whatever the node is called."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from wulf.base.contracts import NodeResult
from wulf.node.cluster.config import ClusterConfig
from wulf.node.cluster.names import check_node_name
from wulf.node.cluster.transport import shell
from wulf.node.cluster.transport.fanout import fan_out
from wulf.node.cluster.transport.stream import Stream


class LocalTransport:
    """Every node is this machine."""

    name = "local"

    def __init__(self, config: ClusterConfig) -> None:
        self._fanout = config.ssh.fanout

    def run(
        self,
        argv: Sequence[str],
        nodes: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        each: Callable[[NodeResult], None] | None = None,
        fresh: bool = False,  # noqa: ARG002 - there is no connection
    ) -> dict[str, NodeResult]:
        """Run the command once for every node; see `wulf.base.contracts.Transport`."""
        names = [check_node_name(node) for node in dict.fromkeys(nodes)]
        mark = secrets.token_hex(8)
        words = shell.run_words(argv, env, mark, timeout_s)
        results: dict[str, NodeResult] = {}
        take = each or (lambda result: results.__setitem__(result.node, result))
        fan_out(
            lambda _node: words,
            names,
            stdin=stdin or b"",
            timeout_s=timeout_s,
            fanout=self._fanout,
            done=lambda node, raw: take(shell.judge(node, raw, mark, timeout_s)),
        )
        return {node: results[node] for node in names if node in results}

    def put(
        self, source: Path, target: str, nodes: Sequence[str], *, timeout_s: float, mode: int = 0o755
    ) -> dict[str, NodeResult]:
        """Copy a file to an absolute path, once for every node."""
        content = source.read_bytes()
        words = shell.put_words(target, hashlib.sha256(content).hexdigest(), mode)
        return self.run(words, nodes, timeout_s=timeout_s, stdin=content)

    def start(
        self,
        argv: Sequence[str],
        node: str,
        *,
        env: Mapping[str, str] | None = None,
        line: str | None = None,
    ) -> Stream:
        """Start a command; see `wulf.base.contracts.Transport`."""
        mark = secrets.token_hex(8)
        return Stream(shell.stream_words(argv, env, mark, line), check_node_name(node), mark, line)

    def close(self) -> None:
        """Nothing is kept open."""

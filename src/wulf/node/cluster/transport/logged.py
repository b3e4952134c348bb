"""A transport that tells the log what it does, and how long that took."""

from __future__ import annotations

import logging
import shlex
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from wulf.base.contracts import NodeResult, RemoteProcess, Transport
from wulf.base.nodeset import fold
from wulf.base.text import printable

LOG = logging.getLogger("wulf.nodes")
#: Of a command, which may carry a whole script [characters].
_SHOWN = 300


class ClosableTransport(Transport, Protocol):
    """A transport that may keep connections open."""

    def close(self) -> None:
        """End what is kept open; the transport is not used afterwards."""


class LoggedTransport:
    """Hands everything on to another transport.

    What a command gets on its standard input is not logged: it may be a secret.
    """

    def __init__(self, inner: ClosableTransport) -> None:
        self._inner = inner
        self.name = inner.name

    def run(
        self,
        argv: Sequence[str],
        nodes: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        each: Callable[[NodeResult], None] | None = None,
        fresh: bool = False,
    ) -> dict[str, NodeResult]:
        """Run the command on all nodes; see `wulf.base.contracts.Transport`."""
        begin = time.monotonic()
        LOG.debug("%s: %s", fold(nodes), _shown(argv))
        how: Counter[str] = Counter()

        def take(result: NodeResult) -> None:
            how[result.status] += 1
            if result.status != "ok":
                LOG.debug("%s: %s", result.node, result.reason)
            if each is not None:
                each(result)

        results: dict[str, NodeResult] = {}
        try:
            results = self._inner.run(
                argv,
                nodes,
                timeout_s=timeout_s,
                stdin=stdin,
                env=env,
                each=take if each is not None else None,
                fresh=fresh,
            )
        finally:
            if each is None:
                for result in results.values():
                    take(result)
            answers = ", ".join(f"{count} {status}" for status, count in how.items()) or "no answer"
            LOG.debug("%s: %s in %.2f s", fold(nodes), answers, time.monotonic() - begin)
        return results

    def put(
        self, source: Path, target: str, nodes: Sequence[str], *, timeout_s: float, mode: int = 0o755
    ) -> dict[str, NodeResult]:
        """Copy a file to all nodes; see `wulf.base.contracts.Transport`."""
        LOG.debug("%s: %s goes to %s", fold(nodes), source, target)
        return self._inner.put(source, target, nodes, timeout_s=timeout_s, mode=mode)

    def start(
        self,
        argv: Sequence[str],
        node: str,
        *,
        env: Mapping[str, str] | None = None,
        line: str | None = None,
    ) -> AbstractContextManager[RemoteProcess]:
        """Start a command on one node; see `wulf.base.contracts.Transport`."""
        LOG.debug("%s: starts %s", node, _shown(argv))
        return self._inner.start(argv, node, env=env, line=line)

    def close(self) -> None:
        """End what the other one keeps open."""
        self._inner.close()


def _shown(argv: Sequence[str]) -> str:
    return printable(" ".join(shlex.join(argv).split()), _SHOWN)

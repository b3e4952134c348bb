"""Nodes that are namespaces of this machine, each with a real guard of its own."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.unit import spaces
from wulf.base.contracts import NodeResult

BEFORE = "# of the site\nbtl = tcp,self\n"


class Nodes:
    """Some nodes, each with a state of its own, that have /opt in common; also the way to run commands there."""

    name = "namespaces"

    def __init__(self, directory: Path, names: Sequence[str]) -> None:
        self.opt = directory / "opt"
        self.opt.mkdir()
        self.file = self.opt / "openmpi-mca-params.conf"
        self.file.write_text(BEFORE)
        programs = directory / "bin"
        programs.mkdir()
        (programs / "ompi_info").write_text(
            f'#!/bin/sh\n[ -z "$HOME" ] || echo "path:sysconfdir:{self.opt}"\n'
        )
        (programs / "ompi_info").chmod(0o755)
        self._programs = programs
        self._keepers = {name: self._raise(name) for name in names}

    def _raise(self, name: str) -> subprocess.Popen[bytes]:
        ready = self.opt.parent / f"ready.{name}"
        start = (
            f"hostname {name} && mkdir -p /var/lib/wulf && mount -t tmpfs none /var/lib/wulf && "
            f"mount --bind {self._programs} /usr/local/sbin && "
            f"mount -t tmpfs none /run && mount -t tmpfs none /etc/systemd/system && touch {ready} && exec sleep 3000"
        )
        keeper = subprocess.Popen(["unshare", "--net", "--mount", "--uts", "bash", "-c", start])
        deadline = time.monotonic() + 30
        while not ready.exists():
            assert time.monotonic() < deadline and keeper.poll() is None, "the node does not come up"
            time.sleep(0.05)
        return keeper

    def on(self, node: str, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        enter = ["nsenter", f"--target={self._keepers[node].pid}", "--net", "--mount", "--uts", "--"]
        return subprocess.run(
            [*enter, *words],
            input=stdin,
            capture_output=True,
            timeout=120,
            check=False,
        )

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
        del timeout_s, env, each, fresh
        found = {}
        for node in nodes:
            done = self.on(node, *argv, stdin=stdin or b"")
            found[node] = NodeResult(
                node=node,
                status="exit" if done.returncode else "ok",
                exit_code=done.returncode,
                stdout=done.stdout,
                stderr=done.stderr,
                reason=f"{node}: exit code {done.returncode}" if done.returncode else "",
            )
        return found

    def put(
        self, source: Path, target: str, nodes: Sequence[str], *, timeout_s: float, mode: int = 0o755
    ) -> dict[str, NodeResult]:
        del mode
        argv = ["sh", "-c", f"cat >{target} && chmod 700 {target}"]
        return self.run(argv, nodes, timeout_s=timeout_s, stdin=source.read_bytes())

    def start(self, argv: Sequence[str], node: str, *, env: Mapping[str, str] | None = None):  # type: ignore[no-untyped-def]
        raise NotImplementedError

    def end(self) -> None:
        for keeper in self._keepers.values():
            spaces.end({spaces.space_of(keeper.pid)})
            keeper.wait()

"""Run one local program per node, many at once, on ClusterShell's event loop.

ClusterShell's own workers cut output into lines, which loses whether it ended in one, and keep all of it.
These keep the bytes as they are, and only so many.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

from ClusterShell.Task import task_self
from ClusterShell.Worker.Exec import ExecClient, ExecWorker

from wulf.base.signals import undisturbed
from wulf.node.cluster.transport.shell import STDERR_LIMIT, STDOUT_LIMIT, Raw

#: How long a process may outlive its output [s] before it counts as hanging.
_LINGER_S = 2.0


def fan_out(
    build: Callable[[str], list[str]],
    nodes: Sequence[str],
    *,
    stdin: bytes,
    timeout_s: float,
    fanout: int,
    done: Callable[[str, Raw], None],
) -> None:
    """Run ``build(node)`` for every node, at most `fanout` at once; each gets `stdin` and `timeout_s` [s].

    What a node answered goes to `done` as soon as it has ended, and is not kept.
    """
    task = task_self()
    task.set_info("fanout", fanout)
    worker = _Worker(list(nodes), build, stdin, timeout_s, done)
    task.schedule(worker)
    try:
        task.resume()
    except BaseException as error:
        # Interrupted: nothing of ours may stay behind. The event loop may have been in any state and may trip
        # over its own clients while it unwinds; what counts is what began it. The next command gets a new one.
        worker.kill()
        with contextlib.suppress(Exception):
            task.abort(kill=True)
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise


class _Client(ExecClient):  # type: ignore[misc]
    """One process and its three streams."""

    worker: _Worker

    def _start(self) -> _Client:
        with undisturbed():
            return self._spawn()

    def _spawn(self) -> _Client:
        self.kept: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self.overflow = False
        self.deadline = time.monotonic() + self.worker.limit_s
        stdin_read, stdin_write = os.pipe()
        stdout_read, stdout_write = os.pipe()
        stderr_read, stderr_write = os.pipe()
        ends = (stdin_read, stdout_write, stderr_write)
        try:
            # A session of its own: no terminal to ask questions on, and Ctrl-C is for us to pass on.
            self.popen = subprocess.Popen(
                self.worker.build(self.key),
                stdin=ends[0],
                stdout=ends[1],
                stderr=ends[2],
                start_new_session=True,
            )
        finally:
            for end in ends:
                os.close(end)
        for end in (stdin_write, stdout_read, stderr_read):
            os.set_blocking(end, False)
        self.streams.set_reader("stdout", stdout_read)
        # A master connection of an old ssh keeps stderr open: the end of stdout is the end.
        self.streams.set_reader("stderr", stderr_read, retain=False)
        self.streams.set_writer("stdin", stdin_write, retain=False)
        self._write("stdin", self.worker.stdin)
        self._set_write_eof("stdin")
        return self

    def _handle_read(self, sname: str) -> None:
        self._keep(sname, self._read(sname))
        if self.overflow:
            self.abort()

    def _keep(self, sname: str, chunk: bytes) -> None:
        kept = self.kept[sname]
        kept += chunk
        if sname == "stderr":
            del kept[:-STDERR_LIMIT]
        elif len(kept) > STDOUT_LIMIT:
            del kept[STDOUT_LIMIT:]
            self.overflow = True

    def _flush_read(self, sname: str) -> None:
        """Nothing is held back."""

    def _close(self, abort: bool, timeout: bool) -> None:
        code = None if abort else self._wait()
        if code is None:
            _kill_group(self.popen)
        self._drain_stderr()
        self.streams.clear()
        self.invalidate()
        raw = Raw(
            stdout=bytes(self.kept["stdout"]),
            stderr=bytes(self.kept["stderr"]),
            code=code,
            timed_out=timeout or (code is None and not self.overflow),
            overflow=self.overflow,
        )
        self.kept.clear()
        self.worker.done(self.key, raw)
        self.worker._check_fini()

    def _wait(self) -> int | None:
        """Exit code; None when the process outlives its output."""
        left = max(0.0, self.deadline - time.monotonic())
        try:
            return self.popen.wait(timeout=min(left, _LINGER_S))
        except subprocess.TimeoutExpired:
            return None

    def _drain_stderr(self) -> None:
        stream = self.streams.get("stderr")
        while stream is not None:
            try:
                chunk = os.read(stream.fd, 1 << 16)
            except BlockingIOError:
                return
            if not chunk:
                return
            self._keep("stderr", chunk)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):  # it may have ended in the meantime
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class _Worker(ExecWorker):  # type: ignore[misc]
    """The clients of one command."""

    def __init__(
        self,
        nodes: list[str],
        build: Callable[[str], list[str]],
        stdin: bytes,
        timeout_s: float,
        done: Callable[[str, Raw], None],
    ) -> None:
        self.build = build
        self.stdin = stdin
        self.limit_s = timeout_s
        self.done = done
        self._names = nodes
        super().__init__(None, None, timeout=timeout_s, command="", stderr=True)

    def kill(self) -> None:
        """End all processes, whatever the event loop knows of them."""
        for client in self._clients:
            if client.popen is not None and client.popen.poll() is None:
                _kill_group(client.popen)

    def _create_clients(self, **kwargs: Any) -> None:
        # Not by way of NodeSet: names go in and come out as they are.
        self._clients = [_Client(name, None, self, True, kwargs["timeout"]) for name in self._names]

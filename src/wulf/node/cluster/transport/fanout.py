"""Run one local program per node, many at once; docs/adr/0058-own-fan-out.md says why in a loop of our own."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import IO

from wulf.base.signals import undisturbed
from wulf.node.cluster.transport.shell import STDERR_LIMIT, STDOUT_LIMIT, Raw

#: How long a process may outlive its output [s] before it counts as hanging.
_LINGER_S = 2.0
#: Time to the first look whether it has ended [s]; the longer it outlives its output, the longer.
_GLANCE_S = 0.001
#: What is read or written at once [B].
_CHUNK = 1 << 16


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
    left = deque(nodes)
    running: set[_Program] = set()
    with selectors.DefaultSelector() as selector:
        try:
            while left or running:
                while left and len(running) < fanout:
                    node = left.popleft()
                    with undisturbed():
                        running.add(_Program(node, build(node), stdin, timeout_s, selector))
                for key, _ in selector.select(_pause_s(running)):
                    key.data()
                for program in [program for program in running if program.is_over()]:
                    raw = program.end()
                    running.remove(program)
                    done(program.node, raw)
        finally:
            # Interrupted: nothing of ours may stay behind.
            with undisturbed():
                for program in running:
                    program.end()


def _pause_s(running: Collection[_Program]) -> float:
    """Return how long there is nothing to do but to wait for output."""
    now = time.monotonic()
    return max(0.0, min(program.due(now) for program in running) - now)


class _Program:
    """One program, its three streams, and the bytes that it has printed: as they are, and only so many."""

    def __init__(
        self, node: str, argv: list[str], stdin: bytes, limit_s: float, selector: selectors.BaseSelector
    ) -> None:
        self.node = node
        self._selector = selector
        self._deadline = time.monotonic() + limit_s
        self._silent_since: float | None = None
        self._unsent = memoryview(stdin)
        self._stdout, self._stderr = bytearray(), bytearray()
        # A session of its own: no terminal to ask questions on, and Ctrl-C is for us to pass on.
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._follow(self._process.stdin, selectors.EVENT_WRITE, self._write)
        self._follow(self._process.stdout, selectors.EVENT_READ, self._read)
        self._follow(self._process.stderr, selectors.EVENT_READ, self._read_errors)

    def _follow(self, pipe: IO[bytes] | None, event: int, act: Callable[[IO[bytes]], object]) -> None:
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
        self._selector.register(pipe, event, partial(act, pipe))

    def _leave(self, pipe: IO[bytes]) -> None:
        if not pipe.closed:
            self._selector.unregister(pipe)
            pipe.close()

    def _write(self, pipe: IO[bytes]) -> None:
        try:
            sent = pipe.write(self._unsent[:_CHUNK]) or 0
        except BrokenPipeError:
            sent = len(self._unsent)
        self._unsent = self._unsent[sent:]
        if not self._unsent:
            self._leave(pipe)

    def _read(self, pipe: IO[bytes]) -> None:
        chunk = pipe.read(_CHUNK)
        if chunk:
            self._stdout += chunk
        elif chunk is not None:
            # The end of stdout is the end: a master connection of an old ssh keeps stderr open.
            self._silent_since = time.monotonic()
            self._leave(pipe)

    def _read_errors(self, pipe: IO[bytes]) -> bool:
        """Read once; False when there is nothing (more)."""
        chunk = pipe.read(_CHUNK)
        if chunk:
            self._stderr += chunk
            del self._stderr[:-STDERR_LIMIT]
        elif chunk is not None:
            self._leave(pipe)
        return bool(chunk)

    def _overflows(self) -> bool:
        return len(self._stdout) > STDOUT_LIMIT

    def due(self, now: float) -> float:
        """Return when it has to be looked at, though it prints nothing (of the monotonic clock)."""
        if self._silent_since is None:
            return self._deadline
        return min(self._deadline, now + _GLANCE_S + (now - self._silent_since) / 4)

    def is_over(self) -> bool:
        """Whether there is nothing more to wait for."""
        now = time.monotonic()
        if now >= self._deadline or self._overflows():
            return True
        if self._silent_since is None:
            return False
        return self._process.poll() is not None or now >= self._silent_since + _LINGER_S

    def end(self) -> Raw:
        """Return what came of it; it is killed if it has not ended by itself."""
        code = None if self._silent_since is None or self._overflows() else self._process.poll()
        if code is None:
            _kill_group(self._process)
        stderr = self._process.stderr
        while stderr is not None and not stderr.closed and self._read_errors(stderr):
            pass
        for pipe in (self._process.stdin, self._process.stdout, stderr):
            if pipe is not None:
                self._leave(pipe)
        return Raw(
            stdout=bytes(self._stdout[:STDOUT_LIMIT]),
            stderr=bytes(self._stderr),
            code=code,
            timed_out=code is None and not self._overflows(),
            overflow=self._overflows(),
        )


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):  # it may have ended in the meantime
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()

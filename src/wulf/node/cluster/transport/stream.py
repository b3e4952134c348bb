"""One command on one node, read line by line while it runs."""

from __future__ import annotations

import math
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType

from wulf.base.errors import OverdueError, TransportError
from wulf.base.text import printable
from wulf.node.cluster.transport.shell import SSH_FAILED, STDERR_LIMIT, STDOUT_LIMIT, last_words, split_end

#: How long the node gets to end the command before the connection is cut [s]: the wrapper's own 3 s and some.
_STOP_S = 6.0
_STOP_UNHEARD_S = 1.0
#: What may come before the command's own output (login scripts) [B].
_NOISE_LIMIT = 1 << 20


class Stream:
    """A wrapped command (see `shell.stream_words`) in a local process: sh itself, or ssh to a node.

    Closing its stdin, however that happens, ends the command where it runs. `line` is what the command reads.
    """

    def __init__(self, words: list[str], node: str, mark: str, line: str | None = None) -> None:
        self._node = node
        self._mark = mark
        self._begun = False
        self._heard = False
        self._buffer = bytearray()
        self._stderr = bytearray()
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._stdin = self._process.stdin
        self._selector = selectors.DefaultSelector()
        for pipe, name in ((self._process.stdout, "stdout"), (self._process.stderr, "stderr")):
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ, name)
        self._open = {"stdout", "stderr"}
        if line is not None:
            # One that has ended already says why when it is read.
            with suppress(BrokenPipeError):
                self._stdin.write(f"{line}\n".encode())

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._selector.close()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def lines(self, timeout_s: float, total_s: float | None = None) -> Iterator[bytes]:
        """Yield stdout line by line, without the newline, to its end.

        Raises
        ------
        TransportError
            When no line comes for `timeout_s` [s], or the node prints an endless line.
        OverdueError
            When it has not ended after `total_s` [s], whatever it prints.
        """
        end = math.inf if total_s is None else time.monotonic() + total_s
        while True:
            line = self._next_line(min(time.monotonic() + timeout_s, end), timeout_s, end)
            if line is None:
                return
            yield line

    def ready(self) -> list[bytes]:
        """Return the lines of stdout that have come and were not read; wait for none.

        Raises
        ------
        TransportError
            When the node prints an endless line.
        """
        self._fill(time.monotonic())
        found = []
        while (line := self._own_line()) is not None:
            found.append(line)
        return found

    def wait(self, timeout_s: float) -> int:
        """Exit code of the command; what it still prints is read and can be had from `lines` afterwards.

        Raises
        ------
        TransportError
            When it has not ended after `timeout_s` [s], or the connection was lost.
        """
        deadline = time.monotonic() + timeout_s
        while "stdout" in self._open:
            # What goes on printing has always something to read.
            if not self._fill(deadline) or time.monotonic() >= deadline:
                raise TransportError(f"{self._node}: the command has not ended in {timeout_s:g} s")
        try:
            code = self._process.wait(timeout=max(0.05, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise TransportError(f"{self._node}: the command has not ended in {timeout_s:g} s") from error
        self._drain()
        _, ended = split_end(bytes(self._stderr), self._mark)
        if ended is None:
            said = last_words(bytes(self._stderr))
            what = "ssh could not connect" if code == SSH_FAILED and not self._begun else "connection lost"
            raise TransportError(f"{self._node}: {what}" + (f": {said}" if said else ""))
        return ended

    def stderr(self) -> bytes:
        """Return what has come on stderr so far (its last 64 KiB)."""
        self._drain()
        return split_end(bytes(self._stderr), self._mark)[0]

    def stop(self) -> None:
        """End it here and on the node; do nothing when it has ended."""
        if not self._stdin.closed:
            self._stdin.close()
        self._fill(time.monotonic())
        # A node that has never said anything may be one that ssh is still trying to reach.
        deadline = time.monotonic() + (_STOP_S if self._heard else _STOP_UNHEARD_S)
        # Its output has to be read, or it may never get to its end.
        while self._process.poll() is None and "stdout" in self._open and time.monotonic() < deadline:
            self._fill(min(deadline, time.monotonic() + 0.1))
            self._buffer.clear()
        try:
            self._process.wait(timeout=max(0.05, min(1.0, deadline - time.monotonic())))
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _next_line(self, deadline: float, timeout_s: float, end: float) -> bytes | None:
        while True:
            if time.monotonic() >= end:
                raise OverdueError(f"{self._node}: it goes on and on{self._said()}")
            line = self._own_line()
            if line is not None:
                return line
            if "stdout" not in self._open:
                return None
            if not self._fill(deadline) and time.monotonic() < end:
                raise TransportError(f"{self._node}: nothing has come for {timeout_s:g} s{self._said()}")

    def _own_line(self) -> bytes | None:
        """Return the next whole line that the command has printed; None where none has come."""
        while (line := self._pop_line()) is not None:
            if self._begun:
                return line
            # Anything before the mark comes from login scripts.
            self._begun = line.endswith(self._mark.encode())
        return None

    def _pop_line(self) -> bytes | None:
        end = self._buffer.find(b"\n")
        if end < 0:
            limit = STDOUT_LIMIT if self._begun else _NOISE_LIMIT
            if len(self._buffer) > limit:
                start = printable(bytes(self._buffer[:60]))
                raise TransportError(f"{self._node}: printed an endless line, beginning with {start!r}")
            if self._buffer and "stdout" not in self._open and self._begun:
                line = bytes(self._buffer)
                self._buffer.clear()
                return line
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def _fill(self, deadline: float) -> bool:
        """Read what is there; False when nothing came before `deadline` (of the monotonic clock)."""
        ready = self._selector.select(max(0.0, deadline - time.monotonic()))
        for key, _ in ready:
            self._take(key.data)
        return bool(ready)

    def _take(self, name: str) -> bool:
        """Read once; False when there is nothing (more)."""
        pipe = self._process.stdout if name == "stdout" else self._process.stderr
        assert pipe is not None
        try:
            chunk = os.read(pipe.fileno(), 1 << 16)
        except BlockingIOError:
            return False
        if not chunk:
            self._selector.unregister(pipe)
            self._open.discard(name)
            return False
        if name == "stdout":
            self._heard = True
            self._buffer += chunk
        else:
            self._stderr += chunk
            del self._stderr[:-STDERR_LIMIT]
        return True

    def _drain(self) -> None:
        while "stderr" in self._open and self._take("stderr"):
            pass

    def _said(self) -> str:
        said = last_words(self.stderr())
        return f"; its last message: {said}" if said else ""

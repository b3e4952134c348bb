"""Ctrl-C at any moment of a command on many nodes: it ends as an interrupt, nothing stays, the next one works."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time

import pytest

from wulf.node.cluster.transport.fanout import fan_out

NODES = [f"n{index}" for index in range(8)]


def run(seconds: str, mark: str):
    results = {}
    fan_out(
        lambda _: ["sh", "-c", f": {mark}; sleep {seconds}; echo done"],
        NODES,
        stdin=b"",
        timeout_s=90,
        fanout=8,
        done=results.__setitem__,
    )
    return results


def assert_gone(mark: str) -> None:
    """What was killed may take a moment to be gone on a busy machine; what was forgotten sleeps on for 60 s."""
    limit = time.monotonic() + 30
    while subprocess.run(["pgrep", "-f", mark], capture_output=True, check=False).stdout:
        assert time.monotonic() < limit, "a process stays"
        time.sleep(0.05)


@pytest.mark.parametrize("delay_ms", [0.2, 0.5, 1, 2, 3, 5, 8, 12, 20, 30, 50])
def test_an_interrupt_at_any_moment_is_an_interrupt(delay_ms):
    mark = f"wulf-test-interrupt-{delay_ms}"
    timer = threading.Timer(delay_ms / 1000, os.kill, [os.getpid(), signal.SIGINT])
    with pytest.raises(KeyboardInterrupt):
        timer.start()  # within: on a busy machine the signal may come before this returns
        run("60", mark)
        pytest.fail("it was not interrupted")
    timer.join()
    assert_gone(mark)
    assert all(raw.stdout == b"done\n" for raw in run("0", mark).values())

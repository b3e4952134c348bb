"""The kernel's side of the virtual cluster."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from wulf.node.lab import system


def test_ctrl_c_while_a_node_is_started_is_not_lost(tmp_path: Path) -> None:
    # An exception in the middle of a fork or of a destructor is printed and forgotten.
    interrupted = 0
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for number in range(100):
            timer = threading.Timer(0.001 + 0.0002 * (number % 40), os.kill, (os.getpid(), signal.SIGTERM))
            try:
                timer.start()
                while timer.is_alive():
                    system.spawn(["true"], tmp_path / "log", [])
            except KeyboardInterrupt:
                interrupted += 1
    finally:
        signal.signal(signal.SIGTERM, before)
    assert interrupted == 100

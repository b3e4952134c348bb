"""The kernel's side of the virtual cluster."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("argv", "is_one"),
    [
        (["ssh", "-F", "/lab/ssh_config", "node01", "true"], True),
        (["/usr/bin/ssh", "-F", "/other/ssh_config", "node01"], False),
        (["nsenter", "--net=/run/netns/x", "python3", "/lab/connect.py", "10.0.0.1", "22"], True),
        (["/usr/bin/python3", "/lab/connect.py", "10.0.0.1", "22"], True),
        (["/bin/bash", "-c", "exec nsenter --net=/run/netns/x python3 /lab/connect.py 10.0.0.1 22"], True),
        (["sh", "-c", "exec nsenter --net=/run/netns/x python3 /other/connect.py 10.0.0.1 22"], False),
        (["sh", "-c", "cat /lab/connect.py"], False),
        (["vim", "/lab/connect.py", "/lab/ssh_config"], False),
        ([""], False),
    ],
)
def test_clients_of_the_lab_are_told_from_who_reads_its_files(monkeypatch, tmp_path, argv, is_one):
    """Between ssh and its helper there is a shell for a moment: a lab that is ended then left the helper behind."""
    (tmp_path / "17").mkdir()
    (tmp_path / "17" / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in argv))
    real = Path
    monkeypatch.setattr(system, "Path", lambda word: tmp_path if word == "/proc" else real(word))
    assert system.clients_of(real("/lab/ssh_config"), real("/lab/connect.py")) == ([17] if is_one else [])

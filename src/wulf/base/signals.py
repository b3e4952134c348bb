"""How work is ended early: Ctrl-C, the end of the session or of the job."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: The signals that end work early.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_gently() -> None:
    """Let the end of the session or of the job (SIGHUP, SIGTERM) do what Ctrl-C does.

    Under nohup the hang-up stays ignored.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold Ctrl-C and the like back to the end.

    Who starts a process must know of it to be able to end it; and an exception in the middle of a fork or of a
    destructor is printed and forgotten.
    """
    pending: list[int] = []
    held: dict[signal.Signals, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                if callable(signal.getsignal(number)):
                    held[number] = signal.signal(number, lambda got, _: pending.append(got))
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
        for got in pending:
            signal.raise_signal(got)
